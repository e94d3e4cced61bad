"""Bytes as they are: line ends, encodings, modes, links, binaries, names."""

from __future__ import annotations

import pytest

from tests.support.cli import Queue
from tests.support.history import Entry, History, Name, lines, link, script

TEXT = lines(range(1, 41))


def crlf(text: bytes) -> bytes:
    return text.replace(b"\n", b"\r\n")


CONTENTS = {
    "crlf": (crlf(TEXT), b"line 30\r\n", b"line 30, ours\r\n"),
    "crlf turned to lf": (crlf(TEXT), b"line 30\r\n", b"line 30\n"),
    "one crlf among lf": (TEXT.replace(b"30\n", b"30\r\n"), b"line 29\n", b"line 29\r\n"),
    "end without newline": (TEXT[:-1], b"line 40", b"line 40, ours"),
    "newline taken from the end": (TEXT, b"line 40\n", b"line 40"),
    "newline put to the end": (TEXT[:-1], b"line 40", b"line 40\n"),
    "appended after no newline": (TEXT[:-1], b"line 40", b"line 40\nline 41"),
    "latin-1": (TEXT.replace(b"30", b"gr\xfc\xdf"), b"gr\xfc\xdf\n", b"Gr\xfc\xdfe\n"),
    "broken utf-8": (TEXT.replace(b"30", b"\xff\xfe\x80"), b"\xff\xfe\x80", b"\xc3\x28\xfe"),
    "utf-8 with mark": (b"\xef\xbb\xbf" + TEXT, b"line 30\n", "línea 30 🚀\n".encode()),
    "line ends of other lands": (
        TEXT.replace(b"30", "3\x0c0\x1c\x1d\x85\u2028\u20290\x0b".encode()),
        b"\x0b\n",
        b"\x0b, ours\x0c\n",
    ),
    "carriage returns inside": (TEXT.replace(b"30", b"3\r0\r"), b"3\r0\r\n", b"3\r0\r, ours\r\n"),
    "white space at the end": (TEXT.replace(b"30", b"30 \t "), b"30 \t \n", b"30  \t \t\n"),
    "blank lines at the end": (TEXT + b"\n\n\n", b"line 40\n", b"line 40\n\n\n"),
    "tabs turned to spaces": (TEXT.replace(b"line 30", b"\tline 30"), b"\tline 30", b"    line 30"),
    "very long line": (TEXT.replace(b"30", b"x" * 70_000), b"x\n", b"x, ours\n"),
    "looks like a diff": (
        TEXT.replace(
            b"line 30\n",
            b"-- a/old\n++ b/new\ndiff --git a/x b/x\n@@ -1,3 +1,3 @@\n-- \n\\ No newline\n",
        ),
        b"-- a/old\n++ b/new\n",
        b"-- a/older\n++ b/newer\n-- \n",
    ),
    "looks like mail": (
        TEXT.replace(b"line 30\n", b"From abc\n---\n.\nSubject: x\n"),
        b"From abc\n---\n",
        b"From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\n---\n---\n",
    ),
}


@pytest.mark.parametrize("case", CONTENTS.values(), ids=CONTENTS.keys())
def test_content(upstream: History, queue: Queue, case: tuple[bytes, bytes, bytes]) -> None:
    """Ours near the end, upstream's near the start: both, byte for byte."""
    text, old, new = case
    end = b"\r\n" if b"line 4\r\n" in text else b"\n"
    theirs = (b"line 4" + end, b"line 4, upstream's" + end)
    upstream.commit().write("f.txt", text).tag("v1")
    upstream.commit().edit("f.txt", *theirs).tag("v2")
    upstream.branch("topic", at="v1").commit("ours").edit("f.txt", old, new)
    queue.start()
    queue.expect(upstream.tree("topic"), "v1")

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["carry"], patch["action"]) == ("needed", "clean", "keep")
    queue.expect({"f.txt": text.replace(old, new).replace(*theirs)})


NAMES: dict[str, Name] = {
    "space": "with space.txt",
    "space first": " lead.txt",
    "quote": 'quote"d.txt',
    "apostrophe": "it's.txt",
    "backslash": "back\\slash.txt",
    "tab": "tab\there.txt",
    "newline": "new\nline.txt",
    "accent": "naïve.txt",
    "unicode": "ünï/日本 語 🚀.txt",
    "latin-1": b"caf\xe9/b\xe4r.txt",
    "dash": "-dash.txt",
    "shell": "semi;$HOME `x` *.txt",
    "hash": "a#b.txt",
    "brackets": "(round)[square]{curly}.txt",
    "like the prefix": "b/a/b/x.txt",
    "like dev null": "dev/null",
    "dots": "..a/...b/.c..",
    "like a folder of git": "sub/git/config",
    "percent": "100%s%n.txt",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_name(upstream: History, queue: Queue, name: Name) -> None:
    """Edited, added, deleted and made executable under an odd name."""
    old, new = (n + b".more" if isinstance(n, bytes) else n + ".more" for n in (name, name))
    gone = name + b".gone" if isinstance(name, bytes) else name + ".gone"
    upstream.commit().write(name, TEXT).write(gone, TEXT).write("z", b"z\n").tag("v1")
    upstream.commit().edit(name, b"line 4\n", b"line 4, upstream's\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("edit")
    topic.edit(name, b"line 30\n", b"line 30, ours\n").chmod(name, 0o100755)
    topic.commit("add").write(new, b"new\n")
    topic.commit("delete").delete(gone)
    queue.start()

    outcome = queue.sync()

    assert outcome.column("action") == ["keep", "keep", "keep"]
    text = TEXT.replace(b"line 4\n", b"line 4, upstream's\n")
    wanted = script(text.replace(b"line 30\n", b"line 30, ours\n"))
    queue.expect({name: wanted, old: b"new\n", "z": b"z\n"})


def test_name_that_ends_in_a_space(upstream: History, queue: Queue) -> None:
    """quilt loses the space; git and patchq do not."""
    upstream.commit().write("trail ", TEXT).tag("v1")
    upstream.commit().edit("trail ", b"line 4\n", b"line 4, upstream's\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit()
    topic.edit("trail ", b"line 30\n", b"line 30, ours\n")
    queue.start()

    queue.sync()

    text = TEXT.replace(b"line 4\n", b"line 4, upstream's\n")
    queue.expect({"trail ": text.replace(b"line 30\n", b"line 30, ours\n")}, quilt=False)


@pytest.mark.parametrize("mode", [0o100755, 0o100644], ids=["made executable", "made plain"])
def test_mode_only(upstream: History, queue: Queue, mode: int) -> None:
    """StGit --merged takes it for merged and loses it."""
    before = 0o100755 + 0o100644 - mode
    upstream.commit().write("run.sh", TEXT, before).tag("v1")
    upstream.commit().edit("run.sh", b"line 4\n", b"line 4, upstream's\n").tag("v2")
    upstream.branch("topic", at="v1").commit("mode").chmod("run.sh", mode)
    queue.start()

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["carry"], patch["action"]) == ("needed", "clean", "keep")
    queue.expect({"run.sh": Entry(TEXT.replace(b"line 4\n", b"line 4, upstream's\n"), mode)})


def test_mode_only_on_an_empty_file(upstream: History, queue: Queue) -> None:
    upstream.commit().write("run.sh", b"").write("z", b"z\n").tag("v1")
    upstream.commit().write("z", b"zz\n").tag("v2")
    upstream.branch("topic", at="v1").commit("mode").chmod("run.sh", 0o100755)
    queue.start()

    assert queue.sync().column("verdict") == ["needed"]
    queue.expect({"run.sh": script(b""), "z": b"zz\n"})


def test_mode_only_landed(upstream: History, queue: Queue) -> None:
    upstream.commit().write("run.sh", TEXT).tag("v1")
    upstream.commit().chmod("run.sh", 0o100755).tag("v2")
    upstream.branch("topic", at="v1").commit("mode").chmod("run.sh", 0o100755)
    queue.start()

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["action"]) == ("landed", "drop")
    queue.expect({"run.sh": script(TEXT)})


def test_mode_upstream_text_ours(upstream: History, queue: Queue) -> None:
    """An upstream that makes the file executable is not undone by our text."""
    upstream.commit().write("run.sh", TEXT).tag("v1")
    upstream.commit().chmod("run.sh", 0o100755).tag("v2")
    topic = upstream.branch("topic", at="v1").commit()
    topic.edit("run.sh", b"line 30\n", b"line 30, ours\n")
    queue.start()

    assert queue.sync().column("verdict") == ["needed"]
    queue.expect({"run.sh": script(TEXT.replace(b"line 30\n", b"line 30, ours\n"))})


@pytest.mark.parametrize("target", [b"b.txt", b"../out\xe9 side", b"no newline\n", b"sp ace"])
def test_link_retargeted(upstream: History, queue: Queue, target: bytes) -> None:
    upstream.commit().link("l", b"a.txt").write("a.txt", TEXT).tag("v1")
    upstream.commit().write("a.txt", TEXT + b"more\n").tag("v2")
    upstream.branch("topic", at="v1").commit().link("l", target)
    queue.start()

    assert queue.sync().column("carry") == ["clean"]
    quilt = not target.endswith(b"\n")
    queue.expect({"l": link(target), "a.txt": TEXT + b"more\n"}, quilt=quilt)


def test_link_changed_by_both(upstream: History, queue: Queue) -> None:
    upstream.commit().link("l", b"a").tag("v1")
    upstream.commit().link("l", b"theirs").tag("v2")
    upstream.branch("topic", at="v1").commit().link("l", b"ours")
    queue.start()

    patch = queue.sync(code=4).patch(1)

    assert (patch["carry"], patch["action"]) == ("conflict", "ask")
    assert [one["path"] for one in patch["conflicts"]] == ["l"]


def test_link_changed_alike(upstream: History, queue: Queue) -> None:
    upstream.commit().link("l", b"a").tag("v1")
    upstream.commit().link("l", b"b").tag("v2")
    upstream.branch("topic", at="v1").commit().link("l", b"b")
    queue.start()

    assert queue.sync().column("verdict") == ["landed"]
    queue.expect({"l": link(b"b")})


def test_file_becomes_a_link(upstream: History, queue: Queue) -> None:
    upstream.commit().write("l", TEXT).write("z", b"z\n").tag("v1")
    upstream.commit().write("z", b"zz\n").tag("v2")
    upstream.branch("topic", at="v1").commit().link("l", b"z")
    queue.start()

    assert queue.sync().column("carry") == ["clean"]
    queue.expect({"l": link(b"z"), "z": b"zz\n"})


def test_link_becomes_a_file(upstream: History, queue: Queue) -> None:
    upstream.commit().link("l", b"z").write("z", b"z\n").tag("v1")
    upstream.commit().write("z", b"zz\n").tag("v2")
    upstream.branch("topic", at="v1").commit().write("l", TEXT)
    queue.start()

    assert queue.sync().column("carry") == ["clean"]
    queue.expect({"l": TEXT, "z": b"zz\n"})


def test_file_becomes_a_link_but_upstream_changed_it(upstream: History, queue: Queue) -> None:
    upstream.commit().write("l", TEXT).tag("v1")
    upstream.commit().write("l", TEXT + b"more\n").tag("v2")
    upstream.branch("topic", at="v1").commit().link("l", b"z")
    queue.start()

    assert queue.sync(code=4).patch(1)["carry"] == "conflict"


def test_file_becomes_a_link_upstream(upstream: History, queue: Queue) -> None:
    """Never three ways of a text and a target."""
    upstream.commit().write("l", TEXT).tag("v1")
    upstream.commit().link("l", b"z").tag("v2")
    topic = upstream.branch("topic", at="v1").commit()
    topic.edit("l", b"line 30\n", b"line 30, ours\n")
    queue.start()

    assert queue.sync(code=4).patch(1)["carry"] == "conflict"


def test_file_becomes_a_folder(upstream: History, queue: Queue) -> None:
    """quilt cannot take it; git and patchq can."""
    upstream.commit().write("conf", TEXT).write("z", b"z\n").tag("v1")
    upstream.commit().write("z", b"zz\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit()
    topic.delete("conf").write("conf/main.txt", b"main\n").write("conf/more.txt", b"more\n")
    queue.start()

    assert queue.sync().column("carry") == ["clean"]
    queue.expect(
        {"conf/main.txt": b"main\n", "conf/more.txt": b"more\n", "z": b"zz\n"}, quilt=False
    )


def test_folder_becomes_a_file(upstream: History, queue: Queue) -> None:
    upstream.commit().write("conf/a", TEXT).write("conf/b", b"b\n").write("z", b"z\n").tag("v1")
    upstream.commit().write("z", b"zz\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit()
    topic.delete("conf/a", "conf/b").write("conf", b"one file\n")
    queue.start()

    assert queue.sync().column("carry") == ["clean"]
    queue.expect({"conf": b"one file\n", "z": b"zz\n"}, quilt=False)


def noise(seed: int) -> bytes:
    return bytes((seed * 7 + n * n) % 256 for n in range(600)) + b"\0\xff\n"


def test_binary_patched(upstream: History, queue: Queue) -> None:
    upstream.commit().write("logo.bin", noise(1)).write("z", b"z\n").tag("v1")
    upstream.commit().write("z", b"zz\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit().write("logo.bin", noise(2))
    topic.write("new.bin", noise(3))
    queue.start()

    assert queue.sync().column("carry") == ["clean"]
    queue.expect({"logo.bin": noise(2), "new.bin": noise(3), "z": b"zz\n"}, quilt=False)


def test_binary_changed_by_both(upstream: History, queue: Queue) -> None:
    upstream.commit().write("logo.bin", noise(1)).tag("v1")
    upstream.commit().write("logo.bin", noise(3)).tag("v2")
    upstream.branch("topic", at="v1").commit().write("logo.bin", noise(2))
    queue.start()

    patch = queue.sync(code=4).patch(1)

    assert (patch["carry"], patch["action"]) == ("conflict", "ask")
    assert [one["path"] for one in patch["conflicts"]] == ["logo.bin"]


def test_binary_landed(upstream: History, queue: Queue) -> None:
    upstream.commit().write("logo.bin", noise(1)).tag("v1")
    upstream.commit().write("logo.bin", noise(2)).tag("v2")
    upstream.branch("topic", at="v1").commit().write("logo.bin", noise(2))
    queue.start()

    assert queue.sync().column("verdict") == ["landed"]
    queue.expect({"logo.bin": noise(2)})


def test_binary_moved_upstream(upstream: History, queue: Queue) -> None:
    upstream.commit().write("logo.bin", noise(1)).write("z", b"z\n").tag("v1")
    upstream.commit().move("logo.bin", "art/logo.bin").tag("v2")
    upstream.branch("topic", at="v1").commit().write("logo.bin", noise(2))
    queue.start()

    assert queue.sync().column("carry") == ["moved"]
    queue.expect({"art/logo.bin": noise(2), "z": b"z\n"}, quilt=False)


def test_binary_deleted(upstream: History, queue: Queue) -> None:
    upstream.commit().write("logo.bin", noise(1)).write("z", b"z\n").tag("v1")
    upstream.commit().write("z", b"zz\n").tag("v2")
    upstream.branch("topic", at="v1").commit().delete("logo.bin")
    queue.start()

    assert queue.sync().column("carry") == ["clean"]
    queue.expect({"z": b"zz\n"}, quilt=False)


def test_new_empty_file(upstream: History, queue: Queue) -> None:
    upstream.commit().write("z", b"z\n").tag("v1")
    upstream.commit().write("z", b"zz\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit()
    topic.write("pkg/__init__.py", b"").write("pkg/run.sh", script(b""))
    queue.start()

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["action"]) == ("needed", "keep")
    queue.expect({"pkg/__init__.py": b"", "pkg/run.sh": script(b""), "z": b"zz\n"})


def test_new_empty_file_landed(upstream: History, queue: Queue) -> None:
    upstream.commit().write("z", b"z\n").tag("v1")
    upstream.commit().write("pkg/__init__.py", b"").tag("v2")
    upstream.branch("topic", at="v1").commit().write("pkg/__init__.py", b"")
    queue.start()

    assert queue.sync().column("verdict") == ["landed"]
    queue.expect({"pkg/__init__.py": b"", "z": b"z\n"})


def test_empty_file_filled_and_emptied(upstream: History, queue: Queue) -> None:
    upstream.commit().write("empty", b"").write("full", TEXT).write("z", b"z\n").tag("v1")
    upstream.commit().write("z", b"zz\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("fill").write("empty", b"filled\n")
    topic.commit("empty").write("full", b"")
    topic.commit("delete").delete("empty")
    queue.start()

    assert queue.sync().column("action") == ["keep", "keep", "keep"]
    queue.expect({"full": b"", "z": b"zz\n"})


def test_many_files_in_one_patch(upstream: History, queue: Queue) -> None:
    """Everything at once, in one patch: text, mode, new, gone, link, odd name."""
    start = upstream.commit().write("a.txt", TEXT).write("b.sh", TEXT).write("c.txt", TEXT)
    start.link("l", b"a.txt").write("d d/é.txt", crlf(TEXT)).tag("v1")
    upstream.commit().edit("a.txt", b"line 4\n", b"line 4, upstream's\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("all")
    topic.edit("a.txt", b"line 30\n", b"line 30, ours\n").chmod("b.sh", 0o100755).delete("c.txt")
    topic.link("l", b"b.sh").edit("d d/é.txt", b"line 9\r\n", b"").write("n/n/n.txt", b"n")
    queue.start()

    assert queue.sync().column("carry") == ["clean"]
    text = TEXT.replace(b"line 4\n", b"line 4, upstream's\n")
    queue.expect(
        {
            "a.txt": text.replace(b"line 30\n", b"line 30, ours\n"),
            "b.sh": script(TEXT),
            "l": link(b"b.sh"),
            "d d/é.txt": crlf(TEXT).replace(b"line 9\r\n", b""),
            "n/n/n.txt": b"n",
        }
    )
