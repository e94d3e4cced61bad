"""A folder that holds a sliced checkpoint, or what one node copied of it, read from its headers.

Nothing of how it was made is trusted or used: which ranks there are and what each one holds is
taken from the tensors' names. Whatever is wrong is collected, not only the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import eq, itemgetter
from pathlib import Path

from patchq.errors import PatchqError
from patchq.exl3.checkpoint import CONFIG, INDEX, QUANTIZATION, SUFFIX, is_plain, read_json
from patchq.exl3.collector import aside
from patchq.exl3.headers import BadFile, read_shard
from patchq.exl3.layout import rank_of_file
from patchq.exl3.model import Checkpoint, Shard, Tensor
from patchq.progress import SILENT, Progress


@dataclass(frozen=True)
class Sliced:
    """What a folder holds. `problems`: one sentence each, about files, headers and the index."""

    checkpoint: Checkpoint
    tp: int
    ranks: tuple[int, ...]
    """Whose tensors are here: in the layout `per-rank`, a node may have copied only its own."""
    views: Views
    """What each of these ranks reads, as a checkpoint of its own: `.rankR` is left out of the
    tensors' names."""
    problems: tuple[str, ...]


def split_name(name: str) -> tuple[str, int | None]:
    """A tensor's name without `.rankR`, and R; None: every rank reads it."""
    front, mark, end = name.rpartition(".rank")
    field, rank = _end(end) if front and mark else ("", None)
    return (name, None) if rank is None else (front + field, rank)


@lru_cache
def _end(end: str) -> tuple[str, int | None]:
    """What follows `.rank`, taken apart: `.FIELD` and R; None: it means no rank."""
    number, dot, field = end.partition(".")
    is_number = number.isascii() and number.isdecimal() and len(number) <= 4
    return (dot + field, int(number)) if dot and is_number and "." not in field else ("", None)


@aside()
def read(root: Path, progress: Progress = SILENT) -> Sliced:
    """What `root` holds. Raises PatchqError if it is no folder, or nothing in it is sliced."""
    if not root.is_dir():
        raise PatchqError(f"{root} is no folder", "name the folder that `patchq slice run` made")
    problems: list[str] = []
    places = _places(root, problems)
    shards = _shards(root, places, problems, progress)
    tensors = _tensors(shards, places, problems)
    common, own = _by_rank(tensors)
    # Of ranks whose files are not here, the index alone knows.
    absent = () if places is None else places.keys() - tensors.keys()
    told = {rank for name in absent if (rank := split_name(name)[1]) is not None}
    if not own:
        if told and not problems:
            problems.append(f"of the {max(told) + 1} ranks that {INDEX} names none is here")
        if problems:
            raise BadFile(problems[0], "make it anew with `patchq slice run`")
        raise PatchqError(
            f"{root} holds no NAME.rankR.FIELD tensor: it is not sliced",
            "name the folder that `patchq slice run` made",
        )
    numbers = own.keys() | told
    tp = max(numbers) + 1
    config, quantization = (_json(root / file, problems) for file in (CONFIG, QUANTIZATION))
    whole = Checkpoint(root, shards, tensors, config, quantization, places is not None, ())
    views = Views(whole, common, own)
    problems += [
        f"no tensor is for rank {rank} of {tp}" for rank in range(tp) if rank not in numbers
    ]
    return Sliced(whole, tp, tuple(views), views, tuple(problems))


def _by_rank(
    tensors: Mapping[str, Tensor],
) -> tuple[dict[str, Tensor], dict[int, dict[str, Tensor]]]:
    """What every rank reads, and what each has of its own, by the names without `.rankR`."""
    common: dict[str, Tensor] = {}
    own: defaultdict[int, dict[str, Tensor]] = defaultdict(dict)
    # As split_name does: half a million rounds for a large checkpoint.
    for name, tensor in tensors.items():
        front, mark, end = name.rpartition(".rank")
        field, rank = _end(end) if front and mark else ("", None)
        if rank is None:
            common[name] = tensor
        else:
            own[rank][front + field] = tensor
    return common, dict(own)


def _json(path: Path, problems: list[str]) -> Mapping[str, object]:
    if not path.exists():
        return {}
    try:
        return read_json(path)
    except BadFile as problem:
        problems.append(problem.message)
        return {}


def _places(root: Path, problems: list[str]) -> dict[str, str] | None:
    """The file of each tensor, as the index says; None if there is no index."""
    if not (root / INDEX).exists():
        return None
    found = _json(root / INDEX, problems).get("weight_map")
    if not isinstance(found, dict) or not found:
        problems.append(f"{INDEX} has no weight_map")
        return None
    files = {file if isinstance(file, str) else "" for file in found.values()}
    shards = {file for file in files if is_plain(file) and file.endswith(SUFFIX)}
    bad = [name for name, file in found.items() if not isinstance(file, str) or file not in shards]
    for name in bad if files != shards else ():
        file = found.pop(name)
        problems.append(f"{INDEX} places {name} in {file!r:.80}, which is no shard in the folder")
    return found


def _shards(
    root: Path, places: dict[str, str] | None, problems: list[str], progress: Progress
) -> tuple[Shard, ...]:
    """Headers of all shards that are there. Files of ranks that are not here are not missed."""
    there = {
        path.name
        for path in root.iterdir()
        if path.name.endswith(SUFFIX) and not path.name.startswith(".")
    }
    listed = set(places.values()) if places is not None else there
    here = {rank_of_file(file) for file in listed & there}
    problems += [
        f"{file} is missing"
        for file in sorted(listed - there)
        if (rank := rank_of_file(file)) is None or rank in here
    ]
    problems += [f"{file} is not in {INDEX}" for file in sorted(there - listed)]
    shards = []
    files = sorted(listed & there)
    for done, file in enumerate(files, 1):
        try:
            shards.append(read_shard(root, file))
        except BadFile as problem:
            problems.append(problem.message)
        progress.step("reading headers", done, len(files), "shards")
    return tuple(shards)


def _tensors(
    shards: tuple[Shard, ...], places: dict[str, str] | None, problems: list[str]
) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for shard in shards:
        owner = rank_of_file(shard.file)
        more = dict(zip(map(itemgetter(0), shard.tensors), shard.tensors, strict=True))
        problems += [
            f"{shard.file} holds {name}, which is not of its rank" for name in _foreign(more, owner)
        ]
        if tensors.keys().isdisjoint(more):
            tensors |= more
            continue
        for tensor in shard.tensors:
            known = tensors.setdefault(tensor.name, tensor)
            if known is not tensor:
                problems.append(f"{tensor.name} stands in {known.file} and in {shard.file}")
    stored = zip(tensors, map(itemgetter(3), tensors.values()), strict=True)
    if places is None or places == dict(stored):
        return tensors
    files = {shard.file for shard in shards}
    for name, file in places.items():
        tensor_here = tensors.get(name)
        if tensor_here is None and file in files:
            problems.append(f"{INDEX} places {name} in {file}, which does not hold it")
        elif tensor_here is not None and tensor_here.file != file:
            problems.append(f"{INDEX} places {name} in {file}, but it is in {tensor_here.file}")
    problems += [
        f"{tensor.file} holds {name}, which {INDEX} does not know"
        for name, tensor in tensors.items()
        if name not in places
    ]
    return tensors


def _foreign(names: Iterable[str], owner: int | None) -> list[str]:
    """Those that are of another rank than the file's; half a million names are looked at."""
    if owner is None:
        return []
    mark = f".rank{owner}."
    odd = [name for name in names if mark not in name or name.find(mark) != name.find(".rank")]
    return [name for name in odd if split_name(name)[1] != owner]


class Views(Mapping[int, Checkpoint]):
    """Each rank's checkpoint, put together when it is asked for: a large one takes its time."""

    def __init__(
        self, whole: Checkpoint, common: dict[str, Tensor], own: dict[int, dict[str, Tensor]]
    ) -> None:
        self._whole = whole
        self._common = common
        self._own = own
        self._made: dict[int, Checkpoint] = {}

    def __getitem__(self, rank: int) -> Checkpoint:
        if rank not in self._made:
            make, whole = tuple.__new__, self._whole
            own = {name: make(Tensor, (name, *each[1:])) for name, each in self._own[rank].items()}
            self._made[rank] = replace(whole, tensors={**self._common, **own}, others=())
        return self._made[rank]

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._own))

    def __len__(self) -> int:
        return len(self._own)

    def alike(self, rank: int, other: int) -> bool:
        """Whether both have tensors of the same names, dtypes and shapes."""
        one, two = self._own[rank], self._own[other]
        likeness = itemgetter(1, 2)
        return rank == other or (
            one.keys() == two.keys()
            and all(map(eq, map(likeness, one.values()), map(likeness, map(two.__getitem__, one))))
        )
