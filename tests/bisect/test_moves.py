"""What moved between two runners, told apart from what was only carried along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.bisect.ends import read, resolve
from patchq.bisect.joined import joined
from patchq.bisect.model import Move, closed
from patchq.bisect.moves import Between, between
from patchq.build import lock as locks
from patchq.errors import PatchqError
from tests.bisect.conftest import Story
from tests.bisect.drawn import Edit, World, told
from tests.support.history import git


def named(found: Between) -> dict[str, Move]:
    return {move.name: move for move in found.moves}


def test_each_thing_that_differs_is_a_move(story: Story) -> None:
    moves = named(story.between(commits=False))
    assert {name: move.kind for name, move in moves.items()} == {
        "base/v2": "base",
        "three": "patch",
        "four": "patch",
        "six": "patch",
        "seven": "patch",
        "eight": "patch",
        "nine-b-bold-b": "patch",
        "component/lib": "component",
        "template/chat": "template",
        "profile/small": "profile",
    }
    assert moves["three"].says == "patch three taken out (deleted on v2): Three"
    assert moves["four"].says == "patch four held (it waits): Four"
    assert moves["six"].says == "patch six written anew: Six"
    assert moves["component/lib"].says == "component lib 1.0 to 1.1"
    assert moves["template/chat"].says == "template chat aaaa to bbbb"


def test_a_patch_that_was_only_carried_did_not_move(story: Story) -> None:
    """One reads otherwise since core.py has a header, Five is in another file: the same changes."""
    found = story.between(commits=False)
    one = next(slot for slot in found.slots if slot.name == "one")
    assert one.a is not None and one.b is not None
    assert one.a.parts.diff != one.b.parts.diff
    assert not {"one", "five"} & named(found).keys()


def test_what_the_base_brings_goes_with_it(story: Story) -> None:
    moves = named(story.between(commits=False))
    assert "two" not in moves
    assert "together with: patch two taken out (landed in v2)" in moves["base/v2"].says


def test_a_patch_needs_the_base_that_it_was_made_on_and_the_patches_below_it(story: Story) -> None:
    moves = named(story.between(commits=False))
    assert moves["seven"].needs == {"base/v2"}
    assert moves["eight"].needs == {"base/v2", "seven"}
    assert moves["three"].needs == frozenset()
    assert moves["profile/small"].needs == frozenset()


def test_a_title_is_data(story: Story) -> None:
    says = named(story.between())["nine-b-bold-b"].says
    assert says == "patch nine-b-bold-b added: Nine \\u202e<b>bold</b>"


def test_with_history_each_commit_is_a_move(story: Story) -> None:
    """A culprit among upstream's own commits has a name; what landed goes when its commit comes."""
    found = story.between()
    way = [move for move in found.moves if move.kind == "commit"]
    assert [move.says.partition(": ")[2] for move in way] == [
        "A header for core, by Ada Tester",
        "Two, as upstream has it, by Ada Tester",
        "Old is new, by Ada Tester",
        "The last note, by Ada Tester",
    ]
    for earlier, later in pairwise(way):
        assert later.needs == {earlier.name}
    assert named(found)["seven"].needs == {way[-1].name}
    assert "base/v2" not in named(found)
    assert "two" not in named(found)


def test_backwards_is_as_good_as_forwards(story: Story) -> None:
    """What was dropped for the newer base comes back with the older one."""
    moves = named(story.between("bad", "good", commits=False))
    assert moves["base/v1"].says.startswith("base v2 to v1")
    assert moves["two"].needs == {"base/v1"}
    assert moves["seven"].needs == {"eight"}
    assert moves["three"].says == "patch three added: Three"


def test_nothing_moved_between_a_runner_and_itself(story: Story) -> None:
    assert story.between("good", "release-1").moves == ()


def test_the_words_for_an_end(story: Story) -> None:
    root = story.root
    good = git(root, "rev-parse", "good").decode().strip()
    bad = git(root, "rev-parse", "bad").decode().strip()
    locked = read(root, "good").digest
    assert locked is not None
    assert resolve(root, "1") == (good, "release 1")
    assert resolve(root, "last release") == (good, "release 1")
    assert resolve(root, "release-1") == (good, "release 1")
    assert resolve(root, locked[:10]) == (good, f"runner {locked[:12]}")
    assert resolve(root, ".") == (bad, "the present state")
    assert resolve(root, "main") == (bad, "main")
    assert resolve(root, good[:12])[0] == good
    assert resolve(root, "main~1")[0] == git(root, "rev-parse", "main~1").decode().strip()


@pytest.mark.parametrize("word", ["7", "nothing", "feedfeedfeed", "--all", "../x"])
def test_a_word_that_means_nothing_is_said_to(story: Story, word: str) -> None:
    with pytest.raises(PatchqError, match="no release, no runner's digest and no revision"):
        resolve(story.root, word)


def test_a_start_that_two_things_have_names_none(story: Story, tmp_path: Path) -> None:
    root = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(story.root), str(root))
    start = git(root, "rev-parse", "good").decode()[:4]
    tries = (locks.make({"tree": str(number)}) for number in count())
    lock = next(each for each in tries if each.digest.startswith(start))
    (root / "upstream/runner.lock").write_bytes(lock.text)
    git(root, "commit", "-qam", "another runner")
    with pytest.raises(PatchqError, match=f"may be revision {start} or runner {start}"):
        resolve(root, start)
    assert resolve(root, lock.digest[:12])[1] == f"runner {lock.digest[:12]}"


def test_an_end_where_the_queue_is_broken_is_named(story: Story, tmp_path: Path) -> None:
    root = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--no-local", str(story.root), str(root))
    (root / "series/series").write_text("0001-is-not-there.patch\n")
    git(root, "commit", "-qam", "broken")
    with pytest.raises(PatchqError, match=r"main \([0-9a-f]{12}\) cannot be read"):
        read(root, "main")


def test_moves_without_what_they_need_are_no_subset(story: Story) -> None:
    found = story.between(commits=False)
    with pytest.raises(PatchqError, match="these moves need "):
        found.made(frozenset({"eight"}))
    with pytest.raises(PatchqError, match="'ten' did not move between good and bad"):
        found.made(frozenset({"ten"}))


OURS, THEIRS = Edit("put", "a", 5, "y"), Edit("put", "a", 5, "x")


@pytest.fixture
def told_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Between]:
    """Between the ends of a drawn world; upstream changed the very line that the patch changes."""
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "cache"))

    def tell(a: Sequence[int], b: Sequence[int]) -> Between:
        world = World([THEIRS], [OURS] * 7, [OURS] * 7, a, b)
        return between(told(world, tmp_path), "a", "b", commits=False)

    return tell


def test_what_was_resolved_for_the_base_goes_with_it(told_in: Callable[..., Between]) -> None:
    """Neither the old text nor the new one goes on the other base: there is one move."""
    (move,) = told_in([0], [0]).moves
    assert (move.name, move.kind) == ("base/v2", "base")
    assert move.says == "base v1 to v2, together with: patch p0 written anew: About p0"


def test_a_base_on_which_a_patch_does_not_go_needs_it_gone(
    told_in: Callable[..., Between],
) -> None:
    """Without the base the patch may go alone; with it, it has to."""
    moves = named(told_in([0], []))
    assert moves["p0"].needs == frozenset()
    assert moves["base/v2"].needs == {"p0"}


NAMES = [f"m{n}" for n in range(8)]


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=20))
def test_what_goes_only_together_is_one_move(pairs: list[tuple[str, str]]) -> None:
    plain = [
        Move(name, "patch", name, None, frozenset(b for a, b in pairs if a == name))
        for name in NAMES
    ]
    found = joined(plain)
    parts = [part for each in found.parts.values() for part in each]
    assert sorted(parts) == NAMES
    done: set[str] = set()
    for move in found.moves:
        assert move.needs <= done, "each follows what it needs: there is no round left"
        done.add(move.name)
    for name in NAMES:
        # What a difference needs comes along, joined or not.
        whole = frozenset(
            part
            for each in closed(found.moves, frozenset({_of(found.parts, name)}))
            for part in found.parts[each]
        )
        assert whole == closed(plain, frozenset(found.parts[_of(found.parts, name)]))


def _of(parts: object, name: str) -> str:
    assert isinstance(parts, dict)
    return next(key for key, members in parts.items() if name in members)


def test_a_joined_move_tells_of_all(story: Story) -> None:
    first = Move("a", "base", "base 1 to 2", None, frozenset({"b"}))
    second = replace(first, name="b", kind="patch", says="patch b", needs=frozenset({"a"}))
    (move,) = joined([first, second]).moves
    assert (move.name, move.kind) == ("a", "base")
    assert move.says == "base 1 to 2, together with: patch b"
