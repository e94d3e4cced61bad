"""The build as an in-toto statement with SLSA provenance: pure.

https://in-toto.io/Statement/v1 and https://slsa.dev/provenance/v1 say what the fields mean.
"""

from __future__ import annotations

from typing import Any

from patchq import __version__
from patchq.build.provenance_bom import purl
from patchq.build.provenance_made import RECORD, Made, sha256
from patchq.build.requirements import file_name
from patchq.queue.patch import Patch

TYPE = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:patchq:build:overlay:1"
BUILDER = "urn:patchq:builder"


def statement(made: Made, record: str) -> dict[str, Any]:
    """The statement about the wheels that were made; `record` is the sha256 of build.json."""
    wanted = made.wanted
    return {
        "_type": TYPE,
        "subject": [
            {"name": name, "digest": {"sha256": digest}} for name, digest, _ in made.outputs
        ],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "queue": wanted.series,
                    "target": made.target.name,
                    "base": wanted.release,
                    "release": wanted.number,
                },
                "internalParameters": {"lock": made.lock},
                "resolvedDependencies": _dependencies(made),
            },
            "runDetails": {
                "builder": {"id": BUILDER, "version": {"patchq": __version__}},
                "byproducts": [{"name": RECORD, "digest": {"sha256": record}}],
            },
        },
    }


def _dependencies(made: Made) -> list[dict[str, Any]]:
    wanted = made.wanted
    found: list[dict[str, Any]] = [
        {"name": f"{wanted.series} {wanted.release}", "digest": {"gitTree": wanted.base}},
        {"name": f"{wanted.series} runner tree", "digest": {"gitTree": wanted.tree}},
    ]
    found += [_patch(wanted.series, each) for each in made.patches]
    sources = [(made.target.package, made.source)]
    for part in made.parts:
        if part.source is not None:
            sources.append((part.component.index, part.source))
        elif part.component.commit:
            commit = part.component.commit
            found.append({"name": part.component.name, "annotations": {"commit": commit}})
        if part.wheel is not None:
            found += [_patch(part.component.name, each) for each in part.wheel.patches]
    found += [
        {
            "name": file.filename,
            "uri": purl(package, file.version, file.filename),
            "digest": {"sha256": file.sha256},
        }
        for package, file in sources
    ]
    if made.requirements is not None:
        name = file_name(made.target.name)
        found.append({"name": name, "digest": {"sha256": made.requirements_sha256}})
    return found


def _patch(of: str, patch: Patch) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": f"{of}/{patch.file}",
        "digest": {"sha256": sha256(patch.text)},
    }
    heads = patch.header.all("Patchq-Pr")
    return {**entry, "annotations": {"pull-requests": heads}} if heads else entry
