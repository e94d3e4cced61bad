"""A sentence that says what is wrong, where, and what to do; exit 1; nothing changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Outcome, Queue
from tests.support.history import History, git, lines, link

TEXT = lines(range(1, 31))


@pytest.fixture
def story(upstream: History, queue: Queue) -> Queue:
    upstream.commit().write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
    upstream.commit().edit("a.txt", b"line 4\n", b"line 4, upstream's\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("one")
    topic.edit("a.txt", b"line 20\n", b"line 20, ours\n")
    topic.commit("two").edit("b.txt", b"line 20\n", b"line 20, ours\n")
    return queue.start()


def refused(queue: Queue, *args: str) -> Outcome:
    """Exit 1 in both forms: a sentence for people, the error's JSON for machines."""
    before = queue.snapshot()
    said = queue.run(*args, code=1)
    text = said.err.decode()
    assert text.strip(), "nothing said"
    assert len(text.strip().splitlines()) <= 6, text
    value = queue.run(*args, "--json", code=1).json
    assert value["schema"] == "patchq.error/1"
    assert value["message"].strip()
    assert value["hint"].strip()
    assert queue.snapshot() == before
    return said


def test_unknown_release(story: Queue) -> None:
    said = refused(story, "sync", "--onto", "v7")

    assert b"v7" in said.err
    assert b"v1" in said.err
    assert b"v2" in said.err


def test_release_that_looks_like_an_option(story: Queue) -> None:
    refused(story, "sync", "--onto=--upload-pack=touch x")


def test_series_names_a_missing_file(story: Queue) -> None:
    name = story.names()[0]
    (story.series / name).unlink()
    story.commit()

    assert name.encode() in refused(story, "sync", "--onto", "v2").err


def test_series_names_a_file_twice(story: Queue) -> None:
    first, second = story.names()
    (story.series / "series").write_text(f"{first}\n{second}\n{first}\n")
    story.commit()

    assert first.encode() in refused(story, "sync", "--onto", "v2").err


def test_series_does_not_name_a_file(story: Queue) -> None:
    """A patch that nobody applies: orphaned by a bad merge, perhaps."""
    first, second = story.names()
    (story.series / "series").write_text(f"{first}\n")
    story.commit()

    outcome = story.run("check", code=None)

    assert outcome.code != 0, str(outcome)
    assert second.encode() in outcome.out + outcome.err


@pytest.mark.parametrize("name", ["../outside.patch", "/etc/passwd", ".git/config", "sub/../../x"])
def test_series_names_a_file_outside(story: Queue, name: str) -> None:
    with (story.series / "series").open("a") as file:
        file.write(f"{name}\n")
    story.commit()

    refused(story, "sync", "--onto", "v2")


def test_patch_file_is_a_link(story: Queue) -> None:
    """A link in series/ could make any file of the machine a patch."""
    path = story.patch_file(1)
    outside = story.folder / "outside.patch"
    path.rename(outside)
    path.symlink_to(outside)
    story.commit()

    outcome = story.run("sync", "--onto", "v2", "--json", code=None)

    assert outcome.code in (0, 1), str(outcome)
    assert outside.is_file()


def test_series_with_an_option_that_is_not_p1(story: Queue) -> None:
    first, second = story.names()
    (story.series / "series").write_text(f"{first} -p3\n{second}\n")
    story.commit()

    refused(story, "sync", "--onto", "v2")


MALFORMED = {
    "cut in a hunk": lambda text: text[: text.rindex(b" line 23")],
    "hunk longer than said": lambda text: text + b"+too much\n+and more\n",
    "wrong count": lambda text: text.replace(b"@@ -17,7 +17,7 @@", b"@@ -17,9 +17,7 @@"),
    "no numbers": lambda text: text.replace(b"@@ -17,7 +17,7 @@", b"@@ here @@"),
    "other context": lambda text: text.replace(b" line 18\n", b" line 18, no\n"),
    "no diff": lambda text: text[: text.index(b"diff --git ")],
    "garbage": lambda text: b"\0\1\2 this is no patch\n",
    "empty": lambda text: b"",
    "conflict marks": lambda text: b"<<<<<<< ours\n" + text + b"=======\n>>>>>>> theirs\n",
    "mail mangled": lambda text: text.replace(b"\n line 18\n", b"\nline 18\n"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_patch_in_the_series(story: Queue, name: str) -> None:
    path = story.patch_file(1)
    before = path.read_bytes()
    assert b"@@ -17,7 +17,7 @@" in before
    assert MALFORMED[name](before) != before
    path.write_bytes(MALFORMED[name](before))
    story.commit()

    assert path.name.encode() in refused(story, "sync", "--onto", "v2").err


@pytest.mark.parametrize(
    "name", ["cut in a hunk", "wrong count", "no numbers", "other context", "garbage", "empty"]
)
def test_malformed_patch_imported(story: Queue, name: str) -> None:
    """All or nothing, also where a good file comes first."""
    good = story.folder / "good.patch"
    good.write_bytes(diff("c.txt"))
    bad = story.folder / "bad.patch"
    text = story.patch_file(1).read_bytes().replace(b"line 20", b"line 21")
    bad.write_bytes(MALFORMED[name](text))

    assert b"bad.patch" in refused(story, "import", str(good), str(bad)).err


def diff(path: str, old: str | None = None) -> bytes:
    """A patch that makes the file `path`."""
    name = path.encode()
    other = f"a/{path}".encode() if old is None else old.encode()
    return (
        b"From: Eve <eve@example.org>\nSubject: harmless\n\n---\n"
        b"diff --git %s b/%s\nnew file mode 100644\nindex %s..%s\n"
        b"--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+x\n"
        % (other, name, b"0" * 40, b"587be6b4c3f93f93c489c0111bba5596147a26cb", name)
    )


OUTSIDE = [
    *("../x", "sub/../../x", "/abs/x", "//abs/x", ".git/config", "sub/.git/hooks/pre-commit"),
    *(".GIT/config", ".Git/x", "./x", "sub/./x", "..", ".git", "git~1/x"),
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_import_of_a_patch_outside(story: Queue, path: str) -> None:
    file = story.folder / "evil.patch"
    file.write_bytes(diff(path))
    inside = {p for p in story.folder.rglob("x") if "cache" not in p.parts}

    refused(story, "import", str(file))

    assert {p for p in story.folder.rglob("x") if "cache" not in p.parts} == inside
    assert not Path("/abs").exists()


@pytest.mark.parametrize("header", [b"", b"diff --git /abs/x /abs/x\nnew file mode 100644\n"])
def test_import_of_an_absolute_path(story: Queue, header: bytes) -> None:
    """As `diff -u` of two absolute names writes it."""
    file = story.folder / "evil.patch"
    file.write_bytes(b"Harmless\n\n" + header + b"--- /dev/null\n+++ /abs/x\n@@ -0,0 +1 @@\n+x\n")

    refused(story, "import", str(file))


def test_import_of_a_doubled_slash(story: Queue) -> None:
    """git reads `sub//x` as `sub/x`: so, or refused, but no third way."""
    file = story.folder / "odd.patch"
    file.write_bytes(diff("sub//x"))

    if story.run("import", str(file), code=None).code == 0:
        story.expect({**story.upstream.tree("topic"), "sub/x": b"x\n"}, "v1")


def test_ids_of_another_content(story: Queue) -> None:
    """A hunk edited by hand no longer fits the ids in its `index` line: read by its lines."""
    path = story.patch_file(1)
    text = path.read_bytes()
    assert text.count(b"+line 20, ours\n") == 1
    path.write_bytes(text.replace(b"+line 20, ours\n", b"+line 20, by hand\n"))
    story.commit()

    outcome = story.run("sync", "--onto", "v2", "--json", code=None)

    assert outcome.code in (0, 1), str(outcome)
    if outcome.code == 0:
        wanted = story.upstream.tree("v2")[b"a.txt"].data
        both = {"b.txt": TEXT.replace(b"line 20\n", b"line 20, ours\n")}
        story.expect({"a.txt": wanted.replace(b"line 20\n", b"line 20, by hand\n"), **both})


@pytest.mark.parametrize("path", ["../x", "/abs/x", ".git/config"])
def test_series_with_a_patch_outside(story: Queue, path: str) -> None:
    (story.series / "0003-evil.patch").write_bytes(diff(path))
    with (story.series / "series").open("a") as file:
        file.write("0003-evil.patch\n")
    story.commit()

    assert b"0003-evil.patch" in refused(story, "sync", "--onto", "v2").err


def test_patch_through_a_link(story: Queue) -> None:
    """A link out of the tree, then a file behind it: `patch` writes there, we do not."""
    story.upstream.branch("evil", at="v1").commit("link").link("out", b"../../..")
    story.upstream.save()
    story.run("import", "--git", str(story.upstream.path), "v1..evil", code=None)
    file = story.folder / "behind.patch"
    file.write_bytes(diff("out/x"))
    inside = set(story.folder.rglob("x"))

    story.run("import", str(file), code=1)

    assert set(story.folder.rglob("x")) == inside


def test_new_file_that_exists(story: Queue) -> None:
    file = story.folder / "again.patch"
    file.write_bytes(diff("a.txt"))

    refused(story, "import", str(file))


def test_unknown_commits(story: Queue) -> None:
    refused(story, "import", "--git", str(story.upstream.path), "v1..nowhere")


def test_import_from_no_repository(story: Queue) -> None:
    refused(story, "import", "--git", str(story.folder / "nothing"), "v1..topic")


def test_import_of_a_missing_file(story: Queue) -> None:
    assert b"missing.patch" in refused(story, "import", "missing.patch").err


def test_import_of_a_merge(story: Queue) -> None:
    """A merge commit is no patch: said, or its two sides' commits are taken in order."""
    upstream = story.upstream
    git(upstream.path, "branch", "-f", "merged", "v2")
    tree = git(upstream.path, "rev-parse", "topic^{tree}").decode().strip()
    merge = git(upstream.path, "commit-tree", tree, "-p", "v1", "-p", "topic", "-m", "merge")
    git(upstream.path, "update-ref", "refs/heads/merged", merge.decode().strip())
    before = story.snapshot()

    outcome = story.run("import", "--git", str(upstream.path), "v1..merged", code=None)

    assert outcome.code in (0, 1), str(outcome)
    if outcome.code == 1:
        assert story.snapshot() == before


def test_no_queue(upstream: History, queue: Queue) -> None:
    queue.root.mkdir()
    git(queue.root, "init", "-q")

    refused(queue, "sync", "--onto", "v2")


def test_no_repository(upstream: History, queue: Queue) -> None:
    queue.root.mkdir()

    refused(queue, "sync", "--onto", "v2")


def test_init_twice(story: Queue) -> None:
    refused(story, "init", "demo", "--git", str(story.upstream.path), "--base", "v1")


def test_init_with_an_unknown_base(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", TEXT).tag("v1")
    upstream.save()
    queue.root.mkdir()
    git(queue.root, "init", "-q")

    said = refused(queue, "init", "demo", "--git", str(upstream.path), "--base", "v9")

    assert b"v9" in said.err


def test_upstream_is_gone(story: Queue) -> None:
    """The path of the config names nothing any more."""
    story.upstream.path.rename(story.folder / "elsewhere.git")
    before = story.snapshot()

    outcome = story.run("sync", "--onto", "v2", code=None)

    assert outcome.code in (1, 6), str(outcome)
    assert outcome.err
    assert story.snapshot() == before


def test_broken_settings(story: Queue) -> None:
    (story.root / "upstream" / "demo.toml").write_text("name = [\n")
    story.commit()

    assert b"demo.toml" in refused(story, "sync", "--onto", "v2").err


def test_broken_state(story: Queue) -> None:
    (story.root / "upstream" / "state.json").write_text('{"base": <<<<<<< ours\n')
    story.commit()

    assert b"state.json" in refused(story, "sync", "--onto", "v2").err


@pytest.mark.parametrize("args", [["sync", "--nonsense"], ["nonsense"], ["sync", "--onto"]])
def test_usage(story: Queue, args: list[str]) -> None:
    before = story.snapshot()

    assert story.run(*args, code=2).err
    assert story.snapshot() == before


def test_read_only_folder(story: Queue) -> None:
    """Root may write anywhere: then the sync is simply done."""
    story.series.chmod(0o555)
    before = story.content()
    try:
        outcome = story.run("sync", "--onto", "v2", code=None)
    finally:
        story.series.chmod(0o755)

    assert outcome.code in (0, 1), str(outcome)
    if outcome.code == 1:
        assert story.content() == before


def test_edits_in_the_series_are_not_lost(story: Queue) -> None:
    """An uncommitted, valid edit of the series is carried or refused, never thrown away."""
    path = story.patch_file(2)
    path.write_bytes(path.read_bytes().replace(b"\n---\n", b"\nA note by hand.\n---\n", 1))

    outcome = story.run("sync", "--onto", "v2", "--json", code=None)

    assert outcome.code in (0, 1), str(outcome)
    assert b"A note by hand." in path.read_bytes()


def test_link_tree_upstream(upstream: History, queue: Queue) -> None:
    """Links that lead out of the tree are content, nothing is written through them."""
    upstream.commit().write("a.txt", TEXT).write("out", link(b"/tmp")).tag("v1")
    upstream.commit().write("out", link(b"../../../..")).tag("v2")
    topic = upstream.branch("topic", at="v1").commit()
    topic.edit("a.txt", b"line 20\n", b"line 20, ours\n")
    queue.start()

    queue.sync()
    text = TEXT.replace(b"line 20\n", b"line 20, ours\n")
    queue.expect({"a.txt": text, "out": link(b"../../../..")})
