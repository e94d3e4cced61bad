"""The journal: every change of series/, upstream/ and releases/ as a whole, and its way back.

`.git/patchq/journal/NNNNNN/` holds one entry: `entry.json` (what, when, the files' sha256 before
and after), `bytes` (their contents, compressed), `details` (the command's own). While a change is
under way its folder is called `unfinished`; the states in between are told in `transaction`.
The caller holds the project's lock.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from patchq.carry import exchange, shelf
from patchq.carry.exchange import explained, state
from patchq.carry.lock import uninterrupted
from patchq.carry.shelf import KEEP, Change, Entry
from patchq.carry.steps import Step, plan
from patchq.carry.transaction import Transaction, begin, finish, mark, revert, stage
from patchq.config import Project
from patchq.errors import PatchqError


def record(
    project: Project,
    command: str,
    summary: str,
    changes: Mapping[str, bytes | None],
    *,
    details: bytes = b"",
) -> Entry | None:
    """Write `changes` (path relative to the root: content, None deletes) all at once.

    Returns the journal's entry; None where everything is so already, and no byte changes.
    Raises PatchqError where a path is not a file of ours or the disk refuses: before the point of
    commitment nothing is changed, after it the next command's `recover` completes the change.
    """
    return _record(project, command, summary, changes, details=details)


def unfinished(project: Project) -> bool:
    """Whether a change was interrupted and `recover` has something to do; costs one stat."""
    return shelf.unfinished_folder(project).exists()


def recover(project: Project) -> str | None:
    """Complete or take back a change that was interrupted; one sentence about it, if any.

    Raises PatchqError where a file was edited since and is neither as before nor as after (it and
    everything else stay as they are), or where the disk refuses.
    """
    folder = shelf.unfinished_folder(project)
    if not folder.exists():
        return None
    with uninterrupted(), explained("the next patchq command tries again"):
        header = shelf.header_of(folder)
        if header is None:
            exchange.remove_tree(folder)
            return "An interrupted command had changed nothing; its traces are removed."
        tx = _opened(project, folder, header)
        if not tx.root.is_dir():
            shelf.forget(folder)
            return f"An interrupted `{header['command']}` was in {tx.root}, which is gone."
        if not tx.has("committed"):
            revert(tx)
            shelf.forget(folder)
            return f"An interrupted `{header['command']}` was taken back; nothing is changed."
        finish(tx, staged=False)
        _close(project, header["id"])
        return f"An interrupted `{header['command']}` was completed: {header['summary']}."


def entries(project: Project) -> tuple[Entry, ...]:
    """What the journal holds of this project, newest last."""
    here = shelf.root_name(project)
    headers = [
        header
        for number in shelf.numbers(project)
        if (header := shelf.header_of(shelf.folder_of(project, number))) is not None
        and header["root"] == here
    ]
    undone: dict[int, int] = {}
    for header in reversed(headers):
        if header["undoes"] is not None and header["id"] not in undone:
            undone[header["undoes"]] = header["id"]
    return tuple(shelf.entry_of(header, undone.get(header["id"])) for header in headers)


def undo(project: Project, entry_id: int | None = None, *, dry_run: bool = False) -> Entry:
    """Take back entry `entry_id`; without it the newest that is no undo and is not undone.

    Returns the entry that this makes itself (`undoes` names the other); to undo that one is to
    redo. `dry_run`: what it would be. Raises PatchqError where there is nothing to take back, or
    where a file was changed since.
    """
    found = _to_undo(entries(project), entry_id)
    edited = [
        change.path
        for change in found.changes
        if state(project.root / change.path) != change.new_sha256
    ]
    if edited:
        raise PatchqError(
            f"`{found.command}` (entry {found.id}) cannot be taken back: "
            f"{', '.join(edited)} changed since",
            "take back the later changes first, or put the file back as it was",
        )
    header = shelf.header_of(shelf.folder_of(project, found.id)) or {}
    before = {change.path: old_bytes(project, found, change.path) for change in found.changes}
    modes = {change["path"]: change["old_mode"] for change in header["changes"]}
    summary = f"{found.command} (entry {found.id}) taken back: {found.summary}"
    if dry_run:
        flipped = tuple(Change(c.path, c.new_sha256, c.old_sha256) for c in found.changes)
        return Entry(
            shelf.next_number(project),
            "undo",
            summary,
            shelf.now(),
            flipped,
            undone_by=None,
            undoes=found.id,
        )
    made = _record(project, "undo", summary, before, undoes=found.id, modes=modes)
    assert made is not None, "an entry without changes was recorded"
    return made


def old_bytes(project: Project, entry: Entry, path: str) -> bytes | None:
    """The content of `path` before the entry; None where it did not exist."""
    return _stored(project, entry, path, "old_sha256")


def new_bytes(project: Project, entry: Entry, path: str) -> bytes | None:
    """The content of `path` after the entry; None where it does not exist."""
    return _stored(project, entry, path, "new_sha256")


def details(project: Project, entry: Entry) -> bytes:
    """What `record` was given as details."""
    try:
        return (shelf.folder_of(project, entry.id) / "details").read_bytes()
    except FileNotFoundError:
        return b""


def _stored(project: Project, entry: Entry, path: str, which: str) -> bytes | None:
    for change in entry.changes:
        if change.path == path:
            key = getattr(change, which)
            folder = shelf.folder_of(project, entry.id)
            return None if key is None else shelf.reader(folder, shelf.header_of(folder) or {})(key)
    raise PatchqError(f"entry {entry.id} of the journal does not change {path}")


def _to_undo(found: tuple[Entry, ...], entry_id: int | None) -> Entry:
    for entry in reversed(found):
        if entry_id is None and entry.undoes is None and entry.undone_by is None:
            return entry
        if entry.id == entry_id:
            if entry.undone_by is None:
                return entry
            raise PatchqError(
                f"entry {entry_id} was taken back already, by entry {entry.undone_by}",
                f"to have it again, take back entry {entry.undone_by}",
            )
    if entry_id is None:
        raise PatchqError("there is nothing to undo", "`patchq history` shows what was done")
    raise PatchqError(
        f"the journal has no entry {entry_id}",
        f"it has {found[0].id} to {found[-1].id}" if found else "it is empty",
    )


def _record(
    project: Project,
    command: str,
    summary: str,
    changes: Mapping[str, bytes | None],
    *,
    details: bytes = b"",
    undoes: int | None = None,
    modes: Mapping[str, int | None] | None = None,
) -> Entry | None:
    steps, made, bodies = plan(project.root, changes, modes or {})
    if not steps:
        return None
    header: dict[str, Any] = {
        "id": shelf.next_number(project),
        "command": command,
        "summary": summary,
        "at": shelf.now().isoformat(),
        "undoes": undoes,
        "root": shelf.root_name(project),
        "made": made,
        "changes": [vars(step) for step in steps],
    }
    folder = shelf.unfinished_folder(project)
    tx = Transaction(folder, project.root, steps, made, bodies.__getitem__)
    with uninterrupted():
        with explained("nothing was changed, run it again then"):
            begin(tx)
            try:
                shelf.write(folder, header, bodies, details)
                stage(tx)
                for step in steps:
                    if state(tx.place(step)) != step.old:
                        raise PatchqError(
                            f"{step.path} was changed while patchq worked; nothing was written",
                            f"run `patchq {command}` again",
                        )
                mark(tx, "committed")
            except BaseException as error:
                with suppress(OSError):  # what is left of it, the next command takes back
                    revert(tx)
                    shelf.forget(folder)
                # A mark that can be neither synced nor removed stands, and so does the change.
                if not (isinstance(error, OSError) and tx.has("committed")):
                    raise
        with explained(
            "the change stands in the journal, and the next patchq command completes it"
        ):
            finish(tx, staged=True)
            _close(project, header["id"])
    return shelf.entry_of(header, None)


def _opened(project: Project, folder: Path, header: dict[str, Any]) -> Transaction:
    # Linked worktrees share the journal: the change may be another one's.
    root = Path(os.path.normpath(project.git_dir / header["root"]))
    steps = tuple(Step(**change) for change in header["changes"])
    return Transaction(folder, root, steps, tuple(header["made"]), shelf.reader(folder, header))


def _close(project: Project, number: int) -> None:
    """The change is done: make room for its entry and give it its name."""
    folder = shelf.unfinished_folder(project)
    for extra in ("before", "after"):
        exchange.remove_tree(folder / extra)
    for old in shelf.numbers(project)[: -(KEEP - 1)]:
        shelf.forget(shelf.folder_of(project, old))
    folder.rename(shelf.folder_of(project, number))
    exchange.sync([folder.parent])
    kept = shelf.folder_of(project, number) / "kept"
    if kept.exists():
        raise PatchqError(
            "a file was edited at the moment it was replaced; the change is recorded",
            f"your version is in {kept}",
        )
