"""What `patchq lock` found and wrote, for people and as JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from patchq.paths import show
from patchq.render.builds import change

if TYPE_CHECKING:
    from rich.console import RenderableType

    from patchq.build.lockfacts import LockReport
    from patchq.build.requirements_lock import Requirements


def as_json(report: LockReport, made: Sequence[Requirements] = ()) -> dict[str, Any]:
    return {
        "schema": "patchq.lock-run/1",
        "queue": report.queue,
        "digest": report.lock.digest,
        "facts": dict(report.lock.facts),
        "differing": [vars(each) for each in report.differing],
        "notes": list(report.notes),
        "requirements": [
            {
                "target": each.target,
                "packages": each.count,
                "rewritten": [vars(change) for change in each.rewritten],
                "left_out": list(each.left_out),
            }
            for each in made
        ],
        "present": report.present,
        "checked": report.checked,
        "entry": report.entry,
    }


def drawn(report: LockReport, made: Sequence[Requirements] = ()) -> RenderableType:
    from rich.console import Group

    from patchq.render.console import text

    lines = [report.lock.digest]
    for each in made:
        lines.append(f"  requirements.{each.target}.lock: {each.count} packages")
        lines += [f"    {change(one)}" for one in each.rewritten]
        if each.left_out:
            lines.append(f"    built here, so not among them: {', '.join(each.left_out)}")
    if report.present:
        lines += [
            f"  {each.key}: {_short(each.was)} -> {_short(each.now)}" for each in report.differing
        ]
    lines += [f"  {note}" for note in report.notes]
    if report.entry is not None:
        lines.append("  upstream/runner.lock is written; `patchq undo` takes it back")
    elif not report.present:
        lines.append("  there is no upstream/runner.lock: `patchq lock` writes it")
    elif report.differing:
        lines.append("  upstream/runner.lock is of other inputs: `patchq lock` writes it anew")
    else:
        lines.append("  upstream/runner.lock is of these inputs")
    return Group(*(text(show(line)) for line in lines))


def _short(value: str | None) -> str:
    if value is None:
        return "none"
    return f"{value[:12]}..." if len(value) in (40, 64) else value
