"""Benches of a cluster of this machine alone, the stand-in for vLLM as its rank: bound to what it
is, and started anew for each value of a sweep."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from patchq.cluster.profile import Profile
from patchq.errors import PatchqError, UsageError
from patchq.smoke import evidence, kept
from patchq.smoke.bench import Run, order
from patchq.smoke.load import Cell
from patchq.smoke.sweep import asked_for, variant
from tests.support import here
from tests.support.fleet import eventually, standin_wheel
from tests.support.inside import Said, call

ROOT = Path(__file__).resolve().parents[2]
LOCK, TREE = "a" * 64, "b" * 40
PORT = 18951
PROFILE = """
model = "tiny"
served_name = "tiny"
[speculation]
method = "ngram"
num_speculative_tokens = 1
[environment]
PACE = "20"
[limits]
ready = 30
"""
SIZES = ["--context", "64", "--concurrency", "1", "--tokens", "4", "--warmup", "0"]


@dataclass(frozen=True)
class Place:
    """A project, and where its only node has everything."""

    root: Path
    home: Path

    def call(self, *args: str, code: int | None = 0) -> Said:
        return call(self.root, *args, code=code)

    def record(self) -> dict[str, Any]:
        """What the node keeps of its rank; empty where there is none."""
        try:
            found: dict[str, Any] = json.loads((self.home / "patchq/run/rank-0.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return found

    def runs(self) -> dict[str, Any] | None:
        """What the rank that runs was started as."""
        (node,) = self.call("cluster", "status", "here", "--json").json["nodes"]
        return node["run"]["about"] if node["state"] == "running" else None

    def starts(self) -> int:
        return int((self.home / "patchq/run/rank-0.starts").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A build that is deployed to the cluster `here`."""
    place = Place(tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("home"))
    (place.root / ".git" / "objects").mkdir(parents=True)
    (place.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (place.root / "ci" / "clusters").mkdir(parents=True)
    (place.root / "ci" / "profiles").mkdir(parents=True)
    cluster = here.cluster(PORT, sys.executable, place.home)
    (place.root / "ci/clusters/here.toml").write_text(cluster, encoding="utf-8")
    (place.home / "models" / "tiny").mkdir(parents=True)
    (place.home / "models" / "tiny" / "config.json").write_text("{}", encoding="utf-8")
    wheel = standin_wheel(place.root / "build" / "cpu")
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    record = {
        "schema": "patchq.build/1",
        "target": "cpu",
        "requirements": None,
        "outputs": [{"name": wheel.name, "sha256": sha256}],
        "runner": {"series": "vllm", "base": {"release": "1"}, "tree": TREE, "release": 1},
        "lock": LOCK,
    }
    (wheel.parent / "build.json").write_text(json.dumps(record), encoding="utf-8")
    place.call("cluster", "deploy", "here")
    return place


@pytest.fixture
def place(deployed: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setattr("patchq.cluster.start.POLL", 0.1)
    (deployed.root / "ci/profiles/tiny.toml").write_text(PROFILE, encoding="utf-8")
    try:
        yield deployed
    finally:
        deployed.call("cluster", "stop", "here", "--patience", "1", code=None)
        for made in ("evidence", "sweeps"):
            shutil.rmtree(deployed.root / "build" / made, ignore_errors=True)


def test_a_bench_is_bound_to_what_runs_and_kept_as_its_evidence(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.call("cluster", "start", "here", "--profile", "tiny")
    words = ["bench", "--cluster", "here", "--profile", "tiny", *SIZES]
    first = place.call(*words, "--rounds", "1", "--json")
    where = evidence.folder(place.root, LOCK)
    held = evidence.load(where, "bench")
    assert held is not None and held.runner is not None
    assert (held.runner.lock, held.runner.tree, held.runner.cluster) == (LOCK, TREE, "here")
    assert first.json["runner"] == held.value["runner"]
    assert kept.read(held.path).runner == held.runner
    assert [each["label"] for each in first.json["sides"]] == ["here"]

    # Held against itself, which needs more rounds than one: not judged, and kept all the same.
    before = place.root / "release-3.json"
    before.write_bytes(held.path.read_bytes())
    said = place.call("compare", str(before), "--cluster", "here", "--json", code=6)
    assert said.json["baseline"] == said.json["runner"] == first.json["runner"]
    against = evidence.load(where, "compare")
    assert against is not None and against.runner == held.runner
    assert (where / "bench.json.1").read_bytes() == before.read_bytes()

    # A file in the place of evidence, and two saved ones.
    place.call("compare", str(before), str(held.path), "--out", str(place.root / "c.json"), code=6)
    assert json.loads((place.root / "c.json").read_bytes())["runner"] == first.json["runner"]

    # What is not whole does not take the place of what is.
    whole = held.path.read_bytes()
    visit, pid = Run.visit, place.record()["pid"]

    def fatal(run: Run, number: int, cell: Cell, side: int, turn: int) -> None:
        visit(run, number, cell, side, turn)
        if len(run.visits) == 4:
            os.kill(pid, signal.SIGKILL)

    monkeypatch.setattr(Run, "visit", fatal)
    said = place.call(*words, "--rounds", "9", code=6)
    assert "not all was measured" in said.out
    assert held.path.read_bytes() == whole
    assert json.loads((where / "bench.partial.json").read_bytes())["runner"]["lock"] == LOCK


def test_a_sweep_says_which_value_is_better_where_and_by_how_much(place: Place) -> None:
    # Longer than what a busy machine adds to a token.
    text = PROFILE.replace('PACE = "20"', 'PACE = "100"')
    (place.root / "ci/profiles/tiny.toml").write_text(text, encoding="utf-8")
    place.call("cluster", "start", "here", "--profile", "tiny")
    was, before = place.runs(), place.starts()
    words = ["bench", "--sweep", "draft_tokens=1,9", "--cluster", "here", *SIZES]
    said = place.call(*words, "--starts", "1", "--rounds", "10", "--json")
    found = said.json
    (answer,) = found["answers"]
    assert (answer["value"], answer["against"], answer["answer"]) == (9, 1, "better")
    totals = {each["metric"]: each for each in answer["compare"]["totals"]}
    # A token takes 50 ms with one draft token, 10 ms with nine.
    assert 1.5 < totals["wall"]["low"] <= totals["wall"]["ratio"] < 6
    blocks = [(each["side"], each["round"], each["turn"]) for each in found["bench"]["visits"]]
    assert [*dict.fromkeys((side, turn) for side, _, turn in blocks)] == order(2, 0)
    assert place.starts() - before == 3 + 1, "a block after one of the same value starts nothing"
    now = place.runs()
    assert now == was, "what ran before runs again, as the profile says"
    (file,) = (place.root / "build" / "sweeps").iterdir()
    assert json.loads(file.read_bytes()) == found
    assert not evidence.folder(place.root, LOCK).exists(), "it is no evidence of the profile"


def test_interrupted_it_starts_again_what_ran_before(place: Place) -> None:
    place.call("cluster", "start", "here", "--profile", "tiny")
    was = place.runs()
    command = [sys.executable, "-m", "patchq.cli.main", "bench", "--sweep", "draft_tokens=1,9"]
    command += ["--cluster", "here", *SIZES, "--rounds", "300", "--starts", "1", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=place.root, env=environment, stdout=pipe, stderr=pipe, text=True
    ) as process:
        assert eventually(lambda: place.record().get("about", {}).get("sweep"))
        assert eventually(lambda: "answers 9" in Path(place.record()["log"]).read_text("utf-8"))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    found = json.loads(out)
    assert found["bench"]["interrupted"] and found["bench"]["visits"] and found["restored"] is None
    assert place.runs() == was


def test_a_value_that_does_not_start_leaves_what_was_measured(place: Place) -> None:
    path = place.root / "ci/profiles/tiny.toml"
    path.write_text(PROFILE.replace('PACE = "20"', 'PACE = "20"\nREFUSES = "9"'), encoding="utf-8")
    words = ["bench", "--sweep", "draft_tokens=1,9", "--cluster", "here", *SIZES]
    said = place.call(*words, "--starts", "1", "--rounds", "1", "--json", code=6).json
    assert said["bench"]["stopped"].startswith("rank 0 on here")
    assert {each["side"] for each in said["bench"]["visits"]} == {0}
    assert said["answers"] == []
    assert place.runs() is None, "nothing ran before"


@pytest.mark.parametrize("text", ["draft_tokens", "draft_tokens=5", "draft_tokens=5,5", "x=1,2"])
def test_what_is_no_sweep(text: str) -> None:
    with pytest.raises(UsageError, match="is no setting with different values"):
        asked_for(text)


def test_what_drafts_nothing_cannot_be_swept() -> None:
    with pytest.raises(PatchqError, match="p drafts nothing"):
        variant(Profile("p", "m", "m"), "draft_tokens", 5)
    drafting = Profile("p", "m", "m", speculation={"method": "ngram", "num_speculative_tokens": 7})
    assert variant(drafting, "draft_tokens", 5).speculation == {
        "method": "ngram",
        "num_speculative_tokens": 5,
    }
    assert drafting.speculation["num_speculative_tokens"] == 7
