"""What looks landed and is not: common lines, nothing added, one file of two, a rest of its own."""

from __future__ import annotations

import pytest

from tests.support.cli import Queue
from tests.support.history import History, lines

TEXT = lines(range(1, 41))


def ten(changed: int = 0, word: bytes = b"stage") -> bytes:
    """Ten lines of ours, of which review changed the last few."""
    return b"".join(
        b"    step_%d = prepare(%s_%d)%s\n" % (n, word, n, b"  # reviewed" * (n > 10 - changed))
        for n in range(1, 11)
    )


def common(third: bytes) -> bytes:
    """Functions that end alike; the third one ends as given."""
    return b"".join(
        b"def f%d(x):\n    if x:\n%s\n\n"
        % (n, third if n == 3 else b"        return None\n    pass\n")
        for n in range(8)
    )


def test_added_lines_that_stand_everywhere(upstream: History, queue: Queue) -> None:
    """Each added line stands upstream, and stood there before: that says nothing."""
    upstream.commit().write("m.py", common(b"        return compute(x)\n")).tag("v1")
    upstream.commit().write("m.py", common(b"        return compute(x, 1)\n")).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.write("m.py", common(b"        return None\n    pass\n"))
    queue.start()

    assert queue.sync(code=4).column("carry") == ["conflict"]


@pytest.mark.parametrize("place", [10, 11, 12])
def test_only_deletes_what_upstream_edited(upstream: History, queue: Queue, place: int) -> None:
    """No added line is missing upstream, for there is none: still a conflict."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    old = b"line %d\n" % place
    upstream.commit().edit("a.txt", old, b"line %d, upstream's\n" % place).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.edit("a.txt", b"line 10\nline 11\nline 12\n", b"")
    queue.start()

    assert queue.sync(code=4).column("carry") == ["conflict"]


def test_both_change_one_number(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", TEXT + b"LIMIT = 10\n").tag("v1")
    upstream.commit().edit("a.txt", b"LIMIT = 10", b"LIMIT = 30").tag("v2")
    upstream.branch("topic", at="v1").commit("ours").edit("a.txt", b"LIMIT = 10", b"LIMIT = 20")
    queue.start()

    assert queue.sync(code=4).column("carry") == ["conflict"]


def test_landed_changed_in_one_file_and_not_in_the_other(upstream: History, queue: Queue) -> None:
    """The other file's change must not go with the first one's."""
    upstream.commit().write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 10\n", b"line 10\n" + ten(1)).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.edit("a.txt", b"line 10\n", b"line 10\n" + ten())
    topic.edit("b.txt", b"line 20\n", b"line 20, ours\n")
    queue.start()

    outcome = queue.sync(code=None)

    assert outcome.code in (0, 4), str(outcome)
    assert outcome.column("action")[0] in {"shrink", "ask"}
    if outcome.code == 0:
        wanted = {"a.txt": upstream.tree("v2")[b"a.txt"]}
        queue.expect({**wanted, "b.txt": TEXT.replace(b"line 20\n", b"line 20, ours\n")})


def test_long_part_landed_and_one_line_not(upstream: History, queue: Queue) -> None:
    """Ten of eleven lines stand upstream; the eleventh, elsewhere, is still ours."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 10\n", b"line 10\n" + ten()).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.edit("a.txt", b"line 10\n", b"line 10\n" + ten())
    topic.edit("a.txt", b"line 30\n", b"line 30, ours\n")
    queue.start()

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["action"]) == ("partly-landed", "shrink")
    wanted = TEXT.replace(b"line 10\n", b"line 10\n" + ten())
    queue.expect({"a.txt": wanted.replace(b"line 30\n", b"line 30, ours\n")})


def test_long_part_landed_changed_and_one_line_not(upstream: History, queue: Queue) -> None:
    """The same, where review changed the long part: the line is kept, or asked about."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 10\n", b"line 10\n" + ten(1)).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.edit("a.txt", b"line 10\n", b"line 10\n" + ten())
    topic.edit("a.txt", b"line 30\n", b"line 30, ours\n")
    queue.start()

    outcome = queue.sync(code=None)

    assert outcome.code in (0, 4), str(outcome)
    assert outcome.column("action")[0] in {"shrink", "ask"}
    if outcome.code == 0:
        wanted = upstream.tree("v2")[b"a.txt"].data
        queue.expect({"a.txt": wanted.replace(b"line 30\n", b"line 30, ours\n")})


def test_landed_and_a_deletion_not(upstream: History, queue: Queue) -> None:
    """All added lines stand upstream; the deleted ones stand there too."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 10\n", b"line 10\n" + ten()).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.edit("a.txt", b"line 10\n", b"line 10\n" + ten())
    topic.edit("a.txt", b"line 30\nline 31\n", b"")
    queue.start()

    assert queue.sync().column("action") == ["shrink"]
    wanted = TEXT.replace(b"line 10\n", b"line 10\n" + ten())
    queue.expect({"a.txt": wanted.replace(b"line 30\nline 31\n", b"")})


def test_landed_and_a_deleted_file_not(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 10\n", b"line 10\n" + ten()).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours").delete("b.txt")
    topic.edit("a.txt", b"line 10\n", b"line 10\n" + ten())
    queue.start()

    assert queue.sync().column("action") == ["shrink"]
    queue.expect({"a.txt": TEXT.replace(b"line 10\n", b"line 10\n" + ten())})


def test_next_patch_stands_on_one_that_landed_changed(upstream: History, queue: Queue) -> None:
    """The first goes with review's tweak, the second finds its line in upstream's text."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 10\n", b"line 10\n" + ten(1)).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one")
    topic.edit("a.txt", b"line 10\n", b"line 10\n" + ten())
    topic.commit("two").edit("a.txt", b"prepare(stage_3)", b"prepare(stage_3, ours=True)")
    queue.start()

    assert queue.sync().column("action") == ["drop", "keep"]
    wanted = upstream.tree("v2")[b"a.txt"].data
    queue.expect({"a.txt": wanted.replace(b"(stage_3)", b"(stage_3, ours=True)")})


def test_three_squashed(upstream: History, queue: Queue) -> None:
    """Each stands on the one before; a fourth is not upstream."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    topic = upstream.branch("topic", at="v1").commit("one")
    topic.edit("a.txt", b"line 10\n", b"line 10\n" + ten())
    topic = topic.commit("two").edit("a.txt", b"prepare(stage_3)", b"prepare(stage_3, two)")
    topic = topic.commit("three").edit("a.txt", b"(stage_3, two)", b"(stage_3, two, three)")
    landed = upstream.tree("topic")
    topic.commit("four").edit("a.txt", b"line 30\n", b"line 30, ours\n")
    upstream.branch("main").commit("squash").write("a.txt", landed[b"a.txt"]).tag("v2")
    queue.start()

    assert queue.sync().column("action") == ["drop", "drop", "drop", "keep"]
    wanted = landed[b"a.txt"].data
    queue.expect({"a.txt": wanted.replace(b"line 30\n", b"line 30, ours\n")})


def test_squashed_with_a_stranger_between(upstream: History, queue: Queue) -> None:
    """One and three landed as one; two, between them, did not."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    squash = upstream.commit("squash").edit("a.txt", b"line 10\n", b"ten\n")
    squash.edit("a.txt", b"line 30\n", b"thirty\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one").edit("a.txt", b"line 10\n", b"ten\n")
    topic = topic.commit("two").edit("a.txt", b"line 20\n", b"twenty\n")
    topic.commit("three").edit("a.txt", b"line 30\n", b"thirty\n")
    queue.start()

    assert queue.sync().column("action") == ["drop", "keep", "drop"]
    wanted = upstream.tree("v2")[b"a.txt"].data
    queue.expect({"a.txt": wanted.replace(b"line 20\n", b"twenty\n")})


@pytest.mark.parametrize("how", ["crlf", "indented"])
def test_upstream_rewrote_every_line(upstream: History, queue: Queue, how: str) -> None:
    """Nothing of the context is left: asked, never guessed."""
    old, new = (b"\n", b"\r\n") if how == "crlf" else (b"line", b"    line")
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().write("a.txt", TEXT.replace(old, new)).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.edit("a.txt", b"line 20\n", b"line 20, ours\n")
    queue.start()

    assert queue.sync(code=4).column("carry") == ["conflict"]


def test_new_file_that_upstream_added_larger(upstream: History, queue: Queue) -> None:
    """All of our lines, and more: upstream's file is what stays."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().write("new.txt", ten() + lines(range(3), word="more")).tag("v2")
    upstream.branch("topic", at="v1").commit("ours").write("new.txt", ten())
    queue.start()

    outcome = queue.sync(code=None)

    assert outcome.code in (0, 4), str(outcome)
    if outcome.code == 0:
        assert outcome.column("verdict") == ["landed-with-changes"]
        queue.expect(upstream.tree("v2"))


def test_new_file_that_upstream_added_smaller(upstream: History, queue: Queue) -> None:
    """Upstream has 10 of our 30 lines under the same name."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().write("new.txt", ten()).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.write("new.txt", ten() + ten(word=b"later") + ten(word=b"last"))
    queue.start()

    assert queue.sync(code=4).column("action") == ["ask"]
