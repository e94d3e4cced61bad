"""Progress on stderr: nothing for what is quick, a bar or a line now and then for the rest."""

from __future__ import annotations

import pytest

from patchq.progress import Progress
from patchq.render import progress
from patchq.render.progress import Bar


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_quick_work_says_nothing(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Bar() as bar:
        listener: Progress = bar
        listener.step("carrying", 1, 2, "patches")
        clock[0] += 0.5
        listener.step("carrying", 2, 2, "patches")
    assert capsys.readouterr() == ("", "")


def test_a_line_now_and_then(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Bar() as bar:
        for _ in range(25):
            clock[0] += 1
            bar.step("carrying", int(clock[0]) - 100, 200, "patches")
        clock[0] += 10
        bar.step("fetching", 3_000_000, 6_500_000, "B")
        clock[0] += 10
        bar.step("recording")
    assert capsys.readouterr() == (
        "",
        (
            "carrying 10 of 200 patches\ncarrying 20 of 200 patches\n"
            "fetching 3.0 of 6.5 MB\nrecording\n"
        ),
    )


def test_a_bar_on_a_terminal(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with Bar() as bar:
        clock[0] += 1
        bar.step("[bold]\x1bcarrying", 1, 2, "patches")
        bar.step("recording")
    out, err = capsys.readouterr()
    assert out == ""
    assert "\x1bcarrying" not in err
