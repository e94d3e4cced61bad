"""A tree on disk, byte for byte; a hostile one writes nothing outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.gitstore.checkout import AT_ONCE, check_out
from patchq.gitstore.store import Store
from tests.gitstore.conftest import raw_blob, raw_tree, trees
from tests.support.appliers import read_tree
from tests.support.history import LINK, Entry

FILES: dict[bytes, tuple[str, bytes]] = {
    b".gitattributes": (
        "100644",
        b"* text eol=crlf ident filter=evil export-subst export-ignore\n",
    ),
    b"crlf": ("100644", b"a\r\nb\n$Id$ $Format:%H$\r\n"),
    b"d/run": ("100755", b"#!/bin/sh\n"),
    b"d/e/\xff \n": ("100644", b"\0\xff"),
    b"empty": ("100644", b""),
    b"link": ("120000", b"d/e"),
    b"out": ("120000", b"../../../etc/passwd"),
    b"\xfflink": ("120000", b"\xff"),
}


def test_every_byte_mode_and_link(store: Store, tmp_path: Path) -> None:
    (tree,) = trees(store, FILES)
    old = os.umask(0o077)
    try:
        check_out(store, tree, tmp_path / "out")
    finally:
        os.umask(old)
    assert read_tree(tmp_path / "out") == {
        path: Entry(data, LINK if mode == "120000" else int(mode, 8))
        for path, (mode, data) in FILES.items()
    }


def test_more_files_than_are_read_at_once(store: Store, tmp_path: Path) -> None:
    files = {b"d%d/f%d" % (n % 7, n): b"%d" % n for n in range(AT_ONCE * 3 + 1)}
    (tree,) = trees(store, files)
    check_out(store, tree, tmp_path / "out")
    found = read_tree(tmp_path / "out")
    assert {path: entry.data for path, entry in found.items()} == files


def test_a_submodule_is_an_empty_folder(store: Store, tmp_path: Path) -> None:
    tree = raw_tree(store, (b"160000", b"sub", "1" * 40), (b"100644", b"z", raw_blob(store, b"x")))
    check_out(store, tree, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["sub", "z"]
    assert list((tmp_path / "out/sub").iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [b"..", b".", b".git", b".GIT", b"git~1", b"../x", b"a/../../x", b"/x", b"", b".git/hooks/x"],
)
def test_a_name_that_leaves_the_tree(store: Store, tmp_path: Path, name: bytes) -> None:
    oid = raw_blob(store, b"evil")
    for tree in (
        raw_tree(store, (b"100644", name, oid)),
        raw_tree(store, (b"120000", name, oid)),
        raw_tree(store, (b"40000", name, raw_tree(store, (b"100644", b"x", oid)))),
        raw_tree(store, (b"40000", b"d", raw_tree(store, (b"100644", name, oid)))),
    ):
        with pytest.raises(PatchqError, match="outside the source tree or git's own"):
            check_out(store, tree, tmp_path / "here" / "out")
    made = [path for path in tmp_path.rglob("*") if path.is_file() or path.is_symlink()]
    assert [path for path in made if not path.is_relative_to(store.path)] == []


def test_nothing_is_written_through_a_link(store: Store, tmp_path: Path) -> None:
    """A tree that has one name twice, as a link and as a folder."""
    outside = tmp_path / "outside"
    outside.mkdir()
    link = raw_blob(store, os.fsencode(outside))
    inner = raw_tree(store, (b"100644", b"x", raw_blob(store, b"evil")))
    for entries in (
        [(b"120000", b"d", link), (b"40000", b"d", inner)],
        [(b"40000", b"d", inner), (b"120000", b"d", link)],
        [(b"120000", b"d", link), (b"100644", b"d/x", raw_blob(store, b"evil"))],
    ):
        tree = raw_tree(store, *entries)
        try:
            check_out(store, tree, tmp_path / f"out{len(list(tmp_path.iterdir()))}")
        except (PatchqError, FileExistsError):
            continue
    assert list(outside.iterdir()) == []


def test_a_file_that_is_there_is_not_overwritten(store: Store, tmp_path: Path) -> None:
    (tree,) = trees(store, {b"a": b"new"})
    (tmp_path / "out").mkdir()
    (tmp_path / "out/a").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        check_out(store, tree, tmp_path / "out")
    assert (tmp_path / "out/a").read_bytes() == b"old"
