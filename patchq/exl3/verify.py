"""`patchq slice verify`: that a sliced checkpoint is its source, for every rank, on its own.

Without the source: headers, index, config and manifest agree, every rank's layers are whole and as
they are listed, markers and scales are right, what all ranks hold alike is alike, blocks decode.
With the source, also: no tensor is missing or left over, the slices give back the source bit for
bit, and what a rank holds decodes on its own to the very weights of the source in its range.

Each byte is read once, in the order of the files, by as many threads as it takes to keep up with
the disk; memory is 8 MB for each.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeVar

from patchq.exl3 import agree, checkpoint, modules, proof, reading, sliced
from patchq.exl3.agree import Listed
from patchq.exl3.collector import aside
from patchq.exl3.compare import Reader, Stored
from patchq.exl3.families import Families, load
from patchq.exl3.model import Checkpoint, Cut, Module, Piece
from patchq.exl3.plan import plan
from patchq.progress import SILENT, Progress

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Check:
    """One thing that was checked. `problems`: a sentence for each thing that is wrong."""

    name: str
    says: str
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


@dataclass(frozen=True)
class Verified:
    """What `patchq slice verify` found. A check that could not be made is not in `checks`."""

    root: Path
    against: Path | None
    full: bool
    tp: int
    ranks: tuple[int, ...]
    """Whose tensors are in the folder."""
    checks: tuple[Check, ...]
    digests: Mapping[int, str] = field(default_factory=dict)
    """By rank: SHA-256 over name, dtype, shape and SHA-256 of each tensor that it reads, by name.
    The same on every node, in both layouts and for every number of shards; empty if the tensors
    were not read because something was wrong before."""
    tensors: int = 0
    bytes_read: int = 0
    weights_decoded: int = 0
    """By the ranks; the source's are not counted again."""

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)


def verify(
    root: Path,
    against: Path | None = None,
    *,
    full: bool = False,
    families: Families | None = None,
    threads: int = 0,
    progress: Progress = SILENT,
) -> Verified:
    """Verify the sliced checkpoint in `root`, and that it is the one in `against`, cut.

    `full` decodes every weight, not only blocks of some layers: slow, some 20 million a second
    for each processor. `families` is asked only for results that do not list their cuts, which
    are not patchq's. `threads` 0: as many as there are processors, up to 8.

    Raises PatchqError if `root` is no sliced checkpoint, or `against` no sound one; whatever is
    wrong with a sliced one is in the result.
    """
    found = sliced.read(root, progress)
    source = None if against is None else checkpoint.read(against, progress)
    run = _Run(found, source, families, full, threads or min(8, os.cpu_count() or 1), progress)
    run.structure()
    if all(check.ok for check in run.checks):
        with ExitStack() as stack:
            run.contents(
                stack.enter_context(Reader(root)),
                None if source is None else stack.enter_context(Reader(source.root)),
            )
    return Verified(
        root,
        against,
        full,
        found.tp,
        found.ranks,
        tuple(run.checks),
        run.digests,
        len(found.checkpoint.tensors),
        run.bytes_read,
        run.weights,
    )


class _Run:
    """One verification: what is known so far."""

    def __init__(
        self,
        found: sliced.Sliced,
        source: Checkpoint | None,
        families: Families | None,
        full: bool,
        threads: int,
        progress: Progress,
    ) -> None:
        self.checks: list[Check] = []
        self.digests: dict[int, str] = {}
        self.bytes_read = 0
        self.weights = 0
        self._sliced = found
        self._source = source
        self._families = families
        self._full = full
        self._threads = threads
        self._progress = progress
        self._own: dict[int, Mapping[str, Module]] = {}
        self._modules: Mapping[str, Module] = {}
        self._cuts: Mapping[str, Cut] = {}
        self._pieces: Mapping[str, Piece] = {}

    def _check(self, name: str, says: str, problems: Iterable[str]) -> None:
        self.checks.append(Check(name, says, tuple(problems)))

    # From headers alone.

    @aside()
    def structure(self) -> None:
        whole = self._sliced.checkpoint
        self._check(
            "headers", f"{len(whole.shards)} shards, headers and index", self._sliced.problems
        )
        found = {rank: modules.find(view) for rank, view in self._sliced.views.items()}
        self._own = {rank: each.modules for rank, each in found.items()}
        known: Mapping[str, Listed] = {}
        problems: list[str] = []
        try:
            known = agree.listed(whole.quantization)
        except ValueError as problem:
            problems.append(f"quantization_config.json: {problem}")
        problems += agree.layers(self._sliced, found, known)
        count = len(self._own[self._sliced.ranks[0]])
        self._check("layers", f"{count} layers on each of {len(found)} ranks", problems)
        if not problems:
            first = found[self._sliced.ranks[0]]
            self._check(
                "config",
                "config, quantization config and manifest agree with the tensors",
                agree.files(self._sliced, first, known),
            )
            self._against_source(known)

    def _against_source(self, known: Mapping[str, Listed]) -> None:
        source = self._source
        self._cuts = {name: entry.cut for name, entry in known.items()}
        if source is None:
            return
        found = modules.find(source)
        self._modules = found.modules
        problems = agree.same_layers(found, self._own[self._sliced.ranks[0]], known)
        if not problems and not known:
            planned = plan(source, self._sliced.tp, self._families or load())
            problems += [f"{refusal.tensor}: {refusal.why}" for refusal in planned.refused]
            self._cuts = planned.cuts
        if not problems:
            self._pieces = agree.pieces(self._modules, self._cuts, self._sliced.tp)
            problems += agree.names(source, self._pieces, self._sliced)
            problems += agree.others(source, self._sliced)
        self._check("complete", f"all that {len(source.tensors)} tensors give, no more", problems)

    # From the tensors.

    def contents(self, own: Reader, source: Reader | None) -> None:
        both = [self._sliced.checkpoint, *([] if self._source is None else [self._source])]
        total = sum(tensor.nbytes for each in both for tensor in each.tensors.values())
        what = "reading" if source is None else "comparing"

        def tell() -> None:
            read = own.bytes_read + (0 if source is None else source.bytes_read)
            self._progress.step(what, min(read, total), total, "B")

        digests: dict[str, bytes] = {}
        different: list[str] = []
        wrong: list[str] = []
        for result in self._map(reading.read, reading.batches(self._jobs(own, source)), tell):
            digests |= result.digests
            different += result.different
            wrong += result.wrong
        self._check("values", "markers and scales", wrong)
        if source is None:
            different += reading.unlike(self._own, self._cuts, digests)
            self._check("copies", "what all ranks hold alike is alike", different)
        else:
            self._check("bytes", "the slices give back the source, bit for bit", different)
        self.digests = reading.rank_digests(self._sliced, digests)
        self.bytes_read = own.bytes_read + (0 if source is None else source.bytes_read)
        if not wrong:
            self._decode(own, source)

    def _jobs(self, own: Reader, source: Reader | None) -> Iterator[reading.Job]:
        here = self._sliced.checkpoint.tensors
        if self._source is None or source is None:
            for shard in self._sliced.checkpoint.shards:
                for tensor in shard.tensors:
                    yield reading.Job((Stored(own, tensor),))
            return
        for shard in self._source.shards:
            for tensor in shard.tensors:
                piece = self._pieces.get(tensor.name, Piece(tensor, (tensor.name,)))
                slices = tuple(
                    Stored(own, here[name]) if name is not None and name in here else None
                    for name in piece.targets
                )
                yield reading.Job(slices, Stored(source, tensor), piece.axis, piece.ranges)

    def _decode(self, own: Reader, source: Reader | None) -> None:
        first = self._own[self._sliced.ranks[0]]
        chosen = list(first) if self._full else proof.sample(first)
        done = 0

        def tell() -> None:
            self._progress.step("decoding", done, len(chosen), "layers")

        def prove(name: str) -> tuple[int, list[str]]:
            return self._prove(name, own, source)

        problems: list[str] = []
        for weights, each in self._map(prove, chosen, tell):
            self.weights += weights
            problems += each
            done += 1
        how = "every block" if self._full else f"blocks of {len(chosen)} layers"
        wanted = "to finite numbers" if source is None else "to the source's weights"
        self._check("decode", f"{how} on each rank, on its own, {wanted}", problems)

    def _prove(self, name: str, own: Reader, source: Reader | None) -> tuple[int, list[str]]:
        theirs = None if source is None else proof.layer(name, self._modules[name], source)
        weights, problems = 0, []
        for rank in self._sliced.ranks:
            local = self._own[rank][name]
            mine = proof.layer(f"{name}.rank{rank}", local, own)
            whole, cut = local, Cut("whole")
            if theirs is not None:
                whole, cut = self._modules[name], self._cuts[name]
            for place in (proof.every if self._full else proof.some)(whole, cut, rank):
                weights += place.weights
                problem = proof.problem(mine, theirs, place)
                if problem:
                    problems.append(problem)
                    break
        return weights, problems

    def _map(
        self, work: Callable[[_Given], _Made], given: Iterable[_Given], tell: Callable[[], None]
    ) -> Iterator[_Made]:
        """In threads, a few ahead; results in the order of what is given."""
        pool = ThreadPoolExecutor(self._threads)
        waiting: deque[Future[_Made]] = deque()
        rest = iter(given)
        try:
            while True:
                waiting += [
                    pool.submit(work, each)
                    for each in islice(rest, 4 * self._threads - len(waiting))
                ]
                if not waiting:
                    return
                while not wait([waiting[0]], 0.2).done:
                    tell()
                yield waiting.popleft().result()
                tell()
        finally:
            pool.shutdown(cancel_futures=True)
