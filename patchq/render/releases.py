"""What `patchq release cut`, `verify`, `list`, `show` and `diff` found, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from patchq.paths import show
from patchq.render.console import diff as coloured
from patchq.render.console import lines, text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from patchq.release.bundle import Check
    from patchq.release.cut import CutReport
    from patchq.release.history import Listed, PatchDiff, ReleaseDiff
    from patchq.release.manifest import Asset, Figure
    from patchq.release.verify import VerifyReport

_STYLES = {"new": "green", "changed": "cyan", "dropped": "red"}


def checks(found: Iterable[Check]) -> list[Text]:
    """A line for each; in red what does not hold."""
    return [
        text(
            f"  {'ok ' if each.ok else 'NOT'} {each.name}: {each.detail}", "" if each.ok else "red"
        )
        for each in found
    ]


def cut(report: CutReport) -> RenderableType:
    from rich.console import Group

    parts: list[RenderableType] = [*checks(report.checks)]
    release = report.manifest
    if release is None:
        parts.append(text(f"release {report.number} is not cut", "bold red"))
        return Group(*parts)
    parts += [
        text(f"  {each.state}: {each.name}, {each.title}")
        for each in release.patches
        if each.state != "carried"
    ]
    parts += [text(f"  dropped: {each.name}, {each.why}") for each in release.dropped]
    if report.dry_run:
        parts.append(text(f"release {report.number} would be cut, on {release.base.release}"))
        return Group(*parts)
    parts.append(text(f"{report.folder}: {len(release.assets)} files, {_size(release.assets)}"))
    parts.append(
        text(
            f"release {report.number} is cut: commit {str(report.commit)[:12]}, tag {report.tag};"
            " `patchq undo` takes it back until it is published"
        )
    )
    return Group(*parts)


def verified(report: VerifyReport) -> RenderableType:
    from rich.console import Group

    name = f"release {report.number}" if report.number is not None else "what is there"
    told = f"{name} holds" if report.ok else f"{name} does not hold: do not use it"
    style = "bold green" if report.ok else "bold red"
    return Group(*checks(report.checks), text(f"{report.what}: {told}", style))


def listed(found: Sequence[Listed]) -> RenderableType:
    from rich.table import Table

    if not found:
        return text("no release was cut yet; `patchq release cut` makes the first")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in ("release", "date", "base", "patches", "bundle", "tag", ""):
        table.add_column(head, no_wrap=True)
    for each in found:
        release = each.manifest
        table.add_row(
            str(release.number),
            release.date[:10],
            text(release.base.release),
            str(len(release.patches)),
            _size(release.assets) if each.here else "not here",
            (each.tag or "")[:12] or text("missing", "red"),
            text(f"withdrawn: {each.withdrawn}", "red") if each.withdrawn else "",
        )
    return table


def shown(found: Listed, notes: str) -> Text:
    """The notes as they are written, then the files."""
    from rich.text import Text

    files = [
        f"{each.sha256[:12]}  {each.size:>14,}  {each.name}{_in_parts(each)}\n"
        for each in found.manifest.assets
    ]
    if found.withdrawn:
        notes = f"WITHDRAWN: {show(found.withdrawn)}\n\n{notes}"
    return Text(f"{lines(notes)}\nFiles:\n\n" + "".join(files))


def _in_parts(asset: Asset) -> str:
    return f" ({len(asset.parts)} parts)" if asset.parts else ""


def _size(assets: Iterable[Asset]) -> str:
    total = sum(each.size for each in assets)
    return f"{total / 1e6:.1f} MB" if total < 1e9 else f"{total / 1e9:.2f} GB"


def compared(found: ReleaseDiff) -> RenderableType:
    from rich.console import Group

    old, new = found.base
    parts: list[RenderableType] = [
        text(f"release {found.a} -> {found.b}", "bold"),
        text(f"  base {old.release}" + (f" -> {new.release}" if new != old else ", the same")),
        text(f"  {found.carried} patches are the same"),
    ]
    for each in found.patches:
        parts.append(text(_patch(each), _STYLES[each.kind]))
        if each.range_diff:
            parts.append(coloured(each.range_diff, 6))
    parts += [
        text(f"  {change.key}: {change.was or 'none'} -> {change.now or 'none'}")
        for change in found.dependencies
    ]
    parts += [text(_bench(*pair)) for pair in found.bench]
    parts += [text(note, "yellow") for note in found.notes]
    return Group(*parts)


def _patch(each: PatchDiff) -> str:
    told = f"  {each.kind}: {each.name}, {each.title}"
    if each.kind == "dropped" and each.why:
        told += f" ({each.why})"
    if each.kind == "changed" and each.range_diff == "":
        told += " (in its place only)"
    return told


def _bench(was: Figure | None, now: Figure | None) -> str:
    either = now or was
    assert either is not None
    told = f"  {either.kind}, {either.context} tokens, {either.concurrency} at once"
    told += ", cached" if either.warm else ""
    for metric, unit in (("decode", "tok/s"), ("wall", "s wall")):
        pair = [getattr(each, metric) if each else None for each in (was, now)]
        if any(value is not None for value in pair):
            old, new = ("-" if value is None else f"{value:.4g}" for value in pair)
            told += f": {old} -> {new} {unit}" if metric == "decode" else f"; {old} -> {new} {unit}"
    return told
