"""`patchq sync`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchq.cli.complete import patch_names
from patchq.cli.options import DryRun, Json, Offline, QueueName
from patchq.errors import UsageError

if TYPE_CHECKING:
    from patchq.carry.report import SyncReport
    from patchq.carry.resume import Ongoing
    from patchq.config import Project
    from patchq.progress import Progress


def command(
    onto: Annotated[
        str, typer.Option("--onto", metavar="RELEASE", help="A version, tag, commit, or latest.")
    ] = "latest",
    dry_run: DryRun = False,
    go_on: Annotated[
        bool, typer.Option("--continue", help="Take what the session's tree says, and go on.")
    ] = False,
    abort: Annotated[
        bool, typer.Option("--abort", help="End the session; the queue stays as it is.")
    ] = False,
    skip: Annotated[
        str | None,
        typer.Option(
            "--skip",
            metavar="NAME",
            help="Hold the patch back, and go on.",
            autocompletion=patch_names,
        ),
    ] = None,
    offline: Offline = False,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Ask for releases even if it was just asked.")
    ] = False,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE", help="Write the report as Markdown too."),
    ] = None,
    commit: Annotated[
        bool, typer.Option("--commit", help="Commit series/ and upstream/ with the report.")
    ] = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Carry the series onto a release of upstream, prove the result, and record it.

    Nothing is written unless every patch has an answer and the proof holds. What has none opens a
    session: a working tree with the conflict, and what to type. Exit status: 0 done, 4 a decision
    is needed, 5 the proof failed, 6 upstream was not reached.

    patchq sync

    patchq sync --onto 0.30.0 --dry-run

    patchq sync --continue
    """
    chosen = [go_on, abort, skip is not None]
    if sum(chosen) > 1 or (any(chosen) and (dry_run or onto != "latest")):
        raise UsageError(
            "--continue, --abort and --skip go with no other of them, --onto or --dry-run",
            "give one of them alone",
        )
    if abort:
        return _abort(queue, json)
    from patchq.render.progress import Bar

    with Bar() as bar:
        if go_on:
            report = _in_session("sync --continue", queue, offline, commit, bar, _go_on)
        elif skip is not None:
            name = skip
            report = _in_session(
                "sync --skip", queue, offline, commit, bar, lambda work: _skip(work, name)
            )
        else:
            report = _sync(onto, queue, dry_run, offline, refresh, commit, bar)
    if markdown is not None:
        from patchq.render.markdown import sync as as_markdown

        markdown.write_text(as_markdown(report), encoding="utf-8", errors="surrogateescape")
    _give(report, json, commit)
    return report.exit_code


def _sync(
    onto: str,
    queue: str | None,
    dry_run: bool,
    offline: bool,
    refresh: bool,
    commit: bool,
    bar: Progress,
) -> SyncReport:
    from patchq.carry.sync import idle, sync
    from patchq.carry.workspace import quiet_queue, read_queue, writing

    here = Path.cwd()
    calm = quiet_queue(here, queue)
    report = idle(calm, onto=onto, offline=offline, refresh=refresh) if calm else None
    if report is None:
        with writing(here, "sync") as (project, recovered):
            report = sync(
                read_queue(project, queue),
                onto=onto,
                dry_run=dry_run,
                offline=offline,
                recovered=recovered,
                progress=bar,
            )
            _commit(project, report, commit)
            follow_along(project, queue, report)
    return report


def _in_session(
    what: str,
    queue: str | None,
    offline: bool,
    commit: bool,
    bar: Progress,
    action: Callable[[Ongoing], SyncReport],
) -> SyncReport:
    from dataclasses import replace

    from patchq.carry.resume import ongoing
    from patchq.carry.workspace import read_queue, writing

    with writing(Path.cwd(), what) as (project, recovered):
        with ongoing(read_queue(project, queue), offline=offline, progress=bar) as work:
            report = replace(action(work), recovered=recovered)
        _commit(project, report, commit)
        follow_along(project, queue, report)
    return report


def _go_on(work: Ongoing) -> SyncReport:
    from patchq.carry.resume import go_on

    return go_on(work)


def _skip(work: Ongoing, name: str) -> SyncReport:
    from patchq.carry.resume import skip

    return skip(work, name)


def follow_along(project: Project, queue: str | None, report: SyncReport | None) -> None:
    """Bring the working tree of push and pop to the series that was recorded."""
    if report is None or not report.recorded:
        return
    from patchq.carry.workspace import read_queue, upstream_of
    from patchq.cli.out import say
    from patchq.work.follow import follow

    after = read_queue(project, queue)
    with upstream_of(after) as upstream:
        followed = follow(after, upstream.store)
    say(followed.says if followed else None)


def _commit(project: Project, report: SyncReport, wanted: bool) -> None:
    if wanted and report.recorded:
        from patchq.carry.commits import commit_sync
        from patchq.render.markdown import sync as as_markdown

        commit_sync(project, report, as_markdown(report))


def _abort(queue: str | None, json: bool) -> int:
    from patchq.carry.session import abort
    from patchq.carry.workspace import writing
    from patchq.cli.out import give, say
    from patchq.render import sessions_json
    from patchq.render.console import text

    with writing(Path.cwd(), "sync --abort") as (project, recovered):
        say(recovered)
        name = abort(project, queue)
    give(
        json,
        lambda: sessions_json.aborted(name),
        lambda: text(f"The session of {name} is ended; the queue is as it was."),
    )
    return 0


def _give(report: SyncReport, json: bool, committed: bool) -> None:
    from patchq.cli.out import give
    from patchq.render import jsons

    def drawing() -> object:
        from patchq.render import tables

        return tables.sync(report, committed=committed)

    give(json, lambda: jsons.sync(report), drawing)
