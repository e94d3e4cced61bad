"""The moment at which a release comes to be: bundle, commit and tag, all or nothing.

Branch and tag move in one transaction of refs; before it nothing of the release is seen, after it
all of it is there but the two files in the work tree. `.git/patchq/release.json` stands meanwhile:
whoever comes next completes the release by it, or removes what was prepared.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patchq.carry import exchange, journal
from patchq.carry.lock import uninterrupted
from patchq.carry.shelf import Entry
from patchq.config import Project
from patchq.errors import PatchqError
from patchq.gitstore import tags
from patchq.gitstore.files import write
from patchq.gitstore.project import commit as commit_files
from patchq.gitstore.tags import Sealed
from patchq.release import bundle
from patchq.release import manifest as manifests
from patchq.release.manifest import FOLDER, MANIFEST

COMMAND = "release cut"


def tag_of(number: int) -> str:
    return f"release-{number}"


def files_of(number: int) -> tuple[str, str]:
    """What a release is in the repository: its manifest and its notes."""
    return f"{FOLDER}/{number}.toml", f"{FOLDER}/{number}.md"


def note_of(project: Project) -> Path:
    return project.private / "release.json"


def record(project: Project, number: int, made: Path) -> tuple[str, Entry | None]:
    """Let the bundle in the folder `made` be release `number`; its commit, and the journal's entry.

    Raises PatchqError, and nothing is changed then, where git does not commit or somebody else
    committed meanwhile.
    """
    root = project.root
    toml, notes = files_of(number)
    files = {toml: (made / MANIFEST).read_bytes(), notes: (made / bundle.NOTES).read_bytes()}
    place = bundle.folder(root, number)
    sealed = tags.prepare(root, files, f"Release {number}\n", tag_of(number))
    with uninterrupted():
        note = {"schema": "patchq.release-note/1", "number": number, "sealed": vars(sealed)}
        write(note_of(project), json.dumps(note).encode())
        try:
            made.rename(place)
            tags.seal(root, sealed)
        except BaseException:
            _take_back(project, number)
            raise
        entry = _finish(project, number, files)
    return sealed.commit, entry


def settle(project: Project) -> str | None:
    """Complete or take back a cut that was interrupted; one sentence about it, if any.

    The caller holds the project's lock. Raises PatchqError where a file of it was edited since.
    """
    _sweep(project)
    try:
        note = json.loads(note_of(project).read_bytes())
        number, sealed = int(note["number"]), Sealed(**note["sealed"])
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError):
        note_of(project).unlink()
        return None
    if tags.tagged(project.root, sealed.name) != sealed.commit:
        _take_back(project, number)
        return f"An interrupted cut of release {number} was taken back; nothing is changed."
    found = {name: tags.at(project.root, sealed.commit, name) for name in files_of(number)}
    _finish(project, number, {name: data for name, data in found.items() if data is not None})
    return f"An interrupted cut was completed: release {number}."


@dataclass(frozen=True)
class TakenBack:
    """What `patchq undo` did to a release: the commit that removes its files."""

    number: int
    commit: str


def released_by(entry: Entry) -> int | None:
    """The number of the release whose cut (or its taking back) the journal's entry is."""
    for change in entry.changes:
        name = change.path.removeprefix(f"{FOLDER}/").removesuffix(".toml")
        if change.path == f"{FOLDER}/{name}.toml" and name.isdecimal():
            return int(name)
    return None


def may_undo(project: Project, entry: Entry) -> None:
    """Raises PatchqError where the change that `entry` would be is that of a release, and cannot
    be had: it was published, or a release would come back without its commit.
    """
    number = released_by(entry)
    if number is None:
        return
    if any(change.new_sha256 is not None for change in entry.changes):
        raise PatchqError(
            f"release {number} was taken back, with its tag; that is not taken back itself",
            f"cut it again: `patchq release cut --number {number}`",
        )
    if is_published(project, number):
        raise PatchqError(
            f"release {number} is published: it cannot be taken back",
            f"`patchq release withdraw {number} --why TEXT` says that nobody should install it",
        )


def undone(project: Project, entry: Entry) -> TakenBack | None:
    """After `patchq undo` removed a release's files: commit that, remove its tag and its bundle.

    History stays as it is; the number is free again.
    """
    number = released_by(entry)
    if number is None:
        return None
    root, name = project.root, tag_of(number)
    was = tags.tagged(root, name)
    made = commit_files(root, files_of(number), f"Take release {number} back\n")
    if was is not None:
        tags.remove_tag(root, name, was)
    exchange.remove_tree(bundle.folder(root, number))
    return TakenBack(number, made)


def mark_published(project: Project, number: int) -> None:
    """Others may have the release from now on: `patchq undo` takes it back no more."""
    write(project.private / "published" / str(number), b"")


def is_published(project: Project, number: int) -> bool:
    """Whether it was published from here, or git has seen its commit in a remote's branch."""
    if (project.private / "published" / str(number)).exists():
        return True
    commit = tags.tagged(project.root, tag_of(number))
    return commit is not None and tags.is_pushed(project.root, commit)


def _finish(project: Project, number: int, files: Mapping[str, bytes]) -> Entry | None:
    entry = journal.record(project, COMMAND, f"release {number}", dict(files))
    tags.refresh(project.root, files_of(number))
    note_of(project).unlink(missing_ok=True)
    return entry


def _take_back(project: Project, number: int) -> None:
    exchange.remove_tree(bundle.folder(project.root, number))
    note_of(project).unlink(missing_ok=True)


def _sweep(project: Project) -> None:
    """Remove bundles that were being made when their process ended."""
    folder = project.root / "build" / "releases"
    for left in folder.glob(".*") if folder.is_dir() else ():
        shutil.rmtree(left, ignore_errors=True)


def latest(root: Path) -> manifests.Manifest | None:
    """The newest release of the project; None where it has none."""
    there = manifests.numbers(root)
    return manifests.read_at(root, there[-1]) if there else None
