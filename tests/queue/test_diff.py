"""What git writes is read to the byte: any edit of any file, by any name, in canonical form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.carry.merge import Blob
from patchq.carry.tracks import after
from patchq.errors import PatchqError
from patchq.gitstore.fastimport import Ident, Write
from patchq.gitstore.store import Store
from patchq.queue import diff as diffs
from patchq.queue import patch as patches
from patchq.queue.diff import ABSENT, Atom, NotCanonical
from patchq.queue.header import Header

WHO = Ident(b"Ada", b"ada@example.org", 0)
Tree = dict[bytes, tuple[str, bytes]]
"""Mode and content by path."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("store") / "s.git") as store:
        yield store


def stored(store: Store, *trees: Tree) -> list[str]:
    with store.fast_import() as importer:
        for tree in trees:
            writes = [Write(path, mode, data) for path, (mode, data) in tree.items()]
            importer.commit(b"x", WHO, None, writes)
        commits = importer.finish()
    return [store.objects.tree_of(commit) for commit in commits]


def applied(text: bytes, before: Tree) -> Tree:
    """`before` with the diff `text` applied by our own reader."""
    patch = patches.make(1, "x", Header(()), text)
    result = dict(before)
    for file in diffs.parse(text, "it"):
        base = Blob(*before[file.path]) if file.path in before else None
        made = after(base, file, patch)
        result.pop(file.path, None)
        if made is not None:
            result[file.path] = (made.mode, made.data)
    return result


ODD_NAMES = [
    b"a", b"a b", b" lead", b"trail ", b"d/e", b"d/f g/h", b'q"q', b"back\\slash", b"tab\tx",
    b"line\nx", b"cr\rx", "grün".encode(), b"latin\xfc", b"del\x7f", b"\x01\x1b\x07\x08\x0b\x0c",
    b"-dash", b":(glob)*", b"a -> b", b"b/b", b"x b/x", b"/dev/null"[1:], b"d", b"\\012", b"'",
]  # fmt: skip
LINE = st.sampled_from(
    [
        b"", b"a", b"b", b"c", b"}", b"-- a/x", b"++ b/x", b"@@ -1 +1 @@", b"diff --git a/x b/x", b" ",
        b"\\ No newline at end of file", b"\xff\xfe", "ü\u2028".encode(), b"a\x0cb\x0b\x1c", b"a\rb",
    ]
)  # fmt: skip
END = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n"])
TEXT = st.builds(
    lambda lines, last: b"".join(line + end for line, end in lines) + last,
    st.lists(st.tuples(LINE, END), max_size=14),
    st.sampled_from([b"", b"", b"no newline", b"\r"]),
)
BINARY = st.builds(lambda head, rest: head + b"\0" + rest, st.binary(max_size=40), TEXT)
REGULAR = st.tuples(st.sampled_from(["100644", "100644", "100755"]), TEXT | BINARY)
LINK = st.tuples(st.just("120000"), st.sampled_from([b"a", b"../b", b"no/newline\n", b"\xff"]))
FILE = REGULAR | LINK


def edited(data: bytes, cut: int, length: int, new: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    at = cut % (len(lines) + 1)
    return b"".join(lines[:at]) + new + b"".join(lines[at + length :])


EDIT = st.tuples(st.integers(0, 20), st.integers(0, 3), TEXT)


@st.composite
def two_trees(draw: st.DrawFn) -> tuple[Tree, Tree]:
    before = draw(st.dictionaries(st.sampled_from(ODD_NAMES), FILE, max_size=8))
    changed = dict(before)
    for path in list(before):
        match draw(st.sampled_from(["keep", "edit", "edit", "edit", "mode", "replace", "delete"])):
            case "edit":
                mode, data = before[path]
                changed[path] = (mode, edited(data, *draw(EDIT)) or b"x")
            case "mode":
                changed[path] = (
                    draw(st.sampled_from(["100644", "100755", "120000"])),
                    before[path][1],
                )
            case "replace":
                changed[path] = draw(FILE)
            case "delete":
                del changed[path]
    changed |= draw(st.dictionaries(st.sampled_from(ODD_NAMES), FILE, max_size=2))
    return sound(before), sound(changed)


def sound(tree: Tree) -> Tree:
    """No file in the place of a folder, no empty link."""
    folders = {path.rpartition(b"/")[0] for path in tree} | {b"d/f g" for path in tree}
    folders |= {b"d"} if any(path.startswith(b"d/") for path in tree) else set()
    return {
        path: (mode, data or b"x" if mode == "120000" else data)
        for path, (mode, data) in tree.items()
        if path not in folders
    }


@settings(max_examples=40)
@given(st.lists(two_trees(), min_size=1, max_size=6))
def test_any_change_of_a_tree(store: Store, changes: list[tuple[Tree, Tree]]) -> None:
    """The diff that git writes is read, and applied by us it gives git's own bytes."""
    trees = stored(store, *(tree for pair in changes for tree in pair))
    texts = store.diff_texts(list(zip(trees[::2], trees[1::2], strict=True)))
    for text, (before, changed) in zip(texts, changes, strict=True):
        assert applied(text, before) == changed
        assert (text == b"") == (before == changed)


NAME = st.binary(min_size=1, max_size=12).filter(
    lambda name: b"\0" not in name and b"/" not in name and name not in (b".", b"..")
    and not name.lower().startswith((b".git", b"git~")) and b"\\.." not in b"\\" + name + b"\\"
)  # fmt: skip


@settings(max_examples=15)
@given(st.sets(NAME, min_size=1, max_size=40))
def test_any_name_is_quoted_as_git_quotes_it(store: Store, names: set[bytes]) -> None:
    ordered = sorted(names)
    new: Tree = {b"sub dir/" + name: ("100644", b"x\n") for name in ordered}
    old, added = stored(store, {}, new)
    (text,) = store.diff_texts([(old, added)])
    heads = [line for line in text.split(b"\n") if line.startswith(b"diff --git ")]
    paths = [diffs.same_path(line.removeprefix(b"diff --git ")) for line in heads]
    assert sorted(paths) == sorted(new)
    for path, head in zip(paths, heads, strict=True):
        assert head == b"diff --git %s %s" % (
            patches.quote(b"a/" + path),
            patches.quote(b"b/" + path),
        )
        assert diffs.unquote(patches.quote(path)) == path
    assert [file.path for file in diffs.parse(text, "it")] == paths


def test_a_change_of_type_is_one_change(store: Store) -> None:
    before: Tree = {b"a": ("100644", b"text\n"), b"b": ("120000", b"a")}
    changed: Tree = {b"a": ("120000", b"b"), b"b": ("100755", b"\0binary")}
    old, new = stored(store, before, changed)
    (text,) = store.diff_texts([(old, new)])
    a, b = diffs.parse(text, "it")
    assert (a.old_mode, a.new_mode, a.whole, a.added, a.deleted) == (
        "100644", "120000", True, False, False,
    )  # fmt: skip
    assert (b.old_mode, b.new_mode, b.whole, b.binary) == ("120000", "100755", True, True)
    assert applied(text, before) == changed


HEAD = b"diff --git a/f b/f\n"
IDS = b"index " + b"1" * 40 + b".." + b"2" * 40 + b" 100644\n"
SIDES = b"--- a/f\n+++ b/f\n"


def test_the_parts_of_a_diff() -> None:
    hunk = b"@@ -3,5 +3,5 @@ def f():\n three\n-four\n+4\n five\n-six\n-seven\n+6\n+7\n"
    (file,) = diffs.parse(HEAD + IDS + SIDES + hunk, "it")
    assert (file.path, file.old_mode, file.new_mode) == (b"f", "100644", "100644")
    assert (file.old_oid, file.new_oid) == ("1" * 40, "2" * 40)
    (seen,) = file.hunks
    assert seen.start == 2
    assert seen.old == (b"three\n", b"four\n", b"five\n", b"six\n", b"seven\n")
    assert seen.new == (b"three\n", b"4\n", b"five\n", b"6\n", b"7\n")
    assert seen.atoms == (Atom(3, 4, (b"4\n",)), Atom(5, 7, (b"6\n", b"7\n")))


def test_a_mode_alone() -> None:
    (file,) = diffs.parse(HEAD + b"old mode 100644\nnew mode 100755\n", "it")
    assert (file.old_mode, file.new_mode, file.hunks, file.old_oid) == (
        "100644",
        "100755",
        (),
        None,
    )


@pytest.mark.parametrize("path", ODD_NAMES)
def test_an_empty_patch_changes_nothing(path: bytes) -> None:
    assert diffs.parse(patches.empty_diff(path), "it") == ()


def test_no_diff_at_all() -> None:
    assert diffs.parse(b"", "it") == ()
    assert diffs.parse(b"\nsome words\n", "it") == ()


OTHERS = {
    "quilt": b"Index: b/f\n===\n--- b.orig/f\t2026-01-01 00:00:00 +0000\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
    "plain": SIDES + b"@@ -1 +1 @@\n-a\n+b\n",
    "context": b"*** a/f\n--- b/f\n",
    "short ids": HEAD + b"index 1234567..89abcde 100644\n" + SIDES + b"@@ -1 +1 @@\n-a\n+b\n",
    "no ids": HEAD + SIDES + b"@@ -1 +1 @@\n-a\n+b\n",
    "rename": b"diff --git a/f b/g\nsimilarity index 90%\nrename from f\nrename to g\n",
    "rename with one name": HEAD + b"similarity index 90%\n",
    "copy": HEAD + b"similarity index 100%\ncopy from f\ncopy to g\n",
    "no prefix": b"diff --git f f\n" + IDS + b"--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n",
    "other prefix": b"diff --git i/f w/f\n" + IDS + b"--- i/f\n+++ w/f\n@@ -1 +1 @@\n-a\n+b\n",
    "names that differ": HEAD + IDS + b"--- a/g\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
    "dates": HEAD + IDS + b"--- a/f\t2026-01-01\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
    "binary without content": HEAD + IDS + b"Binary files a/f and b/f differ\n",
    "text between files": HEAD + IDS + SIDES + b"@@ -1 +1 @@\n-a\n+b\nwords\n" + HEAD,
    "signature": HEAD + IDS + SIDES + b"@@ -1 +1 @@\n-a\n+b\n-- \n2.39.5\n\n",
    "blank context line": HEAD + IDS + SIDES + b"@@ -1,3 +1,3 @@\n\n-a\n+b\n c\n",
    "another language": HEAD + IDS + SIDES + b"@@ -1 +1 @@\n-a\n\\ Kein Zeilenumbruch\n+b\n",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS.keys())
def test_another_form_is_left_to_git(text: bytes) -> None:
    with pytest.raises(NotCanonical):
        diffs.parse(text, "it")
    assert patches.make(1, "x", Header(()), text).files is None


BAD = {
    "outside": (b"diff --git a/../f b/../f\n", r"0001-x\.patch touches \.\./f, which is outside"),
    "absolute": (b"diff --git a//etc/x b//etc/x\n", "touches /etc/x, which is outside"),
    "git's own": (b"diff --git a/.git/hooks/x b/.git/hooks/x\n", "touches .git/hooks/x"),
    "git's own, quoted": (b'diff --git "a/.gi\\164/x" "b/.gi\\164/x"\n', "touches .git/x"),
    "submodule": (HEAD + b"new file mode 160000\n", "changes the submodule f"),
    "half a file": (HEAD + IDS + b"--- a/f\n", r"f has no `\+\+\+` line"),
    "hunk cut off": (HEAD + IDS + SIDES + b"@@ -1,2 +1,2 @@\n-a\n", "hunk of f near line 7 .* damaged"),
    "no hunk": (HEAD + IDS + SIDES + b"@@ nonsense @@\n", "hunk of f near line 5 .* damaged"),
    "sign": (HEAD + IDS + SIDES + b"@@ -1 +1 @@\nx\n+b\n", "hunk of f near line 6 .* damaged"),
    "second hunk": (
        HEAD + IDS + SIDES + b"@@ -1 +1 @@\n-a\n+b\n@@@ -1 +1 @@@\n", "near line 8 .* damaged",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "says"), BAD.values(), ids=BAD.keys())
def test_a_diff_that_is_wrong_is_said(text: bytes, says: str) -> None:
    with pytest.raises(PatchqError, match=says) as caught:
        diffs.parse(text, "0001-x.patch")
    assert caught.value.message.startswith("0001-x.patch") and caught.value.hint


@given(st.lists(st.sampled_from([HEAD, IDS, SIDES, *OTHERS.values(), b"@@ -1 +1,2 @@\n", b"+x\n", b"-x\n", b" x\n", b"\n", b"old mode 100644\n", b"new mode x\n", b"GIT binary patch\n", b'diff --git "a b\n', b"rename from f\n"]) | st.binary(max_size=8), max_size=9).map(b"".join))  # fmt: skip
def test_any_bytes_are_a_diff_or_not(text: bytes) -> None:
    with suppress(NotCanonical, PatchqError):
        for file in diffs.parse(text, "it"):
            assert file.old_mode != ABSENT or file.new_mode != ABSENT


@pytest.mark.parametrize("path", [*ODD_NAMES, Path(__file__).name.encode()])
def test_a_name_in_quotes(path: bytes) -> None:
    assert diffs.unquote(patches.quote(path)) == path


def test_letters_and_numbers_of_quoted_names() -> None:
    assert diffs.unquote(rb'"\a\b\t\n\v\f\r\"\\\303\274\377"') == b'\a\b\t\n\v\f\r"\\\xc3\xbc\xff'
    assert diffs.unquote(b"as it is \\n") == b"as it is \\n"
