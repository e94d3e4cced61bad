"""What stays: held and empty patches, comments, the second sync, the way back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.appliers import series_files
from tests.support.cli import Queue
from tests.support.history import History, git, lines

TEXT = lines(range(1, 41))


@pytest.fixture
def story(upstream: History, queue: Queue) -> Queue:
    """Three patches: upstream took the first, changed the file of the second, not the third's."""
    upstream.commit().write("a.txt", TEXT).write("b.txt", TEXT).write("c.txt", TEXT).tag("v1")
    change = upstream.commit().edit("a.txt", b"line 9\n", b"nine\n")
    change.edit("b.txt", b"line 4\n", b"line 4, upstream's\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one").edit("a.txt", b"line 9\n", b"nine\n")
    topic = topic.commit("two").edit("b.txt", b"line 30\n", b"line 30, ours\n")
    topic.commit("three").edit("c.txt", b"line 30\n", b"line 30, ours\n")
    return queue.start()


def carried() -> dict[str, bytes]:
    ours = TEXT.replace(b"line 30\n", b"line 30, ours\n")
    return {
        "a.txt": TEXT.replace(b"line 9\n", b"nine\n"),
        "b.txt": ours.replace(b"line 4\n", b"line 4, upstream's\n"),
        "c.txt": ours,
    }


def test_report_of_a_whole_sync(story: Queue) -> None:
    outcome = story.sync()

    value = outcome.json
    assert (value["base"]["from"], value["base"]["to"]) == ("v1", "v2")
    assert (value["changed"], value["recorded"], value["session"]) == (True, True, None)
    assert value["proof"]["ok"] is True
    assert value["proof"]["checks"]
    assert all(check["ok"] for check in value["proof"]["checks"])
    assert outcome.column("number") == [1, 2, 3]
    assert outcome.column("verdict") == ["landed", "needed", "needed"]
    for patch in value["patches"][1:]:
        assert (story.root / patch["file"]).is_file()
    story.expect(carried())


def test_second_sync_changes_nothing(story: Queue) -> None:
    story.sync()
    story.commit()
    before = story.snapshot()

    outcome = story.sync()

    assert outcome.json["changed"] is False
    assert story.snapshot() == before
    assert story.status() == b""
    said = story.run("sync", "--onto", "v2")
    assert said.out + said.err
    assert story.snapshot() == before


def test_sync_onto_its_own_base(story: Queue) -> None:
    """The import is canonical already: carrying to where it stands changes no byte."""
    before = story.snapshot()

    assert story.sync("v1").json["changed"] is False
    assert story.snapshot() == before


def test_dry_run(story: Queue) -> None:
    before = story.snapshot()

    tried = story.sync("v2", "--dry-run").json

    assert story.snapshot() == before
    assert story.status() == b""
    assert tried["recorded"] is False
    done = story.sync("v2").json
    same = ("number", "name", "verdict", "carry", "action")
    assert [[one[key] for key in same] for one in tried["patches"]] == [
        [one[key] for key in same] for one in done["patches"]
    ]
    assert tried["base"] == done["base"]


def test_dry_run_of_a_conflict(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 9\n", b"upstream's\n").tag("v2")
    upstream.branch("topic", at="v1").commit().edit("a.txt", b"line 9\n", b"ours\n")
    queue.start()

    assert queue.sync("v2", "--dry-run", code=4).column("carry") == ["conflict"]


def test_undo(story: Queue) -> None:
    before = story.content()
    tree = story.tree()
    story.sync()
    assert story.content() != before

    story.run("undo")

    assert story.content() == before
    assert story.status() == b""
    assert story.tree() == tree
    assert story.sync().column("action") == ["drop", "keep", "keep"]
    story.expect(carried())


def test_undo_after_the_commit(story: Queue) -> None:
    """The files go back; the user's commits are the user's."""
    before = story.content()
    story.sync()
    story.commit("synced")
    head = git(story.root, "rev-parse", "HEAD")

    story.run("undo")

    assert story.content() == before
    assert git(story.root, "rev-parse", "HEAD") == head


def test_undo_of_two_syncs(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", TEXT).tag("v1")
    for number in (2, 3):
        upstream.commit().edit("a.txt", b"line %d\n" % number, b"changed\n").tag(f"v{number}")
    upstream.branch("topic", at="v1").commit().edit("a.txt", b"line 30\n", b"line 30, ours\n")
    queue.start()
    at = [queue.content()]
    for release in ("v2", "v3"):
        queue.sync(release)
        queue.commit(release)
        at.append(queue.content())

    queue.run("undo")
    assert queue.content() == at[1]
    queue.commit("back to v2")
    queue.run("undo")
    assert queue.content() == at[0]


def test_undo_with_nothing_to_undo(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", TEXT).tag("v1")
    queue.start(commits=None)
    queue.run("undo", code=None)  # takes back the init, or says that there is nothing

    assert queue.run("undo", code=1).err


def test_undo_does_not_overwrite_edits(story: Queue) -> None:
    """Work done after the sync is not thrown away without a word."""
    story.sync()
    edited = story.patch_file(1)
    edited.write_bytes(edited.read_bytes().replace(b"line 30, ours", b"line 30, edited"))
    mine = edited.read_bytes()

    outcome = story.run("undo", code=None)

    kept = [path.read_bytes() for path in story.folder.rglob("*") if path.is_file()]
    assert outcome.code != 0 or mine in kept, "the edited file is gone"


def test_history_shows_the_dropped(story: Queue) -> None:
    name = story.sync().patch(1)["name"]

    shown = story.run("history", name).text

    assert name in shown
    assert "landed" in shown
    value = story.run("history", name, "--json").json
    assert value["schema"].startswith("patchq.history/")
    retired = (story.series / "retired" / story.retired()[0]).read_bytes()
    assert b"+nine" in retired
    assert name.encode() in retired


def test_held_patch(upstream: History, queue: Queue) -> None:
    """A held patch is not applied, not judged and not lost."""
    upstream.commit().write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 9\n", b"upstream's\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one").edit("a.txt", b"line 9\n", b"nine\n")
    topic.commit("two").edit("b.txt", b"line 30\n", b"line 30, ours\n")
    first, second = queue.start().names()
    (queue.series / "series").write_text(f"# held {first}: waits for the review\n{second}\n")
    held = (queue.series / first).read_bytes()
    queue.commit()

    outcome = queue.sync()

    assert outcome.column("carry") == ["held", "clean"]
    assert outcome.column("action") == ["hold", "keep"]
    text = (queue.series / "series").read_text()
    assert text == f"# held {first}: waits for the review\n{second}\n"
    assert (queue.series / first).read_bytes() == held
    queue.expect(
        {
            "a.txt": TEXT.replace(b"line 9\n", b"upstream's\n"),
            "b.txt": TEXT.replace(b"line 30\n", b"line 30, ours\n"),
        }
    )


def test_comments_of_the_series_file(story: Queue) -> None:
    """Hand-written comments and blank lines stay; only the dropped patch's line goes."""
    one, two, three = story.names()
    text = f"# our fixes\n{one}\n\n# the server\n{two}\n#\n# the end — ü\n{three}  # why\n"
    (story.series / "series").write_text(text)
    story.commit()

    story.sync()

    assert (story.series / "series").read_text() == text.replace(f"{one}\n", "", 1)
    story.expect(carried())


@pytest.mark.parametrize("how", ["stays", "moved", "deleted"])
def test_empty_patch_is_kept(upstream: History, queue: Queue, how: str) -> None:
    """A marker names some file of the base; upstream may take that file away."""
    upstream.commit().write("a.txt", TEXT).write("b.txt", TEXT + b"b\n").tag("v1")
    change = upstream.commit().edit("b.txt", b"line 9\n", b"nine\n")
    if how == "moved":
        change.move("a.txt", "moved.txt")
    if how == "deleted":
        change.delete("a.txt")
    change.tag("v2")
    upstream.branch("topic", at="v1").commit("A marker: all before it is server work")
    names = queue.start().names()
    queue.expect(upstream.tree("v1"), "v1")

    patch = queue.sync().patch(1)

    assert patch["action"] == "keep"
    assert queue.names() == names
    queue.expect(upstream.tree("v2"))


def test_empty_patch_between_others(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().write("a.txt", b"top\n" + TEXT).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one").edit("a.txt", b"line 9\n", b"nine\n")
    topic.commit("marker").commit("two").edit("a.txt", b"line 30\n", b"thirty\n")
    queue.start()

    assert queue.sync().column("action") == ["keep"] * 3
    wanted = TEXT.replace(b"line 9\n", b"nine\n").replace(b"line 30\n", b"thirty\n")
    queue.expect({"a.txt": b"top\n" + wanted})
    queue.run("export", "--git", str(upstream.path), "--branch", "out")
    subjects = git(upstream.path, "log", "--reverse", "--format=%s", "v2..out")
    assert subjects == b"one\nmarker\ntwo\n"


def test_empty_series(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().write("a.txt", b"top\n" + TEXT).tag("v2")
    queue.start(commits=None)

    outcome = queue.sync()

    assert outcome.json["patches"] == []
    queue.expect(upstream.tree("v2"))


def test_patch_and_its_revert(upstream: History, queue: Queue) -> None:
    """Both are carried: neither may be taken for landed while the other stays."""
    upstream.commit().write("a.txt", TEXT).write("z", b"z\n").tag("v1")
    upstream.commit().write("z", b"zz\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one").edit("a.txt", b"line 9\n", b"nine\n")
    topic.commit('Revert "one"').edit("a.txt", b"nine\n", b"line 9\n")
    queue.start()

    actions = queue.sync().column("action")

    assert actions[0] == actions[1]
    queue.expect(upstream.tree("v2"))


def test_patch_and_its_revert_where_upstream_took_the_patch(
    upstream: History, queue: Queue
) -> None:
    """The revert is what we want: it must survive its counterpart."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 9\n", b"nine\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one").edit("a.txt", b"line 9\n", b"nine\n")
    topic.commit('Revert "one"').edit("a.txt", b"nine\n", b"line 9\n")
    queue.start()

    outcome = queue.sync(code=None)

    assert outcome.code in (0, 4), str(outcome)
    if outcome.code == 0:
        queue.expect({"a.txt": TEXT})


@pytest.mark.parametrize("landed", [False, True])
def test_on_off_on(upstream: History, queue: Queue, landed: bool) -> None:
    """One change, its revert, and the change again."""
    upstream.commit().write("a.txt", TEXT).write("z", b"z\n").tag("v1")
    change = upstream.commit().write("z", b"zz\n")
    if landed:
        change.edit("a.txt", b"line 9\n", b"nine\n")
    change.tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one").edit("a.txt", b"line 9\n", b"nine\n")
    topic = topic.commit('Revert "one"').edit("a.txt", b"nine\n", b"line 9\n")
    topic.commit("one again").edit("a.txt", b"line 9\n", b"nine\n")
    queue.start()

    outcome = queue.sync(code=None)

    assert outcome.code in (0, 4), str(outcome)
    if outcome.code == 0:
        queue.expect({"a.txt": TEXT.replace(b"line 9\n", b"nine\n"), "z": b"zz\n"})


def test_revert_of_an_upstream_change(upstream: History, queue: Queue) -> None:
    """A patch that takes an upstream change back is needed while upstream has the change."""
    upstream.commit().write("a.txt", TEXT.replace(b"line 9\n", b"broken\n")).tag("v1")
    upstream.commit().edit("a.txt", b"line 30\n", b"line 30, upstream's\n").tag("v2")
    upstream.commit("Revert").edit("a.txt", b"broken\n", b"line 9\n").tag("v3")
    topic = upstream.branch("topic", at="v1").commit('Revert "break it"')
    topic.edit("a.txt", b"broken\n", b"line 9\n")
    queue.start()

    assert queue.sync("v2").column("verdict") == ["needed"]
    queue.expect({"a.txt": TEXT.replace(b"line 30\n", b"line 30, upstream's\n")})
    queue.commit()
    assert queue.sync("v3").column("verdict") == ["landed"]
    queue.expect(upstream.tree("v3"), "v3")


def test_same_patch_imported_twice(upstream: History, queue: Queue) -> None:
    """The second does not apply, or is a no-op: it never doubles the text."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    topic = upstream.branch("topic", at="v1").commit("one")
    topic.edit("a.txt", b"line 9\n", b"line 9\nours\n")
    queue.start()

    again = queue.run("import", "--git", str(upstream.path), "v1..topic", code=None)

    assert again.code in (0, 1), str(again)
    queue.expect(upstream.tree("topic"), "v1")


def test_upstream_patch_stands_twice_in_the_series(upstream: History, queue: Queue) -> None:
    """Two backports of one upstream change, the second with one line more."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 9\n", b"nine\nand more\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one").edit("a.txt", b"line 9\n", b"nine\n")
    topic.commit("one, again").edit("a.txt", b"nine\n", b"nine\nand more\n")
    queue.start()

    assert queue.sync().column("action") == ["drop", "drop"]
    queue.expect(upstream.tree("v2"))


def test_latest(upstream: History, queue: Queue) -> None:
    """The newest final release: 10 is more than 9, a release candidate is not final."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    for number, tag in enumerate(("v2", "v9", "v10", "v11rc1"), 2):
        upstream.commit().edit("a.txt", b"line %d\n" % number, b"changed\n").tag(tag)
    upstream.branch("topic", at="v1").commit().edit("a.txt", b"line 30\n", b"line 30, ours\n")
    queue.start()

    assert queue.sync("latest").json["base"]["to"] == "v10"


def test_annotated_tag_branch_and_commit(upstream: History, queue: Queue) -> None:
    """A base may be an annotated tag, a branch or a commit."""
    upstream.commit().write("a.txt", TEXT).tag("v1", annotated=True)
    upstream.commit().edit("a.txt", b"line 2\n", b"two\n").tag("v2", annotated=True)
    upstream.commit().edit("a.txt", b"line 3\n", b"three\n")
    upstream.branch("topic", at="v1").commit().edit("a.txt", b"line 30\n", b"line 30, ours\n")
    queue.start()

    queue.sync("v2")
    ours = TEXT.replace(b"line 30\n", b"line 30, ours\n").replace(b"line 2\n", b"two\n")
    queue.expect({"a.txt": ours})
    queue.commit()
    queue.sync(git(upstream.path, "rev-parse", "main").decode().strip())
    queue.expect({"a.txt": ours.replace(b"line 3\n", b"three\n")}, "main")


def test_back_to_the_older_release(story: Queue) -> None:
    """Down as well as up: what was dropped is not brought back by itself."""
    story.sync()
    story.commit()

    assert story.sync("v1").column("action") == ["keep", "keep"]
    ours = TEXT.replace(b"line 30\n", b"line 30, ours\n")
    story.expect({"a.txt": TEXT, "b.txt": ours, "c.txt": ours}, "v1")


def test_one_step_and_two_give_the_same_tree(upstream: History, tmp_path: Path) -> None:
    upstream.commit().write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 2\n", b"two\nand\nmore\n").tag("v2")
    upstream.commit().edit("a.txt", b"line 35\n", b"").move("b.txt", "c/b.txt").tag("v3")
    topic = upstream.branch("topic", at="v1").commit("1").edit("a.txt", b"line 20\n", b"ours\n")
    topic.commit("2").edit("b.txt", b"line 20\n", b"ours\n")
    trees, texts = [], []
    for name, steps in (("one", ["v3"]), ("two", ["v2", "v3"])):
        (tmp_path / name).mkdir()
        queue = Queue(tmp_path / name, upstream).start()
        for step in steps:
            queue.sync(step)
            queue.commit(step)
        trees.append(queue.tree())
        texts.append([path.read_bytes() for path in series_files(queue.series)])

    assert trees[0] == trees[1]
    assert texts[0] == texts[1]
