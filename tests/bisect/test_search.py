"""The search: few builds, sure answers, nobody blamed for what cannot be built. No git, no runner."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.bisect.chances import Question, chance_of, chances, decided
from patchq.bisect.due import Answer, Todo, due
from patchq.bisect.model import Move, Tried, closed
from patchq.bisect.search import Again, Found, Try, Unsure, next_step
from patchq.bisect.subsets import Skips, Space
from patchq.errors import PatchqError
from tests.bisect.worlds import World, search, world


def moves(text: str) -> tuple[Move, ...]:
    """`a b:a c:ab`: three moves, b needs a, c both."""
    found = []
    for word in text.split():
        name, _, needs = word.partition(":")
        found.append(Move(name, "patch", f"{name} is new", needs=frozenset(needs)))
    return tuple(found)


def tried(text: str, bad: int = 0, good: int = 0, skipped: str | None = None) -> Tried:
    return Tried(frozenset(text), bad, good, skipped)


# The figure that was asked for


def test_one_of_64_with_needs_some_unbuildable_and_a_fault_in_60_percent_of_runs() -> None:
    """Six of the moves need another one and do not say so, 15 % of all other subsets break alone."""
    builds: Counter[int] = Counter()
    right = 0
    for seed in range(300):
        there = world(seed)
        found = search(there, Question(there.moves, repeat=20))
        builds[found.builds] += 1
        right += found.name == there.culprit
    assert max(builds) <= 9, sorted(builds.items())
    assert right >= 297, right


def test_as_many_builds_as_halvings_where_everything_builds() -> None:
    for seed in range(25):
        there = world(seed, broken=0, hidden=0)
        found = search(there, Question(there.moves, repeat=20))
        assert (found.name, found.builds) == (there.culprit, 6)


def test_a_fault_in_every_run_takes_one_run_a_build() -> None:
    for seed in range(25):
        there = world(seed, broken=0, hidden=0, rate=1.0)
        found = search(there, Question(there.moves))
        assert (found.name, found.builds, found.runs) == (there.culprit, 6, 6)
        assert isinstance(found.end, Found) and found.end.chance == 1


def test_few_runs_a_build_send_it_back_to_builds_that_are_there() -> None:
    """With --repeat 3 a good build is in doubt (6 % of them are bad): doubts are gone after again."""
    again = right = 0
    for seed in range(25):
        there = world(seed, broken=0, hidden=0)
        found = search(there, Question(there.moves, repeat=3))
        right += found.name == there.culprit
        again += found.rounds > found.attempts
        assert found.builds <= 9
    assert right >= 24 and again >= 10


def test_runs_that_show_it_by_chance_are_borne() -> None:
    right = 0
    for seed in range(25):
        there = world(seed, broken=0, hidden=0)
        there = World(**{**vars(there), "false_alarms": 0.05})
        question = Question(there.moves, repeat=20, false_alarms=0.05)
        right += search(there, question).name == there.culprit
    assert right >= 24


@pytest.mark.parametrize("wanted", [2, 3])
def test_more_at_once_need_fewer_rounds(wanted: int) -> None:
    rounds = Counter[int]()
    for seed in range(15):
        there = world(seed, broken=0, hidden=0, rate=1.0)
        question = Question(there.moves)
        alone, spread = search(there, question), search(there, question, wanted)
        assert spread.name == alone.name == there.culprit
        rounds[1] += alone.rounds
        rounds[wanted] += spread.rounds
    assert rounds[wanted] <= rounds[1] * {2: 0.75, 3: 0.6}[wanted]


def test_a_worse_world_ends_and_never_blames_the_innocent() -> None:
    """Twelve moves need a later one: no order of theirs is safe."""
    for seed in range(6):
        there = world(seed, 24, hidden=6, backwards=True, rate=1.0)
        assert search(there, Question(there.moves)).name in (there.culprit, None)


# What it is made of


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 3))
def test_whatever_happens_steps_are_new_closed_and_end(seed: int, count: int, wanted: int) -> None:
    """`search` itself asserts that no build is made twice and that subsets have what they need."""
    there = world(seed, count, broken=0.4, hidden=2, rate=0.7)
    found = search(there, Question(there.moves, repeat=6), wanted)
    assert isinstance(found.end, Found | Unsure)
    if isinstance(found.end, Unsure):
        assert there.culprit in dict(found.end.suspects) or not found.end.suspects


@given(st.integers(0, 10_000))
def test_one_move_is_the_culprit_without_a_build(seed: int) -> None:
    there = world(seed, 1)
    found = search(there, Question(there.moves, repeat=seed % 3 + 1))
    assert (found.name, found.builds, found.runs) == (there.culprit, 0, 0)


def test_chances_are_the_rule_of_bayes() -> None:
    """Two moves; {a} ran good twice, with a rate of 0.3 to 1, all alike: a has 0.7^3 / 3 / 0.7."""
    question = Question(moves("a b"), repeat=20)
    found = chances(question, [tried("a", good=2)])
    weight = 0.7**2 / 3
    assert found["a"] == pytest.approx(weight / (1 + weight), rel=1e-3)
    assert sum(found.values()) == pytest.approx(1)
    assert chances(question, [tried("a", good=2, bad=1)])["b"] == 0


def test_what_other_builds_show_says_how_often_it_shows() -> None:
    question = Question(moves("a b"), repeat=20)
    good = tried("a", good=4)
    often, seldom = tried("ab", bad=10), tried("ab", bad=4, good=8)
    assert chances(question, [good, often])["a"] < chances(question, [good, seldom])["a"]


def test_runs_end_when_more_would_not_say_more() -> None:
    question = Question(moves("a b c d"), repeat=50)
    assert decided(question, [tried("ab", bad=1, good=9)], frozenset("ab"))
    assert not decided(question, [tried("ab", good=3)], frozenset("ab"))
    assert decided(question, [tried("ab", good=25)], frozenset("ab"))


def test_a_pair_that_does_not_go_apart_is_learned() -> None:
    """{b, c} could not be built and {a, b}, {a, b, c} could: c needs a, or {b, c} alone is odd."""
    space = Space(moves("a b c d"))
    skips = Skips(space, [tried("bc", skipped="no"), tried("ab", good=1), tried("b", good=1)])
    assert skips.chance(space.bits("bc")) == skips.chance(space.bits("b")) == 0
    assert skips.chance(space.bits("cd")) < skips.chance(space.bits("bd")) < 1
    before = Skips(space, [tried("ab", good=1), tried("b", good=1)])
    assert skips.chance(space.bits("cd")) < before.chance(space.bits("cd"))
    assert skips.chance(space.bits("bd")) == before.chance(space.bits("bd"))


def test_a_closed_order_even_where_the_moves_have_none() -> None:
    space = Space(moves("c:b b:a a x:c"))
    assert space.names == ("a", "b", "c", "x")
    assert space.closures == (1, 3, 7, 15)


def test_two_that_cannot_be_told_apart_are_both_named() -> None:
    """b and c break without each other: it is one of them, and no build says which."""
    there = World(moves("a b c d"), "c", (("b", "c"), ("c", "b")))
    found = search(there, Question(there.moves))
    assert isinstance(found.end, Unsure)
    assert {name for name, _ in found.end.suspects} == {"b", "c"}
    assert "cannot be tried" in found.end.why


def test_one_run_each_that_contradict_are_no_answer() -> None:
    step = next_step(Question(moves("a b c d")), [tried("a", bad=1), tried("ab", good=1)])
    assert isinstance(step, Unsure) and "in some runs only" in step.why


def test_skipped_is_never_blamed() -> None:
    """All that holds d is skipped; c is the culprit, and is found beside it."""
    question = Question(moves("a b c d"))
    seen = [tried("abd", skipped="no"), tried("ab", good=1), tried("abc", bad=1)]
    step = next_step(question, seen)
    assert isinstance(step, Found) and step.name == "c"
    assert isinstance(next_step(question, seen[:2]), Try)


def test_a_build_that_was_cut_is_gone_on_with() -> None:
    step = next_step(Question(moves("a b c d"), repeat=20), [tried("ab", good=2)])
    assert step == Again((frozenset("ab"),))
    assert next_step(Question(moves("a b c d")), [tried("abc")]) == Again((frozenset("abc"),))
    told = [tried("ab", bad=1), tried("abc")]
    assert isinstance(next_step(Question(moves("a b c d")), told), Try), "abc says nothing any more"


# Ends and partners


def test_the_ends_come_first_both_at_once_where_there_is_room() -> None:
    question = Question(moves("a b"))
    assert due(question, []) == Todo((frozenset("ab"),), "checking the ends")
    todo = due(question, [], wanted=2)
    assert isinstance(todo, Todo) and todo.subsets == (frozenset("ab"), frozenset())
    assert isinstance(due(question, [], known=True), Todo)
    assert due(question, [], known=True).subsets != todo.subsets  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        ([tried("ab", good=1)], "B does not show the fault in 1 run"),
        ([tried("ab", bad=1), tried("", bad=1)], "A shows the fault, too, in 1 of 1 run"),
        ([tried("ab", skipped="no disk")], "B itself cannot be tried: no disk"),
        ([tried("ab", bad=1), tried("", skipped="no disk")], "A itself cannot be tried: no disk"),
    ],
    ids=["good B", "bad A", "no B", "no A"],
)
def test_ends_that_are_not_as_told(seen: list[Tried], says: str) -> None:
    with pytest.raises(PatchqError) as caught:
        due(Question(moves("a b")), seen)
    assert caught.value.message == says


def test_an_end_is_run_until_it_is_clear() -> None:
    question = Question(moves("a b"), repeat=20)
    assert due(question, [tried("ab", good=2)]) == Todo((frozenset("ab"),), "checking the ends")
    assert due(question, [tried("ab", good=2, bad=1)]) == Todo((frozenset(),), "checking the ends")
    with pytest.raises(PatchqError, match="B does not show the fault in 9 runs"):
        due(question, [tried("ab", good=9)])


def test_nothing_moved() -> None:
    with pytest.raises(PatchqError, match="nothing moved"):
        due(Question(()), [])


@pytest.mark.parametrize("repeat", [1, 20], ids=["every run", "some runs"])
@pytest.mark.parametrize("partners", ["", "b", "bf"])
def test_what_a_culprit_needs_to_show_the_fault(partners: str, repeat: int) -> None:
    """The fault shows with g and all of `partners`; a is needed by g to stand, and no partner."""
    question = Question(moves("a b c d e f g:a h"), repeat=repeat)
    wanted = frozenset(partners + "g")
    seen: list[Tried] = []
    for _ in range(40):
        todo = due(question, seen, known=True, minimal=True)
        if isinstance(todo, Answer):
            break
        (subset,) = todo.subsets
        assert closed(question.moves, subset) == subset
        alone = frozenset("ag") in [each.moves for each in seen]
        assert ("suspected" in todo.says) != (alone or subset == {"a", "g"}), "it was found before"
        bad = wanted <= subset
        old = next((each for each in seen if each.moves == subset), Tried(subset))
        now = Tried(subset, old.bad + bad, old.good + (0 if bad else min(repeat, 16)))
        if old.runs:
            seen[seen.index(old)] = now
        else:
            seen.append(now)
    assert isinstance(todo, Answer) and isinstance(todo.end, Found)
    assert {todo.end.name, *todo.partners} == wanted
    assert not todo.partly


def test_without_being_asked_nothing_more_is_tried() -> None:
    question = Question(moves("a b"))
    assert isinstance(due(question, [tried("a", good=1)], known=True), Answer)
    assert isinstance(due(question, [tried("a", good=1)], known=True, minimal=True), Todo)


def test_two_together_the_last_that_is_needed_is_named() -> None:
    """b and f together: whatever is tried, the answer is one of them, the other is in what is good."""
    there = World(moves("a b c d e f g h"), "f")
    found = search(there, Question(there.moves), shows=lambda subset: {"b", "f"} <= subset)
    assert found.name == "f"


def test_the_likeliest_are_told() -> None:
    question = Question(moves("a b c d"), repeat=20)
    each = chances(question, [tried("ab", bad=1)])
    assert chance_of(frozenset("ab"), each) == 1
    assert each["a"] == each["b"] == 0.5
