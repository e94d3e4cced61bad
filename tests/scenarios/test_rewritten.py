"""Review rewrote a patch to the last line, and left the note of what it is for as it was."""

from __future__ import annotations

import pytest

from tests.support.cli import Queue
from tests.support.history import Commit, Entry, History, lines

START = lines(range(1, 41))
NOTE = "changelog/7.bugfix.rst"
SAYS = b"Fixed the knobs, which are now read in the order of the file.\n"
LINE, TEST = b"line 10\n", b"line 20\n"
OURS, OUR_TEST = b"line 10\nread(knobs)\n", b"line 20\ntested = read(knobs)\n"
THEIRS, THEIR_TEST = (
    b"line 10\nfor knob in ordered_by_file():\n    ask(knob)\n",
    b"line 20\ntested = asked_for()\nassert tested, 'in order'\n",
)


def start(upstream: History) -> History:
    upstream.commit().write("knobs.txt", START).write("test_knobs.txt", START)
    upstream.commit().write("other.txt", START).write("CHANGES.rst", START).tag("v1")
    return upstream


def landing(upstream: History) -> Commit:
    made = upstream.commit("Ask for every knob (#7)").write(NOTE, SAYS)
    return made.edit("knobs.txt", LINE, THEIRS).edit("test_knobs.txt", TEST, THEIR_TEST)


def ours(upstream: History) -> Commit:
    made = upstream.branch("topic", at="v1").commit("Knobs").write(NOTE, SAYS)
    return made.edit("knobs.txt", LINE, OURS).edit("test_knobs.txt", TEST, OUR_TEST)


def released(upstream: History) -> Commit:
    """The notes become a chapter of the changelog, as towncrier does it."""
    made = upstream.commit("Prepare the release").delete(NOTE)
    return made.edit("CHANGES.rst", b"line 1\n", b"line 1\n" + SAYS)


@pytest.mark.parametrize("release", [False, True], ids=["the note stands", "the note was used"])
def test_it_landed(upstream: History, queue: Queue, release: bool) -> None:
    landing(start(upstream))
    if release:
        released(upstream)
    upstream.commit("More (#8)").edit("other.txt", b"line 3\n", b"3\n").tag("v2")
    ours(upstream)
    queue.start()

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["action"]) == ("landed-with-changes", "drop")
    assert f"(#7), which adds {NOTE} as this patch does" in patch["evidence"][0]["detail"]
    queue.expect(upstream.tree("v2"))


def test_a_merged_branch_is_one(upstream: History, queue: Queue) -> None:
    start(upstream)
    upstream.branch("asked", at="v1").commit("Ask").edit("knobs.txt", LINE, THEIRS)
    upstream.commit("Say so").write(NOTE, SAYS).edit("test_knobs.txt", TEST, THEIR_TEST)
    upstream.branch("main").commit("More (#8)").edit("other.txt", b"line 3\n", b"3\n")
    upstream.commit("Merge pull request #7 from ada/asked\n\nAsk").merging("asked").tag("v2")
    ours(upstream)
    queue.start()

    assert queue.sync().column("verdict") == ["landed-with-changes"]
    queue.expect(upstream.tree("v2"))


def test_what_it_changes_besides_is_kept(upstream: History, queue: Queue) -> None:
    """A bundle: one line in a file that the landing leaves alone."""
    landing(start(upstream)).tag("v2")
    ours(upstream).edit("other.txt", b"line 30\n", b"line 30, needed\n")
    queue.start()

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["action"]) == ("partly-landed", "shrink")
    wanted = upstream.tree("v2") | {b"other.txt": upstream.tree("topic")[b"other.txt"]}
    queue.expect(wanted)


@pytest.mark.parametrize(
    ("at", "more"),
    [
        (b"line 30\n", b"line 30, needed\n"),
        (b"line 31\n", b""),
        (b"read(knobs)\n", b"read(knobs)\nand_then(this)\nand_then(that)\n"),
    ],
    ids=["at another place", "a line less", "more than the landing has"],
)
def test_what_it_changes_besides_in_the_same_file(
    upstream: History, queue: Queue, at: bytes, more: bytes
) -> None:
    landing(start(upstream)).edit("other.txt", b"line 3\n", b"3\n").tag("v2")
    topic = ours(upstream)
    topic.edit("knobs.txt", at, more)
    queue.start()

    patch = queue.sync(code=4).patch(1)

    assert (patch["verdict"], patch["action"]) == ("uncertain", "ask")
    assert "not all of the patch stands where it changes" in patch["evidence"][0]["detail"]


def test_where_another_change_of_upstream_conflicts(upstream: History, queue: Queue) -> None:
    """That place is not the landing's, though upstream changed it as well."""
    landing(start(upstream)).commit("Off (#9)").edit("knobs.txt", b"line 30\n", b"thirty\n")
    upstream.commit("More (#8)").edit("other.txt", b"line 3\n", b"3\n").tag("v2")
    ours(upstream).edit("knobs.txt", b"line 30\n", b"line 30, needed\n")
    queue.start()

    assert queue.sync(code=4).column("verdict") == ["uncertain"]


@pytest.mark.parametrize(
    ("subject", "used"),
    [('Revert "Ask for every knob (#7)" (#9)', True), ("Revert #7 (#9)", True), ("Off", False)],
)
def test_it_was_taken_back(upstream: History, queue: Queue, subject: str, used: bool) -> None:
    """By words, after a release too; without words by the files that go back, the note first."""
    landing(start(upstream))
    if used:
        released(upstream)
    back = upstream.commit(subject).edit("knobs.txt", THEIRS, LINE)
    back.edit("test_knobs.txt", THEIR_TEST, TEST)
    if not used:
        back.delete(NOTE)
    back.tag("v2")
    ours(upstream)
    queue.start()

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["action"]) == ("reverted", "keep")
    mine = {path: upstream.tree("topic")[path] for path in (b"knobs.txt", b"test_knobs.txt")}
    queue.expect(
        upstream.tree("v2") | mine | {NOTE.encode(): upstream.tree("topic")[NOTE.encode()]}
    )


def test_it_may_have_been_taken_back(upstream: History, queue: Queue) -> None:
    """The note goes with the landing's files, and with others."""
    landing(start(upstream))
    gone = upstream.commit("Rewrite it all").delete(NOTE).edit("other.txt", b"line 3\n", b"3\n")
    gone.edit("knobs.txt", b"    ask(knob)\n", b"    other(knob)\n")
    gone.edit("test_knobs.txt", b"tested = asked_for()\n", b"tested = other()\n").tag("v2")
    ours(upstream)
    queue.start()

    assert queue.sync(code=4).column("action") == ["ask"]


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("pkg/__init__.py", b""),
        ("table.json", b'{"knobs": ["of", "the", "file"]}\n' * 2),
        ("table.py", b"# This file is generated by the makers of tables.\n" + b"A = 1\n" * 9),
        ("LICENSE.more", b"You may do with this file all that you want to do.\n"),
        ("data.bin", b"Fixed the knobs, which are now read.\0\xff\n"),
    ],
    ids=["empty", "data", "generated", "licence", "binary"],
)
def test_a_file_that_tells_nothing(upstream: History, queue: Queue, path: str, data: bytes) -> None:
    landing(start(upstream)).delete(NOTE).write(path, data).tag("v2")
    ours(upstream).delete(NOTE).write(path, data)
    queue.start()

    assert queue.sync(code=4).column("verdict") == ["needed"]


@pytest.mark.parametrize("when", ["in the old release", "in the range"])
def test_a_template_tells_nothing(upstream: History, queue: Queue, when: str) -> None:
    """The very sentences stand at another path as well."""
    start(upstream)
    if when == "in the old release":
        upstream.tips["main"].write("changelog/template.rst", SAYS)
    landing(upstream)
    if when == "in the range":
        upstream.commit("Another (#8)").write("changelog/8.bugfix.rst", SAYS)
    upstream.commit("More (#9)").edit("other.txt", b"line 3\n", b"3\n").tag("v2")
    ours(upstream)
    queue.start()

    assert queue.sync(code=4).column("verdict") == ["needed"]


def test_the_note_alone_came(upstream: History, queue: Queue) -> None:
    """Another commit changes the files: who knows what for."""
    start(upstream).commit("Say so (#7)").write(NOTE, SAYS)
    other = upstream.commit("Ask for every knob (#8)").edit("knobs.txt", LINE, THEIRS)
    other.edit("test_knobs.txt", TEST, THEIR_TEST).tag("v2")
    ours(upstream)
    queue.start()

    assert queue.sync(code=4).column("action") == ["ask"]


@pytest.mark.parametrize(
    ("name", "verdict", "code"),
    [("7.misc.rst", "landed-with-changes", 0), ("8.misc.rst", "partly-landed", 0)],
    ids=["with another ending", "another one's"],
)
def test_its_new_file_came_by_another_name(
    upstream: History, queue: Queue, name: str, verdict: str, code: int
) -> None:
    """Most of the patch landed; the note came in other words and as another kind of note."""
    knobs = b"".join(b"    knob_%d = read(setting_%d)\n" % (n, n) for n in range(30))
    theirs = knobs.replace(b"read(setting_3)", b"read(setting_3, default=0)")
    said = b"* read the knobs of the file\n* and in their order\n\n-- by Ada\n"
    start(upstream).commit("Knobs (#7)").edit("knobs.txt", LINE, LINE + theirs).write(
        f"changelog/{name}", b"Fixed knobs.\n\n-- by Ada\n"
    ).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("Read the knobs").write(NOTE, said)
    topic.edit("knobs.txt", LINE, LINE + knobs)
    queue.start()

    assert queue.sync(code=code).column("verdict") == [verdict]


@pytest.mark.parametrize(
    ("path", "data", "theirs", "its", "gone"),
    [
        (NOTE, b"Read ``knobs``.\n", NOTE, SAYS, True),
        (NOTE, b"Read ``knobs``.\n", NOTE, b"knobs = [1, 2]\n", False),
        ("docs/knobs.md", b"``knobs = 1``\n" * 100, "docs/knobs.md", SAYS, False),
        ("changelog/7.trivial.rst", b"", "changelog/8.bugfix.rst", SAYS, True),
        ("changelog/7.trivial.rst", b"", "docs/8.bugfix.rst", SAYS, False),
        ("changelog/7.trivial.rst", b"", "changelog/index.rst", SAYS, False),
        ("docs/index.md", b"", "docs/8.bugfix.md", SAYS, False),
        ("pkg/__init__.py", b"", "pkg/knobs.py", b"knobs = [1, 2]\n", False),
        ("pkg/py.typed", b"", "pkg/8.bugfix.rst", SAYS, False),
        ("changelog/.gitkeep", b"", "changelog/8.bugfix.rst", SAYS, False),
    ],
    ids=[
        "a note there",
        "no note there",
        "all of the manual",
        "an empty note",
        "in another folder",
        "no note in its folder",
        "an empty document",
        "empty code",
        "a mark of types",
        "a mark of a folder",
    ],
)
def test_its_new_file_says_little(
    upstream: History, queue: Queue, path: str, data: bytes, theirs: str, its: bytes, gone: bool
) -> None:
    """Most of the patch landed; what its new file is the landing's own says, or its folder."""
    knobs = b"".join(b"    knob_%d = read(setting_%d)\n" % (n, n) for n in range(30))
    landed = knobs.replace(b"read(setting_3)", b"read(setting_3, default=0)")
    made = start(upstream).commit("Knobs (#7)").edit("knobs.txt", LINE, LINE + landed)
    made.write(theirs, its).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("Read the knobs").write(path, data)
    topic.edit("knobs.txt", LINE, LINE + knobs)
    queue.start()

    patch = queue.sync(code=None).patch(1)

    assert (patch["action"] == "drop") is gone


def test_a_line_that_only_the_patch_removes(upstream: History, queue: Queue) -> None:
    """Upstream took all the rest; what a bundle removes beside it is not lost."""
    knobs = b"".join(b"    knob_%d = read(setting_%d)\n" % (n, n) for n in range(30))
    theirs = knobs.replace(b"read(setting_3)", b"read(setting_3, default=0)")
    start(upstream).commit("Knobs (#7)").edit("knobs.txt", LINE, LINE + theirs).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("Read the knobs")
    topic.edit("knobs.txt", LINE, LINE + knobs).edit("knobs.txt", b"line 30\n", b"")
    queue.start()

    assert queue.sync().column("verdict") == ["partly-landed"]
    text = upstream.tree("v2")[b"knobs.txt"].data.replace(b"line 30\n", b"")
    queue.expect(upstream.tree("v2") | {b"knobs.txt": Entry(text)})
