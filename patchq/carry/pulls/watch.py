"""Before a sync: how the pull requests stand that the queue watches, for the judge and the record.

What was seen is recorded with the sync, in the same step. Where the sync stops with a question,
nothing may be written to the project: it is kept in its private folder, so that going on and
answering judge by the same evidence.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from patchq.caches import keep
from patchq.carry.exchange import sha256
from patchq.carry.pulls.look import Looked, look
from patchq.carry.workspace import Queue
from patchq.progress import SILENT, Progress
from patchq.upstream import pulls as records
from patchq.upstream.releases import AsOf
from patchq.upstream.state import QueueState


def watch(
    queue: Queue, as_of: AsOf, *, offline: bool = False, progress: Progress = SILENT
) -> tuple[Queue, AsOf]:
    """The queue with the state of its pull requests as it is now, and sentences about that.

    Only a queue that says where it is on a forge (`github`) is asked about. A forge that is not
    reached stops nothing: the recorded state is used, and it is said.
    """
    if queue.config.github is None:
        return queue, as_of
    # Without a token and with its 60 requests spent, a sync must not fetch a history for heads.
    git = any(source.kind == "git" for source in queue.config.sources)
    looked = look(queue, offline=offline, git=git, progress=progress)
    if looked.state != queue.state or _place(queue).exists():
        _keep(queue, looked)
    notes = (*as_of.notes, *_sentences(looked, offline))
    return _with(queue, looked.state), replace(as_of, notes=notes)


def as_seen(queue: Queue) -> Queue:
    """The queue as `watch` last saw it, where nothing was recorded since."""
    try:
        data = json.loads(_place(queue).read_bytes())
        if data["state"] != _now(queue):
            return queue
        pulls = {key: records.from_json(key, facts) for key, facts in data["pulls"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return queue
    return _with(queue, replace(queue.state, pulls=pulls))


def forget(queue: Queue) -> None:
    """What `watch` saw counts no more: somebody looked again."""
    _place(queue).unlink(missing_ok=True)


def _with(queue: Queue, state: QueueState) -> Queue:
    return replace(queue, states={**queue.states, queue.config.name: state})


def _sentences(looked: Looked, offline: bool) -> list[str]:
    count = len(looked.state.pulls)
    if looked.missing:
        more = f" (and {len(looked.missing) - 1} more)" if len(looked.missing) > 1 else ""
        return [f"Pull requests as recorded: {looked.missing[0]}{more}."]
    if not offline or not count:
        return []
    what = f"The state of {count} pull request{'s' if count != 1 else ''}"
    if looked.as_of.timestamp() <= 0:
        return [f"{what} is as recorded."]
    return [f"{what} is as of {looked.as_of:%Y-%m-%d %H:%M} UTC."]


def _keep(queue: Queue, looked: Looked) -> None:
    """A cache of sorts: where it cannot be written, an answer is asked for once more."""
    pulls = {key: records.to_json(pull) for key, pull in looked.state.pulls.items()}
    keep(_place(queue), json.dumps({"state": _now(queue), "pulls": pulls}).encode())


def _place(queue: Queue) -> Path:
    return queue.project.private / "pulls" / f"{queue.config.name}.json"


def _now(queue: Queue) -> str:
    """What the record is: anything that is written to it later counts more."""
    try:
        return sha256(queue.project.state_file.read_bytes())
    except OSError:
        return ""
