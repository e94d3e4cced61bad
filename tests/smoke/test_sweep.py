"""What a sweep answers, of figures whose truth is known."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from patchq.render import sweep as shown
from patchq.smoke import kept
from patchq.smoke.bench import Bench
from patchq.smoke.compare import compare
from patchq.smoke.sweep import Swept, answer, visits
from tests.smoke.test_compare import made


def swept(bench: Bench, restored: str | None = None) -> Swept:
    sides = tuple(
        replace(side, label=f"draft_tokens={value}")
        for side, value in zip(bench.sides, (5, 7), strict=True)
    )
    bench = replace(bench, sides=sides)
    found = compare((bench, 0), (bench, 1))
    return Swept("draft_tokens", (5, 7), "glm", "sparks", bench, (found,), restored)


def told(found: Swept) -> str:
    page = io.StringIO()
    Console(file=page, width=200).print(shown.drawn(found))
    return page.getvalue()


def crossed() -> Bench:
    """The second side is slower for prose, and faster for structured text."""
    slow, fast = made(slower=1.1), made(slower=0.9)
    visits = [
        (slow if visit.cell.kind == "prose" else fast).visits[place]
        for place, visit in enumerate(slow.visits)
    ]
    return replace(slow, visits=tuple(visits))


@pytest.mark.parametrize(
    ("slower", "says", "code"), [(1.0, "same", 0), (1.1, "worse", 0), (0.9, "better", 0)]
)
def test_worse_is_an_answer_as_good_as_better(slower: float, says: str, code: int) -> None:
    found = swept(made(slower=slower))
    assert (answer(found.comparisons[0]), found.exit_code) == (says, code)
    assert shown.as_json(found)["answers"][0]["answer"] == says


def test_where_and_by_how_much() -> None:
    text = told(swept(made(slower=0.9)))
    assert "draft_tokens=7 is better (against draft_tokens=5)" in text
    assert "better: decode of all +11.1%, ttft of all +11.1%, wall of all +11.1%" in text
    assert "structured 64 x1 cold" in text and "worse:" not in text


def test_better_for_some_and_worse_for_others() -> None:
    found = swept(crossed())
    assert answer(found.comparisons[0]) == "mixed" and found.exit_code == 0
    better, worse = told(found).splitlines()[-2:]
    assert better.startswith("  better: structured 64 x1 cold")
    assert worse.startswith("  worse: prose 64 x1 cold")


def test_few_rounds_are_no_answer() -> None:
    found = swept(made(slower=0.9, rounds=3))
    assert answer(found.comparisons[0]) == "inconclusive" and found.exit_code == 6
    assert "is not judged" in told(found)


def test_what_does_not_run_again_is_told() -> None:
    found = swept(made(slower=0.9), restored="node a cannot be reached")
    assert found.exit_code == 6
    assert "what ran before does not run again: node a cannot be reached" in told(found)


def test_its_json_holds_all() -> None:
    found = shown.as_json(swept(made()))
    assert (found["schema"], found["values"], found["restored"]) == ("patchq.sweep/1", [5, 7], None)
    assert found["answers"][0]["compare"]["schema"] == "patchq.compare/1"
    assert found["bench"]["schema"] == kept.SCHEMA


def test_how_much_there_is_to_do() -> None:
    """Three times A B B A are nine starts, each with its warm-up; three values: A B C C B A."""
    assert visits(sides=2, starts=3, passes=5, warmup=1) == 12 * 5 + 9
    assert visits(sides=3, starts=1, passes=4, warmup=2) == 6 * 4 + 5 * 2
