"""Each command killed at each of its steps: the next one ends in the old state or the new, and no
edit is lost.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support import crash
from tests.support.hand import Hand
from tests.support.history import Tree
from tests.support.inside import call
from tests.support.steps import telling

COMMANDS = {
    "first push": ([], ("push", "2")),
    "push": (["push"], ("push", "-a")),
    "pop": (["push -a"], ("pop", "2")),
    "refresh": (["push 3", "edit"], ("refresh",)),
    "lower": (["push 3", "edit"], ("refresh", "--name", "first")),
    "new": (["push 2"], ("new", "more")),
    "conflict": (["push 1", "tear"], ("push",)),
    "complete": (["push 1", "tear", "push", "resolve"], ("refresh",)),
    "give up": (["push 1", "tear", "push", "resolve"], ("pop",)),
}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill loses nothing that a system call has taken: no need to wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _handle: None)


def prepared(folder: Path, before: list[str]) -> Hand:
    hand = Hand(folder)
    for step in before:
        if step == "edit":
            hand.edit("a.txt", "line 20", "twenty")
        elif step == "tear":
            hand.edit("a.txt", "line 4\n", "four of first\n")
            hand.call("refresh")
        elif step == "resolve":
            text = (hand.tree / "a.txt").read_text().partition("<<<<<<<")[0]
            (hand.tree / "a.txt").write_text(text + "resolved\n")
        else:
            hand.call(*step.split(), code=None)
    if hand.tree.exists():
        # An edit that has nothing to do with it.
        (hand.tree / "same.txt").write_text("mine\n")
    return hand


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_kill_anywhere(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, args = COMMANDS[command]
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")  # a new patch has a date
    (tmp_path / "temp").mkdir()
    hand = prepared(tmp_path / "story", before)
    kept = tmp_path / "kept"
    shutil.copytree(hand.root, kept, symlinks=True)
    if command == "refresh":
        args = (*args, "a.txt")

    def prepare() -> None:
        shutil.rmtree(hand.root)
        shutil.copytree(kept, hand.root, symlinks=True)

    def run(step: crash.Step) -> crash.Run:
        return crash.forked(lambda: call(hand.root, *args, code=None), step)

    def stands() -> tuple[dict[str, bytes], Tree]:
        return hand.patches(), hand.files() if hand.tree.exists() else {}

    old = stands()
    whole = run(crash.NEVER)
    new = stands()
    assert new != old
    prepare()
    counted = run(crash.NEVER)
    assert stands() == new, (whole, counted)

    def check(done: crash.Run) -> None:
        after = call(hand.root, "status", "--json").json
        series = hand.patches()
        assert series in (old[0], new[0])
        # What was edited stands there still, whatever else happened.
        if old[1]:
            assert (hand.tree / "same.txt").read_text() == "mine\n"
        if command in ("refresh", "lower"):
            assert "twenty" in (hand.tree / "a.txt").read_text()
        if command == "complete":
            assert "resolved" in (hand.tree / "a.txt").read_text()
        again = call(hand.root, *args, "--json", code=None)
        assert again.code in (0, 1, 4), again
        now = call(hand.root, "status", "--json").json["work"]
        # `new` refuses a name that is there already, and looks at nothing else then.
        assert now is None or not now["behind"] or (command == "new" and again.code == 1)
        if series == old[0] and after["work"] == before_work:
            assert stands() == new, again

    prepare()
    before_work = call(hand.root, "status", "--json").json["work"]
    inside = telling(counted, hand.root, kept)
    # Those of the record have a test of their own (tests/cli/test_kills.py).
    ours = [n for n in inside if "/patchq/work/" in counted.effects[n - 1]]
    steps = sorted({*ours, *inside[::5], len(counted.effects)})
    assert crash.every_step(run, check, prepare=prepare, steps=steps) > 5
