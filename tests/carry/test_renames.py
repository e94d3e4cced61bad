"""Where files went, looked for once for each pair of trees."""

from __future__ import annotations

import pytest

from patchq.carry.renames import Renames
from patchq.gitstore.store import Store
from tests.support.history import lines
from tests.support.kit import Kit

TEXT = lines(range(1, 31))


def renames(kit: Kit) -> Renames:
    return Renames(kit.store, kit.tree("v1"), kit.tree("v2"))


def tell(kit: Kit) -> None:
    start = kit.history.commit().write("old/a.txt", TEXT).write("old/b.txt", TEXT + b"b\n")
    start.write("old/deep/c.txt", TEXT + b"c\n").write("stays/d.txt", TEXT + b"d\n")
    start.write("é 1.txt", TEXT + b"e\n").write("gone.txt", b"gone\n").tag("v1")
    change = kit.history.commit().move_folder("old", "new/place").move("é 1.txt", "ü\n2.txt")
    change.edit("new/place/a.txt", b"line 4\n", b"four\n").delete("gone.txt").tag("v2")


def test_a_file_that_moved(kit: Kit) -> None:
    tell(kit)
    found = renames(kit)
    for old, new in [
        (b"old/a.txt", b"new/place/a.txt"),
        (b"old/deep/c.txt", b"new/place/deep/c.txt"),
        ("é 1.txt".encode(), "ü\n2.txt".encode()),
        (b"gone.txt", b"gone.txt"),
        (b"stays/d.txt", b"stays/d.txt"),
        (b"never.txt", b"never.txt"),
    ]:
        assert found.new_name(old, existed=True) == new


def test_a_new_file_follows_its_folder(kit: Kit) -> None:
    tell(kit)
    found = renames(kit)
    for path, new in [
        (b"old/new.txt", b"new/place/new.txt"),
        (b"old/deep/new.txt", b"new/place/deep/new.txt"),
        (b"old/deep/er/new.txt", b"new/place/deep/er/new.txt"),
        (b"stays/new.txt", b"stays/new.txt"),
        (b"other/new.txt", b"other/new.txt"),
        (b"top.txt", b"top.txt"),
    ]:
        assert found.new_name(path, existed=False) == new


def test_a_folder_that_was_deleted_leads_nowhere(kit: Kit) -> None:
    kit.history.commit().write("old/a.txt", TEXT).write("b", b"").tag("v1")
    kit.history.commit().delete("old/a.txt").tag("v2")
    assert renames(kit).new_name(b"old/new.txt", existed=False) == b"old/new.txt"


def test_most_files_say_where_a_folder_went(kit: Kit) -> None:
    start = kit.history.commit()
    for n in range(3):
        start.write(f"old/{n}", lines(range(n * 100, n * 100 + 20)))
    start.tag("v1")
    kit.history.commit().move("old/0", "one/0").move("old/1", "two/1").move("old/2", "two/2").tag(
        "v2"
    )
    assert renames(kit).new_name(b"old/new", existed=False) == b"two/new"


def test_the_search_is_kept(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(kit)
    assert renames(kit).new_name(b"old/a.txt", existed=True) == b"new/place/a.txt"
    monkeypatch.setattr(Store, "changes", None)
    again = renames(kit)
    assert again.new_name(b"old/a.txt", existed=True) == b"new/place/a.txt"
    assert again.new_name("é 1.txt".encode(), existed=True) == "ü\n2.txt".encode()


def test_nothing_moved(kit: Kit) -> None:
    kit.history.commit().write("a", b"a\n").tag("v1")
    kit.history.commit().delete("a").write("b", TEXT).tag("v2")
    assert renames(kit).new_name(b"a", existed=True) == b"a"
    assert renames(kit).new_name(b"a", existed=True) == b"a"
