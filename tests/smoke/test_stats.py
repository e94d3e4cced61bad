"""Intervals and verdicts of rounds, on numbers whose answer is known."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.smoke.stats import FEWEST, LEVEL, Effect, effect, judge, level_of, unpaired

MARGIN = 0.95


def rounds(ratio: float, noise: float = 0.01, number: int = 12, seed: int = 1) -> list[float]:
    chance = random.Random(seed)
    return [math.log(ratio) + chance.uniform(-noise, noise) for _ in range(number)]


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [(1.0, "same"), (0.99, "same"), (0.94, "worse"), (0.80, "worse"), (1.08, "better")],
)
def test_a_verdict_for_each_size(ratio: float, verdict: str) -> None:
    assert judge(effect(rounds(ratio)), MARGIN)[0] == verdict


def test_noise_that_hides_the_answer_is_inconclusive() -> None:
    verdict, says = judge(effect(rounds(0.97, noise=0.12)), MARGIN)
    assert verdict == "inconclusive"
    assert says.endswith("more rounds")


def test_too_few_rounds_are_inconclusive_however_clear() -> None:
    assert judge(effect(rounds(0.5, number=FEWEST - 1)), MARGIN)[0] == "inconclusive"
    assert judge(effect(rounds(0.5, number=FEWEST)), MARGIN)[0] == "worse"
    assert judge(effect([0.0]), MARGIN)[1] == "1 round is too few, 6 are needed"


def test_many_figures_need_more_rounds_to_be_different_but_not_to_be_the_same() -> None:
    level = level_of(15)
    few, enough = (effect(rounds(0.9, number=number), level) for number in (9, 10))
    assert (few.needed, judge(few, MARGIN)[0]) == (10, "inconclusive")
    assert judge(few, MARGIN)[1].endswith("10 rounds are needed")
    assert judge(enough, MARGIN)[0] == "worse"
    assert judge(effect(rounds(1.0, number=FEWEST), level), MARGIN)[0] == "same"


def test_an_effect_that_drifts_is_inconclusive() -> None:
    drifting = [*rounds(1.0, number=6), *rounds(0.9, number=6)]
    assert "drifts" in judge(effect(drifting), MARGIN)[1]
    assert judge(effect([each - 0.5 for each in drifting]), MARGIN)[0] == "worse", "it is small"


def test_what_chance_explains_is_no_drift() -> None:
    noisy = rounds(1.0, noise=0.3, number=12, seed=3)
    assert effect(noisy).drift == 0.0


def test_rounds_far_apart_are_inconclusive_and_one_alone_is_not() -> None:
    assert "differ by" in judge(effect([0.0, 0.4] * 6), MARGIN)[1]
    assert judge(effect([*rounds(1.0, number=15), 0.8]), MARGIN)[0] == "same"
    assert judge(effect([*rounds(0.9, number=15), 0.8]), MARGIN)[0] == "worse"


def test_a_side_that_drifts_cannot_be_compared_with_another_day() -> None:
    assert judge(unpaired(rounds(1.0), rounds(1.0, seed=2)), MARGIN)[0] == "same"
    assert judge(unpaired(rounds(1.0), rounds(0.9, seed=2)), MARGIN)[0] == "worse"
    slowing = [*rounds(1.0, number=6), *rounds(0.9, number=6)]
    assert judge(unpaired(slowing, rounds(1.0)), MARGIN)[0] == "inconclusive"


def test_more_questions_make_wider_intervals() -> None:
    assert level_of(1) == pytest.approx(LEVEL)
    assert level_of(10) == pytest.approx(1 - (1 - LEVEL) / 10)
    noisy = rounds(1.0, noise=0.05)
    one, ten = effect(noisy, level_of(1)), effect(noisy, level_of(10))
    assert ten.low < one.low and one.high < ten.high
    assert (ten.equal_low, ten.equal_high) == (one.equal_low, one.equal_high)


def test_the_interval_is_the_exact_one_of_the_signed_ranks() -> None:
    """Of all signs that seven rounds may have, just the share that the level leaves lies outside."""
    sizes = [0.011, 0.023, 0.031, 0.047, 0.053, 0.061, 0.071]
    outside = dict.fromkeys((0.9, 0.95), 0)
    for signs in product((-1, 1), repeat=7):
        for level in outside:
            found = effect([a * b for a, b in zip(signs, sizes, strict=True)], level)
            outside[level] += not found.low <= 1 <= found.high
    # Wilcoxon's tables for n = 7: T <= 3 at 10 % (two-sided), T <= 2 at 5 %.
    assert outside == {0.9: 2 * 5, 0.95: 2 * 3}


def test_the_interval_of_two_days_is_the_exact_one_of_the_rank_sums() -> None:
    """Mann and Whitney's table: for 5 and 5 values U <= 2 at 5 %."""
    a, b = [0.1, 0.2, 0.3, 0.4, 0.5], [10.0, 20.0, 30.0, 40.0, 50.0]
    found = unpaired(a, b, 0.95)
    shifts = sorted(y - x for x in a for y in b)
    assert math.log(found.low) == pytest.approx(shifts[2])
    assert math.log(found.high) == pytest.approx(shifts[-3])
    assert found.needed == 4


def test_a_long_recording_is_no_more_work_than_a_short_one() -> None:
    found = effect(rounds(0.9, number=20_000))
    assert found.rounds == 20_000 and judge(found, MARGIN)[0] == "worse"


@given(st.lists(st.floats(-0.5, 0.5), min_size=1, max_size=30), st.floats(0.9, 0.999))
def test_an_interval_is_around_the_estimate_and_within_the_rounds(
    values: list[float], level: float
) -> None:
    found = effect(values, level)
    for low, high in ((found.low, found.high), (found.equal_low, found.equal_high)):
        assert low <= found.ratio * (1 + 1e-9) and found.ratio <= high * (1 + 1e-9)
        assert math.exp(min(values)) <= low * (1 + 1e-9)
        assert high <= math.exp(max(values)) * (1 + 1e-9)
    assert effect([-each for each in values], level).ratio == pytest.approx(1 / found.ratio)


@given(st.floats(0.5, 0.99), st.lists(st.floats(-0.02, 0.02), min_size=FEWEST, max_size=20))
def test_a_side_is_never_better_and_worse_when_sides_are_exchanged(
    margin: float, values: list[float]
) -> None:
    there = judge(effect(values), margin)[0]
    back = judge(effect([-each for each in values]), margin)[0]
    assert (there, back) not in {("worse", "worse"), ("better", "better")}


def test_a_verdict_never_rests_on_the_middle_alone() -> None:
    wide = Effect(0.9, 0.7, 1.01, equal_low=0.8, equal_high=1.005, drift=0.0, spread=0.1, rounds=12)
    assert judge(wide, MARGIN)[0] == "inconclusive"
    assert judge(replace(wide, high=0.99), MARGIN)[0] == "worse"
