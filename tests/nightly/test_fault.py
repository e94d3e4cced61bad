"""Why a night is not green: the first cause of what its stages left, whatever they left."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patchq.carry.report import SyncReport
from patchq.nightly import reports
from patchq.nightly.fault import find
from patchq.nightly.model import Culprit, Fault, Stage
from patchq.render import jsons
from tests.nightly.tales import STAGES, night, stage
from tests.render.reports import ASKED, DONE, sync

HEAD = "0123456789012345678901234567890123456789"


def left(folder: Path, name: str, value: Any) -> None:
    data = value if isinstance(value, str) else json.dumps(value)
    (folder / name).write_text(data, encoding="utf-8")


def of(folder: Path, bad: Stage, **more: Any) -> Fault:
    """The fault of a night in which this stage ended badly."""
    before = STAGES[: [each.name for each in STAGES].index(bad.name)]
    found = find(night(state="red", fault=None, stages=(*before, bad)), folder, **more)
    assert found is not None and found.stage == bad.name
    return found


def test_a_good_night_has_none(tmp_path: Path) -> None:
    assert find(night(), tmp_path) is None
    out = (*STAGES[:2], stage("deploy", "left out"))
    assert find(night(state="quiet", stages=out), tmp_path) is None


def test_the_stage_that_decided_is_the_one(tmp_path: Path) -> None:
    """Upstream was not asked in full, the night went on, and then it failed for another reason."""
    stages = (
        stage("sync", "unreached"),
        *STAGES[1:3],
        stage("smoke", "failed"),
        stage("gate", "failed"),
    )
    for state, name in (("red", "smoke"), ("incomplete", "sync")):
        found = find(night(state=state, fault=None, stages=stages), tmp_path)
        assert found and found.stage == name
    late = (stage("sync", "late"), *STAGES[1:3], stage("smoke", "failed"))
    found = find(night(state="red", fault=None, stages=late), tmp_path)
    assert found and found.stage == "smoke"


# Sync


def asked(report: SyncReport) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(jsons.dump(jsons.sync(report)))
    return value


def test_a_conflict_with_the_commit_that_made_it(tmp_path: Path) -> None:
    value = asked(ASKED)
    value["patches"][1]["conflicts"][0]["causes"] = [
        {
            "commit": HEAD,
            "pr": "#57477",
            "title": "Change the router (#57477)",
            "author": "Gil",
            "date": "2026-11-30",
        }
    ]
    left(tmp_path, "sync.json", value)
    found = of(tmp_path, stage("sync", "asks", exit=4, files=("sync.json",)), github="org/demo")
    since = "0123456789 Change the router (#57477), by Gil, 2026-11-30"
    assert found.cause == (
        "2 of 3 patches ask for a decision: torn: conflicts in a.txt (content),"
        f" \\udcff.txt (deleted upstream), since {since}"
    ).replace("\\udcff", "\\xff")
    assert found.lines == (
        "torn: conflicts in a.txt (content), \\xff.txt (deleted upstream)",
        f"  since {since}",
        "unsure: is it upstream's now?",
    )
    assert found.reproduce == ("git checkout 555555555555", "patchq sync --onto 2.0")
    assert [(each.kind, each.name) for each in found.culprits] == [
        ("patch", "torn"),
        ("commit", "012345678901"),
        ("patch", "unsure"),
    ]
    assert found.culprits[1].url == "https://github.com/org/demo/pull/57477"
    assert found.culprits[1].says.startswith("Change the router (#57477), by Gil")


def test_a_commit_without_a_pull_request_and_without_an_address(tmp_path: Path) -> None:
    value = asked(ASKED)
    cause = {"commit": HEAD, "pr": None, "title": "Change it", "author": "", "date": ""}
    value["patches"][1]["conflicts"][0]["causes"] = [cause]
    left(tmp_path, "sync.json", value)
    bad = stage("sync", "asks", files=("sync.json",))
    urls = [of(tmp_path, bad, github=where).culprits[1].url for where in ("org/demo", None)]
    assert urls == [f"https://github.com/org/demo/commit/{HEAD}", None]


def test_a_proof_that_fails_names_check_and_patch(tmp_path: Path) -> None:
    value = asked(sync(*DONE.patches, recorded=False))
    checks = [
        ("git apply", "0003-shrunk.patch: does not apply"),
        ("check of kept", "it ends with 1"),
    ]
    for (name, detail), patch in zip(checks, ("shrunk", "kept"), strict=True):
        value["proof"]["checks"] = [
            {"name": "python compiles", "ok": True, "detail": "3 files"},
            {"name": name, "ok": False, "detail": detail},
        ]
        left(tmp_path, "sync.json", value)
        found = of(tmp_path, stage("sync", "failed", exit=5, files=("sync.json",)))
        assert found.cause == f"the proof failed: {name}: {detail}"
        assert [each.name for each in found.culprits] == [patch]


def test_upstream_that_was_not_reached(tmp_path: Path) -> None:
    value = asked(replace(DONE, upstream=replace(DONE.upstream, complete=False)))
    left(tmp_path, "sync.json", value)
    found = of(tmp_path, stage("sync", "unreached", exit=6, files=("sync.json",)))
    assert found.cause == "upstream was not reached (index, demo): not everybody answered"


def test_a_report_comes_back_as_it_was() -> None:
    for report in (DONE, ASKED):
        back = reports.synced(asked(report))
        bare = tuple(replace(each, clashes=()) for each in report.patches)
        assert back == replace(report, patches=bare, entry=None, recovered=None)


# Smoke

SMOKE: dict[str, Any] = {
    "schema": "patchq.smoke/1",
    "ok": False,
    "server": {"url": "http://localhost:8000", "model": "tiny"},
    "seed": 17,
    "runner": {"cluster": "sparks", "profile": "glm"},
    "probes": [
        {"name": "up", "state": "passed", "says": "it answers"},
        {
            "name": "recall",
            "state": "failed",
            "says": "it spins: 'la' 60 times",
            "rule": "the answer is the code",
            "stands_for": "a cold prefix",
            "evidence": {"lines": {"node2": ["first", "token: hf_abcdefghijklmnop of 10.1.2.3"]}},
            "exchanges": [
                {"asked": "fine", "content": "lemon"},
                {
                    "asked": "Say it.",
                    "content": "la la\nla",
                    "spin": {"kind": "run", "begins": 0, "copies": 60, "what": "la"},
                },
            ],
        },
        {"name": "logs", "state": "failed", "says": "a fallback"},
    ],
}


def test_the_probe_that_failed_first_with_what_it_saw(tmp_path: Path) -> None:
    left(tmp_path, "smoke.json", SMOKE)
    left(tmp_path, "build.json", {"schema": "patchq.build-run/1", "target": "spark"})
    left(tmp_path, "deploy.json", {"schema": "patchq.cluster-deploy/1", "cluster": "sparks"})
    start = {"schema": "patchq.cluster-start/1", "cluster": "sparks", "profile": "glm"}
    left(tmp_path, "start.json", start)
    found = of(tmp_path, stage("smoke", "failed", exit=5, files=("smoke.json", "smoke.log")))
    assert found.cause == "recall fails (and 1 more): it spins: 'la' 60 times"
    assert found.lines == (
        "rule: the answer is the code",
        "stands for: a cold prefix",
        "node2| first",
        "node2| token: *** of address-1",
        "it spins (run): 60 copies of 'la', from character 0 on",
        "asked: Say it.",
        "content: la la\\nla",
    )
    assert found.reproduce == (
        "git checkout 555555555555",
        "patchq sync --onto 0.33.0 --commit",
        "patchq lock",
        "patchq build --target spark",
        "patchq cluster deploy sparks",
        "patchq cluster start sparks --profile glm",
        "patchq smoke --cluster sparks --profile glm --only recall --seed 17",
    )
    assert found.culprits == ()


def test_whose_doing_it_is_by_bisection(tmp_path: Path) -> None:
    left(tmp_path, "smoke.json", SMOKE)
    culprit = {"kind": "patch", "name": "moe-router", "says": "[moe] Route", "url": None}
    value = {"schema": "patchq.bisect/1", "culprit": culprit, "confidence": 0.97}
    left(tmp_path, "bisect.json", value | {"reproduce": "patchq bisect --between 1 2"})
    found = of(tmp_path, stage("smoke", "failed", files=("smoke.json",)))
    assert found.culprits == (Culprit("patch", "moe-router", "[moe] Route", None, 0.97),)
    assert found.reproduce[-1] == "patchq bisect --between 1 2"
    for odd in ({"kind": "weather", "name": "x"}, {"kind": "patch"}, None, [1], "x"):
        left(tmp_path, "bisect.json", value | {"culprit": odd})
        assert of(tmp_path, stage("smoke", "failed", files=("smoke.json",))).culprits == ()


def test_a_probe_that_was_not_run(tmp_path: Path) -> None:
    value = {
        **SMOKE,
        "runner": None,
        "probes": [{"name": "up", "state": "not run", "says": "it is not reached"}],
    }
    left(tmp_path, "smoke.json", value)
    found = of(tmp_path, stage("smoke", "unreached", files=("smoke.json",)))
    assert found.cause == "up was not run: it is not reached"
    assert found.reproduce[-1] == "patchq smoke --url http://localhost:8000 --only up --seed 17"


# The others


def test_a_rank_that_does_not_start(tmp_path: Path) -> None:
    failure = {
        "says": "there is not enough memory",
        "remedy": "stop what uses it",
        "node": "node2",
        "lines": [f"line {n}" for n in range(60)],
    }
    start = {"schema": "patchq.cluster-start/1", "cluster": "sparks", "profile": "glm"}
    left(tmp_path, "deploy.json", {"schema": "patchq.cluster-deploy/1", "cluster": "sparks"})
    left(tmp_path, "start.json", start | {"failure": failure})
    found = of(tmp_path, stage("deploy", "failed", files=("start.json", "deploy.json")))
    assert found.cause == "it does not start (on node2): there is not enough memory"
    assert len(found.lines) == 40 and found.lines[-2] == "line 59"
    assert found.reproduce[-1] == "patchq cluster start sparks --profile glm"


RESULTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "an error": (
        "build",
        {"schema": "patchq.error/1", "message": "the disk is full", "hint": "make room"},
        "the disk is full",
    ),
    "a lock that does not hold": (
        "build",
        {"schema": "patchq.lock-run/1", "checked": True, "differing": [{"key": "tree"}]},
        "the runner lock does not hold: tree",
    ),
    "another wheel": (
        "build",
        {"schema": "patchq.build-run/1", "same": False, "compared": {"a.whl": False, "b": True}},
        "built again it is another: a.whl",
    ),
    "a bench that stopped": (
        "bench",
        {"schema": "patchq.bench/1", "ok": False, "stopped": "the server is gone"},
        "not all was measured: the server is gone",
    ),
    "slower": (
        "bench",
        {
            "schema": "patchq.compare/1",
            "ok": False,
            "verdict": "worse",
            "findings": [
                {"verdict": "same", "says": "ttft is the same"},
                {"verdict": "worse", "says": "decode is 12 % slower"},
            ],
        },
        "it is slower than before: decode is 12 % slower",
    ),
    "not judged": (
        "bench",
        {
            "schema": "patchq.compare/1",
            "ok": False,
            "verdict": "inconclusive",
            "doubts": ["all together wall: the rounds differ by 30%"],
            "findings": [{"verdict": "inconclusive", "says": "2 rounds are too few"}],
        },
        "it cannot be said how fast it is: all together wall: the rounds differ by 30%",
    ),
    "the gate": (
        "gate",
        {
            "schema": "patchq.gate/1",
            "findings": [
                {"rule": "age", "ok": False, "state": "unfinished", "says": "there is none"},
                {"rule": "speed", "ok": False, "state": "failed", "says": "too slow"},
                {"rule": "smoke", "ok": True, "state": "ok", "says": "all passed"},
            ],
        },
        "the gate says no: speed: too slow",
    ),
}


@pytest.mark.parametrize(("name", "value", "says"), RESULTS.values(), ids=RESULTS.keys())
def test_other_results(tmp_path: Path, name: str, value: dict[str, Any], says: str) -> None:
    left(tmp_path, f"{name}.json", value)
    assert of(tmp_path, stage(name, "failed", files=(f"{name}.json",))).cause == says


def test_the_second_command_of_a_stage_may_be_the_bad_one(tmp_path: Path) -> None:
    left(tmp_path, "lock.json", {"schema": "patchq.lock-run/1", "checked": False, "differing": []})
    left(tmp_path, "build.json", {"schema": "patchq.error/1", "message": "no wheel", "hint": ""})
    found = of(tmp_path, stage("build", "failed", files=("lock.json", "build.json")))
    assert found.cause == "no wheel"


def test_an_error_is_shown_with_what_was_said_before_it(tmp_path: Path) -> None:
    value = {"schema": "patchq.error/1", "message": "no wheel", "hint": "look at the index"}
    left(tmp_path, "build.json", value)
    left(tmp_path, "build.log", "reading the index\nerror: 404 for vllm-0.33.0\n")
    found = of(tmp_path, stage("build", "failed", files=("build.json", "build.log")))
    assert found.lines == (
        "hint: look at the index",
        "reading the index",
        "error: 404 for vllm-0.33.0",
    )


# Logs

LOGS: dict[str, tuple[str, str]] = {
    "a cause that is known": (
        "RPC call to x timed out\nCUDA out of memory. Tried 2 GiB\nBroken pipe\n",
        "there is not enough memory: CUDA out of memory. Tried 2 GiB",
    ),
    "what only follows": (
        "hello\nBroken pipe\n",
        "another rank went away: Broken pipe",
    ),
    "a traceback": (
        'Traceback (most recent call last):\n  File "a.py"\nValueError: no head\n',
        "ValueError: no head",
    ),
    "an error": ("going on\npatchq: the index is gone\n", "the index is gone"),
    "a progress bar": ("10 %\r20 %\rerror: it broke\r", "error: it broke"),
    "nothing": ("all is well\n", "smoke ended with 3"),
}


@pytest.mark.parametrize(("log", "says"), LOGS.values(), ids=LOGS.keys())
def test_where_no_result_says_it_the_log_does(tmp_path: Path, log: str, says: str) -> None:
    left(tmp_path, "smoke.log", log)
    bad = stage("smoke", "failed", "smoke ended with 3", files=("smoke.json", "smoke.log"))
    assert of(tmp_path, bad).cause == says


def test_forty_lines_around_the_first_one(tmp_path: Path) -> None:
    lines = [f"line {n}" for n in range(500)]
    lines[300] = "ERROR: here it began"
    lines[400] = "ERROR: here it ended"
    left(tmp_path, "build.log", "\n".join(lines))
    found = of(tmp_path, stage("build", "failed", files=("build.log",)))
    assert found.cause == "ERROR: here it began"
    assert len(found.lines) == 40 and found.lines[20] == found.cause


def test_a_stage_that_ran_out_of_time(tmp_path: Path) -> None:
    left(tmp_path, "bench.log", "warming up\nround 3 of 9\n")
    bad = stage("bench", "late", "it was ended after 120 minutes", files=("bench.log",))
    found = of(tmp_path, bad)
    assert (found.cause, found.lines[-1]) == ("it was ended after 120 minutes", "round 3 of 9")


ODD = ("", "{", "[]", "null", '{"schema": 7}', '{"schema": "patchq.sync/1"}', "[" * 100_000)


@pytest.mark.parametrize("data", ODD)
@pytest.mark.parametrize("name", ["sync", "smoke"])
def test_results_of_no_form(tmp_path: Path, name: str, data: str) -> None:
    left(tmp_path, f"{name}.json", data)
    found = of(tmp_path, stage(name, "failed", "it failed", files=(f"{name}.json",)))
    assert found.cause in ("it failed", "upstream was not reached (): not everybody answered")


@pytest.mark.parametrize("schema", ["patchq.smoke/1", "patchq.gate/1", "patchq.cluster-start/1"])
def test_fields_of_another_kind(tmp_path: Path, schema: str) -> None:
    keys = ("probes", "findings", "failure", "runner", "server", "seed", "cluster", "checks")
    for odd in (7, "x", [7], [[]], {"a": 1}, [{"state": "failed", "exchanges": 3, "ok": "no"}]):
        left(tmp_path, "smoke.json", {"schema": schema, **dict.fromkeys(keys, odd)})
        of(tmp_path, stage("smoke", "failed", "it failed", files=("smoke.json",)))


def test_files_elsewhere_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "night"
    folder.mkdir()
    left(tmp_path, "secret.log", "error: secret")
    (folder / "link.log").symlink_to(tmp_path / "secret.log")
    bad = stage("smoke", "failed", "it failed", files=("../secret.log", "link.log"))
    assert of(folder, bad).cause == "it failed"


def test_escapes_and_length(tmp_path: Path) -> None:
    value = {"schema": "patchq.error/1", "message": "\x1b[1m\u202e" + "x" * 5000, "hint": ""}
    left(tmp_path, "build.json", value)
    found = of(tmp_path, stage("build", "failed", files=("build.json",)))
    assert found.cause.startswith("\\x1b[1m\\u202exxx") and len(found.cause) == 400
