"""What a build made, as a cluster takes it: its wheels, held against the build's own record."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from patchq.build.provenance_made import RECORD
from patchq.build.requirements import file_name
from patchq.build.target import Target
from patchq.cluster.deploy import Bundle, Wheel
from patchq.errors import PatchqError


def bundle(root: Path, target: Target, wheel: Path | None = None) -> Bundle:
    """The last build for `target` in the project at `root`, or the build that `wheel` is of.

    A wheel without a record beside it is taken by itself. Raises PatchqError where there is no
    build, or its files are not what its record says.
    """
    folder = root / "build" / target.name if wheel is None else wheel.parent
    record = _record(folder / RECORD)
    if wheel is not None and not wheel.is_file():
        raise PatchqError(f"{wheel} does not exist", "name a wheel that does")
    if wheel is None and record is None:
        raise PatchqError(
            f"there is no build for {target.name}",
            f"run `patchq build --target {target.name}`, or name a wheel with --wheel",
        )
    lock = root / "upstream" / file_name(target.name)
    requirements = lock.read_bytes() if lock.is_file() else None
    if record is None or (wheel is not None and wheel.name not in _names(record)):
        assert wheel is not None
        only = Wheel(wheel, _sha256(wheel))
        return Bundle((only,), requirements, target.python, {"target": target.name})
    return _of(record, folder, target, requirements)


def _of(record: dict[str, Any], folder: Path, target: Target, requirements: bytes | None) -> Bundle:
    try:
        was = record["target"]
        locked = record["requirements"]
        wheels = tuple(Wheel(folder / each["name"], each["sha256"]) for each in record["outputs"])
        runner = record["runner"]
        labels = {
            "target": str(was),
            "queue": str(runner["series"]),
            "base": str(runner["base"]["release"]),
            "tree": str(runner["tree"]),
            "release": str(runner["release"]),
            **({"lock": str(record["lock"])} if record["lock"] else {}),
        }
    except (KeyError, TypeError) as error:
        raise PatchqError(f"{folder / RECORD} is damaged", "build again") from error
    if was != target.name:
        raise PatchqError(
            f"the build in {folder} is for {was}, the cluster takes {target.name}",
            f"run `patchq build --target {target.name}`",
        )
    for each in wheels:
        if not each.path.is_file() or _sha256(each.path) != each.sha256:
            raise PatchqError(
                f"{each.path.name} is not what the build's record says",
                f"run `patchq build --target {target.name}` again",
            )
    now = None if requirements is None else hashlib.sha256(requirements).hexdigest()
    if locked is not None and locked["sha256"] != now:
        raise PatchqError(
            f"{file_name(target.name)} changed since the build",
            f"run `patchq build --target {target.name}` again",
        )
    return Bundle(wheels, requirements, target.python, labels)


def _record(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise PatchqError(f"{path} is damaged", "build again") from error
    return found if isinstance(found, dict) else None


def _names(record: dict[str, Any]) -> set[str]:
    outputs = record.get("outputs")
    return {str(each.get("name")) for each in outputs} if isinstance(outputs, list) else set()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
