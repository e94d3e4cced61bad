"""Answers that are kept beside the store."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from patchq.gitstore import contents, memo
from patchq.gitstore.contents import Merged, question
from patchq.gitstore.memo import Memo
from patchq.gitstore.store import Store

BASE, OURS, THEIRS = b"a\nb\nc\n", b"a\nours\nc\n", b"a\ntheirs\nc\n"


def test_an_answer_outlives_its_process(tmp_path: Path) -> None:
    one = Memo(tmp_path / "kept")
    one.put(b"?", b"!" * 1000)
    assert one.get(b"?") == b"!" * 1000
    one.close()

    other = Memo(tmp_path / "kept")
    assert other.get(b"?") == b"!" * 1000
    assert other.get(b"another") is None
    other.close()


def test_what_was_asked_only_makes_no_file(tmp_path: Path) -> None:
    asked = Memo(tmp_path / "kept")
    assert asked.get(b"?") is None
    asked.close()
    assert not list(tmp_path.iterdir())


def test_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "MOST", 2)
    kept = Memo(tmp_path / "kept")
    for name in (b"1", b"2", b"3"):
        kept.put(name, name)
    kept.close()
    again = Memo(tmp_path / "kept")
    assert [again.get(name) for name in (b"1", b"2", b"3")] == [None, b"2", b"3"]
    again.close()


@pytest.mark.parametrize("data", [b"", b"no database at all", b"SQLite format 3\0" + bytes(4096)])
def test_a_broken_file_is_no_obstacle(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "kept").write_bytes(data)
    kept = Memo(tmp_path / "kept")
    assert kept.get(b"?") is None
    kept.put(b"?", b"!")
    assert kept.get(b"?") == b"!"
    kept.close()


def test_a_folder_that_is_gone_is_none_either(tmp_path: Path) -> None:
    kept = Memo(tmp_path / "gone" / "kept")
    kept.put(b"?", b"!")
    kept.close()


def test_another_process_that_writes_is_waited_for_and_then_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Memo(tmp_path / "kept")
    first.put(b"?", b"!")
    first.close()
    monkeypatch.setattr(memo, "PATIENCE", 0.01)
    other = sqlite3.connect(tmp_path / "kept", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    blocked = Memo(tmp_path / "kept")
    assert blocked.get(b"?") is None
    blocked.put(b"more", b"!")
    blocked.close()
    other.close()


def test_parts_of_a_question_are_told_apart() -> None:
    assert question(b"ab", b"c") != question(b"a", b"bc")
    assert question(b"a") != question(b"a", b"")


def test_a_merge_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(tmp_path / "s.git") as store:
        merged = store.merge_file(BASE, OURS, THEIRS)
        diff = store.diff_data(OURS, THEIRS)
    monkeypatch.setattr(contents, "merged", None)
    monkeypatch.setattr(contents, "difference", None)
    with Store(tmp_path / "s.git") as store:
        assert store.merge_file(BASE, OURS, THEIRS) == merged == Merged(merged.data, 1)
        assert store.diff_data(OURS, THEIRS) == diff


def test_labels_and_winners_are_part_of_the_question(tmp_path: Path) -> None:
    with Store(tmp_path / "s.git") as store:
        texts = {
            store.merge_file(BASE, OURS, THEIRS).data,
            store.merge_file(BASE, OURS, THEIRS, labels=("v2", "v1", "x")).data,
            store.merge_file(BASE, OURS, THEIRS, favour="ours").data,
            store.merge_file(BASE, OURS, THEIRS, favour="theirs").data,
        }
    assert len(texts) == 4
