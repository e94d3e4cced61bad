"""Notes: which new files tell a patch from all others, and what their landing left of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.gitstore.log import Commit
from patchq.gitstore.store import Change
from patchq.judge.change import EMPTY
from patchq.judge.commits import Told
from patchq.judge.model import FileSeen, Landing, Past
from patchq.judge.twin import (
    added_as,
    brought,
    documents,
    left_over,
    notes,
    restated,
    withdrawn,
)
from patchq.queue.diff import parse
from tests.support.diffs import OID, diff, new

NOTE = b"changelog/7.bugfix.rst"
SAYS = "Fixed the knobs, which are now read in order."


def told(*changes: tuple[str, bytes]) -> Told:
    """A commit with (status, path) for each file that it changes."""
    made = tuple(
        Change(status, path, path, "100644", "100644", "3" * 40, OID) for status, path in changes
    )
    return Told(Commit("a" * 40, ("b" * 40,), "Ada", "2026-10-01", "Knobs (#7)", "", made))


LANDING = told(("A", NOTE), ("M", b"a.py"), ("M", b"b.py"))


@pytest.mark.parametrize(
    ("lines", "is_note"),
    [
        ([SAYS], True),
        ([SAYS, "", "-- by :user:`ada`"], True),
        ([":func:`knob` of a file is now in order"], True),
        (["* read the knobs of the file in their order"], True),
        (["Fix the collection of `knobs.cached_knob` objects."], True),
        (["Don't read ``knobs`` (see :issue:`7`), they're out-of-order."], True),
        (["Gefixt: Drehknöpfe werden nun der Reihe nach gelesen"], True),
        ([], False),
        (["Fixed."], False),
        (["knobs = [read(knob) for knob in file]"] * 9, False),
        (["# Read the knobs of the file in order", "import knobs", "knobs.read()"], False),
        (["1 2 3 4 5 6 7", "a, b"], False),
    ],
)
def test_notes_are_sentences(lines: list[str], is_note: bool) -> None:
    assert notes([new("docs/7.rst", *lines)] if lines else []) == (
        {b"docs/7.rst": OID} if is_note else {}
    )


@pytest.mark.parametrize(
    ("path", "is_note"),
    [
        ("news/7.trivial.rst", True),
        ("newsfragments/+12AE57EC-683C.misc.md", True),
        ("README.md", False),
        ("docs/index.rst", False),
        ("docs/conf.d/index.rst", False),
        ("requirements.dev.txt", False),
        ("CMakeLists.txt", False),
        ("a/__init__.py", False),
        ("py.typed", False),
        ("news/.gitkeep", False),
        ("news/.gitkeep.rst", False),
    ],
)
def test_an_empty_fragment_says_all_by_its_name(path: str, is_note: bool) -> None:
    """Any other empty file may be there for its own sake."""
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\nindex {'0' * 40}..{EMPTY}\n"
    assert notes(parse(head.encode(), "test")) == ({path.encode(): EMPTY} if is_note else {})


@pytest.mark.parametrize("path", ["LICENSE", "third_party/x/Licence.txt", "COPYING", "NOTICE.md"])
def test_a_licence_is_no_note(path: str) -> None:
    assert notes([new(path, SAYS)]) == {}


def test_only_new_files_are_notes() -> None:
    assert notes([diff("a.rst", f" before\n-gone\n+{SAYS}\n after\n")]) == {}


def test_the_commit_that_adds_it() -> None:
    paths = (NOTE, b"a.py")
    assert added_as(LANDING, {NOTE: OID}, paths) == NOTE
    assert added_as(LANDING, {NOTE: "4" * 40}, paths) == b""
    assert added_as(LANDING, {}, paths) == b""
    assert added_as(told(("M", NOTE), ("M", b"a.py")), {NOTE: OID}, paths) == b""
    assert added_as(told(("A", NOTE), ("M", b"other.py")), {NOTE: OID}, paths) == b""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([("D", NOTE), ("M", b"a.py"), ("M", b"b.py")], True),
        ([("D", NOTE), ("M", b"a.py")], True),
        ([("D", NOTE), ("M", b"a.py"), ("M", b"c.py")], None),
        ([("D", NOTE), ("D", b"changelog/8.rst"), ("M", b"CHANGES.rst")], False),
        ([("D", NOTE)], False),
        ([("M", NOTE), ("M", b"a.py"), ("M", b"b.py")], False),
        ([("M", b"a.py"), ("M", b"b.py")], False),
    ],
)
def test_who_takes_it_back(changes: list[tuple[str, bytes]], said: bool | None) -> None:
    assert withdrawn(told(*changes), LANDING, NOTE) is said


TAIL = " def after():\n     pass\n"
OURS = " def before():\n+    read(knobs)\n" + TAIL
THEIRS = " def before():\n+    for knob in knobs:\n+        ask(knob)\n" + TAIL


@pytest.mark.parametrize(
    ("mine", "theirs", "lines"),
    [
        ([OURS], [THEIRS], 0),
        ([" a_line\n-the_line = 1\n+the_line = 2\n b\n"], [" x_line\n-the_line = 1\n+three\n"], 0),
        ([OURS, " here_is\n+more\n another\n"], [THEIRS + "+\n+z\n"], 1),
        ([OURS, " here_is\n-more = 1\n another\n"], [THEIRS], 1),
        ([" }\n+read(knobs)\n {\n"], [" }\n+ask()\n {\n"], 1),
        ([" the_last = 1\n+read(knobs)\n"], [" the_last = 1\n+ask(knobs)\n"], 0),
    ],
    ids=["between", "same line", "more", "less", "brackets", "at the end"],
)
def test_places(mine: list[str], theirs: list[str], lines: int) -> None:
    assert left_over([diff("a.txt", *mine)], [diff("a.txt", *theirs)]) == {b"a.txt": lines}


def test_more_than_the_landing_has() -> None:
    more = OURS.replace("+    read(knobs)\n", "+    read(knobs)\n" * 3)
    assert left_over([diff("a.txt", more)], [diff("a.txt", THEIRS)]) == {}


def test_what_the_landing_leaves_alone() -> None:
    assert left_over([diff("b.txt", OURS)], [diff("a.txt", THEIRS)]) == {}
    assert left_over([new("a.txt", "one", "two")], [diff("a.txt", THEIRS)]) == {}


def test_a_new_file_in_other_words() -> None:
    mine, theirs = new("test_knobs.py", "one"), new("test_knobs.py", "two", "three")
    assert left_over([mine], [theirs]) == {b"test_knobs.py": 0}
    assert left_over([theirs], [mine]) == {}


IMPORTS = (
    " import re\n-from math import inf\n-from math import nan\n+from math import inf, nan\n x\n"
)


@pytest.mark.parametrize(
    ("path", "imports", "lines"),
    [
        ("a.py", IMPORTS, 0),
        ("a.py", IMPORTS.replace("+from math import inf, nan", "+from math import inf, pi"), 3),
        ("a.py", IMPORTS.replace("-from math import nan", "-from cmath import nan"), 3),
        ("a.py", IMPORTS.replace("+from math import inf, nan", "+from math import nan"), 3),
        ("a.txt", IMPORTS, 3),
    ],
    ids=["reordered", "another name", "another module", "one less", "no Python"],
)
def test_the_order_of_imports_is_nothing(path: str, imports: str, lines: int) -> None:
    theirs = diff(path, THEIRS.replace("ask(knob)\n", "ask(knob)\n+        wait()\n"))
    assert left_over([diff(path, imports, OURS)], [theirs]) == {path.encode(): lines}


def test_a_note_in_other_words() -> None:
    landing = told(("A", b"changelog/7.misc.rst"), ("A", b"news/8.rst"), ("M", b"changelog/9.rst"))
    known = dict.fromkeys([NOTE, b"news/8.rst", b"changelog/9.rst", b"news/7.rst"], OID)
    assert restated(known, [landing]) == {NOTE, b"news/8.rst"}
    assert restated(known, []) == frozenset()


def test_an_empty_note_among_others() -> None:
    """Nothing of it is left where the landing adds a fragment of its own to the same folder."""
    added = ["news/8.bugfix.rst", "docs/9.misc.md", "misc/index.rst"]
    landing = told(*(("A", path.encode()) for path in added), ("M", b"old/9.misc.rst"))
    known = dict.fromkeys(
        [b"news/7.trivial.rst", b"docs/7.misc.rst", b"misc/7.misc.rst", b"old/7.misc.rst"], EMPTY
    )
    assert restated(known, [landing]) == {b"news/7.trivial.rst"}


def test_documents() -> None:
    files = [new("docs/7.rst", "Fixed."), new("knobs.py", "knobs = 1"), diff("a.md", "-1\n+2\n")]
    long = new("docs/knobs.rst", *(f"knob_{number} = {number}" for number in range(11)))
    note = new("news/7.feature.rst", *(f"knob_{number} = {number}" for number in range(11)))
    assert documents([*files, long, note]) == {b"docs/7.rst", b"news/7.feature.rst"}


TORN = FileSeen(b"a.py", b"a.py", "conflict", kind="content")
KNOWN = Past(
    (Landing("a" * 40, "#7", "Knobs (#7)", "Ada", "2026-10-01", 0.1),),
    twin=NOTE,
    loose={NOTE: 0, b"a.py": 0},
)


@given(
    st.sampled_from(["clean", "empty", "conflict"]),
    st.sampled_from(["content", "binary", "deleted upstream"]),
    st.dictionaries(st.sampled_from([b"a.py", b"b.py"]), st.integers(0, 2)),
)
def test_nothing_is_brought_without_its_place(
    merge: str, kind: str, loose: dict[bytes, int]
) -> None:
    seen = FileSeen(b"a.py", b"a.py", merge, kind=kind)  # type: ignore[arg-type]
    past = Past(KNOWN.landings, twin=NOTE, loose=loose)
    there = merge == "conflict" and kind == "content" and loose.get(b"a.py") == 0
    assert (b"a.py" in brought(past, [seen])) == (merge == "empty" or there)


def test_only_of_a_landing_that_is_known_by_it() -> None:
    assert brought(KNOWN, [TORN]) == {b"a.py"}
    assert brought(Past(KNOWN.landings, loose=KNOWN.loose), [TORN]) == frozenset()
    assert brought(Past(KNOWN.landings, twin=NOTE, loose=KNOWN.loose, whole=False), [TORN]) == (
        frozenset()
    )
