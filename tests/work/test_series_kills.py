"""The commands that change the series, killed at each of their steps, and two at once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from patchq.carry import lock
from patchq.config import Project
from tests.support import crash
from tests.support.history import git
from tests.support.inside import call
from tests.support.stack import Stack
from tests.support.steps import telling

COMMANDS = {
    "edit": ("edit", "two", "--subject", "Zwei", "--message", "Neu."),
    "rename": ("rename", "two", "zwei"),
    "move": ("move", "one", "--to-top"),
    "hold": ("hold", "four", "--why", "later"),
    "unhold": ("unhold", "five"),
    "delete": ("delete", "three", "--why", "not wanted"),
    "split": ("split", "four", "--as", "new-file", "--", "new.txt"),
    "import": (
        "import",
        "--git",
        "../upstream.git",
        "topic",
        "--group-by",
        "branch",
        "--name",
        "x",
    ),
    "renumber": ("check", "--renumber"),
}
BEFORE_THE_RECORD = 4
"""Steps that are tried of those before the journal's: they write to the cache only."""
SHARE = 3
"""All commands write by the same hand (the record): each is killed before every third step of it,
and together they are before all.
"""


def prepared(folder: Path, command: str) -> Stack:
    stack = Stack(folder)
    if command == "unhold":
        stack.call("hold", "five", "--why", "x")
    if command == "renumber":
        (stack.root / "series/0005-five.patch").rename(stack.root / "series/0001-five.patch")
        series = stack.root / "series/series"
        series.write_text(series.read_text().replace("0005-five", "0001-five"))
    if stack.changed():
        stack.commit()
    return stack


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_kill_at_every_step(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next command ends in the old state or the new one, and git sees nothing beside it."""
    # A kill loses nothing that a system call has taken: no need to wait for the disk.
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    args = COMMANDS[command]
    stack = prepared(tmp_path / "story", command)
    old, kept = stack.files(), tmp_path / "kept"
    shutil.copytree(stack.root, kept, symlinks=True)

    def prepare() -> None:
        shutil.rmtree(stack.root)
        shutil.copytree(kept, stack.root, symlinks=True, copy_function=os.link)

    def run(step: crash.Step) -> crash.Run:
        return crash.forked(lambda: call(stack.root, *args), step)

    done = run(crash.NEVER)
    new = stack.files()
    assert done.code == 0 and new != old, done
    assert stack.call("check", "--json").json["proof"]["ok"]
    prepare()
    done = run(crash.NEVER)  # with the cache warm, as all runs from here on
    inside = telling(done, stack.root, kept)
    first = next(n for n in inside if "journal" in done.effects[n - 1])
    before = range(1, first, max(1, first // BEFORE_THE_RECORD))
    record = [step for step in inside if step >= first]
    share = record[list(COMMANDS).index(command) % SHARE :: SHARE]
    turning = {n for n in record if done.effects[n - 1].startswith("patchq.exchange")}
    steps = sorted({*before, *share, *turning, *(n + 1 for n in turning), record[-1]})
    seen: set[str] = set()

    def check(_: crash.Run) -> None:
        stack.call("status")
        found = stack.files()
        assert found in (old, new)
        seen.add("new" if found == new else "old")
        if found == old:
            assert git(stack.root, "status", "--porcelain", "--ignored") == b""

    crash.every_step(run, check, prepare=prepare, steps=steps)
    assert seen == {"old", "new"}


def test_two_terminals_at_once(tmp_path: Path) -> None:
    stack = Stack(tmp_path)
    stack.call("hold", "five", "--why", "x")
    before = stack.files()
    with lock.hold(Project(stack.root, stack.root / ".git"), "sync"):
        for args in COMMANDS.values():
            said = stack.call(*args, code=1)
            assert "`patchq sync` of " in said.err and f"(process {os.getpid()} on " in said.err
        stack.call("graph")
        stack.call("export", "--mbox", str(tmp_path / "x.mbox"))
    assert stack.files() == before
