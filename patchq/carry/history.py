"""Gather what upstream's commits and pull requests say of each patch, for the fold to judge.

Effects only: what they mean is said in `judge`. Without a git source there is no history, and the
pull requests' recorded state is all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from patchq.carry import landings
from patchq.carry.ranges import Range
from patchq.carry.tracks import files_of
from patchq.config import QueueConfig
from patchq.errors import PatchqError
from patchq.gitstore import log
from patchq.judge import change as changes_of
from patchq.judge import commits as words
from patchq.judge import history, pulls, twin
from patchq.judge.change import Change
from patchq.judge.model import Cause, Known, Past, Signal
from patchq.judge.moved import moved
from patchq.queue.patch import Patch
from patchq.queue.series import RETIRED
from patchq.upstream.pulls import Pull

_PULL = re.compile(r"([\w.-]+/[\w.-]+)(?:#|/pull/)(\d+)")
_HEAD = re.compile(r"@ ([0-9a-f]{40})\b")
_COMMIT = re.compile(r"/commit/([0-9a-f]{7,40})\b|cherry picked from commit ([0-9a-f]{7,40})")


@dataclass(frozen=True)
class Origin:
    """Where a patch says that it comes from, in upstream's own repository.

    `hints` are the numbers of its subject, where nothing better is known: they may be a fork's.
    """

    heads: Mapping[str, str]
    numbers: frozenset[int]
    ids: tuple[str, ...]
    hints: tuple[int, ...] = ()


def origin(patch: Patch, github: str | None) -> Origin:
    """The pull requests (OWNER/REPO#N, and the head that it was made from) and commits."""
    header = patch.header
    heads: dict[str, str] = {}
    for value in (*header.all("Patchq-Pr"), *header.all("Origin")):
        found = _PULL.search(value)
        if found and (github is None or found[1].lower() == github.lower()):
            head = _HEAD.search(value)
            heads.setdefault(f"{found[1]}#{found[2]}", head[1] if head else "")
    numbers = {int(key.rpartition("#")[2]) for key in heads}
    hints = () if numbers else words.numbers(header.subject)
    told = "\n".join((*header.all("Origin"), header.body))
    ids = tuple(one or other for one, other in _COMMIT.findall(told))
    return Origin(heads, frozenset(numbers), ids, hints)


@dataclass
class Gatherer:
    """What `fold` asks once it has the patches in canonical form.

    `recorded` are the pull requests by OWNER/REPO#N; `doubts` speak against letting patches go.
    `retired` patches that upstream took back are told of in `notes`.
    """

    config: QueueConfig
    recorded: Mapping[str, Pull]
    range: Range | None = None
    doubts: Mapping[str, Signal] = field(default_factory=dict)
    retired: Sequence[Patch] = ()
    notes: tuple[str, ...] = ()
    names: Mapping[bytes, bytes] = field(default_factory=dict)
    """What upstream calls files now, with what the patches call them; known once it was asked."""
    _found: dict[str, Past] | None = None

    def but(self, doubts: Mapping[str, Signal]) -> Gatherer:
        """The same with the `doubts`; the history is not read again."""
        return replace(self, doubts=doubts)

    def __call__(self, patches: Sequence[Patch]) -> dict[str, Known]:
        origins = {patch.name: origin(patch, self.config.github) for patch in patches}
        if self._found is None:
            self._found = {}
            if self.range is not None:
                try:
                    self._found = self._pasts(self.range, patches, origins)
                except PatchqError as error:
                    self.range.failed = error.message
        found = {}
        for patch in patches:
            seen = [
                (self.recorded[key], head)
                for key, head in origins[patch.name].heads.items()
                if key in self.recorded
            ]
            doubt = self.doubts.get(patch.name)
            said = (*pulls.signals(seen), *((doubt,) if doubt else ()))
            known = Known(self._found.get(patch.name), said)
            if known != Known():
                found[patch.name] = known
        return found

    def _pasts(
        self, range_: Range, patches: Sequence[Patch], origins: Mapping[str, Origin]
    ) -> dict[str, Past]:
        changes = {patch.name: self._change(patch, origins[patch.name]) for patch in patches}
        changes = _with_notes(range_, patches, changes)
        units = _units(changes)
        replacing = {name: self._replacing(origins[name]) for name in changes}
        gone = [(patch, changes_of.change(files_of(patch))) for patch in self.retired]
        every = [*changes.values(), *(change for _, change in gone)]
        paths = {path for each in every for path in each.paths}
        self.names = names = moved(range_.commits, paths)
        told = words.relevant(
            range_.commits,
            paths | names.keys(),
            {number for each in changes.values() for number in each.numbers}
            | {number for numbers in replacing.values() for number in numbers},
        )
        chosen = [each.commit for each in told]
        log.bring(range_.store, chosen, offline=range_.offline)
        lines = log.lines(range_.store, chosen, changes_of.wanted(every))
        commits = history.Commits(told, lines)
        folder = self.config.series
        self.notes = tuple(note for each in gone for note in _taken_back(*each, commits, folder))
        found = {}
        for name, change in changes.items():
            past = history.look(change, commits) or Past()
            if len(units[name]) > 1 and past.landings:
                unit = changes_of.together([changes[each] for each in units[name]])
                whole = history.look(unit, commits)
                past = replace(past, unit=whole.share if whole else 0.0)
            if replacing[name] and (not past.landings or past.reverted or past.twin):
                other = replace(change, numbers=replacing[name], ids=())
                by = history.look(other, commits, by_lines=False)
                if by is not None and by.reverted is None:
                    past = replace(past, superseded=by.landings[-1])
            if past != Past():
                found[name] = past
        return landings.compared(range_, {patch.name: patch for patch in patches}, found, names)

    def _change(self, patch: Patch, origin: Origin) -> Change:
        merged = tuple(
            pull.merge_sha
            for key in origin.heads
            if (pull := self.recorded.get(key)) is not None and pull.merge_sha
        )
        title = words.title(patch.header.subject)
        ids = (*origin.ids, *merged)
        return changes_of.change(files_of(patch), origin.numbers, ids, title, origin.hints)

    def _replacing(self, origin: Origin) -> frozenset[int]:
        found = (self.recorded.get(key) for key in origin.heads)
        return frozenset(number for pull in found if pull for number in pull.replaced_by)


def _taken_back(patch: Patch, change: Change, commits: history.Commits, folder: str) -> list[str]:
    """That upstream took out what a retired patch had brought, in a sentence."""
    back = replace(change, added=change.removed, removed=change.added)
    past = history.look(back, commits)
    if past is None or past.reverted is not None or past.share < history.BACK:
        return []
    by = past.landings[-1]
    told = Cause(by.commit, by.pr, by.title, by.author, by.date).told
    said = f"{patch.file} was retired as upstream's, and upstream took it back: {told}"
    return [f"{said}. If it is still needed, import it again from {folder}/{RETIRED}"]


def _units(changes: Mapping[str, Change]) -> dict[str, list[str]]:
    """The patches of the same pull request, for each patch."""
    return {
        name: [
            other
            for other, its in changes.items()
            if other == name or (mine.numbers and its.numbers == mine.numbers)
        ]
        for name, mine in changes.items()
    }


def _with_notes(
    range_: Range, patches: Sequence[Patch], changes: Mapping[str, Change]
) -> dict[str, Change]:
    """With their notes, and as marks those that upstream adds in this range, and at one path only:
    a template has copies.
    """
    notes = {patch.name: twin.notes(files_of(patch)) for patch in patches}
    wanted = {oid for each in notes.values() for oid in each.values()} - {changes_of.EMPTY}
    added: dict[str, set[bytes]] = {}
    for commit in range_.commits:
        for its in commit.changes:
            if its.status == "A" and its.new_oid in wanted:
                added.setdefault(its.new_oid, set()).add(its.path)
    once = {oid for oid, paths in added.items() if len(paths) == 1}
    if once:
        args = ["ls-tree", "-r", "-z", "--format=%(objectname)", range_.old]
        once -= set(range_.store.git(args).out.decode().split("\0"))
    return {
        name: replace(
            its,
            notes=notes[name],
            marks={path: oid for path, oid in notes[name].items() if oid in once},
        )
        for name, its in changes.items()
    }
