"""What publishing, counting and withdrawing releases came to: for people, as JSON, for notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patchq.release.publishing import Step
from patchq.release.withdraw import advice, sentence
from patchq.render.console import text
from patchq.render.markdown import plain
from patchq.render.slices import size

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from patchq.release.publish import PublishReport
    from patchq.release.stats import ReleaseStats, StatsReport
    from patchq.release.withdraw import Withdrawal
    from patchq.release.withdrawing import WithdrawReport

_DOES = {
    "create": ("made a draft", "would make a draft"),
    "edit": ("corrected the draft", "would correct the draft"),
    "remove-draft": ("removed a draft", "would remove a draft"),
    "remove-asset": ("removed", "would remove"),
    "upload": ("sent", "would send"),
    "await": ("waited for", "would wait for"),
    "publish": ("published", "would publish"),
}


def published_json(report: PublishReport) -> dict[str, Any]:
    found = report.release
    return {
        "schema": "patchq.release-publish/1",
        "number": report.number,
        "repo": report.repo,
        "dry_run": report.dry_run,
        "published": found is not None,
        "page": found.page if found else None,
        "immutable": found.immutable if found else None,
        "files": report.files,
        "bytes": report.size,
        "steps": [
            {"do": each.do, "what": each.what, "why": each.why or None, "bytes": each.size}
            for each in report.steps
        ],
    }


def published(report: PublishReport) -> RenderableType:
    from rich.console import Group

    parts: list[RenderableType] = [text(_told(each, report.dry_run)) for each in report.steps]
    what = f"release {report.number} ({report.files} files, {size(report.size)})"
    found = report.release
    if found is None:
        parts.append(text(f"{what} is not at {report.repo} yet; nothing was changed (--dry-run)"))
        return Group(*parts)
    already = "" if report.steps and not report.dry_run else " already"
    locked = ", immutable" if found.immutable else ""
    parts.append(text(f"{what} is published{already}{locked}: {found.page}", "bold"))
    return Group(*parts)


def _told(step: Step, dry_run: bool) -> str:
    bytes_ = f", {size(step.size)}" if step.size else ""
    why = f" ({step.why})" if step.why else ""
    return f"  {_DOES[step.do][dry_run]} {step.what}{bytes_}{why}"


def counted_json(report: StatsReport) -> dict[str, Any]:
    return {
        "schema": "patchq.release-stats/1",
        "repo": report.repo,
        "as_of": report.as_of.isoformat(timespec="seconds"),
        "releases": [
            {
                "number": each.number,
                "published": each.published,
                "page": each.page or None,
                "withdrawn": each.withdrawn,
                "downloads": each.downloads,
                "files": [vars(file) for file in each.files],
            }
            for each in report.releases
        ],
    }


def counted(report: StatsReport) -> RenderableType:
    """Of one release its files; of several a line each."""
    from rich.console import Group

    if not report.releases:
        return text(f"no release is published at {report.repo}")
    alone = report.releases[0] if len(report.releases) == 1 else None
    parts = [_files(alone)] if alone else [_lines(report)]
    when = f"as of {report.as_of:%Y-%m-%d %H:%M} UTC"
    return Group(*parts, text(f"Downloads of {report.repo}, {when}."))


def _files(found: ReleaseStats) -> RenderableType:
    table = _table(("file", "size", "downloads"))
    for each in found.files:
        table.add_row(text(each.name), size(each.size), str(each.downloads))
    name = f"release {found.number}{' (withdrawn)' if found.withdrawn else ''}"
    table.add_row(name, size(sum(each.size for each in found.files)), str(found.downloads))
    return table


def _lines(report: StatsReport) -> RenderableType:
    table = _table(("release", "published", "files", "downloads"))
    for each in report.releases:
        name = f"{each.number}{' (withdrawn)' if each.withdrawn else ''}"
        when = text((each.published or "")[:10])
        table.add_row(name, when, str(len(each.files)), str(each.downloads))
    return table


def _table(heads: tuple[str, ...]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in heads:
        number = head in ("size", "files", "downloads")
        table.add_column(head, no_wrap=True, justify="right" if number else "left")
    return table


def withdrawn_json(report: WithdrawReport) -> dict[str, Any]:
    value = report.withdrawal
    return {
        "schema": "patchq.release-withdraw/1",
        "number": value.release,
        "why": value.why,
        "date": value.date,
        "last_good": value.last_good,
        "repo": report.repo,
        "page": report.page or None,
        "dry_run": report.dry_run,
        "steps": list(report.steps),
        "notes": list(report.notes),
        "commit": report.commit,
    }


def withdrawn(report: WithdrawReport) -> RenderableType:
    from rich.console import Group

    value = report.withdrawal
    would = "would be: " if report.dry_run else ""
    parts = [text(f"  {would}{each}") for each in report.steps]
    parts += [text(f"  {each}", "yellow") for each in report.notes]
    done = "nothing was changed (--dry-run)" if report.dry_run else advice(value)
    parts.append(text(f"{sentence(value)}; {done}", "bold"))
    if report.steps and not report.dry_run and report.commit is None:
        parts.append(text("Commit releases/withdrawn.toml and push it."))
    return Group(*parts)


def banner(value: Withdrawal) -> str:
    """What stands above the notes of a withdrawn release, in Markdown."""
    good = value.last_good
    instead = (
        f"Install release {good} instead, or go back to it: `patchq rollback`."
        if good is not None
        else "There is no release before it that is good: wait for the next one."
    )
    return (
        "> [!CAUTION]\n"
        f"> **Withdrawn on {value.date[:10]}: do not install this release.** {plain(value.why)}\n"
        f">\n> {instead}\n"
    )
