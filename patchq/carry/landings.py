"""The diffs of the commits that brought patches, beside the patches: how much is where."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from patchq.carry import rangediff
from patchq.carry.ranges import Range
from patchq.carry.tracks import files_of
from patchq.errors import PatchqError
from patchq.judge import change as changes_of
from patchq.judge import past as past_rules
from patchq.judge import twin
from patchq.judge.model import Landing, Past
from patchq.queue.diff import FileDiff, NotCanonical, parse
from patchq.queue.patch import Patch


def compared(
    range_: Range,
    patches: Mapping[str, Patch],
    pasts: Mapping[str, Past],
    names: Mapping[bytes, bytes],
) -> dict[str, Past]:
    """With the release of each landing, and in how many hunks its text is another.

    `names` are what upstream calls files now, with what the patches call them.
    """
    wanted = [
        (name, landing.commit)
        for name, past in pasts.items()
        if past.reverted is None and (past.named or past.twin or past.share >= past_rules.SOME)
        for landing in past.landings
    ]
    theirs = versions(range_, {commit for _, commit in wanted}, names)
    differs = {
        (name, commit): rangediff.hunks(difference(patches[name], theirs[commit]))
        for name, commit in wanted
        if theirs[commit]
    }

    def placed(name: str, landing: Landing) -> Landing:
        return replace(
            landing,
            release=range_.release_of(landing.commit),
            differs=differs.get((name, landing.commit)),
        )

    return {
        name: replace(
            past,
            landings=tuple(placed(name, each) for each in past.landings),
            reverted=placed(name, past.reverted) if past.reverted else None,
            superseded=placed(name, past.superseded) if past.superseded else None,
            held=changes_of.held(
                files_of(patches[name]),
                [theirs[each.commit] for each in past.landings if each.commit in theirs],
            ),
            moved=_moved(patches[name], past, theirs, names),
            restated=past.restated | _renoted(patches[name], past, theirs),
            loose=_loose(patches[name], past, theirs),
        )
        for name, past in pasts.items()
    }


def versions(
    range_: Range, commits: Collection[str], names: Mapping[bytes, bytes]
) -> dict[str, bytes]:
    """What each of the commits changed; a file that moved has the name that `names` gives it."""
    texts = range_.versions(commits)
    return {oid: rangediff.renamed(text, names) for oid, text in texts.items()}


def _moved(
    patch: Patch, past: Past, theirs: Mapping[str, bytes], names: Mapping[bytes, bytes]
) -> dict[bytes, bool]:
    """Of each file that has later names, whether the landings make all of its changes."""
    gone = [file for file in files_of(patch) if file.path in names.values()]
    its = _landed(past, theirs, {file.path for file in gone})
    return {file.path: changes_of.made(file, its) for file in gone}


def _renoted(patch: Patch, past: Past, theirs: Mapping[str, bytes]) -> frozenset[bytes]:
    """The documents that a patch adds and its landings add as well, as notes: what the patch says
    there may be too short for a note, or hold too much code.
    """
    documents = twin.documents(files_of(patch))
    return documents & twin.notes(_landed(past, theirs, documents)).keys()


def _loose(patch: Patch, past: Past, theirs: Mapping[str, bytes]) -> dict[bytes, int]:
    """The lines of a patch for which the landing that its note tells of has no place."""
    if not past.twin:
        return {}
    files = files_of(patch)
    text = theirs.get(past.landings[-1].commit, b"")
    return twin.left_over(files, _parsed(text, {file.path for file in files}))


def _landed(past: Past, theirs: Mapping[str, bytes], paths: Collection[bytes]) -> list[FileDiff]:
    """What the landings of a patch make of some of its files."""
    texts = [theirs.get(each.commit, b"") for each in past.landings] if paths else []
    return [file for text in texts for file in _parsed(text, paths)]


def _parsed(text: bytes, paths: Collection[bytes]) -> tuple[FileDiff, ...]:
    """The files of a landing that are among `paths`; none where one cannot be read."""
    try:
        return parse(rangediff.limited(text, paths), "upstream")
    except (NotCanonical, PatchqError):
        return ()


def difference(patch: Patch, theirs: bytes) -> str:
    """What upstream made of a patch: the range-diff to its commit, in the patch's own files.

    Empty where the commit is: a merge can leave out all that it merges.
    """
    if not theirs:
        return ""
    paths = {file.path for file in files_of(patch)}
    return rangediff.between(patch.diff, rangediff.limited(theirs, paths))
