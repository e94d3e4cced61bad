"""What evidence that is this runner's says of it, rule by rule. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from patchq.smoke.bench import Bench
from patchq.smoke.evidence import Kind
from patchq.smoke.gate_forms import Compared
from patchq.smoke.gate_model import Before, Expected, Finding, Found, State
from patchq.smoke.gate_rules import BenchRules, Rules

_NEAR = 0.75
"""Of a length that is asked for, what counts as measured: prompts are cut by characters."""


def _smoke(rules: Rules, expected: Expected, found: Found) -> Iterator[Finding]:
    assert found.smoke is not None
    if found.smoke.tree not in (None, expected.tree):
        yield Finding(
            "smoke.runner",
            "failed",
            f"stale: the server says that it is of the tree {found.smoke.tree:.12}",
        )
    there = {probe.name: probe for probe in found.smoke.probes}
    passed, spared = 0, []
    for name in (*expected.probes, *(name for name in there if name not in expected.probes)):
        probe = there.get(name)
        if probe is None:
            yield Finding("smoke.probes", "unfinished", f"partial: {name} was not asked")
        elif probe.state == "failed":
            yield Finding("smoke.probes", "failed", f"{name} failed: {probe.says}")
        elif probe.state == "not run":
            yield Finding("smoke.probes", "unfinished", f"partial: {name}: {probe.says}")
        elif probe.state == "passed":
            passed += 1
        elif name in rules.left_out:
            spared.append(name)
        else:
            yield Finding("smoke.probes", "unfinished", f"{name} was left out: {probe.says}")
    told = f", {', '.join(spared)} left out as the rules allow" if spared else ""
    if passed + len(spared) == len(there) >= len(expected.probes):
        yield Finding("smoke.probes", "ok", f"{passed} probes passed{told}")


def _bench(rules: Rules, expected: Expected, found: Found) -> Iterator[Finding]:
    bench, wanted = found.bench, rules.bench
    assert bench is not None and wanted is not None
    if len(bench.sides) != 1:
        yield Finding(
            "bench.runner",
            "failed",
            f"foreign: {len(bench.sides)} servers were measured, one is asked for",
        )
        return
    tree = bench.sides[0].tree
    if tree not in (None, expected.tree):
        yield Finding(
            "bench.runner", "failed", f"stale: the server says that it is of the tree {tree:.12}"
        )
    if bench.exit_code:
        why = bench.stopped or f"{bench.broken} requests broke"
        yield Finding("bench.whole", "unfinished", f"partial: not all was measured: {why}")
    yield from _sizes(bench, wanted)
    if wanted.acceptance is not None:
        yield _acceptance(bench, wanted.acceptance, expected)


def _sizes(bench: Bench, wanted: BenchRules) -> Iterator[Finding]:
    measured = {visit.cell.context for visit in bench.visits if visit.cell.kind == "prose"}
    missing = [
        context
        for context in wanted.contexts
        if not any(context * _NEAR <= each <= context / _NEAR for each in measured)
    ]
    rounds = len({visit.round for visit in bench.visits})
    if missing:
        yield Finding(
            "bench.contexts",
            "unfinished",
            f"partial: no prompt of {', '.join(map(str, missing))} tokens was measured",
        )
    if rounds < wanted.rounds:
        yield Finding("bench.rounds", "unfinished", f"partial: {rounds} of {wanted.rounds} rounds")
    if not missing and rounds >= wanted.rounds:
        told = "1 round" if rounds == 1 else f"{rounds} rounds"
        lengths = ", ".join(map(str, sorted(measured)))
        yield Finding("bench.whole", "ok", f"{told}, prompts of {lengths} tokens")


def _acceptance(bench: Bench, bounds: tuple[float, float], expected: Expected) -> Finding:
    share = bench.sides[0].acceptance
    rule = "bench.acceptance"
    if share is None:
        if not expected.drafts:
            return Finding(rule, "ok", "the profile drafts nothing")
        return Finding(rule, "unfinished", "partial: no drafts were counted")
    least, most = bounds
    says = f"{share:.1%} of the drafted tokens were accepted"
    if least <= share <= most:
        return Finding(rule, "ok", says)
    return Finding(rule, "failed", f"{says}, not {least:.0%} to {most:.0%}")


def _compare(rules: Rules, expected: Expected, found: Found) -> Iterator[Finding]:
    compare, wanted, last = found.compare, rules.compare, expected.last
    assert compare is not None and wanted is not None and last is not None
    if compare.b_tree not in (None, expected.tree):
        yield Finding("compare.runner", "failed", f"stale: B is of the tree {compare.b_tree:.12}")
    if not _is_last(compare, last):
        yield Finding(
            "compare.against", "failed", f"foreign: A is not known to be release {last.number}"
        )
        return
    if wanted.interleaved and not compare.interleaved:
        yield Finding(
            "compare.interleaved", "unfinished", "partial: the two were not measured in turns"
        )
    if not compare.whole or compare.missing:
        yield Finding(
            "compare.whole",
            "unfinished",
            "partial: not all was measured on both sides"
            + (f" ({', '.join(compare.missing[:3])})" if compare.missing else ""),
        )
    says = f"it is {_SAYS[compare.verdict]} release {last.number}"
    if compare.verdict in wanted.verdicts:
        yield Finding("compare.verdict", "ok", says)
        return
    bad = [
        f"{each.metric} of {where} {each.ratio - 1:+.1%}"
        for where, each in compare.judged
        if each.verdict == compare.verdict
    ]
    if compare.verdict == "inconclusive":
        bad = list(compare.doubts) or bad
    of = ", ".join(bad[:3]) + (f" and {len(bad) - 3} more" if len(bad) > 3 else "")
    state: State = "unfinished" if compare.verdict == "inconclusive" else "failed"
    yield Finding("compare.verdict", state, says + (f": {of}" if of else ""))


def _is_last(compare: Compared, last: Before) -> bool:
    """By what A's figures are bound to; a server that was asked by its address tells its tree."""
    if compare.baseline is not None:
        return compare.baseline.lock == last.lock
    return compare.a_tree == last.tree


_SAYS = {
    "better": "better than",
    "same": "the same as",
    "worse": "worse than",
    "inconclusive": "not judged against",
}
CONTENT: Mapping[Kind, Callable[[Rules, Expected, Found], Iterator[Finding]]] = {
    "smoke": _smoke,
    "bench": _bench,
    "compare": _compare,
}
