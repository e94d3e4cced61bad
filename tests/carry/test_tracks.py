"""The touched paths on both sides, and how patches move them on."""

from __future__ import annotations

import pytest

from patchq.carry.merge import Blob
from patchq.carry.tracks import Misfit, Tracks, after
from patchq.errors import PatchqError
from patchq.judge.model import Observation
from patchq.judge.verdict import judge
from patchq.queue.diff import FileDiff
from tests.support.history import Entry, lines, submodule
from tests.support.kit import Kit

FILE, EXEC, LINK = "100644", "100755", "120000"
TEXT = lines(range(1, 31))
LABELS = ("v2", "before", "patch")


def tracks(kit: Kit, *refs: str) -> Tracks:
    patches = kit.series("v1", *refs)
    return Tracks(kit.store, kit.release("v1"), kit.release("v2"), patches)


# What a patch makes of a file


def after_patch(kit: Kit, base: Blob | None, path: bytes = b"a.txt") -> Blob | None:
    patch = kit.patch("v1", "topic")
    (file,) = [f for f in patch.files or () if f.path == path]
    return after(base, file, patch)


def test_after(kit: Kit) -> None:
    start = kit.history.commit().write("a.txt", TEXT).write("gone", b"x\n").write("m", b"m\n")
    start.write("bin", b"\0one" * 50).link("link", b"a").write("kind", TEXT).tag("v1")
    topic = kit.history.branch("topic", at="v1").commit().edit("a.txt", b"line 9\n", b"nine")
    topic.delete("gone").chmod("m", 0o100755).write("bin", b"\0one" * 50 + b"two")
    topic.link("link", b"b").link("kind", b"a.txt").write("new", b"new\n").write("new.bin", b"\0")
    topic.write("empty", b"")
    before = {path: Blob(f"{e.mode:o}", e.data) for path, e in kit.history.tree("v1").items()}
    wanted = {path: Blob(f"{e.mode:o}", e.data) for path, e in kit.history.tree("topic").items()}
    for path in before | wanted:
        assert after_patch(kit, before.get(path), path) == wanted.get(path), path


@pytest.mark.parametrize(
    ("base", "why"),
    [
        (None, "the file is not there"),
        (Blob(EXEC, TEXT), "its mode is 100755, not 100644"),
        (Blob(FILE, TEXT.replace(b"line 20\n", b"twenty\n")), "other lines stand where"),
        (Blob(FILE, b"line 0\n" + TEXT), "other lines stand where"),
        (Blob(FILE, b""), "other lines stand where"),
    ],
)
def test_a_patch_that_does_not_fit(kit: Kit, base: Blob | None, why: str) -> None:
    kit.history.commit().write("a.txt", TEXT).tag("v1")
    kit.history.branch("topic", at="v1").commit().edit("a.txt", b"line 19\n", b"nineteen\n")
    with pytest.raises(Misfit, match=f"0001-topic.patch does not apply to its own base.*{why}"):
        after_patch(kit, base)


def test_a_new_file_that_is_there(kit: Kit) -> None:
    kit.history.commit().write("b", b"").tag("v1")
    kit.history.branch("topic", at="v1").commit().write("a.txt", b"a\n")
    with pytest.raises(Misfit, match="the file is there already"):
        after_patch(kit, Blob(FILE, b"a\n"))


def test_binary_content_that_does_not_fit(kit: Kit) -> None:
    kit.history.commit().write("a.txt", b"\0one" * 100).tag("v1")
    kit.history.branch("topic", at="v1").commit().write("a.txt", b"\0one" * 100 + b"two")
    with pytest.raises(PatchqError):
        after_patch(kit, Blob(FILE, b"\0"))


# Reading both sides


@pytest.mark.parametrize("content", [b"x\n", b"\0x"])
def test_a_deletion_takes_what_it_knew_and_nothing_else(kit: Kit, content: bytes) -> None:
    """What a patch below changed since would go without a word."""
    kit.history.commit().write("gone", content).write("a.txt", TEXT).tag("v1")
    kit.history.branch("topic", at="v1").commit().delete("gone")
    assert after_patch(kit, Blob(FILE, content), b"gone") is None
    with pytest.raises(Misfit, match="removes is not all that stands there"):
        after_patch(kit, Blob(FILE, content + b"edited\n"), b"gone")


def test_the_sides_of_a_path(kit: Kit) -> None:
    kit.history.commit().write("a.txt", TEXT).write("same", TEXT).write("d/x", b"").write(
        "bin", b"\0" + TEXT
    ).tag("v1")
    change = kit.history.commit().edit("a.txt", b"line 3\n", b"three\n").write("bin", b"\0")
    change.delete("d/x").write("d", b"now a file\n").tag("v2")
    topic = kit.history.branch("topic", at="v1").commit().edit("a.txt", b"line 9\n", b"9\n")
    topic.edit("same", b"line 9\n", b"9\n").write("d/x", b"x\n").write("new", b"").write(
        "bin", b"\0\0"
    )
    found = tracks(kit, "topic").tracks
    a, same, x, new = found[b"a.txt"], found[b"same"], found[b"d/x"], found[b"new"]
    assert a.gaps is not None and len(a.gaps) == 1
    assert a.upstream_changed and a.gain.shared(a.gain.lines) == 1
    assert same.gaps == [] and same.old is same.new
    assert not same.upstream_changed
    assert x.old is not None and x.new is None
    assert new.old is None and new.new is None
    assert found[b"bin"].gaps is None


def test_onto_the_same_tree_nothing_is_looked_for(kit: Kit) -> None:
    kit.history.commit().write("a.txt", TEXT).tag("v1")
    kit.history.branch("topic", at="v1").commit().move("a.txt", "b.txt")
    side = kit.release("v1")
    found = Tracks(kit.store, side, side, kit.series("v1", "topic"))
    assert not (kit.store.path / "patchq-renames").exists()
    assert all(track.path == track.new_path for track in found.tracks.values())


def test_a_submodule_is_refused(kit: Kit) -> None:
    kit.history.commit().write("lib", submodule("1" * 40)).tag("v1")
    kit.history.commit().tag("v2")
    kit.history.branch("topic", at="v1").commit().write("lib", b"")
    with pytest.raises(PatchqError, match="submodule"):
        tracks(kit, "topic")


# Obstacles


@pytest.mark.parametrize(
    ("path", "there", "kind"),
    [
        ("x", "x/y", "a folder stands there upstream"),
        ("x/y", "x", "upstream has a file x, not a folder"),
        ("x/y/z", "x/y", "upstream has a file x/y, not a folder"),
    ],
)
def test_an_obstacle(kit: Kit, path: str, there: str, kind: str) -> None:
    kit.history.commit().write("b", b"").tag("v1")
    kit.history.commit().write(there, b"there\n").tag("v2")
    kit.history.branch("topic", at="v1").commit().write(path, b"new\n")
    (found,) = tracks(kit, "topic").merge(kit.patch("v1", "topic"), LABELS)
    assert (found.seen.merge, found.seen.kind) == ("conflict", kind)


@pytest.mark.parametrize(("old", "new"), [("x/y", "x"), ("x", "x/y")])
def test_what_the_patch_itself_clears_is_no_obstacle(kit: Kit, old: str, new: str) -> None:
    kit.history.commit().write(old, b"old\n").write("b", b"").tag("v1")
    kit.history.commit().write("b", b"b\n").tag("v2")
    kit.history.branch("topic", at="v1").commit().delete(old).write(new, b"other\n")
    merges = tracks(kit, "topic").merge(kit.patch("v1", "topic"), LABELS)
    assert [m.seen.merge for m in merges] == ["clean", "clean"]


def test_an_earlier_patch_cleared_the_way(kit: Kit) -> None:
    kit.history.commit().write("x/y", b"old\n").write("b", b"").tag("v1")
    kit.history.commit().write("b", b"b\n").tag("v2")
    kit.history.branch("one", at="v1").commit().delete("x/y")
    kit.history.branch("two", at="one").commit().write("x", b"new\n")
    found = tracks(kit, "one", "two")
    one, two = kit.series("v1", "one", "two")
    found.commit(found.merge(one, LABELS), keep=True)
    (merge,) = found.merge(two, LABELS)
    assert merge.seen.merge == "clean"


# A patch that moves a file


def test_upstreams_change_follows_a_patch_that_moves_the_file(kit: Kit) -> None:
    kit.history.commit().write("a.txt", TEXT).write("other", b"o\n").tag("v1")
    kit.history.commit().edit("a.txt", b"line 3\n", b"three\n").tag("v2")
    topic = kit.history.branch("topic", at="v1").commit().move("a.txt", "b.txt")
    topic.edit("b.txt", b"line 20\n", b"twenty\n").write("c.txt", b"unlike\n")
    found = tracks(kit, "topic")
    merges = {m.seen.path: m for m in found.merge(kit.patch("v1", "topic"), LABELS)}
    assert merges[b"a.txt"].outcome.result is None
    result = merges[b"b.txt"].outcome.result
    assert result is not None
    wanted = TEXT.replace(b"line 3\n", b"three\n").replace(b"line 20\n", b"twenty\n")
    assert result.data == wanted
    assert {m.seen.merge for m in merges.values()} == {"clean"}
    writes = {w.path for w in found.commit(list(merges.values()), keep=True)}
    assert writes == {b"a.txt", b"b.txt", b"c.txt"}


@pytest.mark.parametrize("edit", [b"line 20\n", b"twenty\n"], ids=["moved", "moved and edited"])
def test_a_move_is_needed_where_upstream_made_the_edit(kit: Kit, edit: bytes) -> None:
    """Nothing of the text is left to do, but the file has to go to its new place."""
    kit.history.commit().write("a.txt", TEXT).tag("v1")
    kit.history.commit().edit("a.txt", b"line 3\n", b"3\n").edit("a.txt", b"line 20\n", edit).tag(
        "v2"
    )
    topic = kit.history.branch("topic", at="v1").commit().move("a.txt", "b.txt")
    topic.edit("b.txt", b"line 20\n", edit)
    merges = tracks(kit, "topic").merge(kit.patch("v1", "topic"), LABELS)
    assert judge(Observation(tuple(m.seen for m in merges))).action == "keep"
    (result,) = [m.outcome.result for m in merges if m.outcome.result]
    assert result.data == kit.history.tree("v2")[b"a.txt"].data


def test_a_patch_that_deletes_and_adds_something_unlike(kit: Kit) -> None:
    kit.history.commit().write("a.txt", TEXT).tag("v1")
    kit.history.commit().edit("a.txt", b"line 3\n", b"three\n").tag("v2")
    topic = kit.history.branch("topic", at="v1").commit().delete("a.txt")
    topic.write("b.txt", lines(range(100, 130)))
    merges = {m.seen.path: m for m in tracks(kit, "topic").merge(kit.patch("v1", "topic"), LABELS)}
    assert merges[b"a.txt"].seen.kind == "changed upstream, deleted by the patch"
    assert merges[b"b.txt"].seen.merge == "clean"


# Moving on


def test_commit(kit: Kit) -> None:
    kit.history.commit().write("a.txt", TEXT).write("b.txt", TEXT).write("m", b"m\n").tag("v1")
    kit.history.commit().edit("a.txt", b"line 3\n", b"three\n").tag("v2")
    topic = kit.history.branch("topic", at="v1").commit().edit("a.txt", b"line 9\n", b"9\n")
    topic.delete("b.txt").chmod("m", 0o100755)
    found = tracks(kit, "topic")
    merges = found.merge(kit.patch("v1", "topic"), LABELS)
    assert found.tracks[b"a.txt"].old == Blob(FILE, TEXT), "a merge moves nothing"
    writes = {w.path: w for w in found.commit(merges, keep=True)}
    assert set(writes) == {b"a.txt", b"b.txt", b"m"}
    assert writes[b"b.txt"].data is None
    assert (writes[b"m"].mode, writes[b"m"].data) == (EXEC, b"m\n")
    track = found.tracks[b"a.txt"]
    assert track.new is not None and track.new.data == writes[b"a.txt"].data
    assert track.old == Blob(FILE, TEXT.replace(b"line 9\n", b"9\n"))


def test_a_dropped_patch_moves_only_the_old_side(kit: Kit) -> None:
    kit.history.commit().write("a.txt", TEXT).tag("v1")
    kit.history.commit().edit("a.txt", b"line 9\n", b"9\n").tag("v2")
    kit.history.branch("topic", at="v1").commit().edit("a.txt", b"line 9\n", b"9\n")
    found = tracks(kit, "topic")
    assert found.commit(found.merge(kit.patch("v1", "topic"), LABELS), keep=False) == []
    track = found.tracks[b"a.txt"]
    assert track.gaps is None
    assert track.old is not None and track.new is not None
    assert track.old.data == track.new.data


def test_an_entry_and_a_blob_agree(kit: Kit) -> None:
    """The file diffs of a patch name the blobs that the sides have."""
    kit.history.commit().write("a.txt", TEXT).tag("v1")
    kit.history.branch("topic", at="v1").commit().write("a.txt", Entry(b"x\n"))
    (file,) = kit.patch("v1", "topic").files or ()
    assert isinstance(file, FileDiff)
    assert (file.old_oid, file.new_oid) == (Blob(FILE, TEXT).oid, Blob(FILE, b"x\n").oid)
