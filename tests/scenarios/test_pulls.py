"""Pull requests upstream: tracked, taken into the series, followed, refused, taken back.

Upstream is a repository with `refs/pull/N/head`, as every mirror has; nobody else is asked.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import crash
from tests.support.history import Commit, History, git, lines, submodule
from tests.support.inside import Said, call
from tests.support.kit import bare_repository

TEXT = lines(range(1, 61))
KEY = "acme/engine#7"


@dataclass(repr=False)
class Story:
    """A queue on v1 of `acme/engine`, whose pull requests are branches `pull-N` of the history."""

    folder: Path
    upstream: History

    @property
    def root(self) -> Path:
        return self.folder / "queue"

    def pull(self, number: int, at: str = "v1", message: str = "Add a knob") -> Commit:
        """The first commit of a pull request."""
        return self.upstream.branch(f"pull-{number}", at=at).commit(message)

    def save(self) -> Story:
        self.upstream.save()
        for name in self.upstream.tips:
            if name.startswith("pull-"):
                self.head(int(name.removeprefix("pull-")), f"refs/heads/{name}")
        return self

    def head(self, number: int, at: str) -> str:
        """Where the forge says that the pull request's head is."""
        git(self.upstream.path, "update-ref", f"refs/pull/{number}/head", at)
        return git(self.upstream.path, "rev-parse", at).decode().strip()

    def start(self, base: str = "v1") -> Story:
        self.save()
        bare_repository(self.root)
        self.call("init", "engine", "--git", str(self.upstream.path), "--base", base)
        config = self.root / "upstream/engine.toml"
        text = config.read_text().replace("[[sources]]", 'github = "acme/engine"\n\n[[sources]]')
        config.write_text(text)
        self.commit()
        return self

    def call(self, *args: str, code: int | None = 0) -> Said:
        return call(self.root, *args, code=code)

    def pr(self, *args: str, code: int | None = 0) -> Said:
        """Offline: a repository at a path is read in place, and there is nobody else to ask."""
        return self.call("pr", *args, "--offline", code=code)

    def commit(self) -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--no-verify", "-m", "queue")

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for folder in ("series", "upstream")
            for path in sorted((self.root / folder).rglob("*"))
            if path.is_file()
        }

    @property
    def settings(self) -> str:
        return (self.root / "upstream/engine.toml").read_text()

    def patch(self, name: str = "") -> str:
        (found,) = (self.root / "series").glob(f"*{name}.patch")
        return found.read_text()

    def content(self, path: str) -> bytes:
        """What the runner tree holds at `path`."""
        self.call("export", "--git", str(self.upstream.path), "--branch", "out", "--force")
        return git(self.upstream.path, "show", f"out:{path}")


@pytest.fixture
def story(tmp_path: Path) -> Story:
    upstream = History(tmp_path / "upstream.git")
    start = upstream.commit("start").write("engine.py", TEXT).write("tests/test_engine.py", TEXT)
    start.write("docs/engine.md", TEXT).tag("v1")
    return Story(tmp_path, upstream)


def test_a_pull_request_becomes_a_patch(story: Story) -> None:
    """Upstream moved on since the pull request was opened; our base is older than its base."""
    story.upstream.commit("later").edit("engine.py", b"line 50\n", b"line 50, later\n")
    story.upstream.tips["later"] = story.upstream.tips["main"]
    change = story.pull(7, at="later", message="Add a knob\n\nIt turns.").by(b"Grace", b"g@x.org")
    change.edit("engine.py", b"line 10\n", b"line 10\nknob = 1\n")
    change.commit("More of it").edit("engine.py", b"line 30\n", b"line 30, turned\n")
    story.start()

    said = story.pr("add", "7", "--import", "--topic", "knobs", "--json").json

    assert [patch["file"] for patch in said["patches"]] == ["0001-add-a-knob.patch"]
    wanted = TEXT.replace(b"line 10\n", b"line 10\nknob = 1\n")
    wanted = wanted.replace(b"line 30\n", b"line 30, turned\n")
    assert story.content("engine.py") == wanted, "and nothing of what upstream did meanwhile"
    head = story.head(7, "refs/pull/7/head")
    text = story.patch()
    assert text.startswith("From: Grace <g@x.org>\nDate: ")
    assert (
        "\nSubject: Add a knob\nOrigin: upstream, https://github.com/acme/engine/pull/7\n" in text
    )
    assert "\nUpstream-Status: Submitted\n" in text
    assert f"\nPatchq-Pr: acme/engine#7 @ {head}\nPatchq-Topic: knobs\n" in text
    assert "* Add a knob\n* More of it" in text
    story.call("check")


def test_left_out_files_are_said_and_recorded(story: Story) -> None:
    change = story.pull(7).edit("engine.py", b"line 10\n", b"10\n")
    change.edit("tests/test_engine.py", b"line 3\n", b"3\n").edit(
        "docs/engine.md", b"line 3\n", b""
    )
    story.start()

    said = story.pr("add", KEY, "--import", "--exclude", "tests/*", "docs/*")

    assert "left out: docs/engine.md" in said.out and "left out: tests/test_engine.py" in said.out
    assert "Patchq-Exclude: tests/*\nPatchq-Exclude: docs/*\n" in story.patch()
    assert story.patch().count("diff --git") == 1
    story.call("undo")
    said = story.pr("add", "7", "--import", "--exclude", "*", code=1)
    assert "--exclude leaves nothing of it" in said.err


def test_one_patch_a_commit(story: Story) -> None:
    change = story.pull(7, message="First\n\nWhy it is so.").edit(
        "engine.py", b"line 10\n", b"10\n"
    )
    change = change.commit("Tests only").edit("tests/test_engine.py", b"line 3\n", b"3\n")
    change.commit("Second").edit("engine.py", b"10\n", b"ten\n")
    story.start()

    args = ("add", "7", "--import", "--per-commit", "--exclude", "tests/*", "--json")
    said = story.pr(*args).json

    assert [patch["subject"] for patch in said["patches"]] == ["First", "Second"]
    assert story.content("engine.py") == TEXT.replace(b"line 10\n", b"ten\n")
    assert "Why it is so." in story.patch("first")
    assert "Patchq-Pr: acme/engine#7 @ " in story.patch("second")


def test_every_conflict_is_shown_and_nothing_is_half_imported(story: Story) -> None:
    change = story.pull(7, message="One").edit("engine.py", b"line 10\n", b"10, theirs\n")
    change = change.commit("Two").edit("docs/engine.md", b"line 20\n", b"20\n")
    change.commit("Three").edit("tests/test_engine.py", b"line 30\n", b"30, theirs\n")
    ours = story.pull(8, message="Ours").edit("engine.py", b"line 10\n", b"10, ours\n")
    ours.edit("tests/test_engine.py", b"line 30\n", b"30, ours\n")
    story.start()
    story.pr("add", "8", "--import")
    before = story.files()

    said = story.pr("add", "7", "--import", "--per-commit", "--json", code=4).json
    assert [stop["patch"] for stop in said["stops"]] == ["One", "Three"]
    assert [c["path"] for stop in said["stops"] for c in stop["conflicts"]] == [
        "engine.py",
        "tests/test_engine.py",
    ]
    told = story.pr("add", "7", "--import", code=4).out
    assert "engine.py:10: content" in told and "tests/test_engine.py:30: content" in told
    assert "10, theirs" in told and "10, ours" in told
    assert story.files() == before


def test_what_the_base_has_already(story: Story) -> None:
    """The squash landed before the release that we stand on."""
    story.pull(7).edit("engine.py", b"line 10\n", b"10\n").commit().edit(
        "engine.py", b"line 12\n", b"12\n"
    )
    landed = story.upstream.branch("main").commit("Add a knob (#7)")
    landed.edit("engine.py", b"line 10\n", b"10\n").edit("engine.py", b"line 12\n", b"12\n")
    landed.tag("v2")
    story.start("v2")
    before = story.files()

    said = story.pr("add", "7", "--import", code=1)

    assert "v2 and the series have all of acme/engine#7 already" in said.err
    assert story.files() == before


def test_a_merged_one_starts_where_it_left_its_branch(story: Story) -> None:
    """Its head is part of the branch: the merge's other side says where it started."""
    story.pull(7).edit("engine.py", b"line 10\n", b"10\n")
    story.upstream.branch("main").commit("else").edit("docs/engine.md", b"line 3\n", b"3\n")
    story.start()
    up = story.upstream.path
    tree = git(up, "merge-tree", "--write-tree", "main", "pull-7").decode().strip()
    args = ("commit-tree", tree, "-p", "main", "-p", "pull-7", "-m", "Merge pull request #7 from x")
    git(up, "update-ref", "refs/heads/main", git(up, *args).decode().strip())

    story.pr("add", "7", "--import")

    assert story.content("engine.py") == TEXT.replace(b"line 10\n", b"10\n")
    assert story.content("docs/engine.md") == TEXT


def test_a_merge_into_a_branch_that_was_merged_in_turn(story: Story) -> None:
    """Pull requests go into `dev`, and `dev` into `main`: the merge is not on main's own line."""
    story.pull(7).edit("engine.py", b"line 10\n", b"10\n")
    story.upstream.branch("main").commit("else").edit("docs/engine.md", b"line 3\n", b"3\n")
    story.start()
    up = story.upstream.path

    def merge(message: str, first: str, second: str) -> str:
        tree = git(up, "merge-tree", "--write-tree", first, second).decode().strip()
        parents = ("-p", first, "-p", second)
        return git(up, "commit-tree", tree, *parents, "-m", message).decode().strip()

    dev = merge("Merge pull request #7 from x", "v1", "pull-7")
    git(up, "update-ref", "refs/heads/main", merge("Merge branch 'dev'", "main", dev))

    story.pr("add", "7", "--import")
    assert story.content("engine.py") == TEXT.replace(b"line 10\n", b"10\n")
    assert story.content("docs/engine.md") == TEXT

    story.call("sync", "--onto", "main", "--offline")
    said = story.pr("add", "7", "--revert")
    assert "is not known" not in said.out
    assert story.content("engine.py") == TEXT


def test_what_stands_twice_in_a_carried_one_stops_no_other(story: Story) -> None:
    twice = b"if 1:\n    def turn():\n        return 1\nelse:\n    def turn():\n        return 2\n"
    story.pull(7, message="Two ways").write("ways.py", twice)
    story.pull(8, message="Else").edit("engine.py", b"line 10\n", b"10\n")
    story.start()
    story.pr("add", "7", "--import")

    story.pr("add", "8", "--import")

    story.call("check")


# Heads that move


OURS = b"line 40\nof our own\n"


def moved(story: Story, *, edited: bool = False) -> str:
    """#7 is carried, another patch stands on its lines, and its head moved. The new head."""
    story.pull(7).edit("engine.py", b"line 10\n", b"line 10\nknob = 1\nknob_max = 2\n")
    new = story.upstream.branch("new-7", at="v1").commit("Add a knob")
    new.edit("engine.py", b"line 10\n", b"line 10\nknob = 3\nknob_max = 2\n")
    new.edit("docs/engine.md", b"line 3\n", b"line 3, about knobs\n")
    above = story.pull(8, at="pull-7", message="Above")
    above.edit("engine.py", b"knob_max = 2\n", b"knob_max = 2\nknob_min = 0\n")
    story.start()
    story.pr("add", "7", "--import")
    up = story.upstream.path
    if edited:
        path = next((story.root / "series").glob("*-add-a-knob.patch"))
        base = git(up, "rev-parse", "v1").decode().strip()
        blob = TEXT.replace(b"line 10\n", b"line 10\nknob = 1\nknob_max = 2\n")
        blob = blob.replace(b"line 40\n", OURS)
        work = story.folder / "edit"
        git(story.folder, "clone", "-q", str(up), str(work))
        git(work, "checkout", "-q", base)
        (work / "engine.py").write_bytes(blob)
        diff = git(work, "diff", "--full-index").decode()
        path.write_text(path.read_text().partition("\n---\n")[0] + "\n---\n" + diff)
        story.call("sync", "--onto", "v1", "--offline")
    story.call("import", "--git", str(up), "pull-7..pull-8")
    story.commit()
    return story.head(7, "refs/heads/new-7")


def test_a_moved_head_is_shown_and_stays_pinned(story: Story) -> None:
    moved(story)
    series = {name: data for name, data in story.files().items() if name.startswith("series")}

    said = story.pr("refresh", code=4)

    assert "head moved: " in said.out
    assert "-+knob = 1" in said.out and "++knob = 3" in said.out
    assert "docs/engine.md" in said.out, "it changes another file now"
    assert "patchq pr refresh acme/engine#7 --accept" in said.out
    after = {name: data for name, data in story.files().items() if name.startswith("series")}
    assert after == series


def test_one_that_no_patch_carries_asks_nothing(story: Story) -> None:
    """It is told once that it moved; how, where it is named; `--accept` moves its pin."""
    story.pull(7).edit("engine.py", b"line 10\n", b"10\n")
    new = story.upstream.branch("new-7", at="v1").commit("x")
    new.edit("engine.py", b"line 10\n", b"ten\n")
    story.start()
    story.pr("add", "7", "--why", "wanted")
    head = story.head(7, "refs/heads/new-7")

    assert f"its head is {head[:12]}" in story.pr("refresh").out
    assert "no news" in story.pr("refresh").out
    assert f" -> {head[:10]}" in story.pr("list").out
    told = story.pr("refresh", "7").out
    assert "head moved: " in told and "++ten" in told
    assert "only the pin moved" in story.pr("refresh", "7", "--accept").out
    assert story.pr("list", "--json").json["pulls"][0]["head_is"] == "same"


def test_the_new_head_is_taken(story: Story) -> None:
    """Under the same name and number; what stands above is carried onto it."""
    new = moved(story)

    said = story.pr("refresh", "7", "--accept", "--json").json

    assert [each["done"] for each in said["pulls"]] == ["accepted"]
    assert said["patches"][0]["file"] == "0001-add-a-knob.patch"
    want = b"line 10\nknob = 3\nknob_max = 2\nknob_min = 0\n"
    assert story.content("engine.py") == TEXT.replace(b"line 10\n", want)
    assert story.content("docs/engine.md") == TEXT.replace(b"line 3\n", b"line 3, about knobs\n")
    assert f"Patchq-Pr: acme/engine#7 @ {new}\n" in story.patch("add-a-knob")
    story.call("check")
    assert "no news" in story.pr("refresh").out


def test_our_own_edits_survive_the_new_head(story: Story) -> None:
    moved(story, edited=True)

    said = story.pr("refresh", "7", "--accept", "--json").json

    assert said["own_edits"] == ["add-a-knob"]
    want = TEXT.replace(b"line 10\n", b"line 10\nknob = 3\nknob_max = 2\nknob_min = 0\n")
    assert story.content("engine.py") == want.replace(b"line 40\n", OURS)


def test_a_new_head_that_conflicts_changes_nothing(story: Story) -> None:
    moved(story)
    up = story.upstream.path
    story.upstream.branch("torn-7", at="v1").commit("Another way").edit(
        "engine.py", b"line 10\n", b"line 10\nno_knob_at_all = 9\n"
    )
    story.upstream.save()
    git(up, "update-ref", "refs/pull/7/head", "refs/heads/torn-7")
    before = story.files()

    said = story.pr("refresh", "7", "--accept", code=4)

    assert "Above cannot be put on the series" in said.out
    assert story.files() == before


def test_a_head_that_is_held_is_not_asked_again(story: Story) -> None:
    new = moved(story)
    story.pr("refresh", "7", "--hold", "--why", "slower")

    told = (story.root / "upstream/decisions.toml").read_text()
    assert f'evidence = "{new}"' in told and 'answer = "hold"' in told
    assert "moved, held" in story.pr("show", "7").out
    story.pr("refresh")
    story.upstream.branch("third-7", at="v1").commit("x").edit("engine.py", b"line 10\n", b"3rd\n")
    story.upstream.save()
    story.head(7, "refs/heads/third-7")
    assert "head moved" in story.pr("refresh", code=4).out, "another head is another question"


def test_a_held_patch_keeps_its_head(story: Story) -> None:
    moved(story)
    story.call("hold", "above", "--why", "in the way")
    story.call("hold", "add-a-knob", "--why", "broken")
    before = story.files()

    said = story.pr("refresh", "7", "--accept", code=1)

    assert "add-a-knob of acme/engine#7 is held" in said.err
    assert story.files() == before


# Taking back


def squash(story: Story) -> None:
    change = story.pull(7).edit("engine.py", b"line 10\n", b"10\n")
    change.commit("more").edit("engine.py", b"line 12\n", b"12\n")
    landed = story.upstream.branch("main").commit("Add a knob (#7)")
    landed.edit("engine.py", b"line 10\n", b"10\n").edit(
        "engine.py", b"line 12\n", b"12, reviewed\n"
    )
    story.upstream.branch("main").commit("Later").edit("engine.py", b"line 50\n", b"50\n").tag("v2")


def test_a_squash_is_taken_back_as_it_landed(story: Story) -> None:
    squash(story)
    story.start("v2")

    story.pr("add", "7", "--revert")

    assert story.content("engine.py") == TEXT.replace(b"line 50\n", b"50\n")
    text = story.patch()
    assert 'Subject: Revert "Add a knob (#7)"' in text
    assert "Patchq-Drop-When: reverted acme/engine#7\n" in text
    assert "Patchq-Pr:" not in text, "it does not carry the pull request"
    assert "Upstream-Status: Inappropriate [takes acme/engine#7 back]" in text


def test_what_landed_without_a_number_is_taken_back_by_its_head(story: Story) -> None:
    """A rebase leaves no number upstream, and no forge is asked here: so it is said."""
    change = story.pull(7, message="One").edit("engine.py", b"line 10\n", b"10\n")
    change.commit("Two").edit("engine.py", b"line 12\n", b"12\n")
    main = story.upstream.branch("main").commit("else").edit("engine.py", b"line 50\n", b"50\n")
    main.commit("One").edit("engine.py", b"line 10\n", b"10\n")
    story.upstream.commit("Two").edit("engine.py", b"line 12\n", b"12\n").tag("v2")
    story.start("v2")

    said = story.pr("add", "7", "--revert")

    assert "what landed of acme/engine#7 is not known: its head is taken back" in said.out
    assert story.content("engine.py") == TEXT.replace(b"line 50\n", b"50\n")


def test_a_revert_goes_once_upstream_reverted(story: Story) -> None:
    squash(story)
    back = story.upstream.branch("main").commit('Revert "Add a knob (#7)" (#9)')
    back.edit(
        "engine.py",
        b"10\n",
        b"line 10\n",
    ).edit("engine.py", b"12, reviewed\n", b"line 12\n")
    back.tag("v3")
    story.start("v2")
    story.pr("add", "7", "--revert")
    story.commit()

    said = story.call("sync", "--onto", "v3", "--offline", "--json").json

    assert [patch["action"] for patch in said["patches"]] == ["drop"]


# Tracking


def test_a_life_on_the_list(story: Story) -> None:
    story.pull(7).edit("engine.py", b"line 10\n", b"10\n")
    story.pull(9).edit("engine.py", b"line 20\n", b"20\n")
    story.start()
    before = story.files()

    story.pr("add", "#7", "--why", 'it "turns"')
    story.pr("add", "https://github.com/acme/engine/pull/9", "--why", "later")
    assert '[[track]]\npr = "acme/engine#7"\nwhy = "it \\"turns\\""\n' in story.settings
    listed = story.pr("list", "--json").json["pulls"]
    assert [each["pr"] for each in listed] == ["acme/engine#7", "acme/engine#9"]
    assert [each["why"] for each in listed] == ['it "turns"', "later"]
    assert listed[0]["pinned"] == listed[0]["seen"]["head"]
    assert 'it "turns"' in story.pr("list").out

    story.pr("refuse", "9", "--why", "ours is better")
    assert "acme/engine#9" not in story.settings
    assert "refused: ours is better" in story.pr("show", "9").out
    story.call("pr", "drop", "7")
    assert "acme/engine#7" not in story.pr("list").out
    assert story.call("pr", "drop", "7", code=1).err.startswith(
        "patchq: acme/engine#7 is not tracked"
    )

    for _ in range(4):
        story.call("undo")
    assert story.files() == before


def test_adding_a_refused_one_takes_the_refusal_back(story: Story) -> None:
    story.pull(7).edit("engine.py", b"line 10\n", b"10\n")
    story.start()
    story.pr("refuse", "7", "--why", "too early")

    said = story.pr("add", "7", "--import")

    assert "it was refused (too early); that answer is taken away" in said.out
    assert story.pr("list", "--json").json["pulls"][0]["decision"] is None
    told = story.pr("refuse", "7", "--why", "no", code=1).err
    assert "cannot be refused: 0001-add-a-knob.patch names it" in told


def test_what_stays_after_a_drop_is_said(story: Story) -> None:
    story.pull(7).edit("engine.py", b"line 10\n", b"10\n")
    story.start()
    story.pr("add", "7", "--import", "--why", "watch it")

    said = story.call("pr", "drop", "7")

    assert "its state is still looked at, for 0001-add-a-knob.patch names it" in said.out
    told = story.call("pr", "drop", "7", code=1).err
    assert "acme/engine#7 is not tracked: 0001-add-a-knob.patch names it" in told


def test_of_another_upstream_it_is_tracked_only(story: Story) -> None:
    story.start()

    said = story.pr("add", "other/kernels#4", "--why", "we build on it").out

    assert "other/kernels#4 is tracked." in said
    told = story.pr("add", "other/kernels#4", "--import", code=1).err
    assert "patches acme/engine, not other/kernels" in told


def test_it_goes_to_the_queue_of_its_upstream(story: Story) -> None:
    story.start()
    other = History(story.folder / "kernels.git")
    other.commit("start").write("k.cu", TEXT).tag("v1")
    other.branch("pull-4", at="v1").commit("Faster").edit("k.cu", b"line 3\n", b"3\n")
    other.save()
    git(other.path, "update-ref", "refs/pull/4/head", "pull-4")
    story.call("init", "kernels", "--git", str(other.path), "--base", "v1")
    file = story.root / "upstream/kernels.toml"
    text = file.read_text().replace("[[sources]]", 'github = "other/kernels"\n\n[[sources]]')
    file.write_text(text)

    said = story.pr("add", "Other/Kernels#4", "--import", "--json").json

    assert said["queue"] == "kernels"
    assert (story.root / "series/kernels/0001-faster.patch").is_file()
    assert (
        "Patchq-Pr: other/kernels#4 @ "
        in (story.root / "series/kernels/0001-faster.patch").read_text()
    )


# Strangers' texts


@pytest.mark.parametrize(
    "text",
    [
        "../../etc#1",
        "acme/engine#0",
        "acme/../x#7",
        "--upload-pack=x#7",
        "a b#7",
        "acme/engine#7;x",
    ],
)
def test_no_pull_request(story: Story, text: str) -> None:
    story.start()
    before = story.files()
    assert story.call("pr", "add", "--offline", "--why", "x", "--", text, code=1).err
    assert story.files() == before


def test_hostile_commits_are_shown_harmlessly(story: Story) -> None:
    """Its message brings fields of ours, escapes, and a diff; a command it must not become."""
    evil = (
        b"\x1b]0;owned\x07Add\n\nPatchq-Check: touch /tmp/x\ndiff --git a/x b/x\n\nPatchq-Name: a\n"
    )
    change = story.pull(7, message="x")
    change.message = evil + b"Patchq-Pr: evil/x#1\nOrigin: https://x/evil/x/pull/1\n"
    change.by(b"E\x1b[31mve").edit("engine.py", b"line 10\n", b"10\n")
    story.start()

    story.pr("add", "7", "--import")

    text = story.patch()
    head = text.partition("\n\n")[0]
    assert "\x1b" not in head
    assert "Patchq-Check" not in head and "evil" not in head
    assert "Patchq-Name: x1b-0-owned-x07add" in head
    assert story.content("engine.py") == TEXT.replace(b"line 10\n", b"10\n")
    assert "\x1b" not in story.call("series").out + story.pr("show", "7").out


def test_a_submodule_is_refused(story: Story) -> None:
    story.pull(7).write("third", submodule("1" * 40))
    story.start()
    before = story.files()
    assert "submodule" in story.pr("add", "7", "--import", code=1).err
    assert story.files() == before


# Kills


@pytest.mark.parametrize(
    "args", [("add", "7", "--import", "--why", "x"), ("refresh", "7", "--accept")]
)
def test_a_kill_leaves_all_or_nothing(
    story: Story, args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At steps of the record; `status` completes or takes back, and undo brings all back."""
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767323045")
    (story.folder / "temp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(story.folder / "temp"))
    if args[0] == "refresh":
        moved(story)
    else:
        story.pull(7).edit("engine.py", b"line 10\n", b"10\n")
        story.start()
    old, kept = story.files(), story.folder / "kept"
    shutil.copytree(story.root, kept, symlinks=True)

    def prepare() -> None:
        shutil.rmtree(story.root)
        shutil.copytree(kept, story.root, symlinks=True, copy_function=os.link)

    def run(step: int) -> crash.Run:
        return crash.forked(lambda: call(story.root, "pr", *args, "--offline"), step)

    done = run(crash.NEVER)
    new = story.files()
    assert done.code == 0 and new != old
    count = {True: 0, False: 0}

    def check(_: crash.Run) -> None:
        story.call("status")
        found = story.files()
        assert found in (old, new)
        count[found == new] += 1
        if found == new and count[True] == 1:
            story.call("undo")
            assert story.files() == old

    prepare()
    done = run(crash.NEVER)
    first = next(n for n, name in enumerate(done.effects, 1) if "journal" in name)
    steps = [*range(first, len(done.effects), 3), len(done.effects)]
    # A run may have some effects less than the one that was counted: 11 of 14 on a busy machine.
    assert crash.every_step(run, check, prepare=prepare, steps=steps) > len(steps) / 2
    assert count[False] > 2 and count[True] > 0
