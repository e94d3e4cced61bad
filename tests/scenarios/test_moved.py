"""Files that upstream moved or deleted, and files that the patches do."""

from __future__ import annotations

import pytest

from tests.support.cli import Queue
from tests.support.history import History, lines, script

TEXT = lines(range(1, 41))
OURS = TEXT.replace(b"line 20\n", b"line 20, ours\n")


@pytest.mark.parametrize("edited", [False, True], ids=["as-it-is", "edited"])
def test_file_moved(upstream: History, queue: Queue, edited: bool) -> None:
    upstream.commit().write("old/place.py.txt", TEXT).write("z", b"z\n").tag("v1")
    move = upstream.commit().move("old/place.py.txt", "new/home.txt")
    if edited:
        move.edit("new/home.txt", b"line 3\n", b"line 3, upstream's\n")
    move.tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.write("old/place.py.txt", OURS)
    names = queue.start().names()

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["carry"], patch["action"]) == ("needed", "moved", "keep")
    assert queue.names() == names
    diff = queue.patch_file(1).read_bytes().split(b"\ndiff --git ", 1)[1]
    assert b"b/new/home.txt" in diff
    assert b"old/place" not in diff
    wanted = OURS.replace(b"line 3\n", b"line 3, upstream's\n") if edited else OURS
    queue.expect({"new/home.txt": wanted, "z": b"z\n"})


def test_two_patches_on_a_moved_file(upstream: History, queue: Queue) -> None:
    """The second patch finds the file where the first one followed it."""
    upstream.commit().write("old.txt", TEXT).tag("v1")
    upstream.commit().move("old.txt", "new.txt").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one").write("old.txt", OURS)
    topic.commit("two").edit("old.txt", b"line 21\n", b"line 21, ours\n")
    queue.start()

    assert queue.sync().column("carry") == ["moved", "moved"]
    queue.expect({"new.txt": OURS.replace(b"line 21\n", b"line 21, ours\n")})


def test_file_moved_and_landed(upstream: History, queue: Queue) -> None:
    upstream.commit().write("old.txt", TEXT).tag("v1")
    upstream.commit().move("old.txt", "new.txt")
    upstream.commit().edit("new.txt", b"line 20\n", b"line 20, ours\n").tag("v2")
    upstream.branch("topic", at="v1").commit().write("old.txt", OURS)
    queue.start()

    assert queue.sync().column("verdict") == ["landed"]
    queue.expect(upstream.tree("v2"))


def test_file_moved_and_conflicting(upstream: History, queue: Queue) -> None:
    upstream.commit().write("old.txt", TEXT).tag("v1")
    move = upstream.commit().move("old.txt", "new.txt")
    move.edit("new.txt", b"line 20\n", b"line 20, upstream's\n").tag("v2")
    upstream.branch("topic", at="v1").commit().write("old.txt", OURS)
    queue.start()

    patch = queue.sync(code=4).patch(1)

    assert (patch["carry"], patch["action"]) == ("conflict", "ask")
    assert patch["conflicts"][0]["path"] in {"new.txt", "old.txt"}


def test_copied_upstream_stays_in_place(upstream: History, queue: Queue) -> None:
    """A copy is no move: the file that the patch knows is still there."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().write("copy.txt", TEXT).tag("v2")
    upstream.branch("topic", at="v1").commit().write("a.txt", OURS)
    queue.start()

    assert queue.sync().column("carry") == ["clean"]
    queue.expect({"a.txt": OURS, "copy.txt": TEXT})


def test_folder_moved_takes_new_files_along(upstream: History, queue: Queue) -> None:
    start = upstream.commit().write("z", b"z\n")
    for number in range(4):
        start.write(f"pkg/m{number}.txt", lines(range(1, 20), word=f"m{number}"))
    start.tag("v1")
    upstream.commit().move_folder("pkg", "lib/pkg").tag("v2")
    topic = upstream.branch("topic", at="v1").commit().write("pkg/extra.txt", b"extra\n")
    topic.edit("pkg/m2.txt", b"m2 7\n", b"m2 7, ours\n")
    queue.start()

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["carry"]) == ("needed", "moved")
    wanted = upstream.tree("v2")
    queue.expect(
        {
            **wanted,
            "lib/pkg/extra.txt": b"extra\n",
            b"lib/pkg/m2.txt": wanted[b"lib/pkg/m2.txt"].data.replace(b"m2 7\n", b"m2 7, ours\n"),
        }
    )


def test_folder_moved_and_only_a_new_file(upstream: History, queue: Queue) -> None:
    start = upstream.commit().write("z", b"z\n")
    for number in range(4):
        start.write(f"pkg/m{number}.txt", lines(range(1, 20), word=f"m{number}"))
    start.tag("v1")
    upstream.commit().move_folder("pkg", "lib/pkg").tag("v2")
    upstream.branch("topic", at="v1").commit().write("pkg/extra.txt", b"extra\n")
    queue.start()

    assert queue.sync().column("carry") == ["moved"]
    queue.expect({**upstream.tree("v2"), "lib/pkg/extra.txt": b"extra\n"})


def test_folder_that_still_exists_keeps_new_files(upstream: History, queue: Queue) -> None:
    """One file left the folder; the folder did not move."""
    start = upstream.commit()
    for number in range(4):
        start.write(f"pkg/m{number}.txt", lines(range(1, 20), word=f"m{number}"))
    start.tag("v1")
    upstream.commit().move("pkg/m0.txt", "lib/m0.txt").tag("v2")
    upstream.branch("topic", at="v1").commit().write("pkg/extra.txt", b"extra\n")
    queue.start()

    assert queue.sync().column("carry") == ["clean"]
    queue.expect({**upstream.tree("v2"), "pkg/extra.txt": b"extra\n"})


def test_file_deleted_upstream(upstream: History, queue: Queue) -> None:
    """Never dropped without a word: someone must say what becomes of the change."""
    upstream.commit().write("a.txt", TEXT).write("z", b"z\n").tag("v1")
    upstream.commit().delete("a.txt").tag("v2")
    upstream.branch("topic", at="v1").commit().write("a.txt", OURS)
    queue.start()

    patch = queue.sync(code=4).patch(1)

    assert (patch["verdict"], patch["carry"], patch["action"]) == ("gone", "conflict", "ask")
    assert [one["path"] for one in patch["conflicts"]] == ["a.txt"]


def test_patch_deletes_a_file(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", TEXT).write("z", b"z\n").tag("v1")
    upstream.commit().write("z", b"zz\n").tag("v2")
    upstream.branch("topic", at="v1").commit().delete("a.txt")
    queue.start()

    assert queue.sync().column("carry") == ["clean"]
    queue.expect({"z": b"zz\n"})


def test_patch_deletes_what_upstream_changed(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", TEXT).write("z", b"z\n").tag("v1")
    upstream.commit().edit("a.txt", b"line 5\n", b"line 5, upstream's\n").tag("v2")
    upstream.branch("topic", at="v1").commit().delete("a.txt")
    queue.start()

    patch = queue.sync(code=4).patch(1)

    assert (patch["carry"], patch["action"]) == ("conflict", "ask")
    assert [one["path"] for one in patch["conflicts"]] == ["a.txt"]


def test_patch_renames_what_upstream_changed(upstream: History, queue: Queue) -> None:
    """Upstream's change ends under the name that the patch gives."""
    upstream.commit().write("old.txt", TEXT).tag("v1")
    upstream.commit().edit("old.txt", b"line 5\n", b"line 5, upstream's\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("rename").move("old.txt", "new.txt")
    topic.edit("new.txt", b"line 30\n", b"line 30, ours\n")
    queue.start()

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["action"]) == ("needed", "keep")
    wanted = TEXT.replace(b"line 5\n", b"line 5, upstream's\n")
    queue.expect({"new.txt": wanted.replace(b"line 30\n", b"line 30, ours\n")})


def test_patch_renames_and_edits_an_untouched_file(upstream: History, queue: Queue) -> None:
    upstream.commit().write("old.txt", TEXT).write("z", b"z\n").tag("v1")
    upstream.commit().write("z", b"zz\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("rename").move("old.txt", "new.txt")
    topic.edit("new.txt", b"line 30\n", b"line 30, ours\n").chmod("new.txt", 0o100755)
    queue.start()

    assert queue.sync().column("action") == ["keep"]
    queue.expect({"new.txt": script(TEXT.replace(b"line 30\n", b"line 30, ours\n")), "z": b"zz\n"})


def test_patch_splits_a_file(upstream: History, queue: Queue) -> None:
    """Half of the file goes to a new one; upstream changed the half that stays."""
    half, rest = lines(range(1, 21)), lines(range(21, 41))
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 5\n", b"line 5, upstream's\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("split")
    topic.write("a.txt", half).write("b.txt", rest)
    queue.start()

    assert queue.sync().column("action") == ["keep"]
    queue.expect({"a.txt": half.replace(b"line 5\n", b"line 5, upstream's\n"), "b.txt": rest})


def test_rename_then_edit_in_the_next_patch(upstream: History, queue: Queue) -> None:
    upstream.commit().write("old.txt", TEXT).tag("v1")
    upstream.commit().edit("old.txt", b"line 5\n", b"line 5, upstream's\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("rename").move("old.txt", "new.txt")
    topic.commit("edit").edit("new.txt", b"line 30\n", b"line 30, ours\n")
    queue.start()

    assert queue.sync().column("action") == ["keep", "keep"]
    wanted = TEXT.replace(b"line 5\n", b"line 5, upstream's\n")
    queue.expect({"new.txt": wanted.replace(b"line 30\n", b"line 30, ours\n")})


def test_both_rename_alike(upstream: History, queue: Queue) -> None:
    """The rename landed, the edit did not."""
    upstream.commit().write("old.txt", TEXT).tag("v1")
    upstream.commit().move("old.txt", "new.txt").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("rename").move("old.txt", "new.txt")
    topic.edit("new.txt", b"line 30\n", b"line 30, ours\n")
    queue.start()

    assert queue.sync().column("action")[0] in {"shrink", "keep"}
    queue.expect({"new.txt": TEXT.replace(b"line 30\n", b"line 30, ours\n")})


def test_both_rename_apart(upstream: History, queue: Queue) -> None:
    upstream.commit().write("old.txt", TEXT).tag("v1")
    upstream.commit().move("old.txt", "theirs.txt").tag("v2")
    upstream.branch("topic", at="v1").commit("rename").move("old.txt", "ours.txt")
    queue.start()

    patch = queue.sync(code=4).patch(1)

    assert (patch["carry"], patch["action"]) == ("conflict", "ask")


def test_both_add_the_file_differently(upstream: History, queue: Queue) -> None:
    upstream.commit().write("z", b"z\n").tag("v1")
    upstream.commit().write("new.txt", lines(range(1, 20), word="theirs")).tag("v2")
    topic = upstream.branch("topic", at="v1").commit()
    topic.write("new.txt", lines(range(1, 20), word="ours"))
    queue.start()

    patch = queue.sync(code=4).patch(1)

    assert (patch["carry"], patch["action"]) == ("conflict", "ask")
    assert [one["path"] for one in patch["conflicts"]] == ["new.txt"]


def test_upstream_puts_a_file_where_the_patch_has_a_folder(upstream: History, queue: Queue) -> None:
    upstream.commit().write("z", b"z\n").tag("v1")
    upstream.commit().write("conf", b"a file\n").tag("v2")
    upstream.branch("topic", at="v1").commit().write("conf/main.txt", b"in a folder\n")
    queue.start()

    patch = queue.sync(code=4).patch(1)

    assert (patch["carry"], patch["action"]) == ("conflict", "ask")
    assert patch["conflicts"]


def test_upstream_puts_a_folder_where_the_patch_has_a_file(upstream: History, queue: Queue) -> None:
    upstream.commit().write("z", b"z\n").tag("v1")
    upstream.commit().write("conf/main.txt", b"in a folder\n").tag("v2")
    upstream.branch("topic", at="v1").commit().write("conf", b"a file\n")
    queue.start()

    patch = queue.sync(code=4).patch(1)

    assert (patch["carry"], patch["action"]) == ("conflict", "ask")
    assert patch["conflicts"]
