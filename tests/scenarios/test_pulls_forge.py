"""Pull requests on a forge: what it says of them, and what becomes of patches made of them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from patchq.carry.pulls.watch import as_seen
from patchq.carry.workspace import read_queue
from patchq.config import find_project
from tests.support.appliers import series_files
from tests.support.forge.fixtures import forge, forge_server  # noqa: F401
from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge
from tests.support.history import git, lines
from tests.support.inside import Said, call
from tests.support.kit import bare_repository

TEXT = lines(range(1, 61))


@dataclass(repr=False)
class Story:
    """A queue on v1 of `acme/engine`, fetched over HTTP."""

    root: Path
    forge: Forge
    repo: Repo

    def call(self, *args: str, code: int | None = 0) -> Said:
        return call(self.root, *args, code=code)

    def pr(self, *args: str, code: int | None = 0) -> Said:
        return self.call("pr", *args, code=code)

    def commit(self) -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--no-verify", "-m", "queue")

    def state(self) -> str:
        return (self.root / "upstream/state.json").read_text()

    def tree_of(self, path: str, release: str = "v1") -> bytes:
        """A file of the release with the series applied by git."""
        work = self.root.parent / "work"
        if work.exists():
            shutil.rmtree(work)
        git(self.root.parent, "clone", "-q", "-b", release, str(self.repo.path), str(work))
        git(work, "apply", *map(str, series_files(self.root / "series")))
        return (work / path).read_bytes()


@pytest.fixture
def story(tmp_path: Path, forge: Forge, monkeypatch: pytest.MonkeyPatch) -> Story:  # noqa: F811
    monkeypatch.setenv("GITHUB_TOKEN", forge.token)
    repo = forge.repo("acme/engine", {"engine.py": TEXT, "docs/engine.md": TEXT})
    repo.tag("v1", at="main")
    root = bare_repository(tmp_path / "queue")
    made = Story(root, forge, repo)
    made.call("init", "engine", "--git", forge.git(repo), "--base", "v1")
    file = root / "upstream/engine.toml"
    file.write_text(file.read_text().replace("[[sources]]", f"{forge.toml(repo)}\n[[sources]]"))
    made.commit()
    return made


def test_from_opened_to_landed(story: Story) -> None:
    pull = story.repo.pull("[Core] Add a knob", author="grace", labels=("core",))
    pull.push("Add a knob").edit("engine.py", b"line 10\n", b"line 10\nknob = 1\n")
    story.pr("add", str(pull.number), "--import", "--topic", "knobs")
    story.commit()
    (file,) = (story.root / "series").glob("*.patch")
    text = file.read_text()
    assert file.name == "0001-add-a-knob.patch"
    assert "Subject: [Core] Add a knob\n" in text and "Upstream-Status: Submitted\n" in text
    shown = story.pr("show", pull.key).out
    assert "grace" in shown and "as pinned" in shown and "core" in shown
    assert "no news" in story.pr("refresh").out
    assert git(story.root, "status", "--porcelain") == b"", "no news changes no byte"

    pull.force_push("Add a knob").edit("engine.py", b"line 10\n", b"line 10\nknob = 2\n")
    said = story.pr("refresh", code=4)
    assert "-+knob = 1" in said.out and "++knob = 2" in said.out
    story.pr("refresh", pull.key, "--accept")
    assert story.tree_of("engine.py") == TEXT.replace(b"line 10\n", b"line 10\nknob = 2\n")
    story.commit()

    pull.lands_by_squash()
    story.repo.tag("v2", at="main")
    said = story.pr("refresh")
    assert f"  merged now, landed as {pull.landed[:12]}\n" in said.out
    assert pull.sha in story.state()
    said = story.call("sync", "--onto", "v2", "--json")
    assert [patch["action"] for patch in said.json["patches"]] == ["drop"]
    assert pull.key not in story.state(), "it went with its patch"
    story.commit()
    assert "no news" in story.pr("refresh").out
    assert git(story.root, "status", "--porcelain") == b""


def test_a_sync_records_what_it_saw(story: Story) -> None:
    pull = story.repo.pull("Add a knob")
    pull.push("x").edit("engine.py", b"line 10\n", b"10\n")
    other = story.repo.pull("Another")
    other.push("x").edit("engine.py", b"line 50\n", b"50\n")
    story.pr("add", str(pull.number), "--import")
    story.pr("add", other.key, "--why", "wanted")
    story.commit()
    other.closes()
    story.repo.commit("news").edit("docs/engine.md", b"line 3\n", b"3\n")
    story.repo.tag("v2", at="main")

    story.call("sync", "--onto", "v2", "--dry-run")
    args = ("sync", "--onto", "v2", "--dry-run", "--offline", "--json")
    said = story.call(*args, code=6).json
    assert any("2 pull requests is as of " in note for note in said["upstream"]["notes"])
    assert git(story.root, "status", "--porcelain") == b""
    story.call("sync", "--onto", "v2")

    assert '"state": "closed"' in story.state()
    listed = story.pr("list", "--offline", "--json").json["pulls"]
    assert [each["seen"]["state"] for each in listed] == ["open", "closed"]


def test_news_reach_the_judge(story: Story) -> None:
    """One lands with a tweak, another one's head moves; what landed is taken back here, then there."""
    knobs = b"".join(b"knob_%d = %d\n" % (n, n) for n in range(1, 6))
    pull = story.repo.pull("Add knobs")
    pull.push("x").edit("engine.py", b"line 10\n", b"line 10\n" + knobs)
    other = story.repo.pull("Else")
    other.push("x").edit("docs/engine.md", b"line 30\n", b"30\n")
    story.pr("add", pull.key, "--import")
    story.pr("add", other.key, "--import")
    story.commit()
    pull.lands_by_squash().edit("engine.py", b"knob_3 = 3\n", b"knob_3 = 33\n")
    other.force_push("x").edit("docs/engine.md", b"line 30\n", b"thirty\n")
    story.repo.tag("v2", at="main")

    said = story.call("sync", "--onto", "v2", "--json").json
    verdicts = [(patch["verdict"], patch["action"]) for patch in said["patches"]]
    assert verdicts == [("landed-with-changes", "drop"), ("updated", "keep")]
    story.commit()

    story.pr("add", pull.key, "--revert")
    assert story.tree_of("engine.py", "v2") == TEXT
    story.commit()
    pull.reverted()
    story.repo.tag("v3", at="main")
    said = story.call("sync", "--onto", "v3", "--json").json
    assert [patch["action"] for patch in said["patches"]] == ["keep", "drop"]


def test_a_session_judges_by_what_its_sync_saw(story: Story) -> None:
    """A sync that stops writes nothing; what it saw stays at hand until something is recorded."""
    pull = story.repo.pull("Add a knob")
    pull.push("x").edit("engine.py", b"line 10\n", b"10\n")
    story.pr("add", str(pull.number), "--import")
    story.commit()
    pull.closes()
    story.repo.commit("news").edit("engine.py", b"line 10\n", b"ten\n")
    story.repo.tag("v2", at="main")
    story.call("sync", "--onto", "v2", code=4)
    assert git(story.root, "status", "--porcelain") == b""

    queue = read_queue(find_project(story.root), None)
    assert queue.state.pulls[pull.key].state == "open"
    assert as_seen(queue).state.pulls[pull.key].state == "closed"

    other = story.repo.pull("Another")
    other.push("x").edit("docs/engine.md", b"line 3\n", b"3\n")
    story.pr("add", other.key)
    queue = read_queue(find_project(story.root), None)
    assert as_seen(queue) == queue, "something was recorded since"

    story.call("sync", "--abort")
    story.call("sync", "--onto", "v2", code=4)
    story.call("sync", "--abort")
    pull.reopens()
    story.pr("refresh")
    queue = read_queue(find_project(story.root), None)
    assert as_seen(queue) == queue


def test_what_matters_is_found(story: Story) -> None:
    carried = story.repo.pull("Add a knob to the engine")
    carried.push("x").edit("engine.py", b"line 10\n", b"10\n")
    story.pr("add", carried.key, "--import")
    refused = story.repo.pull("A knob of another kind")
    refused.push("x").write("knob.py", b"1\n")
    story.pr("refuse", refused.key, "--why", "no")
    near = story.repo.pull("Turn the knob at line 12")
    near.push("x").edit("engine.py", b"line 12\n", b"12\n")
    far = story.repo.pull("A knob elsewhere")
    far.push("x").write("far.py", b"1\n")
    story.repo.pull("Unrelated").push("x").write("z.py", b"1\n")

    said = story.pr("find", "knob", "--json").json

    assert [each["pr"] for each in said["pulls"]] == [near.key, far.key]
    reasons = [reason["says"] for reason in said["pulls"][0]["reasons"]]
    assert reasons == ["title says 'knob'", "changes engine.py, as our patches do"]
    assert (said["left_out"]["tracked"], said["left_out"]["refused"]) == (1, 1)
    told = story.pr("find", "knob").out
    assert "title says 'knob' (+30)" in told and "Left out: 1 tracked, 1 refused." in told


def test_a_rebase_is_taken_back_whole(story: Story) -> None:
    pull = story.repo.pull("Two steps")
    pull.push("One").edit("engine.py", b"line 10\n", b"10\n")
    pull.push("Two").edit("engine.py", b"line 12\n", b"12\n")
    story.repo.commit("else").edit("engine.py", b"line 40\n", b"40\n")
    pull.lands_by_rebase()
    story.repo.commit("later").edit("engine.py", b"line 50\n", b"50\n")
    story.repo.tag("v2", at="main")
    story.call("sync", "--onto", "v2")

    said = story.pr("add", str(pull.number), "--revert")

    want = TEXT.replace(b"line 40\n", b"40\n").replace(b"line 50\n", b"50\n")
    assert story.tree_of("engine.py", "v2") == want
    assert "is not known" not in said.out
    assert f"commit {pull.landed}" in next((story.root / "series").glob("*.patch")).read_text()


def test_a_merge_is_taken_back(story: Story) -> None:
    pull = story.repo.pull("Two steps")
    pull.push("One").edit("engine.py", b"line 10\n", b"10\n")
    story.repo.commit("else").edit("engine.py", b"line 40\n", b"40\n")
    pull.lands_by_merge()
    story.repo.tag("v2", at="main")
    story.call("sync", "--onto", "v2")

    story.pr("add", str(pull.number), "--revert", "--name", "without-the-steps")

    assert story.tree_of("engine.py", "v2") == TEXT.replace(b"line 40\n", b"40\n")
    assert (story.root / "series/0001-without-the-steps.patch").is_file()


def test_heads_from_elsewhere_than_the_releases(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on archives: the store of the releases has no history, and the file moved since.

    The pull request changes `core/engine.py`, which is `engine.py` in our base.
    """
    mirror = story.root.parent / "mirror.git"
    git(story.root.parent, "clone", "-q", "--bare", str(story.repo.path), str(mirror))
    file = story.root / "upstream/engine.toml"
    text = file.read_text().replace(f'[[sources]]\ngit = "{story.forge.git(story.repo)}"', "")
    file.write_text(f'{text}\n[[sources]]\ngit = "{mirror}"\n')
    change = story.repo.commit("move it").delete("engine.py").delete("docs/engine.md")
    change.write("core/engine.py", TEXT.replace(b"line 50\n", b"50, moved\n"))
    change.write("core/other.py", lines(range(200, 260)))
    pull = story.repo.pull("Add a knob")
    pull.push("x").edit("core/engine.py", b"line 10\n", b"10\n")

    story.pr("add", pull.key, "--import")

    assert story.tree_of("engine.py") == TEXT.replace(b"line 10\n", b"10\n")
    story.commit()
    pull.force_push("x").edit("core/engine.py", b"line 10\n", b"ten\n")
    story.pr("refresh", pull.key, "--accept")
    assert story.tree_of("engine.py") == TEXT.replace(b"line 10\n", b"ten\n")


def test_a_fresh_machine_gets_the_former_head(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pinned head was exchanged upstream and is no ref any more; another machine asks by id."""
    pull = story.repo.pull("Add a knob")
    pull.push("x").edit("engine.py", b"line 10\n", b"10\n")
    story.pr("add", pull.key, "--import")
    pull.force_push("x").edit("engine.py", b"line 10\n", b"ten\n")
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "another"))

    said = story.pr("refresh", code=4)

    assert "-+10" in said.out and "++ten" in said.out
    story.pr("refresh", pull.key, "--accept")
    assert story.tree_of("engine.py") == TEXT.replace(b"line 10\n", b"ten\n")


def test_what_is_not_there_is_not_tracked(story: Story) -> None:
    pull = story.repo.pull("Add a knob")
    pull.push("x").edit("engine.py", b"line 10\n", b"10\n")
    before = story.state()
    said = story.pr("add", "acme/engine#4711", code=6)
    assert "4711" in said.err and "nothing" not in said.out
    assert "track" not in (story.root / "upstream/engine.toml").read_text()
    story.pr("add", "acme/engine#4711", "--import", code=6)
    assert "4711" in story.pr("show", "4711", code=6).err
    assert story.state() == before


def test_strangers_titles(story: Story) -> None:
    pull = story.repo.pull("\x1b]0;owned\x07[red]Add[/red] `--upload-pack=x` ../../etc \u202e")
    pull.push("x").edit("engine.py", b"line 10\n", b"10\n")

    story.pr("add", str(pull.number), "--import")

    (file,) = (story.root / "series").glob("*.patch")
    assert file.name == "0001-x1b-0-owned-x07-red-add-red-upload-pack-x-etc-u202.patch"
    for said in (story.pr("list"), story.pr("show", pull.key), story.pr("refresh")):
        assert "\x1b" not in said.out and "\u202e" not in said.out and "\x07" not in said.out
    assert "[red]Add[/red]" in story.pr("show", pull.key).out


def test_without_a_forge_what_is_recorded_stays(story: Story) -> None:
    """Every answer is a 502: heads still come by git, and the recorded state stays."""
    pull = story.repo.pull("Add a knob")
    pull.push("x").edit("engine.py", b"line 10\n", b"10\n")
    story.pr("add", pull.key, "--why", "wanted")
    before = story.state()
    story.forge.fails("graphql", status=401, times=50)
    story.forge.fails("rest", status=401, times=50)

    said = story.pr("refresh", code=6)

    assert "Bad credentials" in said.out or "token" in said.out
    assert story.state() == before
    assert story.pr("list", "--offline", "--json").json["pulls"][0]["seen"]["state"] == "open"


def test_another_sync_over_a_session_looks_again(story: Story) -> None:
    """The one that stopped asked nobody; `sync` again, with a network, sees what was merged."""
    pull = story.repo.pull("Add a knob")
    pull.push("x").edit("engine.py", b"line 10\n", b"10\n")
    story.pr("add", pull.key, "--import")
    story.commit()
    story.repo.commit("news").edit("engine.py", b"line 10\n", b"ten\n")
    story.repo.tag("v2", at="main")
    story.call("sync", "--onto", "v2", "--dry-run", code=4)
    story.call("sync", "--onto", "v2", "--offline", code=4)
    pull.closes()

    said = story.call("sync", "--onto", "v2", "--json", code=4).json

    signals = [one["signal"] for one in said["patches"][0]["evidence"]]
    assert "pull-closed" in signals
