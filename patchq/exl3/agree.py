"""Whether a sliced checkpoint agrees with itself, and with its source: pure, from headers.

Each function returns what is wrong, one sentence for each, nothing if all is well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from patchq.exl3 import cuts, manifest
from patchq.exl3.headers import BadFile
from patchq.exl3.model import BLOCK, FIELDS, Checkpoint, Cut, Module, Piece, Plan, Tensor
from patchq.exl3.modules import Found
from patchq.exl3.plan import pattern
from patchq.exl3.sliced import Sliced
from patchq.exl3.summary import summarize

LISTED = "rank_sliced_modules"
METADATA = "rank_sliced"
_OURS = "layout"


@dataclass(frozen=True)
class Listed:
    """A cut layer as quantization_config.json lists it, by the source's sizes."""

    k: int
    n: int
    bits: int
    codebook: str
    experts: int | None
    cut: Cut


def listed(quantization: Mapping[str, Any]) -> dict[str, Listed]:
    """Every cut layer that is listed. Raises ValueError if that is no such list.

    Every boundary is a multiple of 128, and together the ranks hold all of a layer.
    """
    found = {}
    groups = quantization.get(LISTED, [])
    if not isinstance(groups, list):
        msg = f"{LISTED} is no list"
        raise ValueError(msg)
    for group in groups:
        try:
            cut = Cut(
                group["split"],
                tuple(tuple((low, high) for low, high in each) for each in group["ranges"]),
            )
            entry = Listed(
                group["in_features"],
                group["out_features"],
                group["bits"],
                group["codebook"],
                group["stacked_experts"],
                cut,
            )
            problem = _uncovered(entry)
            names = {str(name): entry for name in group["modules"]}
        except (KeyError, TypeError, ValueError):
            msg = f"{LISTED} has an entry that is none"
            raise ValueError(msg) from None
        if problem:
            msg = f"{LISTED}, {next(iter(names), 'an entry without modules')}: {problem}"
            raise ValueError(msg)
        found.update(names)
    return found


def _uncovered(entry: Listed) -> str:
    if entry.cut.split == "whole":
        return ""
    size = {"column": entry.n, "row": entry.k}[entry.cut.split]
    at = 0
    for low, high in sorted({span for each in entry.cut.ranges for span in each}):
        if low % BLOCK or high % BLOCK:
            return f"it is cut at {low} to {high}, not at multiples of {BLOCK}"
        if not 0 <= low < high <= size:
            return f"a rank has {low} to {high} of its {size} features"
        if low > at:
            break
        at = max(at, high)
    return "" if at == size else f"no rank has its features from {at} on"


def layers(sliced: Sliced, found: Mapping[int, Found], known: Mapping[str, Listed]) -> list[str]:
    """Each rank's layers are whole, well-formed, the same on all ranks, and as listed."""
    problems = [
        f"rank {rank}: {refusal.tensor or 'its layers'}: {refusal.why}"
        for rank, each in found.items()
        for refusal in each.refused
    ]
    if problems:
        return problems
    names = sorted(known.keys() | {name for each in found.values() for name in each.modules})
    fine: set[tuple[Any, ...]] = set()
    for rank, each in found.items():
        for name in names:
            module, entry = each.modules.get(name), known.get(name)
            form = module and (module.k, module.n, module.bits, module.codebook, module.experts)
            if (likeness := (rank, id(entry), form)) in fine:
                continue
            if module is None:
                problems.append(f"rank {rank} has nothing of {name}")
            elif entry is None:
                if known:
                    problems.append(f"{name} is not listed in {LISTED}")
            elif entry.cut.split != "whole" and len(entry.cut.ranges) != sliced.tp:
                problems.append(
                    f"{name} is listed with {len(entry.cut.ranges)} ranks, there are {sliced.tp}"
                )
            elif unlike := list(_unlike(rank, module, entry)):
                problems += unlike
            else:
                fine.add(likeness)
    return [*problems, *_differing(found)]


def _unlike(rank: int, module: Module, entry: Listed) -> Iterator[str]:
    wanted: dict[str, Any] = {"in": entry.k, "out": entry.n}
    if entry.cut.split != "whole":
        wanted["out" if entry.cut.split == "column" else "in"] = entry.cut.width(rank)
    wanted |= {"bits": entry.bits, "codebook": entry.codebook, "experts": entry.experts}
    have = {
        "in": module.k,
        "out": module.n,
        "bits": module.bits,
        "codebook": module.codebook,
        "experts": module.experts,
    }
    for what, value in have.items():
        if value != wanted[what]:
            yield (f"rank {rank}: {module.name} has {what} {value}, {LISTED} says {wanted[what]}")


def _differing(found: Mapping[int, Found]) -> Iterator[str]:
    """Bits, codebook and fields of a layer are the same on all ranks (but for the bias)."""
    (first, reference), *others = found.items()
    for rank, each in others:
        for name, module in each.modules.items() if each is not reference else ():
            other = reference.modules.get(name)
            if other is None:
                continue
            for what, one, two in (
                ("bits", other.bits, module.bits),
                ("codebook", other.codebook, module.codebook),
                ("fields", _kinds(other), _kinds(module)),
            ):
                if one != two:
                    yield f"{name} has {what} {one} on rank {first}, {two} on rank {rank}"


def _kinds(module: Module) -> str:
    return ", ".join(sorted(module.fields.keys() - {"bias"}))


def files(sliced: Sliced, found: Found, known: Mapping[str, Listed]) -> list[str]:
    """The manifest, config.json and quantization_config.json say what the shards hold."""
    whole = sliced.checkpoint
    embedded = whole.config.get("quantization_config")
    inside = embedded.get(METADATA) if isinstance(embedded, dict) else None
    metadata = whole.quantization.get(METADATA)
    problems = []
    if not isinstance(metadata, dict):
        return [f"quantization_config.json has no {METADATA}"]
    if metadata.get("tp") != sliced.tp:
        problems.append(
            f"quantization_config.json says {metadata.get('tp')} ranks, there are {sliced.tp}"
        )
    if inside is not None and inside != metadata:
        problems.append(f"config.json and quantization_config.json differ in {METADATA}")
    tail = whole.config.get("hybrid_tr3_tail")
    if _OURS not in metadata:
        return problems
    if tail is not None and tail != metadata:
        problems.append(f"hybrid_tr3_tail in config.json is not {METADATA}")
    if inside is None:
        problems.append(f"config.json has no {METADATA} in its quantization_config")
    if LISTED not in whole.quantization:
        problems.append(f"quantization_config.json has no {LISTED}")
    elif not problems:
        problems += _metadata(sliced, found, known, metadata)
    problems += _manifest(sliced, metadata)
    return problems


def _metadata(
    sliced: Sliced, found: Found, known: Mapping[str, Listed], metadata: Mapping[str, Any]
) -> Iterator[str]:
    """What is said of bits, codebook, experts and layers is what a rank's tensors say."""
    modules = {
        name: module.sized(known[name].k, known[name].n) for name, module in found.modules.items()
    }
    view = sliced.views[sliced.ranks[0]]
    forms = {name: pattern(name) for name in modules}
    uneven = metadata.get("uneven") is True
    plan = Plan(view, sliced.tp, uneven, modules, {}, {}, {}, forms=forms)
    wanted = manifest.rank_metadata(plan, summarize(plan), metadata["layout"])
    for key in sorted(wanted.keys() | metadata.keys()):
        if metadata.get(key) != wanted.get(key):
            yield (
                f"{METADATA} says {key} {metadata.get(key)!r:.80}, the tensors say"
                f" {wanted.get(key)!r:.80}"
            )


def _manifest(sliced: Sliced, metadata: Mapping[str, Any]) -> Iterator[str]:
    try:
        told = manifest.read(sliced.checkpoint.root)
    except BadFile as problem:
        yield problem.message
        return
    for key, value in metadata.items():
        if told.raw.get(key) != value:
            yield f"{manifest.MANIFEST} says {key} {told.raw.get(key)!r:.80}, not {value!r:.80}"
    entries = {entry.file: entry for entry in told.files}
    here = {shard.file: shard for shard in sliced.checkpoint.shards}
    for file, shard in here.items():
        entry = entries.get(file)
        if entry is None:
            yield f"{file} is not in {manifest.MANIFEST}"
        elif (entry.size, entry.header_sha256) != (shard.size, shard.header_sha256):
            yield f"{file} is not the file that {manifest.MANIFEST} names: size or header differ"
    for file, entry in entries.items():
        if file not in here and (entry.rank is None or entry.rank in sliced.ranks):
            yield f"{file} is in {manifest.MANIFEST} but not in the folder"


def same_layers(source: Found, own: Mapping[str, Module], known: Mapping[str, Listed]) -> list[str]:
    """Source and result have the same layers, in the source of the sizes that are listed."""
    problems = [f"the source: {each.tensor or 'its layers'}: {each.why}" for each in source.refused]
    for name in sorted(source.modules.keys() | own.keys()):
        module = source.modules.get(name)
        if module is None or name not in own:
            where = "the source" if name not in own else "the result"
            problems.append(f"{name} is in {where} only")
        elif name in known and (module.k, module.n) != (known[name].k, known[name].n):
            problems.append(
                f"{name} is {module.k} x {module.n} in the source, {LISTED} says"
                f" {known[name].k} x {known[name].n}"
            )
    return problems


def pieces(modules: Mapping[str, Module], made: Mapping[str, Cut], tp: int) -> dict[str, Piece]:
    """What becomes of each tensor of the source that is cut, or copied for each rank."""
    found = {}
    for name, module in modules.items():
        if made[name].split == "whole":
            continue
        for field, tensor in module.fields.items():
            assert field in FIELDS
            stacked = module.experts is not None and field not in module.shared
            owner = tensor.name.rpartition(".")[0]
            found[tensor.name] = cuts.piece(owner, field, tensor, made[name], tp, stacked=stacked)
    return found


def names(source: Checkpoint, found: Mapping[str, Piece], sliced: Sliced) -> list[str]:
    """The result has the tensors that the source gives, with their dtypes and shapes, no other."""
    wanted: dict[str, tuple[str, tuple[int, ...], str]] = {}
    for name, tensor in source.tensors.items():
        piece = found.get(name)
        if piece is None:
            wanted[name] = (tensor.dtype, tensor.shape, name)
            continue
        for rank in sliced.ranks:
            target = piece.targets[rank]
            if target is not None:
                wanted[target] = (tensor.dtype, piece.shape(rank), name)
    have: Mapping[str, Tensor] = sliced.checkpoint.tensors
    problems = []
    for name, (dtype, shape, origin) in wanted.items():
        own = have.get(name)
        if own is None:
            problems.append(f"{name} is missing; the source has {origin}")
        elif (own.dtype, own.shape) != (dtype, shape):
            problems.append(
                f"{name} is {own.dtype} {list(own.shape)}, the source's {origin} gives"
                f" {dtype} {list(shape)}"
            )
    problems += [
        f"{name} is left over: the source has no such tensor" for name in have.keys() - wanted
    ]
    return problems


def others(source: Checkpoint, sliced: Sliced) -> list[str]:
    """The other files of the source are there, too. They may differ: a template is often mended."""
    root = sliced.checkpoint.root
    return [
        f"{name} is missing; the source has it"
        for name in source.others
        if not (root / name).is_file()
    ]
