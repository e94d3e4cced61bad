"""Pull requests made of what really changed between two vLLM releases, carried until they land.

The history between the releases is made in tests/support/real_upstream.py.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.forge.fixtures import forge, forge_server  # noqa: F401
from tests.support.forge.pull import Pull
from tests.support.forge.server import Forge
from tests.support.history import git
from tests.support.real_upstream import DRAFT, Releases, Upstream, before_review
from tests.support.vllm import FIRST, Repository, first_series

pytestmark = pytest.mark.network

OLD, NEW = "0.29.0", "0.30.0"
MODEL = re.compile(r"glm5_?next", re.IGNORECASE)
NAMED_IN = (
    "vllm/model_executor/models/registry.py",
    "vllm/transformers_utils/config.py",
    "vllm/transformers_utils/configs/__init__.py",
    "vllm/transformers_utils/processors/__init__.py",
)
"""Where 0.30.0 names the model, beside its own files; more than that changed there."""


def of_the_model(releases: Releases) -> dict[str, str]:
    """The model's own files, and of the others the lines that name it."""
    added = releases.changed("--diff-filter=A", "--name-only", ".")
    files = {path: releases.file(releases.new, path) for path in added if MODEL.search(path)}
    for path in NAMED_IN:
        files[path] = naming(releases.file(releases.old, path), releases.file(releases.new, path))
    return files


def naming(old: str, new: str) -> str:
    """`old` with those changes towards `new` that name the model."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    made: list[str] = []
    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for _, start, end, new_start, new_end in blocks:
        theirs = after[new_start:new_end]
        wanted = theirs != before[start:end] and any(map(MODEL.search, theirs))
        made += theirs if wanted else before[start:end]
    return "".join(made)


@dataclass(repr=False)
class Story:
    """Two queues on 0.29.0 with the shipped patches; `queue` carries the pull requests as well."""

    forge: Forge
    upstream: Upstream
    queue: Repository
    alone: Repository
    model: Pull
    fixes: list[Pull]
    reviewed: Pull
    path: str
    """What the reviewed one changes."""
    draft: str
    final: str
    pulls: dict[str, Pull] = field(default_factory=dict)
    """By the patch that came from it."""

    def takes(self, pull: Pull) -> None:
        args = ("pr", "add", pull.key, "--import", "--exclude", "tests/*", "--json")
        (patch,) = json.loads(self.queue.patchq(*args))["patches"]
        self.pulls[patch["name"]] = pull

    def lands(self) -> None:
        for pull in (self.model, *self.fixes):
            pull.lands_by_squash()
        self.reviewed.lands_by_squash().write(self.path, self.final.encode())
        self.upstream.released()

    def sync(self, *more: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
        said = self.queue.patchq("sync", "--onto", NEW, "--json", *more, codes=codes)
        report: dict[str, Any] = json.loads(said)
        return report

    def became(self, report: dict[str, Any]) -> dict[str, tuple[str, str]]:
        """Verdict and action, by pull request; by name for the shipped patches."""
        keys = {name: pull.key for name, pull in self.pulls.items()}
        return {
            keys.get(patch["name"], patch["name"]): (patch["verdict"], patch["action"])
            for patch in report["patches"]
        }


@pytest.fixture
def story(
    tmp_path: Path,
    cache: Path,
    forge: Forge,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> Story:
    monkeypatch.setenv("GITHUB_TOKEN", forge.token)
    alone = first_series(tmp_path / "alone", cache)
    alone.sync(NEW)
    releases = Releases(cache / "stores/index-vllm.git", OLD, NEW)
    upstream = Upstream.at_the_old_one(releases, forge)

    queue = first_series(tmp_path / "queue", cache)
    file = queue.root / "upstream/vllm.toml"
    keys = forge.toml(upstream.repo)
    file.write_text(file.read_text().replace("[[sources]]", f"{keys}\n[[sources]]"))
    queue.patchq("upstream", "add-git", forge.git(upstream.repo))

    model = upstream.opens("[Model] GLM-5.3-Flash", of_the_model(releases), number=53906)
    fixes = [upstream.fix("csrc", 54001), upstream.fix("vllm/v1", 54002)]
    path = releases.small_fix("vllm/model_executor/layers/quantization")
    final = releases.file(releases.new, path)
    draft = before_review(releases.file(releases.old, path), final)
    reviewed = upstream.opens(f"[Bugfix] {path}", {path: draft}, number=54003)
    made = Story(forge, upstream, queue, alone, model, fixes, reviewed, path, draft, final)
    for pull in (model, *fixes, reviewed):
        made.takes(pull)
    return made


SHIPPED = sorted(path.name for path in FIRST.glob("*.patch"))
STAYS = {name[5:].removesuffix(".patch"): ("needed", "keep") for name in SHIPPED}


def test_what_landed_between_two_releases_goes(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, reviewed = story.queue, story.reviewed
    assert json.loads(queue.patchq("check", "--json"))["proof"]["ok"]
    queue.commit()
    story.lands()
    landed = {pull.key: ("landed", "drop") for pull in (story.model, *story.fixes)}

    # The two trees tell what landed as it was; whether the fourth did, nobody here can say.
    by_trees = story.sync("--dry-run", "--offline", codes=(4,))
    assert story.became(by_trees) == STAYS | landed | {reviewed.key: ("uncertain", "ask")}

    # Upstream's commits do, and no forge need be asked.
    monkeypatch.delenv("GITHUB_TOKEN")
    story.forge.limits[None] = 0
    by_history = story.sync("--dry-run", codes=(0, 6))
    went = STAYS | landed | {reviewed.key: ("landed-with-changes", "drop")}
    assert story.became(by_history) == went
    assert git(queue.root, "status", "--porcelain") == b""

    monkeypatch.setenv("GITHUB_TOKEN", story.forge.token)
    report = story.sync()

    # A shipped patch waits for one that this upstream does not have.
    assert all("#52486 is not on" in note for note in report["upstream"]["notes"])
    assert story.became(report) == went
    for patch in report["patches"][len(STAYS) :]:
        pull = story.pulls[patch["name"]]
        told = {one["signal"]: one["detail"] for one in patch["evidence"]}
        assert f"in {NEW} as {pull.landed[:10]} (#{pull.number})" in told["history"]
        assert f"{pull.key} was merged" in told["pull-merged"]
        assert patch["file"] is None
    changed = report["patches"][-1]
    assert "upstream's version differs from ours in 1 hunk" in changed["evidence"][0]["detail"]
    (ours,) = set(story.draft.splitlines()) - set(story.final.splitlines())
    assert f"-+{ours}" in changed["range_diff"]
    assert f"++{ours.removesuffix(DRAFT)}" in changed["range_diff"]
    assert report["proof"]["ok"] and report["recorded"]

    left = sorted(path.name for path in (queue.root / "series").glob("*.patch"))
    assert left == SHIPPED
    assert queue.patchq("tree") == story.alone.patchq("tree")
    for name in left:
        alone = story.alone.root / "series" / name
        assert (queue.root / "series" / name).read_bytes() == alone.read_bytes()
    listed = json.loads(queue.patchq("pr", "list", "--json", codes=(0, 6)))["pulls"]
    assert [each["pr"] for each in listed] == ["vllm-project/vllm#52486"]
    assert json.loads(queue.patchq("check", "--json"))["proof"]["ok"]
