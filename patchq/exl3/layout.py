"""Which files the result has and which bytes of the source go where: pure, from a plan.

`shared`: a shard for each shard of the source, with the slices of all ranks in the place of the
tensor that they were cut from. `per-rank`: what is cut goes to `STEM.rankR.safetensors`, what is
not stays in the shard of its old name; a node needs that and its own rank's files. Tensors have
the same names in both, and follow each other as in the source, which is read and written once,
from front to back.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from patchq.exl3.checkpoint import SUFFIX
from patchq.exl3.headers import render
from patchq.exl3.model import Piece, Plan, Shard, Tensor

Layout = Literal["shared", "per-rank"]
LAYOUTS: tuple[Layout, ...] = ("shared", "per-rank")


@dataclass(frozen=True)
class Span:
    """`length` bytes from `source` (an offset in the shard) to `target` of output `output`."""

    source: int
    length: int
    output: int
    target: int


@dataclass(frozen=True)
class Strided:
    """`rows` rows of `row` bytes from `source` on, of which each target takes some columns.

    `targets` lists (output, offset, columns), `columns` the [start, stop) in bytes of each row,
    laid one behind the other.
    """

    source: int
    rows: int
    row: int
    targets: tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...]


Job = Span | Strided


@dataclass(frozen=True)
class Output:
    """A file of the result: `header` (with its length in front), then the data."""

    file: str
    rank: int | None
    """Whose it is; None: every rank reads it."""
    header: bytes
    size: int
    tensors: tuple[str, ...]


@dataclass(frozen=True)
class ShardJob:
    """What is made of one shard of the source."""

    shard: Shard
    outputs: tuple[Output, ...]
    jobs: tuple[Job, ...]

    @property
    def nbytes(self) -> int:
        return sum(output.size for output in self.outputs)


def file_name(file: str, rank: int | None) -> str:
    """The shard of one rank in the layout `per-rank`."""
    return file if rank is None else f"{file.removesuffix(SUFFIX)}.rank{rank}{SUFFIX}"


def rank_of_file(file: str) -> int | None:
    """The rank that a shard of the layout `per-rank` belongs to; None: every rank reads it."""
    _, dot, rank = file.removesuffix(SUFFIX).rpartition(".rank")
    return int(rank) if dot and rank.isdecimal() and rank.isascii() else None


class _Building:
    """An output whose tensors are still being collected."""

    def __init__(self, file: str, rank: int | None) -> None:
        self.file = file
        self.rank = rank
        self.entries: list[tuple[str, str, tuple[int, ...], int]] = []
        self.place = 0

    def add(self, name: str, dtype: str, shape: tuple[int, ...], nbytes: int) -> int:
        self.entries.append((name, dtype, shape, nbytes))
        place = self.place
        self.place += nbytes
        return place


def lay_out(plan: Plan, shard: Shard, layout: Layout) -> ShardJob:
    """The outputs of one shard and the copies that fill them."""
    common = _Building(shard.file, None)
    if layout == "shared":
        building = [common]
        ranked = [0] * plan.tp
    else:
        building = [common]
        building += [_Building(file_name(shard.file, rank), rank) for rank in range(plan.tp)]
        ranked = list(range(1, plan.tp + 1))
    jobs: list[Job] = []
    for tensor in shard.tensors:
        piece = plan.pieces.get(tensor.name)
        if piece is None:
            place = common.add(tensor.name, tensor.dtype, tensor.shape, tensor.nbytes)
            _append(jobs, Span(tensor.start, tensor.nbytes, 0, place))
            continue
        places = []
        for rank, target in enumerate(piece.targets):
            if target is not None:
                place = building[ranked[rank]].add(
                    target, tensor.dtype, piece.shape(rank), piece.nbytes(rank)
                )
                places.append((rank, ranked[rank], place))
        jobs += _copies(piece, tensor, places)
    return _finish(shard, building, jobs)


def _append(jobs: list[Job], span: Span) -> None:
    """Add `span`, as part of the one before where it goes on there on both sides."""
    last = jobs[-1] if jobs else None
    if (
        isinstance(last, Span)
        and last.output == span.output
        and last.source + last.length == span.source
        and last.target + last.length == span.target
    ):
        jobs[-1] = Span(last.source, last.length + span.length, last.output, last.target)
    else:
        jobs.append(span)


def _copies(piece: Piece, tensor: Tensor, places: list[tuple[int, int, int]]) -> list[Job]:
    if piece.axis is None:
        return [Span(tensor.start, tensor.nbytes, output, place) for _, output, place in places]
    rows = prod(tensor.shape[: piece.axis])
    row = tensor.nbytes // rows
    unit = row // tensor.shape[piece.axis]
    columns = [
        tuple((start * unit, stop * unit) for start, stop in ranges) for ranges in piece.ranges
    ]
    if rows > 1:
        targets = tuple((output, place, columns[rank]) for rank, output, place in places)
        return [Strided(tensor.start, rows, row, targets)]
    spans: list[Job] = []
    for rank, output, place in places:
        for start, stop in columns[rank]:
            spans.append(Span(tensor.start + start, stop - start, output, place))
            place += stop - start  # noqa: PLW2901
    return spans


def _finish(shard: Shard, building: list[_Building], jobs: list[Job]) -> ShardJob:
    """Leave out what stayed empty; make the offsets absolute."""
    kept: dict[int, int] = {}
    outputs: list[Output] = []
    starts = {}
    for number, each in enumerate(building):
        if not each.entries and (number or len(building) > 1):
            continue
        header = render(dict(shard.metadata), each.entries)
        kept[number] = len(outputs)
        starts[number] = len(header)
        outputs.append(
            Output(
                each.file,
                each.rank,
                header,
                len(header) + each.place,
                tuple(name for name, *_ in each.entries),
            )
        )

    def moved(job: Job) -> Job:
        if isinstance(job, Span):
            target = starts[job.output] + job.target
            return Span(job.source, job.length, kept[job.output], target)
        targets = tuple(
            (kept[output], starts[output] + place, columns)
            for output, place, columns in job.targets
        )
        return Strided(job.source, job.rows, job.row, targets)

    return ShardJob(shard, tuple(outputs), tuple(map(moved, jobs)))
