"""What is installed on a node beside the runner: packages twice, FlashInfer and what it compiled,
exllamav3's extension.

FlashInfer keeps what it compiles in BASE/.cache/flashinfer/VERSION/ARCHITECTURES/cached_ops/NAME/
NAME.so, BASE being FLASHINFER_WORKSPACE_BASE or the home folder (flashinfer/jit/env.py of 0.6.18 to
0.7.2), so that other sources of the same version find the old code. Its `flashinfer-cubin` and
`flashinfer-jit-cache` must have its own version, or it refuses to be imported (the same file).
exllamav3 compiles `exllamav3_ext` at its first import where none is installed (exllamav3/ext.py).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from patchq.build.fatbin import every
from patchq.build.target import Target
from patchq.build.wheelfile import Recorded, recorded
from patchq.doctor import objects
from patchq.doctor.model import Check, of_error
from patchq.doctor.objects import Shared, target_for
from patchq.doctor.packed import FolderFiles, below
from patchq.errors import PatchqError
from patchq.paths import is_inside, show
from patchq.progress import Progress

PACKAGES, FLASHINFER, EXLLAMA = "packages", "FlashInfer", "exllamav3"
RUNNER = "vllm"
_EXTENSION = "exllamav3_ext"
_FOLLOWERS = ("flashinfer-cubin", "flashinfer-jit-cache")
_INFO = re.compile(r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)\.dist-info")
_MOST_RECORD = 64 << 20
_ELSEWHERE = "the cache was made on another machine, or for another GPU"
_OLDER = (
    "the folder is named by the version alone, so that other sources of the same version find the"
    " old code"
)


@dataclass(frozen=True)
class Installed:
    """One distribution, by what its .dist-info folder is called."""

    name: str
    version: str
    info: Path


def check(
    root: Path,
    target: Target | None,
    look: Callable[..., tuple[Check, ...]],
    workspace: Path | None,
    progress: Progress,
) -> tuple[Check, ...]:
    """All checks of the folder; `look` is those of vLLM's own files."""
    there = _distributions(root)
    runner = there.get(RUNNER, [])
    if not there:
        raise PatchqError(
            f"nothing is installed in {root}", "name the site-packages folder of the runner"
        )
    checks = list(_twice(there))
    if len(runner) > 1:
        # Whose files they are is not to be known.
        return tuple(checks)
    fits = target or (_target(runner[0]) if runner else None)
    if fits is None:
        raise PatchqError(
            f"no vllm is installed in {root}", "name the site-packages folder of the runner"
        )
    if runner:
        files = FolderFiles(root, (RUNNER,), _record(runner[0]))
        checks += look(files, fits, progress=progress)
    checks += _flashinfer(root, there, fits, workspace)
    checks += _exllama(root, there, fits)
    return tuple(checks)


def _distributions(root: Path) -> dict[str, list[Installed]]:
    found: defaultdict[str, list[Installed]] = defaultdict(list)
    for path in sorted(root.glob("*.dist-info")):
        parts = _INFO.fullmatch(path.name)
        if parts and (path / "METADATA").is_file():
            name = re.sub(r"[-_.]+", "-", parts["name"]).lower()
            found[name].append(Installed(name, parts["version"], path))
    return found


def _target(runner: Installed) -> Target:
    """By the tag that pip kept from the wheel's name. Raises PatchqError where there is none."""
    try:
        lines = (runner.info / "WHEEL").read_text("utf-8", "replace").splitlines()
    except OSError as error:
        raise PatchqError(
            f"{show(runner.info.name)} has no WHEEL: {error.strerror}", "install it again"
        ) from error
    machine = " ".join(line for line in lines if line.startswith("Tag:"))
    cpu = "cpu" in runner.version.partition("+")[2].split(".")
    return target_for(machine, cpu, f"vllm {show(runner.version)}")


def _record(runner: Installed) -> dict[str, Recorded]:
    """What stands in the package's own folder; scripts lie outside."""
    try:
        with (runner.info / "RECORD").open("rb") as file:
            rows = recorded(file.read(_MOST_RECORD))
    except (OSError, ValueError) as error:
        raise PatchqError(
            f"RECORD of vllm {show(runner.version)} cannot be read: {error}", "install it again"
        ) from error
    return {name: row for name, row in rows.items() if is_inside(name.encode("utf-8", "replace"))}


def _twice(there: dict[str, list[Installed]]) -> Iterator[Check]:
    for name, found in there.items():
        if len(found) > 1:
            versions = ", ".join(show(each.version) for each in found)
            yield Check(
                PACKAGES,
                "fatal" if name in (RUNNER, "flashinfer-python", EXLLAMA) else "warning",
                f"{show(name)} is installed {len(found)} times: {versions}",
                "one was laid over the other; which version it says it is, is chance",
                f"pip uninstall {name} until it is gone, then install the one that is locked",
            )


def _flashinfer(
    root: Path, there: dict[str, list[Installed]], target: Target, workspace: Path | None
) -> Iterator[Check]:
    if "flashinfer-python" not in there or not target.gpu:
        return
    (own, *_) = there["flashinfer-python"]
    for follower in _FOLLOWERS:
        for each in there.get(follower, []):
            if each.version.partition("+")[0] != own.version.partition("+")[0]:
                yield Check(
                    FLASHINFER,
                    "fatal",
                    f"{follower} is {show(each.version)}, FlashInfer is {show(own.version)}",
                    "FlashInfer refuses to be imported with those of another version",
                    f"install {follower}=={own.version}, or remove it",
                )
    yield from _natives(root, FLASHINFER, ("flashinfer", "flashinfer_jit_cache"), target)
    if workspace is not None:
        yield from _compiled(workspace / ".cache" / "flashinfer", own, target)


def _compiled(cache: Path, own: Installed, target: Target) -> Iterator[Check]:
    """What FlashInfer compiled here before: for this GPU, and from what is installed?"""
    gpu = objects.GPUS.get(target.name)
    installed = (own.info / "METADATA").stat().st_mtime
    folder = cache / own.version
    bad: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for path in sorted(folder.glob("*/cached_ops/*/*.so")):
        try:
            with path.open("rb") as source:
                each = objects.look(source, path.name)
        except (PatchqError, OSError):
            bad["cannot be read", "it was broken off while it was written"].append(path.name)
            continue
        codes = {code for found in each.fatbins for code in found}
        if each.machine != target.machine:
            key = f"for {each.machine}, {target.name} is {target.machine}", _ELSEWHERE
        elif gpu and codes and not any(code.runs_on(gpu) for code in codes):
            arches = ", ".join(code.arch for code in every([frozenset(codes)]))
            key = f"no code that runs on {gpu}: {arches}", _ELSEWHERE
        elif path.stat().st_mtime < installed:
            key = f"compiled before FlashInfer {show(own.version)} was installed", _OLDER
        else:
            continue
        bad[key].append(path.name)
    for (says, reason), names in bad.items():
        told = ", ".join(map(show, names[:4])) + (f" and {len(names) - 4} more" * (len(names) > 4))
        yield Check(
            FLASHINFER,
            "warning",
            f"{told} in FlashInfer's cache: {says}",
            reason,
            f"remove {folder}, or set FLASHINFER_WORKSPACE_BASE to a folder of this runner's own",
        )


def _exllama(root: Path, there: dict[str, list[Installed]], target: Target) -> Iterator[Check]:
    if EXLLAMA not in there or not target.gpu:
        return
    tops = tuple(path.name for path in sorted(root.glob(f"{_EXTENSION}*.so")))
    python = _python(root, target)
    ours = (f"{_EXTENSION}.so", f"{_EXTENSION}.abi3.so", f"{_EXTENSION}.cpython-{python}-")
    if not any(name.startswith(ours) for name in tops):
        others = f" for Python {python[0]}.{python[1:]}, only {', '.join(map(show, tops))}"
        yield Check(
            EXLLAMA,
            "warning",
            f"{_EXTENSION} is not compiled{others if tops else ''}",
            "exllamav3 compiles it at its first import, for minutes, and needs nvcc for that",
            "build it for the target before (patchq deps list says which version)",
        )
    yield from _natives(root, EXLLAMA, (*tops, EXLLAMA), target)


def _python(root: Path, target: Target) -> str:
    """Whose packages these are, `312` say: by where they lie, else the target's."""
    found = re.fullmatch(r"python(\d)\.(\d+)", root.resolve().parent.name)
    return f"{found[1]}{found[2]}" if found else target.python.replace(".", "")


def _natives(root: Path, name: str, tops: tuple[str, ...], target: Target) -> Iterator[Check]:
    found: list[Shared] = []
    for file in sorted(each for top in tops for each in below(root, top) if each.endswith(".so")):
        try:
            with (root / file).open("rb") as source:
                found.append(objects.look(source, file))
        except PatchqError as problem:
            yield of_error(name, problem)
        except OSError as error:
            yield Check(name, "fatal", f"{show(file)} cannot be read: {error.strerror}")
    needed = name == EXLLAMA
    imported = [each for each in found if needed and each.module == _EXTENSION]
    told = [*objects.check(found, target, needed=needed), *chain(*map(objects.unnamed, imported))]
    for each in told:
        if each.state != "ok":
            yield replace(each, name=name)
