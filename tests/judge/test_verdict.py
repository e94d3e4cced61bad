"""What signals say together: a table, and what holds for every observation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.judge.model import FileSeen, Observation, Signal
from patchq.judge.verdict import judge, signals

NEEDED = FileSeen(b"a.py", b"a.py", "clean", atoms=2, lines=4)
"""Upstream did not touch the file."""
CHANGED = replace(NEEDED, upstream_changed=True)
NOOP = replace(NEEDED, merge="noop")
EMPTY = replace(CHANGED, merge="empty")
"""The merge leaves nothing; no other signal yet."""
LANDED = replace(EMPTY, same=2, found=4, reverse=True)
TORN = replace(CHANGED, merge="conflict", kind="content")
TWEAKED = replace(TORN, found=4, wins_empty=True)
GONE = replace(CHANGED, merge="conflict", kind="deleted upstream")
MODE = FileSeen(b"a.sh", b"a.sh", "clean", mode_only=True)
DELETING = FileSeen(b"a.py", b"a.py", "empty", atoms=1, upstream_changed=True)
"""A patch that only removes lines, and nothing is left to remove."""
ELSEWHERE = replace(EMPTY, elsewhere=2, found=4)
"""Every block was left out, for upstream added it at another place."""
SAID = (Signal("subject", "landed", "its number stands in the history", "abc"),)

CASES: dict[str, tuple[Observation, str, str]] = {
    # Nothing upstream.
    "untouched": (Observation((NEEDED,)), "needed", "keep"),
    "upstream changed other lines": (Observation((CHANGED,)), "needed", "keep"),
    "some lines alike by chance": (Observation((replace(CHANGED, found=3),)), "needed", "keep"),
    "the patch changes nothing": (Observation((NOOP,)), "needed", "keep"),
    "an empty patch": (Observation(()), "needed", "keep"),
    # Landed, always on two signals.
    "merged as it is": (Observation((LANDED,)), "landed", "drop"),
    "merge and patch id": (Observation((replace(EMPTY, same=2),)), "landed", "drop"),
    "merge and reverse": (Observation((replace(EMPTY, reverse=True),)), "landed", "drop"),
    "merge and lines": (Observation((replace(EMPTY, found=4),)), "landed", "drop"),
    "merge and the history": (Observation((EMPTY,), extra=SAID), "landed", "drop"),
    "two files": (Observation((LANDED, LANDED)), "landed", "drop"),
    "two files, one a no-op": (Observation((LANDED, NOOP)), "landed", "drop"),
    "elsewhere, verbatim": (Observation((ELSEWHERE,)), "landed", "drop"),
    "a unit": (Observation((TORN,), unit=("a", "b")), "landed", "drop"),
    "a later patch of a unit": (Observation((), unit=("a", "b")), "landed", "drop"),
    "a unit, reworded": (
        Observation((TORN,), unit=("a", "b"), unit_changed=True),
        "landed-with-changes",
        "drop",
    ),
    # One signal alone never drops.
    "only the merge is empty": (Observation((EMPTY,)), "uncertain", "ask"),
    "all but one line": (Observation((replace(EMPTY, found=3),)), "uncertain", "ask"),
    "one of two changes verbatim": (Observation((replace(EMPTY, same=1),)), "uncertain", "ask"),
    "only the patch id": (Observation((replace(CHANGED, same=2),)), "partly-landed", "shrink"),
    "all lines, but the merge is clean": (
        Observation((replace(CHANGED, found=4),)),
        "uncertain",
        "ask",
    ),
    "two lines alike": (Observation((replace(CHANGED, lines=2, found=2),)), "needed", "keep"),
    "only reverse": (Observation((replace(CHANGED, reverse=True),)), "needed", "keep"),
    "only the history": (Observation((CHANGED,), extra=SAID), "needed", "keep"),
    "a second file unconfirmed": (Observation((LANDED, EMPTY)), "uncertain", "ask"),
    "text landed, mode needed": (
        Observation((replace(LANDED, merge="clean"),)),
        "partly-landed",
        "shrink",
    ),
    "elsewhere, mode needed": (
        Observation((replace(ELSEWHERE, merge="clean"),)),
        "partly-landed",
        "shrink",
    ),
    "elsewhere, but not all lines": (
        Observation((replace(ELSEWHERE, found=3),)),
        "uncertain",
        "ask",
    ),
    # Modes.
    "mode, untouched": (Observation((MODE,)), "needed", "keep"),
    "mode, upstream changed the text": (
        Observation((replace(MODE, upstream_changed=True),)),
        "needed",
        "keep",
    ),
    "mode, landed": (
        Observation((replace(MODE, merge="empty", upstream_changed=True),)),
        "landed",
        "drop",
    ),
    "mode, empty though upstream changed nothing": (
        Observation((replace(MODE, merge="empty"),)),
        "uncertain",
        "ask",
    ),
    "mode needed, text landed": (Observation((LANDED, MODE)), "partly-landed", "shrink"),
    # Deletions.
    "deletion, nothing left of it": (Observation((DELETING,)), "uncertain", "ask"),
    "deletion, verbatim": (Observation((replace(DELETING, same=1),)), "landed", "drop"),
    "deletion, conflicting": (
        Observation((replace(DELETING, merge="conflict", kind="content", wins_empty=True),)),
        "needed",
        "ask",
    ),
    # Partly.
    "one file of two": (Observation((LANDED, CHANGED)), "partly-landed", "shrink"),
    "one file of two, unconfirmed": (Observation((EMPTY, CHANGED)), "uncertain", "ask"),
    "one change of two": (Observation((replace(CHANGED, same=1),)), "partly-landed", "shrink"),
    "one block elsewhere": (
        Observation((replace(CHANGED, elsewhere=1, found=2),)),
        "partly-landed",
        "shrink",
    ),
    # Conflicts.
    "conflict": (Observation((TORN,)), "needed", "ask"),
    "reworded": (Observation((TWEAKED,)), "landed-with-changes", "drop"),
    "reworded, at the threshold": (
        Observation((replace(TWEAKED, lines=5, found=4),)),
        "landed-with-changes",
        "drop",
    ),
    "reworded, below it": (Observation((replace(TWEAKED, found=3),)), "uncertain", "ask"),
    "half alike": (Observation((replace(TWEAKED, found=2),)), "uncertain", "ask"),
    "hardly alike": (Observation((replace(TWEAKED, found=1),)), "needed", "ask"),
    "all lines there, but parts left": (
        Observation((replace(TWEAKED, wins_empty=False),)),
        "needed",
        "ask",
    ),
    "reworded, another file needed": (Observation((TWEAKED, CHANGED)), "needed", "ask"),
    "reworded, another file landed": (
        Observation((TWEAKED, LANDED)),
        "landed-with-changes",
        "drop",
    ),
    "reworded, another half alike": (
        Observation((TWEAKED, replace(TWEAKED, found=2))),
        "uncertain",
        "ask",
    ),
    "reworded, another elsewhere": (
        Observation((TWEAKED, ELSEWHERE)),
        "landed-with-changes",
        "drop",
    ),
    "reworded, a mode needed": (Observation((TWEAKED, MODE)), "needed", "ask"),
    "the file is gone": (Observation((GONE,)), "gone", "ask"),
    "gone, another landed": (Observation((GONE, LANDED)), "gone", "ask"),
    "gone, and a conflict": (Observation((GONE, TORN)), "needed", "ask"),
    "binary": (
        Observation((FileSeen(b"a", b"a", "conflict", "binary", upstream_changed=True),)),
        "needed",
        "ask",
    ),
    # Doubles.
    "defined twice": (Observation((replace(CHANGED, doubles=("f",)),)), "uncertain", "ask"),
    "one block is upstream's, another double": (
        Observation((replace(CHANGED, doubles=("f",), elsewhere=1, found=2),)),
        "partly-landed",
        "shrink",
    ),
    "doubles in a landed patch": (
        Observation((LANDED, replace(LANDED, doubles=("f",)))),
        "landed",
        "drop",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_verdict(name: str) -> None:
    seen, verdict, action = CASES[name]
    found = judge(seen)
    assert (found.verdict, found.action) == (verdict, action)
    assert found.evidence == signals(seen)
    assert found.findings == ()
    torn = [file.path for file in seen.files if file.merge == "conflict"]
    if action == "ask" and not seen.unit:
        assert [conflict.path for conflict in found.conflicts] == torn
    else:
        assert found.conflicts == ()
    if action == "drop":
        assert len({signal.signal for signal in found.evidence}) > 1


@st.composite
def files(draw: st.DrawFn) -> FileSeen:
    """A file as a merge can show it: counts below their totals, upstream's gain only where it
    changed something."""
    merge = draw(st.sampled_from(["clean", "empty", "noop", "conflict"]))
    changed = merge in ("empty", "conflict") or draw(st.booleans())
    atoms = draw(st.integers(0, 4))
    lines = draw(st.integers(0, 6)) if atoms else 0
    same = draw(st.integers(0, atoms)) if changed else 0
    elsewhere = draw(st.integers(0, atoms)) if changed and not same else 0
    return FileSeen(
        b"a.py",
        draw(st.sampled_from([b"a.py", b"b.py"])),
        merge,
        draw(st.sampled_from(["content", "deleted upstream", "binary"])),
        atoms,
        same,
        elsewhere,
        lines,
        draw(st.integers(0, lines)) if changed else 0,
        # A reverse application without a hunk means equal files.
        reverse=changed and draw(st.booleans()),
        wins_empty=draw(st.booleans()),
        mode_only=not atoms,
        upstream_changed=changed,
        doubles=draw(st.sampled_from([(), ("f",)])),
    )


@given(st.lists(files(), max_size=4))
def test_what_holds_for_every_observation(seen: list[FileSeen]) -> None:
    found = judge(Observation(tuple(seen)))
    active = [file for file in seen if file.merge != "noop"]
    if found.action == "drop":
        assert len({signal.signal for signal in found.evidence}) > 1, "never on one signal"
        assert found.verdict in ("landed", "landed-with-changes")
        for file in active:
            assert file.merge in ("empty", "conflict")
    if found.action == "keep":
        assert not any(file.merge == "conflict" for file in active)
    if any(file.merge == "conflict" for file in active) and found.action != "drop":
        assert found.action == "ask"
    assert judge(Observation(tuple(seen))) == found


def test_what_the_signals_say() -> None:
    moved = replace(LANDED, new_path=b"src/a\x1b.py")
    told = {s.signal: (s.says, s.detail) for s in signals(Observation((moved,), extra=SAID))}
    assert told == {
        "merge": ("landed", "the three-way merge leaves upstream's text as it is"),
        "patch-id": ("landed", "2 of 2 changes stand upstream verbatim, at the same place"),
        "lines": ("landed", "4 of 4 added lines stand upstream"),
        "reverse": (
            "landed",
            "it can be taken out of upstream's text in a.py, and not be put in",
        ),
        "moved": ("needed", r"a.py is now src/a\x1b.py"),
        "subject": ("landed", "its number stands in the history"),
    }


def test_signals_of_a_conflict() -> None:
    several = tuple(
        replace(TORN, path=b"%d.py" % n, new_path=b"%d.py" % n, found=n) for n in range(1, 5)
    )
    told = {s.signal: (s.says, s.detail) for s in signals(Observation(several))}
    assert told == {
        "merge": (
            "unclear",
            "conflicts in 1.py (content), 2.py (content), 3.py (content), 4.py (content)",
        ),
        "lines": ("partly", "10 of 16 added lines stand upstream (least in 1.py: 1 of 4)"),
        "upstream-wins": ("needed", "parts of it are left even where upstream's text wins"),
    }


def test_many_files_are_named_in_part() -> None:
    several = tuple(replace(LANDED, path=b"%d" % n, new_path=b"%d" % n) for n in range(5))
    (reverse,) = [s for s in signals(Observation(several)) if s.signal == "reverse"]
    assert "0, 1, 2 and 2 more" in reverse.detail


def test_a_mode_is_confirmed_by_upstreams_own_change() -> None:
    mode = replace(MODE, merge="empty", upstream_changed=True)
    told = [(s.signal, s.says) for s in signals(Observation((mode,)))]
    assert told == [("merge", "landed"), ("upstream-changed", "landed")]
    told = [(s.signal, s.says) for s in signals(Observation((mode, CHANGED)))]
    assert told == [("merge", "partly"), ("upstream-changed", "partly")]
    assert len(signals(Observation((replace(mode, upstream_changed=False),)))) == 1


def test_a_few_lines_alike_are_not_worth_saying() -> None:
    few = Observation((replace(CHANGED, lines=10, found=2),))
    assert [s.signal for s in signals(few)] == ["merge"]
