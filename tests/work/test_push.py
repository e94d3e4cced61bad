"""push, pop, goto: what stands in the tree, what keeps its time, what stops them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.hand import NAMES, Hand
from tests.support.history import git


@pytest.fixture
def hand(tmp_path: Path) -> Hand:
    return Hand(tmp_path)


def test_one_after_the_other_and_back(hand: Hand) -> None:
    """Each push gives what `git am` of the first patches gives; each pop what was before."""
    stood = [hand.upstream.tree("v1")]
    for count, name in enumerate(NAMES, 1):
        said = hand.json("push")
        assert (said["top"], said["applied"], said["unapplied"]) == (name, count, 4 - count)
        assert said["patches"] == [{"name": name, "what": "pushed"}]
        stood.append(hand.files())
    assert stood[-1] == hand.judged()
    assert len({str(sorted(tree)) + repr(tree) for tree in stood}) == 5
    for count in (3, 2, 1, 0):
        hand.call("pop")
        assert hand.files() == stood[count]
    assert hand.json("status")["work"]["applied"] == []


def test_all_a_number_a_name(hand: Hand) -> None:
    assert hand.json("push", "2")["top"] == "second"
    assert hand.json("push", "-a")["top"] == "fourth"
    assert hand.files() == hand.judged()
    assert hand.json("pop", "2")["top"] == "second"
    assert hand.json("push", "third")["top"] == "third"
    assert hand.json("pop", "first")["top"] == "first"
    assert hand.json("goto", "4")["top"] == "fourth"
    assert hand.json("goto", "0002-second.patch")["top"] == "second"
    assert hand.json("push", "900")["top"] == "fourth"
    assert hand.json("pop", "-a")["top"] is None
    assert hand.files() == hand.upstream.tree("v1")


def test_only_files_that_differ_are_written(hand: Hand) -> None:
    hand.call("push")
    hand.age()
    before = hand.times()
    hand.call("push", "-a")
    after = hand.times()
    assert {name for name in after if after[name] != before.get(name)} == {
        *("a.txt", "b.txt", "pkg/mod.py", "run.sh", "to")
    }
    assert after["same.txt"] == before["same.txt"]


def test_series_and_status_tell_how_it_stands(hand: Hand) -> None:
    assert hand.json("series")["work"] is None
    assert hand.json("status")["work"] is None
    hand.call("push", "2")
    lines = [line.split()[:3] for line in hand.call("series").out.splitlines()[1:]]
    assert lines == [
        ["+", "0001", "first"],
        [">", "0002", "second"],
        ["-", "0003", "third"],
        ["-", "0004", "fourth"],
    ]
    hand.edit("a.txt", "line 30", "30")
    status = hand.call("status").out
    assert "second on top, 2 applied" in status
    assert "a.txt: not refreshed" in status
    assert hand.json("status")["work"]["edits"] == [{"path": "a.txt", "kind": "modified"}]


def test_edits_are_never_overwritten(hand: Hand) -> None:
    hand.call("push")
    hand.edit("a.txt", "line 30", "mine")
    hand.edit("same.txt", "line 1\n", "mine\n")
    before = hand.files()
    for args in (("push",), ("pop",), ("push", "-a"), ("goto", "fourth"), ("pop", "-a")):
        said = hand.call(*args, code=1)
        assert "a.txt in " in said.err and "has edits of yours" in said.err
        assert "`patchq refresh`" in said.err and "`git stash`" in said.err
        assert hand.files() == before
        assert hand.json("status")["work"]["top"] == "first"
    git(hand.tree, "stash", "-q", "--", "a.txt")
    hand.call("push", "-a")
    assert (hand.tree / "same.txt").read_text().startswith("mine\n")


def test_a_new_file_in_the_way_is_an_edit(hand: Hand) -> None:
    hand.call("push")
    (hand.tree / "pkg").mkdir()
    (hand.tree / "pkg/mod.py").write_text("mine\n")
    assert "pkg/mod.py" in hand.call("push", code=1).err
    (hand.tree / "pkg/mod.py").write_text("x = 1\n")
    hand.call("push")
    assert hand.json("status")["work"]["edits"] == []


def test_what_cannot_be_said(hand: Hand) -> None:
    for args, told in (
        (("pop",), "has no working tree yet"),
        (("refresh",), "has no working tree yet"),
        (("diff",), "has no working tree yet"),
        (("push", "fifth"), "there is no patch 'fifth'"),
    ):
        assert told in hand.call(*args, code=1).err
    hand.call("push", "-a")
    assert "every patch is applied; fourth is on top" in hand.call("push", code=1).err
    assert "first is applied already" in hand.call("push", "first", code=1).err
    hand.call("push", "-a")
    hand.call("pop", "-a")
    assert "no patch is applied" in hand.call("pop", code=1).err
    assert "third is not applied" in hand.call("pop", "third", code=1).err
    hand.call("hold", "third", "--why", "later")
    assert "third is held: later" in hand.call("push", "third", code=1).err


def test_a_dry_run_changes_nothing(hand: Hand) -> None:
    assert hand.json("push", "-a", "--dry-run")["top"] == "fourth"
    assert not hand.tree.exists()
    hand.call("push", "2")
    before = hand.files()
    assert hand.json("pop", "-a", "--dry-run")["patches"][0] == {"name": "second", "what": "popped"}
    assert hand.json("goto", "fourth", "--dry-run")["top"] == "fourth"
    assert hand.files() == before
    assert hand.json("status")["work"]["top"] == "second"


def test_inside_the_tree_patchq_finds_the_project(hand: Hand) -> None:
    hand.call("push", "2")
    from tests.support.inside import call

    assert call(hand.tree / "pkg", "push", "--json").json["top"] == "third"
    (hand.tree / "pkg/mod.py").write_text("x = 2\n")
    (hand.tree / "same.txt").write_text("mine\n")
    said = call(hand.tree / "pkg", "refresh", "mod.py", "--json").json
    assert said["taken"] == ["pkg/mod.py"]


def test_a_tree_that_was_deleted_is_made_anew(hand: Hand) -> None:
    hand.call("push", "2")
    stood = hand.files()
    shutil.rmtree(hand.tree)
    hand.call("push", "1")
    hand.call("pop", "1")
    assert hand.files() == stood
    shutil.rmtree(hand.tree.parent)
    assert hand.json("status")["work"] is None
    assert hand.json("push")["top"] == "first"


def test_a_cache_that_was_deleted_is_filled_again(hand: Hand, sealed: Path) -> None:
    hand.call("push", "2")
    hand.edit("same.txt", "line 1\n", "mine\n")
    shutil.rmtree(sealed / "patchq-cache")
    assert hand.json("push")["top"] == "third"
    assert (hand.tree / "same.txt").read_text().startswith("mine\n")
    hand.call("refresh")
    hand.call("push", "-a")
    assert hand.files() == hand.judged()


def test_a_state_that_is_damaged_is_named(hand: Hand) -> None:
    hand.call("push")
    file = hand.tree.parent / "state.json"
    for text in ("{", '{"schema": "other/1"}', '{"schema": "patchq.work-state/1"}'):
        file.write_text(text)
        said = hand.call("push", code=1)
        assert f"{file} is damaged" in said.err and "move" in said.err


def test_completion_offers_what_can_be_pushed_and_popped(
    hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    from patchq.cli.complete import applied_names, unapplied_names

    monkeypatch.chdir(hand.root)
    assert applied_names("") == []
    hand.call("push", "2")
    hand.call("hold", "third", "--why", "later")
    assert applied_names("f") == ["first"]
    assert unapplied_names("") == ["fourth"]
