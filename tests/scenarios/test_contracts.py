"""A sync that applies cleanly and still says what upstream took from under a patch, and who did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patchq.carry import contracts
from patchq.config import cache_dir
from tests.support.history import History, git, lines
from tests.support.inside import Said, call
from tests.support.kit import bare_repository

POOL = b"class Pool:\n    def take(self, size): ...\n\n\ndef pool() -> Pool: ...\n"
STEPS = lines(range(1, 30), word="# step")
RUN = b"from kit.pool import pool\n\n\ndef run():\n    found = pool()\n" + STEPS
OURS = RUN.replace(b"pool()\n" + STEPS, b"pool()\n    found.take(16)\n" + STEPS)


class Story:
    """A queue on v1 with one patch that calls `Pool.take`; what comes in v2 is the test's."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "queue"
        self.upstream = History(folder / "upstream.git")
        start = self.upstream.commit("Start").write("kit/__init__.py", b"")
        start.write("kit/pool.py", POOL).write("kit/run.py", RUN).tag("v1")
        topic = self.upstream.branch("topic", at="v1").commit("[run] Take some")
        topic.write("kit/run.py", OURS)
        self.upstream.branch("main", at="v1")

    def sync(self, *args: str) -> Said:
        self.upstream.save()
        bare_repository(self.root)
        call(self.root, "init", "demo", "--git", str(self.upstream.path), "--base", "v1")
        call(self.root, "import", "--git", str(self.upstream.path), "v1..topic")
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--no-verify", "-m", "queue")
        return call(self.root, "sync", "--onto", "v2", *args)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def test_the_commit_that_changed_a_signature_is_named(story: Story) -> None:
    up = story.upstream
    up.commit("Unrelated (#7)").edit("kit/pool.py", b"class Pool:", b"class Pool:  # big")
    change = up.commit("Pools need an owner (#8)").by(b"Rita Reviewer")
    change.edit("kit/pool.py", b"self, size", b"self, size, owner")
    up.commit("Also unrelated (#9)").edit("kit/pool.py", b"# big", b"# bigger").tag("v2")

    report = story.sync("--json").json

    (patch,) = report["patches"]
    assert (patch["verdict"], patch["carry"], patch["action"]) == ("needed", "clean", "keep")
    (finding,) = patch["findings"]
    assert (finding["kind"], finding["path"], finding["fatal"]) == ("contract", "kit/run.py", False)
    assert (
        "line 6: kit.pool.Pool.take needs 'owner', which the call does not give" in finding["says"]
    )
    assert "Pools need an owner (#8), by Rita Reviewer" in finding["says"]
    assert report["recorded"], "it is said, and not in the way"


def test_it_is_said_to_people_too(story: Story) -> None:
    gone = story.upstream.commit("Rename it").edit("kit/pool.py", b"def take", b"def lend")
    gone.tag("v2")
    assert "kit/run.py: line 6: kit.pool.Pool has no 'take'; since" in " ".join(
        story.sync().out.split()
    )


def test_a_release_that_kept_everything_has_nothing_said_of_it(story: Story) -> None:
    story.upstream.commit("More").write("kit/more.py", b"").tag("v2")
    assert json.loads(story.sync("--json").out)["patches"][0]["findings"] == []


def test_a_second_look_reads_what_the_first_found(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.upstream.commit("Rename it").edit("kit/pool.py", b"def take", b"def lend").tag("v2")
    first = story.sync("--json", "--dry-run").json["patches"]
    monkeypatch.setattr(contracts, "check", None)  # it is not asked again
    again = call(story.root, "sync", "--onto", "v2", "--json", "--dry-run").json["patches"]
    assert again == first and again[0]["findings"]
    monkeypatch.undo()
    for kept in (cache_dir() / "findings").iterdir():
        kept.write_bytes(b"torn")
    assert call(story.root, "sync", "--onto", "v2", "--json").json["patches"] == first
