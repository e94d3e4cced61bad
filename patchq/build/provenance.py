"""`build.json` and what stands beside it: where a build came from, as bytes. Pure.

The same inputs give the same bytes: no time, no path, no random number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from patchq import __version__
from patchq.build.components import Part
from patchq.build.provenance_bom import bom
from patchq.build.provenance_made import RECORD as RECORD
from patchq.build.provenance_made import Made, sha256
from patchq.build.provenance_statement import statement
from patchq.build.requirements import file_name
from patchq.paths import lossless
from patchq.queue.patch import Patch

STATEMENT = "build.intoto.json"
BOM = "build.cdx.json"


def records(made: Made) -> dict[str, bytes]:
    """The files that say where a build came from, by name."""
    own = to_bytes(told(made))
    return {
        RECORD: own,
        STATEMENT: to_bytes(statement(made, sha256(own))),
        BOM: to_bytes(bom(made)),
    }


def told(made: Made) -> dict[str, Any]:
    """`build.json`: what went in, what came out, by digest."""
    wanted, built = made.wanted, made.built
    sources = [each.source for each in made.parts if each.source is not None]
    inputs = [made.source, *sources]
    method = "compiled" if built.compiled else "overlay"
    return {
        "schema": "patchq.build/1",
        "target": made.target.name,
        "runner": {
            "series": wanted.series,
            "release": wanted.number,
            "base": {"release": wanted.release, "tree": wanted.base},
            "tree": wanted.tree,
            "patches": [_patch(each) for each in made.patches],
        },
        "lock": made.lock,
        "requirements": _requirements(made),
        "rewritten": [vars(each) for each in made.rewritten],
        "components": [_part(each) for each in made.parts],
        "inputs": [{"name": each.filename, "sha256": each.sha256} for each in inputs],
        "tools": {"patchq": __version__},
        "flags": {"method": method, "glibc": made.target.glibc, "python": made.target.python},
        "laid": sorted(map(lossless, built.overlay.laid)),
        "removed": sorted(map(lossless, built.overlay.removed)),
        "apart": sorted(map(lossless, (*built.overlay.apart, *built.overlay.unlisted))),
        "compiled": dict(built.compiled),
        "differing": list(built.differing),
        "outputs": [
            {"name": name, "sha256": digest, "size": size} for name, digest, size in made.outputs
        ],
    }


def to_bytes(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


def _patch(patch: Patch) -> dict[str, Any]:
    return {
        "number": patch.number,
        "name": patch.name,
        "sha256": sha256(patch.text),
        "prs": patch.header.all("Patchq-Pr"),
    }


def _requirements(made: Made) -> dict[str, Any] | None:
    if made.requirements is None:
        return None
    return {
        "name": file_name(made.target.name),
        "sha256": made.requirements_sha256,
        "packages": len(made.requirements.packages),
    }


def _part(part: Part) -> dict[str, Any]:
    component, wheel = part.component, part.wheel
    found: dict[str, Any] = {
        "name": component.name,
        "kind": part.kind,
        "version": component.version or None,
        "commit": component.commit or None,
        "source": None,
        "wheel": None,
        "patches": [],
    }
    if part.source is not None:
        found["source"] = {"name": part.source.filename, "sha256": part.source.sha256}
    if wheel is not None:
        found["wheel"] = {"name": wheel.path.name, "sha256": wheel.sha256, "tree": wheel.tree}
        found["wheel"] |= {"laid": list(wheel.laid), "removed": list(wheel.removed)}
        found["patches"] = [_patch(each) for each in wheel.patches]
    return found
