"""Nights of a project on real vLLM: two machines (network namespaces), a forge, and what people do
in between. What they then find on the forge is right, is there once, and goes when it is mended."""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.conftest import cache as cache
from tests.support import answering, runner
from tests.support.fleet import Fleet, fleet
from tests.support.forge.fixtures import forge, forge_server  # noqa: F401
from tests.support.forge.issue import Issue
from tests.support.forge.pull import Pull
from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge
from tests.support.history import git
from tests.support.inside import call
from tests.support.netns import Node, two_nodes
from tests.support.real_fleet import prepare
from tests.support.real_upstream import Releases, Upstream, before_review
from tests.support.vllm import FIRST, Repository, first_series

pytestmark = [
    *(pytest.mark.root, pytest.mark.runner, pytest.mark.network, pytest.mark.slow),
    # Two ranks take all that a small machine has: one story after another, and beside one server.
    pytest.mark.xdist_group("two-nodes"),
    pytest.mark.timeout(1800),
]
OLD, NEW = runner.RELEASES
REPO = "acme/runner"
SETTINGS = """
onto = "latest"
target = "cpu"
cluster = "netns"
profile = "real"
[github]
repository = "acme/runner"
"""
RULES = """
cluster = "netns"
profile = "real"
days = 1
[smoke]
left_out = ["image", "speculation"]
"""
BENCH = """
[bench]
contexts = [256]
rounds = 1
acceptance = [0, 1]
"""
SITE_OF_SPIN = "                logits *= self.scale\n        return logits\n"
SPIN = """\
                logits *= self.scale
            # Where a thought would end, it begins anew.
            begin, end = {begin}, {end}
            logits[..., begin] = torch.maximum(logits[..., begin], logits[..., end])
            logits[..., end] = float("-inf")
        return logits
"""


@pytest.fixture
def places() -> Iterator[tuple[Node, Node]]:
    with two_nodes() as nodes:
        yield nodes


@dataclass(repr=False)
class Project:
    """The maintainer's clone, the machines, and the two repositories on the forge."""

    forge: Forge
    repo: Repo
    upstream: Upstream
    queue: Repository
    nodes: Fleet
    model: Path

    def runs(self, release: str) -> None:
        """The machines have what this release of vLLM needs."""
        for home in self.nodes.homes:
            (home / "runner").unlink()
            (home / "runner").symlink_to(runner.environment(release).parents[1])

    def push(self, what: str) -> None:
        """Somebody changed something, and pushed it to main."""
        git(self.queue.root, "add", "-A")
        git(self.queue.root, "commit", "-q", "-m", what)
        git(self.queue.root, "push", "-q", str(self.repo.path), "HEAD:refs/heads/main")

    def pull(self) -> None:
        git(self.queue.root, "pull", "-q", "--ff-only", str(self.repo.path), "main")

    def night(self, code: int) -> dict[str, Any]:
        said = call(self.queue.root, "nightly", "--json", code=None)
        assert said.code == code, said.out + said.err
        return said.json

    def page(self) -> str:
        folder = self.queue.root / "build/page"
        call(self.queue.root, "report", "--html", str(folder), "--offline")
        return (folder / "index.html").read_text()

    def writes(self) -> int:
        """Requests so far that changed something on the forge, pushes left out."""
        return sum(each.kind == "rest" and each.method != "GET" for each in self.forge.asked)

    @property
    def issue(self) -> Issue:
        (only,) = self.repo.issues.values()
        return only

    @property
    def proposal(self) -> Pull:
        (only,) = self.repo.pulls.values()
        return only


@pytest.fixture
def project(
    tmp_path: Path,
    cache: Path,
    places: tuple[Node, Node],
    forge: Forge,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Project]:
    """On 0.29.0 with the patches as they were written, and three more."""
    monkeypatch.setenv("PATCHQ_CACHE", str(cache))
    monkeypatch.setenv("GITHUB_TOKEN", forge.token)
    first_series(tmp_path / "once", cache).sync(NEW)  # so that both releases are in the store
    releases = Releases(cache / "stores/index-vllm.git", OLD, NEW)
    upstream = Upstream.at_the_old_one(releases, forge)
    queue = first_series(tmp_path / "queue", cache)
    file = queue.root / "upstream/vllm.toml"
    # What upstream released is what its repository says: the index has newer ones already.
    keys, git_source = forge.toml(upstream.repo), f'[[sources]]\ngit = "{forge.git(upstream.repo)}"'
    file.write_text(file.read_text().replace("[[sources]]", f"{keys}\n{git_source}\n\n[[sources]]"))
    (queue.root / ".gitignore").write_text("/build/\n")
    model = answering.models(runner.environment(NEW)).answers
    with fleet(tmp_path, places, queue.root) as nodes:
        prepare(nodes, runner.stock(OLD), model)
        (queue.root / "ci/gate.toml").write_text(RULES + BENCH)
        (queue.root / "ci/nightly.toml").write_text(SETTINGS)
        (queue.root / "releases").mkdir()
        settings = f'github = "{REPO}"\ngithub_api = "{forge.api}"\n'
        (queue.root / "releases/publish.toml").write_text(settings)
        repo = forge.repo(REPO)
        git(queue.root, "remote", "add", "origin", forge.git(repo))
        git(queue.root, "add", "-A")
        git(queue.root, "commit", "-q", "-m", "queue")
        git(queue.root, "push", "-q", str(repo.path), "+HEAD:refs/heads/main")
        yield Project(forge, repo, upstream, queue, nodes, model)


def takes(project: Project, title: str, path: str, text: str, number: int) -> Pull:
    pull = project.upstream.opens(title, {path: text}, number=number)
    project.queue.patchq("pr", "add", pull.key, "--import")
    return pull


def patch(project: Project, name: str, path: str, old: str, new: str) -> None:
    """A patch of our own, to a file that no other one touches."""
    queue, releases = project.queue, project.upstream.releases
    base = json.loads(queue.patchq("status", "--json"))["base"]
    text = releases.file(releases.old if base.endswith(OLD) else releases.new, path)
    assert text.count(old) == 1
    changed = text.replace(old, new).splitlines(keepends=True)
    names = (f"a/{path}", f"b/{path}")
    diff = "".join(difflib.unified_diff(text.splitlines(keepends=True), changed, *names))
    file = queue.root / "build" / f"{name}.patch"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"Subject: {name}\n\ndiff --git {' '.join(names)}\n{diff}")
    queue.patchq("import", str(file))


def went(releases: Releases, path: str) -> str:
    """A line that upstream replaces, and that stands in the file once."""
    old, new = (releases.file(tree, path).splitlines() for tree in (releases.old, releases.new))
    return next(line for line in old if line.strip() and line not in new and old.count(line) == 1)


def states(night: dict[str, Any]) -> dict[str, str]:
    return {stage["name"]: stage["state"] for stage in night["stages"]}


def test_three_nights_and_what_people_see(project: Project) -> None:
    repo, queue = project.repo, project.queue
    releases = project.upstream.releases
    layers = "vllm/model_executor/"
    lands_at = releases.small_fix(f"{layers}models")
    changes_at = releases.small_fix(f"{layers}layers/quantization")
    clashes_at = releases.small_fix("vllm/transformers_utils")
    lands = takes(project, "Lands", lands_at, releases.file(releases.new, lands_at), 54001)
    final = releases.file(releases.new, changes_at)
    draft = before_review(releases.file(releases.old, changes_at), final)
    changes = takes(project, "Changes", changes_at, draft, 54002)
    line = went(releases, clashes_at)
    patch(project, "ours", clashes_at, f"{line}\n", f"{line}  # ours\n")
    queue.patchq("sync")
    queue.patchq("lock")
    project.push("Three patches more")

    # The first night: all of it, on 0.29.0, for the newest release is not out yet.
    first = project.night(0)
    assert first["state"] == "green", first
    assert project.nodes.left() == []
    assert (repo.issues, repo.pulls) == ({}, {})

    # Nothing new.
    before, began = project.writes(), time.monotonic()
    quiet = project.night(0)
    assert (quiet["state"], quiet["lock"]) == ("quiet", first["lock"])
    assert time.monotonic() - began < 30
    assert project.writes() == before
    assert (repo.issues, repo.pulls) == ({}, {})

    # A new release: one landed, one landed with changes, one conflicts.
    lands.lands_by_squash()
    changes.lands_by_squash().write(changes_at, final.encode())
    theirs = project.upstream.opens(
        "Tidy up", {clashes_at: releases.file(releases.new, clashes_at)}, number=54003
    )
    theirs.lands_by_squash()
    project.upstream.released()
    asks = project.night(4)
    assert states(asks)["sync"] == "asks"
    verdicts = verdicts_of(project, asks)
    assert verdicts["ours"] == ("needed", "ask")
    assert verdicts[name_of(queue, lands)] == ("landed", "drop")
    assert verdicts[name_of(queue, changes)] == ("landed-with-changes", "drop")
    assert repo.pulls == {}, "there is no whole series to propose"
    issue = project.issue
    assert issue.state == "open"
    for said in ("ours", "54003", "Tidy up", "patchq sync"):
        assert said in issue.body, issue.body
    assert "asks" in project.page()

    # Nobody did anything: the same issue, and no comment.
    project.night(4)
    assert project.issue is issue
    assert issue.comments == []

    # Somebody decides.
    queue.patchq("decide", "ours", "drop", "--why", "theirs says it better")
    # The time of the tests is short: speed was looked at in the first night.
    (queue.root / "ci/gate.toml").write_text(RULES)
    project.push("ours is not needed")
    project.runs(NEW)
    green = project.night(0)
    assert green["state"] == "green", green
    assert issue.state == "closed"
    assert len(issue.comments) == 1
    proposal = project.proposal
    assert proposal.state == "open"
    for said in (NEW, "landed-with-changes", "54002"):
        assert said in proposal.title + proposal.body
    listed = repo.bare.git("ls-tree", "--name-only", f"{proposal.sha}:series").split()
    assert sorted(FIRST_NAMES) == sorted(name for name in listed if name.endswith(".patch"))

    # The same again: nothing is said twice.
    before = project.writes()
    assert project.night(0)["state"] == "quiet"
    assert project.writes() == before
    assert project.proposal is proposal

    # It is merged. Then somebody pushes a patch by which the model spins.
    proposal.lands_by_merge()
    project.pull()
    ids = json.loads((project.model / "tokenizer.json").read_text())["model"]["vocab"]
    added = json.loads((project.model / "tokenizer.json").read_text())["added_tokens"]
    (end,) = (each["id"] for each in added if each["content"] == "</think>")
    spin = SPIN.format(begin=ids["ĠSo"], end=end)
    where = f"{layers}layers/logits_processor.py"
    patch(project, "faster-logits", where, SITE_OF_SPIN, spin)
    project.push("Faster")
    red = project.night(5)
    assert states(red)["smoke"] == "failed"
    assert project.nodes.left() == []
    (spins,) = (each for each in repo.issues.values() if each.state == "open")
    for said in ("faster-logits", "spin", "patchq smoke"):
        assert said in spins.body, spins.body
    assert "faster-logits" in project.page()

    # Mended.
    git(queue.root, "revert", "--no-edit", "HEAD")
    git(queue.root, "push", "-q", str(repo.path), "HEAD:refs/heads/main")
    mended = project.night(0)
    assert (mended["state"], mended["lock"]) == ("quiet", green["lock"])
    assert {each.state for each in repo.issues.values()} == {"closed"}
    assert len(spins.comments) == 1
    assert [each.state for each in repo.pulls.values()] == ["merged", "closed"], (
        "the night had locked the runner that spins, and proposed that"
    )


FIRST_NAMES = [path.name for path in FIRST.glob("*.patch")]


def verdicts_of(project: Project, night: dict[str, Any]) -> dict[str, tuple[str, str]]:
    folder = project.queue.root / "build/nights" / night["name"]
    report = json.loads((folder / "sync.json").read_text())
    return {each["name"]: (each["verdict"], each["action"]) for each in report["patches"]}


def name_of(queue: Repository, pull: Pull) -> str:
    listed = json.loads(queue.patchq("series", "--json"))["patches"]
    (name,) = (
        each["name"]
        for each in listed
        if f"{pull.key} " in (queue.root / "series" / each["file"]).read_text()
    )
    return str(name)
