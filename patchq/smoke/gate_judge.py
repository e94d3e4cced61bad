"""Whether evidence suffices for a release: `judge(rules, expected, found, now)`, pure.

What is there and does not hold has failed (exit status 5). What is not there, or was not finished,
has not been asked (6): a gate that was not asked has not failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from patchq.smoke.evidence import Kept, Kind
from patchq.smoke.gate_content import CONTENT
from patchq.smoke.gate_model import Evidence, Expected, Finding, Found, Gate
from patchq.smoke.gate_rules import Rules
from patchq.smoke.identity import Identity

_AHEAD = timedelta(hours=1)
"""How far the clock of another machine may be ahead."""


def judge(rules: Rules, expected: Expected, found: Found, now: datetime) -> Gate:
    """What each rule finds. `now`: with a time zone; evidence is as old as it says."""
    findings = [_build(rules, expected)]
    first: tuple[Kind, Identity] | None = None
    for kind in asked(rules, expected):
        kept = found.kept.get(kind)
        if kept is None:
            why = found.damaged.get(kind, f"there is no {kind}.json of this runner")
            findings.append(
                Finding(kind, "unfinished", f"missing: {why}; {_remedy(kind, rules, expected)}")
            )
            continue
        refused = list(_refused(kind, kept, rules, expected, first, now))
        findings += refused
        if refused:
            continue
        assert kept.runner is not None  # or it was refused
        first = first or (kind, kept.runner)
        findings.append(_bound(kind, kept, kept.runner))
        findings += CONTENT[kind](rules, expected, found)
    if rules.compare and expected.last is None:
        findings.append(_first(rules.compare.first))
    return Gate(
        expected.lock,
        tuple(findings),
        first[1] if first else None,
        tuple(
            Evidence(kept.kind, kept.path, kept.sha256, kept.when)
            for kind in asked(rules, expected)
            if (kept := found.kept.get(kind)) is not None
        ),
        expected.release,
        expected.last.number if expected.last else None,
    )


def asked(rules: Rules, expected: Expected) -> tuple[Kind, ...]:
    """The kinds of evidence that the rules ask for."""
    wanted: list[Kind] = ["smoke"]
    if rules.bench:
        wanted.append("bench")
    if rules.compare and expected.last:
        wanted.append("compare")
    return tuple(wanted)


def _remedy(kind: Kind, rules: Rules, expected: Expected) -> str:
    where = f"--cluster {rules.cluster} --profile {rules.profile}"
    if kind == "compare" and expected.last is not None:
        return (
            f"run `patchq compare BENCH {where}` with the bench of release {expected.last.number}"
        )
    sizes = ""
    if kind == "bench" and rules.bench is not None:
        sizes = "".join(f" --context {each}" for each in rules.bench.contexts)
        sizes += f" --rounds {rules.bench.rounds}"
    return f"run `patchq {kind} {where}{sizes}`"


def _first(may: bool) -> Finding:
    if may:
        return Finding("compare.first", "ok", "there is no release before this one to compare with")
    return Finding(
        "compare.first",
        "failed",
        "there is no release to compare with, and the rules let no first one pass",
    )


def _build(rules: Rules, expected: Expected) -> Finding:
    if expected.artifacts is None:
        return Finding("build", "unfinished", f"missing: {expected.why_not}")
    names = ", ".join(name for name, _ in expected.artifacts)
    return Finding("build", "ok", f"its wheels for {rules.cluster}: {names}")


def _bound(kind: Kind, kept: Kept, runner: Identity) -> Finding:
    nodes = ", ".join(node.name for node in runner.nodes)
    when = f"{kept.when:%Y-%m-%d %H:%M} UTC" if kept.when else "nobody knows when"
    return Finding(
        f"{kind}.runner",
        "ok",
        f"it is of this runner, with {runner.profile} on {runner.cluster} ({nodes}), {when}",
    )


def _refused(
    kind: Kind,
    kept: Kept,
    rules: Rules,
    expected: Expected,
    first: tuple[Kind, Identity] | None,
    now: datetime,
) -> Iterator[Finding]:
    """Why the evidence does not count, whatever it says. `first`: what evidence before it is
    bound to."""
    runner = kept.runner
    if runner is None:
        yield Finding(
            f"{kind}.runner",
            "failed",
            "foreign: a server was asked by its address, and nothing says what ran there",
        )
        return
    for what, says in _mismatches(runner, rules, expected, first):
        yield Finding(f"{kind}.{what}", "failed", says)
    if rules.days is not None:
        age = _age(kept.when, rules.days, now)
        if age:
            yield Finding(f"{kind}.age", "failed", age)


def _age(when: datetime | None, days: float, now: datetime) -> str:
    if when is None:
        return "too old: it does not say when it was taken"
    if when > now + _AHEAD:
        return f"it is of a time to come: {when:%Y-%m-%d %H:%M} UTC"
    if now - when > timedelta(days=days):
        return f"too old: it was taken {(now - when).days} days ago, at most {days:g} count"
    return ""


def _mismatches(
    runner: Identity, rules: Rules, expected: Expected, first: tuple[Kind, Identity] | None
) -> Iterator[tuple[str, str]]:
    """Rule and reason for each thing that is not this runner's."""
    if runner.lock != expected.lock:
        yield "runner", f"stale: it is of the runner {runner.lock[:16]}, not {expected.lock[:16]}"
        return
    if runner.tree != expected.tree:
        yield (
            "runner",
            f"stale: the tree {runner.tree[:12]} ran, the lock has {expected.tree[:12]}",
        )
    if expected.artifacts is not None and runner.artifacts != expected.artifacts:
        yield "artifact", f"stale: {_artifacts(runner, expected.artifacts)}"
    if runner.profile != rules.profile:
        yield "profile", f"foreign: {runner.profile} was served, the rules ask for {rules.profile}"
    elif runner.profile_sha256 != expected.profile_sha256:
        yield "profile", f"stale: {runner.profile} was another when it was served"
    yield from _served(runner, expected, first)
    names = tuple(node.name for node in runner.nodes)
    if runner.cluster != rules.cluster:
        yield "nodes", f"foreign: it comes from {runner.cluster}, the rules ask for {rules.cluster}"
    elif names != expected.nodes:
        yield (
            "nodes",
            (
                f"foreign: the nodes were {', '.join(names)}, {rules.cluster} has"
                f" {', '.join(expected.nodes)}"
            ),
        )
    for node in runner.nodes:
        if node.machine != expected.machine:
            yield "nodes", f"foreign: {node.name} is {node.machine}, not {expected.machine}"
    if first is not None and len(names) == len(first[1].nodes):
        for node, then in zip(runner.nodes, first[1].nodes, strict=True):
            for what in ("gpu", "driver"):
                now, was = getattr(node, what), getattr(then, what)
                if now != was:
                    yield "nodes", f"stale: {node.name} had the {what} {now}, in {first[0]} {was}"


def _artifacts(runner: Identity, expected: tuple[tuple[str, str], ...]) -> str:
    ours, theirs = dict(expected), dict(runner.artifacts)
    for name in sorted(set(ours) | set(theirs)):
        if name not in theirs:
            return f"{name} was not on the nodes"
        if name not in ours:
            return f"{name} was on the nodes, and is none of this runner's wheels"
        if ours[name] != theirs[name]:
            return f"{name} was another ({theirs[name][:12]}, built is {ours[name][:12]})"
    return "the wheels stand in another order"


def _served(
    runner: Identity, expected: Expected, first: tuple[Kind, Identity] | None
) -> Iterator[tuple[str, str]]:
    for what in ("model", "draft", "template"):
        now = getattr(runner, what)
        pinned = expected.pinned.get(what)
        if pinned is not None and pinned.wanted != (now is not None):
            yield (
                what,
                (
                    f"stale: the profile has a {what}, and none was found on the nodes"
                    if pinned.wanted
                    else f"stale: a {what} was served, and the profile has none"
                ),
            )
        elif pinned is not None and pinned.sha256 is not None and now != pinned.sha256:
            yield what, f"stale: the {what} was {now:.12}, the lock has {pinned.sha256[:12]}"
        elif first is not None and now != getattr(first[1], what):
            yield what, f"stale: the {what} was another than in {first[0]}"
