"""What a range of upstream's commits says of each patch: landed, taken back, brought again.

Pure. Every commit is compared with the patch by the lines that it adds and removes; the words of
commits name pull requests, reverts and picks. Both together tell a story, of which the last
chapter counts: a revert takes the landing back, a later landing takes the revert back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from patchq.gitstore.log import Lines
from patchq.judge.change import FEW, Change
from patchq.judge.commits import Told
from patchq.judge.model import Landing, Past
from patchq.judge.twin import added_as, restated, shares_a_path, withdrawn

HALF = 0.5
"""Share of a patch's lines from which a commit may be its landing."""
SOME = 0.25
"""Share from which it is where it has the patch's title."""
BACK = 0.85
"""Share of what landed that a commit without words must take out to be a revert."""
ONLY = 0.9
"""Share of what such a commit changes that must be that."""
NOTHING = Lines({}, {})


@dataclass
class _Story:
    """How far the walk has come with one patch."""

    landing: Told | None = None
    hits: int = 0
    added: dict[bytes, int] = field(default_factory=dict)
    removed: dict[bytes, int] = field(default_factory=dict)
    named: str = ""
    reverted: Told | None = None
    taken_out: bool = False
    twin: bytes = b""

    @property
    def standing(self) -> int:
        return sum(self.added.values()) + sum(self.removed.values())


@dataclass(frozen=True)
class Commits:
    """Upstream's commits, oldest first, with what each did to the lines of all patches."""

    told: Sequence[Told]
    lines: Mapping[str, Lines]

    @cached_property
    def places(self) -> dict[str, int]:
        return {each.id: place for place, each in enumerate(self.told)}

    @cached_property
    def _by_line(self) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = {}
        for place, each in enumerate(self.told):
            seen = self.lines.get(each.id, NOTHING)
            for side in (seen.added, seen.removed):
                for line in side:
                    found.setdefault(line, []).append(place)
        return found

    @cached_property
    def _by_path(self) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = {}
        for place, each in enumerate(self.told):
            for changed in each.commit.changes:
                found.setdefault(changed.path, []).append(place)
        return found

    @cached_property
    def _by_number(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for place, each in enumerate(self.told):
            if each.own is not None:
                found.setdefault(each.own, []).append(place)
        return found

    @cached_property
    def _with_words(self) -> list[int]:
        """The commits whose words can be about another one."""
        return [
            place
            for place, each in enumerate(self.told)
            if each.is_revert or each.is_again or each.reverted_ids
        ]

    def about(self, patch: Change) -> list[Told]:
        """Those that have anything to do with a patch."""
        places = set(self._with_words)
        for side in (patch.added, patch.removed):
            for line in side.keys() & self._by_line.keys():
                places.update(self._by_line[line])
        for note in patch.marks:
            places.update(self._by_path.get(note, ()))
        for number in patch.numbers:
            places.update(self._by_number.get(number, ()))
        if patch.ids:
            places.update(p for oid, p in self.places.items() if oid.startswith(patch.ids))
        return [self.told[place] for place in sorted(places)]


def look(patch: Change, commits: Commits, *, by_lines: bool = True) -> Past | None:
    """What upstream's commits say of one patch; None where they say nothing.

    A patch of several pull requests has landed where all of them have. Without `by_lines` a
    commit counts only where it names one of them.
    """
    if len(patch.numbers) < 2 or not by_lines:
        stories = [_walk(patch, commits, patch.numbers, by_lines=by_lines)]
        return _past(stories, patch, commits)
    stories = [_walk(patch, commits, {number}, by_lines=False) for number in sorted(patch.numbers)]
    if not any(story.landing for story in stories):
        stories = [_walk(patch, commits, ())]
    return _past(stories, patch, commits)


def _walk(
    patch: Change, commits: Commits, numbers: Collection[int], *, by_lines: bool = True
) -> _Story:
    story = _Story()
    for each in commits.about(patch):
        seen = commits.lines.get(each.id, NOTHING)
        hits = patch.forward(seen)
        back = patch.inverse(seen)
        stands = story.landing is not None and story.reverted is None
        if stands:
            if _takes_back(each, story, patch, numbers, back, hits, seen):
                story.reverted = each
                continue
            _follow(story, each, seen)
        named = _names(each, patch, numbers, story, hits)
        alike = (
            by_lines
            and hits >= max(HALF * patch.size, min(FEW, patch.size), 1)
            and hits > back
            and (story.reverted is None or hits >= BACK * story.hits)
        )
        twin = added_as(each, patch.marks, patch.paths) if by_lines else b""
        if stands:
            # The one that names it is the landing, else the one with most of its lines.
            more = hits > story.hits or (bool(twin) and hits == story.hits)
            better = not story.named and (bool(named) or ((alike or bool(twin)) and more))
        else:
            better = bool(named) or alike or bool(twin)
        if better:
            _land(story, each, patch, seen, hits, named)
            story.twin = twin
            story.reverted = None
    return story


def _land(story: _Story, each: Told, patch: Change, seen: Lines, hits: int, named: str) -> None:
    story.landing, story.hits, story.named, story.taken_out = each, hits, named, False
    story.added = _both(patch.added, seen.added)
    story.removed = _both(patch.removed, seen.removed)


def _follow(story: _Story, each: Told, seen: Lines) -> None:
    """What later commits leave of the landing's lines, and of what is known of it."""
    if story.landing and story.twin and withdrawn(each, story.landing, story.twin) is None:
        story.twin = b""
    before = story.standing
    for mine, gone in ((story.added, seen.removed), (story.removed, seen.added)):
        for line in mine.keys() & gone.keys():
            mine[line] = max(0, mine[line] - gone[line])
    if before - story.standing > HALF * seen.size:
        story.taken_out = True


def _both(mine: Mapping[bytes, int], theirs: Mapping[bytes, int]) -> dict[bytes, int]:
    return {line: min(mine[line], theirs[line]) for line in mine.keys() & theirs.keys()}


def _names(each: Told, patch: Change, numbers: Collection[int], story: _Story, hits: int) -> str:
    """By which words a commit is the landing; empty where by none."""
    if each.own in numbers:
        return f"#{each.own}"
    if each.is_revert:
        return ""
    if any(each.id.startswith(oid) for oid in patch.ids):
        return "the commit that the patch names"
    again = each.again & set(numbers)
    if again:
        return f"brings #{min(again)} again"
    if story.reverted is not None and story.reverted.own in each.reverted:
        return f"takes the revert #{story.reverted.own} back"
    if story.reverted is not None and _is_any(story.reverted.id, each.reverted_ids):
        return "takes the revert back"
    if not hits:
        return ""
    enough = hits >= SOME * patch.size
    if each.own in patch.hints and enough:
        return f"#{each.own}"
    picked = set(each.others) & {*numbers, *(patch.hints if enough else ())}
    if picked:
        return f"picks #{min(picked)}"
    if any(oid.startswith(source) for source in each.picked for oid in patch.ids):
        return "picked from the commit that the patch names"
    if " " in patch.title and each.title == patch.title and enough:
        return "the same title"
    return ""


def _takes_back(
    each: Told,
    story: _Story,
    patch: Change,
    numbers: Collection[int],
    back: int,
    hits: int,
    seen: Lines,
) -> bool:
    landing = story.landing
    assert landing is not None
    if _is_any(landing.id, each.reverted_ids):
        return True
    known = {*numbers, *({landing.own} if landing.own else ())}
    if story.twin and withdrawn(each, landing, story.twin):
        return True
    if each.reverted & known:
        # The words alone could mean another part of a pull request.
        rewritten = bool(story.twin) and shares_a_path(each, landing)
        return back > hits or not story.hits or rewritten
    if each.reverted_title and each.reverted_title == landing.title:
        return True
    if back <= hits or back < min(FEW, story.hits) or not story.hits:
        return False
    if each.is_revert:
        return back >= HALF * story.hits
    # Without a word for it: all of it, and hardly anything else. What is rewritten is no revert.
    return back >= BACK * story.hits and back >= ONLY * seen.size


def _is_any(oid: str, prefixes: Iterable[str]) -> bool:
    return any(oid.startswith(prefix) for prefix in prefixes)


def _past(stories: Sequence[_Story], patch: Change, commits: Commits) -> Past | None:
    landed = [story for story in stories if story.landing is not None]
    if not landed:
        return None
    good = [story for story in landed if story.reverted is None]
    size = max(patch.size, 1)
    reverts = [story.reverted for story in landed if story.reverted is not None]
    landings = [
        _landing(story.landing, story.hits / size) for story in good or landed if story.landing
    ]
    touched = {c.path for story in good if story.landing for c in story.landing.commit.changes}
    return Past(
        tuple(sorted(landings, key=lambda each: commits.places[each.commit])),
        share=min(1.0, sum(story.hits for story in good) / size),
        stands=min(1.0, sum(story.standing for story in good) / size),
        lines=patch.size,
        named=", ".join(story.named for story in good or landed if story.named),
        whole=len(good) == len(stories),
        rewritten=not any(story.taken_out for story in good),
        reverted=_landing(reverts[-1], 0.0) if reverts and not good else None,
        paths=frozenset(touched & patch.paths),
        restated=restated(patch.notes, [s.landing for s in good if s.landing]),
        twin=good[0].twin if len(good) == 1 else b"",
    )


def _landing(each: Told, share: float) -> Landing:
    commit = each.commit
    pr = f"#{each.own}" if each.own else None
    return Landing(commit.id, pr, commit.subject, commit.author, commit.date, share)
