"""A pull request through three releases: it lands with a review tweak, is taken back, lands again.

The queue knows of it what its header says; upstream's history says the rest.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.history import History, git, lines
from tests.support.inside import Said, call
from tests.support.kit import bare_repository

TEXT = lines(range(1, 41))
OURS = b"".join(b"    knob_%d = read(setting_%d)\n" % (n, n) for n in range(1, 9))
THEIRS = OURS.replace(b"read(setting_3)", b"read(setting_3, default=0)")
"""Review asked for a default."""
AT = b"line 10\n"


class Story:
    """The upstream and the queue of it, on v0.29.0, with two patches: the second builds on the first."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "queue"
        up = self.upstream = History(folder / "upstream.git")
        up.commit("Start").write("engine.py", TEXT).write("other.py", TEXT).tag("v0.29.0")
        landed = up.commit("[Core] Read the knobs (#57477)").by(b"Rita Reviewer")
        landed.edit("engine.py", AT, AT + THEIRS).write("tests/test_knobs.py", b"def test(): ...\n")
        up.commit("[Doc] Unrelated (#57480)").edit("other.py", b"line 3\n", b"3\n").tag("v0.30.0")
        back = up.commit('Revert "[Core] Read the knobs (#57477)" (#57900)')
        back.edit("engine.py", AT + THEIRS, AT).delete("tests/test_knobs.py").tag("v0.31.0")
        again = up.commit("[Core] Knobs, with the scheduler's consent (#58123)")
        again.edit("engine.py", AT, AT + THEIRS).tag("v0.32.0")
        topic = up.branch("topic", at="v0.29.0").commit("[Core] Read the knobs")
        topic.edit("engine.py", AT, AT + OURS)
        more = topic.commit("[Core] Use the last knob")
        more.edit("engine.py", b"    knob_8 = read(setting_8)\n", b"    knob_8 = ask(setting_8)\n")
        up.save()
        bare_repository(self.root)
        self.call("init", "demo", "--git", str(up.path), "--base", "v0.29.0")
        self.call("import", "--git", str(up.path), "v0.29.0..topic")
        self.commit()

    def call(self, *args: str, code: int | None = 0) -> Said:
        return call(self.root, *args, code=code)

    def commit(self) -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--no-verify", "-m", "queue")

    def names_its_request(self) -> Story:
        """The first patch gets the field that `patchq pr add --import` writes."""
        (path,) = (self.root / "series").glob("0001-*.patch")
        text = path.read_bytes()
        head = git(self.upstream.path, "rev-parse", "topic~").decode().strip()
        path.write_bytes(
            text.replace(
                b"\n\n---\n", b"\nPatchq-Pr: acme/engine#57477 @ %b\n\n---\n" % head.encode(), 1
            )
        )
        self.commit()
        return self

    def sync(self, onto: str, code: int | None = 0) -> Said:
        return self.call("sync", "--onto", onto, "--json", code=code)

    def column(self, said: Said, key: str) -> list[object]:
        return [patch[key] for patch in said.json["patches"]]

    def text(self, path: str) -> bytes:
        """The file as the runner has it."""
        tree = self.call("tree").out.strip()
        (store,) = (Path(self.root).parent / "cache" / "stores").glob("git-*")
        return git(store, "cat-file", "blob", f"{tree}:{path}")


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "cache"))
    return Story(tmp_path)


def test_it_lands_with_a_review_tweak(story: Story) -> None:
    said = story.names_its_request().sync("v0.30.0")

    assert story.column(said, "verdict") == ["landed-with-changes", "needed"]
    first, second = said.json["patches"]
    assert re.fullmatch(
        r"landed with changes in v0\.30\.0 as [0-9a-f]{10} \(#57477\): upstream's version differs"
        r" from ours in 1 hunk, shown below; taking upstream's",
        first["evidence"][0]["detail"],
    )
    assert (
        first["evidence"][0]["ref"]
        == git(story.upstream.path, "rev-parse", "v0.30.0~").decode().strip()
    )
    assert (
        "-+    knob_3 = read(setting_3)\n++    knob_3 = read(setting_3, default=0)"
        in first["range_diff"]
    )
    assert (first["file"], second["action"]) == (None, "keep")
    # What built on ours stands on upstream's version now.
    wanted = THEIRS.replace(b"read(setting_8)", b"ask(setting_8)")
    assert story.text("engine.py") == TEXT.replace(AT, AT + wanted)


def test_without_a_number_its_lines_tell(story: Story) -> None:
    said = story.sync("v0.30.0")

    assert story.column(said, "verdict") == ["landed-with-changes", "needed"]
    assert "(#57477)" in said.json["patches"][0]["evidence"][0]["detail"]


@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
def test_it_is_taken_back_and_kept(story: Story, named: bool) -> None:
    if named:
        story.names_its_request()
    said = story.sync("v0.31.0")

    assert story.column(said, "verdict")[0] == "reverted"
    assert story.column(said, "action") == ["keep", "keep"]
    told = said.json["patches"][0]["evidence"][0]
    assert (told["signal"], told["says"]) == ("reverted", "needed")
    assert "(#57477) brought it" in told["detail"]
    assert "(#57900) took it back in v0.31.0" in told["detail"]
    assert OURS[:40] in story.text("engine.py")


@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize(
    "steps", [["v0.32.0"], ["v0.31.0", "v0.32.0"]], ids=["at once", "by steps"]
)
def test_it_lands_again_under_another_number(story: Story, named: bool, steps: list[str]) -> None:
    if named:
        story.names_its_request()
    for onto in steps:
        said = story.sync(onto)
        story.commit()

    assert story.column(said, "verdict")[0] == "landed-with-changes"
    assert story.column(said, "action") == ["drop", "keep"]
    assert "in v0.32.0 as" in said.json["patches"][0]["evidence"][0]["detail"]
    assert "(#58123)" in said.json["patches"][0]["evidence"][0]["detail"]


def test_a_retired_one_that_is_taken_back_is_told_of(story: Story) -> None:
    """It went with v0.30.0; v0.31.0 has it no more, and the runner neither."""
    story.sync("v0.30.0")
    story.commit()

    said = story.sync("v0.31.0", code=None)

    (note,) = [note for note in said.json["upstream"]["notes"] if "retired" in note]
    assert "0001-read-the-knobs.patch was retired as upstream's, and upstream took it back:" in note
    assert ' Revert "[Core] Read the knobs (#57477)" (#57900), by Ada Tester, 2025-06-' in note


def test_the_release_that_had_it_first_is_named(story: Story) -> None:
    """A sync that leaps over a release says which one has it."""
    more = story.upstream.branch("main").commit("More").edit("other.py", b"line 9\n", b"9\n")
    more.tag("v0.33.0")
    story.upstream.save()
    said = story.sync("v0.33.0")

    assert "in v0.32.0 as" in said.json["patches"][0]["evidence"][0]["detail"]


def test_history_by_an_address(story: Story) -> None:
    """A partial clone lacks the contents of the commits between: they are fetched at once."""
    git(story.upstream.path, "config", "uploadpack.allowFilter", "true")
    git(story.upstream.path, "config", "uploadpack.allowAnySHA1InWant", "true")
    settings = story.root / "upstream" / "demo.toml"
    address = story.upstream.path.as_uri()
    settings.write_text(settings.read_text().replace(str(story.upstream.path), address))
    story.commit()

    said = story.sync("v0.31.0")

    assert story.column(said, "verdict")[0] == "reverted"
    assert said.json["upstream"]["history"] is True


def test_a_bundle_needs_all_its_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the two pull requests of a patch landed: the other's part is the rest."""
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "cache"))
    up = History(tmp_path / "upstream.git")
    up.commit("Start").write("a.py", TEXT).write("b.py", TEXT).tag("v1")
    up.commit("One (#1)").edit("a.py", AT, AT + THEIRS).tag("v2")
    topic = up.branch("topic", at="v1").commit(
        "Both (#1)\n\nPatchq-Pr: acme/engine#1\nPatchq-Pr: acme/engine#2"
    )
    topic.edit("a.py", AT, AT + OURS).edit("b.py", b"line 20\n", b"twenty\n")
    up.save()
    root = bare_repository(tmp_path / "queue")
    call(root, "init", "demo", "--git", str(up.path), "--base", "v1")
    call(root, "import", "--git", str(up.path), "v1..topic")

    (patch,) = call(root, "sync", "--onto", "v2", "--json").json["patches"]

    assert (patch["verdict"], patch["action"]) == ("partly-landed", "shrink")
    (file,) = (root / "series").glob("0001-*.patch")
    assert b"twenty" in file.read_bytes()
    assert b"knob" not in file.read_bytes()


def test_its_own_check_fails_without_it(story: Story) -> None:
    """Upstream's version lands, but what the patch promises does not hold with it: a person says."""
    (path,) = (story.root / "series").glob("0001-*.patch")
    check = b"Patchq-Check: grep -q read(setting_3)$ engine.py"
    path.write_bytes(path.read_bytes().replace(b"\n\n---\n", b"\n%b\n\n---\n" % check, 1))
    story.commit()

    said = story.sync("v0.30.0", code=4)

    first = said.json["patches"][0]
    assert (first["verdict"], first["action"]) == ("uncertain", "ask")
    assert any("its own check fails" in one["detail"] for one in first["evidence"])


def test_its_own_check_passes_without_it(story: Story) -> None:
    (path,) = (story.root / "series").glob("0001-*.patch")
    check = b"Patchq-Check: grep -q knob_3 engine.py"
    path.write_bytes(path.read_bytes().replace(b"\n\n---\n", b"\n%b\n\n---\n" % check, 1))
    story.commit()

    first = story.sync("v0.30.0").json["patches"][0]

    assert first["action"] == "drop"
    assert any("its own check passes" in one["detail"] for one in first["evidence"])
