"""The patches above a change: what is carried, what stays byte for byte, what is left."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.carry.merge import Blob
from patchq.queue.patch import Patch
from patchq.work.report import Left
from patchq.work.restack import names_any, restack, split
from tests.support.history import lines
from tests.support.kit import Kit

TEXT = lines(range(1, 31))


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[Kit]:
    """A chain of patches: `one` and `two` on a.txt and b.txt, `three` on a.txt, `file` adds d."""
    made = Kit(tmp_path)
    made.history.commit().write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
    change = made.history.commit("one").edit("a.txt", b"line 5\n", b"five\n")
    change.edit("b.txt", b"line 5\n", b"five\n").tag("one")
    made.history.commit("two").edit("a.txt", b"line 15\n", b"15\n").tag("two")
    made.history.commit("three").edit("a.txt", b"line 25\n", b"25\n").tag("three")
    made.history.commit("file").write("d/x.txt", b"x\n").tag("file")
    yield made
    made.close()


def chain(kit: Kit) -> list[Patch]:
    names = ("v1", "one", "two", "three", "file")
    return [kit.patch(old, new, number) for number, (old, new) in enumerate(pairwise(names), 1)]


def blob(data: bytes) -> Blob:
    return Blob("100644", data)


def test_what_meets_the_change_is_carried_and_nothing_else(kit: Kit) -> None:
    patches = chain(kit)
    done = restack(kit.store, patches, {b"b.txt": blob(b"line 0\n" + TEXT)}, "below")
    assert done.carried == ("one",)
    assert (done.left, done.emptied) == ((), ())
    assert done.patches[1:] == tuple(patches[1:])
    old, new = split(patches[0].diff), split(done.patches[0].diff)
    assert new[b"a.txt"] == old[b"a.txt"]
    assert b"@@ -3,7 +3,7 @@" in new[b"b.txt"]
    assert done.ours[b"b.txt"] == blob(b"line 0\n" + TEXT.replace(b"line 5\n", b"five\n"))


def test_a_file_that_reads_as_known_is_no_change(kit: Kit) -> None:
    patches = chain(kit)
    done = restack(kit.store, patches, {b"a.txt": blob(TEXT)}, "below")
    assert done.patches == tuple(patches)
    assert done.ours == {}


def test_a_conflict_is_left_and_what_builds_on_it_waits(kit: Kit) -> None:
    patches = chain(kit)
    ours = {b"a.txt": blob(TEXT.replace(b"line 15\n", b"other\n"))}
    done = restack(kit.store, patches, ours, "below")
    assert done.carried == ("one",)
    assert done.left == (
        Left("two", ((b"a.txt", "content"),)),
        Left("three", (), "two"),
    )
    assert done.patches[1:] == tuple(patches[1:])


def test_what_is_there_already_empties_a_patch(kit: Kit) -> None:
    ours = {b"a.txt": blob(TEXT.replace(b"line 15\n", b"15\n"))}
    done = restack(kit.store, chain(kit), ours, "below")
    assert done.emptied == ("two",)
    assert done.patches[1].diff == b""
    assert b"\n+25\n" in done.patches[2].diff


def test_a_file_where_a_folder_is_wanted_is_a_conflict(kit: Kit) -> None:
    done = restack(kit.store, chain(kit), {b"d": blob(b"a file\n")}, "below")
    assert done.left == (Left("file", ((b"d/x.txt", "d stands in its way"),)),)


def test_contents_that_nobody_has_are_no_guess(kit: Kit) -> None:
    """Its `index` line names what is not in the store."""
    patch = chain(kit)[1]
    blob_id = patch.diff.split(b"index ")[1][:40]
    strange = patch.with_diff(patch.diff.replace(blob_id, b"1" * 40))
    done = restack(kit.store, [strange], {b"a.txt": blob(b"else\n")}, "below")
    assert done.left == (Left("two", ((b"a.txt", "what it was made on is not known here"),)),)


@given(st.lists(st.sampled_from(["a.txt", "d/é", "sp ace", 'q"uote', "back\\slash"]), unique=True))
def test_a_diff_is_taken_apart_and_put_together(names: list[str]) -> None:
    from patchq.queue.patch import quote

    sections = {}
    for name in names:
        path = name.encode()
        head = b"diff --git %b %b\n" % (quote(b"a/" + path), quote(b"b/" + path))
        sections[path] = head + b"@@ -1 +1 @@\n-x\rdiff --git a/no b/no\n+diff --git a/no b/no\n"
    assert split(b"".join(sections.values())) == sections


def test_whatever_touches_a_path_names_it(kit: Kit) -> None:
    one, _, _, file = chain(kit)
    assert names_any(one, [b"b.txt"])
    assert not names_any(file, [b"b.txt"])
    # As a file it would stand in the way of the folder.
    folder = kit.patch("v1", "one").with_diff(b"diff --git a/d b/d\nnew file mode 100644\n")
    assert names_any(folder, [b"d/x.txt"])
