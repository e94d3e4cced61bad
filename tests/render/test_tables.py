"""What people see on a terminal, and what they must not see there."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console, RenderableType

from patchq.judge.model import Cause
from patchq.queue.series import Series
from patchq.render import console, tables
from tests.render import reports


def drawn(value: RenderableType, *, color: bool = False, width: int = 120) -> str:
    out = io.StringIO()
    Console(
        file=out,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        markup=False,
        emoji=False,
        highlight=False,
        _environ={},
    ).print(value)
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n"))


def test_a_sync() -> None:
    text = drawn(tables.sync(reports.DONE))
    assert text.startswith("   #  patch")
    for part in (
        "0001  kept     needed         clean     kept",
        "0002  dropped  landed         empty     dropped",
        "0003 shrunk: what changed in the patch",
        "++ours, again",
        "ok  git apply  2 patches give 1234",
        "demo from 1.0 to 2.0: done, 1 kept, 1 kept in part, 1 dropped, 1 held.",
        "`patchq undo` takes it back",
    ):
        assert part in text
    assert "0001 kept: what changed" not in text, "only its context changed"
    assert "++ours" not in drawn(tables.sync(reports.DONE, diffs=False))


def test_a_sync_that_asks() -> None:
    text = drawn(tables.sync(reports.ASKED))
    assert text.startswith("It was completed.\n")
    assert "a.txt: content since 0123456789 (org/demo#7) Change a.txt\n    line 2, 2.0:" in text
    assert "  \\xff.txt: deleted upstream\n" in text
    assert "The proof was not made." in text
    assert "2 patches need your decision" in text


def test_a_sync_without_a_change_is_one_line_and_names_what_is_held() -> None:
    said = "demo is on 2.0 already: nothing changed.\nheld: held, not applied: later.\n"
    assert drawn(tables.sync(reports.NOTHING)) == said


def test_upstream_was_not_reached() -> None:
    from dataclasses import replace

    seen = replace(reports.SEEN, complete=False, notes=("1.9 was yanked.",))
    text = drawn(tables.sync(reports.sync(upstream=seen)))
    assert "Upstream was not reached: as of 2026-01-02 03:04 UTC.\n1.9 was yanked.\n" in text


def test_the_others() -> None:
    text = drawn(tables.check(reports.CHECK))
    assert "FAILED  check of b  no" in text
    assert text.endswith("demo on 1.0 does not hold; its tree is 1234\n")
    text = drawn(tables.status(reports.STATUS))
    assert "queue    demo (git ../demo)\n" in text
    assert "patches  3 applied, 1 held, 1 retired\nheld     two: not yet\ntree     1234\n" in text
    assert "the series was changed since it was proved" in drawn(tables.status(reports.CHANGED))
    text = drawn(tables.series(reports.SERIES))
    assert "0001  one    x      About one\n" in text
    assert "0002  two           held: not yet\n" in text
    assert "`patchq import`" in drawn(tables.series(Series()))
    text = drawn(tables.show(reports.ONE, "not yet"))
    assert text.startswith("held: not yet\nFrom: Ada <ada@example.org>\n")
    assert "\nWhy.\n\ndiff --git a/a b/a\n" in text
    text = drawn(tables.history(reports.HISTORY))
    assert text.startswith("   3  2026-01-02 03:04  sync: demo from 1.0 to 2.0\n")
    assert "dropped: landed in 2.0: merge: it is there\n\n      -a\n      +\\xff\n" in text
    empty = type(reports.HISTORY)("demo", "", ())
    assert "Nothing was recorded here yet" in drawn(tables.history(empty))


ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("width", [40, 80, 300])
def test_hostile_texts(color: bool, width: int) -> None:
    """No control character but rich's own colours, no mark that turns the text around."""
    text = drawn(tables.sync(reports.evil()), color=color, width=width)
    rest = ESCAPES.sub("", text)
    assert not [c for c in rest if c != "\n" and not c.isprintable()], rest
    rest.encode()
    flat = re.sub(r"\s+", "", rest)
    assert "[bold]markup[/bold]" in flat and ":smile:" in flat, "no markup, no emoji"
    assert r"\x1b[31mred" in flat
    assert r"\u202egnp.exe" in flat
    assert ("\x1b[31mred" in text) is False


def test_hostile_patches() -> None:
    from tests.support.kit import made

    patch = made(1, "evil", b"diff --git a/\x1b b/\x1b\n+\x1b[2J\r\xff\n", topic=reports.EVIL)
    cause = Cause("abc", None, reports.EVIL)
    assert cause.title == reports.EVIL
    for value in (tables.show(patch, reports.EVIL), tables.series(series_of(patch))):
        rest = ESCAPES.sub("", drawn(value, color=True))
        assert not [c for c in rest if c != "\n" and not c.isprintable()], rest


def series_of(patch: object) -> Series:
    from patchq.queue import series as serieses

    return Series((serieses.held_line(patch, reports.EVIL),))  # type: ignore[arg-type]


# The console


@pytest.fixture(autouse=True)
def anew() -> None:
    console.console.cache_clear()


def test_no_color(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR")
    console.console().print(console.text("x", "bold red"))
    assert "\x1b[1;31mx" in capsys.readouterr().out
    console.console.cache_clear()
    monkeypatch.setenv("NO_COLOR", "1")
    console.console().print(console.text("x", "red"))
    assert "31m" not in capsys.readouterr().out


def test_redirected_output_is_wide(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS")
    assert console.console().width == 120
    console.console.cache_clear()
    monkeypatch.setenv("COLUMNS", "77")
    assert console.console().width == 77
    console.console(stderr=True).print("to stderr")
    assert capsys.readouterr() == ("", "to stderr\n")


def test_lines_and_text() -> None:
    assert console.lines("a\x1b\nb\r\n") == "a\\x1b\nb\\r\n"
    assert console.text(b"\xff\x1b").plain == r"\xff\x1b"
    assert console.text("\udcff").plain == r"\udcff"
