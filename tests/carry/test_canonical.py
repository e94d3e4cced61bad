"""Whatever form a diff has, git says what the change was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from patchq.carry.canonical import applied, canonical, exported, fold_any, marker, standing
from patchq.errors import PatchqError
from patchq.progress import SILENT
from patchq.queue.patch import empty_diff
from patchq.upstream.releases import Release as Known
from tests.support.history import lines
from tests.support.kit import Kit, made

TEXT = lines(range(1, 31))
FOREIGN = b"""Index: src/a.txt
===================================================================
--- src.orig/a.txt\t2025-01-02 03:04:05.000000000 +0000
+++ src/a.txt\t2025-01-02 03:04:05.000000000 +0000
@@ -8,3 +8,3 @@
 line 8
-line 9
+9
 line 10
"""


@pytest.fixture
def told(kit: Kit) -> Kit:
    kit.history.commit().write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
    kit.history.commit().edit("a.txt", b"line 3\n", b"three\n").tag("v2")
    kit.history.branch("one", at="v1").commit().edit("a.txt", b"line 9\n", b"9\n")
    kit.history.branch("two", at="one").commit().move("b.txt", "c.txt")
    return kit


def test_what_is_canonical_stays_the_same_value(told: Kit) -> None:
    series = told.series("v1", "one", "two")
    found = canonical(told.store, told.tree("v1"), series)
    assert found == series


def test_the_form_that_quilt_writes(told: Kit) -> None:
    one, two = told.series("v1", "one", "two")
    foreign = made(1, "one", FOREIGN)
    assert foreign.files is None
    found = canonical(told.store, told.tree("v1"), [foreign, two])
    assert [patch.diff for patch in found] == [one.diff, two.diff]
    assert found[0].head == foreign.head


def test_a_rename(told: Kit) -> None:
    one, two = told.series("v1", "one", "two")
    renaming = made(
        2,
        "two",
        b"diff --git a/b.txt b/c.txt\nsimilarity index 100%\nrename from b.txt\nrename to c.txt\n",
    )
    assert canonical(told.store, told.tree("v1"), [one, renaming])[1].diff == two.diff


def test_a_marker_stays(told: Kit) -> None:
    one, _ = told.series("v1", "one", "two")
    marker = made(2, "marker", empty_diff(b"b.txt"))
    assert canonical(told.store, told.tree("v1"), [one, marker]) == (one, marker)


def test_a_patch_that_does_not_apply(told: Kit) -> None:
    one, _ = told.series("v1", "one", "two")
    bad = made(2, "two", FOREIGN)
    with pytest.raises(PatchqError, match=r"0002-two\.patch does not apply to its own base"):
        canonical(told.store, told.tree("v1"), [one, bad])


@pytest.mark.parametrize("shifted", [False, True], ids=["another form", "lines shifted"])
def test_fold_any(told: Kit, shifted: bool) -> None:
    one, _ = told.series("v1", "one", "two")
    diff = one.diff.replace(b"@@ -6,7 +6,7 @@", b"@@ -4,7 +4,7 @@") if shifted else FOREIGN
    assert diff != one.diff
    carry = fold_any(told.store, told.release("v1"), told.release("v2"), [made(1, "one", diff)])
    assert not carry.asks
    wanted = TEXT.replace(b"line 3\n", b"three\n").replace(b"line 9\n", b"9\n")
    assert told.content(carry.tree, "a.txt") == wanted
    assert exported(told.store, carry)["one"].diff.startswith(b"diff --git a/a.txt b/a.txt\nindex")


def test_applied_on_its_own_base(told: Kit) -> None:
    side = told.release("v1")
    base = Known("v1", side.commit, side.tree)
    carry = applied(told.store, base, told.series("v1", "one", "two"), SILENT)
    assert carry.tree == told.tree("two")
    assert [each.carry for each in carry.patches] == ["clean", "clean"]
    empty = applied(told.store, base, (), SILENT)
    assert (empty.tree, empty.commit) == (side.tree, side.commit)


@pytest.mark.parametrize("gone", [False, True], ids=["stands", "is gone"])
def test_a_marker_names_a_file_that_is_there(kit: Kit, gone: bool) -> None:
    kit.history.commit().write("m.txt", b"m\n").write("z.txt", b"z\n").tag("v1")
    change = kit.history.commit().write("z.txt", b"zz\n")
    if gone:
        change.delete("m.txt")
    change.tag("v2")
    marker = made(1, "marker", empty_diff(b"m.txt"))
    carry = fold_any(kit.store, kit.release("v1"), kit.release("v2"), [marker])
    assert [each.judgement.action for each in carry.patches] == ["keep"]
    wanted = empty_diff(b"z.txt" if gone else b"m.txt")
    assert exported(kit.store, carry)["marker"].diff == wanted


def test_a_marker_stands_on_the_patches_below_it(kit: Kit) -> None:
    """Upstream has `one` by now; a patch below takes the first files away and adds another."""
    kit.history.commit().write("b.txt", TEXT).write("c.txt", TEXT).write("z.txt", b"z\n").tag("v1")
    change = kit.history.commit().edit("c.txt", b"line 3\n", b"three\n")
    change.delete("b.txt").write("a.txt", b"a\n").tag("below")
    kit.history.branch("one", at="below").commit().edit("c.txt", b"line 9\n", b"9\n")
    kit.history.branch("next", at="v1").commit().edit("c.txt", b"line 9\n", b"9\n").tag("v2")
    series = kit.series("v1", "below", "one")
    carry = fold_any(kit.store, kit.release("v1"), kit.release("v2"), series)
    below, one = carry.patches
    kept = exported(kit.store, replace(carry, patches=(below, replace(one, commit="kept"))))
    assert kept["one"].diff == empty_diff(b"z.txt")


def test_what_a_marker_names(kit: Kit) -> None:
    kit.history.commit().write("a.txt", b"a\n").write("\xe9.txt", b"b\n").tag("v1")
    kit.history.branch("one", at="v1").commit().delete("a.txt").write("\xe9.txt", b"c\n")
    kit.history.branch("bare", at="v1").commit().delete("a.txt").delete("\xe9.txt")
    (one,) = kit.series("v1", "one")
    quoted = empty_diff("\xe9.txt".encode())
    assert marker(kit.store, kit.tree("v1"), []) == empty_diff(b"a.txt")
    assert marker(kit.store, kit.tree("v1"), [one]) == quoted, "changed only: it stays there"
    patch = made(2, "two", empty_diff(b"a.txt"))
    assert standing(kit.store, kit.tree("v1"), patch, [one]) is patch
    assert standing(kit.store, kit.tree("one"), patch, [one]).diff == quoted
    with pytest.raises(PatchqError, match="names a file, and none is there"):
        marker(kit.store, kit.tree("bare"), [])
