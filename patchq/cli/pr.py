"""`patchq pr add|list|show|refresh|find|drop|refuse`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cli.options import DryRun, Json, Offline, QueueName, Why
from patchq.cli.pr_options import (
    Accept,
    Because,
    Bring,
    Called,
    Exclude,
    Hold,
    Limit,
    MaybePull,
    MoreGlobs,
    PerCommit,
    Pull,
    Repo,
    Revert,
    Terms,
    Topic,
)
from patchq.errors import UsageError

if TYPE_CHECKING:
    from patchq.carry.pulls.model import LeftReport
    from patchq.carry.workspace import Queue

ABOUT = """Upstream's pull requests: track them, make patches of them, see what became of them.

patchq pr add vllm-project/vllm#57477 --why "the tail seed reads beside the block"

patchq pr list

patchq pr refresh
"""


def add(
    pull: Pull,
    more: MoreGlobs = None,
    why: Because = "",
    bring: Bring = False,
    revert: Revert = False,
    per_commit: PerCommit = False,
    exclude: Exclude = None,
    name: Called = "",
    topic: Topic = "",
    dry_run: DryRun = False,
    offline: Offline = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Track a pull request; with --import or --revert, make a patch of it.

    A patch is what the pull request changes since it left its target branch, merged three-way onto
    the series; its head is pinned. Exit status 4 where it conflicts: nothing is written then.

    patchq pr add 57477 --why "wanted once it lands"

    patchq pr add vllm-project/vllm#57477 --import --exclude 'tests/*' 'docs/*'

    patchq pr add 52816 --revert
    """
    if more and not exclude:
        raise UsageError("one pull request at a time", f"what is {more[0]!r}?")
    if bring and revert:
        raise UsageError("--import and --revert do not go together", "choose one")
    if not (bring or revert) and (per_commit or exclude or name or topic):
        raise UsageError("there is no patch to make", "add --import or --revert")
    if revert and per_commit:
        raise UsageError("a revert is one patch", "leave --per-commit out")
    from patchq.carry.pulls.add import add as track
    from patchq.carry.pulls.add import queue_for
    from patchq.carry.pulls.make import How
    from patchq.carry.workspace import read_queue, writing
    from patchq.cli.out import say
    from patchq.cli.rearrange import follow_up
    from patchq.render.progress import Bar

    how = How(bring, revert, per_commit, (*(exclude or ()), *(more or ())), name, topic)
    with writing(Path.cwd(), "pr add") as (project, recovered):
        say(recovered)
        chosen = queue_for(project, pull, queue)
        with Bar() as bar:
            report = track(
                read_queue(project, chosen),
                pull,
                why=why,
                how=how,
                offline=offline,
                dry_run=dry_run,
                progress=bar,
            )
            followed = follow_up(project, chosen, report.journal, bar) if report.patches else None
    say(followed)

    _give(json, "added", report)
    return report.exit_code


def list_(offline: Offline = False, queue: QueueName = None, json: Json = False) -> int:
    """The queue's pull requests as they stand now; with --offline, as they are recorded.

    patchq pr list
    """
    return _stands(None, offline, queue, json)


def show(pull: Pull, offline: Offline = False, queue: QueueName = None, json: Json = False) -> int:
    """All that is known of one pull request, tracked or not.

    patchq pr show https://github.com/vllm-project/vllm/pull/57477 --json
    """
    return _stands(pull, offline, queue, json)


def _stands(pull: str | None, offline: bool, queue: str | None, json: bool) -> int:
    from patchq.carry.pulls.add import queue_for
    from patchq.carry.pulls.read import stands
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import say
    from patchq.render.progress import Bar

    project, recovered = reading(Path.cwd(), "pr")
    say(recovered)
    chosen = queue_for(project, pull, queue) if pull is not None else queue
    with Bar() as bar:
        report = stands(read_queue(project, chosen), pull, offline=offline, progress=bar)

    _give(json, "listed" if pull is None else "shown", report)
    return report.exit_code


def refresh(
    pull: MaybePull = None,
    accept: Accept = False,
    hold: Hold = False,
    why: Because = "",
    dry_run: DryRun = False,
    offline: Offline = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """What became of the pull requests: record it, and show how moved heads changed.

    A head that moved is shown as a range-diff, and stays pinned until you take it. Exit status 4
    while one waits for that.

    patchq pr refresh

    patchq pr refresh 57477 --accept

    patchq pr refresh 57477 --hold --why "the new head is slower"
    """
    if accept and hold:
        raise UsageError("--accept and --hold do not go together", "choose one")
    if (accept or hold) and pull is None:
        raise UsageError("accept or hold which one?", "name the pull request")
    from patchq.carry.pulls.add import queue_for
    from patchq.carry.pulls.refresh import refresh as look
    from patchq.carry.workspace import read_queue, writing
    from patchq.cli.out import say
    from patchq.cli.rearrange import follow_up
    from patchq.render.progress import Bar

    with writing(Path.cwd(), "pr refresh") as (project, recovered):
        say(recovered)
        chosen = queue_for(project, pull, queue) if pull is not None else queue
        with Bar() as bar:
            report = look(
                read_queue(project, chosen),
                pull,
                take=accept,
                hold=hold,
                why=why,
                offline=offline,
                dry_run=dry_run,
                progress=bar,
            )
            followed = follow_up(project, chosen, report.journal, bar) if report.patches else None
    say(followed)

    _give(json, "refreshed", report)
    return report.exit_code


def find(
    terms: Terms = None,
    repo: Repo = None,
    limit: Limit = 20,
    offline: Offline = False,
    queue: QueueName = None,
    json: Json = False,
) -> int:
    """Search upstream for pull requests that matter to this queue, and say why each does.

    Without terms by the topics in the queue's file and by the files that its patches change.
    Those that are tracked or refused are left out.

    patchq pr find

    patchq pr find dflash "prefix cache" --limit 5
    """
    from patchq.carry.pulls.find import find as search
    from patchq.carry.workspace import read_queue, reading
    from patchq.cli.out import say
    from patchq.render.progress import Bar

    project, recovered = reading(Path.cwd(), "pr find")
    say(recovered)
    with Bar() as bar:
        report = search(
            read_queue(project, queue),
            terms or (),
            repo=repo,
            limit=limit,
            offline=offline,
            progress=bar,
        )

    _give(json, "found", report)
    return report.exit_code


def drop(pull: Pull, queue: QueueName = None, json: Json = False) -> None:
    """Track a pull request no longer. Patches that name it stay, and are said.

    patchq pr drop 57477
    """
    from patchq.carry.pulls.leave import drop as leave

    _leave("pr drop", leave, pull, queue, json)


def refuse(
    pull: Pull, why: Why, offline: Offline = False, queue: QueueName = None, json: Json = False
) -> None:
    """Record that a pull request is not wanted: `find` shows it no more.

    patchq pr refuse 52708 --why "GB10 builds by its own list of targets"
    """
    from patchq.carry.pulls.leave import refuse as leave

    def refused(found: Queue, text: str) -> LeftReport:
        return leave(found, text, why, offline=offline)

    _leave("pr refuse", refused, pull, queue, json)


def _leave(
    command: str,
    leave: Callable[[Queue, str], LeftReport],
    pull: str,
    queue: str | None,
    json: bool,
) -> None:
    from patchq.carry.pulls.add import queue_for
    from patchq.carry.workspace import read_queue, writing
    from patchq.cli.out import say

    with writing(Path.cwd(), command) as (project, recovered):
        say(recovered)
        report = leave(read_queue(project, queue_for(project, pull, queue)), pull)
    _give(json, "left", report)


def _give(json: bool, what: str, report: object) -> None:
    from patchq.cli.out import give_by

    give_by(json, "pulls_json", "pulls", what, report)


commands = {
    "add": add,
    "list": list_,
    "show": show,
    "refresh": refresh,
    "find": find,
    "drop": drop,
    "refuse": refuse,
}
