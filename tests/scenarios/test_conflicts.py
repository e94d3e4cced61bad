"""A sync that conflicts: the session, what is resolved in it, and the way back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.cli import Outcome, Queue
from tests.support.history import Entry, History, git, lines, link, script

TEXT = lines(range(1, 41))
MARKED = (
    b"<<<<<<< v2\n9, upstream's\n||||||| 0001-one.patch before\nline 9\n=======\n9, ours\n"
    b">>>>>>> 0001-one.patch\n"
)


def edited(*changes: tuple[int, str], text: bytes = TEXT) -> bytes:
    for number, new in changes:
        text = text.replace(b"line %d\n" % number, new.encode() + b"\n")
    return text


@pytest.fixture
def story(upstream: History, queue: Queue) -> Queue:
    """Three patches: the first two conflict with upstream, the third is carried."""
    upstream.commit().write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
    change = upstream.commit().write("a.txt", edited((9, "9, upstream's")))
    change.write("b.txt", edited((30, "30, upstream's"))).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one").write("a.txt", edited((9, "9, ours")))
    topic = topic.commit("two").write("b.txt", edited((30, "30, ours")))
    topic.commit("three").write("a.txt", edited((9, "9, ours"), (25, "25, ours")))
    return queue.start()


def tree_of(outcome: Outcome) -> Path:
    return Path(outcome.json["session"])


def resolve(tree: Path, file: str, old: bytes, new: bytes) -> None:
    data = (tree / file).read_bytes()
    assert data.count(old) == 1, data
    (tree / file).write_bytes(data.replace(old, new))


def go_on(queue: Queue, *more: str, code: int = 0, cwd: Path | None = None) -> Outcome:
    return queue.run("sync", "--continue", "--json", *more, code=code, cwd=cwd)


def sessions(queue: Queue) -> list[str]:
    folder = queue.root / ".git/patchq/sessions"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_release_step_with_two_conflicts(story: Queue) -> None:
    before = story.snapshot()

    opened = story.sync(code=4)

    tree = tree_of(opened)
    assert tree == story.root / ".git/patchq/sessions/demo/tree"
    assert opened.column("action") == ["ask", "ask", "keep"]
    assert opened.json["shown"] == "one"
    (conflict,) = opened.patch(2)["conflicts"]
    assert (conflict["path"], conflict["kind"]) == ("b.txt", "content")
    assert conflict["sides"] == [
        {"line": 30, "ours": "30, upstream's\n", "base": "line 30\n", "theirs": "30, ours\n"}
    ]
    assert (tree / "a.txt").read_bytes() == edited((9, MARKED[:-1].decode()))
    assert (tree / "b.txt").read_bytes() == edited((30, "30, upstream's"))
    assert story.snapshot() == before

    resolve(tree, "a.txt", MARKED, b"9, both\n")
    second = go_on(story, code=4)

    assert second.json["shown"] == "two"
    assert (second.column("action"), second.json["recorded"]) == (["keep", "ask", "keep"], False)
    assert (tree / "a.txt").read_bytes() == edited((9, "9, both"))
    assert b"<<<<<<< v2\n30, upstream's\n" in (tree / "b.txt").read_bytes()
    assert story.snapshot() == before

    (tree / "b.txt").write_bytes(edited((30, "30, both")))
    done = go_on(story, cwd=tree)

    assert done.json["recorded"] is True
    assert done.json["session"] is None
    assert done.column("action") == ["keep", "keep", "keep"]
    said = [one for one in done.patch(1)["evidence"] if one["signal"] == "resolution"]
    assert [one["detail"] for one in said] == ["conflict in a.txt resolved"]
    assert (story.series / said[0]["ref"]).is_file()
    assert sessions(story) == []
    story.expect(
        {
            "a.txt": edited((9, "9, both"), (25, "25, ours")),
            "b.txt": edited((30, "30, both")),
        }
    )
    story.run("check")
    story.commit("synced")
    story.run("undo")
    assert not (story.series / "resolutions").exists()
    assert story.run("status", "--json").json["base"] == "v1"


def test_what_was_resolved_once_is_not_asked_again(story: Queue) -> None:
    tree = tree_of(story.sync(code=4))
    (tree / "a.txt").write_bytes(edited((9, "9, both")))
    go_on(story, code=4)
    (tree / "b.txt").write_bytes(edited((30, "30, both")))
    go_on(story)
    first = story.content()
    shutil.copytree(story.series / "resolutions", story.folder / "kept")
    story.run("undo")
    shutil.copytree(story.folder / "kept", story.series / "resolutions")
    story.commit()

    again = story.sync()

    assert story.content() == first, "the same bytes"
    told = story.run("undo").text + again.text
    assert "conflict in b.txt resolved before, used again" in told


# Ways out


def test_abort_whatever_was_done_in_between(story: Queue) -> None:
    before = story.snapshot()
    for spoil in SPOILS:
        tree = tree_of(story.sync(code=4))
        spoil(tree)
        story.run("sync", "--abort")
        assert sessions(story) == [], spoil
        assert story.snapshot() == before
        assert story.status() == b""
    story.run("sync", "--abort", code=1)
    assert story.sync("v2", "--dry-run", code=4).json["session"] is None
    assert sessions(story) == []


def gone(tree: Path) -> None:
    shutil.rmtree(tree)


def broken_repository(tree: Path) -> None:
    (tree / ".git").unlink()
    (tree / ".git").mkdir()
    shutil.rmtree(tree.parent / "git")


def committed(tree: Path) -> None:
    git(tree, "checkout", "-q", "-b", "mine")
    git(tree, "commit", "-q", "-a", "-m", "mine")


def locked(tree: Path) -> None:
    (tree.parent / "git/index.lock").touch()
    (tree.parent / "git/patchq.index.lock").touch()


def damaged(tree: Path) -> None:
    (tree.parent / "session.json").write_text("{")


def unwritable(tree: Path) -> None:
    (tree / "b.txt").unlink()
    (tree / "b.txt").mkdir()
    (tree / "b.txt/c").touch()
    tree.chmod(0o500)


SPOILS = (gone, broken_repository, committed, locked, damaged, unwritable)


def test_abort_needs_no_upstream_and_no_sound_queue(story: Queue) -> None:
    story.sync(code=4)
    story.upstream.path.rename(story.folder / "away")
    (story.root / "upstream/demo.toml").write_text("[")

    story.run("sync", "--abort")

    assert sessions(story) == []


def test_skip_holds_a_patch(story: Queue) -> None:
    first, second, third = story.names()
    tree = tree_of(story.sync(code=4))
    text = (story.series / second).read_bytes()

    skipped = story.run("sync", "--skip", "two", "--json", code=4)

    assert skipped.column("action") == ["ask", "hold", "keep"]
    assert skipped.column("carry") == ["conflict", "held", "clean"]
    assert b"<<<<<<<" in (tree / "a.txt").read_bytes(), "what is shown stays as it is"
    (tree / "a.txt").write_bytes(edited((9, "9, both")))
    go_on(story)
    held = f"# held {second}: conflicts on v2 (content)"
    assert (story.series / "series").read_text() == f"{first}\n{held}\n{third}\n"
    assert (story.series / second).read_bytes() == text
    story.commit()
    assert [name for name, _ in held_names(story)] == ["two"]
    story.expect(
        {
            "a.txt": edited((9, "9, both"), (25, "25, ours")),
            "b.txt": edited((30, "30, upstream's")),
        }
    )


def held_names(queue: Queue) -> list[tuple[str, str]]:
    return [(each["name"], each["why"]) for each in queue.run("status", "--json").json["held"]]


def test_skip_of_all_that_is_asked_records(story: Queue) -> None:
    story.sync(code=4)
    story.run("sync", "--skip", "1", code=4)

    done = story.run("sync", "--skip", "two", "--json")

    assert done.column("action") == ["hold", "hold", "keep"]
    assert done.json["recorded"] is True
    story.commit()
    story.expect(
        {
            "a.txt": edited((9, "9, upstream's"), (25, "25, ours")),
            "b.txt": edited((30, "30, upstream's")),
        }
    )
    assert sessions(story) == []


def test_decide_in_a_session_goes_on(story: Queue) -> None:
    tree = tree_of(story.sync(code=4))
    before = story.snapshot()

    kept = story.run("decide", "two", "keep", "--why", "ours", code=1)
    assert b"it cannot be kept as it is" in kept.err
    said = story.run("decide", "two", "drop", "--why", "theirs will do", "--json", code=4).json
    assert said["sync"]["patches"][1]["action"] == "drop"
    assert story.snapshot() == before, "recorded with all the rest"
    (tree / "a.txt").write_bytes(edited((9, "9, both")))
    go_on(story)

    assert "theirs will do" in (story.root / "upstream/decisions.toml").read_text()
    (retired,) = story.retired()
    assert retired.endswith("-two.patch")
    story.run("undo")
    assert not (story.root / "upstream/decisions.toml").exists()


def test_a_question_is_answered_by_decide_or_by_an_edit(upstream: History, queue: Queue) -> None:
    """All added lines stand upstream already, elsewhere: nobody puts them there twice unasked."""
    block = b"added 1\nadded 2\nadded 3\nadded 4\n"
    upstream.commit().write("a.txt", TEXT).tag("v1")
    # In commits of one line each, so that none of them can be the one that brought it.
    text = TEXT
    for line in block.splitlines(keepends=True)[::-1]:
        text = text.replace(b"line 30\n", b"line 30\n" + line)
        upstream.commit().write("a.txt", text)
    upstream.tips["main"].tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one")
    topic.edit("a.txt", b"line 5\n", b"line 5\n" + block)
    opened = queue.start().sync(code=4)
    tree = tree_of(opened)
    assert opened.column("verdict") == ["uncertain"]
    assert (tree / "a.txt").read_bytes().count(block) == 2
    asked = queue.run("sync", "--continue", code=1)
    assert b"waits for an answer" in asked.err
    resolve(tree, "a.txt", b"line 5\n" + block, b"line 5\nonly this\n")

    done = go_on(queue)

    assert done.column("action") == ["keep"]
    queue.expect(
        {
            "a.txt": TEXT.replace(b"line 5\n", b"line 5\nonly this\n").replace(
                b"line 30\n", b"line 30\n" + block
            )
        }
    )


# What a tree may say


def test_markers_left_in_are_refused(story: Queue) -> None:
    tree = tree_of(story.sync(code=4))
    said = story.run("sync", "--continue", code=1)
    assert b"conflict markers are left in a.txt:9, a.txt:11, a.txt:13, a.txt:15" in said.err
    (tree / "a.txt").write_bytes(edited((9, "9, ours\n=======")))
    assert b"left in a.txt:10" in story.run("sync", "--continue", code=1).err
    assert sessions(story) == ["demo"]


def test_nothing_left_of_the_patch_is_refused(story: Queue) -> None:
    tree = tree_of(story.sync(code=4))
    (tree / "a.txt").write_bytes(edited((9, "9, upstream's")))

    said = story.run("sync", "--continue", code=1)

    assert b"nothing would be left of one" in said.err
    assert b"patchq decide one drop" in said.err


def test_python_that_does_not_compile_is_refused(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.py", b"x = 1\n").tag("v1")
    upstream.commit().write("a.py", b"x = 2\n").tag("v2")
    upstream.branch("topic", at="v1").commit("one").write("a.py", b"x = 3\n")
    tree = tree_of(queue.start().sync(code=4))
    (tree / "a.py").write_bytes(b"x = 4\ny = (\n")

    said = queue.run("sync", "--continue", code=1)

    assert b"a.py does not compile: line 2" in said.err
    (tree / "a.py").write_bytes(b"x = 4\n")
    go_on(queue)


def test_what_the_tree_says_is_what_the_patch_becomes(upstream: History, queue: Queue) -> None:
    """Files renamed, added, deleted, made executable and edited beside the conflict."""
    files = dict.fromkeys(("a.txt", "b.txt", "c.txt", "d.txt", "run.sh"), TEXT)
    start = upstream.commit()
    for name, data in files.items():
        start.write(name, data)
    start.tag("v1")
    upstream.commit().write("a.txt", edited((9, "9, upstream's"))).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one")
    topic.write("a.txt", edited((9, "9, ours"))).write("b.txt", edited((9, "9, ours")))
    topic.commit("two").write("b.txt", edited((9, "9, ours"), (30, "30, ours")))
    tree = tree_of(queue.start().sync(code=4))
    (tree / "a.txt").unlink()
    (tree / "moved").mkdir()
    (tree / "moved/a.txt").write_bytes(edited((9, "9, both")))
    (tree / "b.txt").write_bytes(edited((9, "9, ours, again")))
    (tree / "c.txt").unlink()
    (tree / "run.sh").chmod(0o755)
    (tree / "new.txt").write_bytes(b"new\r\n\xff")
    for litter in ("a.txt.orig", "b.txt.rej", ".b.txt.swp", "__pycache__/x.pyc"):
        (tree / litter).parent.mkdir(exist_ok=True)
        (tree / litter).write_bytes(b"litter")

    def expected() -> None:
        queue.expect(
            {
                "moved/a.txt": edited((9, "9, both")),
                "b.txt": edited((9, "9, ours, again"), (30, "30, ours")),
                "d.txt": TEXT,
                "run.sh": script(TEXT),
                "new.txt": b"new\r\n\xff",
            }
        )

    done = go_on(queue)

    assert done.column("action") == ["keep", "keep"]
    expected()
    shutil.copytree(queue.series / "resolutions", queue.folder / "kept")
    queue.run("undo")
    shutil.copytree(queue.folder / "kept", queue.series / "resolutions")
    queue.commit()
    assert queue.sync().column("action") == ["keep", "keep"], "all of it is used again"
    expected()


def test_files_without_markers_are_shown_beside(upstream: History, queue: Queue) -> None:
    upstream.commit().write("logo.png", b"\0old").write("l", link(b"old")).write("x", b"x\n").tag(
        "v1"
    )
    change = upstream.commit().write("logo.png", b"\0upstream").write("l", link(b"upstream"))
    change.write("d/x", b"upstream\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one")
    topic.write("logo.png", b"\0ours").write("l", link(b"ours")).write("d", b"a file\n")
    tree = tree_of(queue.start().sync(code=4))
    assert (tree / "logo.png").read_bytes() == b"\0upstream"
    assert (tree / "logo.png.one").read_bytes() == b"\0ours"
    assert (tree / "l").readlink() == Path("upstream")
    assert (tree / "l.one").readlink() == Path("ours")
    assert (tree / "d.one").read_bytes() == b"a file\n"
    said = queue.run("sync", "--continue", code=1)
    assert b"d.one is still there" in said.err
    (tree / "logo.png.one").replace(tree / "logo.png")
    (tree / "l.one").unlink()
    (tree / "d.one").replace(tree / "e")

    go_on(queue)

    queue.expect(
        {
            "logo.png": b"\0ours",
            "l": link(b"upstream"),
            "x": b"x\n",
            "d/x": b"upstream\n",
            "e": b"a file\n",
        },
        quilt=False,
    )


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("by", ["upstream", "patch"])
def test_a_deleted_file(upstream: History, queue: Queue, by: str, keep: bool) -> None:
    upstream.commit().write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
    change = upstream.commit()
    topic = upstream.branch("topic", at="v1").commit("one").write("b.txt", edited((9, "9, ours")))
    gone_in, edited_in = (change, topic) if by == "upstream" else (topic, change)
    gone_in.delete("a.txt")
    edited_in.write("a.txt", edited((3, "3, edited")))
    change.tag("v2")
    tree = tree_of(queue.start().sync(code=4))
    text = (tree / "a.txt").read_bytes()
    assert text.startswith(b"<<<<<<< v2\n") and text.endswith(b">>>>>>> 0001-one.patch\n")
    assert b"left in a.txt:1" in queue.run("sync", "--continue", code=1).err
    wanted: dict[str | bytes, bytes | Entry] = {"b.txt": edited((9, "9, ours"))}
    if keep:
        (tree / "a.txt").write_bytes(edited((3, "3, kept")))
        wanted["a.txt"] = edited((3, "3, kept"))
    else:
        (tree / "a.txt").unlink()

    go_on(queue)

    queue.expect(wanted)
