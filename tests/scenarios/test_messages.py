"""Subjects and bodies that fool mail tools: the same after import, sync and export."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.cli import Queue
from tests.support.history import Commit, History, git, lines

TEXT = lines(range(1, 31))
FENCED = b"""Fix it

The crash came with:

```diff
diff --git a/f.txt b/f.txt
index 1234567..89abcde 100644
--- a/f.txt
+++ b/f.txt
@@ -1,3 +1,3 @@
 line 1
-line 2
+line 2, from the message
 line 3
```

and goes with this change.
"""
INDENTED = FENCED.replace(b"\n", b"\n    ").replace(b"    \n", b"\n").rstrip() + b"\n"
MESSAGES = {
    "tags": b"[Bugfix][V1] Fix [the] crash (#12345)\n",
    "only tags": b"[WIP] [2/3]\n",
    "like a patch subject": b"[PATCH v2 3/7] Re: fix it\n",
    "dashes": b"Fix it\n\n---\n\nPurpose and test plan, as pull requests have them.\n",
    "dashes at once": b"Fix it\n\n---\n",
    "trailers": b"Fix it\n\nWhy.\n\nSigned-off-by: Ada <a@example.org>\nCo-authored-by: B <b@x.org>\n",
    "two dashes": b"Fix it\n\n--\nsignature\n-- \n2.39.5\n",
    "scissors": b"Fix it\n\n-- >8 --\nSubject: another\n\nbody\n",
    "fenced diff": FENCED,
    "indented diff": INDENTED,
    "old style diff": b"Fix it\n\nIndex: f.txt\n=====\n*** f.txt\n--- f.txt\n***************\n*** 1,2 ****\n",
    "diff alone": b"Fix it\n\ndiff --git a/f.txt b/f.txt\n",
    "hunk alone": b"Fix it\n\n@@ -1,3 +1,3 @@\n",
    "hunk in the subject": b"@@ -1,3 +1,3 @@\n\nwhy\n",
    "diff in the subject": b"diff --git a/f.txt b/f.txt\n",
    "from": b"Fix it\n\nFrom 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\nx\n",
    "from in the subject": b"From here on it works\n\n>From there too\nFrom: someone <s@x.org>\n",
    "header lines": b"Fix it\n\nSubject: another\nDate: never\nFrom: Eve <eve@x.org>\n\nbody\n",
    "header lines of ours": b"Fix it\n\nOrigin: nowhere in particular\nUpstream-Status: who knows\n\nx\n",
    "tildes": b"~ Fix it\n\n~---\n~~ two\n~ diff --git a/x b/x\n~From here\n",
    "percent and backslash": b"Fix 100%s \\n \\\\ $HOME `id`\n\n%d %%\n",
    "colon": b"kernel: fix: it: all\n\nnote: so\n",
    "long subject": b"Fix " + b"very " * 60 + b"much\n",
    "subject of two lines": b"Fix it\nand go on without a blank line\n\nbody\n",
    "long body line": b"Fix it\n\n" + b"word " * 400 + b"end\n",
    "blank lines": b"Fix it\n\n\n\none\n\n\n\ntwo\n",
    "white space": b"Fix it\n\n  indented\n\ttab\n    code\n",
    "emoji": "Fix 🚀 für naïve 日本\n\nKörper 🎉\n".encode(),
    "line ends of other lands": "Fix it\n\na\u2028b\u2029c\x0cd\x85e\x1cf\n".encode(),
    "carriage returns": b"Fix it\n\none\r\ntwo\r\n",
    "quoted mail": b"Fix it\n\n> --- a/f.txt\n> +++ b/f.txt\n> @@ -1 +1 @@\n",
    "list of diffs": b"Fix it\n\n- --- a/f.txt\n- @@ -1 +1 @@\n* diff -u\n",
    "encoded word": b"=?UTF-8?q?Fix_it?= =3D\n\n=?x?=\n",
    "no newline at the end": b"Fix it",
    "base64 look": b"Fix it\n\nGIT binary patch\nliteral 5\nMcmZQzU|?imU|?imU|\n\n",
}
FIELDS = re.compile(rb"(Patchq-[A-Za-z-]+|Origin|Upstream-Status): ")


@pytest.fixture
def ours(upstream: History) -> Commit:
    """The commit to give a message to: upstream changes the same file elsewhere."""
    upstream.commit().write("f.txt", TEXT).tag("v1")
    upstream.commit().edit("f.txt", b"line 4\n", b"line 4, upstream's\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("x")
    return topic.edit("f.txt", b"line 20\n", b"line 20, ours\n")


def carried() -> dict[str, bytes]:
    text = TEXT.replace(b"line 4\n", b"line 4, upstream's\n")
    return {"f.txt": text.replace(b"line 20\n", b"line 20, ours\n")}


def exported(queue: Queue, branch: str = "out") -> bytes:
    """The raw commit that `patchq export` makes of the last patch."""
    queue.run("export", "--git", str(queue.upstream.path), "--branch", branch)
    return git(queue.upstream.path, "cat-file", "commit", branch)


def message(commit: bytes) -> bytes:
    """The message without our trailers and without the end's blank lines."""
    text = commit.split(b"\n\n", 1)[1]
    kept = text.rstrip(b"\n").split(b"\n")
    while kept and (FIELDS.match(kept[-1]) or not kept[-1]):
        kept.pop()
    return b"\n".join(kept)


def canonical(text: bytes) -> bytes:
    """As git itself shows a message: a subject of one line, one blank line after it."""
    subject, _, body = text.strip(b"\n").partition(b"\n\n")
    body = body.lstrip(b"\n")
    return subject.replace(b"\n", b" ") + (b"\n\n" + body if body else b"")


@pytest.mark.parametrize("text", MESSAGES.values(), ids=MESSAGES.keys())
def test_message(upstream: History, queue: Queue, ours: Commit, text: bytes) -> None:
    ours.message = text
    queue.start()
    queue.expect(upstream.tree("topic"), "v1")

    assert queue.sync().column("carry") == ["clean"]

    queue.expect(carried())
    assert message(exported(queue)) == canonical(text)
    header = git(upstream.path, "log", "-1", "--format=%an <%ae> %ad", "--date=raw", "out")
    assert header == git(
        upstream.path, "log", "-1", "--format=%an <%ae> %ad", "--date=raw", "topic"
    )
    assert git(upstream.path, "rev-parse", "out^{tree}").decode().strip() == queue.tree()
    assert git(upstream.path, "rev-parse", "out^") == git(upstream.path, "rev-parse", "v2^{commit}")


@pytest.mark.parametrize("text", [FENCED, INDENTED, MESSAGES["tags"], MESSAGES["header lines"]])
def test_git_am_takes_the_series(
    upstream: History, queue: Queue, ours: Commit, text: bytes, tmp_path: Path
) -> None:
    """`git am` on the bare release gives the tree and the message."""
    ours.message = text
    queue.start()
    queue.sync()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(upstream.path), str(clone))
    git(clone, "checkout", "-q", "v2")

    git(clone, "am", "-q", "--keep-cr", "--keep-non-patch", str(queue.patch_file(1)))

    assert git(clone, "rev-parse", "HEAD^{tree}").decode().strip() == queue.tree()
    assert git(clone, "log", "-1", "--format=%s").strip() == text.split(b"\n")[0]


def test_message_in_latin_1(upstream: History, queue: Queue, ours: Commit) -> None:
    """Declared as latin-1: the text stays, whatever the bytes."""
    text = "Grüße an René\n\nKörper\n"
    ours.message = text.encode("latin-1")
    ours.encoded("ISO-8859-1")
    queue.start()
    queue.sync()

    commit = exported(queue)

    encoding = (
        "latin-1" if b"\nencoding ISO-8859-1\n" in commit.split(b"\n\n")[0] + b"\n" else "utf-8"
    )
    assert message(commit).decode(encoding) == text.rstrip("\n")
    queue.expect(carried())


def test_message_in_no_encoding(upstream: History, queue: Queue, ours: Commit) -> None:
    """Neither UTF-8 nor declared: the bytes stay."""
    ours.message = b"Gr\xfc\xdfe \xff\xfe\n\nK\xf6rper\n"
    queue.start()
    queue.sync()

    assert message(exported(queue)) == ours.message.rstrip(b"\n")
    queue.expect(carried())


@pytest.mark.parametrize(
    "name",
    ["Jürgen Müller 🚀".encode(), b"O'Neil, Pat (x)", b'Q "quoted" B', b"a@b", b"J. R. [bot]"],
)
def test_author(upstream: History, queue: Queue, ours: Commit, name: bytes) -> None:
    ours.by(name, b"who+x@example.org", b"-0730")
    queue.start()
    queue.sync()

    commit = exported(queue)

    author = b"author %s <who+x@example.org> " % name
    assert author in commit
    assert b" -0730\n" in commit.split(author, 1)[1].split(b"committer")[0]


def test_empty_message(upstream: History, queue: Queue, ours: Commit) -> None:
    """A commit without a message still becomes a patch with a name."""
    ours.message = b""
    queue.start()

    outcome = queue.sync()

    assert outcome.patch(1)["name"]
    queue.expect(carried())


def test_same_subject_three_times(upstream: History, queue: Queue, ours: Commit) -> None:
    """Names stay apart."""
    ours.message = b"wip\n"
    topic = ours.commit(b"wip\n").edit("f.txt", b"line 25\n", b"line 25, ours\n")
    topic.commit(b"wip\n").edit("f.txt", b"line 29\n", b"line 29, ours\n")
    queue.start()

    outcome = queue.sync()

    assert len(set(outcome.column("name"))) == 3
    assert outcome.column("number") == [1, 2, 3]
    wanted = carried()["f.txt"].replace(b"line 25\n", b"line 25, ours\n")
    queue.expect({"f.txt": wanted.replace(b"line 29\n", b"line 29, ours\n")})


def test_export_and_import_give_the_same_series(
    upstream: History, queue: Queue, ours: Commit, tmp_path: Path
) -> None:
    """Out to a branch and back: the same files, byte for byte."""
    ours.message = FENCED
    topic = ours.commit(MESSAGES["tags"]).edit("f.txt", b"line 25\n", b"line 25, ours\n")
    topic.commit(MESSAGES["tildes"]).write("new.txt", b"new")
    queue.start()
    queue.sync()
    exported(queue)
    (tmp_path / "again").mkdir()
    again = Queue(tmp_path / "again", History(upstream.path))
    again.root.mkdir()
    git(again.root, "init", "-q")
    again.run("init", "demo", "--git", str(upstream.path), "--base", "v2")

    again.run("import", "--git", str(upstream.path), "v2..out")

    def files(one: Queue) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in one.series.iterdir() if path.is_file()}

    assert files(again) == files(queue)


def test_import_of_the_exported_file(upstream: History, queue: Queue, ours: Commit) -> None:
    """The same patch by its file, as a colleague would send it."""
    ours.message = INDENTED
    queue.start()
    file = queue.patch_file(1)
    sent = queue.folder / "sent.patch"
    sent.write_bytes(file.read_bytes())
    (queue.series / "series").write_text("")
    file.unlink()
    queue.commit()

    queue.run("import", str(sent))

    queue.expect(upstream.tree("topic"), "v1")
    assert queue.patch_file(1).read_bytes() == sent.read_bytes()


def test_import_of_format_patch(upstream: History, queue: Queue, ours: Commit) -> None:
    """git's own mail form of the whole series."""
    ours.message = b"[Bugfix][V1] Fix it\n\nWhy.\n"
    ours.commit("Zweite Änderung 🚀").edit("f.txt", b"line 25\n", b"line 25, ours\n")
    queue.start(commits=None)
    out = queue.folder / "mails"
    git(upstream.path, "format-patch", "-q", "-k", "-o", str(out), "v1..topic")

    queue.run("import", *(str(path) for path in sorted(out.iterdir())))

    queue.expect(upstream.tree("topic"), "v1")
    commit = queue.commit()
    assert message(exported(commit)) == "Zweite Änderung 🚀".encode()
    assert git(upstream.path, "log", "-1", "--format=%s", "out^") == b"[Bugfix][V1] Fix it\n"


def test_import_of_a_quilt_directory(upstream: History, queue: Queue, ours: Commit) -> None:
    """As quilt writes it: no header, `Index:` lines, timestamps, a plain diff."""
    queue.start(commits=None)
    quilt = queue.folder / "patches"
    quilt.mkdir()
    (quilt / "series").write_text("# ours\nfix.diff\n\nmore.diff -p1 # why\n")
    (quilt / "fix.diff").write_bytes(
        b"Why it is there.\n\nIndex: up/f.txt\n" + b"=" * 67 + b"\n"
        b"--- up.orig/f.txt\t2024-01-01 00:00:00.000000000 +0000\n"
        b"+++ up/f.txt\t2024-01-02 00:00:00.000000000 +0000\n"
        b"@@ -19,3 +19,3 @@\n line 19\n-line 20\n+line 20, ours\n line 21\n"
    )
    (quilt / "more.diff").write_bytes(
        b"--- a/f.txt\n+++ b/f.txt\n@@ -24,3 +24,3 @@\n line 24\n-line 25\n+line 25, ours\n line 26\n"
    )

    queue.run("import", "--quilt", str(quilt))

    wanted = TEXT.replace(b"line 20\n", b"line 20, ours\n")
    queue.expect({"f.txt": wanted.replace(b"line 25\n", b"line 25, ours\n")}, "v1")
    queue.commit()
    assert queue.sync().column("carry") == ["clean", "clean"]
