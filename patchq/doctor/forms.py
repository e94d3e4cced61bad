"""What a checkpoint is, from its headers and JSON files alone: cut or not, of which layers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from patchq.exl3 import agree, checkpoint, modules, plan, sliced
from patchq.exl3.collector import aside
from patchq.exl3.headers import read_shard
from patchq.exl3.layout import rank_of_file
from patchq.exl3.model import Checkpoint, Refusal
from patchq.progress import SILENT, Progress

Layout = Literal["plain", "shared", "per-rank"]
EXL3 = "exl3"
_RANKED = re.compile(rb"\.rank[0-9]{1,4}\.[a-z0-9]+\"")


@dataclass(frozen=True)
class Form:
    """A checkpoint as its headers have it. `modules` are those of one rank.

    `ranks`: for how many it is cut (1: it is not), `here`: whose tensors are in the folder.
    `problems`: a sentence for each thing that is wrong with its tensors or between its files.
    """

    whole: Checkpoint
    layout: Layout
    ranks: int
    here: tuple[int, ...]
    found: modules.Found
    problems: tuple[str, ...]
    codebooks: Mapping[str, int] = field(default_factory=dict)
    """How many layers have each."""
    bits: Mapping[int, int] = field(default_factory=dict)

    @property
    def is_exl3(self) -> bool:
        """Whether it has such layers, or says that it has."""
        method = self.whole.quantization.get("quant_method")
        return bool(self.found.modules) or method == EXL3

    @property
    def nbytes(self) -> int:
        return sum(shard.size for shard in self.whole.shards)

    @property
    def special(self) -> dict[str, str]:
        """What not every loader reads, by patchq-capabilities.json's names, each in words."""
        layers = self.found.modules.values()
        told = {}
        if any({"su", "sv"} & module.fields.keys() for module in layers):
            told["signs"] = "scales as packed signs"
        if any(module.experts is not None for module in layers):
            told["stacked"] = "experts that are stacked in one tensor"
        cut = self.whole.quantization.get(agree.METADATA)
        if isinstance(cut, dict) and cut.get("uneven") is True:
            told["uneven"] = "ranks whose shares differ in size"
        return told

    def example(self, *, codebook: str = "", bits: int = 0) -> str:
        """The name of a layer with this codebook, or of so many bits."""
        return next(
            module.name
            for module in self.found.modules.values()
            if codebook in ("", module.codebook) and bits in (0, module.bits)
        )


@aside()
def read(root: Path, progress: Progress = SILENT) -> Form:
    """Raises BadFile where a file is damaged, PatchqError where there is no checkpoint."""
    return _cut(root, progress) if names(root, _RANKED) else _plain(root, progress)


def names(root: Path, wanted: re.Pattern[bytes]) -> bool:
    """Whether a tensor's name (in quotes) matches: by the index, else by its one file.

    A quick look at what is read with care elsewhere. Raises BadFile where that fails.
    """
    index = root / checkpoint.INDEX
    if index.is_file():
        return wanted.search(checkpoint.json_bytes(index)) is not None
    file = root / "model.safetensors" if root.is_dir() else root
    if not file.is_file():
        return False
    tensors = read_shard(file.parent, file.name).tensors
    return any(wanted.search(f'"{tensor.name}"'.encode()) for tensor in tensors)


def _plain(root: Path, progress: Progress) -> Form:
    whole = checkpoint.read(root, progress)
    found = modules.find(whole)
    refused = [*found.refused, *plan.storage(whole, found.modules)]
    return _form(whole, "plain", 1, (0,), found, map(_sentence, refused))


def _cut(root: Path, progress: Progress) -> Form:
    cut = sliced.read(root, progress)
    whole = cut.checkpoint
    layout: Layout = "shared"
    if any(rank_of_file(shard.file) is not None for shard in whole.shards):
        layout = "per-rank"
    first = modules.find(cut.views[cut.ranks[0]])
    found = {
        # Layers are made of names, dtypes and shapes: what is alike is not put together again.
        rank: first if cut.views.alike(rank, cut.ranks[0]) else modules.find(cut.views[rank])
        for rank in cut.ranks
    }
    problems = list(cut.problems)
    try:
        known = agree.listed(whole.quantization)
    except ValueError as problem:
        known = {}
        problems.append(f"{checkpoint.QUANTIZATION}: {problem}")
    problems = problems or agree.layers(cut, found, known) or agree.files(cut, first, known)
    return _form(whole, layout, cut.tp, cut.ranks, first, problems)


def _form(
    whole: Checkpoint,
    layout: Layout,
    ranks: int,
    here: tuple[int, ...],
    found: modules.Found,
    problems: Iterable[str],
) -> Form:
    each = found.modules.values()
    return Form(
        whole,
        layout,
        ranks,
        here,
        found,
        tuple(problems),
        dict(sorted(Counter(module.codebook for module in each).items())),
        dict(sorted(Counter(module.bits for module in each).items())),
    )


def _sentence(refusal: Refusal) -> str:
    return f"{refusal.tensor}: {refusal.why}" if refusal.tensor else refusal.why
