"""Where a bisection stands, from its question and all that was tried: ends, culprit, partners.

Nothing is remembered beside what was tried, so that one that was killed goes on where it was, and
results that several machines bring are worth what they would be from one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from patchq.bisect.chances import Question, chances, decided, least_bad
from patchq.bisect.model import Move, Tried, closed
from patchq.bisect.search import Again, Found, Step, Try, Unsure, next_step
from patchq.errors import PatchqError


@dataclass(frozen=True)
class Todo:
    """Subsets to run, all at the same time if one likes. `says` what they are for."""

    subsets: tuple[frozenset[str], ...]
    says: str


@dataclass(frozen=True)
class Answer:
    """What it came to. partners: moves without which the culprit shows nothing, where asked for;
    partly: why they are not known in full."""

    end: Found | Unsure
    partners: tuple[str, ...] = ()
    partly: str = ""


def due(
    question: Question,
    tried: Sequence[Tried],
    *,
    known: bool = False,
    minimal: bool = False,
    wanted: int = 1,
) -> Todo | Answer:
    """What is to be done next. known: that A is without the fault and B shows it is not checked.

    Raises PatchqError where the ends are not what they are taken for.
    """
    if not question.moves:
        raise PatchqError("nothing moved between A and B", "name two runners that differ")
    if not known and (ends := _ends(question, tried)):
        return Todo(ends[:wanted], "checking the ends")
    step = _main(question, tried, wanted) if minimal else next_step(question, tried, wanted)
    if isinstance(step, Try | Again):
        return Todo(step.subsets, _says(question, tried, step))
    if isinstance(step, Unsure) or not minimal:
        return Answer(step)
    return _partners(question, tried, step, wanted)


def _main(question: Question, tried: Sequence[Tried], wanted: int) -> Step:
    """The step towards the culprit: what is tried for its partners later says nothing of it."""
    for end in range(len(tried)):
        if isinstance(step := next_step(question, tried[:end], wanted), Found):
            return step
    return next_step(question, tried, wanted)


def enough(question: Question, tried: Sequence[Tried], subset: frozenset[str]) -> bool:
    """Whether one that is being run needs no more runs. `tried` has what it showed so far."""
    seen = next((each for each in tried if each.moves == subset), None)
    if seen is None or not seen.runs:
        return False
    if subset in (question.low, question.top):
        return _shows(question, seen) is not None
    return decided(question, tried, subset)


def _shows(question: Question, seen: Tried | None) -> bool | None:
    """Whether it shows the fault, by itself; None: more runs would say."""
    if seen is None or not seen.runs:
        return None
    one = Move("fault", "patch", "")
    alone = replace(question, moves=(one, replace(one, name="none")), low=frozenset(), high=None)
    chance = chances(alone, [Tried(frozenset({"fault"}), seen.bad, seen.good)])["fault"]
    if chance > question.sure or (seen.bad and not question.false_alarms):
        return True
    if chance < 1 - question.sure or seen.runs >= question.repeat:
        return chance > 0.5
    return None


def _ends(question: Question, tried: Sequence[Tried]) -> tuple[frozenset[str], ...]:
    """Those that are still to be run, B first."""
    todo = []
    for subset, name, shall in ((question.top, "B", True), (question.low, "A", False)):
        seen = next((each for each in tried if each.moves == subset), None)
        if seen is not None and seen.skipped is not None:
            raise PatchqError(
                f"{name} itself cannot be tried: {seen.skipped}",
                "mend that, or give --known where you know how the ends behave",
            )
        shows = _shows(question, seen)
        if shows is None:
            todo.append(subset)
        elif shows != shall:
            assert seen is not None
            runs = f"{seen.runs} run" + ("s" if seen.runs > 1 else "")
            raise PatchqError(
                f"B does not show the fault in {runs}"
                if shall
                else f"A shows the fault, too, in {seen.bad} of {runs}",
                "see that the command tells them apart; --repeat N where it shows in some runs only"
                if shall
                else "name an older A, or --false-alarms P where some runs show it by chance",
            )
    return tuple(todo)


def _says(question: Question, tried: Sequence[Tried], step: Try | Again) -> str:
    each = chances(question, tried)
    left = sum(chance >= 0.005 for chance in each.values())
    again = ", more runs are needed" if isinstance(step, Again) else ""
    return f"{left} of {len(question.suspects)} moves are suspected{again}"


def _partners(
    question: Question, tried: Sequence[Tried], found: Found, wanted: int
) -> Todo | Answer:
    """What the culprit needs to show the fault, beyond what it needs to stand.

    With it alone: does that show the fault? If not, one of what is not there is needed: a bisection
    of its own between this subset and the smallest that shows it; and so on.
    """
    bad = least_bad(question, [each for each in tried if found.name in each.moves])
    core = {found.name}
    while True:
        low = closed(question.moves, frozenset(core))
        partners = tuple(sorted(core - {found.name}))
        if low >= bad:
            return Answer(found, partners)
        seen = next((each for each in tried if each.moves == low), None)
        if seen is not None and seen.skipped is not None:
            return Answer(found, partners, f"it cannot be tried alone: {seen.skipped}")
        shows = _shows(question, seen)
        if shows is None:
            return Todo((low,), "does it need others?")
        if shows:
            return Answer(found, partners)
        inner = replace(question, low=low, high=bad)
        step = next_step(inner, tried, wanted)
        if isinstance(step, Unsure):
            return Answer(found, partners, step.why)
        if not isinstance(step, Found):
            return Todo(step.subsets, "looking for what it needs")
        core.add(step.name)
