"""What `patchq build` made, for people and as JSON (docs/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patchq.paths import lossless, show

if TYPE_CHECKING:
    from rich.console import RenderableType

    from patchq.build.run import BuildReport


def as_json(report: BuildReport) -> dict[str, Any]:
    built = report.built
    return {
        "schema": "patchq.build-run/1",
        "target": report.target,
        "queue": report.wanted.series,
        "base": report.wanted.release,
        "tree": report.wanted.tree,
        "version": built.version,
        "source": {"name": report.source.filename, "sha256": report.source.sha256},
        "file": str(built.path) if report.record else None,
        "sha256": built.sha256,
        "size": built.size,
        "record": str(report.record) if report.record else None,
        "same": report.same,
        "laid": sorted(map(lossless, built.overlay.laid)),
        "removed": sorted(map(lossless, built.overlay.removed)),
        "apart": sorted(map(lossless, built.overlay.apart)),
        "unlisted": sorted(map(lossless, built.overlay.unlisted)),
        "beyond": list(built.beyond),
        "differing": list(built.differing),
    }


def drawn(report: BuildReport) -> RenderableType:
    from rich.console import Group

    from patchq.render.console import text

    built, laid = report.built, report.built.overlay
    over = show(report.source.filename)
    lines = [
        f"{built.path.name}",
        f"  {built.size / 1e6:.1f} MB, sha256 {built.sha256}",
        f"  over {over}: {len(laid.laid)} files laid, {len(laid.removed)} removed",
    ]
    if laid.apart:
        lines.append(f"  in no wheel: {len(laid.apart)} files (tests, documentation)")
    if laid.unlisted:
        names = ", ".join(map(show, laid.unlisted))
        lines.append(f"  left out, package_data does not name them: {names}")
    if built.beyond:
        lines.append(f"  beyond the source: {_some(built.beyond)}")
    if built.differing:
        lines.append(f"  not as in the source, kept: {_some(built.differing)}")
    if report.same is not None:
        lines.append("  the same bytes" if report.same else "  NOT the same bytes")
    elif report.record:
        lines.append(f"  {built.path.parent}")
    return Group(*map(text, lines))


def _some(names: tuple[str, ...]) -> str:
    told = ", ".join(map(show, names[:6]))
    return told if len(names) <= 6 else f"{told} and {len(names) - 6} more"
