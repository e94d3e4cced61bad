"""What upstream took of a series: whole, squashed, changed in review, in part, for a while."""

from __future__ import annotations

import pytest

from tests.support.cli import Queue
from tests.support.history import Entry, History, lines, script

START = lines(range(1, 31))
OURS = b"line 10\nours, which upstream takes\n"


def test_merged_as_it_is(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", START).write("other.txt", b"1\n").tag("v1")
    upstream.commit("take it").edit("a.txt", b"line 10\n", OURS)
    upstream.commit("more").write("other.txt", b"2\n").tag("v2")
    upstream.branch("topic", at="v1").commit("ours").edit("a.txt", b"line 10\n", OURS)
    name = queue.start().names()[0]

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["action"], patch["carry"]) == ("landed", "drop", "empty")
    assert queue.names() == []
    assert queue.retired() == [name]
    queue.expect(upstream.tree("v2"))


def test_merged_and_then_edited_around(upstream: History, queue: Queue) -> None:
    """Upstream's own edits next to the landed lines do not hide that they landed."""
    upstream.commit().write("a.txt", START).tag("v1")
    upstream.commit("take it").edit("a.txt", b"line 10\n", OURS)
    upstream.commit("on top").edit("a.txt", b"line 20\n", b"line 20\nupstream's\n").tag("v2")
    upstream.branch("topic", at="v1").commit("ours").edit("a.txt", b"line 10\n", OURS)
    queue.start()

    assert queue.sync().column("verdict") == ["landed"]
    queue.expect(upstream.tree("v2"))


def test_new_file_merged(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", START).tag("v1")
    upstream.commit().write("new.py", script(b"print('hello')\n")).tag("v2")
    upstream.branch("topic", at="v1").commit().write("new.py", script(b"print('hello')\n"))
    queue.start()

    assert queue.sync().column("verdict") == ["landed"]
    queue.expect(upstream.tree("v2"))


def test_only_one_of_two_merged(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", START).tag("v1")
    upstream.commit("take the first").edit("a.txt", b"line 5\n", b"first\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("first").edit("a.txt", b"line 5\n", b"first\n")
    topic.commit("second").edit("a.txt", b"line 25\n", b"second\n")
    first, second = queue.start().names()

    outcome = queue.sync()

    assert outcome.column("verdict") == ["landed", "needed"]
    assert outcome.column("action") == ["drop", "keep"]
    assert (queue.names(), queue.retired()) == ([second], [first])
    queue.expect({"a.txt": START.replace(b"line 5\n", b"first\n").replace(b"line 25", b"second")})


def test_later_one_merged_before_the_earlier(upstream: History, queue: Queue) -> None:
    """The second patch landed without the first, on whose lines it stands close."""
    upstream.commit().write("a.txt", START).tag("v1")
    upstream.commit("take the second").edit("a.txt", b"line 12\n", b"line 12\nsecond\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one")
    topic.edit("a.txt", b"line 10\n", b"line 10\nfirst\n")
    topic.commit("two").edit("a.txt", b"line 12\n", b"line 12\nsecond\n")
    queue.start()

    assert queue.sync().column("action") == ["keep", "drop"]
    wanted = START.replace(b"line 10\n", b"line 10\nfirst\n")
    queue.expect({"a.txt": wanted.replace(b"line 12\n", b"line 12\nsecond\n")})


def test_squashed_into_one_commit(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", START).write("b.txt", START).tag("v1")
    squash = upstream.commit("both in one").edit("a.txt", b"line 10\n", OURS)
    squash.edit("b.txt", b"line 3\n", b"line 3, second\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one").edit("a.txt", b"line 10\n", OURS)
    topic.commit("two").edit("b.txt", b"line 3\n", b"line 3, second\n")
    names = queue.start().names()

    outcome = queue.sync()

    assert outcome.column("verdict") == ["landed", "landed"]
    assert outcome.column("action") == ["drop", "drop"]
    assert queue.retired() == names
    queue.expect(upstream.tree("v2"))


def test_squashed_where_the_second_rewrites_the_first(upstream: History, queue: Queue) -> None:
    """Upstream never had the first patch's text: only the two together are there."""
    first = b"def half(number):\n    return number / 2\n"
    second = b"def half(number):\n    return number // 2\n"
    upstream.commit().write("m.py", START.replace(b"line", b"LINE =")).tag("v1")
    upstream.commit("both in one").edit("m.py", b"LINE = 10\n", b"LINE = 10\n" + second).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one")
    topic.edit("m.py", b"LINE = 10\n", b"LINE = 10\n" + first)
    topic.commit("two").edit("m.py", b" / 2", b" // 2")
    queue.start()

    outcome = queue.sync()

    assert outcome.column("action") == ["drop", "drop"]
    assert outcome.column("verdict") == ["landed", "landed"]
    queue.expect(upstream.tree("v2"))


def ten(changed: int = 0) -> bytes:
    """Ten lines of ours, of which review changed the last few."""
    return b"".join(
        b"    step_%d = prepare(stage_%d)%s\n" % (n, n, b"  # reviewed" * (n > 10 - changed))
        for n in range(1, 11)
    )


@pytest.mark.parametrize("changed", [1, 2])
def test_merged_with_a_review_tweak(upstream: History, queue: Queue, changed: int) -> None:
    """Nearly all lines stand upstream: upstream's text stays, the rest is reported."""
    upstream.commit().write("a.txt", START).tag("v1")
    upstream.commit().edit("a.txt", b"line 10\n", b"line 10\n" + ten(changed)).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.edit("a.txt", b"line 10\n", b"line 10\n" + ten())
    name = queue.start().names()[0]

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["action"]) == ("landed-with-changes", "drop")
    assert queue.retired() == [name]
    queue.expect(upstream.tree("v2"))


@pytest.mark.parametrize("changed", [3, 4])
def test_half_alike_in_one_commit(upstream: History, queue: Queue, changed: int) -> None:
    """The history knows one commit that brought most of it, and nothing of it is left."""
    upstream.commit().write("a.txt", START).tag("v1")
    upstream.commit("Take it").edit("a.txt", b"line 10\n", b"line 10\n" + ten(changed)).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.edit("a.txt", b"line 10\n", b"line 10\n" + ten())
    queue.start()

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["action"]) == ("landed-with-changes", "drop")
    assert "differs from ours in 1 hunk" in patch["evidence"][0]["detail"]
    assert "# reviewed" in patch["range_diff"]
    queue.expect(upstream.tree("v2"))


@pytest.mark.parametrize("changed", [3, 4])
def test_half_alike_bit_by_bit_is_asked(upstream: History, queue: Queue, changed: int) -> None:
    """No commit brought it: its lines came one after the other."""
    upstream.commit().write("a.txt", START).tag("v1")
    for end in range(1, 11):
        text = b"".join(ten(changed).splitlines(keepends=True)[:end])
        change = upstream.commit(f"step {end}")
        change.write("a.txt", START.replace(b"line 10\n", b"line 10\n" + text))
    change.tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.edit("a.txt", b"line 10\n", b"line 10\n" + ten())
    queue.start()

    patch = queue.sync(code=4).patch(1)

    assert (patch["verdict"], patch["action"]) == ("uncertain", "ask")


def test_upstream_solved_it_another_way(upstream: History, queue: Queue) -> None:
    """Few lines alike: an ordinary conflict, never a drop."""
    upstream.commit().write("a.txt", START).tag("v1")
    upstream.commit().edit("a.txt", b"line 10\n", b"line 10\n" + ten(9)).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.edit("a.txt", b"line 10\n", b"line 10\n" + ten())
    queue.start()

    patch = queue.sync(code=4).patch(1)

    assert (patch["carry"], patch["action"]) == ("conflict", "ask")
    assert patch["verdict"] in {"needed", "uncertain"}
    assert [one["path"] for one in patch["conflicts"]] == ["a.txt"]


def test_one_file_of_two_merged(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", START).write("tests/t.txt", START).tag("v1")
    upstream.commit("half").edit("a.txt", b"line 10\n", OURS).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("both").edit("a.txt", b"line 10\n", OURS)
    topic.edit("tests/t.txt", b"line 7\n", b"line 7, tested\n")
    names = queue.start().names()

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["carry"]) == ("partly-landed", "residual")
    assert (patch["action"], patch["number"]) == ("shrink", 1)
    assert (queue.names(), queue.retired()) == (names, [])
    assert b"tests/t.txt" in queue.patch_file(1).read_bytes()
    assert b"a/a.txt" not in queue.patch_file(1).read_bytes()
    queue.expect({"a.txt": START.replace(b"line 10\n", OURS), "tests/t.txt": _tested()})


def _tested() -> bytes:
    return START.replace(b"line 7\n", b"line 7, tested\n")


def test_one_hunk_of_two_merged(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", START).tag("v1")
    upstream.commit("half").edit("a.txt", b"line 10\n", OURS).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("both").edit("a.txt", b"line 10\n", OURS)
    topic.edit("a.txt", b"line 25\n", b"line 25, ours too\n")
    names = queue.start().names()

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["carry"]) == ("partly-landed", "residual")
    assert (patch["action"], queue.names()) == ("shrink", names)
    assert b"ours, which upstream takes" not in added(queue.patch_file(1).read_bytes())
    wanted = START.replace(b"line 10\n", OURS).replace(b"line 25\n", b"line 25, ours too\n")
    queue.expect({"a.txt": wanted})


def added(patch: bytes) -> bytes:
    return b"\n".join(line for line in patch.split(b"\n") if line.startswith(b"+"))


def test_merged_and_reverted(upstream: History, queue: Queue) -> None:
    """`git rebase` takes the patch for applied and loses it."""
    upstream.commit().write("a.txt", START).tag("v1")
    upstream.commit("take it").edit("a.txt", b"line 10\n", OURS)
    upstream.commit('Revert "take it"').edit("a.txt", OURS, b"line 10\n")
    upstream.commit("else").edit("a.txt", b"line 29\n", b"line 29, upstream's\n").tag("v2")
    upstream.branch("topic", at="v1").commit("ours").edit("a.txt", b"line 10\n", OURS)
    queue.start()

    patch = queue.sync().patch(1)

    assert patch["verdict"] in {"needed", "reverted"}
    assert patch["action"] == "keep"
    wanted = START.replace(b"line 10\n", OURS).replace(b"line 29\n", b"line 29, upstream's\n")
    queue.expect({"a.txt": wanted})


def test_deletion_of_repetitive_lines_is_not_landed(upstream: History, queue: Queue) -> None:
    """Taking one of many equal blocks away can be 'reversed' in many places: no proof."""
    block = b"begin\n    pass\nend\n"
    upstream.commit().write("a.txt", block * 12 + START).tag("v1")
    upstream.commit().edit("a.txt", b"line 29\n", b"line 29, upstream's\n").tag("v2")
    upstream.branch("topic", at="v1").commit("one less").write("a.txt", block * 11 + START)
    queue.start()

    assert queue.sync().column("action") == ["keep"]
    wanted = block * 11 + START.replace(b"line 29\n", b"line 29, upstream's\n")
    queue.expect({"a.txt": wanted})


def test_deletion_landed(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", START).write("old.txt", START).tag("v1")
    upstream.commit().edit("a.txt", b"line 10\nline 11\n", b"").delete("old.txt").tag("v2")
    topic = upstream.branch("topic", at="v1").commit().edit("a.txt", b"line 10\nline 11\n", b"")
    topic.commit("and the file").delete("old.txt")
    queue.start()

    assert queue.sync().column("verdict") == ["landed", "landed"]
    queue.expect(upstream.tree("v2"))


def test_white_space_is_meaning(upstream: History, queue: Queue) -> None:
    """The same line at another indentation is another program: not landed."""
    base = b"def f(x):\n    if x:\n        a(x)\n    return x\n" + START.replace(b"line ", b"# ")
    upstream.commit().write("m.py", base).tag("v1")
    upstream.commit().edit("m.py", b"a(x)\n", b"a(x)\n    b(x)\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit()
    topic.edit("m.py", b"a(x)\n", b"a(x)\n        b(x)\n")
    queue.start()

    assert queue.sync(code=4).column("action") == ["ask"]


def test_landed_in_the_second_step(upstream: History, queue: Queue) -> None:
    """v1 to v2 keeps it, v2 to v3 drops it; the number of the next patch is not its own."""
    upstream.commit().write("a.txt", START).tag("v1")
    upstream.commit().edit("a.txt", b"line 2\n", b"line 2, upstream's\n").tag("v2")
    upstream.commit().edit("a.txt", b"line 10\n", OURS).tag("v3")
    upstream.branch("topic", at="v1").commit("ours").edit("a.txt", b"line 10\n", OURS)
    later = upstream.branch("later", at="v3").commit("later")
    later.edit("a.txt", b"line 20\n", b"line 20, later\n")
    queue.start()

    assert queue.sync("v2").column("verdict") == ["needed"]
    queue.commit()
    assert queue.sync("v3").column("verdict") == ["landed"]
    queue.expect(upstream.tree("v3"), "v3")
    queue.commit()
    queue.run("import", "--git", str(upstream.path), "v3..later")
    assert queue.patch_file(1).name.startswith("0002-")
    queue.expect(upstream.tree("later"), "v3")


def test_mode_and_text_landed_apart(upstream: History, queue: Queue) -> None:
    """Upstream took the text but not the mode: the mode is the rest."""
    upstream.commit().write("run.sh", START).tag("v1")
    upstream.commit().edit("run.sh", b"line 10\n", OURS).tag("v2")
    topic = upstream.branch("topic", at="v1").commit().edit("run.sh", b"line 10\n", OURS)
    topic.chmod("run.sh", 0o100755)
    queue.start()

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["action"]) == ("partly-landed", "shrink")
    queue.expect({"run.sh": Entry(START.replace(b"line 10\n", OURS), 0o100755)})
