"""`patchq slice` for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.table import Table

from patchq.render.console import text

if TYPE_CHECKING:
    from patchq.exl3.model import Cut
    from patchq.exl3.slice import SliceReport
    from patchq.exl3.summary import Summary
    from patchq.exl3.verify import Verified

SHOWN = 20
"""Refusals and problems that are written out; the rest is counted."""


def plan(summary: Summary) -> RenderableType:
    """What the checkpoint is, how it is cut, the bytes, what is refused."""
    parts: list[RenderableType] = [_facts(summary), text("")]
    if summary.groups:
        parts += [_groups(summary), text("")]
    parts += [text(f"Note: {warning}", "yellow") for warning in summary.warnings]
    if summary.refused:
        return Stack(*parts, *_refused(summary))
    return Stack(*parts, *_bytes(summary))


def _facts(summary: Summary) -> RenderableType:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(ratio=1)
    for name, told in _told(summary):
        table.add_row(name, text(told))
    return table


def _told(summary: Summary) -> list[tuple[str, str]]:
    files = "a single file" if summary.single_file else f"{summary.shards} shards"
    if summary.symlinks:
        files += " (symlinks: a Hugging Face snapshot)"
    found = [
        ("checkpoint", summary.root),
        ("files", f"{files}, {summary.tensors:,} tensors, {size(summary.bytes_source)}"),
        ("layers", str(summary.layers)),
    ]
    if summary.moe_layers:
        experts = " or ".join(map(str, summary.experts))
        count = len(summary.moe_layers)
        found.append(("routed", f"{count} layers with {experts} experts, {summary.routed} modules"))
    if summary.dense:
        found.append(("dense", f"{summary.dense} quantized modules outside of routed experts"))
    if len(summary.bits) > 1:
        mixed = ", ".join(f"{count} with {bits}" for bits, count in summary.bits)
        found.append(("bits", f"mixed, {summary.average_bits:.2f} on average: {mixed}"))
    elif summary.bits:
        found.append(("bits", str(summary.bits[0][0])))
    books = summary.codebooks
    named = [f"{name} ({count})" if len(books) > 1 else name for name, count in books]
    found.append(("codebook", ", ".join(named) or "none"))
    parts = (
        (summary.fused, "layers with fused experts"),
        (summary.shared_vectors, "shared Hadamard vectors"),
        (summary.packed_signs, "layers with packed signs"),
        (summary.biases, "layers with a bias"),
    )
    special = [f"{count} {what}" for count, what in parts if count]
    if special:
        found.append(("special", ", ".join(special)))
    rest = f"{summary.unquantized:,} tensors, {size(summary.unquantized_bytes)}"
    found.append(("unquantized", f"{rest}: every rank reads them as they are"))
    return found


def _groups(summary: Summary) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("layers", overflow="fold", ratio=3)
    for name in ("count", "in x out", "bits", "codebook", "cut"):
        table.add_column(name, no_wrap=True, justify="right" if name == "count" else "left")
    table.add_column("why", ratio=4, style="dim")
    for group in summary.groups:
        table.add_row(
            text(group.pattern),
            f"{group.count:,}",
            f"{group.k} x {group.n}",
            str(group.bits),
            group.codebook,
            text(cut(group.cut), "" if group.cut else "bold red"),
            text(group.why),
        )
    return table


def cut(value: Cut | None) -> str:
    """`column, 2 x 1024`; uneven shares one by one."""
    if value is None:
        return "refused"
    if value.split == "whole":
        return "whole"
    widths = [value.width(rank) for rank in range(len(value.ranges))]
    if len(set(widths)) == 1:
        return f"{value.split}, {len(widths)} x {widths[0]}"
    return f"{value.split}, {' + '.join(map(str, widths))}"


def _refused(summary: Summary) -> list[RenderableType]:
    parts: list[RenderableType] = [text("It cannot be cut so:", "bold red")]
    alike: dict[tuple[str, str], list[str]] = {}
    for refusal in summary.refused:
        alike.setdefault((refusal.why, refusal.hint), []).append(refusal.tensor)
    for (why, hint), tensors in list(alike.items())[:SHOWN]:
        where = f"{tensors[0]}: " if tensors[0] else ""
        more = f" [and {len(tensors) - 1:,} like it]" if len(tensors) > 1 else ""
        parts.append(text(f"  {where}{why}{more}"))
        if hint:
            parts.append(text(f"    {hint}", "dim"))
    if len(alike) > SHOWN:
        parts.append(text(f"  and {len(alike) - SHOWN:,} other reasons (--json lists them)"))
    return parts


def _bytes(summary: Summary) -> list[RenderableType]:
    told = [
        f"rank {rank} reads {size(summary.bytes_common + own)}"
        for rank, own in enumerate(summary.bytes_rank)
    ]
    common = f"{size(summary.bytes_common)} of that are the same for all"
    return [
        text(f"For {summary.tp} ranks: {size(summary.bytes_result)} in all.", "bold"),
        text(f"{', '.join(told)}; {common}."),
    ]


def run(report: SliceReport) -> RenderableType:
    summary = report.summary
    rate = report.nbytes / max(report.seconds, 1e-9)
    again = f" {report.resumed} shards were there from before." if report.resumed else ""
    next_ = f"patchq slice verify {report.target} --against {summary.root}"
    parts: list[RenderableType] = [
        text(f"Note: {warning}", "yellow") for warning in summary.warnings
    ]
    parts += [
        text(
            f"{report.target}: {len(report.files)} shards for {summary.tp} ranks,"
            f" {size(report.nbytes)} in {report.seconds:.1f} s ({size(rate)}/s).{again}",
            "bold",
        ),
        *_bytes(summary)[1:],
        text(f"Prove it with `{next_}`."),
    ]
    if report.layout == "per-rank":
        parts.append(
            text("A node needs everything but the other ranks' *.rankR.safetensors; see the docs.")
        )
    return Stack(*parts)


def verify(found: Verified) -> RenderableType:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for check in found.checks:
        mark = text("ok", "green") if check.ok else text("FAILED", "bold red")
        table.add_row(mark, text(check.name), text(check.says, "dim" if check.ok else ""))
        for problem in check.problems[:SHOWN]:
            table.add_row("", "", text(problem, "red"))
        if len(check.problems) > SHOWN:
            table.add_row("", "", text(f"and {len(check.problems) - SHOWN:,} more", "red"))
    parts: list[RenderableType] = [table]
    parts += [
        text(f"rank {rank}  sha256:{digest}") for rank, digest in sorted(found.digests.items())
    ]
    ranks = ", ".join(map(str, found.ranks))
    verdict = "is sound" if found.ok else "is not sound"
    source = f" and is {found.against}, bit for bit" if found.ok and found.against else ""
    parts.append(
        text(
            f"{found.root} {verdict}{source}: rank {ranks} of {found.tp},"
            f" {size(found.bytes_read)} read, {found.weights_decoded:,} weights decoded.",
            "bold" if found.ok else "bold red",
        )
    )
    return Stack(*parts)


def size(nbytes: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= factor:
            return f"{nbytes / factor:.1f} {unit}"
    return f"{nbytes:.0f} B"
