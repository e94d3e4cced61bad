"""A store, and what it takes to fill it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from patchq.gitstore.fastimport import Ident, Write
from patchq.gitstore.store import Store

WHO = Ident(b"Ada", b"ada@example.org", 1_750_000_000, "+0200")

Files = Mapping[bytes, bytes | tuple[str, bytes]]
"""Contents by path; a pair is a git mode and the content."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store.git") as store:
        yield store


def trees(store: Store, *files: Files) -> list[str]:
    """The tree of each set of files."""
    with store.fast_import() as importer:
        for each in files:
            importer.commit(b"x", WHO, None, [_write(path, what) for path, what in each.items()])
        commits = importer.finish()
    return [store.objects.tree_of(commit) for commit in commits]


def _write(path: bytes, what: bytes | tuple[str, bytes]) -> Write:
    mode, data = what if isinstance(what, tuple) else ("100644", what)
    return Write(path, mode, data)


def raw_tree(store: Store, *entries: tuple[bytes, bytes, str]) -> str:
    """A tree object as no git would make it: (mode, name, id) each."""
    data = b"".join(b"%s %s\0%s" % (mode, name, bytes.fromhex(oid)) for mode, name, oid in entries)
    args = ["hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
    return store.git(args, input=data).out.decode().strip()


def raw_blob(store: Store, data: bytes) -> str:
    return store.git(["hash-object", "-w", "--stdin"], input=data).out.decode().strip()
