"""Measures servers: every cell of a grid, several rounds, the sides in turns.

In a round each cell is asked of A, B, B, A (the next round: B, A, A, B), so that a drift of the
machine falls on both alike. Two sides get the same texts at the same turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.errors import Incomplete, PatchqError, UsageError
from patchq.progress import SILENT, Progress
from patchq.smoke import metrics
from patchq.smoke.books import counting, prose
from patchq.smoke.client import Client
from patchq.smoke.load import Cell, Request, Taken, ask, together
from patchq.smoke.metrics import Metrics
from patchq.smoke.model import About
from patchq.smoke.quiet import alone, counters, idle

if TYPE_CHECKING:
    from patchq.smoke.identity import Identity

LADDER = (1024, 8192, 32768, 131072, 524288)
ROOM = 0.94
"""Of the context that a server has, how much prompt and answer may take: a prompt's length is
known in characters only, and tokens a character differ along a book."""
_SAMPLE = 2000
_GIVE_UP = 3
"""Requests in succession that break: then the rest is not asked."""
_COUNTED = (metrics.DRAFTS, metrics.DRAFTED, metrics.ACCEPTED)
_FIRST = 120.0
"""Seconds, at most, that the first answer may take: nothing was read before it."""


@dataclass(frozen=True)
class Plan:
    """What is asked. `tokens`: of each answer; `seed`: of all texts; `warmup`: rounds not kept."""

    contexts: tuple[int, ...]
    concurrency: tuple[int, ...] = (1, 4)
    tokens: int = 128
    rounds: int = 3
    warmup: int = 1
    seed: int = 0

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Cold cells; each is asked again, warm, at once."""
        found = [Cell("structured", min(self.contexts), 1)]
        found += [Cell("prose", c, n) for c in self.contexts for n in self.concurrency]
        return tuple(found)


@dataclass(frozen=True)
class Visit:
    """One side's answers to a cell; `turn` counts the side's visits in a round."""

    side: int
    round: int
    turn: int
    cell: Cell
    taken: tuple[Taken, ...]


@dataclass(frozen=True)
class Side:
    """What was measured, as it says itself. `draft_tokens` a draft, `acceptance` of all drafted
    tokens, over the whole run; None where /metrics does not tell."""

    label: str
    about: About
    draft_tokens: float | None = None
    acceptance: float | None = None

    @property
    def tree(self) -> str | None:
        """The runner tree, where it is a runner of ours."""
        return self._told("patchq", "tree")

    @property
    def template(self) -> str | None:
        """The sha256 of the chat template."""
        return self._told("chat_template", "sha256")

    def _told(self, table: str, key: str) -> str | None:
        told = (self.about.version or {}).get(table)
        found = told.get(key) if isinstance(told, Mapping) else None
        return found if isinstance(found, str) else None


@dataclass(frozen=True)
class Bench:
    """`run` names this run; `stopped`: why not all was measured, None where it was; `runner`: what
    the figures are bound to, None where a server was asked by its address."""

    run: str
    plan: Plan
    sides: tuple[Side, ...]
    visits: tuple[Visit, ...]
    stopped: str | None = None
    interrupted: bool = False
    runner: Identity | None = None

    @property
    def broken(self) -> int:
        """How many requests have no figures."""
        return sum(each.broke is not None for visit in self.visits for each in visit.taken)

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, 6 where something is missing, else 0."""
        if self.interrupted:
            return 130
        return Incomplete.exit_code if self.stopped or self.broken else 0


def contexts_of(abouts: Iterable[About], tokens: int, limit: int | None = None) -> tuple[int, ...]:
    """1k, 8k, ... as far as all servers go, and that end itself.

    `limit`: the profile's. Raises PatchqError where nothing fits.
    """
    told = [each for each in (limit, *(about.context for about in abouts)) if each]
    most = int(min(told) * ROOM) - tokens if told else LADDER[2]
    if most < 64:
        raise PatchqError(
            f"{tokens} tokens of answer leave no room for a prompt", "ask for fewer by --tokens"
        )
    below = [each for each in LADDER if each < most * 0.9]
    return (*below, most) if told else (*below, LADDER[2])


def order(sides: int, round: int) -> list[tuple[int, int]]:
    """Side and turn: A B B A in even rounds, B A A B in odd ones."""
    there = list(range(sides)) if round % 2 == 0 else list(reversed(range(sides)))
    return [(side, 0) for side in there] + [(side, 1) for side in reversed(there)]


def measure(
    sides: Sequence[tuple[str, Client]],
    abouts: Sequence[About],
    plan: Plan,
    *,
    cache: Path,
    progress: Progress = SILENT,
    clock: Callable[[], float] = time.monotonic,
) -> Bench:
    """Measures all; what was measured is kept after Ctrl-C and when a server goes away.

    Raises Incomplete where a server does not answer at all, or others use it.
    """
    with ExitStack() as held:
        for url in sorted({client.url for _, client in sides}):
            held.enter_context(alone(url, cache))
        run = Run(plan, [label for label, _ in sides], progress, clock)
        for side, (_, client) in enumerate(sides):
            run.serves(side, client, abouts[side])
        return run.through(_in_turns(run))


def _in_turns(run: Run) -> Iterator[None]:
    """Every cell, of all sides, before the next cell."""
    for number in range(-run.plan.warmup, run.plan.rounds):
        for cell in run.plan.cells:
            for side, turn in order(len(run.labels), number):
                run.visit(number, cell, side, turn)
                yield


class Run:
    """Under way. A side serves (again and again, where it is started anew), and is visited."""

    def __init__(
        self,
        plan: Plan,
        labels: Sequence[str],
        progress: Progress = SILENT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.plan, self.labels, self.progress = plan, tuple(labels), progress
        self.zero = clock()
        self.clock = lambda: round(clock() - self.zero, 6)
        self.name = sha256(f"{time.time_ns()} {plan}".encode()).hexdigest()[:16]
        self.clients: dict[int, Client] = {}
        self.abouts: dict[int, About] = {}
        self.before: dict[int, Metrics | None] = {}
        self.drafted: dict[int, list[float]] = {}
        self.visits: list[Visit] = []
        self.total = (plan.warmup + plan.rounds) * len(plan.cells) * len(labels) * 2
        self.done = self.broken = 0
        self.characters: float | None = None

    def through(self, steps: Iterator[None]) -> Bench:
        """Take all steps, or what is taken until Ctrl-C or until a server goes away."""
        stopped, interrupted = None, False
        try:
            for _ in steps:
                pass
            for side in list(self.before):
                self.leaves(side)
        except PatchqError as ended:
            if not self.done:
                raise
            stopped = ended.message
        except KeyboardInterrupt:
            stopped, interrupted = "interrupted", True
        sides = tuple(
            _drafting(Side(self.labels[side], about), self.drafted.get(side, ()))
            for side, about in sorted(self.abouts.items())
        )
        return Bench(self.name, self.plan, sides, tuple(self.visits), stopped, interrupted)

    def serves(self, side: int, client: Client, about: About) -> None:
        """The side is up, and nobody asks it: one short answer, before anything is counted.

        Raises Incomplete.
        """
        idle(client)
        self.clients[side], self.abouts[side] = client, about
        self.before[side] = counters(client)
        quick = Client(client.url, patience=min(client.patience, _FIRST))
        taken = ask(quick, self._request(side, prose("first", 0, _SAMPLE), 2), self.clock)
        if taken.broke:
            raise Incomplete(f"{about.url}: {taken.broke}", "see the server's log, then again")
        # A token has so many characters: the same for all, that they get the same texts.
        if self.characters is None and taken.prompt_tokens:
            self.characters = _SAMPLE / taken.prompt_tokens

    def leaves(self, side: int) -> None:
        """What it drafted since it serves is added to what it drafted before."""
        before, after = self.before.pop(side), counters(self.clients[side])
        if before is not None and after is not None:
            told = [after.total(name) or 0 for name in _COUNTED]
            told = [
                now - (before.total(name) or 0) for now, name in zip(told, _COUNTED, strict=True)
            ]
            sums = self.drafted.setdefault(side, [0.0] * len(_COUNTED))
            self.drafted[side] = [a + b for a, b in zip(sums, told, strict=True)]

    def visit(self, number: int, cell: Cell, side: int, turn: int) -> None:
        """The cell, cold and then warm; kept from round 0 on. Raises Incomplete."""
        label = self.labels[side]
        what = f"warm-up: {label}" if number < 0 else f"round {number + 1}: {label}"
        self.progress.step(f"{what}: {cell.name}", self.done, self.total)
        self.done += 1
        prompts = []
        for each in range(cell.concurrency):
            place = f"{self.plan.seed} {number} {turn} {cell} {each}"
            mark = sha256(f"{self.name} {side} {place}".encode()).hexdigest()[:12]
            start = int.from_bytes(sha256(place.encode()).digest()[:4])
            size = int(cell.context * (self.characters or 4.0))
            prompts.append(
                counting(mark) if cell.kind == "structured" else prose(mark, start, size)
            )
        requests = [self._request(side, prompt, self.plan.tokens) for prompt in prompts]
        for warm in (False, True):
            taken = tuple(together(self.clients[side], requests, self.clock))
            if number >= 0:
                self.visits.append(Visit(side, number, turn, replace(cell, warm=warm), taken))
            for one in taken:
                self.broken = self.broken + 1 if one.broke else 0
                if self.broken >= _GIVE_UP:
                    raise Incomplete(f"{self.abouts[side].url}: {one.broke}")

    def _request(self, side: int, prompt: str, tokens: int) -> Request:
        about = self.abouts[side]
        # A runner of ours may end an answer that repeats itself; books continued by force do.
        ours = "patchq" in (about.version or {})
        extra = {"repetition_detection": {"max_pattern_size": 0}} if ours else {}
        return Request(about.model, prompt, tokens, extra)


def _drafting(side: Side, sums: Sequence[float]) -> Side:
    if not sums or min(sums[:2]) <= 0:
        return side
    drafts, drafted, accepted = sums
    return replace(
        side, draft_tokens=round(drafted / drafts, 3), acceptance=round(accepted / drafted, 4)
    )


def labelled(urls: Sequence[str], labels: Sequence[str]) -> list[str]:
    """A label for each address: those given, or A, B, ... Raises UsageError."""
    if labels and len(labels) != len(urls):
        raise UsageError(
            f"{len(urls)} addresses and {len(labels)} labels", "give each --url its --label"
        )
    found = list(labels) or [chr(ord("A") + number) for number in range(len(urls))]
    if len(set(found)) != len(found) or any(not each or "#" in each for each in found):
        raise UsageError("labels are to be different, without `#`", "correct --label")
    return found
