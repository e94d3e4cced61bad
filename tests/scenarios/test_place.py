"""Where a hunk lands, and what of the series is rewritten for it."""

from __future__ import annotations

from tests.support.cli import Queue
from tests.support.history import History, lines

TEXT = lines(range(1, 41))


def function(name: str, inner: str = "    total = total + 1\n") -> str:
    return (
        f"def {name}(items):\n    total = 0\n    for item in items:\n        total += item\n{inner}"
        "    if not total:\n        raise ValueError\n    return total\n\n\n"
    )


def module(names: list[str], ours: str = "") -> bytes:
    inner = "    total = total + 2  # ours\n"
    return "".join(
        function(name, inner) if name == ours else function(name) for name in names
    ).encode()


def test_repeated_blocks(upstream: History, queue: Queue) -> None:
    """patch-id says unchanged; the kept old file would land in the wrong function."""
    old = [f"f{n}" for n in range(10)]
    new = [f"extra{n}" for n in range(7)] + old
    upstream.commit().write("m.py", module(old)).tag("v1")
    upstream.commit().write("m.py", module(new)).tag("v2")
    upstream.branch("topic", at="v1").commit("ours").write("m.py", module(old, ours="f5"))
    queue.start()
    before = queue.patch_file(1).read_bytes()

    assert queue.sync().column("carry") == ["clean"]

    assert queue.patch_file(1).read_bytes() != before
    queue.expect({"m.py": module(new, ours="f5")})


def test_repeated_blocks_removed_above(upstream: History, queue: Queue) -> None:
    old = [f"f{n}" for n in range(12)]
    new = [f"f{n}" for n in range(4, 12)]
    upstream.commit().write("m.py", module(old)).tag("v1")
    upstream.commit().write("m.py", module(new)).tag("v2")
    upstream.branch("topic", at="v1").commit("ours").write("m.py", module(old, ours="f8"))
    queue.start()

    assert queue.sync().column("carry") == ["clean"]
    queue.expect({"m.py": module(new, ours="f8")})


def test_repeated_blocks_and_two_patches(upstream: History, queue: Queue) -> None:
    """Two patches, one diff text, two functions."""
    old = [f"f{n}" for n in range(10)]
    new = ["head", *old[:6], "middle", *old[6:]]
    upstream.commit().write("m.py", module(old)).tag("v1")
    upstream.commit().write("m.py", module(new)).tag("v2")
    both = module(old, ours="f2").replace(function("f7").encode(), b"")
    topic = upstream.branch("topic", at="v1").commit("one").write("m.py", module(old, ours="f2"))
    topic.commit("two").write("m.py", both)
    queue.start()

    assert queue.sync().column("carry") == ["clean", "clean"]
    queue.expect({"m.py": module(new, ours="f2").replace(function("f7").encode(), b"")})


def test_block_of_equal_lines_grows(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", TEXT + b"x\n" * 30).tag("v1")
    upstream.commit().write("a.txt", b"top\n" * 3 + TEXT + b"x\n" * 30).tag("v2")
    upstream.branch("topic", at="v1").commit().write("a.txt", TEXT + b"x\n" * 31)
    queue.start()

    assert queue.sync().column("verdict") == ["needed"]
    queue.expect({"a.txt": b"top\n" * 3 + TEXT + b"x\n" * 31})


def test_unchanged_files_are_left_alone(upstream: History, queue: Queue) -> None:
    """No byte and no mtime: compiler caches and reviewers both notice."""
    upstream.commit().write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
    upstream.commit().edit("b.txt", b"line 4\n", b"line 4, upstream's\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one").edit("a.txt", b"line 9\n", b"nine\n")
    topic.commit("two").edit("b.txt", b"line 30\n", b"line 30, ours\n")
    queue.start()
    before = queue.snapshot()

    queue.sync()

    after = queue.snapshot()
    untouched = f"series/{queue.patch_file(1).name}"
    assert after[untouched] == before[untouched]
    assert b"series/" + queue.patch_file(1).name.encode() not in queue.status()
    queue.expect(
        {
            "a.txt": TEXT.replace(b"line 9\n", b"nine\n"),
            "b.txt": TEXT.replace(b"line 4\n", b"line 4, upstream's\n").replace(
                b"line 30\n", b"line 30, ours\n"
            ),
        }
    )


def test_first_and_last_line(upstream: History, queue: Queue) -> None:
    """Hunks at the edges of a file, where the context is one-sided."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 20\n", b"line 20\nupstream's\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("top").write("a.txt", b"zero\n" + TEXT)
    topic.commit("end").write("a.txt", b"zero\n" + TEXT + b"last\n")
    queue.start()

    assert queue.sync().column("carry") == ["clean", "clean"]
    wanted = TEXT.replace(b"line 20\n", b"line 20\nupstream's\n")
    queue.expect({"a.txt": b"zero\n" + wanted + b"last\n"})


def test_patch_of_a_whole_file_on_a_whole_file(upstream: History, queue: Queue) -> None:
    """Several patches on one file, each over the lines of the one before."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().write("a.txt", b"top\n" + TEXT).tag("v2")
    topic = upstream.branch("topic", at="v1")
    for number in range(6):
        old = b"line 20, ours %d\n" % (number - 1) if number else b"line 20\n"
        topic.commit(f"step {number}").edit("a.txt", old, b"line 20, ours %d\n" % number)
    queue.start()

    assert set(queue.sync().column("carry")) == {"clean"}
    queue.expect({"a.txt": b"top\n" + TEXT.replace(b"line 20\n", b"line 20, ours 5\n")})


def test_adjacent_lines_conflict(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 20\n", b"line 20, upstream's\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit()
    topic.edit("a.txt", b"line 21\n", b"line 21, ours\n")
    queue.start()

    patch = queue.sync(code=4).patch(1)

    assert (patch["carry"], patch["action"]) == ("conflict", "ask")
    assert [one["path"] for one in patch["conflicts"]] == ["a.txt"]


def test_both_insert_at_the_same_place(upstream: History, queue: Queue) -> None:
    """Which comes first is a decision."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 20\n", b"line 20\nupstream's\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit()
    topic.edit("a.txt", b"line 20\n", b"line 20\nours\n")
    queue.start()

    assert queue.sync(code=4).column("carry") == ["conflict"]


def test_all_conflicts_at_once(upstream: History, queue: Queue) -> None:
    """One failure hides neither the later failures nor the good patches between."""
    start = upstream.commit()
    for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
        start.write(name, TEXT)
    start.tag("v1")
    change = upstream.commit()
    for name in ("a.txt", "c.txt", "d.txt"):
        change.edit(name, b"line 20\n", b"line 20, upstream's\n")
    change.tag("v2")
    topic = upstream.branch("topic", at="v1").commit("1").edit("a.txt", b"line 20\n", b"ours\n")
    topic = topic.commit("2").edit("b.txt", b"line 20\n", b"ours\n")
    topic = topic.commit("3").edit("c.txt", b"line 20\n", b"ours\n")
    topic.edit("d.txt", b"line 20\n", b"ours\n")
    topic.commit("4").edit("b.txt", b"line 30\n", b"ours too\n")
    queue.start()

    outcome = queue.sync(code=4)

    paths = [[one["path"] for one in patch["conflicts"]] for patch in outcome.json["patches"]]
    assert [sorted(each) for each in paths] == [["a.txt"], [], ["c.txt", "d.txt"], []]
    assert outcome.column("carry") == ["conflict", "clean", "conflict", "clean"]
    assert outcome.column("action") == ["ask", "keep", "ask", "keep"]


def test_patch_on_top_of_a_conflict(upstream: History, queue: Queue) -> None:
    """What stands on a conflicting patch is tried too, and never makes it look solved."""
    upstream.commit().write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 20\n", b"line 20, upstream's\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("1").edit("a.txt", b"line 20\n", b"ours\n")
    topic = topic.commit("2").edit("a.txt", b"ours\n", b"ours, better\n")
    topic.commit("3").edit("b.txt", b"line 20\n", b"ours\n")
    queue.start()

    outcome = queue.sync(code=4)

    assert outcome.column("carry")[0] == "conflict"
    assert outcome.column("carry")[2] == "clean"


def test_conflict_is_told_to_people(upstream: History, queue: Queue) -> None:
    """Without --json: the same code, the path in the text, nothing changed."""
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 20\n", b"line 20, upstream's\n").tag("v2")
    upstream.branch("topic", at="v1").commit("ours").edit("a.txt", b"line 20\n", b"ours\n")
    queue.start()
    before = queue.snapshot()

    outcome = queue.run("sync", "--onto", "v2", code=4)

    assert b"a.txt" in outcome.out + outcome.err
    assert queue.snapshot() == before
