"""Nights of a small queue: real sync and lock, machines that a stand-in plays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.nightly import kept, run, work
from patchq.nightly.model import Night, Told
from patchq.nightly.run import Asked
from tests.nightly.conftest import Nights, soon
from tests.support.history import git

SPINS = {
    "exit": 5,
    "json": {
        "schema": "patchq.smoke/1",
        "seed": 7,
        "probes": [{"name": "cache", "state": "passed"}, {"name": "blocks", "state": "failed"}],
    },
}
FOUND = {
    "json": {
        "schema": "patchq.bisect/1",
        "culprit": {"kind": "patch", "name": "stays", "says": "Stays", "url": None},
        "confidence": 1.0,
    }
}
ALL = "sync lock build cluster deploy cluster start smoke bench gate cluster stop"


def called(nights: Nights) -> str:
    return " ".join(nights.calls())


def test_a_night_with_news_goes_through_all_stages(nights: Nights, head: str) -> None:
    nights.real()
    ran = nights.run()
    night = ran.night
    assert (night.state, ran.exit_code) == ("green", 0)
    assert called(nights) == ALL
    assert (night.name, night.base, night.start) == ("2026-12-01", ("v1", "v2"), head)
    assert kept.load(ran.folder) == night, "night.json says the same"
    clone = ran.folder / "queue"
    assert {each["cwd"] for each in nights.last} == {str(clone)}
    log = git(clone, "log", "--format=%s", f"{head}..").decode().splitlines()
    assert log == [f"lock the runner {(night.lock or '')[:16]}", "sync demo from v1 to v2"]
    assert git(clone, "status", "--porcelain") == b""
    assert (ran.folder / "sync.md").read_text().startswith("# demo from v1 to v2")
    assert night.stages[0].files == (
        *("sync.json", "sync.log", "lock.json", "lock.log", "sync.md", "series.bundle"),
    )
    [(told, earlier)] = nights.told
    assert (told.state, told.ended is not None, earlier) == ("green", True, ())


def test_the_project_itself_is_not_touched_but_for_what_release_cut_needs(
    nights: Nights, head: str
) -> None:
    nights.real()
    before = nights.small.files()
    ran = nights.run()
    assert git(nights.root, "rev-parse", "HEAD").decode().strip() == head
    now = nights.small.files()
    assert {path: now[path] for path in before} == before
    fresh = {Path(path).parts[:2] for path in now.keys() - before.keys()}
    assert fresh == {("build", "nights"), ("build", "cpu")}
    ref = git(nights.root, "rev-parse", "refs/patchq/nights/2026-12-01").decode().strip()
    assert ref == ran.night.commit
    series = git(nights.root, "ls-tree", "--name-only", ref, "series/").decode()
    assert "0001-lands.patch" not in series


def test_evidence_and_wheels_of_a_green_night_come_to_the_project(nights: Nights) -> None:
    (nights.root / "build/cpu").mkdir(parents=True)
    (nights.root / "build/cpu/old.whl").touch()
    first = nights.run(Asked(start="HEAD", until="sync"))
    lock = (first.night.lock or "")[:16]
    kind = {"schema": "patchq.smoke/1", "runner": None, "when": None}
    nights.orders(gate={"writes": {f"build/evidence/{lock}/smoke.json": json.dumps(kind)}})
    assert nights.run().night.state == "green"
    assert sorted(each.name for each in (nights.root / "build/cpu").iterdir()) == ["build.json"]
    evidence = nights.root / "build/evidence" / lock / "smoke.json"
    assert json.loads(evidence.read_text()) == kind


def test_a_night_without_news_stops_after_the_lock(nights: Nights) -> None:
    nights.real()
    nights.run()
    nights.calls()
    ran = nights.run()
    assert (ran.night.state, ran.exit_code, ran.night.name) == ("quiet", 0, "2026-12-02")
    assert called(nights) == "sync lock"
    assert set(nights.states(ran).values()) == {"done", "left out"}
    assert "nothing is new since the night 2026-12-01" in ran.night.stages[1].says


def test_a_series_that_nobody_has_merged_yet_is_not_carried_anew(nights: Nights) -> None:
    """The second night stands on the very commit of the first: nothing is to be pushed."""
    nights.real()
    first = nights.run()
    nights.calls()
    second = nights.run()
    assert called(nights) == "sync lock"
    assert "nothing moved" in second.night.stages[0].says
    assert (second.night.commit, second.night.lock) == (first.night.commit, first.night.lock)
    third = nights.run(onto="v3")
    assert third.night.state == "asks"
    assert called(nights) == "sync sync", "what is new is carried from the start, not from there"
    assert nights.result(third, "sync.json")["base"]["from"] == "v1"


def test_asked_to_it_runs_although_nothing_is_new(nights: Nights) -> None:
    nights.run()
    nights.calls()
    assert nights.run(Asked(start="HEAD", again=True)).night.state == "green"
    assert called(nights) == ALL


def test_a_red_night_is_no_reason_for_quiet(nights: Nights) -> None:
    nights.orders(gate={"exit": 5, "json": {"schema": "patchq.gate/1", "findings": []}})
    assert nights.run().night.state == "red"
    assert nights.run().night.state == "red"


def test_the_evidence_of_a_runner_that_holds_still_is_enough(nights: Nights) -> None:
    ran = nights.run(Asked(start="HEAD", until="sync"))
    (nights.root / "build/evidence" / (ran.night.lock or "")[:16]).mkdir(parents=True)
    nights.calls()
    assert nights.run().night.state == "quiet"
    assert called(nights) == "sync lock gate"
    assert nights.last[-1]["cwd"] == str(nights.root)
    nights.orders(gate={"exit": 6})
    assert nights.run(Asked(start="HEAD", until="sync")).night.state == "incomplete"


def test_a_conflict_asks_and_nothing_else_is_tried(nights: Nights) -> None:
    nights.real()
    ran = nights.run(onto="v3")
    assert (ran.night.state, ran.exit_code) == ("asks", 4)
    assert called(nights) == "sync"
    assert "stays" in ran.night.stages[0].says
    assert ran.night.fault is not None
    assert ran.night.fault.stage == "sync"
    assert ran.night.commit is None
    assert not (ran.folder / "series.bundle").exists()


def test_a_failed_smoke_leaves_bench_and_gate_out_and_stops_the_cluster(nights: Nights) -> None:
    nights.orders(smoke=SPINS)
    ran = nights.run()
    assert (ran.night.state, ran.exit_code) == ("red", 5)
    assert called(nights) == "sync lock build cluster deploy cluster start smoke cluster stop"
    assert [nights.states(ran)[name] for name in ("smoke", "bench", "gate")] == [
        "failed",
        "left out",
        "left out",
    ]


def test_after_a_green_night_a_failed_smoke_is_bisected_once(nights: Nights) -> None:
    nights.real()
    green = nights.run(onto="v1")
    nights.orders(smoke=SPINS, bisect=FOUND)
    nights.calls()
    red = nights.run()
    names = nights.calls()
    assert names[-2:] == ["cluster stop", "bisect"], "the machines are free for it"
    args = nights.last[-1]["args"]
    good, bad = args[args.index("--between") + 1 :][:2]
    assert good == (green.night.commit or green.night.start)
    assert bad == red.night.commit
    shows = args[args.index("--run") + 1]
    assert shows == "patchq smoke --cluster pair --profile tiny --only blocks --seed 7"
    assert nights.result(red, "bisect.json")["culprit"]["name"] == "stays"
    again = nights.run()
    assert "bisect" not in nights.calls(), "the same runner was searched the night before"
    assert nights.result(again, "bisect.json")["culprit"]["name"] == "stays"


def test_where_no_time_is_given_or_no_green_night_known_nothing_is_bisected(
    nights: Nights,
) -> None:
    nights.orders(smoke=SPINS)
    nights.run()
    assert "bisect" not in nights.calls()
    nights.orders()
    nights.run(onto="v1")
    nights.orders(smoke=SPINS)
    nights.calls()
    ran = nights.run(minutes=dict(nights.settings.minutes) | {"culprit": 0})
    assert ran.night.state == "red"
    assert "bisect" not in nights.calls()
    assert not (ran.folder / "bisect.json").exists()


def test_what_was_not_reached_makes_it_incomplete(nights: Nights) -> None:
    away = {"schema": "patchq.error/1", "message": "spark-b was not reached", "hint": ""}
    nights.orders(cluster_deploy={"exit": 6, "json": away})
    ran = nights.run()
    assert (ran.night.state, ran.exit_code) == ("incomplete", 6)
    assert called(nights) == "sync lock build cluster deploy", "nothing was started, none stopped"


def test_upstream_that_is_away_is_tried_with_what_is_known(nights: Nights) -> None:
    first = nights.run(Asked(start="HEAD", until="sync"))
    said = nights.result(first, "sync.json")
    nights.orders(sync={"exit": 6, "json": {**said, "changed": False}})
    nights.calls()
    ran = nights.run()
    assert ran.night.state == "incomplete"
    assert called(nights) == ALL
    assert nights.states(ran)["sync"] == "unreached"
    assert nights.states(ran)["gate"] == "done"


def test_a_runner_that_is_not_ours_is_left_alone(nights: Nights) -> None:
    busy = "rank 0 runs on here since 2026-12-01 00:00:00 UTC, started by ada@desk"
    error = {"schema": "patchq.error/1", "message": busy, "hint": "stop it"}
    nights.orders(cluster_start={"exit": 1, "json": error})
    ran = nights.run()
    assert ran.night.state == "incomplete"
    assert "cluster stop" not in nights.calls()
    assert not (nights.kept / work.SERVING).exists()


def test_a_stage_that_takes_too_long_is_ended(nights: Nights) -> None:
    nights.orders(smoke={"sleep": 60})
    ran = nights.run(minutes=dict(nights.settings.minutes) | {"smoke": 0.05})
    assert ran.night.state == "red"
    assert nights.states(ran)["smoke"] == "late"
    assert (nights.folder / "interrupted").read_text() == "smoke"
    assert called(nights).endswith("smoke cluster stop")


def test_an_interruption_stops_the_cluster_and_the_night_goes_on_later(nights: Nights) -> None:
    nights.orders(smoke={"sleep": 60, "says": "asking", "once": True})

    def interrupt() -> None:
        log = nights.kept / "2026-12-01" / "smoke.log"
        soon(lambda: log.exists() and b"asking" in log.read_bytes())
        os.kill(os.getpid(), signal.SIGTERM)  # as `systemctl stop` does

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        nights.run()
    thread.join()
    assert called(nights) == "sync lock build cluster deploy cluster start smoke cluster stop"
    left = kept.load(nights.kept / "2026-12-01")
    assert left is not None
    assert left.state == "running"
    ran = nights.run()
    assert (ran.resumed, ran.night.state, ran.night.name) == (True, "green", "2026-12-01")
    assert called(nights) == "cluster start smoke bench gate cluster stop"


@pytest.mark.parametrize("what", ["moved", "other", "old"])
def test_a_night_that_is_not_gone_on_with_is_ended(nights: Nights, what: str) -> None:
    first = nights.run(Asked(start="HEAD", until="sync"))
    left = replace(first.night, state="running", ended=None, fault=None)
    kept.save(first.folder, left)
    asked = Asked(start="HEAD", until="sync")
    nights.now -= timedelta(hours=23)
    if what == "moved":
        (nights.root / "README").write_text("new")
        nights.small.commit()
    elif what == "other":
        asked = Asked(start="HEAD", until="build")
    else:
        nights.now += timedelta(days=2)
    ran = nights.run(asked)
    assert ran.night.name != left.name
    closed = kept.load(first.folder)
    assert closed is not None
    assert closed.state == "incomplete"
    assert closed.fault is not None
    assert closed.fault.cause == run.CUT


def test_a_clone_that_is_gone_is_made_again(nights: Nights) -> None:
    first = nights.run(Asked(start="HEAD", until="build"))
    kept.save(first.folder, replace(first.night, state="running", stages=first.night.stages[:2]))
    kept.remove_tree(first.folder / "queue")
    nights.calls()
    nights.now -= timedelta(hours=23)
    ran = nights.run(Asked(start="HEAD", until="build"))
    assert (ran.resumed, called(nights)) == (True, "sync lock build")


def test_a_result_that_is_gone_is_made_again(nights: Nights) -> None:
    first = nights.run()
    kept.save(first.folder, replace(first.night, state="running", stages=first.night.stages[:2]))
    (first.folder / "build.json").write_text('{"schema": "patchq.bui')
    nights.calls()
    nights.now -= timedelta(hours=23)
    ran = nights.run()
    assert (ran.resumed, called(nights)) == (True, ALL.removeprefix("sync lock "))


def test_the_last_stage_that_is_asked_for_is_the_last(nights: Nights) -> None:
    ran = nights.run(Asked(start="HEAD", until="deploy"))
    assert ran.night.state == "incomplete", "nobody has tried it"
    assert called(nights) == "sync lock build cluster deploy cluster start cluster stop"
    with pytest.raises(PatchqError, match="there is no stage 'lunch'"):
        nights.run(Asked(until="lunch"))


def test_a_gate_that_asks_for_no_figures_needs_no_bench(nights: Nights) -> None:
    (nights.root / "ci/gate.toml").write_text('cluster = "pair"\nprofile = "tiny"\n[smoke]\n')
    nights.small.commit()
    ran = nights.run()
    assert (ran.night.state, nights.states(ran)["bench"]) == ("green", "left out")
    assert "bench" not in nights.calls()


def test_the_stages_get_no_token_but_sync_does(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GH_TOKEN", "s3cret")
    nights.run(Asked(start="HEAD", until="sync"))
    assert nights.environment("lock").get("GH_TOKEN") is None
    assert nights.environment("sync")["GH_TOKEN"] == "s3cret"
    left = [path for path in nights.kept.rglob("*") if path.is_file()]
    assert not [path for path in left if b"s3cret" in path.read_bytes()]


def test_where_the_machines_are_is_this_projects_alone(nights: Nights) -> None:
    """A cluster's file is edited for the machines at hand, and need not be committed."""
    file = nights.root / "ci/clusters/pair.toml"
    file.write_text(file.read_text().replace("8000", "8001"))
    (file.parent / "pair.ssh").write_text("Host a\n")
    clone = nights.run().folder / "queue"
    assert (clone / "ci/clusters/pair.toml").read_text() == file.read_text()
    assert (clone / "ci/clusters/pair.ssh").exists()
    assert git(clone, "status", "--porcelain") == b""


def test_where_nobody_can_be_told_the_night_is_what_it_was(nights: Nights) -> None:
    def tell(*_: object) -> None:
        raise PatchqError("the forge is on fire", "wait")

    nights.tell = tell  # type: ignore[method-assign, assignment]
    ran = nights.run()
    assert ran.night.state == "green"
    assert ran.night.told.says == ("nobody was told: the forge is on fire",)
    assert kept.load(ran.folder) == ran.night


def test_it_begins_with_the_remotes_branch_as_it_is_now(nights: Nights, head: str) -> None:
    """What lies in the project's own work tree, and is not pushed, has no part in it."""
    remote, settings = published(nights)
    (nights.root / "README").write_text("mine")
    nights.small.commit()
    ran = nights.run(Asked(), into=settings["into"])
    assert (ran.night.start, ran.night.state) == (head, "green")
    url = git(ran.folder / "queue", "config", "remote.origin.url").decode().strip()
    assert url == str(remote), "a push goes there, not to the project"
    remote.rename(remote.with_name("away.git"))
    away = nights.run(Asked(again=True), into=branch(nights))
    assert away.night.state == "incomplete"
    assert nights.states(away)["gate"] == "done", "what is here is tried"
    assert "the project's remote was not reached" in away.night.stages[0].says


def test_a_quiet_night_tells_what_could_not_be_told_before_it(nights: Nights) -> None:
    asked: list[tuple[str, int]] = []

    def tell(night: Night, folder: Path, earlier: tuple[Night, ...]) -> Told:
        assert folder.name == night.name
        asked.append((night.name, len(earlier)))
        if len(asked) == 1:
            raise PatchqError("the forge is on fire", "wait")
        return Told(pull=7)

    nights.tell = tell  # type: ignore[method-assign]
    first = nights.run()
    assert first.night.told.says == ("nobody was told: the forge is on fire",)
    assert nights.run().night.state == "quiet"
    assert asked[1:] == [("2026-12-01", 0), ("2026-12-02", 1)]
    again = kept.load(first.folder)
    assert again is not None
    assert again.told == Told(pull=7)
    nights.run()
    assert asked[3:] == [("2026-12-03", 2)], "now it is told"


def published(nights: Nights) -> tuple[Path, dict[str, object]]:
    """A remote, and the settings of nights that publish."""
    remote = nights.folder / "remote.git"
    git(nights.root, "clone", "-q", "--bare", str(nights.root), str(remote))
    git(nights.root, "remote", "add", "origin", str(remote))
    return remote, {"publish": True, "key": "key", "into": branch(nights)}


def test_a_night_may_publish_what_passed_the_gate(nights: Nights, head: str) -> None:
    remote, settings = published(nights)
    ran = nights.run(**settings)
    assert ran.night.state == "green"
    names = nights.calls()
    assert names[-4:] == ["gate", "cluster stop", "release cut", "release publish"]
    key = nights.last[-2]["args"][nights.last[-2]["args"].index("--key") + 1]
    assert key == str(nights.root / "key")
    into = str(settings["into"])
    log = git(remote, "log", "--format=%s", f"{head}..{into}").decode().split()
    assert log == ["cut"]
    assert git(remote, "rev-parse", "release-1^{}") == git(remote, "rev-parse", into)
    assert (nights.root / "build/releases/1/SHA256SUMS").exists()

    left = replace(ran.night, state="running", stages=ran.night.stages[:-1])
    kept.save(ran.folder, left)
    nights.now -= timedelta(hours=23)
    again = nights.run(**settings)
    assert (again.resumed, again.night.state) == (True, "green")
    assert called(nights) == "release publish", "a number is not taken twice"


def test_nothing_is_published_that_did_not_pass_the_gate(nights: Nights) -> None:
    remote, settings = published(nights)
    nights.orders(gate={"exit": 6})
    ran = nights.run(**settings)
    assert (ran.night.state, nights.states(ran)["release"]) == ("incomplete", "left out")
    assert "release cut" not in nights.calls()
    assert git(remote, "tag") == b""


def test_a_release_does_not_go_over_what_somebody_pushed_meanwhile(nights: Nights) -> None:
    remote, settings = published(nights)
    other = nights.folder / "other"
    git(nights.folder, "clone", "-q", str(remote), str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "theirs")
    git(other, "push", "-q", "origin", "HEAD")
    theirs = git(remote, "rev-parse", str(settings["into"]))
    ran = nights.run(Asked(start="HEAD"), **settings)
    assert ran.night.state == "incomplete"
    assert "release 1 does not go out" in ran.night.stages[-1].says
    assert nights.calls()[-1] == "release cut"
    assert git(remote, "rev-parse", str(settings["into"])) == theirs
    assert git(remote, "tag") == b""


def branch(nights: Nights) -> str:
    return git(nights.root, "symbolic-ref", "--short", "HEAD").decode().strip()


def test_a_dry_run_writes_nothing(nights: Nights, head: str) -> None:
    before = nights.small.files()
    plan = run.plan(nights.root, nights.settings, Asked())
    assert (plan.queue, plan.start) == ("demo", head)
    assert [len(each) for each in plan.stages.values()] == [2, 1, 2, 1, 1, 1]
    assert nights.small.files() == before
    assert nights.calls() == []


def test_what_would_make_every_stage_useless_is_said_before(nights: Nights) -> None:
    for settings, word in (
        ({"cluster": "three"}, "there is no cluster 'three'"),
        ({"profile": "large"}, "there is no profile 'large'"),
        ({"target": "spark"}, "takes cpu, and spark is built"),
    ):
        with pytest.raises(PatchqError, match=word):
            nights.run(**settings)
    with pytest.raises(PatchqError, match="no commit 'nowhere'"):
        nights.run(Asked(start="nowhere"))
    assert not kept.names(nights.kept)


def test_the_programs_patchq_is_ours_whatever_lies_in_the_clone(tmp_path: Path) -> None:
    (tmp_path / "patchq").mkdir()
    (tmp_path / "patchq/__init__.py").write_text("raise SystemExit('the clone runs')")
    argv = work.patchq(["--version"])
    assert argv[0] == sys.executable
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stdout[:7]) == (0, b"patchq "), done.stderr
