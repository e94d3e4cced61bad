"""A new head in the place of the pinned one; our own edits and answers stay."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from patchq.carry.canonical import applied
from patchq.carry.pulls.renew import Exchange, Renewed, renew
from patchq.carry.pulls.take import Piece
from patchq.progress import SILENT
from patchq.upstream.releases import Release
from tests.support.history import lines
from tests.support.kit import Kit

TEXT = lines(range(1, 41))
NINE = b"line 9\n"


def put(*edits: tuple[bytes, bytes]) -> bytes:
    text = TEXT
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


@pytest.fixture
def kit(kit: Kit) -> Kit:
    """`v1` is our base, `fork` where the pull request started: line 9 is another there."""
    kit.history.commit().write("a.txt", put((NINE, b"9, of v1\n"))).tag("v1")
    kit.history.branch("fork").commit().write("a.txt", TEXT)
    return kit


def head(kit: Kit, name: str, *edits: tuple[bytes, bytes]) -> None:
    kit.history.branch(name, at="fork").commit(name).write("a.txt", put(*edits))


def ours(kit: Kit, *texts: bytes) -> list[str]:
    """Branches with one patch each on v1."""
    at, names = "v1", []
    for number, text in enumerate(texts, 1):
        name = f"p{number}"
        kit.history.branch(name, at=at).commit(name).write("a.txt", text)
        names.append(name)
        at = name
    return names


def piece(kit: Kit, name: str) -> Piece:
    old, new = kit.release("fork"), kit.release(name)
    (diff,) = kit.store.diff_texts([(old.tree, new.tree)])
    return Piece(old.commit, new.commit, kit.patch("fork", name).header, diff)


def exchange(kit: Kit, patches: Sequence[str], was: str, wants: str, which: str = "p1") -> Renewed:
    series = kit.series("v1", *patches)
    base = kit.release("v1")
    whole = applied(kit.store, Release("v1", base.commit, base.tree), series, SILENT)
    patch = next(each for each in series if each.name == which)
    how = Exchange(piece(kit, was), piece(kit, wants), patch.header.replace("Patchq-Topic", "new"))
    return renew(kit.store, whole, {which: how})


def test_an_answer_to_a_conflict_is_kept(kit: Kit) -> None:
    """The pinned head conflicted with our base, and we resolved it; the new one does the same."""
    head(kit, "old", (NINE, b"9, theirs\n"), (b"line 20\n", b"20\n"))
    head(kit, "new", (NINE, b"9, theirs\n"), (b"line 20\n", b"20\n"), (b"line 30\n", b"30\n"))
    resolved = put((NINE, b"9, of both\n"), (b"line 20\n", b"20\n"))

    found = exchange(kit, ours(kit, resolved), "old", "new")

    assert (found.stops, found.edited) == ((), ("p1",))
    want = put((NINE, b"9, of both\n"), (b"line 20\n", b"20\n"), (b"line 30\n", b"30\n"))
    assert kit.content(found.tree, "a.txt") == want
    assert found.texts["p1"].header.get("Patchq-Topic") == "new"


def test_another_conflict_is_asked_about(kit: Kit) -> None:
    head(kit, "old", (NINE, b"9, theirs\n"))
    head(kit, "new", (NINE, b"9, theirs anew\n"))

    found = exchange(kit, ours(kit, put((NINE, b"9, of both\n"))), "old", "new")

    assert [(c.path, c.kind) for stop in found.stops for c in stop.conflicts] == [
        (b"a.txt", "content"),
        (b"a.txt", "content"),
    ]
    assert found.stops[0].clashes[0].sides[0].theirs == b"9, theirs anew\n"


def test_an_edit_of_ours_that_the_new_head_changed_too(kit: Kit) -> None:
    head(kit, "old", (b"line 20\n", b"20\n"))
    head(kit, "new", (b"line 20\n", b"twenty\n"))
    mine = put((NINE, b"9, of v1\n"), (b"line 20\n", b"20, ours\n"))

    found = exchange(kit, ours(kit, mine), "old", "new")

    (stop,) = found.stops
    assert [conflict.path for conflict in stop.conflicts] == [b"a.txt"]


def test_patches_above_and_below(kit: Kit) -> None:
    """What stands below stays as it is, what stands above is carried; all in one pass."""
    head(kit, "old", (b"line 20\n", b"20\n"))
    head(kit, "new", (b"line 20\n", b"20\nand one more\n"))
    first = put((NINE, b"9, of v1\n"), (b"line 15\n", b"15\n"))
    second = first.replace(b"line 20\n", b"20\n")
    third = second.replace(b"line 22\n", b"22\n")

    found = exchange(kit, ours(kit, first, second, third), "old", "new", "p2")

    assert (found.stops, found.edited) == ((), ())
    assert kit.content(found.tree, "a.txt") == third.replace(b"20\n", b"20\nand one more\n")
    assert [each.judgement.verdict for each in found.carried] == ["needed", "updated", "needed"]
    assert found.texts["p1"] == kit.series("v1", "p1")[0]


def test_a_patch_above_that_the_new_head_has(kit: Kit) -> None:
    """We carried a fix of ours; the pull request took it: ours goes."""
    head(kit, "old", (b"line 20\n", b"20\n"))
    head(kit, "new", (b"line 20\n", b"20\n"), (b"line 30\n", b"30, mended\n"))
    first = put((NINE, b"9, of v1\n"), (b"line 20\n", b"20\n"))

    found = exchange(kit, ours(kit, first, first.replace(b"line 30", b"30, mended")), "old", "new")

    assert found.stops == ()
    assert [each.judgement.action for each in found.carried] == ["update", "drop"]


def test_a_new_head_that_the_base_has(kit: Kit) -> None:
    head(kit, "old", (NINE, b"9, of v1\n"), (b"line 20\n", b"20\n"))
    head(kit, "new", (NINE, b"9, of v1\n"))

    found = exchange(
        kit, ours(kit, put((NINE, b"9, of v1\n"), (b"line 20\n", b"20\n"))), "old", "new"
    )

    assert found.stops
