"""Trees and history together: a table, and what holds for all of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.judge.model import FileSeen, Judgement, Landing, Observation, Past, Signal
from patchq.judge.verdict import judge

CLEAN = FileSeen(b"a.py", b"a.py", "clean", atoms=2, lines=10, upstream_changed=True)
OTHER = replace(CLEAN, path=b"b.py", new_path=b"b.py")
EMPTY = replace(CLEAN, merge="empty")
VERBATIM = replace(EMPTY, same=2, found=10, reverse=True)
TORN = replace(CLEAN, merge="conflict", kind="content", found=5)
WINS = replace(TORN, wins_empty=True)
LOST = replace(TORN, kind="deleted upstream", found=0)

AS = Landing("1a2b3c4" + "0" * 33, "#57477", "Knobs (#57477)", "Ada", "2026-10-01", 0.9, "0.30.0")
BY = Landing(
    "9" * 40, "#57900", 'Revert "Knobs (#57477)" (#57900)', "Bo", "2026-10-02", 0, "0.31.0"
)
HELD = {b"a.py": 0.9, b"b.py": 0.0}
LINES = Past((AS,), share=0.9, stands=0.9, lines=20, held=HELD)
HALF = replace(LINES, share=0.6, held={b"a.py": 0.6, b"b.py": 0.0})
LITTLE = replace(LINES, share=0.1, held={b"a.py": 0.1, b"b.py": 0.0})
THERE = replace(LINES, held={b"a.py": 0.6}, paths=frozenset({b"a.py"}))
NAMED = replace(LITTLE, named="#57477", paths=frozenset({b"a.py"}))
PART = replace(LINES, named="#57477", whole=False, paths=frozenset({b"a.py"}))
BACK = replace(LINES, share=0.0, reverted=BY)
EXACT = replace(LINES, landings=(replace(AS, share=1.0, differs=0),), share=1.0)
OUT = replace(EXACT, rewritten=False, stands=0.0)
NOTED = replace(LITTLE, twin=b"7.rst", paths=frozenset({b"a.py"}), loose={b"a.py": 0})
RESTATED = replace(LINES, restated=frozenset({b"7.rst"}))
NOTE = replace(CLEAN, path=b"7.rst", new_path=b"7.rst", lines=4, added=True)
SUPERSEDED = Past(superseded=replace(AS, share=0.6, pr="#60000"))


def see(past: Past | None, *files: FileSeen, extra: tuple[Signal, ...] = ()) -> Observation:
    return Observation(files, past=past, extra=extra)


CASES: dict[str, tuple[Observation, str, str]] = {
    # The trees do not agree that it is there, or say nothing.
    "its lines, at another place": (see(LINES, CLEAN), "needed", "keep"),
    "half of its lines, at another place": (see(HALF, CLEAN), "needed", "keep"),
    "few of its lines": (see(LITTLE, TORN), "needed", "ask"),
    # Landed as it is.
    "the trees do not know, the history does": (see(LINES, EMPTY), "landed", "drop"),
    "half of it, and nothing is left": (see(HALF, EMPTY), "landed", "drop"),
    "verbatim, and the history knows little": (see(LITTLE, VERBATIM), "landed", "drop"),
    # Landed with changes.
    "most of its lines": (see(LINES, TORN), "landed-with-changes", "drop"),
    "half of its lines, upstream wins": (see(HALF, WINS), "landed-with-changes", "drop"),
    "half of its lines, something is left": (
        see(HALF, replace(TORN, clear=4)),
        "uncertain",
        "ask",
    ),
    "most of it, a hunk of its own is left": (
        see(LINES, replace(TORN, clear=2, lines=30)),
        "partly-landed",
        "shrink",
    ),
    "most of it, a line of its own is left": (
        see(LINES, replace(TORN, clear=1, lines=30)),
        "uncertain",
        "ask",
    ),
    "most of it, a line of a hundred is left": (
        see(LINES, replace(TORN, clear=1, lines=100)),
        "landed-with-changes",
        "drop",
    ),
    "most of it landed, then the file went": (see(THERE, LOST), "landed-with-changes", "drop"),
    "the file went, and its part landed nowhere": (
        see(replace(THERE, paths=frozenset()), LOST),
        "uncertain",
        "ask",
    ),
    "the file went, a small part of it had landed": (
        see(replace(THERE, held={b"a.py": 0.3}), LOST),
        "uncertain",
        "ask",
    ),
    "all of it landed once the file had moved": (
        see(replace(LINES, moved={b"a.py": True}), LOST),
        "landed-with-changes",
        "drop",
    ),
    "most of it landed, and the file has only another name": (
        see(replace(LINES, moved={b"a.py": False}), LOST),
        "uncertain",
        "ask",
    ),
    "most of it landed, then the file moved": (
        see(replace(THERE, moved={b"a.py": False}), LOST),
        "uncertain",
        "ask",
    ),
    "its number": (see(NAMED, TORN), "landed-with-changes", "drop"),
    "its number, though it merges": (see(NAMED, CLEAN), "landed-with-changes", "drop"),
    "the number of something else": (
        see(replace(NAMED, share=0.0, paths=frozenset()), TORN),
        "needed",
        "ask",
    ),
    "the very patch": (see(EXACT, CLEAN), "landed", "drop"),
    "the very patch, taken out again": (see(OUT, CLEAN), "uncertain", "ask"),
    "its note came in other words": (see(RESTATED, TORN, NOTE), "landed-with-changes", "drop"),
    "its note came in other words, and stands": (
        see(RESTATED, TORN, replace(NOTE, merge="conflict", kind="both added the file")),
        "landed-with-changes",
        "drop",
    ),
    "half of its lines, the rest is there, and its note in other words": (
        see(replace(RESTATED, share=0.6), EMPTY, NOTE),
        "landed-with-changes",
        "drop",
    ),
    "few of its lines, the rest is there, and its note in other words": (
        see(replace(RESTATED, share=0.4), EMPTY, NOTE),
        "uncertain",
        "ask",
    ),
    "its note came in no words": (see(LINES, TORN, NOTE), "partly-landed", "shrink"),
    # Known by a note, and rewritten.
    "its note, and all its places": (see(NOTED, TORN, NOTE), "landed-with-changes", "drop"),
    "its note, and not all its places": (
        see(replace(NOTED, loose={b"a.py": 1}), TORN, NOTE),
        "uncertain",
        "ask",
    ),
    "its note, and a file that the landing leaves alone": (
        see(NOTED, TORN, NOTE, OTHER),
        "partly-landed",
        "shrink",
    ),
    "its note, and a file that another commit tears": (
        see(NOTED, TORN, NOTE, replace(OTHER, merge="conflict", kind="content")),
        "uncertain",
        "ask",
    ),
    "its note, and the file went": (see(NOTED, LOST, NOTE), "uncertain", "ask"),
    "its note, and all is still to do": (see(NOTED, CLEAN, NOTE), "needed", "keep"),
    "its note, and it was taken back": (
        see(replace(NOTED, share=0.0, reverted=BY), CLEAN, NOTE),
        "reverted",
        "keep",
    ),
    # In part.
    "another file is left": (see(LINES, TORN, OTHER), "partly-landed", "shrink"),
    "another file conflicts": (
        see(LINES, TORN, replace(OTHER, merge="conflict")),
        "uncertain",
        "ask",
    ),
    "one of two numbers": (see(PART, TORN, OTHER), "partly-landed", "shrink"),
    "one of two numbers, the rest conflicts": (
        see(PART, TORN, replace(LOST, path=b"b.py")),
        "needed",
        "ask",
    ),
    "one of two numbers, the other's lines conflict": (
        see(replace(PART, share=0.6, held={b"a.py": 0.6}), TORN),
        "needed",
        "ask",
    ),
    "one of two numbers, the other's lines stand clear": (
        see(replace(PART, share=0.6, held={b"a.py": 0.6}), replace(TORN, clear=4)),
        "partly-landed",
        "shrink",
    ),
    "most of a file, in upstream's words, and another one is left": (
        see(replace(LINES, held={b"a.py": 0.86}), replace(WINS, lines=40), OTHER),
        "partly-landed",
        "shrink",
    ),
    # Reverted.
    "reverted": (see(BACK, CLEAN), "reverted", "keep"),
    "reverted, and it conflicts": (see(BACK, TORN), "reverted", "ask"),
    "reverted, but most lines are there": (see(BACK, replace(WINS, found=9)), "uncertain", "ask"),
    "reverted, but all is there": (see(BACK, VERBATIM), "landed", "drop"),
    "reverted, and nothing is left": (see(BACK, EMPTY), "uncertain", "ask"),
    # Superseded.
    "another one replaced it": (see(SUPERSEDED, TORN), "superseded", "drop"),
    "another one replaced it, with other words": (
        see(replace(SUPERSEDED, superseded=replace(AS, share=0.1)), CLEAN),
        "superseded",
        "ask",
    ),
}


@pytest.mark.parametrize(("seen", "verdict", "action"), CASES.values(), ids=CASES)
def test_verdicts(seen: Observation, verdict: str, action: str) -> None:
    found = judge(seen)
    assert (found.verdict, found.action) == (verdict, action)


def test_the_words() -> None:
    past = replace(LINES, landings=(replace(AS, differs=2),))
    (said, *_) = judge(see(past, TORN)).evidence
    assert (said.signal, said.says, said.ref) == ("history", "changed", AS.commit)
    assert said.detail == (
        "landed with changes in 0.30.0 as 1a2b3c4000 (#57477): upstream's version differs from ours"
        " in 2 hunks, shown below; taking upstream's"
    )
    (said, *_) = judge(see(BACK, CLEAN)).evidence
    assert said.detail == (
        "1a2b3c4000 (#57477) brought it, 9999999999 (#57900) took it back in 0.31.0:"
        ' Revert "Knobs (#57477)" (#57900)'
    )


def test_the_words_of_a_note() -> None:
    past = replace(NOTED, landings=(replace(AS, differs=3),))
    (said, *_) = judge(see(past, TORN, NOTE)).evidence
    assert said.detail == (
        "landed with changes in 0.30.0 as 1a2b3c4000 (#57477), which adds 7.rst as this patch does:"
        " upstream's version differs from ours in 3 hunks, shown below; taking upstream's"
    )
    found = judge(see(past, TORN, NOTE, OTHER))
    assert found.evidence[0].detail == (
        "a part of it landed in 0.30.0 as 1a2b3c4000 (#57477), which adds 7.rst as this patch does;"
        " the rest is kept"
    )
    assert (found.yields, found.conflicts) == ((b"a.py",), ())


def test_upstream_wins_where_the_landing_was() -> None:
    found = judge(see(PART, TORN, OTHER))
    assert (found.yields, found.conflicts) == ((b"a.py",), ())


def test_a_check_that_fails_asks() -> None:
    fails = Signal("check", "needed", "its own check fails")
    found = judge(see(LINES, TORN, extra=(fails,)))
    assert (found.verdict, found.action) == ("uncertain", "ask")


files = st.builds(
    replace,
    st.sampled_from([CLEAN, EMPTY, VERBATIM, TORN, WINS, LOST, OTHER]),
    clear=st.integers(0, 10),
    found=st.integers(0, 10),
)
pasts = st.builds(
    replace,
    st.sampled_from([LINES, HALF, LITTLE, NAMED, PART, BACK, EXACT, OUT, SUPERSEDED, NOTED]),
    share=st.floats(0, 1),
    stands=st.floats(0, 1),
)


@given(pasts, st.lists(files, min_size=1, max_size=3))
def test_never_on_one_signal(past: Past, seen: list[FileSeen]) -> None:
    found: Judgement = judge(see(past, *seen))
    if found.action == "drop":
        assert len({signal.signal for signal in found.evidence}) > 1
        assert past.landings or past.superseded


@given(st.floats(0, 1), st.lists(files.filter(lambda f: f.found < f.lines), min_size=1, max_size=3))
def test_a_reverted_one_is_never_lost(share: float, seen: list[FileSeen]) -> None:
    """Unless its text stands upstream, line by line."""
    found = judge(see(replace(BACK, share=share), *seen))
    verbatim = all(file.merge == "empty" and file.same == file.atoms for file in seen)
    assert found.action != "drop" or verbatim
