"""The nights that everybody sees: the branch `patchq/nights` has `nights/NAME.json` of each.

It outlives every workspace, and tells machines that never saw a night when the last one was. It is
only added to, never forced.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path

from patchq.config import find_project
from patchq.errors import Incomplete, PatchqError
from patchq.gitstore import push, tags
from patchq.gitstore.push import Moved, Secret
from patchq.gitstore.remote import heads
from patchq.nightly import form, kept
from patchq.nightly.model import Night
from patchq.paths import show

REMOTE = "origin"
BRANCH = "patchq/nights"
FOLDER = "nights"
KEEP = 400
"""Nights that stay there; older ones are in the branch's history."""
TRIES = 5
"""How often it is tried to add one, where another is always first."""
_END = ".json"


@dataclass(frozen=True)
class Shared:
    """`nights`: the oldest first. `says`: what could not be read, a sentence each."""

    nights: tuple[Night, ...] = ()
    says: tuple[str, ...] = ()


def read(root: Path, queue: str | None = None, *, secret: Secret | None = None) -> Shared:
    """The nights of the branch (of a queue), by the repository at `root`.

    Where the remote is not reached, as the repository saw them last; none where there is no branch.
    What is no night is left out, and said.
    """
    try:
        return ask(root, queue, secret=secret)
    except PatchqError as error:
        ref = f"refs/remotes/{REMOTE}/{BRANCH}"
        seen = heads(find_project(root).git_dir, [ref]).get(ref)
        found = _at(root, seen, queue)
        says = f"the nights are those that this repository saw last: {error.message}"
        return replace(found, says=(says, *found.says))


def ask(root: Path, queue: str | None = None, *, secret: Secret | None = None) -> Shared:
    """As `read`, and as they are now. Raises Incomplete where the remote is not reached."""
    return _at(root, push.fetch_branch(root, REMOTE, BRANCH, secret=secret), queue)


def _at(root: Path, commit: str | None, queue: str | None) -> Shared:
    nights, odd = parsed(tags.folder_at(root, commit, FOLDER) if commit else {})
    return Shared(tuple(each for each in nights if queue in (None, each.queue)), odd)


def add(root: Path, night: Night, *, secret: Secret | None = None) -> str:
    """Put the night there, where it is not yet as it is now; the branch's commit.

    Raises Incomplete where the remote is not reached, refuses, or is never at rest.
    """
    for left in reversed(range(TRIES)):
        tip = push.fetch_branch(root, REMOTE, BRANCH, secret=secret)
        files = changes(tags.folder_at(root, tip, FOLDER) if tip else {}, night)
        if tip and not files:
            return tip
        when = datetime.fromisoformat(night.ended or night.began)
        message = f"{night.queue}: night {night.name}, {night.state}"
        at = {f"{FOLDER}/{name}": data for name, data in files.items()}
        commit = push.commit_files(root, tip, at, message, when)
        try:
            push.push(root, REMOTE, commit, BRANCH, expected=tip, secret=secret)
            return commit
        except Moved:
            if left:
                time.sleep(0.05 * (1 + os.getpid() % 7))  # another's pace is another
    raise Incomplete(
        f"the branch {BRANCH} moved {TRIES} times while the night was added",
        "the next night adds its own; run it again for this one",
    )


def parsed(files: Mapping[str, bytes]) -> tuple[tuple[Night, ...], tuple[str, ...]]:
    """The newest nights of the files, the oldest first; a sentence for each file that is none."""
    nights, odd = [], []
    for name in sorted(files, key=_order)[-KEEP:]:
        try:
            night = form.read(files[name])
        except PatchqError as error:
            odd.append(f"{BRANCH}: {show(name)[:100]} is left out: {error.message}")
            continue
        if name != f"{night.name}{_END}":
            odd.append(f"{BRANCH}: {show(name)[:100]} is left out: it is of another night")
            continue
        nights.append(night)
    return tuple(nights), tuple(odd)


def changes(there: Mapping[str, bytes], night: Night) -> dict[str, bytes | None]:
    """What the folder needs for the night to be in it; None of what goes, the oldest first.

    Another night of that name (of another queue, or workspace) stays: this one gets the next name.
    """
    night = replace(night, name=_name(there, night))
    file, data = f"{night.name}{_END}", form.write(night)
    if there.get(file) == data:
        return {}
    ours = sorted((each for each in {*there, file} if _is_night(each)), key=_order)
    return {file: data} | dict.fromkeys(ours[:-KEEP])


def _name(there: Mapping[str, bytes], night: Night) -> str:
    taken = [each.removesuffix(_END) for each in there if _is_night(each)]
    day = kept.order(night.name)[0]
    for name in taken:
        if kept.order(name)[0] == day:
            try:
                found = form.read(there[f"{name}{_END}"])
            except PatchqError:
                continue
            if (found.queue, found.began) == (night.queue, night.began):
                return name
    if night.name not in taken:
        return night.name
    return kept.next_name(date.fromisoformat(day), taken)


def _is_night(file: str) -> bool:
    return file.endswith(_END) and form.NAME.fullmatch(file.removesuffix(_END)) is not None


def _order(file: str) -> tuple[str, int]:
    return kept.order(file.removesuffix(_END))
