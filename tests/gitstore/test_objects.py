"""Objects are read by one process, in order, and a missing one spoils nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.errors import PatchqError
from patchq.gitstore.objects import BATCH, Entry, blob_id
from patchq.gitstore.store import Store
from tests.gitstore.conftest import WHO, raw_blob, raw_tree, trees

NOWHERE = "1" * 40


def test_a_tree_is_walked_and_asked(store: Store) -> None:
    (tree,) = trees(
        store,
        {
            b"a": b"1",
            b"d/b c": ("100755", b"2"),
            b"d/e/\xff": ("120000", b"../b"),
            b"d.x": b"3",
        },
    )
    objects = store.objects
    walked = dict(objects.walk(tree))
    assert {path: (entry.mode, objects.blob(entry.oid)) for path, entry in walked.items()} == {
        b"a": ("100644", b"1"),
        b"d.x": ("100644", b"3"),
        b"d/b c": ("100755", b"2"),
        b"d/e/\xff": ("120000", b"../b"),
    }
    for path, entry in walked.items():
        assert objects.lookup(tree, path) == entry
    folder = objects.lookup(tree, b"d/e")
    assert folder and folder.mode == "40000"
    assert [path for path, _ in objects.walk(folder.oid, b"x/")] == [b"x/\xff"]
    for absent in (b"b", b"d/x", b"a/b", b"d/e/\xff/x", b"x/y/z", b"D"):
        assert objects.lookup(tree, absent) is None


def test_an_empty_tree(store: Store) -> None:
    (tree,) = trees(store, {})
    assert list(store.objects.walk(tree)) == []
    assert store.objects.lookup(tree, b"a") is None


def test_many_at_once(store: Store) -> None:
    """More than fit in a pipe, big and small, asked for twice."""
    contents = {
        f"{n}".encode(): b"%d " % n * (1 if n % 100 else 30_000) for n in range(BATCH * 2 + 7)
    }
    (tree,) = trees(store, contents)
    oids = {path: entry.oid for path, entry in store.objects.walk(tree)}
    asked = [*oids.values(), *oids.values()]
    read = [(oid, kind, data) for oid, kind, data in store.objects.read_many(asked)]
    assert read == [(oid, "blob", contents[path]) for path, oid in [*oids.items(), *oids.items()]]
    assert store.objects.blobs(asked) == {oid: contents[path] for path, oid in oids.items()}


def test_a_missing_object_spoils_no_other_answer(store: Store) -> None:
    one, two = raw_blob(store, b"one"), raw_blob(store, b"two")
    with pytest.raises(PatchqError, match=f"the store has no object {NOWHERE}"):
        list(store.objects.read_many([one, NOWHERE, two, two]))
    assert store.objects.blob(one) == b"one"
    with pytest.raises(PatchqError, match="no object no such name"):
        store.objects.blob("no such name")
    assert next(store.objects.read_many([one, two]))[2] == b"one"
    assert store.objects.blob(two) == b"two", "an answer that nobody read is not the next one"


def test_the_tree_of_whatever_names_one(store: Store) -> None:
    with store.fast_import() as importer:
        importer.commit(b"x", WHO, None, [])
        (commit,) = importer.finish()
    tree = store.git(["rev-parse", f"{commit}^{{tree}}"]).out.decode().strip()
    identity = {"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b"}
    store.git(["tag", "-a", "-m", "x", "v1", commit], env=identity)
    store.git(["tag", "-a", "-m", "x", "v2", "v1"], env=identity)
    for name in (tree, commit, "v1", "v2", "refs/tags/v2"):
        assert store.objects.tree_of(name) == tree


def test_a_file_is_not_a_tree(store: Store) -> None:
    oid = raw_blob(store, b"x")
    with pytest.raises(PatchqError, match=f"{oid} is a blob, not a tree"):
        store.objects.tree(oid)


def test_modes_of_old_trees(store: Store) -> None:
    """As git reads them: what it says in a diff and what is looked up here is the same."""
    oid = raw_blob(store, b"x")
    inner = raw_tree(store, (b"100664", b"f", oid))
    tree = raw_tree(store, (b"040000", b"d", inner), (b"100775", b"run", oid))
    assert dict(store.objects.walk(tree)) == {
        b"d/f": Entry("100644", oid),
        b"run": Entry("100755", oid),
    }
    (none,) = trees(store, {})
    seen = {change.path: change.new_mode for change in store.changes(none, tree)}
    assert seen == {b"d/f": "100644", b"run": "100755"}


@given(st.binary())
def test_an_id_is_gits(data: bytes) -> None:
    import hashlib

    assert blob_id(data) == hashlib.sha1(b"blob %d\0%s" % (len(data), data)).hexdigest()


def test_ids_that_git_gave(store: Store) -> None:
    for data in (b"", b"x", b"\0" * 70_000):
        assert blob_id(data) == raw_blob(store, data)
