"""A series in another order, or in part: what may stand where, line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.carry import replay
from patchq.carry.replay import Chain, Replay
from patchq.queue.patch import Patch
from tests.support.chains import PATHS, Content, Story, diff, stories
from tests.support.kit import made

BASE: Content = {b"a.txt": tuple(b"%d\n" % n for n in range(1, 21))}


def chain(base: Content, patches: Sequence[Patch]) -> Chain:
    files = {
        path: replay.lined("100644", b"".join(base[path])) if path in base else None
        for path in (*PATHS, b"a", b"a/b", b"new")
    }
    return replay.chain(files, patches)


def again(known: Chain, patches: Sequence[Patch]) -> Replay:
    return replay.replay(known, [(patch, known.changes[patch.name]) for patch in patches])


def content(known: Chain, done: Replay) -> Content:
    now = dict(known.base)
    for placed in done.placed:
        now |= placed.writes
    return {path: tuple(file.lines) for path, file in now.items() if file is not None}


def told(done: Replay) -> list[tuple[str, bytes, tuple[str, ...]]]:
    return [(clash.patch, clash.path, clash.others) for clash in done.clashes]


def edited(lines: Sequence[bytes], **edits: bytes) -> Content:
    """The base with lines (`_7=b"seven\\n"`) exchanged."""
    return {b"a.txt": tuple(edits.get(f"_{line.decode().strip()}", line) for line in lines)}


def series(*states: Content) -> list[Patch]:
    return [
        made(number, f"p{number}", diff(old, new))
        for number, (old, new) in enumerate(pairwise((BASE, *states)), 1)
    ]


LINES = BASE[b"a.txt"]
ONE = edited(LINES, _5=b"five\n")
TWO = edited(ONE[b"a.txt"], _8=b"eight\n")
THREE = edited(TWO[b"a.txt"], _9=b"nine\n")


def test_nothing_changes_where_nothing_moves() -> None:
    patches = series(ONE, TWO, THREE)
    known = chain(BASE, patches)
    done = again(known, patches)
    assert done.clashes == ()
    assert [placed.rewritten for placed in done.placed] == [False] * 3
    assert content(known, done) == THREE


def test_patches_whose_contexts_only_meet_are_exchanged() -> None:
    one, two, _ = patches = series(ONE, TWO, THREE)
    known = chain(BASE, patches)
    done = again(known, [two, one])
    assert done.clashes == ()
    assert [placed.rewritten for placed in done.placed] == [True, True]
    assert content(known, done) == TWO


def test_patches_that_touch_are_not() -> None:
    one, two, three = patches = series(ONE, TWO, THREE)
    assert told(again(chain(BASE, patches), [one, three, two])) == [("p3", b"a.txt", ("p2",))]


def test_all_that_need_a_patch_are_told_at_once() -> None:
    """The third needs the second, which needs the first: both, and each with its reason."""
    new = {**BASE, b"new": (b"one\n", b"two\n")}
    more = {**BASE, b"new": (b"one\n", b"2\n")}
    last = {**BASE, b"new": (b"one\n", b"zwei\n")}
    _, two, three = patches = series(new, more, last)
    done = again(chain(BASE, patches), [two, three])
    assert told(done) == [("p2", b"new", ("p1",)), ("p3", b"new", ("p1", "p2"))]
    assert {clash.why for clash in done.clashes} == {"the file is not there"}


def test_a_file_where_a_folder_stands() -> None:
    base: Content = {b"a": (b"x\n",)}
    folder: Content = {b"a/b": (b"y\n",)}
    one, two = made(1, "p1", diff(base, {})), made(2, "p2", diff({}, folder))
    known = chain(base, [one, two])
    assert told(again(known, [two]))[0][:2] == ("p2", b"a/b")
    assert content(known, again(known, [one, two])) == folder


def test_a_file_that_is_removed_must_be_the_one_that_was() -> None:
    _, two = patches = [*series(ONE), made(2, "p2", diff(ONE, {}))]
    assert told(again(chain(BASE, patches), [two])) == [("p2", b"a.txt", ("p1",))]


def mode_patch(number: int, old: str, new: str) -> Patch:
    text = f"diff --git a/a.txt b/a.txt\nold mode {old}\nnew mode {new}\n"
    return made(number, f"p{number}", text.encode())


def test_modes() -> None:
    patches = [mode_patch(1, "100644", "100755"), *series(ONE), mode_patch(3, "100755", "100644")]
    patches[1] = made(2, "p2", diff(BASE, ONE).replace(b" 100644\n", b" 100755\n"))
    one, two, three = patches
    known = chain(BASE, patches)
    assert content(known, again(known, [two])) == ONE
    assert [p.rewritten for p in again(known, [two, one, three]).placed] == [True, True, False]
    (clash,) = again(known, [three]).clashes
    assert (clash.patch, clash.why) == ("p3", "it would change nothing any more")


@given(stories(), st.randoms(use_true_random=False))
def test_any_order_that_holds_gives_the_same_tree(story: Story, random: Random) -> None:
    known = chain(story.base, story.patches)
    order = list(story.patches)
    random.shuffle(order)
    done = again(known, order)
    if not done.clashes and story.patches:
        assert content(known, done) == story.after[-1]


@given(stories(), st.data())
def test_without_a_patch_its_lines_are_gone_and_no_others(
    story: Story, data: st.DataObject
) -> None:
    """No line stands twice in these stories, so that counting lines tells."""
    if not story.patches:
        return
    known = chain(story.base, story.patches)
    place = data.draw(st.integers(0, len(story.patches) - 1))
    rest = [patch for at, patch in enumerate(story.patches) if at != place]
    done = again(known, rest)
    if done.clashes:
        return
    states = [story.base, *story.after]
    wanted: Counter[bytes] = Counter(line for lines in story.base.values() for line in lines)
    for at, (old, new) in enumerate(pairwise(states)):
        if at != place:
            wanted.update(line for lines in new.values() for line in lines)
            wanted.subtract(line for lines in old.values() for line in lines)
    got = Counter(line for lines in content(known, done).values() for line in lines)
    assert got == +wanted


@given(stories(unique=False))
def test_lines_that_are_alike_are_kept_apart(story: Story) -> None:
    """Left out from the top down, each patch gives the state before it."""
    known = chain(story.base, story.patches)
    for count in range(len(story.patches), -1, -1):
        done = again(known, story.patches[:count])
        assert done.clashes == ()
        assert content(known, done) == (story.after[count - 1] if count else story.base)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_held_patch_shares_the_lines_that_stayed(count: int) -> None:
    now = replay.lined("100644", b"".join(LINES[count:]))
    gaps = [replay.Gap(0, count, 0, 0)] if count else []
    found = replay.aligned(b"".join(LINES), now, gaps, "100644")
    assert found.data == b"".join(LINES)
    assert [id(line) for line in found.lines[count:]] == [id(line) for line in now.lines]
    assert replay.between(found.lines, now.lines) == gaps
