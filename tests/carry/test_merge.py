"""One path of one patch: every way in which it can merge, and what is seen of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from patchq.carry import merge as module
from patchq.carry import text
from patchq.carry.merge import LINK, Blob, Outcome, Track, merge
from patchq.gitstore.store import Store
from tests.support.history import lines
from tests.support.kit import hunks_between

FILE, EXEC = "100644", "100755"
LABELS = ("v2", "before", "patch")
BASE = lines(range(1, 21))
PATCHED = BASE.replace(b"line 15\n", b"fifteen\nand a half\n")
UPSTREAM = BASE.replace(b"line 3\n", b"three\n")
BOTH = PATCHED.replace(b"line 3\n", b"three\n")
TORN = BASE.replace(b"line 15\n", b"upstream's fifteen\n")
BINARY = b"\0" + BASE


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("store") / "s.git") as made:
        yield made


def blob(what: bytes | tuple[str, bytes] | None) -> Blob | None:
    return Blob(FILE, what) if isinstance(what, bytes) else Blob(*what) if what else None


def merged(
    store: Store,
    base: bytes | tuple[str, bytes] | None,
    ours: bytes | tuple[str, bytes] | None,
    theirs: bytes | tuple[str, bytes] | None,
    path: bytes = b"a.txt",
    obstacle: str = "",
) -> Outcome:
    """Merge as the fold does, with the hunks that the patch would have."""
    old, new, patched = blob(base), blob(ours), blob(theirs)
    hunks = ()
    kinds = {b.mode == LINK for b in (old, patched) if b}
    if len(kinds) == 1 and not any(b"\0" in b.data for b in (old, patched) if b):
        hunks = hunks_between(old.lines if old else [], patched.lines if patched else [])
    gain = text.Gain(None, old.data if old else b"", new.data if new else b"")
    track = Track(path, path, old, new, None, gain, upstream_changed=old != new)
    return merge(store, track, patched, hunks, LABELS, obstacle)


CONFLICTS = {
    "text": (BASE, TORN, PATCHED, "content"),
    "added by both": (None, b"ours\n", b"theirs\n", "both added the file"),
    "deleted upstream": (BASE, None, PATCHED, "deleted upstream"),
    "deleted by the patch": (BASE, UPSTREAM, None, "changed upstream, deleted by the patch"),
    "modes": ((FILE, BASE), (EXEC, BASE), (LINK, BASE), "both changed the mode"),
    "links": ((LINK, b"a"), (LINK, b"b"), (LINK, b"c"), "both changed the link"),
    "link and text": ((FILE, BASE), (FILE, UPSTREAM), (LINK, b"c"), "both changed the link"),
    "text and link": ((FILE, BASE), (LINK, b"c"), (FILE, PATCHED), "both changed the link"),
    "both became links": ((FILE, BASE), (LINK, b"b"), (LINK, b"c"), "both changed the link"),
    "added as a link and a text": (None, (LINK, b"b"), (FILE, b"b\n"), "both changed the link"),
    "binary": (BINARY, BINARY + b"x", BINARY + b"y", "binary"),
    "binary became text": (BINARY, UPSTREAM, PATCHED, "binary"),
    "added, binary": (None, BINARY, PATCHED, "binary"),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_conflict(store: Store, name: str) -> None:
    base, ours, theirs, kind = CONFLICTS[name]
    found = merged(store, base, ours, theirs)
    assert (found.seen.merge, found.seen.kind) == ("conflict", kind)
    assert found.gaps is None
    if kind not in ("content", "both added the file"):
        assert found.result == blob(theirs), "the patch's own text goes on"
        assert (found.marked == b"") == (not kind.endswith(("deleted by the patch", "upstream")))


def test_a_deletion_is_marked_whole(store: Store) -> None:
    found = merged(store, b"a\nb", None, b"a\nc\n")
    assert found.marked == (b"<<<<<<< v2\n||||||| before\na\nb\n=======\na\nc\n>>>>>>> patch\n")


def test_an_obstacle(store: Store) -> None:
    found = merged(store, None, None, b"new\n", obstacle="a folder stands there upstream")
    assert (found.seen.merge, found.seen.kind) == ("conflict", "a folder stands there upstream")


CLEAN = {
    "upstream did nothing": (BASE, BASE, PATCHED, PATCHED),
    "both, apart": (BASE, UPSTREAM, PATCHED, BOTH),
    "a new file": (None, None, b"new\n", b"new\n"),
    "a deletion": (BASE, BASE, None, None),
    "a mode": (BASE, BASE, (EXEC, BASE), (EXEC, BASE)),
    "a mode, upstream's text": (BASE, UPSTREAM, (EXEC, BASE), (EXEC, UPSTREAM)),
    "text, upstream's mode": (BASE, (EXEC, BASE), PATCHED, (EXEC, PATCHED)),
    "text and mode, upstream's text": (BASE, UPSTREAM, (EXEC, PATCHED), (EXEC, BOTH)),
    "text, upstream's text and mode": (BASE, (EXEC, UPSTREAM), PATCHED, (EXEC, BOTH)),
    "text landed, mode not": (BASE, PATCHED, (EXEC, PATCHED), (EXEC, PATCHED)),
    "a link": ((LINK, b"a"), (LINK, b"a"), (LINK, b"b"), (LINK, b"b")),
    "a file becomes a link": (BASE, BASE, (LINK, b"a"), (LINK, b"a")),
    "binary": (BINARY, BINARY, BINARY + b"x", BINARY + b"x"),
    "binary, upstream's mode": (BINARY, (EXEC, BINARY), BINARY + b"x", (EXEC, BINARY + b"x")),
    "added where upstream added it empty": (None, b"", b"new\n", b"new\n"),
    "filled where upstream added a mode": (b"", (EXEC, b""), b"x\n", (EXEC, b"x\n")),
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean(store: Store, name: str) -> None:
    base, ours, theirs, result = CLEAN[name]
    found = merged(store, base, ours, theirs)
    assert found.result == blob(result)
    assert (found.seen.merge, found.seen.kind) == ("clean", "")


EMPTY = {
    "landed": (BASE, PATCHED, PATCHED),
    "landed, and more": (BASE, BOTH, PATCHED),
    "a new file, the same": (None, b"new\n", b"new\n"),
    "a new empty file": (None, b"", b""),
    "deleted by both": (BASE, None, None),
    "mode": (BASE, (EXEC, BASE), (EXEC, BASE)),
    "mode, and upstream's text": (BASE, (EXEC, UPSTREAM), (EXEC, BASE)),
    "text, and upstream's mode": (BASE, (EXEC, PATCHED), PATCHED),
    "a link": ((LINK, b"a"), (LINK, b"b"), (LINK, b"b")),
    "binary": (BINARY, BINARY + b"x", BINARY + b"x"),
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty(store: Store, name: str) -> None:
    base, ours, theirs = EMPTY[name]
    found = merged(store, base, ours, theirs)
    assert found.result == blob(ours)
    assert found.seen.merge == "empty"


@pytest.mark.parametrize("ours", [BASE, UPSTREAM, None, (EXEC, BASE)])
def test_a_patch_that_changes_nothing(store: Store, ours: bytes | None) -> None:
    found = merged(store, BASE, ours, BASE)
    assert found.result == blob(ours)
    assert found.seen.merge == "noop"


def test_what_a_clean_merge_shows(store: Store) -> None:
    seen = merged(store, BASE, UPSTREAM, PATCHED).seen
    assert (seen.atoms, seen.same, seen.lines, seen.found) == (1, 0, 2, 0)
    assert not seen.reverse
    assert not seen.mode_only
    assert seen.upstream_changed
    assert merged(store, BASE, UPSTREAM, (EXEC, BASE)).seen.mode_only


def test_what_a_landed_patch_shows(store: Store) -> None:
    seen = merged(store, BASE, BOTH, PATCHED).seen
    assert (seen.merge, seen.atoms, seen.same, seen.lines, seen.found) == ("empty", 1, 1, 2, 2)
    assert seen.reverse


def test_what_one_of_two_changes_shows(store: Store) -> None:
    theirs = BASE.replace(b"line 3\n", b"three\n").replace(b"line 15\n", b"fifteen\n")
    seen = merged(store, BASE, UPSTREAM, theirs).seen
    assert (seen.merge, seen.atoms, seen.same, seen.lines, seen.found) == ("clean", 2, 1, 2, 1)
    assert not seen.reverse


def test_what_a_conflict_shows(store: Store) -> None:
    found = merged(store, BASE, TORN, PATCHED)
    assert found.seen.wins_empty
    assert found.result == blob(PATCHED)
    assert found.marked == BASE.replace(
        b"line 15\n",
        b"<<<<<<< v2\nupstream's fifteen\n||||||| before\nline 15\n=======\n"
        b"fifteen\nand a half\n>>>>>>> patch\n",
    )
    more = PATCHED.replace(b"line 3\n", b"three\n")
    assert not merged(store, BASE, TORN, more).seen.wins_empty
    assert not merged(store, BASE, TORN, (EXEC, PATCHED)).seen.wins_empty, "the mode is left"
    assert merged(store, BASE, TORN, more).result == blob(more)


def test_a_deletion_says_nothing_in_reverse(store: Store) -> None:
    """Of repetitive lines, enough stand there after any deletion."""
    base = b"x\n" * 20
    seen = merged(store, base, base[: 2 * 10], base[: 2 * 18]).seen
    assert not seen.reverse


# What upstream added elsewhere does not stand twice

HELPER = b"def helper(x):\n    y = x + 1\n    return y\n"
CODE = b"import os\n\n\ndef first():\n    return 1\n\n\ndef last():\n    return 2\n"


def test_a_definition_that_upstream_added_elsewhere_is_left_out(store: Store) -> None:
    ours = CODE.replace(b"def last", HELPER + b"\n\ndef last")
    theirs = CODE + b"\n\n" + HELPER
    found = merged(store, CODE, ours, theirs, b"a.py")
    assert found.result == blob(ours)
    assert (found.seen.merge, found.seen.elsewhere, found.seen.doubles) == ("empty", 1, ())
    more = merged(store, CODE, ours, (EXEC, theirs), b"a.py")
    assert more.result == blob((EXEC, ours))
    assert (more.seen.merge, more.seen.elsewhere) == ("clean", 1)


def test_another_definition_of_that_name_is_a_double(store: Store) -> None:
    ours = CODE.replace(b"def last", b"def helper(x):\n    return None\n\n\ndef last")
    found = merged(store, CODE, ours, CODE + b"\n\n" + HELPER, b"a.py")
    assert (found.seen.elsewhere, found.seen.doubles) == (0, ("helper",))


def test_an_import_that_stands_in_another_branch_stays(store: Store) -> None:
    """Lines that define nothing are kept in Python, however alike."""
    added = b"try:\n    import fast\nexcept ImportError:\n    fast = None\n"
    ours = CODE.replace(b"import os\n", b"import os\n" + added)
    found = merged(store, CODE, ours, CODE + added, b"a.py")
    assert found.result == blob(ours + added)
    assert found.seen.elsewhere == 0


@pytest.mark.parametrize(
    ("path", "added", "left_out"),
    [
        (b"a.cu", b"int one(int x) {\n  return x;\n}\n", 1),
        (b"a.cu", b"one();\ntwo();\n", 0),
        (b"a.cu", b"  if (x) {\n    a();\n  }\n", 0),
        (b"a.cu", b"#define A\n#define B\n#define C\n", 0),
        (b"a.ini", b"[one]\na = 1\n}\n", 0),
    ],
    ids=["a definition", "too short", "inside another", "no definition", "settings"],
)
def test_a_block_of_another_language(
    store: Store, path: bytes, added: bytes, left_out: int
) -> None:
    """A whole definition stands once; the same settings in two places are no mistake."""
    found = merged(store, BASE, BASE.replace(b"line 4\n", b"line 4\n" + added), BASE + added, path)
    assert found.seen.elsewhere == left_out


def test_a_real_merge_knows_doubles_too(store: Store) -> None:
    """Where changes touch, arithmetic gives up, and the name is looked for all the same."""
    both = CODE.replace(b"import os\n", b"import os\nimport re\n")
    ours = both + b"\n\n" + HELPER
    theirs = both.replace(b"def last", HELPER + b"\n\ndef last")
    found = merged(store, CODE, ours, theirs, b"a.py")
    assert found.seen.merge == "clean"
    assert (found.seen.elsewhere, found.seen.doubles) == (0, ("helper",))


# Gaps


def test_gaps_are_read_from_the_two_sides_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    track = Track(b"a", b"a", Blob(FILE, BASE), Blob(FILE, UPSTREAM))
    gaps = module.gaps_of(store, track)
    assert gaps == [text.Gap(2, 3, 2, 3)]
    monkeypatch.setattr(Store, "diff_data", None)
    assert module.gaps_of(store, track) is gaps
    equal = replace(track, new=Blob(FILE, BASE), gaps=None)
    assert module.gaps_of(store, equal) == []


def test_gaps_after_a_merge_are_those_of_the_two_new_sides(store: Store) -> None:
    found = merged(store, BASE, UPSTREAM, PATCHED)
    fresh = Track(b"a", b"a", Blob(FILE, PATCHED), found.result)
    assert found.gaps == module.gaps_of(store, fresh)


def test_the_id_of_a_blob_is_gits() -> None:
    assert Blob(FILE, b"").oid == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
