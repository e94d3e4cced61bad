"""new: an empty patch where the next edits go."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.hand import Hand


@pytest.fixture
def hand(tmp_path: Path) -> Hand:
    return Hand(tmp_path)


def test_without_a_tree_it_is_the_last(hand: Hand) -> None:
    said = hand.json("new", "fifth", "-m", "Do more")
    assert (said["top"], said["applied"]) == ("fifth", 5)
    assert hand.files() == hand.judged()
    text = hand.patch("fifth").read_text()
    assert hand.patch("fifth").name == "0005-fifth.patch"
    assert text.startswith("From: A. Author <author@example.com>\nDate: ")
    for line in ("Subject: Do more", "Origin: vendor", "Upstream-Status: Pending"):
        assert f"\n{line}\n" in text
    (hand.tree / "own.txt").write_text("mine\n")
    hand.call("refresh")
    assert "+mine" in hand.patch("fifth").read_text()
    assert hand.json("status")["proved"] is True
    hand.call("check", "--quilt")


def test_it_stands_behind_the_top(hand: Hand) -> None:
    hand.call("push", "2")
    hand.edit("same.txt", "line 1\n", "mine\n")
    hand.call("new", "between")
    assert [p["name"] for p in hand.json("series")["patches"]] == [
        *("first", "second", "between", "third", "fourth"),
    ]
    assert "Subject: Between" in hand.patch("between").read_text()
    hand.call("refresh")
    hand.call("pop", "-a")
    hand.call("new", "zeroth")
    assert hand.json("series")["patches"][0]["name"] == "zeroth"
    hand.call("push", "-a")
    assert hand.files() == hand.judged()
    hand.call("undo")
    assert hand.json("push", code=1)["message"].startswith("every patch is applied")
    assert hand.json("status")["work"]["applied"] == [
        "first",
        "second",
        "between",
        "third",
        "fourth",
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Upper", "'Upper' cannot be a patch's name"),
        ("a/b", "small letters, digits and dashes: a-b"),
        ("../x", "cannot be a patch's name"),
        ("7", "would be taken for a patch's number"),
        ("first", "there is a patch first already"),
        ("", "cannot be a patch's name"),
    ],
)
def test_names_that_cannot_be(hand: Hand, name: str, told: str) -> None:
    before = hand.patches()
    said = hand.call("new", name, code=1)
    assert told in said.err
    assert hand.patches() == before
    assert not hand.tree.exists()


def test_a_retired_name_stays_taken(hand: Hand) -> None:
    hand.call("delete", "third", "--why", "done")
    assert "there is a patch third already" in hand.call("new", "third", code=1).err


def test_a_dry_run_changes_nothing(hand: Hand) -> None:
    before = hand.patches()
    assert hand.json("new", "fifth", "--dry-run")["entry"] is None
    assert hand.patches() == before
    assert not hand.tree.exists()


def test_an_empty_patch_outlives_the_files_below_it(hand: Hand) -> None:
    """It names a file to change nothing in; that file must be there where the patch stands."""
    hand.call("delete", "second", "--why", "it changes what will be gone")
    hand.call("new", "empty")
    hand.call("goto", "first")
    for path in ("a.txt", "same.txt"):
        (hand.tree / path).unlink()
    hand.call("refresh")
    hand.call("pop", "-a")
    hand.call("push", "first")
    hand.call("new", "between")
    hand.call("push", "-a")
    assert hand.files() == hand.judged()
