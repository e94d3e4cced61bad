"""Which value of a setting is better? A runner is started with each in turns, and measured.

Blocks of two values follow one another as A B B A, then B A A B, and so on; where a block follows
one of the same value, the runner runs on. In a block all cells are asked in several rounds, with
the same texts as in the blocks that it is held against. With more values, a round of blocks goes
through all of them and back (A B C C B A). What ran before is started again at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

from patchq.cluster import profile as profiles
from patchq.cluster import ranks
from patchq.cluster.config import Cluster
from patchq.cluster.nodes import sound
from patchq.cluster.profile import Profile
from patchq.cluster.start import start
from patchq.config import Project
from patchq.errors import Incomplete, PatchqError, UsageError
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.smoke.bench import Bench, Run, order
from patchq.smoke.client import PATIENCE, Client
from patchq.smoke.compare import Comparison, compare
from patchq.smoke.model import About
from patchq.smoke.nodes import at_work
from patchq.smoke.on_cluster import lost
from patchq.smoke.quiet import alone
from patchq.smoke.sides import Asked, margins_of, plan_of

Answer = Literal["better", "worse", "mixed", "same", "inconclusive"]
SETTINGS: Mapping[str, str] = {"draft_tokens": "num_speculative_tokens"}
"""What may be swept: keys of a profile's [speculation]."""
_ASKED = re.compile(r"([a-z_]+)=(\d{1,4}(?:,\d{1,4})+)")


@dataclass(frozen=True)
class Swept:
    """`setting`: the one that took each of `values`, the sides of `bench` in their order; the
    `comparisons` are of each value after the first with the first. `restored`: what was wrong when
    what ran before was started again, None where nothing was."""

    setting: str
    values: tuple[int, ...]
    profile: str
    cluster: str
    bench: Bench
    comparisons: tuple[Comparison, ...]
    restored: str | None = None

    @property
    def exit_code(self) -> int:
        """As the bench's; 6 where not every value could be judged, or what ran does not run."""
        judged = len(self.comparisons) == len(self.values) - 1
        unsaid = "inconclusive" in map(answer, self.comparisons)
        short = not judged or unsaid or self.restored is not None
        return self.bench.exit_code or (Incomplete.exit_code if short else 0)


def answer(found: Comparison) -> Answer:
    """Of the second value: `mixed` where it is better for some and worse for other questions."""
    verdicts = {each.verdict for each in found.findings} | {each.verdict for each in found.totals}
    if {"better", "worse"} <= verdicts:
        return "mixed"
    if "better" in verdicts:
        return "better"
    if "worse" in verdicts:
        return "worse"
    return "same" if found.verdict == "same" else "inconclusive"


def asked_for(text: str) -> tuple[str, tuple[int, ...]]:
    """`draft_tokens=5,7` as a setting and its values. Raises UsageError."""
    found = _ASKED.fullmatch(text)
    values = tuple(map(int, found[2].split(","))) if found else ()
    if found is None or found[1] not in SETTINGS or len(set(values)) != len(values):
        raise UsageError(
            f"--sweep {show(text)} is no setting with different values",
            f"write {', '.join(f'{key}=5,7' for key in SETTINGS)}",
        )
    return found[1], values


def variant(profile: Profile, setting: str, value: int) -> Profile:
    """The profile with that value. Raises PatchqError where it has no drafter."""
    if not profile.speculation:
        raise PatchqError(
            f"{profile.name} drafts nothing: it has no [speculation]", "sweep another profile"
        )
    return replace(profile, speculation={**profile.speculation, SETTINGS[setting]: value})


def sweep(
    project: Project,
    cluster: Cluster,
    profile: Profile,
    setting: str,
    values: tuple[int, ...],
    asked: Asked,
    starts: int,
    *,
    cache: Path,
    progress: Progress = SILENT,
) -> Swept:
    """Measures all values, in `starts` rounds of blocks that `asked.rounds` are spread over.

    What was measured is kept after Ctrl-C, or where a later start fails. Raises PatchqError where
    another profile runs, Incomplete where the first start fails; what ran before runs then, too.
    """
    margins = margins_of(profile)
    labels = [f"{setting}={value}" for value in values]
    variants = [variant(profile, setting, value) for value in values]
    served = _Served(project, cluster, dict(zip(labels, variants, strict=True)), progress)
    before = profile if served.runs(profile) else None
    try:
        served.serve(labels[0])
        bench = _measured(served, labels, asked, starts, cache, progress)
    except BaseException as problem:
        why = served.restore(before)
        if why is not None and isinstance(problem, PatchqError):
            says = f"{problem.message}; what ran before does not run again: {why}"
            raise Incomplete(says, problem.hint) from None
        raise
    restored = served.restore(before)
    found = []
    for side in range(1, len(bench.sides)):
        try:
            found.append(compare((bench, 0), (bench, side), margins, len(values) - 1))
        except PatchqError:
            break  # it has no figures yet
    return Swept(setting, values, profile.name, cluster.name, bench, tuple(found), restored)


def _measured(
    served: _Served,
    labels: list[str],
    asked: Asked,
    starts: int,
    cache: Path,
    progress: Progress,
) -> Bench:
    passes = -(-asked.rounds // starts)
    rounds = replace(asked, rounds=passes * starts)
    with served.asked() as (_, about, profile):
        plan = plan_of([about], rounds, profile)
    run = Run(plan, labels, progress)
    run.total = visits(len(labels), starts, passes, plan.warmup) * len(plan.cells)

    def steps() -> Iterator[None]:
        fresh = True
        for number in range(starts):
            for side, turn in order(len(labels), number):
                fresh = served.serve(labels[side]) or fresh
                with served.asked(asked.patience) as (client, about, _), alone(client.url, cache):
                    run.serves(side, client, about)
                    first = number * passes
                    unkept = range(-plan.warmup, 0) if fresh else ()
                    for each in (*unkept, *range(first, first + passes)):
                        for cell in plan.cells:
                            run.visit(each, cell, side, turn)
                            yield
                    run.leaves(side)
                fresh = False

    return run.through(steps())


def visits(sides: int, starts: int, passes: int, warmup: int) -> int:
    """How often each cell is visited: in every block, and to warm up what was started anew."""
    blocks = [side for number in range(starts) for side, _ in order(sides, number)]
    fresh = 1 + sum(side != before for before, side in pairwise(blocks))
    return len(blocks) * passes + fresh * warmup


class _Served:
    """What serves on the cluster: one of `variants`, by its label."""

    def __init__(
        self,
        project: Project,
        cluster: Cluster,
        variants: Mapping[str, Profile],
        progress: Progress,
    ) -> None:
        self.project, self.cluster, self.progress = project, cluster, progress
        self.variants = variants
        self.label: str | None = None

    def runs(self, profile: Profile) -> bool:
        """Whether the profile runs there. Raises PatchqError where another one does."""
        states = [each for each in sound(ranks.status(self.cluster).nodes) if each.processes]
        for state in states:
            name = str(state.rank["about"].get("profile")) if state.rank else "what is not ours"
            if name != profile.name:
                raise PatchqError(
                    f"{self.cluster.name} serves {show(name)}, not {profile.name}",
                    f"`patchq cluster stop {self.cluster.name}`, or sweep that profile",
                )
        return bool(states)

    def serve(self, label: str) -> bool:
        """Whether it had to be started. Raises Incomplete."""
        if self.label == label:
            return False
        self._stop()
        chosen = self.variants[label]
        about = profiles.identity(self.project.root, chosen)
        # Another digest than the profile's own: nothing that is asked meanwhile is its evidence.
        text = f"{about['profile_sha256']} {label}".encode()
        self._start(chosen, {**profiles.described(chosen, text), "sweep": label})
        self.label = label
        return True

    @contextmanager
    def asked(self, patience: float = PATIENCE) -> Iterator[tuple[Client, About, Profile]]:
        """The nodes are held meanwhile. Raises Incomplete where a rank ended."""
        assert self.label is not None
        chosen = self.variants[self.label]
        what = f"bench {self.cluster.name}"
        with at_work(self.project.root, self.cluster, chosen.name, what) as nodes:
            client = Client(nodes.url, patience=patience)
            yield client, client.about(), chosen
            if why := lost(nodes):
                raise Incomplete(why, f"see `patchq cluster logs {self.cluster.name}`")

    def restore(self, profile: Profile | None) -> str | None:
        """Stop what serves; start the profile that ran before. Why that failed, if it did."""
        try:
            self._stop()
            if profile is not None:
                self._start(profile, profiles.identity(self.project.root, profile))
        except PatchqError as problem:
            return problem.message
        return None

    def _start(self, profile: Profile, about: Mapping[str, str]) -> None:
        report = start(self.cluster, profile, about, progress=self.progress)
        if report.failure is not None:
            raise Incomplete(report.failure.says, report.failure.remedy)

    def _stop(self) -> None:
        self.label = None
        report = ranks.stop(self.cluster, progress=self.progress)
        sound(report.nodes)
        if report.exit_code:
            raise Incomplete(
                f"not all that runs on {self.cluster.name} could be stopped",
                f"`patchq cluster stop {self.cluster.name}` says what is left",
            )
