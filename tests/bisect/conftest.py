"""A queue that moved: from one release to the next, and in much else beside."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from patchq.bisect.moves import Between, between
from tests.support.cli import Queue
from tests.support.history import History, git, lines

PINS = """
[[component]]
name = "lib"
index = "lib"
version = "{lib}"
why = "it is called"

[[template]]
name = "chat"
repository = "maker/model"
revision = "{chat}"
why = "it speaks so"
"""


def function(name: str, value: str) -> bytes:
    return f"def {name}():\n    first = '{name}'\n    return first + '{value}'\n\n\n".encode()


def told(path: Path) -> History:
    """v1 and v2; `topic` are six patches on v1, `more` three on v2."""
    core = b"".join(function(f"f{n}", "plain") for n in range(1, 9))
    history = History(path)
    first = history.commit("start")
    first.write("core.py", core).write("notes.txt", lines(range(1, 81)))
    first.write("util/old.py", b"".join(function(f"u{n}", "plain") for n in range(5))).tag("v1")
    topic = history.branch("topic", at="v1").commit("One")
    topic.edit("core.py", b"first + 'plain'\n\n\ndef f2", b"first + 'one'\n\n\ndef f2")
    topic = topic.commit("Two").edit("core.py", b"'f4'\n", b"'f4 by two'\n")
    topic = topic.commit("Three").edit("notes.txt", b"line 10\n", b"line 10 by three\n")
    topic = topic.commit("Four").edit("notes.txt", b"line 40\n", b"line 40 by four\n")
    topic = topic.commit("Five").edit("util/old.py", b"'u2'\n", b"'u2 by five'\n")
    topic.commit("Six").edit("core.py", b"'one'\n", b"'one and six'\n")

    main = history.branch("main").commit("A header for core")
    main.write("core.py", b"# It begins here.\n\n" + main.tree[b"core.py"].data)
    main = main.commit("Two, as upstream has it").edit("core.py", b"'f4'\n", b"'f4 by two'\n")
    main = main.commit("Old is new").move("util/old.py", "util/new.py")
    main.commit("The last note").edit("notes.txt", b"line 80\n", b"line 80, the end\n").tag("v2")

    more = history.branch("more", at="v2").commit("Seven")
    more.write("extra.py", function("seven", "plain"))
    more = more.commit("Eight").edit("extra.py", b"'plain'", b"'eight'")
    more.commit("Nine \u202e<b>bold</b>").edit("notes.txt", b"line 60\n", b"line 60 by nine\n")
    return history


@dataclass(frozen=True)
class Story:
    """The project after it moved: `good` and `bad` are tags, release 1 and what came after."""

    queue: Queue
    cache: Path

    @property
    def root(self) -> Path:
        return self.queue.root

    def between(self, a: str = "good", b: str = "bad", *, commits: bool | None = None) -> Between:
        return between(self.root, a, b, commits=commits)


def pin(queue: Queue, lib: str, chat: str, profile: str) -> None:
    """The component, template and profile that the runner has beside its patches."""
    (queue.root / "upstream/dependencies.toml").write_text(PINS.format(lib=lib, chat=chat))
    place = queue.root / "ci/profiles"
    place.mkdir(parents=True, exist_ok=True)
    (place / "small.toml").write_text(f"# {profile}\n")


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of what a trial starts here has ended at once."""
    monkeypatch.setattr("patchq.child._POLL", 0.005)


@pytest.fixture(scope="session")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """From v1 to v2: Two landed, Three went, Four is held, Six was written anew, three are new."""
    folder = tmp_path_factory.mktemp("moved")
    queue = Queue(folder, told(folder / "upstream.git")).start()
    pin(queue, "1.0", "aaaa", "slow")
    queue.run("lock")
    queue.commit("runner")
    git(queue.root, "tag", "good")
    git(queue.root, "tag", "release-1")
    synced = json.loads(queue.run("sync", "--onto", "v2", "--json").out)
    assert [each["action"] for each in synced["patches"]].count("drop") == 1
    queue.commit("synced")
    queue.run("delete", "three", "--why", "nobody reads it")
    queue.run("hold", "four", "--why", "it waits")
    six = next(queue.series.glob("*-six.patch"))
    six.write_bytes(six.read_bytes().replace(b"one and six'", b"one, and six anew'"))
    queue.run("sync", "--onto", "v2")
    queue.run("import", "--git", str(queue.upstream.path), "v2..more")
    pin(queue, "1.1", "bbbb", "fast")
    queue.run("lock")
    queue.commit("moved")
    git(queue.root, "tag", "bad")
    return Story(queue, folder / "cache")


@pytest.fixture
def story(moved: Story, monkeypatch: pytest.MonkeyPatch) -> Story:
    """The story, read with the store that it was told in."""
    monkeypatch.setenv("PATCHQ_CACHE", str(moved.cache))
    return moved
