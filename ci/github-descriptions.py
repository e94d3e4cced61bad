#!/usr/bin/env python3
"""Brings GitHub's own descriptions of its interfaces for the tests' forge, cut to what they use.

They come from GitHub's packages on the npm registry that npm is configured for, at the versions
and with the sums below, into build/github/. Nothing is fetched where they are there already.

    rest.json        the OpenAPI description of the operations in REST
    schema.graphql   the GraphQL schema without its prose
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "build" / "github"

REST = (
    ("get", "/rate_limit"),
    ("get", "/repos/{owner}/{repo}/issues"),
    ("post", "/repos/{owner}/{repo}/issues"),
    ("get", "/repos/{owner}/{repo}/issues/{issue_number}"),
    ("patch", "/repos/{owner}/{repo}/issues/{issue_number}"),
    ("get", "/repos/{owner}/{repo}/issues/{issue_number}/comments"),
    ("post", "/repos/{owner}/{repo}/issues/{issue_number}/comments"),
    ("get", "/repos/{owner}/{repo}/pulls"),
    ("post", "/repos/{owner}/{repo}/pulls"),
    ("get", "/repos/{owner}/{repo}/pulls/{pull_number}"),
    ("patch", "/repos/{owner}/{repo}/pulls/{pull_number}"),
    ("get", "/repos/{owner}/{repo}/git/ref/{ref}"),
    ("get", "/repos/{owner}/{repo}/releases"),
    ("post", "/repos/{owner}/{repo}/releases"),
    ("delete", "/repos/{owner}/{repo}/releases/assets/{asset_id}"),
    ("get", "/repos/{owner}/{repo}/releases/latest"),
    ("get", "/repos/{owner}/{repo}/releases/tags/{tag}"),
    ("get", "/repos/{owner}/{repo}/releases/{release_id}"),
    ("patch", "/repos/{owner}/{repo}/releases/{release_id}"),
    ("delete", "/repos/{owner}/{repo}/releases/{release_id}"),
    ("get", "/repos/{owner}/{repo}/releases/{release_id}/assets"),
    ("post", "/repos/{owner}/{repo}/releases/{release_id}/assets"),
    ("get", "/search/issues"),
)


@dataclass(frozen=True)
class Package:
    """A version on the registry; `sha512` is what npm calls its integrity."""

    name: str
    version: str
    sha512: str
    member: str


OPENAPI = Package(
    "@octokit/openapi",
    "23.0.2",
    "pV8M7L9GY23AybNvTmo2nyjmpmnt6+2sRE/tqr0ZLQcPS4lnw7u5eZGNmwRNkBC3D7gZXbFx5AHzLUVRBXGDhg==",
    "package/generated/api.github.com.json",
)
GRAPHQL = Package(
    "@octokit/graphql-schema",
    "15.26.1",
    "RFDC2MpRBd4AxSRvUeBIVeBU7ojN/SxDfALUd7iVYOSeEK3gZaqR2MGOysj4Zh2xj2RY5fQAUT+Oqq7hWTraMA==",
    "package/schema.graphql",
)


class CannotBring(Exception):
    """One sentence why, one what to do."""


def bring(package: Package) -> bytes:
    """The package's `member`; its archive must have the pinned sum."""
    npm = shutil.which("npm")
    if npm is None:
        raise CannotBring(
            "npm is missing, which brings GitHub's descriptions for the tests:"
            " install it (Debian, Ubuntu: apt-get install npm, as root)."
        )
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [npm, "pack", "--silent", f"{package.name}@{package.version}"],
            check=False,
            cwd=folder,
            capture_output=True,
            text=True,
        )
        archives = list(Path(folder).glob("*.tgz"))
        if done.returncode or len(archives) != 1:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise CannotBring(
                f"npm does not bring {package.name} {package.version}"
                f" ({said[0] if said else f'exit status {done.returncode}'}):"
                " check the registry that `npm config get registry` names, and the network."
            )
        data = archives[0].read_bytes()
        if base64.b64encode(hashlib.sha512(data).digest()).decode() != package.sha512:
            raise CannotBring(
                f"the archive of {package.name} {package.version} is not the one that is pinned"
                " in ci/github-descriptions.py: the registry serves something else."
            )
        with tarfile.open(archives[0]) as archive:
            member = archive.extractfile(package.member)
            assert member is not None
            return member.read()


def cut_rest(whole: bytes) -> bytes:
    """Of the description of all operations those in REST, and what they refer to."""
    spec = json.loads(whole)
    paths: dict[str, dict[str, Any]] = {}
    for method, path in REST:
        there = spec["paths"][path]
        entry = paths.setdefault(path, {k: v for k, v in there.items() if k == "parameters"})
        entry[method] = there[method]
    kept: dict[str, dict[str, Any]] = {}
    waiting = list(references(paths))
    while waiting:
        kind, name = waiting.pop()
        if name not in kept.setdefault(kind, {}):
            kept[kind][name] = spec["components"][kind][name]
            waiting += references(kept[kind][name])
    # The examples are most of its size, and some contradict the schemas.
    kept.pop("examples", None)
    cut = {"openapi": spec["openapi"], "info": spec["info"], "paths": paths, "components": kept}
    return json.dumps(without_examples(cut), sort_keys=True, indent=1).encode()


def references(node: object) -> Iterator[tuple[str, str]]:
    match node:
        case {"$ref": str(target)}:
            kind, name = target.removeprefix("#/components/").split("/")
            if kind != "examples":
                yield kind, name
        case dict():
            for value in node.values():
                yield from references(value)
        case list():
            for value in node:
                yield from references(value)


def without_examples(node: Any) -> Any:
    if isinstance(node, dict):
        # A property may be called `examples`: then it is a schema, not a list of examples.
        drop = {"examples"} if "schema" in node or "content" in node else set()
        return {key: without_examples(value) for key, value in node.items() if key not in drop}
    if isinstance(node, list):
        return [without_examples(value) for value in node]
    return node


def cut_graphql(whole: bytes) -> bytes:
    """The schema without its descriptions (all are block strings), two thirds of it."""
    return re.sub(rb'"""(?:\\"""|.)*?"""\s*', b"", whole, flags=re.DOTALL)


def main() -> int:
    mark = TARGET / "made-by"
    recipe = hashlib.sha256(Path(__file__).read_bytes()).hexdigest() + "\n"
    if mark.is_file() and mark.read_text(encoding="utf-8") == recipe:
        return 0
    try:
        files = {
            "rest.json": cut_rest(bring(OPENAPI)),
            "schema.graphql": cut_graphql(bring(GRAPHQL)),
            "made-by": recipe.encode(),
        }
    except CannotBring as error:
        print(f"GitHub's descriptions: {error}", file=sys.stderr)
        return 1
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        beside = TARGET / f".{name}.{os.getpid()}"
        beside.write_bytes(data)
        beside.replace(TARGET / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
