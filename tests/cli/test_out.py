"""What a pipe gets: a diff byte for byte, and tables without blanks at the ends of lines."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.cli import program
from tests.support.hand import Hand
from tests.support.history import git

LONG = "x y " * 80


def piped(hand: Hand, *args: str) -> bytes:
    return subprocess.run([program(), *args], cwd=hand.root, capture_output=True, check=True).stdout


def test_a_diff_in_a_pipe_is_whole(tmp_path: Path) -> None:
    hand = Hand(tmp_path)
    hand.call("push", "-a")
    hand.edit("a.txt", "line 20", f"{LONG}\N{BELL}\x1b")
    edited = (hand.tree / "a.txt").read_bytes()
    diff = piped(hand, "diff")
    git(hand.tree, "checkout", "-q", "a.txt")
    git(hand.tree, "apply", "-", input=diff)
    assert (hand.tree / "a.txt").read_bytes() == edited


def test_a_patch_in_a_pipe_is_its_file(tmp_path: Path) -> None:
    hand = Hand(tmp_path)
    file = next((hand.root / "series").glob("0001-*.patch"))
    assert piped(hand, "show", "1") == file.read_bytes()


def test_tables_end_without_blanks(tmp_path: Path) -> None:
    hand = Hand(tmp_path)
    for command in ("series", "status", "check"):
        told = piped(hand, command).decode().splitlines()
        assert told and all(line == line.rstrip() for line in told), command
