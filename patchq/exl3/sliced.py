"""A folder that holds a sliced checkpoint, or what one node copied of it, read from its headers.

Nothing of how it was made is trusted or used: which ranks there are and what each one holds is
taken from the tensors' names. Whatever is wrong is collected, not only the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patchq.errors import PatchqError
from patchq.exl3.checkpoint import CONFIG, INDEX, QUANTIZATION, SUFFIX, is_plain, read_json
from patchq.exl3.collector import aside
from patchq.exl3.headers import BadFile, read_shard
from patchq.exl3.layout import rank_of_file
from patchq.exl3.model import Checkpoint, Shard, Tensor
from patchq.exl3.modules import SLICED
from patchq.progress import SILENT, Progress


@dataclass(frozen=True)
class Sliced:
    """What a folder holds. `problems`: one sentence each, about files, headers and the index."""

    checkpoint: Checkpoint
    tp: int
    ranks: tuple[int, ...]
    """Whose tensors are here: in the layout `per-rank`, a node may have copied only its own."""
    views: Mapping[int, Checkpoint]
    """What each of these ranks reads, as a checkpoint of its own: `.rankR` is left out of the
    tensors' names."""
    problems: tuple[str, ...]


def split_name(name: str) -> tuple[str, int | None]:
    """A tensor's name without `.rankR`, and R; None: every rank reads it."""
    if ".rank" not in name:
        return name, None
    module, _, field = name.rpartition(".")
    found = SLICED.fullmatch(module)
    return (name, None) if found is None else (f"{found[1]}.{field}", int(found[2]))


@aside()
def read(root: Path, progress: Progress = SILENT) -> Sliced:
    """What `root` holds. Raises PatchqError if it is no folder, or nothing in it is sliced."""
    if not root.is_dir():
        raise PatchqError(f"{root} is no folder", "name the folder that `patchq slice run` made")
    problems: list[str] = []
    places = _places(root, problems)
    shards = _shards(root, places, problems, progress)
    tensors = _tensors(shards, places, problems)
    names = tensors.keys() | (places or {}).keys()
    numbers = {rank for name in names if (rank := split_name(name)[1]) is not None}
    if not numbers:
        if problems:
            raise BadFile(problems[0], "make it anew with `patchq slice run`")
        raise PatchqError(
            f"{root} holds no NAME.rankR.FIELD tensor: it is not sliced",
            "name the folder that `patchq slice run` made",
        )
    tp = max(numbers) + 1
    config, quantization = (_json(root / file, problems) for file in (CONFIG, QUANTIZATION))
    whole = Checkpoint(root, shards, tensors, config, quantization, places is not None, ())
    views = _views(whole)
    problems += [
        f"no tensor is for rank {rank} of {tp}" for rank in range(tp) if rank not in numbers
    ]
    return Sliced(whole, tp, tuple(sorted(views)), views, tuple(problems))


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
    files = {file for file in found.values() if isinstance(file, str)}
    shards = {file for file in files if is_plain(file) and file.endswith(SUFFIX)}
    bad = [name for name, file in found.items() if not isinstance(file, str) or file not in shards]
    for name in bad:
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
        for tensor in shard.tensors:
            known = tensors.setdefault(tensor.name, tensor)
            if known is not tensor:
                problems.append(f"{tensor.name} stands in {known.file} and in {shard.file}")
            rank, owner = split_name(tensor.name)[1], rank_of_file(shard.file)
            if owner is not None and rank != owner:
                problems.append(f"{shard.file} holds {tensor.name}, which is not of its rank")
    if places is None:
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


def _views(whole: Checkpoint) -> dict[int, Checkpoint]:
    common: dict[str, Tensor] = {}
    own: dict[int, dict[str, Tensor]] = {}
    for name, tensor in whole.tensors.items():
        plain, rank = split_name(name)
        held = common if rank is None else own.setdefault(rank, {})
        held[plain] = tensor._replace(name=plain)
    return {
        rank: Checkpoint(
            whole.root,
            whole.shards,
            {**common, **tensors},
            whole.config,
            whole.quantization,
            whole.index,
            (),
        )
        for rank, tensors in sorted(own.items())
    }
