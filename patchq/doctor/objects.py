"""Shared objects in a runner: for which machine and GPU, importable as what, and each once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchq.build import elf, fatbin
from patchq.build.fatbin import Code
from patchq.build.target import TARGETS, Target
from patchq.doctor.model import Check
from patchq.errors import PatchqError
from patchq.paths import show

MACHINE, GPU, EXTENSIONS = "machine", "GPU code", "extensions"
GPUS = {"spark": "sm_121"}
"""The GPU of a target that has one kind only: GB10 is compute capability 12.1."""
ESSENTIAL = re.compile(r"_(?:moe_)?C(?:_stable_libtorch)?")
"""vLLM's attention, cache, quantization and MoE ops: no GPU serves without them."""
_EXTENSION = re.compile(r"(?P<module>[^.]+)(?:\.(?P<tag>abi3|cpython-\w+-[\w-]+))?\.so")


@dataclass(frozen=True)
class Shared:
    """One shared object or program. `fatbins`: the code of each of its fat binaries, one a source
    file; `exports`: its dynamic symbols; `strings`: the read-only data, where op schemas stand."""

    name: str
    machine: str
    fatbins: tuple[frozenset[Code], ...]
    exports: frozenset[str]
    strings: bytes

    @property
    def module(self) -> str:
        """What it is imported as; empty for what no Python imports."""
        return module_of(self.name)

    @property
    def tag(self) -> str:
        """For which Pythons the file is by its name; empty for any."""
        found = _EXTENSION.fullmatch(self.name)
        return (found["tag"] or "") if found else ""


def module_of(name: str) -> str:
    """`vllm.x._C` for vllm/x/_C.abi3.so; empty for what no Python imports."""
    found = _EXTENSION.fullmatch(name)
    return found["module"].replace("/", ".") if found else ""


def look(source: elf.Source, name: str) -> Shared:
    """Raises PatchqError for what is no whole ELF file, or has a damaged fat binary."""
    file = elf.read(source, name)
    # In the order of the file: a member of a wheel is unpacked forward.
    exports = elf.symbols(source, file).defined
    strings = b"\0".join(elf.content(source, file, each) for each in file.find(".rodata"))
    return Shared(name, file.machine, fatbin.fatbins(source, file), exports, strings + b"\0")


def target_for(tag: str, cpu: bool, what: str) -> Target:
    """The target of a platform tag. Raises PatchqError for a machine that is none's."""
    for each in TARGETS.values():
        if tag.endswith(each.machine) and cpu == (not each.gpu):
            return each
    raise PatchqError(
        f"{show(what)} is for none of the targets {', '.join(TARGETS)}",
        "build it anew: patchq build --target spark",
    )


def check(objects: Sequence[Shared], target: Target, *, needed: bool = False) -> Iterator[Check]:
    """All that they say of themselves, against the target.

    `needed`: each that holds code for GPUs must hold some for the target's. A runner has some for
    other GPUs alone: of those only vLLM's own ops are needed, and what means the target's kind of
    GPU and misses it.
    """
    foreign = [each for each in objects if each.machine != target.machine]
    if foreign:
        machines = ", ".join(sorted({each.machine for each in foreign}))
        yield Check(
            MACHINE,
            "fatal",
            f"{_named([each.name for each in foreign])}: for {machines}, and {target.name} is"
            f" {target.machine}",
            "the system refuses to load it (exec format error)",
            f"build for the target: patchq build --target {target.name}",
        )
    yield from _gpu(objects, target, needed)
    yield from _twice(objects)


def _gpu(objects: Sequence[Shared], target: Target, needed: bool) -> Iterator[Check]:
    gpu = GPUS.get(target.name)
    coded = [each for each in objects if any(each.fatbins)]
    if gpu is None or not coded:
        return
    remedy = f"compile it for {gpu}a, or for its family (TORCH_CUDA_ARCH_LIST=12.1a)"
    bad = []
    for each in coded:
        near = _near(each, gpu)
        essential = needed or ESSENTIAL.fullmatch(each.module.rpartition(".")[2])
        if near or (essential and not _runs(each, gpu)):
            bad.append(each.name)
            there = near or {code for found in each.fatbins for code in found}
            has = ", ".join(code.arch for code in fatbin.every([frozenset(there)]))
            yield Check(
                GPU,
                "fatal",
                f"{show(each.name)} has no code that runs on {gpu}: {has}"
                + (f" ({_count(each, gpu)})" if near else ""),
                "a kernel without code for the GPU ends the server at its first call (no kernel"
                " image is available); sm_120a runs on 12.0 alone, sm_120f and sm_120 on 12.1, too",
                remedy,
            )
    if bad:
        return
    runs = [each for each in coded if _runs(each, gpu)]
    loaded = [each.name for each in runs if not _runs(each, gpu, "elf")]
    others = [each.name for each in coded if each not in runs]
    says = f"{_named([each.name for each in runs if each.name not in loaded])}: code for {gpu}"
    says += f"; as PTX, compiled at the first load: {_named(loaded)}" if loaded else ""
    says += f"; for other GPUs: {_named(others)}" if others else ""
    yield Check(GPU, "ok", says)


def _runs(each: Shared, gpu: str, kind: str = "") -> bool:
    codes = (code for found in each.fatbins for code in found)
    return any(code.runs_on(gpu) for code in codes if code.kind == kind or not kind)


def _missed(each: Shared, gpu: str) -> list[frozenset[Code]]:
    """Fat binaries that mean a GPU of this major number, and not this one."""
    major = re.compile(rf"{gpu[:-1]}\d[af]?")
    return [
        found
        for found in each.fatbins
        if any(major.fullmatch(code.arch) for code in found)
        and not any(code.runs_on(gpu) for code in found)
    ]


def _near(each: Shared, gpu: str) -> set[Code]:
    return {code for found in _missed(each, gpu) for code in found}


def _count(each: Shared, gpu: str) -> str:
    return f"{len(_missed(each, gpu))} of its {len(each.fatbins)} fat binaries"


def _twice(objects: Sequence[Shared]) -> Iterator[Check]:
    """One Python must find one file for a module: several tags are for several Pythons."""
    by: defaultdict[str, list[Shared]] = defaultdict(list)
    for each in objects:
        if each.module:
            by[each.module].append(each)
    for module, found in sorted(by.items()):
        every = [each for each in found if each.tag in ("", "abi3")]
        if every and len(found) > 1:
            yield Check(
                EXTENSIONS,
                "fatal",
                f"{show(module)} is there {len(found)} times:"
                f" {', '.join(show(each.name) for each in found)}",
                "Python takes the first that its own list of suffixes names, and the other one is"
                " stale or meant to be taken",
                "remove the one that this build did not make",
            )


def unnamed(each: Shared) -> Iterator[Check]:
    """A finding where Python could not import it by its name: for what is imported.

    (The CPU build's _C_AVX2 cannot be, on purpose: to load it is enough.)
    """
    start = f"PyInit_{each.module.rpartition('.')[2]}"
    if start not in each.exports:
        yield Check(
            EXTENSIONS,
            "fatal",
            f"{show(each.name)} cannot be imported: it does not define {show(start)}",
            "it was renamed, or is not the extension that its name says",
            "build it again under its own name",
        )


def _named(names: Sequence[str]) -> str:
    short = [show(name.rpartition("/")[2].partition(".")[0]) for name in names]
    return ", ".join(short[:5]) + (f" and {len(short) - 5} more" if len(short) > 5 else "")
