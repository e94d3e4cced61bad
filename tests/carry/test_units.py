"""Patches that upstream took as one change."""

from __future__ import annotations

from patchq.carry.tracks import Tracks
from patchq.carry.units import find_unit
from patchq.judge.model import Observation
from tests.support.history import lines
from tests.support.kit import Kit

TEXT = lines(range(1, 31))
ONE = b"one 1\none 2\none 3\none 4\none 5\n"
TWO = ONE.replace(b"one 2\n", b"two 2\n")
THREE = TWO.replace(b"one 4\n", b"three 4\n").replace(b"one 5\n", b"three 5\n")


def put(block: bytes) -> bytes:
    return TEXT.replace(b"line 15\n", block)


def unit(kit: Kit, *refs: str, place: int = 0) -> Observation | None:
    patches = kit.series("v1", *refs)
    tracks = Tracks(kit.store, kit.release("v1"), kit.release("v2"), patches)
    return find_unit(kit.store, tracks, patches, place)


def stack(kit: Kit, upstream: bytes, *blocks: bytes) -> list[str]:
    """v1, v2 with `upstream` in the place, and a branch for each of `blocks`."""
    start = kit.history.commit().write("a.txt", TEXT).write("b.txt", TEXT).write("c.txt", b"c\n")
    start.tag("v1")
    kit.history.commit().write("a.txt", put(upstream)).write("d.txt", b"d\n").tag("v2")
    at, names = "v1", []
    for n, block in enumerate(blocks, 1):
        name = f"p{n}"
        kit.history.branch(name, at=at).commit().write("a.txt", put(block))
        at = name
        names.append(name)
    return names


def test_two_patches_squashed(kit: Kit) -> None:
    names = stack(kit, TWO, ONE, TWO)
    assert unit(kit, *names) == Observation((), ("p1", "p2"), unit_changed=False)


def test_three_patches_squashed(kit: Kit) -> None:
    """The first two alone are not what upstream has."""
    names = stack(kit, THREE, ONE, TWO, THREE)
    assert unit(kit, *names) == Observation((), ("p1", "p2", "p3"), unit_changed=False)


def test_squashed_with_a_tweak(kit: Kit) -> None:
    names = stack(kit, TWO.replace(b"one 5\n", b"one 5, reviewed\n"), ONE, TWO)
    assert unit(kit, *names) == Observation((), ("p1", "p2"), unit_changed=True)


def test_squashed_with_another_text(kit: Kit) -> None:
    names = stack(kit, TWO.replace(b"one ", b"another "), ONE, TWO)
    assert unit(kit, *names) is None


def test_a_later_patch_that_is_not_upstream_is_not_taken(kit: Kit) -> None:
    names = stack(kit, TWO, ONE, TWO, THREE)
    found = unit(kit, *names)
    assert found is not None and found.unit == ("p1", "p2")


def test_an_unrelated_patch_between(kit: Kit) -> None:
    stack(kit, TWO, ONE)
    kit.history.branch("other", at="p1").commit().write("c.txt", b"other\n")
    kit.history.branch("p2", at="other").commit().write("a.txt", put(TWO))
    found = unit(kit, "p1", "other", "p2")
    assert found is not None and found.unit == ("p1", "p2")


def test_a_patch_between_that_the_later_one_builds_on(kit: Kit) -> None:
    """What was passed over may not be taken along later: its order would be lost."""
    stack(kit, TWO, ONE)
    kit.history.branch("other", at="p1").commit().write("c.txt", b"other\n")
    kit.history.branch("p2", at="other").commit().write("a.txt", put(TWO)).write("c.txt", b"2\n")
    assert unit(kit, "p1", "other", "p2") is None


def test_over_two_files(kit: Kit) -> None:
    stack(kit, TWO, ONE)
    kit.history.branch("main").commit().write("b.txt", put(ONE)).tag("v2")
    kit.history.branch("p2", at="p1").commit().write("a.txt", put(TWO)).write("b.txt", put(ONE))
    found = unit(kit, "p1", "p2")
    assert found is not None and (found.unit, found.unit_changed) == (("p1", "p2"), False)


def test_a_second_file_that_is_not_there(kit: Kit) -> None:
    stack(kit, TWO, ONE)
    kit.history.branch("p2", at="p1").commit().write("a.txt", put(TWO)).write("b.txt", put(ONE))
    assert unit(kit, "p1", "p2") is None


def test_a_file_that_is_gone_or_binary(kit: Kit) -> None:
    stack(kit, TWO, ONE)
    kit.history.branch("main").commit().delete("c.txt").tag("v2")
    kit.history.branch("p2", at="p1").commit().write("a.txt", put(TWO)).write("c.txt", b"2\n")
    assert unit(kit, "p1", "p2") is None
    kit.history.branch("p3", at="p1").commit().write("a.txt", b"\0")
    kit.history.save()
    assert unit(kit, "p1", "p3") is None


def test_a_mode_that_is_not_there(kit: Kit) -> None:
    stack(kit, TWO, ONE)
    kit.history.branch("p2", at="p1").commit().write("a.txt", put(TWO), 0o100755)
    assert unit(kit, "p1", "p2") is None


def test_one_patch_is_no_unit(kit: Kit) -> None:
    names = stack(kit, ONE, ONE)
    assert unit(kit, *names) is None


def test_a_deletion_only_says_nothing(kit: Kit) -> None:
    """Nothing is added, so nothing can be found: repetitive lines would say yes to anything."""
    names = stack(kit, b"", b"", b"line 15\n")
    assert unit(kit, *names) is None


def test_patches_that_take_each_other_back(kit: Kit) -> None:
    """Their sum is no change: that upstream "has" it proves nothing."""
    names = stack(kit, b"upstream's own\n", ONE, b"line 15\n")
    assert unit(kit, *names) is None
