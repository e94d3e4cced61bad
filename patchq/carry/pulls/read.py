"""`patchq pr list` and `patchq pr show`: how the pull requests of a queue stand."""

from __future__ import annotations

from patchq.carry.pulls import look
from patchq.carry.pulls.add import key_of
from patchq.carry.pulls.book import Entry
from patchq.carry.pulls.model import Asked, ListReport
from patchq.carry.workspace import Queue
from patchq.errors import Incomplete, PatchqError
from patchq.progress import SILENT, Progress


def stands(
    queue: Queue,
    text: str | None = None,
    *,
    offline: bool = False,
    progress: Progress = SILENT,
) -> ListReport:
    """Every pull request of the queue, or the one that `text` names, as it stands now.

    Nothing is written. Offline: as it is recorded. Raises PatchqError for one that neither the
    queue nor the forge knows.
    """
    keys = None if text is None else [key_of(queue, text)]
    looked = look.look(queue, keys=keys, offline=offline, progress=progress)
    asked = Asked(looked.as_of, looked.means, looked.missing, offline)
    entries = look.entries(queue, looked.state)
    if keys is not None:
        entries = tuple(entry for entry in entries if entry.key in keys)
        if not entries:
            pull = looked.state.pulls.get(keys[0])
            if pull is None:
                raise (Incomplete if looked.missing else PatchqError)(
                    f"{keys[0]} is not known: " + ("; ".join(looked.missing) or "never seen"),
                    "see to the number, or track it with `patchq pr add`",
                )
            entries = (Entry(keys[0], None, (), pull),)
    return ListReport(queue.config.name, entries, asked)
