"""Commits by `git fast-import`: any path, any content, any number."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.errors import PatchqError
from patchq.gitstore.fastimport import FastImport, Ident, Write, quote
from patchq.gitstore.store import Store
from tests.gitstore.conftest import WHO, raw_blob


def test_a_commit_as_it_was_told(store: Store) -> None:
    who = Ident("Zoë <evil>\n".encode(), b"z@example.org", 1_750_000_000, "-0730")
    with store.fast_import() as importer:
        first = importer.commit(b"Title\n\nBody \xff\n", who, None, [Write(b"a", data=b"1")])
        importer.commit(b"", who, first, [])
        one, two = importer.finish()
    told = "Zoë evil <z@example.org> 1750000000 -0730".encode()
    tree = store.objects.tree_of(one)
    _, _, data = next(store.objects.read_many([one]))
    assert data == (
        b"tree %s\nauthor %s\ncommitter %s\n\nTitle\n\nBody \xff\n" % (tree.encode(), told, told)
    )
    _, _, data = next(store.objects.read_many([two]))
    assert data == (
        b"tree %s\nparent %s\nauthor %s\ncommitter %s\n\n"
        % (tree.encode(), one.encode(), told, told)
    )


def test_the_same_again_is_the_same_commit(tmp_path: Path) -> None:
    ids = set()
    for name in ("one", "two"):
        with Store(tmp_path / name) as store, store.fast_import() as importer:
            importer.commit(b"x", WHO, None, [Write(b"a", data=b"1"), Write(b"b/c", data=b"2")])
            ids |= set(importer.finish())
    assert len(ids) == 1


NAME = st.binary(min_size=1, max_size=10).filter(
    lambda name: b"\0" not in name and b"/" not in name and name not in (b".", b"..", b".git")
)
PATH = st.lists(NAME, min_size=1, max_size=3).map(b"/".join)
CONTENT = st.binary(max_size=40) | st.sampled_from(
    [b"\n", b"data 5\n", b"done\n", b"\n\ncommit x\n"]
)


@settings(max_examples=25)
@given(st.lists(st.dictionaries(PATH, CONTENT, max_size=12), min_size=1, max_size=4))
def test_any_path_and_content(
    tmp_path_factory: pytest.TempPathFactory, commits: list[dict[bytes, bytes]]
) -> None:
    plain = [
        {path: data for path, data in files.items() if not _below_a_file(path, set(files))}
        for files in commits
    ]
    with Store(tmp_path_factory.mktemp("store") / "s.git") as store:
        with store.fast_import() as importer:
            for files in plain:
                importer.commit(
                    b"x", WHO, None, [Write(path, data=data) for path, data in files.items()]
                )
            ids = importer.finish()
        for commit, files in zip(ids, plain, strict=True):
            walked = store.objects.walk(store.objects.tree_of(commit))
            assert {path: store.objects.blob(entry.oid) for path, entry in walked} == files


def _below_a_file(path: bytes, files: set[bytes]) -> bool:
    parts = path.split(b"/")
    return any(b"/".join(parts[:end]) in files for end in range(1, len(parts)))


def test_quoted_paths() -> None:
    assert quote(b"a b") == b'"a b"'
    assert quote("ü\x7f".encode()) == b'"\xc3\xbc\x7f"'
    assert quote(b'\n"\\\x01') == rb'"\012\"\\\001"'


def test_thousands_of_commits(store: Store) -> None:
    """The ids come back while git still reads: neither waits for the other."""
    with store.fast_import() as importer:
        parent: int | None = None
        for count in range(9000):
            parent = importer.commit(b"%d" % count, WHO, parent, [])
        ids = importer.finish()
    assert len(set(ids)) == 9000
    assert store.git(["rev-list", "--count", ids[-1]]).out == b"9000\n"


def test_a_file_takes_the_place_of_a_folder_and_back(store: Store) -> None:
    with store.fast_import() as importer:
        one = importer.commit(b"1", WHO, None, [Write(b"d/a", data=b"x"), Write(b"d/b", data=b"y")])
        # Removals count first, wherever they stand.
        two = importer.commit(
            b"2", WHO, one, [Write(b"d", data=b"z"), Write(b"d/a"), Write(b"d/b")]
        )
        importer.commit(b"3", WHO, two, [Write(b"d/new", "100755", b"w"), Write(b"d")])
        _, second, third = importer.finish()
    objects = store.objects
    assert [path for path, _ in objects.walk(objects.tree_of(second))] == [b"d"]
    assert [(path, entry.mode) for path, entry in objects.walk(objects.tree_of(third))] == [
        (b"d/new", "100755")
    ]


def test_on_a_commit_of_the_store_with_an_object_of_it(store: Store) -> None:
    oid = raw_blob(store, b"kept")
    with store.fast_import() as importer:
        importer.commit(b"1", WHO, None, [Write(b"a", data=b"1")])
        (first,) = importer.finish()
    with store.fast_import() as importer:
        importer.commit(b"2", WHO, first, [Write(b"l", "120000", oid=oid)])
        (second,) = importer.finish()
    walked = dict(store.objects.walk(store.objects.tree_of(second)))
    assert (walked[b"l"].mode, walked[b"l"].oid, set(walked)) == ("120000", oid, {b"a", b"l"})
    assert store.git(["for-each-ref"]).out == b"", "no name is left behind"


def test_nothing_to_import(store: Store) -> None:
    with store.fast_import() as importer:
        assert importer.finish() == []


def bring(importer: FastImport, *commits: list[Write]) -> list[str]:
    with importer:
        for writes in commits:
            importer.commit(b"x", WHO, None, writes)
        return importer.finish()


def interrupted() -> Iterator[Write]:
    yield Write(b"a", data=b"1")
    raise KeyboardInterrupt


def test_given_up(store: Store) -> None:
    importer = store.fast_import()
    with pytest.raises(KeyboardInterrupt), importer:
        importer.commit(b"1", WHO, None, interrupted())
    assert store.git(["for-each-ref"]).out == b""


MISSING = [Write(b"a", oid="1" * 40)]


def test_what_git_refuses_is_said(store: Store) -> None:
    with pytest.raises(PatchqError, match="the store could not be written: ") as caught:
        bring(store.fast_import(), MISSING)
    assert "room" in caught.value.hint
    with pytest.raises(PatchqError, match=r"written: [Ee]mpty path"):
        bring(store.fast_import(), [Write(b"a//b", data=b"x")])


def test_a_refusal_in_the_middle(store: Store) -> None:
    """git is gone while much is still to be written."""
    much = [[Write(b"a", data=bytes(100_000))]] * 100
    with pytest.raises(PatchqError, match="could not be written"):
        bring(store.fast_import(), MISSING, *much)


def test_no_store(tmp_path: Path) -> None:
    with pytest.raises(PatchqError, match="could not be written"):
        bring(FastImport(tmp_path), [])


def test_no_git(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    with pytest.raises(PatchqError, match="git is not installed"):
        store.fast_import()
