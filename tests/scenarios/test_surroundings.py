"""The user's git settings, environment and upstream's attributes change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Queue
from tests.support.history import History, git, lines, submodule

TEXT = lines(range(1, 31))
CRLF = TEXT.replace(b"\n", b"\r\n")
EOL = b"line 30 \t\n"


def tell(upstream: History) -> None:
    """Text, CRLF, trailing white space, a rename-like pair, a binary, a quoted name."""
    start = upstream.commit().write("a.txt", TEXT).write("crlf.txt", CRLF)
    start.write("é.txt", TEXT).write("ident.txt", TEXT + b"$Id$\n").tag("v1")
    change = upstream.commit().edit("a.txt", b"line 4\n", b"line 4, upstream's\n")
    change.edit("crlf.txt", b"line 4\r\n", b"line 4, upstream's\r\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("[Fix] one")
    topic.edit("a.txt", b"line 20\n", EOL).edit("crlf.txt", b"line 20\r\n", b"twenty \t\r\n")
    topic = topic.commit("two").edit("é.txt", b"line 20\n", b"")
    topic.edit("ident.txt", b"line 20\n", b"twenty\n").write("new.bin", b"\0\1\2\n")
    topic.commit("three").move("é.txt", "ü.txt")


def carried() -> dict[str, bytes]:
    crlf = CRLF.replace(b"line 20\r\n", b"twenty \t\r\n")
    return {
        "a.txt": TEXT.replace(b"line 4\n", b"line 4, upstream's\n").replace(b"line 20\n", EOL),
        "crlf.txt": crlf.replace(b"line 4\r\n", b"line 4, upstream's\r\n"),
        "ü.txt": TEXT.replace(b"line 20\n", b""),
        "ident.txt": TEXT.replace(b"line 20\n", b"twenty\n") + b"$Id$\n",
        "new.bin": b"\0\1\2\n",
    }


CONFIGS = {
    "recurse": "[submodule]\n recurse = true\n",
    "autocrlf": "[core]\n autocrlf = true\n eol = crlf\n safecrlf = true\n",
    "noprefix": "[diff]\n noprefix = true\n",
    "mnemonic": "[diff]\n mnemonicPrefix = true\n",
    "prefixes": "[diff]\n srcPrefix = x/\n dstPrefix = y/\n",
    "diff": "[diff]\n renames = copies\n context = 1\n interHunkContext = 9\n algorithm = patience\n"
    " external = /bin/false\n orderFile = /nonexistent\n ignoreSubmodules = all\n"
    " suppressBlankEmpty = true\n relative = true\n wsErrorHighlight = all\n submodule = log\n",
    "whitespace": "[apply]\n whitespace = fix\n ignoreWhitespace = change\n[core]\n whitespace = cr-at-eol\n",
    "colour": "[color]\n ui = always\n diff = always\n",
    "quotes": "[core]\n quotePath = false\n precomposeUnicode = true\n",
    "abbrev": "[core]\n abbrev = 4\n",
    "signing": "[commit]\n gpgSign = true\n[gpg]\n program = /bin/false\n[tag]\n gpgSign = true\n",
    "hooks": "[core]\n hooksPath = {home}/hooks\n",
    "attributes": "[core]\n attributesFile = {home}/attributes\n",
    "mode": "[core]\n fileMode = false\n symlinks = false\n ignoreCase = true\n",
    "merge": "[merge]\n conflictStyle = diff3\n renames = false\n ff = only\n directoryRenames = false\n"
    "[rerere]\n enabled = true\n autoUpdate = true\n[merge.default]\n driver = /bin/false\n",
    "log": "[log]\n showSignature = true\n follow = true\n mailmap = true\n date = relative\n"
    "[format]\n pretty = oneline\n noprefix = true\n attach = true\n signOff = true\n"
    "[i18n]\n commitEncoding = latin1\n logOutputEncoding = utf-16\n",
    "object format": "[init]\n defaultBranch = trunk\n templateDir = /nonexistent\n"
    "[transfer]\n fsckObjects = true\n[extensions]\n worktreeConfig = true\n",
    "aliases": '[alias]\n diff-tree = "!false"\n apply = "!false"\n[pager]\n diff = false\n'
    "[core]\n pager = /bin/false\n editor = /bin/false\n fsmonitor = /bin/false\n",
    "broken identity": "[user]\n useConfigOnly = true\n",
}


@pytest.mark.parametrize("name", CONFIGS)
def test_user_config(upstream: History, queue: Queue, name: str) -> None:
    """Same bytes with any ~/.gitconfig, in import, sync and export."""
    tell(upstream)
    home = queue.folder / "home"
    (home / "hooks").mkdir(parents=True)
    for hook in ("reference-transaction", "post-checkout", "pre-commit", "post-index-change"):
        path = home / "hooks" / hook
        path.write_text("#!/bin/sh\ntouch $HOME/hook-ran\nexit 1\n")
        path.chmod(0o755)
    (home / "attributes").write_text("* -diff\n*.txt binary\n")
    queue.set_config(CONFIGS[name].replace("{home}", str(home)))
    queue.start()

    assert queue.sync().column("verdict") == ["needed"] * 3

    queue.expect(carried(), quilt=False)
    assert not (home / "hook-ran").exists()
    queue.run("export", "--git", str(upstream.path), "--branch", "out")
    assert git(upstream.path, "rev-parse", "out^{tree}").decode().strip() == queue.tree()
    assert git(upstream.path, "log", "--format=%s", "v2..out") == b"three\ntwo\n[Fix] one\n"


def test_config_leaves_no_trace_in_the_series(upstream: History, tmp_path: Path) -> None:
    """Two users, one series: the same bytes."""
    tell(upstream)
    everything = "".join(text.replace("{home}", "/nonexistent") for text in CONFIGS.values())
    found = []
    for name, config in (("plain", ""), ("odd", everything)):
        (tmp_path / name).mkdir()
        queue = Queue(tmp_path / name, upstream)
        queue.set_config(config)
        queue.start()
        queue.sync()
        found.append(queue.content())

    assert found[0] == found[1]


ENVIRONMENTS = {
    "GIT_DIR": {"GIT_DIR": "/nonexistent/.git"},
    "GIT_WORK_TREE": {"GIT_WORK_TREE": "/nonexistent"},
    "GIT_INDEX_FILE": {"GIT_INDEX_FILE": "/nonexistent/index"},
    "GIT_OBJECT_DIRECTORY": {"GIT_OBJECT_DIRECTORY": "/nonexistent/objects"},
    "GIT_NAMESPACE": {"GIT_NAMESPACE": "elsewhere"},
    "GIT_EXTERNAL_DIFF": {"GIT_EXTERNAL_DIFF": "/bin/false", "GIT_DIFF_OPTS": "--unified=0"},
    "GIT_CONFIG": {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "diff.noprefix",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_CONFIG_KEY_1": "core.autocrlf",
        "GIT_CONFIG_VALUE_1": "true",
    },
    "GIT_LITERAL_PATHSPECS": {"GIT_LITERAL_PATHSPECS": "0", "GIT_ICASE_PATHSPECS": "1"},
    "GIT_TRACE": {"GIT_TRACE": "1", "GIT_TRACE2": "1"},
    "locale": {"LC_ALL": "C", "LANG": "de_DE.UTF-8", "LANGUAGE": "de"},
    "latin-1": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
    "time zone": {"TZ": "Asia/Kathmandu"},
    "TMPDIR": {"TMPDIR": "/nonexistent"},
    "POSIX": {"POSIXLY_CORRECT": "1", "GREP_OPTIONS": "-v", "CDPATH": "/"},
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environment(upstream: History, queue: Queue, name: str) -> None:
    tell(upstream)
    queue.env.update(ENVIRONMENTS[name])
    queue.start()

    assert queue.sync().column("verdict") == ["needed"] * 3
    queue.expect(carried(), quilt=False)


def test_from_a_subfolder(upstream: History, queue: Queue) -> None:
    tell(upstream)
    queue.start()
    below = queue.root / "upstream"

    outcome = queue.run("sync", "--onto", "v2", "--json", cwd=below)

    assert outcome.column("action") == ["keep"] * 3
    queue.expect(carried(), quilt=False)


def test_in_a_linked_worktree(upstream: History, queue: Queue) -> None:
    """`.git` is a file there."""
    tell(upstream)
    queue.start()
    linked = Queue(queue.folder / "linked", upstream)
    linked.folder.mkdir()
    git(queue.root, "worktree", "add", "-q", str(linked.root), "-b", "other")
    before = queue.snapshot()

    linked.run("sync", "--onto", "v2", "--json")

    linked.expect(carried(), quilt=False)
    assert queue.snapshot() == before


ATTRIBUTES = {
    "eol": b"* text=auto eol=crlf\n",
    "lf": b"* text eol=lf\n",
    "export": b"*.txt export-ignore\n*.txt export-subst\n",
    "filter": b"* filter=lfs diff=lfs merge=lfs -text\n",
    "ident": b"* ident\n",
    "binary": b"* binary\n",
    "union": b"* merge=union\n",
    "encoding": b"*.txt working-tree-encoding=UTF-16\n",
    "whitespace": b"* whitespace=fix,trailing-space\n",
    "broken": b"\xff\xfe [attr\n!!! *\n",
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_of_upstream(upstream: History, queue: Queue, name: str) -> None:
    """`.gitattributes` is a file like any other."""
    tell(upstream)
    for commit in upstream.commits:
        commit.write(".gitattributes", ATTRIBUTES[name]).write("sub/.gitignore", b"*\n")
    queue.start()

    assert queue.sync().column("verdict") == ["needed"] * 3
    wanted = {**carried(), ".gitattributes": ATTRIBUTES[name], "sub/.gitignore": b"*\n"}
    queue.expect(wanted, quilt=False)


def test_union_attribute_does_not_hide_a_conflict(upstream: History, queue: Queue) -> None:
    upstream.commit().write("a.txt", TEXT).write(".gitattributes", b"* merge=union\n").tag("v1")
    upstream.commit().edit("a.txt", b"line 9\n", b"upstream's\n").tag("v2")
    upstream.branch("topic", at="v1").commit().edit("a.txt", b"line 9\n", b"ours\n")
    queue.start()

    assert queue.sync(code=4).column("carry") == ["conflict"]


def test_patch_of_the_attributes(upstream: History, queue: Queue) -> None:
    """A patch may change .gitattributes, .gitignore and .gitmodules themselves."""
    upstream.commit().write(".gitattributes", b"* text\n").write("a.txt", CRLF).tag("v1")
    upstream.commit().edit("a.txt", b"line 4\r\n", b"four\r\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit()
    topic.write(".gitattributes", b"* eol=crlf\n").write(".gitignore", b"*\n")
    topic.commit("two").edit("a.txt", b"line 20\r\n", b"twenty\n")
    queue.start()

    assert queue.sync().column("carry") == ["clean", "clean"]
    text = CRLF.replace(b"line 4\r\n", b"four\r\n").replace(b"line 20\r\n", b"twenty\n")
    queue.expect({".gitattributes": b"* eol=crlf\n", ".gitignore": b"*\n", "a.txt": text})


def test_upstream_with_a_submodule(upstream: History, queue: Queue) -> None:
    """It is carried as the tree has it, and moves with upstream."""
    modules = b'[submodule "lib"]\n\tpath = lib\n\turl = https://example.org/lib\n'
    start = upstream.commit().write(".gitmodules", modules).write("a.txt", TEXT)
    start.write("lib", submodule("1" * 40)).tag("v1")
    upstream.commit().write("lib", submodule("2" * 40)).tag("v2")
    topic = upstream.branch("topic", at="v1").commit()
    topic.edit("a.txt", b"line 20\n", b"line 20, ours\n")
    queue.set_config("[submodule]\n recurse = true\n")
    queue.start()

    assert queue.sync().column("carry") == ["clean"]
    text = TEXT.replace(b"line 20\n", b"line 20, ours\n")
    queue.expect({".gitmodules": modules, "a.txt": text}, quilt=False)


def test_patch_of_a_submodule_is_refused(upstream: History, queue: Queue) -> None:
    upstream.commit().write("lib", submodule("1" * 40)).write("a.txt", TEXT).tag("v1")
    upstream.branch("topic", at="v1").commit().write("lib", submodule("3" * 40))
    queue.start(commits=None)
    before = queue.snapshot()

    outcome = queue.run("import", "--git", str(upstream.path), "v1..topic", code=1)

    assert b"lib" in outcome.err
    assert queue.snapshot() == before
