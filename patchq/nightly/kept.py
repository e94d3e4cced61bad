"""Nights on disk: `NIGHTS/NAME/`, what is kept of them, and one night at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from pathlib import Path

from patchq.carry.exchange import remove_tree
from patchq.errors import PatchqError
from patchq.gitstore.files import write as write_file
from patchq.nightly.form import FILE, NAME
from patchq.nightly.form import read as read
from patchq.nightly.form import write as write
from patchq.nightly.model import Night, NightState

QUEUE = "queue"
"""The night's clone of the project, in its folder."""
KEPT_WHOLE: tuple[NightState, ...] = ("green", "red")
"""The last night of each queue that ended so keeps its clone."""


def order(name: str) -> tuple[str, int]:
    """What nights are sorted by: the day, and which of that day's they are."""
    found = NAME.fullmatch(name)
    return (found[1], int(found[2] or 1)) if found else (name, 0)


def next_name(day: date, taken: Iterable[str]) -> str:
    """The name of a night that begins on `day`."""
    same = [order(each)[1] for each in taken if order(each)[0] == day.isoformat()]
    return f"{day.isoformat()}.{max(same) + 1}" if same else day.isoformat()


def names(nights: Path) -> list[str]:
    """The folders of nights, the oldest first, whatever is in them."""
    found = [path.name for path in nights.glob("*") if NAME.fullmatch(path.name)]
    return sorted(found, key=order)


def load(folder: Path) -> Night | None:
    """The night of a folder; None where it has none. Raises PatchqError for a damaged one."""
    try:
        return read((folder / FILE).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None


def listed(nights: Path, queue: str | None = None) -> tuple[Night, ...]:
    """The nights that are kept (of a queue), the oldest first; damaged ones are left out."""
    found: list[Night] = []
    for name in names(nights):
        with suppress(PatchqError):
            night = load(nights / name)
            if night is not None and night.name == name and queue in (None, night.queue):
                found.append(night)
    return tuple(found)


def last(nights: Iterable[Night], *states: NightState) -> Night | None:
    """The newest of the nights (the oldest come first) that ended in one of `states`."""
    return next((each for each in reversed(tuple(nights)) if each.state in states), None)


def save(folder: Path, night: Night) -> None:
    """Write `night.json`, at once. Raises PatchqError where the disk refuses."""
    with room(folder):
        write_file(folder / FILE, write(night))


@contextmanager
def room(folder: Path) -> Iterator[None]:
    """Turn what a disk refuses into a sentence; what was kept before is as it was."""
    try:
        yield
    except OSError as error:
        raise PatchqError(
            f"{error.filename or folder} cannot be written: {error.strerror or error}",
            "make room or correct the permissions, then run `patchq nightly`, which goes on",
        ) from error


def prune(nights: Path, keep: int) -> list[str]:
    """Remove nights beyond the newest `keep`, and the clones of those that are over.

    Gives the names of the nights that are gone.
    """
    every = names(nights)
    there = listed(nights)
    # An unfinished night is gone on with; what has no night.json yet is one, too.
    over = {each.name for each in there if each.state != "running"}
    stay = {
        found.name
        for queue in {each.queue for each in there}
        for state in KEPT_WHOLE
        if (found := last([each for each in there if each.queue == queue], state)) is not None
    }
    old = [name for name in every[: max(0, len(every) - keep)] if name in over - stay]
    for name in old:
        remove_tree(nights / name)
    for name in over - stay - set(old):
        remove_tree(nights / name / QUEUE)
    return old


@contextmanager
def hold(nights: Path) -> Iterator[None]:
    """Be the only night that runs in `nights`; the lock ends with this process at the latest.

    Raises PatchqError that names the holder, or says that the folder cannot be written.
    """
    import filelock

    holder = nights / "holder"
    with room(nights):
        nights.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(nights / "lock")
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            raise _held(nights, holder) from None
    try:
        with room(nights):
            write_file(holder, _me())
        yield
    finally:
        with suppress(OSError):
            holder.unlink(missing_ok=True)
        lock.release()


def _me() -> bytes:
    from patchq.cluster.lock import whoami

    since = datetime.now(UTC).isoformat(timespec="seconds")
    return json.dumps({"pid": os.getpid(), "who": whoami(), "since": since}).encode()


def _held(nights: Path, holder: Path) -> PatchqError:
    try:
        told = json.loads(holder.read_bytes())
        who = f"`patchq nightly` of {told['who']} (process {told['pid']}, since {told['since']})"
        remedy = f"wait for it to end, or end it with `kill {told['pid']}`; then it can be resumed"
    except (OSError, ValueError, KeyError, TypeError):
        who, remedy = "another `patchq nightly`", "wait for it to end"
    return PatchqError(f"{who} is at work in {nights}", remedy)
