"""The store: diffs, merges and indexes that depend on nothing but their input."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.errors import PatchqError
from patchq.gitstore import store as stores
from patchq.gitstore.contents import Merged
from patchq.gitstore.git import GitError
from patchq.gitstore.store import Change, Store
from tests.gitstore.conftest import WHO, raw_blob, trees
from tests.support.history import History, lines

ZERO = "0" * 40


# --- making and sharing


def test_a_store_is_made_once_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "deep" / "s.git"
    with Store(path) as store:
        oid = raw_blob(store, b"x")
    with Store(path) as store:
        assert store.objects.blob(oid) == b"x"
        assert store.git(["rev-parse", "--is-bare-repository"]).out == b"true\n"


def test_two_make_it_at_once(tmp_path: Path) -> None:
    """`git init` in one folder fails when another does the same."""
    path = tmp_path / "cache" / "s.git"
    ready = threading.Barrier(8)

    def make() -> str | None:
        ready.wait()
        with Store(path) as store:
            raw_blob(store, b"x")
            return store.resolve("main")

    with ThreadPoolExecutor(8) as pool:
        made = [pool.submit(make) for _ in range(8)]
    assert [each.result() for each in made] == [None] * 8
    assert [each.name for each in path.parent.iterdir()] == ["s.git"]


def test_no_room_for_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PatchqError, match=r"cannot make the store .*: File exists") as caught:
        Store(tmp_path / "file" / "s.git")
    assert "PATCHQ_CACHE" in caught.value.hint


def test_objects_of_another_repository_are_read_in_place(tmp_path: Path) -> None:
    other = tmp_path / os.fsdecode("ü \xff".encode("latin-1")) / "up"
    other.parent.mkdir()
    history = History(other)
    history.commit("x").write("a", b"1")
    history.save()
    for _ in range(2):
        with Store(tmp_path / "s.git", alternates=[other / "objects"]) as store:
            commit = subprocess.check_output(
                ["git", "-C", other, "rev-parse", "main"], text=True
            ).strip()
            assert [path for path, _ in store.objects.walk(store.objects.tree_of(commit))] == [b"a"]
            assert store.resolve(commit) == commit
    with Store(tmp_path / "s.git") as store:
        assert store.resolve(commit) == commit, "it stays so"
    assert [path.name for path in (tmp_path / "s.git/objects/info").iterdir()] == ["alternates"]


def test_borrowed_objects_are_seen_through_one_value_only(tmp_path: Path) -> None:
    with Store(tmp_path / "a.git") as other:
        oid = raw_blob(other, b"x")
    with Store(tmp_path / "b.git", borrow=tmp_path / "a.git") as store:
        assert store.objects.blob(oid) == b"x"
        assert store.git(["cat-file", "-p", oid]).out == b"x"
    with Store(tmp_path / "b.git") as store, pytest.raises(PatchqError, match="has no object"):
        store.objects.blob(oid)


def test_a_name_is_resolved_to_its_commit(store: Store) -> None:
    with store.fast_import() as importer:
        importer.commit(b"x", WHO, None, [])
        (commit,) = importer.finish()
    store.git(["update-ref", "refs/patchq/releases/1.0", commit])
    assert store.resolve("refs/patchq/releases/1.0") == store.resolve(commit) == commit
    for unknown in ("refs/x", "1" * 40, "", "--help", "-x", "a..b", raw_blob(store, b"x"), "a\nb"):
        assert store.resolve(unknown) is None


def test_a_command_that_fails_says_which(store: Store) -> None:
    with pytest.raises(
        GitError, match="git cat-file failed: Not a valid object name nope"
    ) as caught:
        store.git(["cat-file", "-p", "nope"])
    assert caught.value.done.code == 128


# --- diffs


def test_diffs_of_many_pairs_some_of_them_empty(store: Store) -> None:
    a, b, c = trees(store, {b"f": b"1\n"}, {b"f": b"2\n"}, {b"f": b"2\n", b"g": b"\0"})
    for pairs in (
        [(a, a)], [(a, b)], [(a, a), (a, b)], [(a, b), (b, b)], [(a, a), (a, a), (b, b)],
        [(a, b), (b, b), (b, c)], [(a, b), (a, b), (a, a), (a, b)], [(b, b), (c, c), (b, c), (c, c)], [],
    ):  # fmt: skip
        texts = store.diff_texts(pairs)
        assert texts == [
            store.git(["diff-tree", "-r", "-p", *stores.DIFF, old, new]).out for old, new in pairs
        ]
        assert [text == b"" for text in texts] == [old == new for old, new in pairs]


@pytest.fixture(scope="module")
def answers(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Store, dict[tuple[str, str], bytes]]]:
    """A store, and what git says of each two of its trees when it is asked for them alone."""
    with Store(tmp_path_factory.mktemp("store") / "s.git") as store:
        first, second = trees(store, {b"f": b"x\n"}, {})
        # The last hold, line by line, what stands between the answers.
        mimic = f"{first} {second}\n{second} {first}\n".encode()
        many = [
            first,
            second,
            *trees(store, {b"f": mimic}, {b"f": mimic * 2}, {b"f": b"\0" + mimic}),
        ]
        yield (
            store,
            {
                (old, new): store.git(["diff-tree", "-r", "-p", *stores.DIFF, old, new]).out
                for old in many
                for new in many
            },
        )


@settings(max_examples=30)
@given(data=st.data())
def test_any_order_of_pairs(
    answers: tuple[Store, dict[tuple[str, str], bytes]], data: st.DataObject
) -> None:
    store, known = answers
    pairs = data.draw(st.lists(st.sampled_from(sorted(known)), max_size=12))
    assert store.diff_texts(pairs) == [known[pair] for pair in pairs]


def test_the_canonical_form(store: Store) -> None:
    """Full ids, no renames, prefixes, binary content, quoted names, blank lines with their blank."""
    content = lines(range(1, 30)) + b"\n\n"
    old, new = trees(
        store,
        {b"a": content, "ü".encode(): b"x", b"b": b"1\n\n2\n", b"c": b"\0"},
        {b"moved": content, "ü".encode(): ("100755", b"x"), b"b": b"1\n\n3\n", b"c": b"\0\0"},
    )
    (text,) = store.diff_texts([(old, new)])
    assert b"deleted file mode 100644\n" in text and b"rename" not in text
    assert b"--- a/b\n+++ b/b\n@@ -1,3 +1,3 @@\n 1\n \n-2\n+3\n" in text
    assert b'diff --git "a/\\303\\274" "b/\\303\\274"\nold mode 100644\nnew mode 100755\n' in text
    assert b"GIT binary patch\nliteral 2\n" in text
    assert all(len(line) >= 6 + 82 for line in text.split(b"\n") if line.startswith(b"index "))


def test_what_changed(store: Store) -> None:
    content = lines(range(1, 30))
    old, new = trees(
        store,
        {b"a": content, b"d/b": b"1", b"x y": b"2", b"*": b"3", b"same": b"4"},
        {
            b"moved\n": content,
            b"d/b": ("120000", b"1"),
            b"x y": b"new",
            b"*": b"new",
            b"same": b"4",
        },
    )
    seen = {change.path: change for change in store.changes(old, new)}
    assert {path: change.status for path, change in seen.items()} == {
        b"a": "D", b"moved\n": "A", b"d/b": "T", b"x y": "M", b"*": "M",
    }  # fmt: skip
    assert seen[b"a"].new_mode == "000000" and seen[b"a"].new_oid == ZERO
    assert [change.path for change in store.changes(old, new, paths=[b"*", b"same", b"d"])] == [
        b"*",
        b"d/b",
    ], "a path is no pattern"
    moved = [change for change in store.changes(old, new, renames=True) if change.status == "R"]
    oid = seen[b"a"].old_oid
    assert moved == [Change("R", b"a", b"moved\n", "100644", "100644", oid, oid)]
    assert store.changes(old, old) == []
    assert store.changes(old, new, paths=[b"none"]) == []


def test_more_paths_than_a_command_line_takes_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "CHUNK", 3)
    names = [b"f%d" % n for n in range(8)]
    old, new = trees(store, dict.fromkeys(names, b"1\n"), dict.fromkeys(names, b"2\n"))
    assert [change.path for change in store.changes(old, new, paths=names)] == names
    assert store.hunks(old, new, names).count(b"\n@@ -1 +1 @@\n-1\n+2\n") == 8


# --- merges

BASE = lines(range(1, 10))


def test_both_sides_come_together(store: Store) -> None:
    ours = BASE.replace(b"line 2\n", b"ours\n")
    theirs = BASE.replace(b"line 8\n", b"theirs\r\n")
    both = ours.replace(b"line 8\n", b"theirs\r\n")
    assert store.merge_file(BASE, ours, theirs) == Merged(both, 0)
    assert store.merge_file(BASE, BASE, theirs) == Merged(theirs, 0)
    assert store.merge_file(b"", b"", b"") == Merged(b"", 0)


def test_a_conflict_shows_all_three(store: Store) -> None:
    ours = BASE.replace(b"line 5\n", b"ours\n")
    theirs = BASE.replace(b"line 5\n", b"theirs\n")
    merged = store.merge_file(BASE, ours, theirs, labels=("v2", "v1", "0001-x.patch"))
    assert merged.conflicts == 1
    marked = b"<<<<<<< v2\nours\n||||||| v1\nline 5\n=======\ntheirs\n>>>>>>> 0001-x.patch\n"
    assert merged.data == BASE.replace(b"line 5\n", marked)
    assert store.merge_file(BASE, ours, theirs, favour="ours") == Merged(ours, 0)
    assert store.merge_file(BASE, ours, theirs, favour="theirs") == Merged(theirs, 0)


@pytest.mark.parametrize("count", [1, 2, 9, 200])
def test_conflicts_are_counted(store: Store, count: int) -> None:
    """git's exit status counts to 127 and says no more."""
    gap = b"\n\n\n\n\n\n"
    base, ours, theirs = (
        b"".join(b"%s %d%s" % (word, n, gap) for n in range(count)) for word in (b"x", b"o", b"t")
    )
    merged = store.merge_file(base, ours, theirs)
    assert merged.conflicts == min(count, 127)
    assert merged.data.count(b"<<<<<<< ours\n") == count


def test_binary_content_that_both_changed_is_one_conflict(store: Store) -> None:
    assert store.merge_file(b"\0", b"\0ours", b"\0theirs") == Merged(b"\0ours", 1)
    assert store.merge_file(b"\0", b"\0ours", b"\0theirs", favour="ours") == Merged(b"\0ours", 0)
    assert store.merge_file(b"\0", b"\0ours", b"\0t", favour="theirs") == Merged(b"\0t", 0)


def test_hunks_without_context(store: Store) -> None:
    assert store.diff_data(b"a\nb\nc\n", b"a\nc\nd").partition(b"@@")[2] == (
        b" -2 +1,0 @@ a\n-b\n@@ -3,0 +3 @@ c\n+d\n\\ No newline at end of file\n"
    )
    assert store.diff_data(b"same", b"same") == b""
    assert b"\n-a\0\n" in store.diff_data(b"a\0\n", b"b\n"), "binary content, too"


# --- indexes


def test_a_patch_is_applied_to_a_tree(store: Store, tmp_path: Path) -> None:
    old, new = trees(store, {b"a": BASE}, {b"a": BASE.replace(b"5", b"five"), b"b\xff": b"\0"})
    (text,) = store.diff_texts([(old, new)])
    patch = tmp_path / "x.patch"
    patch.write_bytes(text)
    with store.index(old) as index:
        assert index.apply_bytes(text).code == 0
        assert index.write() == new
        assert index.apply([patch]).code == 1, "it is applied already"
        index.read(old)
        assert index.apply([patch], options=["--check"]).code == 0
        assert index.write() == old
        assert index.apply([patch]).code == 0
        assert index.write() == new
        assert index.apply_bytes(b"no patch").code == 128
    assert store.git(["ls-files"]).out == b"", "the store has no index of its own"


def test_nothing_is_written_into_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git apply --cached --3way checks out a file that the index has and the patch makes."""
    history = History(tmp_path / "up.git")
    history.commit().write("a.txt", b"1\n").tag("v1")
    history.commit().write("new.txt", b"made\n").tag("v2")
    history.save()
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with Store(history.path) as store:
        old, new = (store.objects.tree_of(str(store.resolve(tag))) for tag in ("v1", "v2"))
        (patch,) = store.diff_texts([(old, new)])
        with store.index(new) as index:
            done = index.apply_bytes(patch, options=["--3way"])
            assert (done.code, index.write()) == (0, new)
    assert not list(here.iterdir())


def test_context_that_differs_is_refused(store: Store) -> None:
    old, new, other = trees(
        store,
        {b"a": BASE},
        {b"a": BASE.replace(b"5", b"five")},
        {b"a": BASE.replace(b"4", b"four")},
    )
    (text,) = store.diff_texts([(old, new)])
    with store.index(other) as index:
        done = index.apply_bytes(text)
        assert (done.code, done.why) == (1, "patch failed: a:2")
        assert index.write() == other


# --- what a user has set

HOSTILE = """
[core]
    quotePath = false
    autocrlf = true
    attributesFile = {home}/attributes
    hooksPath = {home}/hooks
    whitespace = trailing-space
[diff]
    noprefix = true
    mnemonicPrefix = true
    renames = copies
    context = 0
    interHunkContext = 20
    algorithm = patience
    suppressBlankEmpty = true
    external = false
    orderFile = {home}/order
    indentHeuristic = false
    wsErrorHighlight = all
[diff "evil"]
    textconv = tr a-z A-Z
    command = false
    xfuncname = "^.*$"
[color]
    ui = always
[merge]
    conflictStyle = zdiff3
[apply]
    whitespace = fix
    ignoreWhitespace = change
[i18n]
    commitEncoding = latin1
[alias]
    diff-tree = !false
"""


def everything(path: Path) -> list[object]:
    """What the store answers, of a fresh store at `path`."""
    with Store(path) as store:
        old, new = trees(
            store,
            {b"a": BASE + b"\n\nx\n", "ü".encode(): b"x\r\n", b"c": b"\0"},
            {b"z": BASE + b"\n\ny \n", "ü".encode(): b"y \r\n", b"c": b"\0\0", b"a": b"1\n\n"},
        )
        (text,) = store.diff_texts([(old, new)])
        with store.index(old) as index:
            applied = index.apply_bytes(text).code, index.write()
        ours, theirs = (BASE.replace(b"line 5\n", b"same\n%d\nsame\n" % n) for n in (1, 2))
        return [
            (old, new, text, applied),
            store.changes(old, new),
            store.hunks(old, new, [b"a", "ü".encode()]),
            store.diff_data(BASE, BASE.replace(b"2", b"two").replace(b"8", b"eight")).partition(
                b"@@"
            )[2],
            store.merge_file(BASE, ours, theirs),
        ]


def test_a_users_settings_have_no_effect(
    tmp_path: Path, sealed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the user's, nor the system's, nor those of the repository that the command runs in."""
    plain = everything(tmp_path / "plain.git")
    config = HOSTILE.format(home=sealed)
    (sealed / ".gitconfig").write_text(config)
    (sealed / "attributes").write_text("* binary diff=evil merge=binary text eol=crlf\n")
    (sealed / "order").write_text("z\n")
    subprocess.run(["git", "init", "-q", sealed / "cwd"], check=True)
    (sealed / "cwd/.git/config").write_text(config)
    (sealed / "cwd/.git/info").mkdir(exist_ok=True)
    (sealed / "cwd/.git/info/attributes").write_text("* binary diff=evil\n")
    (sealed / "cwd/.gitattributes").write_text("* binary diff=evil\n")
    for name in ("GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(sealed / ".gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(sealed / ".gitconfig"))
    for name, value in {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "diff.noprefix",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_DIR": str(sealed / "cwd/.git"),
        "GIT_INDEX_FILE": "/nonexistent/index",
        "GIT_OBJECT_DIRECTORY": "/nonexistent",
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_DIFF_OPTS": "-u0",
        "GIT_LITERAL_PATHSPECS": "0",
        "GIT_NAMESPACE": "x",
        "GIT_TRACE": "1",
        "LC_ALL": "de_DE.UTF-8",
    }.items():
        monkeypatch.setenv(name, value)
    assert everything(tmp_path / "set.git") == plain


def test_a_broken_repository_around_has_no_effect(tmp_path: Path, sealed: Path) -> None:
    plain = everything(tmp_path / "plain.git")
    subprocess.run(["git", "init", "-q", sealed / "cwd"], check=True)
    (sealed / "cwd/.git/config").write_text("[core\n")
    assert everything(tmp_path / "broken.git") == plain
