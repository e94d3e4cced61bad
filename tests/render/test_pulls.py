"""`patchq pr` for people and for machines: harmless, and exactly the fields of docs/json.md."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from rich.console import Console, RenderableType

from patchq.carry.clash import Clash
from patchq.carry.decisions import PullDecision
from patchq.carry.merge import Blob
from patchq.carry.pulls.book import Entry, Use
from patchq.carry.pulls.model import (
    AddReport,
    Asked,
    Candidate,
    FindReport,
    LeftReport,
    ListReport,
    Moved,
    Reason,
    RefreshReport,
    Stop,
)
from patchq.carry.report import Check, Proof
from patchq.judge.model import Conflict, Signal
from patchq.render import pulls, pulls_json, pulls_parts
from patchq.upstream.pulls import Pull
from tests.support.kit import made

A, B = "a" * 40, "b" * 40
EVIL = "\x1b[2J[red]x[/red]\u202e"
WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PULL = Pull(
    "acme/engine",
    7,
    title=EVIL,
    author=EVIL,
    state="open",
    base=EVIL,
    head_sha=B,
    labels=(EVIL,),
    updated_at="2026-01-02T03:04:05Z",
    replaced_by=(9,),
    first_seen={"state": "2026-01-01T00:00:00Z"},
)
ENTRY = Entry(
    "acme/engine#7",
    EVIL,
    (Use("knob", "0001-knob.patch", "carries", A),),
    PULL,
    PullDecision("hold", EVIL, "c" * 40),
)
UNSEEN = Entry("acme/engine#8", "")
ASKED = Asked(WHEN, "graphql")
PATCH = made(1, "knob", b"")
MARKED = b"one\n<<<<<<< v1\nours\n||||||| base\nwas\n=======\ntheirs\x1b[2J\n>>>>>>> x\ntwo\n"
CLASH = Clash(b"a.py", b"b.py", "content", None, Blob("100644", b""), Blob("100644", b""), MARKED)
STOP = Stop(EVIL, (Conflict(b"a.py", "content"), Conflict(b"x", "binary")), (), (CLASH,))
UNSURE = Stop("two", (), (Signal("lines", "landed", "all lines stand there"),))
PROOF = Proof((Check("git apply", True, "1"),))
ADDED = AddReport(
    "demo", ENTRY, ASKED, True, (PATCH,), (b"t\x1bx",), (EVIL,), tree="1", proof=PROOF
)
MOVED = Moved(ENTRY, ("head_sha",), f"## a ##\n-+{EVIL}\n++y", "", "asked")
FOUND = FindReport(
    "demo",
    ("knob",),
    (Candidate("acme/engine#3", EVIL, "open", EVIL, "2026-01-02", 30, (Reason(30, EVIL),)),),
    {"tracked": 1, "refused": 0},
    ASKED,
)


def drawn(value: RenderableType) -> str:
    console = Console(width=100, file=StringIO(), highlight=False, emoji=False, markup=False)
    with console.capture() as capture:
        console.print(value)
    return capture.get()


ALL = {
    "added": ADDED,
    "stopped": replace(ADDED, patches=(), stops=(STOP, UNSURE)),
    "listed": ListReport("demo", (ENTRY, UNSEEN), ASKED),
    "shown": ListReport("demo", (ENTRY,), ASKED),
    "refreshed": RefreshReport("demo", (MOVED,), ASKED),
    "found": FOUND,
    "left": LeftReport("demo", "acme/engine#7", "refused", EVIL, (EVIL,), 3),
}


@pytest.mark.parametrize("what", ALL)
def test_strangers_texts_are_harmless(what: str) -> None:
    out = drawn(getattr(pulls, "added" if what == "stopped" else what)(ALL[what]))
    assert "\x1b" not in out and "\u202e" not in out
    assert "x1b" in out, "but they are shown"


def test_a_conflict_shows_both_sides() -> None:
    out = drawn(pulls.added(ALL["stopped"]))  # type: ignore[arg-type]
    assert "  b.py:2: content\n    < ours\n    > theirs\\x1b[2J\n" in out
    assert "  x: binary" in out and "  all lines stand there" in out
    assert "Nothing of acme/engine#7 was imported." in out


def test_long_sides_are_cut() -> None:
    long = MARKED.replace(b"ours\n", b"ours\n" * 40)
    stop = replace(STOP, clashes=(replace(CLASH, marked=long),))
    out = drawn(pulls.added(replace(ADDED, stops=(stop,))))
    assert out.count("< ours") == 12 and "< ... 28 lines more" in out


@pytest.mark.parametrize(
    ("pin", "said", "head"),
    [
        (B, None, "bbbbbbbbbb"),
        (A, None, "aaaaaaaaaa -> bbbbbbbbbb"),
        (A, PullDecision("hold", "", B), "aaaaaaaaaa -> bbbbbbbbbb (held)"),
    ],
)
def test_heads(pin: str, said: PullDecision | None, head: str) -> None:
    entry = Entry("acme/engine#7", None, (Use("k", "0001-k.patch", "carries", pin),), PULL, said)
    assert f" {head} " in drawn(pulls.listed(ListReport("demo", (entry,), ASKED)))


def test_an_empty_list() -> None:
    assert "patchq pr add" in drawn(pulls.listed(ListReport("demo", (), ASKED)))


def test_what_to_type_next() -> None:
    out = drawn(pulls.refreshed(RefreshReport("demo", (MOVED,), ASKED)))
    assert "head moved: aaaaaaaaaaaa -> bbbbbbbbbbbb" in out
    assert "patchq pr refresh acme/engine#7 --accept" in out
    quiet = Moved(ENTRY)
    assert "1 pull request: no news" in drawn(pulls.refreshed(RefreshReport("d", (quiet,), ASKED)))


@pytest.mark.parametrize(
    ("ago", "told"),
    [(0, "just now"), (60, "1 minute ago"), (7200, "2 hours ago"), (200000, "2 days ago")],
)
def test_age(ago: int, told: str) -> None:
    assert pulls_parts.age(datetime.now(UTC) - timedelta(seconds=ago)) == told


def test_never_asked() -> None:
    offline = Asked(datetime.fromtimestamp(0, UTC), offline=True)
    out = drawn(pulls.listed(ListReport("demo", (UNSEEN,), offline)))
    assert "never seen" in out and "last asked never" in out


def test_exit_codes() -> None:
    missing = Asked(WHEN, "rest", ("x was not reached",))
    assert (ADDED.exit_code, replace(ADDED, asked=missing).exit_code) == (0, 6)
    assert replace(ADDED, asked=missing, stops=(STOP,)).exit_code == 4
    assert RefreshReport("demo", (MOVED,), missing).exit_code == 4
    assert RefreshReport("demo", (), missing).exit_code == 6
    assert ListReport("demo", (), missing).exit_code == 6


def test_fields() -> None:
    entry = {
        "pr": "acme/engine#7",
        "why": EVIL,
        "pinned": A,
        "head_is": "moved",
        "patches": [{"name": "knob", "file": "0001-knob.patch", "role": "carries", "pin": A}],
        "decision": {"answer": "hold", "why": EVIL, "evidence": "c" * 40},
    }
    shown = pulls_json.shown(ListReport("demo", (ENTRY,), ASKED))
    assert shown["schema"] == "patchq.pr-show/1"
    seen = shown["pull"].pop("seen")
    assert shown["pull"] == entry
    assert seen["head"] == B and seen["replaced_by"] == [9] and seen["merged_as"] is None
    assert shown["asked"] == {
        "means": "graphql",
        "as_of": "2026-01-02T03:04:05+00:00",
        "missing": [],
        "offline": False,
    }
    added = pulls_json.added(ALL["stopped"])  # type: ignore[arg-type]
    assert list(added) == [
        *("schema", "queue", "pull", "tracked", "patches", "left_out", "there", "stops", "notes"),
        *("tree", "proof", "asked", "entry", "dry_run"),
    ]
    assert added["stops"][0]["conflicts"][0]["path"] == "a.py"
    moved = pulls_json.refreshed(RefreshReport("demo", (MOVED,), ASKED))["pulls"][0]
    assert (moved["news"], moved["done"], moved["note"]) == (["head_sha"], "asked", None)
    found = pulls_json.found(FOUND)["pulls"][0]
    assert found["reasons"] == [{"weight": 30, "says": EVIL}]
