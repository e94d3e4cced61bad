"""Where a layer is cut, and what that makes of each of its tensors: pure, no files.

Why only at multiples of 128: W = S H inner H T, with H block-diagonal in blocks of 128. A rank
that holds whole blocks of `inner`'s rows (or columns) and the scales beside them decodes to
exactly its rows (or columns) of W; a torn block decodes to something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from patchq.exl3.families import Rule, product
from patchq.exl3.families import number as config_number
from patchq.exl3.model import BLOCK, TILE, Cut, Module, Piece, Range, Tensor, target_name

CutRanges = tuple[tuple[Range, ...], ...]


class NoCut(Exception):
    """Why a layer cannot be cut so; `hint` is what serves instead."""

    def __init__(self, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.hint = hint


def cut(rule: Rule, k: int, n: int, tp: int, config: Mapping[str, Any], *, uneven: bool) -> Cut:
    """How a layer [k, n] is cut for `tp` ranks. Raises NoCut with the numbers."""
    if rule.split == "whole":
        return Cut("whole")
    size, axis = (n, "out_features") if rule.split == "column" else (k, "in_features")
    heads = config_number(config, rule.heads) if rule.heads else None
    ranges: list[list[Range]] = [[] for _ in range(tp)]
    start = 0
    for part, shared in _parts(rule, size, config, axis):
        copies = 1
        if shared and heads is not None and tp > heads and tp % heads == 0:
            copies = tp // heads
        bounds = _bounds(part, tp // copies, heads, axis, rule, uneven=uneven)
        for rank in range(tp):
            low, high = bounds[rank // copies], bounds[rank // copies + 1]
            ranges[rank].append((start + low, start + high))
        start += part
    return Cut(rule.split, tuple(map(tuple, ranges)))


def _parts(rule: Rule, size: int, config: Mapping[str, Any], axis: str) -> list[tuple[int, bool]]:
    """The sizes of what is fused, and whether ranks may share its heads."""
    if isinstance(rule.parts, int):
        if size % rule.parts:
            raise NoCut(f"its {size} {axis} are not {rule.parts} equal parts")
        return [(size // rule.parts, rule.shared)] * rule.parts
    sizes = [product(config, part) for part in rule.parts]
    if any(each is None for each in sizes):
        missing = rule.parts[sizes.index(None)]
        raise NoCut(f"config.json does not say {missing}, the size of one of its parts")
    known = [each for each in sizes if each is not None]
    if sum(known) != size:
        told = " + ".join(map(str, known))
        raise NoCut(f"it has {size} {axis}, config.json says {told} = {sum(known)}")
    return [
        (each, rule.shared and part.startswith(rule.heads))
        for each, part in zip(known, rule.parts, strict=True)
    ]


def _bounds(
    size: int, ranks: int, heads: int | None, axis: str, rule: Rule, *, uneven: bool
) -> list[int]:
    """`ranks` + 1 boundaries from 0 to `size`, each a multiple of 128."""
    if size % BLOCK:
        raise NoCut(f"its {size} {axis} are no multiple of {BLOCK}")
    blocks = size // BLOCK
    torn = heads is not None and tears(heads, ranks)
    if blocks % ranks == 0 and not (uneven and torn):
        return [size // ranks * rank for rank in range(ranks + 1)]
    why = (
        f"its {size} {axis} give {size / ranks:g} for each of {ranks} ranks, no multiple of {BLOCK}"
    )
    if not uneven:
        fits = [str(tp) for tp in range(2, 65) if blocks % tp == 0][:4]
        hint = f"--tp {' or '.join(fits)} would fit" if fits else ""
        if blocks >= ranks:
            hint += ("; " if hint else "") + "--uneven cuts at multiples of 128"
        raise NoCut(why, hint)
    if not rule.heads:
        unit, count = BLOCK, blocks
    elif heads is None:
        raise NoCut(f"{why}, and config.json does not say {rule.heads}, between which to cut")
    else:
        unit, count = size // heads, heads
        if size % heads or unit % BLOCK:
            raise NoCut(f"{why}, and its {heads} heads of {size / heads:g} tear such a block, too")
    if count < ranks:
        raise NoCut(f"{why}, and {count} units of {unit} leave a rank without any")
    least, more = divmod(count, ranks)
    bounds = [0]
    for rank in range(ranks):
        bounds.append(bounds[-1] + (least + (rank < more)) * unit)
    return bounds


def tears(heads: int, ranks: int) -> bool:
    """Whether equal shares for `ranks` go through the middle of a head."""
    return heads % ranks != 0 and ranks % heads != 0


class Pieces(Mapping[str, Piece]):
    """The pieces of a plan by the name of their tensor, made when asked for: there are many."""

    def __init__(self, modules: Mapping[str, Module], cuts: Mapping[str, Cut], tp: int) -> None:
        self._modules = modules
        self._cuts = cuts
        self._tp = tp
        self._shared = {
            module.fields[field].name: (field, module)
            for module in modules.values()
            for field in module.shared
        }

    def __getitem__(self, tensor: str) -> Piece:
        name, _, field = tensor.rpartition(".")
        module = self._modules.get(name)
        if module is None:
            field, module = self._shared[tensor]
        how = self._cuts[module.name]
        if how.split == "whole":
            raise KeyError(tensor)
        stacked = module.experts is not None and field not in module.shared
        return piece(name, field, module.fields[field], how, self._tp, stacked=stacked)

    def __iter__(self) -> Iterator[str]:
        for name, module in self._modules.items():
            if self._cuts[name].split != "whole":
                for field, tensor in module.fields.items():
                    if field not in module.shared:
                        yield tensor.name
        for name, (_, module) in self._shared.items():
            if self._cuts[module.name].split != "whole":
                yield name

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    def __len__(self) -> int:
        return sum(1 for _ in self)


# What is cut, and how many features one element along the axis stands for; the rest is copied.
_SLICED = {
    "column": {"trellis": (1, TILE), "svh": (0, 1), "sv": (0, TILE), "bias": (0, 1)},
    "row": {"trellis": (0, TILE), "suh": (0, 1), "su": (0, TILE)},
}


def piece(
    module: str, name: str, tensor: Tensor, how: Cut, tp: int, *, stacked: bool = False
) -> Piece:
    """What becomes of the field `name`; `stacked`: experts stand along an axis in front."""
    targets: tuple[str | None, ...] = tuple(target_name(module, r, name) for r in range(tp))
    if how.split == "row" and name == "bias":
        # Each rank adds its partial sum; the bias must be added once.
        return Piece(tensor, (targets[0], *[None] * (tp - 1)))
    found = _SLICED[how.split].get(name)
    if found is None:
        return Piece(tensor, targets)
    axis, step = found
    return Piece(tensor, targets, axis + stacked, how.scaled[step])
