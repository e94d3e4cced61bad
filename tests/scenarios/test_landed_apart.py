"""A landing that is not where one looks for it: in a file that moved first, or that went later."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Queue
from tests.support.history import Commit, History, lines

START = lines(range(1, 41))
ANOTHER = lines(range(1, 41), word="another")
LINE, KNOBS = b"line 20\n", b"line 20\nknob_one = 1\nknob_two = 2\nknob_three = 3\n"
PART = b"line 20\nknob_one = 1\nknob_two = 2\nknob_four = 4\n"


def start(upstream: History) -> History:
    upstream.commit().write("main.yml", START).write("other.txt", b"other\n").tag("v1")
    return upstream


def ours(upstream: History) -> Commit:
    return upstream.branch("topic", at="v1").commit("Knobs").edit("main.yml", LINE, KNOBS)


def rewritten(upstream: History, path: str, end: bytes = b"") -> None:
    """So much that no two trees show that it is the same file."""
    upstream.commit("Rewrite it").write(path, ANOTHER + end).tag("v2")


@pytest.mark.parametrize("around", [False, True], ids=["as it is", "beside another change"])
def test_in_a_file_that_moved_first(upstream: History, queue: Queue, around: bool) -> None:
    start(upstream).commit("Call it ci.yml").move("main.yml", "ci.yml")
    if around:
        upstream.commit("More (#6)").edit("ci.yml", b"line 19\n", b"nineteen\n")
    upstream.commit("Knobs (#7)").edit("ci.yml", LINE, KNOBS)
    rewritten(upstream, "ci.yml")
    ours(upstream)
    queue.start()

    patch = queue.sync().patch(1)

    verdict = "landed-with-changes" if around else "landed"
    assert (patch["verdict"], patch["action"]) == (verdict, "drop")
    assert "(#7)" in patch["evidence"][0]["detail"]
    if around:
        assert "+ nineteen" in patch["range_diff"] and "-+knob" not in patch["range_diff"]
    queue.expect(upstream.tree("v2"))


@pytest.mark.parametrize("landed", [PART, KNOBS.replace(b"line 20\nknob_one = 1\n", b"line 20\n")])
def test_but_for_a_line(upstream: History, queue: Queue, landed: bytes) -> None:
    """The file is there still, by another name: it lacks what the landing lacks."""
    start(upstream).commit("Call it ci.yml").move("main.yml", "ci.yml")
    upstream.commit("Knobs (#7)").edit("ci.yml", LINE, landed)
    rewritten(upstream, "ci.yml")
    ours(upstream)
    queue.start()

    assert queue.sync(code=4).column("action") == ["ask"]


def test_most_of_it_before_the_file_moved(upstream: History, queue: Queue) -> None:
    start(upstream).commit("Knobs (#7)").edit("main.yml", LINE, PART)
    upstream.commit("Call it ci.yml").move("main.yml", "ci.yml")
    rewritten(upstream, "ci.yml")
    ours(upstream)
    queue.start()

    assert queue.sync(code=4).column("action") == ["ask"]


def test_in_another_file_beside_the_one_that_moved(upstream: History, queue: Queue) -> None:
    start(upstream).commit("Call it ci.yml").move("main.yml", "ci.yml")
    made = upstream.commit("Knobs (#7)").edit("ci.yml", b"line 3\n", b"three\n")
    made.edit("other.txt", b"other\n", b"other\n" + KNOBS)
    rewritten(upstream, "ci.yml")
    ours(upstream)
    queue.start()

    assert queue.sync(code=4).column("action") == ["ask"]


@pytest.mark.parametrize("how", ["copied", "moved and changed", "one of two that were alike"])
def test_in_what_is_not_known_to_be_that_file(upstream: History, queue: Queue, how: str) -> None:
    if how == "copied":
        start(upstream).commit("Copy it").write("ci.yml", START)
        upstream.commit("Off").delete("main.yml")
    elif how == "moved and changed":
        made = start(upstream).commit("Call it ci.yml").move("main.yml", "ci.yml")
        made.edit("ci.yml", b"line 3\n", b"three\n")
    else:
        upstream.commit().write("twin.yml", START)
        start(upstream).commit("One will do").move("main.yml", "ci.yml").delete("twin.yml")
    upstream.commit("Knobs (#7)").edit("ci.yml", LINE, KNOBS)
    rewritten(upstream, "ci.yml")
    ours(upstream)
    queue.start()

    assert queue.sync(code=4).column("action") == ["ask"]


def test_in_a_file_that_moved_first_while_another_took_its_name(
    upstream: History, queue: Queue
) -> None:
    """A copy that was made by two commits."""
    start(upstream).commit("Call it ci.yml").move("main.yml", "ci.yml")
    upstream.commit("Knobs (#7)").edit("ci.yml", LINE, KNOBS)
    upstream.commit("Both").write("main.yml", START).tag("v2")
    ours(upstream)
    queue.start()

    assert queue.sync().column("action") == ["keep"]


def test_in_a_file_that_moved_first_and_taken_back(upstream: History, queue: Queue) -> None:
    start(upstream).commit("Call it ci.yml").move("main.yml", "ci.yml")
    upstream.commit("Knobs (#7)").edit("ci.yml", LINE, KNOBS)
    upstream.commit("Off again").edit("ci.yml", KNOBS, LINE)
    rewritten(upstream, "ci.yml")
    ours(upstream)
    queue.start()

    assert queue.sync(code=4).column("verdict") == ["reverted"]


def test_behind_a_patch_that_asks(upstream: History, queue: Queue) -> None:
    """The first patch asks for a file that upstream took away; what stands there meanwhile is no
    answer. Once the file is kept, the landing that went with it is needed again.
    """
    start(upstream).commit("Knobs (#7)").edit("main.yml", LINE, KNOBS)
    upstream.commit("Off").delete("main.yml").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("Nine").edit("main.yml", b"line 9\n", b"9\n")
    topic.commit("Knobs").edit("main.yml", LINE, KNOBS)
    queue.start()

    opened = queue.sync(code=4)

    assert opened.column("action") == ["ask", "drop"]
    assert opened.column("verdict") == ["gone", "landed"]

    nine = START.replace(b"line 9\n", b"9\n")
    (Path(opened.json["session"]) / "main.yml").write_bytes(nine)
    done = queue.run("sync", "--continue", "--json")

    assert done.column("action") == ["keep", "keep"]
    queue.expect(upstream.tree("v2") | {b"main.yml": upstream.tree("topic")[b"main.yml"]})


def test_behind_a_patch_that_asks_and_taken_back(upstream: History, queue: Queue) -> None:
    start(upstream).commit("Knobs (#7)").edit("main.yml", LINE, KNOBS)
    upstream.commit("Off again").edit("main.yml", KNOBS, LINE)
    upstream.commit("Off").delete("main.yml").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("Nine").edit("main.yml", b"line 9\n", b"9\n")
    topic.commit("Knobs").edit("main.yml", LINE, KNOBS)
    queue.start()

    assert "drop" not in queue.sync(code=4).column("action")


def test_behind_a_patch_that_is_kept(upstream: History, queue: Queue) -> None:
    """It takes back what landed, so that the landing is needed again after it."""
    start(upstream).commit("Knobs (#7)").edit("main.yml", LINE, KNOBS)
    upstream.commit("More").write("other.txt", b"more\n").tag("v2")
    ours(upstream)
    upstream.commit("No knobs").edit("main.yml", KNOBS, LINE)
    upstream.commit("Knobs again").edit("main.yml", LINE, KNOBS)
    queue.start()

    assert queue.sync().column("action") == ["drop", "keep", "keep"]
    queue.expect(upstream.tree("v2"))
