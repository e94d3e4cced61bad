"""What is kept in a cache is whole, or not there."""

from __future__ import annotations

from pathlib import Path

from patchq.caches import keep


def test_it_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "er" / "a.json"
    keep(file, b"1")
    keep(file, b"2")
    assert file.read_bytes() == b"2"
    assert [each.name for each in file.parent.iterdir()] == ["a.json"], "nothing beside it"


def test_where_it_cannot_be_written_nothing_happens(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"no folder")
    keep(tmp_path / "file" / "a.json", b"1")
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    keep(tmp_path / "folder", b"1")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "folder"]
