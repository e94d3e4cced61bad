"""The build's bill of materials in CycloneDX 1.6: pure.

https://cyclonedx.org/docs/1.6/json/ has the fields, the package-url specification the names.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from patchq import __version__
from patchq.build.components import Part, Wheeled
from patchq.build.metadata import NAME
from patchq.build.provenance_made import Made
from patchq.build.requirements import Locked, normal
from patchq.queue.patch import Patch

SPACE = uuid.UUID("5d3c3f0e-6f2b-5b1e-9a0f-2f1f6f0f7a11")
"""What the serial numbers are derived in (RFC 9562, version 5): any fixed value does."""


def purl(package: str, version: str, filename: str = "") -> str:
    """`pkg:pypi/NAME@VERSION`, with the file where there is one."""
    end = f"?file_name={quote(filename, safe='')}" if filename else ""
    return f"pkg:pypi/{normal(package)}@{quote(version, safe='')}{end}"


def bom(made: Made) -> dict[str, Any]:
    """The runner's wheel, its components, and what its environment is locked to hold."""
    own = _own(made)
    parts = [_part(each) for each in made.parts]
    given = {normal(each.component.index) for each in made.parts if each.component.index}
    packages = made.requirements.packages if made.requirements is not None else ()
    locked = [_locked(each) for each in packages if each.name not in given]
    all_of_them = sorted([*parts, *locked], key=lambda each: str(each["bom-ref"]))
    refs = [each["bom-ref"] for each in all_of_them]
    serial = uuid.uuid5(SPACE, " ".join([*(digest for _, digest, _ in made.outputs), *refs]))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": serial.urn,
        "version": 1,
        "metadata": {
            "component": own,
            "tools": {
                "components": [{"type": "application", "name": "patchq", "version": __version__}]
            },
            "properties": [
                {"name": "patchq:target", "value": made.target.name},
                {"name": "patchq:tree", "value": made.wanted.tree},
                *([{"name": "patchq:lock", "value": made.lock}] if made.lock else []),
            ],
        },
        "components": all_of_them,
        "dependencies": [
            {"ref": own["bom-ref"], "dependsOn": refs},
            *({"ref": ref} for ref in refs),
        ],
    }


def _own(made: Made) -> dict[str, Any]:
    name, digest, _ = made.outputs[0]
    source = made.source
    ancestor: dict[str, Any] = {
        "type": "library",
        "name": made.target.package,
        "version": source.version,
        "purl": purl(made.target.package, source.version, source.filename),
        "hashes": _hashes(source.sha256),
    }
    found: dict[str, Any] = {
        "type": "application",
        "bom-ref": purl(NAME, made.built.version),
        "name": NAME,
        "version": made.built.version,
        "purl": purl(NAME, made.built.version, name),
        "hashes": _hashes(digest),
        "pedigree": {"ancestors": [ancestor], "patches": _patches("series", made.patches)},
    }
    if made.licence:
        found["licenses"] = [{"expression": made.licence}]
    return found


def _part(part: Part) -> dict[str, Any]:
    component = part.component
    version = part.wheel.version if part.wheel is not None else component.version
    if not component.index:
        found: dict[str, Any] = {
            "type": "library",
            "bom-ref": f"component:{component.name}",
            "name": component.name,
            "version": component.version or component.commit,
        }
    else:
        found = {
            "type": "library",
            "bom-ref": purl(component.index, version),
            "name": component.index,
            "version": version,
            "purl": purl(component.index, version),
        }
    if part.wheel is not None and part.source is not None:
        found["hashes"] = _hashes(part.wheel.sha256)
        found["pedigree"] = _pedigree(part, part.wheel)
    elif part.source is not None:
        found["hashes"] = _hashes(part.source.sha256)
    if part.licence:
        found["licenses"] = [{"expression": part.licence}]
    if component.git:
        found["externalReferences"] = [{"type": "vcs", "url": component.git}]
    found["properties"] = [{"name": "patchq:component", "value": part.kind}]
    if component.commit:
        found["properties"].append({"name": "patchq:commit", "value": component.commit})
    return {**found, "description": component.why}


def _pedigree(part: Part, wheel: Wheeled) -> dict[str, Any]:
    source = part.source
    assert source is not None
    ancestor = {
        "type": "library",
        "name": part.component.index,
        "version": source.version,
        "purl": purl(part.component.index, source.version, source.filename),
        "hashes": _hashes(source.sha256),
    }
    folder = f"series/{part.component.name}"
    return {"ancestors": [ancestor], "patches": _patches(folder, wheel.patches)}


def _patches(folder: str, patches: Sequence[Patch]) -> list[dict[str, Any]]:
    """A patch that takes a pull request in is a backport, any other is our own."""
    return [
        {
            "type": "backport" if each.header.all("Patchq-Pr") else "unofficial",
            "diff": {"url": f"{folder}/{each.file}"},
        }
        for each in patches
    ]


def _locked(package: Locked) -> dict[str, Any]:
    """Of a package with one wheel that fits, its hash; with several, each as a distribution."""
    name = purl(package.name, package.version)
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": name,
        "name": package.name,
        "version": package.version,
        "purl": name,
    }
    if len(package.hashes) == 1:
        found["hashes"] = _hashes(package.hashes[0])
    else:
        found["externalReferences"] = [
            {"type": "distribution", "url": name, "hashes": _hashes(each)}
            for each in package.hashes
        ]
    return found


def _hashes(sha256: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": sha256}]
