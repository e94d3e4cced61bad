"""The gate: what passes, and what is refused, for which reason."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from patchq.build import lock as locks
from patchq.errors import PatchqError
from patchq.release import withdraw
from patchq.smoke import gate_rules, kept
from patchq.smoke.catalog import PROBES
from patchq.smoke.gate import decide, examine
from patchq.smoke.gate_model import Gate
from patchq.smoke.gate_rules import BenchRules, CompareRules, Rules
from patchq.smoke.identity import NodeIs
from patchq.smoke.load import Cell
from tests.smoke import runner_evidence as making
from tests.smoke.runner_evidence import NOW, RULES, WHEEL, Runner

ROOT = Path(__file__).resolve().parents[2]
OTHER = "f" * 64
NAMES = [probe.name for probe in PROBES]


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return making.runner(tmp_path)


@pytest.fixture
def whole(runner: Runner) -> Runner:
    """With all the evidence that a first release needs."""
    runner.keep_all()
    return runner


def asked(runner: Runner, name: str | None = None, **changed: Any) -> Gate:
    return examine(runner.project, name, **({"now": NOW} | changed)).gate


def bad(gate: Gate) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in gate.findings:
        if not each.ok:
            found[each.rule] = "; ".join(filter(None, (found.get(each.rule), each.says)))
    return found


def slower(cell: Cell, number: int) -> float:
    return making.steady(cell, number) * 0.8


def test_evidence_of_this_runner_passes(whole: Runner) -> None:
    gate = asked(whole)
    assert gate.passed and gate.exit_code == 0, gate.findings
    assert gate.identity == whole.identity and gate.lock == whole.lock.digest
    assert [(each.kind, each.when) for each in gate.evidence] == [("smoke", NOW), ("bench", NOW)]
    assert {each.rule for each in gate.findings} == {
        *("build", "smoke.runner", "smoke.probes", "bench.runner", "bench.whole"),
        *("bench.acceptance", "compare.first"),
    }


def test_a_gate_that_was_not_asked_has_not_failed(runner: Runner) -> None:
    gate = decide(runner.project)
    assert (gate.passed, gate.exit_code, gate.identity, gate.evidence) == (False, 6, None, ())
    assert bad(gate).keys() == {"smoke", "bench"}
    assert "run `patchq smoke --cluster pair --profile p`" in bad(gate)["smoke"]


FOREIGN_NODES = tuple(NodeIs(name, n, "x86_64", None, None) for n, name in enumerate("xy"))
ARMS = tuple(NodeIs(f"ns-{x}", n, "aarch64", None, None) for n, x in enumerate("ab"))


@pytest.mark.parametrize(
    ("changed", "rule", "says"),
    [
        ({"lock": OTHER}, "smoke.runner", "stale: it is of the runner ffffffffffffffff"),
        ({"tree": "e" * 40}, "smoke.runner", "stale: the tree eeeeeeeeeeee ran"),
        ({"artifacts": ((WHEEL, OTHER),)}, "smoke.artifact", f"stale: {WHEEL} was another"),
        ({"artifacts": ()}, "smoke.artifact", f"stale: {WHEEL} was not on the nodes"),
        ({"artifacts": (("x.whl", OTHER),)}, "smoke.artifact", "stale: "),
        ({"profile": "q"}, "smoke.profile", "foreign: q was served, the rules ask for p"),
        ({"profile_sha256": OTHER}, "smoke.profile", "stale: p was another when it was served"),
        ({"template": OTHER}, "smoke.template", "stale: the template was ffffffffffff"),
        ({"template": None}, "smoke.template", "stale: the profile has a template, and none"),
        ({"draft": None}, "smoke.draft", "stale: the profile has a draft, and none was found"),
        ({"cluster": "elsewhere"}, "smoke.nodes", "foreign: it comes from elsewhere"),
        ({"nodes": FOREIGN_NODES}, "smoke.nodes", "foreign: the nodes were x, y, pair has ns-a"),
        ({"nodes": FOREIGN_NODES[:1]}, "smoke.nodes", "foreign: the nodes were x"),
        ({"nodes": ARMS}, "smoke.nodes", "foreign: ns-a is aarch64, not x86_64"),
    ],
)
def test_what_is_not_of_this_runner_is_refused(
    whole: Runner, changed: Mapping[str, Any], rule: str, says: str
) -> None:
    whole.keep("smoke", making.smoke(whole), **changed)
    gate = asked(whole)
    assert gate.exit_code == 5 and says in bad(gate)[rule]
    assert "smoke.probes" not in {each.rule for each in gate.findings}, "it was believed"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"model": OTHER}, "stale: the model was another than in smoke"),
        ({"draft": OTHER}, "stale: the draft was another than in smoke"),
        (
            {"nodes": (replace(ARMS[0], machine="x86_64", driver="5"),)},
            "foreign: the nodes were ns-a, pair has ns-a, ns-b",
        ),
        (
            {"nodes": tuple(replace(each, machine="x86_64", driver="5") for each in ARMS)},
            "stale: ns-a had the driver 5, in smoke None; stale: ns-b had the driver 5, in smoke None",
        ),
    ],
)
def test_evidence_has_to_agree(whole: Runner, changed: Mapping[str, Any], says: str) -> None:
    whole.keep("bench", kept.as_json(making.bench(whole)), **changed)
    gate = asked(whole)
    assert gate.exit_code == 5 and says in bad(gate).values()


def test_what_a_server_answered_by_its_address_is_foreign(whole: Runner) -> None:
    path = whole.folder / "smoke.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "runner": None}), "utf-8")
    gate = asked(whole)
    assert gate.exit_code == 5 and bad(gate)["smoke.runner"].startswith("foreign: ")


@pytest.mark.parametrize(("days", "code"), [(13.9, 0), (14.1, 5), (-0.02, 0), (-0.1, 5)], ids=str)
def test_evidence_ages(whole: Runner, days: float, code: int) -> None:
    whole.keep("smoke", making.smoke(whole), when=NOW - timedelta(days=days))
    gate = asked(whole)
    assert gate.exit_code == code
    assert (code == 0) != ("smoke.age" in bad(gate))
    whole.rules(RULES.replace("days = 14\n", ""))
    assert asked(whole).passed


def test_evidence_that_does_not_say_when_is_too_old(whole: Runner) -> None:
    path = whole.folder / "smoke.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "when": None}), "utf-8")
    assert "does not say when" in bad(asked(whole))["smoke.age"]


@pytest.mark.parametrize("name", NAMES)
def test_every_probe_has_to_pass(whole: Runner, name: str) -> None:
    for state, code in (("failed", 5), ("not run", 6), ("left out", 0 if name == "image" else 6)):
        whole.keep("smoke", making.smoke(whole, {name: (state, "so it is")}))  # type: ignore[dict-item]
        gate = asked(whole)
        assert gate.exit_code == code, (state, gate.findings)
        assert code == 0 or name in bad(gate)["smoke.probes"]


def test_a_probe_that_was_not_asked_is_missing(whole: Runner) -> None:
    value = making.smoke(whole)
    value["probes"] = [each for each in value["probes"] if each["name"] != "cache"]
    whole.keep("smoke", value)
    gate = asked(whole)
    assert (gate.exit_code, bad(gate)) == (6, {"smoke.probes": "partial: cache was not asked"})


def test_what_the_server_says_of_itself_counts(whole: Runner) -> None:
    value = making.smoke(whole)
    value["server"]["version"]["patchq"]["tree"] = "e" * 40
    whole.keep("smoke", value)
    assert "the server says" in bad(asked(whole))["smoke.runner"]


@pytest.mark.parametrize(
    ("changed", "code", "rule", "says"),
    [
        ({"interrupted": True, "stopped": "interrupted"}, 6, "bench.whole", "interrupted"),
        ({"stopped": "the server is gone"}, 6, "bench.whole", "the server is gone"),
        ({"visits": ()}, 6, "bench.contexts", "no prompt of 1024, 8192 tokens was measured"),
    ],
)
def test_a_bench_has_to_be_whole(
    whole: Runner, changed: Mapping[str, Any], code: int, rule: str, says: str
) -> None:
    whole.keep("bench", kept.as_json(replace(making.bench(whole), **changed)))
    gate = asked(whole)
    assert gate.exit_code == code and says in bad(gate)[rule]


def test_a_run_that_was_not_finished_is_named(whole: Runner) -> None:
    (whole.folder / "bench.json").rename(whole.folder / "bench.partial.json")
    gate = asked(whole)
    assert gate.exit_code == 6 and "bench.partial.json is of a run" in bad(gate)["bench"]


def test_too_few_rounds_are_partial(whole: Runner) -> None:
    whole.keep("bench", kept.as_json(making.bench(whole, rounds=2)))
    assert bad(asked(whole)) == {"bench.rounds": "partial: 2 of 3 rounds"}


@pytest.mark.parametrize(
    ("share", "code"), [(0.15, 0), (0.98, 0), (0.1, 5), (0.999, 5), (None, 6)], ids=str
)
def test_acceptance_has_bounds(whole: Runner, share: float | None, code: int) -> None:
    whole.keep("bench", kept.as_json(making.bench(whole, acceptance=share)))
    gate = asked(whole)
    assert gate.exit_code == code and (code == 0 or "bench.acceptance" in bad(gate))


def test_two_servers_are_not_this_runner(whole: Runner) -> None:
    bench = making.bench(whole)
    whole.keep("bench", kept.as_json(replace(bench, sides=(*bench.sides, *bench.sides))))
    assert "2 servers were measured" in bad(asked(whole))["bench.runner"]


def test_the_first_release_may_have_to_wait_for_another(whole: Runner) -> None:
    whole.rules(RULES.replace("first = true", "first = false"))
    gate = asked(whole)
    assert gate.exit_code == 5 and gate.last is None
    assert "there is no release to compare with" in bad(gate)["compare.first"]


def test_it_is_held_against_the_last_release(whole: Runner) -> None:
    whole.release(1, {"tree": "d" * 40})
    before = whole.release(2, {"tree": "c" * 40})
    assert (asked(whole).exit_code, asked(whole).last) == (6, 2)
    whole.keep("compare", making.against(whole, making.steady, before))
    gate = asked(whole)
    assert gate.passed and gate.findings[-1].says == "it is the same as release 2"
    whole.keep("compare", making.against(whole, slower, before))
    gate = asked(whole)
    assert gate.exit_code == 5
    assert bad(gate)["compare.verdict"].startswith(
        "it is worse than release 2: decode of all together -20.0%, "
    )


def test_another_than_the_last_release_is_no_comparison(whole: Runner) -> None:
    before = whole.release(1, {"tree": "d" * 40})
    whole.release(2, {"tree": "c" * 40})
    whole.keep("compare", making.against(whole, making.steady, before))
    gate = asked(whole)
    assert gate.exit_code == 5
    assert bad(gate) == {"compare.against": "foreign: A is not known to be release 2"}


def test_a_release_that_was_withdrawn_is_nothing_to_be_as_good_as(whole: Runner) -> None:
    for number, tree in enumerate("cde", 1):
        whole.release(number, {"tree": tree * 40})
    marks = {}
    for number in (2, 3):
        told = withdraw.Withdrawal(number, "it spins", "2026-11-20T00:00:00Z", OTHER, 1)
        marks[number] = withdraw.Mark(withdraw.write(told), b"signature\n")
    path = whole.root / "releases" / "withdrawn.toml"
    path.write_bytes(withdraw.record(marks))
    assert asked(whole).last == 1
    path.write_bytes(b"[[withdrawn]]\n")
    with pytest.raises(PatchqError, match=r"releases/withdrawn\.toml is damaged"):
        asked(whole)


def test_a_release_asked_by_its_address_is_known_by_its_tree(whole: Runner) -> None:
    before = whole.release(1, {"tree": "c" * 40})
    value = making.against(whole, making.steady, before)
    whole.keep("compare", {**value, "baseline": None})
    assert asked(whole).passed
    value["a"]["tree"] = None
    whole.keep("compare", {**value, "baseline": None})
    assert "compare.against" in bad(asked(whole))


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"verdict": "inconclusive"}, "compare.verdict"),
        ({"whole": False}, "compare.whole"),
        ({"missing": ["prose 8k x1 cold wall"]}, "compare.whole"),
        ({"interleaved": False}, "compare.interleaved"),
    ],
)
def test_what_cannot_be_compared_is_unfinished(
    whole: Runner, changed: Mapping[str, Any], rule: str
) -> None:
    before = whole.release(1, {"tree": "c" * 40})
    whole.rules(RULES.replace("first = true", "interleaved = true"))
    whole.keep("compare", {**making.against(whole, making.steady, before), **changed})
    gate = asked(whole)
    assert gate.exit_code == 6 and bad(gate).keys() == {rule}


def test_what_was_not_judged_says_why(whole: Runner) -> None:
    before = whole.release(1, {"tree": "c" * 40})
    doubts = ["all together wall: could be -6.0% and +6.0%: more rounds"]
    value = {**making.against(whole, making.steady, before), "verdict": "inconclusive"}
    whole.keep("compare", {**value, "doubts": doubts})
    assert bad(asked(whole))["compare.verdict"] == (
        f"it is not judged against release 1: {doubts[0]}"
    )


def test_what_failed_weighs_more_than_what_is_missing(whole: Runner) -> None:
    (whole.folder / "bench.json").unlink()
    whole.keep("smoke", making.smoke(whole, {"recall": ("failed", "it says lock")}))
    gate = asked(whole)
    assert gate.exit_code == 5 and bad(gate).keys() == {"smoke.probes", "bench"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"schema": "patchq.smoke/1"}',
        b'{"schema": "patchq.smoke/1", "server": {"url": "u", "model": "m"}, "probes": [{}]}',
        b'{"schema": "patchq.smoke/1", "server": {"url": "u", "model": "m"}, "probes": [7]}',
    ],
)
def test_what_is_damaged_is_named_and_hides_nothing(whole: Runner, data: bytes) -> None:
    (whole.folder / "smoke.json").write_bytes(data)
    gate = asked(whole)
    assert gate.exit_code == 6 and bad(gate).keys() == {"smoke"}
    assert "smoke.json" in bad(gate)["smoke"]
    assert "bench.whole" in {each.rule for each in gate.findings}


def test_a_figure_beyond_all_numbers_is_damage(whole: Runner) -> None:
    path = whole.folder / "bench.json"
    value = json.loads(path.read_bytes())
    value["visits"][0]["taken"][0]["decode"] = 10**400
    path.write_text(json.dumps(value), encoding="utf-8")
    assert "is no bench of this patchq" in bad(asked(whole))["bench"]


def test_no_build_or_one_of_another_runner_is_missing(whole: Runner) -> None:
    other = locks.make({"tree": "c" * 40})
    making.build(whole.root, other)
    gate = asked(whole)
    assert gate.exit_code == 6 and f"is of the runner {other.digest[:16]}" in bad(gate)["build"]
    (whole.root / "build" / "cpu" / "build.json").unlink()
    assert "there is no build for cpu" in bad(asked(whole))["build"]


def test_a_rebuilt_wheel_makes_evidence_stale(whole: Runner) -> None:
    making.build(whole.root, whole.lock, b"another wheel")
    gate = asked(whole)
    assert gate.exit_code == 5 and bad(gate).keys() == {"smoke.artifact", "bench.artifact"}


def test_a_release_is_asked_by_its_number(whole: Runner) -> None:
    whole.release(1, {"tree": "c" * 40})
    whole.release(2, {})
    whole.release(3, {"tree": "d" * 40})
    (whole.root / "build" / "cpu" / "build.json").unlink()
    gate = asked(whole, "2")
    assert (gate.release, gate.last, gate.lock) == (2, 1, whole.lock.digest)
    assert bad(gate).keys() == {"compare"}, "its manifest says which wheels it has"
    assert asked(whole, whole.lock.digest[:8]).release is None
    with pytest.raises(PatchqError, match="there is no release 4") as fault:
        asked(whole, "4")
    assert fault.value.hint == "in releases/ there is: 1, 2, 3"


def test_evidence_from_another_folder(whole: Runner, tmp_path: Path) -> None:
    elsewhere = tmp_path / "kept"
    whole.folder.rename(elsewhere)
    assert asked(whole).exit_code == 6
    assert asked(whole, folder=elsewhere).passed
    with pytest.raises(PatchqError, match="there is no folder"):
        asked(whole, folder=tmp_path / "nowhere")


def test_an_older_runner_is_named_by_its_digest(whole: Runner) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", os.fspath(whole.root)]
    subprocess.run([*git, "add", "upstream"], check=True)
    subprocess.run([*git, "commit", "-qm", "lock"], check=True)
    now = locks.make({**dict(whole.lock.facts), "tree": "c" * 40})
    (whole.root / "upstream" / "runner.lock").write_bytes(now.text)
    gate = asked(whole, whole.lock.digest[:8])
    assert gate.passed and gate.lock == whole.lock.digest
    assert asked(whole).exit_code == 6
    with pytest.raises(PatchqError, match="no lock has a digest that starts with eeee"):
        asked(whole, "eeee")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("number", 9),
        ("lock", OTHER),
        ("tree", "e" * 40),
        ("facts", {"tree": "b" * 40}),
        ("facts", {}),
    ],
)
def test_a_release_that_contradicts_itself_is_refused(whole: Runner, key: str, value: Any) -> None:
    path = whole.root / "releases" / "1.toml"
    whole.release(1, {})
    table = tomlkit.parse(path.read_text(encoding="utf-8"))
    table[key] = value
    path.write_text(tomlkit.dumps(table), encoding="utf-8")
    with pytest.raises(PatchqError, match=r"releases/1\.toml is no release"):
        asked(whole, "1")


def test_a_damaged_lock_is_refused(whole: Runner) -> None:
    path = whole.root / "upstream" / "runner.lock"
    path.write_bytes(path.read_bytes().replace(b"b" * 40, b"c" * 40))
    with pytest.raises(PatchqError, match="damaged"):
        asked(whole)


def test_the_rules_that_are_shipped_are_read() -> None:
    assert gate_rules.load(ROOT, NAMES) == Rules(
        cluster="sparks",
        profile="glm-5.3-flash",
        days=14,
        left_out=("image",),
        bench=BenchRules((1024, 8192, 32768), 8, (0.15, 0.98)),
        compare=CompareRules(("better", "same"), interleaved=False, first=True),
    )


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ('cluster = "pair"', "", "cluster is missing"),
        ('profile = "p"', 'profile = "../p"', "profile = '../p' is no name"),
        ("days = 14", "days = 0", "days is no number"),
        ("days = 14", 'days = "14"', "days is no number"),
        ("days = 14", "hours = 14", "unknown keys: hours"),
        ("[smoke]", "[smok]", "unknown keys: smok"),
        ("[smoke]\nleft_out", "[bench.more]\nleft_out", "it has no table"),
        ('["image"]', '["imag"]', "there is no probe imag"),
        ('["image"]', '"image"', "left_out is no list of texts"),
        ("rounds = 3", "rounds = 0", "rounds is missing or no number"),
        ("rounds = 3", "round = 3", "bench: unknown keys: round"),
        ("[1024, 8192]", "[-1]", "contexts is no list of numbers"),
        ("[0.15, 0.98]", "0.15", "acceptance is no pair"),
        ("[0.15, 0.98]", "[0.98, 0.15]", "0.98 is more than 0.15"),
        ("[0.15, 0.98]", "[0.15, 98]", "acceptance is no pair of shares"),
        ("first = true", "first = 1", "first is neither true nor false"),
        ("first = true", 'verdicts = ["fine"]', "verdicts has a word that is none"),
        ("first = true", "verdicts = []", "verdicts has a word that is none"),
    ],
)
def test_a_fault_in_the_rules_is_named(runner: Runner, was: str, now: str, says: str) -> None:
    assert was in RULES
    runner.rules(RULES.replace(was, now, 1))
    with pytest.raises(PatchqError, match=r"ci/gate\.toml") as fault:
        asked(runner)
    assert says in fault.value.message


@pytest.mark.parametrize("text", ["cluster =", "\udcff"])
def test_rules_that_are_no_toml_are_named(runner: Runner, text: str) -> None:
    (runner.root / "ci" / "gate.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(PatchqError, match="not valid TOML"):
        asked(runner)


def test_without_rules_there_is_no_gate(runner: Runner) -> None:
    (runner.root / "ci" / "gate.toml").unlink()
    with pytest.raises(PatchqError, match=r"there is no ci/gate\.toml"):
        asked(runner)


def test_only_what_is_asked_for_is_wanted(runner: Runner) -> None:
    runner.rules('cluster = "pair"\nprofile = "p"\n[smoke]\n')
    runner.keep("smoke", making.smoke(runner))
    runner.release(1, {"tree": "c" * 40})
    assert asked(runner).passed
