"""What changed in a patch between two releases, without what always changes."""

from __future__ import annotations

from patchq.carry.rangediff import between, changes_lines, limited, renamed
from patchq.queue.diff import parse
from tests.support.history import lines
from tests.support.kit import Kit

TEXT = lines(range(1, 31))


def test_only_places_moved(kit: Kit) -> None:
    kit.history.commit().write("a.txt", TEXT).tag("v1")
    kit.history.commit().write("a.txt", b"more\n" + TEXT).tag("v2")
    for base in ("v1", "v2"):
        topic = kit.history.branch(f"on-{base}", at=base).commit()
        topic.edit("a.txt", b"line 9\n", b"9\n")
    old, new = kit.patch("v1", "on-v1"), kit.patch("v2", "on-v2")
    assert old.diff != new.diff
    assert between(old.diff, new.diff) == ""


def test_a_line_around_changed(kit: Kit) -> None:
    kit.history.commit().write("a.txt", TEXT).tag("v1")
    kit.history.commit().edit("a.txt", b"line 7\n", b"seven\n").tag("v2")
    for base in ("v1", "v2"):
        topic = kit.history.branch(f"on-{base}", at=base).commit()
        topic.edit("a.txt", b"line 9\n", b"9\n")
    found = between(kit.patch("v1", "on-v1").diff, kit.patch("v2", "on-v2").diff)
    assert found.split("\n")[:2] == ["## a.txt ##", "@@ -1,5 +1,5 @@"]
    assert "- line 7" in found and "+ seven" in found
    assert not changes_lines(found)


def test_a_line_of_the_patch_changed(kit: Kit) -> None:
    kit.history.commit().write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
    one = kit.history.branch("one", at="v1").commit().edit("a.txt", b"line 9\n", b"9\n")
    one.edit("b.txt", b"line 9\n", b"9\n")
    two = kit.history.branch("two", at="v1").commit().edit("a.txt", b"line 9\n", b"nine\n")
    two.edit("b.txt", b"line 9\n", b"9\n")
    found = between(kit.patch("v1", "one").diff, kit.patch("v1", "two").diff)
    assert "b.txt" not in found
    assert "-+9" in found.split("\n") and "++nine" in found.split("\n")
    assert changes_lines(found)


def test_a_file_that_upstream_moved(kit: Kit) -> None:
    kit.history.commit().write("a.txt", TEXT).tag("v1")
    kit.history.commit().move("a.txt", "b\x1b.txt").tag("v2")
    kit.history.branch("one", at="v1").commit().edit("a.txt", b"line 9\n", b"9\n")
    kit.history.branch("two", at="v2").commit().edit("b\x1b.txt", b"line 9\n", b"9\n")
    old, new = kit.patch("v1", "one").diff, kit.patch("v2", "two").diff
    assert between(old, new, {b"a.txt": b"b\x1b.txt"}) == r"## a.txt -> b\x1b.txt ##"
    found = between(old, new)
    assert "## a.txt ##" in found and r"## b\x1b.txt ##" in found
    assert changes_lines(found)


def test_a_file_that_is_left_out(kit: Kit) -> None:
    kit.history.commit().write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
    kit.history.branch("one", at="v1").commit().edit("a.txt", b"line 9\n", b"9\n")
    kit.history.branch("two", at="one").commit().edit("b.txt", b"line 9\n", b"9\n")
    found = between(kit.patch("v1", "two").diff, kit.patch("v1", "one").diff)
    assert found.startswith("## b.txt ##\n")
    assert "--line 9" in found and "-+9" in found
    assert changes_lines(found)


def test_a_diff_under_the_names_of_before(kit: Kit) -> None:
    kit.history.commit().write("b.txt", TEXT).write("x y\x1b.txt", TEXT).write("c", TEXT).tag("v1")
    one = kit.history.branch("one", at="v1").commit().edit("b.txt", b"line 9\n", b"--- b/b.txt\n")
    one.delete("x y\x1b.txt").edit("c", b"line 9\n", b"9\n").write("new", b"1\n")
    diff = kit.patch("v1", "one").diff
    names = {b"b.txt": b"a.txt", b"x y\x1b.txt": b"z\t.txt", b"new": b"old", b"gone": b"a"}

    found = renamed(diff, names)

    paths = [file.path for file in parse(found, "test")]
    assert paths == [b"a.txt", b"c", b"old", b"z\t.txt"]
    assert renamed(found, {to: path for path, to in names.items()}).count(b"\n") == diff.count(
        b"\n"
    )
    assert b"+--- b/b.txt\n" in found
    assert limited(found, {b"c"}) == limited(diff, {b"c"})
    assert renamed(diff, {b"b.txt": b"c"}) == renamed(diff, {}) == diff
    assert renamed(diff, {b"b.txt": b"a", b"c": b"a"}) == diff
    assert renamed(b"", names) == limited(b"", {b"c"}) == b""


def test_bytes_that_are_no_text() -> None:
    one = b"diff --git a/x b/x\n@@ -1 +1 @@\n-a\n+\xff\n"
    two = b"diff --git a/x b/x\n@@ -1 +1 @@\n-a\n+\xfe\r\n"
    found = between(one, two)
    assert found.encode("utf-8", "surrogateescape").split(b"\n")[-2:] == [b"++\xfe\r", b" "]


def test_the_same_and_nothing() -> None:
    assert between(b"", b"") == ""
    assert between(b"", b"diff --git a/x b/x\nold mode 100644\n").startswith("## x ##\n")
    assert not changes_lines("")
