"""The checkpoint: is it whole, do its files agree, can this runner read it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from patchq.doctor.capabilities import FILE, NOT_ASKED, Capabilities, Loader
from patchq.doctor.forms import EXL3, Form, read
from patchq.doctor.model import Check, of_error
from patchq.exl3.checkpoint import CONFIG, INDEX, QUANTIZATION
from patchq.exl3.families import load
from patchq.exl3.headers import AGAIN, BadFile
from patchq.exl3.model import BLOCK
from patchq.exl3.plan import plan
from patchq.progress import SILENT, Progress

NAME = "checkpoint"
CONFIGURATION = "configuration"
PARALLEL = "tensor parallel"
LOADER = "loader"
_SAME = ("quant_method", "bits", "head_bits", "codebook", "version")


def check(
    root: Path,
    loader: Callable[[], Loader] = lambda: NOT_ASKED,
    tp: int | None = None,
    progress: Progress = SILENT,
) -> tuple[Check, ...]:
    """The checkpoint in `root` against the loader of a runner, for `tp` ranks (None: not said).

    `loader` is asked only where the checkpoint is EXL3.
    Headers and JSON files are read, no tensor. Raises PatchqError where there is no checkpoint.
    """
    try:
        form = read(root, progress)
    except BadFile as problem:
        return (of_error(NAME, problem),)
    broken = (*_whole(root, form), *_configuration(form))
    if not form.is_exl3:
        return broken or (
            Check(
                NAME,
                "note",
                f"{_size(form)}, not EXL3: whether the runner takes its format is not looked at",
            ),
        )
    parallel = tuple(_parallel(root, form, tp))
    fits = (*parallel, *_loader(form, loader(), tp, "" if parallel else str(root)))
    fatal = any(each.state == "fatal" for each in broken)
    told = () if fatal else (Check(NAME, "ok", f"{_about(form)}; {_size(form)}"),)
    return (*told, *broken, *fits)


def _about(form: Form) -> str:
    books = "/".join(form.codebooks)
    bits = "/".join(map(str, form.bits))
    cut = "not cut"
    if form.layout != "plain":
        here = ", ".join(map(str, form.here))
        whose = "" if len(form.here) == form.ranks else f", rank {here} here"
        cut = f"cut for {form.ranks} ranks ({form.layout}{whose})"
    return f"EXL3, {books}, {bits} bits, {cut}"


def _size(form: Form) -> str:
    shards = len(form.whole.shards)
    size = f"{form.nbytes / 1e9:.1f} GB" if form.nbytes >= 1e8 else f"{form.nbytes / 1e6:.1f} MB"
    return f"{shards} {'shard' if shards == 1 else 'shards'}, {size}"


def _whole(root: Path, form: Form) -> Iterator[Check]:
    """What is wrong with the tensors, or between the files that name them."""
    if not form.problems or not form.is_exl3:
        return
    first, *others = form.problems
    more = f" (and {len(others)} more like it)" if others else ""
    remedy = AGAIN
    if form.layout != "plain":
        remedy = (
            f"cut it anew; `patchq slice verify {shlex.quote(str(root))}` says all that is wrong"
        )
    yield Check(NAME, "fatal", f"{first}{more}", remedy=remedy)


def _configuration(form: Form) -> Iterator[Check]:
    config, quantization = form.whole.config, form.whole.quantization
    if not config:
        yield Check(
            CONFIGURATION,
            "fatal",
            f"there is no {CONFIG}",
            "the runner takes the model's architecture from it",
            AGAIN,
        )
        return
    inside = config.get("quantization_config")
    if inside is not None and not isinstance(inside, dict):
        yield Check(
            CONFIGURATION, "fatal", f"quantization_config in {CONFIG} is no object", remedy=AGAIN
        )
        return
    if form.is_exl3:
        yield from _quantization(form, inside or {}, quantization)
    if not form.whole.index and len(form.whole.shards) > 1:
        yield Check(CONFIGURATION, "warning", f"there is no {INDEX}", remedy=AGAIN)


def _quantization(
    form: Form, inside: Mapping[str, Any], beside: Mapping[str, Any]
) -> Iterator[Check]:
    """What both files say of the quantization, against each other and the tensors."""
    method = inside.get("quant_method")
    if method != EXL3:
        told = f"says quant_method {method!r:.40}" if method is not None else "has no quant_method"
        yield Check(
            CONFIGURATION,
            "fatal",
            f"quantization_config in {CONFIG} {told}, and the layers are EXL3",
            "the runner chooses its loader by it",
            f'set quant_method to "exl3" in {CONFIG}, or download the checkpoint again',
        )
    for key in _SAME:
        one, other = inside.get(key), beside.get(key)
        if one != other and one is not None and other is not None:
            yield Check(
                CONFIGURATION,
                "fatal",
                f"{CONFIG} says {key} {one!r:.40}, {QUANTIZATION} {other!r:.40}",
                "one of them is of another checkpoint",
                AGAIN,
            )
    codebook = beside.get("codebook")
    if isinstance(codebook, str) and form.codebooks and codebook not in form.codebooks:
        books = ", ".join(form.codebooks)
        yield Check(
            CONFIGURATION,
            "warning",
            f"the configuration says codebook {codebook!r:.40}, the tensors {books}",
            "the tensors decide; what goes by the configuration goes wrong",
            AGAIN,
        )


def _parallel(root: Path, form: Form, tp: int | None) -> Iterator[Check]:
    """Whether the tensors are there for `tp` ranks, or could be made for them."""
    if tp is None or tp == form.ranks:
        return
    if form.layout != "plain":
        yield Check(
            PARALLEL,
            "fatal",
            f"it is cut for {form.ranks} ranks, tensor parallel is {tp}",
            f"each rank reads NAME.rankR of its own R, and there are {form.ranks}",
            f"serve with tensor parallel {form.ranks}, or cut the checkpoint that it was cut from:"
            f" patchq slice run SRC DST --tp {tp}",
        )
        return
    if form.problems:
        return
    planned = plan(form.whole, tp, load(), found=form.found)
    if planned.refused:
        first, *others = planned.refused
        more = f" (and {len(others)} more)" if others else ""
        where = f"{first.tensor}: " if first.tensor else ""
        yield Check(
            PARALLEL,
            "fatal",
            f"it cannot be cut for {tp} ranks: {where}{first.why}{more}",
            f"a cut inside a block of {BLOCK} does not decode",
            first.hint or f"patchq slice plan {shlex.quote(str(root))} --tp {tp}",
        )


def _loader(form: Form, loader: Loader, tp: int | None, root: str) -> Iterator[Check]:
    if not isinstance(loader, Capabilities):
        yield Check(
            LOADER, "unknown", "whether the runner reads it is not known", loader.why, loader.remedy
        )
        return
    missing = list(_unread(form, loader, tp, root))
    yield from missing
    if missing:
        return
    if form.ranks > 1 or tp == 1:
        ranks = f"tensor parallel {form.ranks}"
        yield Check(LOADER, "ok", f"{loader.where} reads it, with {ranks}")
    else:
        yield Check(
            LOADER,
            "note",
            f"{loader.where} reads it with one rank only, for it is not cut",
            remedy="--tp N says for how many ranks it is meant",
        )


def _unread(form: Form, loader: Capabilities, tp: int | None, root: str) -> Iterator[Check]:
    """What the loader does not take of the checkpoint."""
    says = f"the loader of {loader.where}"
    for book in sorted(form.codebooks.keys() - loader.codebooks):
        yield Check(
            LOADER,
            "fatal",
            f"{says} does not read codebook {book}, which {form.codebooks[book]} layers have",
            f"{form.example(codebook=book)} is one; it reads {_list(loader.codebooks)}",
            "take a checkpoint with another codebook, or a runner that reads this one",
        )
    for bits in sorted(form.bits.keys() - loader.bits):
        yield Check(
            LOADER,
            "fatal",
            f"{says} does not read {bits} bits, which {form.bits[bits]} layers have",
            f"{form.example(bits=bits)} is one; it reads {_list(loader.bits)}",
            "take a checkpoint with other bits, or a runner that reads these",
        )
    for kind, words in form.special.items():
        if loader.forms is None:
            why = f"{FILE} has no forms, by which it would say so"
            yield Check(LOADER, "unknown", f"whether {says} reads {words} is not known", why)
        elif kind not in loader.forms:
            yield Check(LOADER, "fatal", f"{says} does not read {words}")
    if form.layout == "plain":
        yield from _unread_plain(loader, says, tp, root)
    elif form.layout not in loader.layouts:
        yield Check(
            LOADER,
            "fatal",
            f"{says} does not read the layout {form.layout}",
            f"it reads {_list(loader.layouts)}",
            _slicing(loader, form.ranks) or "take a runner that reads it",
        )
    elif form.ranks not in loader.ranks:
        yield _unserved(loader, says, form.ranks)


def _unread_plain(loader: Capabilities, says: str, tp: int | None, root: str) -> Iterator[Check]:
    """The failure that two days of building led to: not cut, and the loader wants slices."""
    if "plain" in loader.layouts and (tp or 1) == 1:
        return
    if tp and tp > 1 and tp not in loader.ranks:
        yield _unserved(loader, says, tp)
        return
    ranks = tp if tp and tp > 1 else min((each for each in loader.ranks if each > 1), default=2)
    if "plain" in loader.layouts:
        wanted = f"with tensor parallel {tp} {says} reads only what is cut for {tp} ranks"
    else:
        wanted = f"{says} reads only what is cut for its ranks"
    yield Check(
        LOADER,
        "fatal",
        f"the checkpoint is not cut (rank-sliced), and {wanted}",
        f"no tensor is called NAME.rankR.FIELD; the loader reads {_list(loader.layouts)}",
        _slicing(loader, ranks, root) or "take a runner whose loader reads it",
    )


def _unserved(loader: Capabilities, says: str, ranks: int) -> Check:
    return Check(
        LOADER,
        "fatal",
        f"{says} does not serve {ranks} ranks",
        f"it serves {_list(loader.ranks)}",
        "take one of these, and a checkpoint that is cut for it",
    )


def _slicing(loader: Capabilities, ranks: int, root: str = "SRC") -> str:
    """The command that gives what the loader reads; empty where none does."""
    layout = next((each for each in ("shared", "per-rank") if each in loader.layouts), "")
    if not layout or not root:
        return ""
    option = "" if layout == "shared" else f" --layout {layout}"
    target = "DST" if root == "SRC" else shlex.quote(f"{root.rstrip('/')}-tp{ranks}")
    return f"patchq slice run {shlex.quote(root)} {target} --tp {ranks}{option}"


def _list(values: frozenset[str] | frozenset[int]) -> str:
    return ", ".join(map(str, sorted(values))) or "none"
