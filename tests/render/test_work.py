"""The working tree as people and scripts read it: hostile names are shown harmless."""

from __future__ import annotations

import os
from io import StringIO

from rich.console import Console

from patchq.gitstore.worktree import Edit
from patchq.render import work
from patchq.work.look import Look, Unrefreshed
from patchq.work.report import Clash, Left, Moved, WorkReport

EVIL = b"evil\x1b[31m\xff\xe2\x80\xae.txt"
TORN = WorkReport(
    "demo", "push", "/x/tree", "first", 1, 3,
    moved=(Moved("first", "merged"), Moved("second", "conflict")),
    pending="second",
    clashes=(Clash(EVIL, "content", True), Clash(b"bin", "binary", False)),
    says=("The series changed.",),
    entry=7,
)  # fmt: skip
DONE = WorkReport(
    "demo", "refresh", "/x/tree", "first", 1, 3,
    moved=(Moved("first", "refreshed"),),
    carried=("second",),
    left=(Left("third", ((EVIL, "content"),)), Left("fourth", (), "third")),
    emptied=("fifth",),
    taken=(EVIL,),
    litter=(b"a.orig",),
)  # fmt: skip


def drawn(value: object) -> str:
    out = StringIO()
    Console(file=out, width=200, highlight=False, emoji=False, markup=False).print(value)
    return out.getvalue()


def test_a_conflict_says_where_and_what_to_type() -> None:
    text = drawn(work.moved(TORN))
    assert "\x1b" not in text and "\u202e" not in text
    for told in (
        "The series changed.",
        "first: applied, merged: it reads anew",
        "second: conflicts",
        "evil\\x1b[31m\\xff\\u202e.txt: content",
        "bin: binary (no markers: the patch's version stands there)",
        "`patchq refresh`; or give it up with `patchq pop`",
        "second is open on top of first",
    ):
        assert told in text, text


def test_a_refresh_names_what_it_took_carried_and_left() -> None:
    text = drawn(work.moved(DONE))
    for told in (
        "first: refreshed",
        "left out: a.orig",
        "carried above it: second",
        "third above it does not fit any more in evil",
        "`patchq goto third` shows the conflict",
        "fourth above it waits for third, and stays as it was",
        "fifth above it changes nothing any more",
        "first is on top (1 of 4) in /x/tree",
    ):
        assert told in text, text


def test_many_patches_are_counted() -> None:
    moved = tuple(Moved(f"p{n}", "pushed") for n in range(50))
    text = drawn(work.moved(WorkReport("demo", "push", "/t", "p49", 50, 0, moved=moved)))
    assert text.splitlines()[0] == "50 patches applied"
    assert "p17" not in text
    nothing = WorkReport("demo", "pop", "/t", None, 0, 50, dry_run=True)
    assert "Nothing would be applied (0 of 50) in /t" in drawn(work.moved(nothing))


def test_json_of_a_move() -> None:
    value = work.moved_json(TORN)
    assert value["schema"] == "patchq.work/1"
    assert value["conflicts"][0] == {
        "path": EVIL.decode("utf-8", "surrogateescape"),
        "kind": "content",
        "marked": True,
    }
    assert value["patches"] == [
        {"name": "first", "what": "merged"},
        {"name": "second", "what": "conflict"},
    ]
    assert work.moved_json(DONE)["left"][1] == {
        "name": "fourth",
        "waits_for": "third",
        "conflicts": [],
    }


def test_the_rows_of_status() -> None:
    look = Look(
        os.path.join(os.getcwd(), "tree"), ("first",), "second", True, (Edit(EVIL, "modified"),)
    )
    rows = dict(work.look_rows(look))
    assert rows["work"] == "first on top, 1 applied; tree"
    assert rows["open"].startswith("second conflicts")
    assert rows["edits"] == "evil\\x1b[31m\\xff\\u202e.txt: not refreshed"
    assert "goes along" in rows[""]
    assert work.look_rows(None) == [] and work.look_json(None) is None
    assert [look.mark(name) for name in ("first", "second", "third")] == [">", "!", "-"]
    assert "nothing applied" in work.look_rows(Look("/t", (), None, False))[0][1]


def test_a_diff_is_shown_harmless() -> None:
    edits = (Edit(EVIL, "added"),)
    shown = Unrefreshed("demo", "first", edits, b"--- a\n+++ b\n+" + EVIL + b"\n")
    assert "\x1b" not in drawn(work.diff(shown))
    assert work.diff_json(shown)["edits"][0]["kind"] == "added"
    assert "Nothing was edited" in drawn(work.diff(Unrefreshed("demo", None, (), b"")))
