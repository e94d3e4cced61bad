"""Resolutions as files: any path and content come through and back, and nothing else is taken."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.carry import resolutions
from patchq.carry.clash import Key, version
from patchq.carry.merge import Blob
from patchq.carry.resolutions import Edit, Resolution, Resolutions
from patchq.errors import PatchqError
from tests.support.kit import Kit

A, B, C = (Blob("100644", text) for text in (b"a\n", b"b\n", b"c\n"))
MODES = ("100644", "100755", "120000")
BLOBS = st.none() | st.builds(Blob, st.sampled_from(MODES), st.binary(max_size=40))
PATHS = (b"a", b"d/e f", b"tab\tx", "grün".encode(), b"latin\xfc", b'q"q', b"-dash", b".hidden")


def edit(ours: Blob | None, result: Blob | None, path: bytes = b"a", kind: str = "content") -> Edit:
    return Edit(Key(path, version(A), version(ours), version(C)), ours, result, kind)


def make(kit: Kit, *edits: Edit) -> tuple[Resolution, ...]:
    return resolutions.make(kit.store, "fix", ("v1", "v2"), edits, "0" * 64)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kit]:
    kit = Kit(tmp_path_factory.mktemp("kit"))
    kit.history.commit().write("a", b"a\n").tag("v1")
    yield kit
    kit.close()


@given(BLOBS, BLOBS, st.sampled_from(PATHS), st.sampled_from(["content", ""]))
def test_any_result_comes_back(
    shared: Kit, ours: Blob | None, result: Blob | None, path: bytes, kind: str
) -> None:
    (made,) = make(shared, edit(ours, result, path, kind))

    read = resolutions.parse(made.file, made.text)

    assert read == made
    assert read.key == edit(ours, result, path).key
    assert read.content(ours) == result
    assert read.beside == ("" if kind else "0" * 64)
    assert make(shared, edit(ours, result, path, kind)) == (made,), "the same bytes"


def test_names_of_the_files(shared: Kit) -> None:
    one, two = make(shared, edit(A, B, b".x/..y/" + b"z" * 200), edit(B, C, b".x/y z"))
    assert one.file.startswith("fix/z") and len(one.file) < 110
    assert two.file.startswith("fix/x-y-z-") and two.file.endswith(".diff")


def test_which_one_is_found(shared: Kit) -> None:
    (mine,) = make(shared, edit(A, B))
    (other,) = resolutions.make(shared.store, "other", ("v1", "v2"), [edit(A, C)], "0" * 64)
    key = mine.key

    assert Resolutions([other, mine]).of(key, "fix") == mine
    assert Resolutions([other, mine]).of(key, "third") == other
    assert Resolutions([mine], [other]).of(key, "third") == other, "the session's comes first"
    assert Resolutions([mine]).of(edit(B, A).key, "fix") is None
    assert not Resolutions()


def test_edits_beside_a_conflict_go_with_it(shared: Kit) -> None:
    made = make(shared, edit(A, B), edit(B, C, b"beside", ""))
    known = Resolutions(made)
    assert known.edits("0" * 64) == (made[1],)
    assert known.edits("1" * 64) == ()
    assert known.of(made[1].key, "fix") is None, "it is no conflict itself"


def test_read_names_a_stranger(shared: Kit) -> None:
    (made,) = make(shared, edit(A, B))
    folder = shared.history.path.parent / "series"
    (folder / "resolutions/fix").mkdir(parents=True)
    (folder / "resolutions" / made.file).write_bytes(made.text)
    assert [each.file for each in resolutions.read(folder)] == [made.file]
    assert resolutions.read(folder)[0].again
    (folder / "resolutions/note.txt").write_text("mine")
    with pytest.raises(PatchqError, match=r"resolutions/note.txt in the series folder is no sound"):
        resolutions.read(folder)


def test_a_second_file_in_it_is_a_lie(shared: Kit) -> None:
    (made,) = make(shared, edit(A, B))
    diff = made.diff + made.diff.replace(b"/a", b"/b")
    doubled = resolutions.parse(made.file, made.text[: -len(made.diff)] + diff)
    with pytest.raises(PatchqError, match="it changes another path"):
        doubled.content(A)
