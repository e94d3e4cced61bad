"""What git's own applier makes of a series after a refresh."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from patchq.queue.patch import empty_diff
from patchq.queue.series import Line, Series
from patchq.work.place import place
from patchq.work.proof import whole_tree
from patchq.work.state import Below
from tests.support.history import lines
from tests.support.kit import Kit, made

TEXT = lines(range(1, 31))


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[Kit]:
    made = Kit(tmp_path)
    made.history.commit().write("a.txt", TEXT).write("b.txt", b"only\n").tag("v1")
    change = made.history.commit("edit").edit("a.txt", b"line 5\n", b"five\n")
    change.write("b.txt", b"other\n").tag("edit")
    made.history.branch("gone", at="v1").commit("gone").delete("a.txt")
    made.history.branch("longer", at="v1").commit("longer").write("b.txt", b"only\nmore\n")
    yield made
    made.close()


def series(kit: Kit, *names: str) -> Series:
    patches = [kit.patch("v1", name, number) for number, name in enumerate(names, 1)]
    return Series(tuple(Line("patch", patch.file, patch) for patch in patches))


def below(kit: Kit) -> Below:
    base = kit.release("v1")
    return Below(base.name, base.commit, base.tree)


def test_the_tree_of_a_series(kit: Kit) -> None:
    assert whole_tree(kit.store, kit.tree("v1"), series(kit, "edit")) == kit.tree("edit")
    assert whole_tree(kit.store, kit.tree("v1"), series(kit)) == kit.tree("v1")


@pytest.mark.parametrize("names", [("gone", "edit"), ("edit", "gone"), ("longer", "edit")])
def test_a_series_that_does_not_apply_has_none(kit: Kit, names: tuple[str, ...]) -> None:
    assert whole_tree(kit.store, kit.tree("v1"), series(kit, *names)) == ""


@pytest.mark.parametrize("names", [("gone", "edit"), ("edit", "gone"), ("longer", "edit")])
def test_nor_is_its_second_patch_placed(kit: Kit, names: tuple[str, ...]) -> None:
    """`edit` wants the end of b.txt behind its line: its lines alone do not tell that it fits."""
    placed = place(kit.store, below(kit), series(kit, *names).applied)
    assert [each.name for each in placed] == [names[0]]


def test_ids_that_an_edit_by_hand_left_behind_are_no_obstacle(kit: Kit) -> None:
    """It applies, at its very lines, so it is applied as it reads."""
    first, second = series(kit, "longer", "edit").applied
    sections = second.diff.split(b"diff --git ")
    second = second.with_diff(b"diff --git " + sections[1].replace(b"index ", b"index 1111", 1))
    oid = second.diff.split(b"index ")[1][:44]
    second = second.with_diff(second.diff.replace(oid, b"1" * 40, 1))
    placed = place(kit.store, below(kit), [first, second])
    assert [each.name for each in placed] == ["longer", "edit"]
    shifted = second.with_diff(second.diff.replace(b"@@ -2,7 +2,7 @@", b"@@ -3,7 +3,7 @@"))
    assert shifted.diff != second.diff
    assert len(place(kit.store, below(kit), [first, shifted])) == 1, "at other lines it does not"


def test_another_tools_form_is_read(kit: Kit) -> None:
    (patch,) = series(kit, "edit").applied
    plain = b"\n".join(
        line for line in patch.diff.split(b"\n") if not line.startswith((b"diff ", b"index "))
    )
    foreign = patch.with_diff(plain)
    assert foreign.files is None
    (placed,) = place(kit.store, below(kit), [foreign])
    assert placed.tree == kit.tree("edit")


def test_a_patch_that_changes_nothing_wants_the_file_that_it_names(kit: Kit) -> None:
    """git applies it nowhere else: it is no patch of that tree then."""
    (gone,) = series(kit, "gone").applied
    (there, missing) = (made(2, "empty", empty_diff(path)) for path in (b"b.txt", b"a.txt"))
    assert len(place(kit.store, below(kit), [missing])) == 1
    assert len(place(kit.store, below(kit), [gone, there])) == 2
    assert len(place(kit.store, below(kit), [gone, missing])) == 1
