"""Which patch needs which: what holds all that it needs applies without the rest."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.carry import replay
from patchq.work.graph import Need, closed, needed
from tests.support.chains import PATHS, Content, Story, diff, stories
from tests.support.history import git
from tests.support.kit import made

LINES = tuple(b"%d\n" % n for n in range(1, 31))


def needs(story: Story) -> tuple[Need, ...]:
    lengths = {path: len(story.base[path]) if path in story.base else None for path in PATHS}
    return needed(lengths, story.patches)


def told(base: Content, *states: Content) -> set[tuple[str, str, str]]:
    patches, old = [], base
    for number, new in enumerate(states, 1):
        patches.append(made(number, f"p{number}", diff(old, new)))
        old = new
    found = needs(Story(base, tuple(patches), tuple(states)))
    return {(need.patch, need.other, need.kind) for need in found}


def lines(*edits: tuple[int, bytes]) -> Content:
    """The base with lines (from 1) exchanged; an empty text removes one."""
    new = dict(edits)
    return {b"a.txt": tuple(x for n, line in enumerate(LINES, 1) if (x := new.get(n, line)))}


def test_what_is_far_apart_needs_nothing() -> None:
    assert told(lines(), lines((3, b"x\n")), lines((3, b"x\n"), (20, b"y\n"))) == set()


def test_a_line_and_a_context() -> None:
    one, two = (5, b"five\n"), (8, b"eight\n")
    assert told(lines(), lines(one), lines(one, two)) == {("p2", "p1", "context")}
    assert told(lines(), lines(one), lines((5, b"5!\n"))) == {("p2", "p1", "lines")}
    assert told(lines(), lines(one), lines(one, (6, b"six\n"))) == {("p2", "p1", "lines")}


def test_removed_lines_are_needed_where_the_rest_met() -> None:
    gone = (5, b"")
    assert told(lines(), lines(gone), lines(gone, (7, b"7!\n"))) == {("p2", "p1", "context")}
    assert told(lines(), lines(gone), lines(gone, (6, b"6!\n"))) == {("p2", "p1", "lines")}
    assert told(lines(), lines(gone), lines(gone, (10, b"10!\n"))) == set()


def test_a_change_at_the_edge_needs_the_edge() -> None:
    """git looks for the hunk at the start, or the end, of the file only."""
    first, last = (1, b""), (30, b"")
    assert told(lines(), lines(first), lines(first, (3, b"x\n"))) == {("p2", "p1", "context")}
    assert told(lines(), lines(last), lines(last, (29, b"x\n"))) == {("p2", "p1", "lines")}


def test_a_file() -> None:
    new: Content = {**lines(), b"b.txt": (b"x\n", b"y\n")}
    more: Content = {**lines(), b"b.txt": (b"x\n", b"y\n", b"z\n")}
    assert told(lines(), new, more, lines()) == {
        ("p2", "p1", "file"),
        ("p3", "p1", "file"),
        ("p3", "p2", "file"),
    }


def test_closed() -> None:
    chain = (Need("c", "b", "lines", b"x"), Need("b", "a", "file", b"x"))
    assert closed(["c"], chain) == {"a", "b", "c"}
    assert closed(["a"], chain) == {"a"}


@given(st.one_of(stories(), stories(unique=False)), st.data())
def test_a_closed_set_stands_alone(story: Story, data: st.DataObject) -> None:
    names = [patch.name for patch in story.patches]
    chosen = closed(
        data.draw(st.sets(st.sampled_from(names), max_size=2)) if names else (), needs(story)
    )
    files = {
        path: replay.lined("100644", b"".join(story.base[path])) if path in story.base else None
        for path in PATHS
    }
    known = replay.chain(files, story.patches)
    kept = [(p, known.changes[p.name]) for p in story.patches if p.name in chosen]
    assert replay.replay(known, kept).clashes == ()


@settings(max_examples=120)
@given(story=stories(), data=st.data())
def test_git_applies_a_closed_set_as_it_stands_in_the_files(
    story: Story, data: st.DataObject
) -> None:
    """Exact context, the patches' own texts: only their places may differ."""
    names = [patch.name for patch in story.patches]
    chosen = closed(
        data.draw(st.sets(st.sampled_from(names), max_size=2)) if names else (), needs(story)
    )
    with tempfile.TemporaryDirectory() as folder:
        for path, content in story.base.items():
            (Path(folder) / path.decode()).write_bytes(b"".join(content))
        for patch in story.patches:
            if patch.name in chosen:
                git(Path(folder), "apply", "--whitespace=nowarn", input=patch.text)


@given(stories())
def test_what_needs_lines_does_not_stand_without_them(story: Story) -> None:
    files = {
        path: replay.lined("100644", b"".join(story.base[path])) if path in story.base else None
        for path in PATHS
    }
    known = replay.chain(files, story.patches)
    wrote = {
        (need.patch, need.other): need for need in needs(story) if need.kind in ("lines", "file")
    }
    for patch, other in wrote:
        without = [(p, known.changes[p.name]) for p in story.patches if p.name != other]
        clashes = {clash.patch for clash in replay.replay(known, without).clashes}
        assert clashes, (patch, other)
