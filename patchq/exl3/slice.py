"""`patchq slice run`: cut a checkpoint into a new folder, whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patchq.errors import PatchqError
from patchq.exl3 import checkpoint as checkpoints
from patchq.exl3 import manifest, values
from patchq.exl3.collector import aside
from patchq.exl3.cutting import Cutting
from patchq.exl3.documents import copy_others, write_documents
from patchq.exl3.families import Families
from patchq.exl3.headers import BadFile
from patchq.exl3.layout import Layout, Output, lay_out
from patchq.exl3.model import Plan, Refusal, Shard
from patchq.exl3.partial import Partial, check_target
from patchq.exl3.plan import plan as make_plan
from patchq.exl3.summary import Summary, summarize
from patchq.progress import SILENT, Progress

JOBS = 4
"""Shards at once: while some wait for the disk, the others are copied."""
SPARE = 64 << 20
"""Room on the disk for what is not counted: folders, the JSON files."""


@dataclass(frozen=True)
class SliceReport:
    """What a run made. `resumed`: shards of the source that an earlier run had finished."""

    target: Path
    layout: Layout
    summary: Summary
    files: tuple[manifest.FileEntry, ...]
    nbytes: int
    resumed: int
    seconds: float


class Refused(PatchqError):
    """The checkpoint cannot be cut so."""

    def __init__(self, refused: Sequence[Refusal]) -> None:
        first = refused[0]
        more = f" (and {len(refused) - 1} more; `patchq slice plan` lists them)"
        super().__init__(f"{first.tensor}: {first.why}" if first.tensor else first.why, first.hint)
        if len(refused) > 1:
            self.message += more


@aside()
def run(
    source: Path,
    target: Path,
    tp: int,
    families: Families,
    *,
    layout: Layout = "shared",
    uneven: bool = False,
    jobs: int = 0,
    sync: bool = True,
    progress: Progress = SILENT,
) -> SliceReport:
    """Cut `source` for `tp` ranks into the new folder `target`.

    `jobs` shards at once (0: 4). Memory does not grow with the shards' sizes. Without
    `sync` it does not wait until the shards are on the disk: a power cut may then damage a result
    that seems whole. Raises
    PatchqError in one sentence; then `target` is absent, and the same call goes on where this
    one ended.
    """
    check_target(source, target)
    found = checkpoints.read(source, progress)
    plan = make_plan(found, tp, families, uneven=uneven)
    refused = list(plan.refused) or values.check(plan, progress)
    if refused:
        raise Refused(refused)
    started = time.monotonic()
    outputs = {shard.file: _outline(plan, shard, layout) for shard in found.shards}
    files = tuple(_entry(output) for each in outputs.values() for output in each)
    _check_names(files, found.others)
    _check_tensors(output for each in outputs.values() for output in each)
    with Partial(target, _fingerprint(plan, layout, files)) as partial:
        todo = [shard for shard in found.shards if not _is_done(partial, plan, shard, layout)]
        resumed = len(found.shards) - len(todo)
        size = sum(output.size for each in outputs.values() for output in each)
        rest = sum(output.size for shard in todo for output in outputs[shard.file])
        _check_room(partial, rest + _size_of(found.root, found.others))
        cutting = Cutting(partial, plan, layout, progress, size, size - rest, sync=sync)
        try:
            cutting.run(todo, jobs or JOBS)
            summary = summarize(plan)
            copy_others(found.root, found.others, partial.data)
            write_documents(partial.data, plan, summary, layout, files, outputs)
            partial.complete()
        except OSError as problem:
            raise _system(problem, partial, cutting) from None
    seconds = time.monotonic() - started
    return SliceReport(target, layout, summary, files, size, resumed, seconds)


def _outline(plan: Plan, shard: Shard, layout: Layout) -> tuple[Output, ...]:
    """The outputs, each with its header's digest in the header's place."""
    return tuple(
        replace(output, header=hashlib.sha256(output.header[8:]).digest())
        for output in lay_out(plan, shard, layout).outputs
    )


def _entry(output: Output) -> manifest.FileEntry:
    return manifest.FileEntry(output.file, output.rank, output.size, output.header.hex())


def _check_names(files: Iterable[manifest.FileEntry], others: Iterable[str]) -> None:
    taken = {*others, *checkpoints.WRITTEN, manifest.MANIFEST}
    for entry in files:
        if entry.file in taken:
            raise BadFile(f"two files of the result are named {entry.file}", "rename the shard")
        taken.add(entry.file)


def _check_tensors(outputs: Iterable[Output]) -> None:
    names: set[str] = set()
    for output in outputs:
        before = len(names)
        names.update(output.tensors)
        if len(names) - before != len(output.tensors):
            raise BadFile(
                f"{output.file} would hold a tensor of a name that the source has already",
                "the source has names of the form NAME.rankR.FIELD: it is cut already, or damaged",
            )


def _fingerprint(plan: Plan, layout: Layout, files: Iterable[manifest.FileEntry]) -> str:
    """What decides the result: the source as it stands, and what is made of it."""
    digest = hashlib.sha256(f"{manifest.SCHEMA} {layout} {plan.tp}\n".encode())
    for shard in plan.checkpoint.shards:
        changed = shard.path.stat().st_mtime_ns
        digest.update(f"{shard.file}\0{shard.size} {changed} {shard.header_sha256}\n".encode())
    for entry in files:
        digest.update(f"{entry.file}\0{entry.size} {entry.header_sha256}\n".encode())
    return digest.hexdigest()


def _is_done(partial: Partial, plan: Plan, shard: Shard, layout: Layout) -> bool:
    if not any(partial.data.iterdir()):
        return False
    outputs = lay_out(plan, shard, layout).outputs
    return all(partial.holds(each.file, each.size, each.header) for each in outputs)


def _check_room(partial: Partial, needed: int) -> None:
    free = partial.free()
    if free < needed + SPARE:
        raise PatchqError(
            f"{partial.target.parent} has {_gb(free)} free, {_gb(needed + SPARE)} are needed",
            "make room, or name a place on another disk",
        )


def _gb(nbytes: int) -> str:
    return f"{nbytes / 1e9:.1f} GB" if nbytes >= 1e8 else f"{nbytes / 1e6:.1f} MB"


def _size_of(root: Path, others: Iterable[str]) -> int:
    return sum((root / name).stat().st_size for name in others)


def _system(problem: OSError, partial: Partial, cutting: Cutting) -> PatchqError:
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return PatchqError(
            f"the disk is full after {_gb(cutting.done)} of {_gb(cutting.total)}",
            f"make room and run the same command again: it goes on there; or delete {partial.root}",
        )
    where = f" ({problem.filename})" if problem.filename else ""
    return PatchqError(
        f"the system refused: {problem.strerror or problem}{where}",
        f"mend that and run the same command again: it goes on there; or delete {partial.root}",
    )
