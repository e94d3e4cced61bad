"""What has to be set aside so that an update goes in spite of what contradicts it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from patchq.carry.deps.universe import Gathered
from patchq.errors import DecisionNeeded
from patchq.judge.needs import Solution, Waiver, solve
from patchq.upstream.components import Relaxed


def set_aside(found: Gathered, solution: Solution, name: str, why: str) -> tuple[Relaxed, ...]:
    """The requirements of others that contradict the component `name` as it is to be.

    Raises DecisionNeeded where it would contradict all the same.
    """
    relaxed = tuple(dict.fromkeys(_needs(found, solution, name, why)))
    waivers = tuple(Waiver(each.of, each.requirement, "--anyway") for each in relaxed)
    universe = replace(found.universe, waivers=(*found.universe.waivers, *waivers))
    known = {each.package for each in solution.conflicts}
    left = [each for each in solve(universe).conflicts if each.package in known]
    if left:
        told = ", ".join(each.why or each.package for each in left)
        raise DecisionNeeded(
            f"{name} cannot be had even so: {told}",
            "take another version (`patchq deps outdated` shows them)",
        )
    return relaxed


def _needs(found: Gathered, solution: Solution, name: str, why: str) -> Iterator[Relaxed]:
    owners = {
        release.label: found.universe.names.get(package, package)
        for package, releases in found.universe.releases.items()
        for release in releases
    }
    for conflict in solution.conflicts:
        needs = [each for each in conflict.needs if not each.chosen]
        others = [each for each in needs if owners.get(each.of) != name]
        # Where only its own requirement contradicts, that is the one.
        for need in others or needs:
            if need.of in owners:
                yield Relaxed(owners[need.of], need.text, why)
