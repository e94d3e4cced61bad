"""Hunk arithmetic against git's own three-way merge and diff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from patchq.carry import text
from patchq.carry.text import Gain, Gap
from patchq.gitstore.store import Store
from patchq.queue.diff import Atom
from tests.support.kit import hunks_between


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("store") / "s.git") as made:
        yield made


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a\n"]),
        (b"a\nb", [b"a\n", b"b"]),
        (b"a\r\nb\rc\n", [b"a\r\n", b"b\rc\n"]),
        (b"a\x0bb\x0cc\n\n", [b"a\x0bb\x0cc\n", b"\n"]),
        (b"\x1c\x85\xe2\x80\xa8\n", [b"\x1c\x85\xe2\x80\xa8\n"]),
    ],
)
def test_split(data: bytes, lines: list[bytes]) -> None:
    assert text.split(data) == lines


@given(st.binary(max_size=40) | st.text("a\r\n\x0b\x0c", max_size=20).map(str.encode))
def test_split_loses_nothing(data: bytes) -> None:
    lines = text.split(data)
    assert b"".join(lines) == data
    assert all(line.endswith(b"\n") for line in lines[:-1])
    assert all(line.count(b"\n") <= 1 for line in lines)


# The property: where arithmetic answers, it answers as git does

Edit = tuple[int, int, int]
"""Place, removed lines, added lines."""


@st.composite
def sides(draw: st.DrawFn) -> tuple[int, list[Edit], list[Edit], bool]:
    """Edits of both sides in one file of `size` distinct lines, with at least one line between
    any two of them, and whether the last line ends."""
    size = draw(st.integers(0, 14))
    ours: list[Edit] = []
    theirs: list[Edit] = []
    at = draw(st.integers(0, 2))
    while at <= size and len(ours) + len(theirs) < 6:
        removed = draw(st.integers(0, min(2, size - at)))
        added = draw(st.integers(0 if removed else 1, 3))
        draw(st.sampled_from([ours, theirs])).append((at, removed, added))
        at += removed + draw(st.integers(1, 4))
    return size, ours, theirs, draw(st.booleans())


def lines_of(size: int, ends: bool) -> list[bytes]:
    """Distinct lines: where a line could stand for another, two diffs would both be right."""
    lines = [b"base %d\n" % n for n in range(size)]
    if lines and not ends:
        lines[-1] = lines[-1][:-1]
    return lines


def atoms_for(edits: list[Edit], who: bytes) -> list[Atom]:
    return [
        Atom(at, at + removed, tuple(b"%s %d.%d\n" % (who, at, n) for n in range(added)))
        for at, removed, added in edits
    ]


def gaps_for(atoms: list[Atom]) -> list[Gap]:
    gaps, grown = [], 0
    for atom in atoms:
        start = atom.start + grown
        gaps.append(Gap(atom.start, atom.end, start, start + len(atom.new)))
        grown += len(atom.new) - (atom.end - atom.start)
    return gaps


def fresh_gaps(store: Store, old: bytes, new: bytes) -> list[Gap]:
    return [gap for _, gaps, _ in text.sections(store.diff_data(old, new)) for gap in gaps]


@settings(max_examples=60)
@given(sides())
@example((3, [(3, 0, 1)], [(0, 1, 0)], True))
@example((1, [], [(0, 1, 1)], False))
def test_shift_is_gits_merge(store: Store, case: tuple[int, list[Edit], list[Edit], bool]) -> None:
    size, ours, theirs, ends = case
    base = lines_of(size, ends or any(at + removed >= size for at, removed, _ in ours + theirs))
    # Without a newline an added line would grow together with the one before it.
    upstream = atoms_for(ours, b"ours")
    patch = atoms_for(theirs, b"theirs")
    new = text.replace(base, upstream)
    patched = text.replace(base, patch)

    put = text.shift(gaps_for(upstream), patch)

    assert put is not None
    moved, after = put
    result = text.replace(new, moved)
    merged = store.merge_file(b"".join(base), b"".join(new), b"".join(patched))
    assert (merged.data, merged.conflicts) == (b"".join(result), 0)
    assert after == fresh_gaps(store, b"".join(patched), b"".join(result))
    assert gaps_for(upstream) == fresh_gaps(store, b"".join(base), b"".join(new))


@settings(max_examples=40)
@given(
    st.integers(2, 12),
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 2)),
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 2)),
)
@example(6, (2, 1, 1), (3, 1, 1))
@example(6, (2, 0, 1), (2, 0, 1))
@example(6, (3, 0, 1), (2, 1, 1))
def test_one_edit_a_side(store: Store, size: int, ours: Edit, theirs: Edit) -> None:
    """Near each other: arithmetic answers where git sees no conflict and nothing touches."""
    base = lines_of(size, True)
    (upstream,) = atoms_for([clip(ours, size)], b"ours")
    (patch,) = atoms_for([clip(theirs, size)], b"theirs")
    new, patched = text.replace(base, [upstream]), text.replace(base, [patch])

    put = text.shift(gaps_for([upstream]), [patch])

    apart = upstream.end < patch.start or patch.end < upstream.start
    assert (put is not None) == apart
    merged = store.merge_file(b"".join(base), b"".join(new), b"".join(patched))
    if put is not None:
        assert (merged.data, merged.conflicts) == (b"".join(text.replace(new, put[0])), 0)
    elif upstream.new != patch.new:
        assert merged.conflicts


def clip(edit: Edit, size: int) -> Edit:
    at = min(edit[0], size)
    removed = min(edit[1], size - at)
    return at, removed, edit[2] or (0 if removed else 1)


# The parts


def test_sections_of_a_diff_of_trees() -> None:
    diff = (
        b"diff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\n+++ b/a.txt\n"
        b"@@ -3 +3,2 @@ def f():\n-x\n+y\n+z\n@@ -9,0 +11 @@\n+@@ not a head\n"
        b'diff --git "a/\\303\\251" "b/\\303\\251"\n--- x\n+++ y\n@@ -1,2 +0,0 @@\n-a\n-b\n'
        b"diff --git a/mode b/mode\nold mode 100644\nnew mode 100755\n"
    )
    found = [(path, gaps) for path, gaps, _ in text.sections(diff)]
    assert found == [
        (b"a.txt", [Gap(2, 3, 2, 4), Gap(9, 9, 10, 11)]),
        ("é".encode(), [Gap(0, 2, 0, 0)]),
        (b"mode", []),
    ]
    assert b"".join(part for _, _, part in text.sections(diff)) == diff
    assert list(text.sections(b"")) == []


def test_sections_of_two_files_of_other_names() -> None:
    ((path, gaps, _),) = text.sections(b"diff --git a/tmp/old b/tmp/new\n@@ -1 +1 @@\n-a\n+b\n")
    assert path == b"a/tmp/old b/tmp/new"
    assert gaps == [Gap(0, 1, 0, 1)]


SECTION = (
    b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,4 @@\n-a\n-b\n+b\n+c\r\n+c\r\n+def g():\n"
)


@pytest.mark.parametrize(
    "gain", [Gain(SECTION), Gain(None, b"a\nb\nx\n", b"b\nx\nc\nc\r\ndef g():\n")]
)
def test_gain(gain: Gain) -> None:
    assert gain.lines == Counter({b"c": 2, b"def g():": 1})
    assert gain.shared(Counter({b"c": 3, b"b": 1})) == 2
    assert gain.shared(Counter({b"b": 1})) == 0
    assert gain.shared(Counter()) == 0
    assert gain.defines([b"f", b"g"])
    assert not gain.defines([b"f"])
    assert not gain.defines([])


def test_gain_of_nothing() -> None:
    assert Gain(None).lines == Counter()
    assert Gain(None).shared(Counter({b"": 1})) == 0


def test_fits_and_replace() -> None:
    old = text.split(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    new = text.split(b"0\n1\n2\n3\n4\n6\n7\n8\nnine\n")
    hunks = hunks_between(old, new, 1)
    assert len(hunks) == 3
    assert text.fits(old, hunks)
    assert text.replace(old, text.atoms_of(hunks)) == new
    assert not text.fits(old[1:], hunks)
    assert not text.fits(old[:-1], hunks)
    assert not text.fits([], hunks)
    assert text.fits(old, ())
    assert text.replace(old, []) == old


def test_same_places() -> None:
    other = [b"a\n", b"X\n", b"c\n", b"new\n"]
    gaps = [Gap(1, 2, 1, 2), Gap(3, 3, 3, 4)]
    same = [Atom(1, 2, (b"X\n",)), Atom(3, 3, (b"new\n",))]
    assert text.same_places(gaps, same, other) == 2
    others = [Atom(1, 2, (b"Y\n",)), Atom(0, 2, (b"X\n",)), Atom(2, 2, (b"new\n",))]
    assert text.same_places(gaps, others, other) == 0
    assert text.same_places([], same, other) == 0


def test_block_and_counted() -> None:
    atom = Atom(0, 0, (b"\n", b"a\r\n", b" \t\n", b"a\n", b"last", b"\n"))
    assert text.block(atom) == b"a\r\n \t\na\nlast"
    assert text.counted([atom, atom]) == Counter({b"a": 4, b"last": 2})


@pytest.mark.parametrize(
    ("data", "stands"),
    [
        (b"a\ndef f():\n    return x\nb\n", True),
        (b"def f():\n    return x", True),
        (b"async def f():\n    return x\n", False),
        (b"def f():\n    return xy\n", False),
    ],
)
def test_a_block_stands_as_whole_lines(data: bytes, stands: bool) -> None:
    assert text.holds(data, b"def f():\n    return x") == stands


TEXTS = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"x\r\n"]), max_size=9).map(
    b"".join
)


@settings(max_examples=150)
@given(TEXTS, TEXTS, TEXTS)
@example(b"", b"a\n", b"b\n")
@example(b"a\nb\nc\nb\na\n", b"a\nx\r\nc\nc\na\n", b"a\nb\nb\nc\nb\n")
def test_both_sides_of_a_merge_are_gits(
    store: Store, base: bytes, ours: bytes, theirs: bytes
) -> None:
    """One merge with markers says what `--ours` and `--theirs` give."""
    marked = store.merge_file(base, ours, theirs, labels=("v2", "v1", "0001-x.patch"))
    if marked.conflicts:
        assert text.sides(marked.data, (base, ours, theirs)) == (
            store.merge_file(base, ours, theirs, favour="ours").data,
            store.merge_file(base, ours, theirs, favour="theirs").data,
        )


@pytest.mark.parametrize(
    ("ours", "why"),
    [
        (b"a", "no line end at the end"),
        (b"Title\n=======\n", "a line like a marker"),
        (b"<<<<<<< HEAD\n", "a marker of its own"),
    ],
)
def test_what_cannot_be_read_off_markers(store: Store, ours: bytes, why: str) -> None:
    marked = store.merge_file(b"b\n", ours, b"c\n")
    assert marked.conflicts
    assert text.sides(marked.data, (b"b\n", ours, b"c\n")) is None, why
