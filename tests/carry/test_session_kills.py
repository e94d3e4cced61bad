"""A session, cut short at every step: the series is the old one or the new one, work is not lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.carry.test_resume import Torn, put
from tests.support import crash
from tests.support.inside import call

BEFORE = 3
"""Steps that are tried of those before the first one in the session: they write to the cache."""
EACH = 4
"""Of so many kills, one is followed to the end."""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A kill loses nothing that a system call has taken: no need to wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()


def series(torn: Torn) -> dict[str, bytes]:
    return {
        str(path.relative_to(torn.root)): path.read_bytes()
        for top in ("series", "upstream")
        for path in sorted((torn.root / top).rglob("*"))
        if path.is_file()
    }


COMMANDS = {
    "open": ("closed", ("sync", "--onto", "v2")),
    "continue": ("first resolved", ("sync", "--continue")),
    "continue to the end": ("last resolved", ("sync", "--continue")),
    "skip the shown one": ("first resolved", ("sync", "--skip", "p1")),
    "decide": ("first resolved", ("decide", "p2", "drop", "--why", "theirs")),
    "abort": ("first resolved", ("sync", "--abort")),
}


def at(torn: Torn, state: str) -> None:
    if state == "closed":
        return
    torn.open()
    torn.resolve(1)
    if state == "last resolved":
        torn.go_on(code=4)
        torn.resolve(2)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_kill_anywhere(tmp_path: Path, command: str) -> None:
    state, args = COMMANDS[command]
    (tmp_path / "story").mkdir()
    torn = Torn(tmp_path / "story").filled()
    at(torn, state)
    old, kept = series(torn), tmp_path / "kept"
    shutil.copytree(torn.root, kept, symlinks=True)

    def prepare() -> None:
        shutil.rmtree(torn.root)
        shutil.copytree(kept, torn.root, symlinks=True)

    def run(step: crash.Step) -> crash.Run:
        return crash.forked(lambda: call(torn.root, *args, code=None), step)

    done = run(crash.NEVER)
    new = series(torn)
    private = f"{torn.root}/.git/patchq/"
    inside = [
        n
        for n, name in enumerate(done.effects, 1)
        if f"{private}sessions" in name or f"{private}journal" in name
    ]
    # Programs that are started there write as well; temporary files are nobody's.
    beside = {"open", "os.mkdir", "os.remove", "os.rmdir"}
    steps = {
        *inside,
        *range(1, inside[0], max(1, inside[0] // BEFORE)),
        *(n for n in range(inside[0], inside[-1]) if done.effects[n - 1].split()[0] not in beside),
        len(done.effects),
    }
    ended = 0

    def check(run: crash.Run) -> None:
        nonlocal ended
        if (torn.root / ".git/patchq/journal/unfinished").exists():
            torn.call("status")
        found = series(torn)
        assert found in (old, new)
        ended += not torn.is_open
        if not run.killed or len(run.effects) % EACH == 0:
            finish(torn, len(run.effects) // EACH)

    crash.every_step(run, check, prepare=prepare, steps=sorted(steps))
    assert ended or command not in ("abort", "continue to the end")


def finish(torn: Torn, count: int) -> None:
    """From wherever the kill left it: every second time to the end, else back to the start."""
    torn.call("status")
    if count % 2 and torn.is_open:
        torn.call("sync", "--abort")
        assert not (torn.root / ".git/patchq/sessions").exists()
        return
    said = torn.call("sync", "--onto", "v2", "--json", code=None)
    assert said.code in (0, 4), said
    for _ in range(3):
        if said.code == 0:
            break
        shown = said.json["shown"]
        number = int(shown[1:])
        text = (torn.tree / f"f{number}.txt").read_bytes()
        marked = b"<<<<<<< v2\n" in text
        assert marked or text == put((5, "5, both")), "what was resolved is never lost"
        torn.resolve(number)
        said = torn.call("sync", "--continue", "--json", code=None)
    assert said.code == 0, said
    assert not torn.is_open
    torn.call("check")
