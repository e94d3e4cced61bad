"""Small upstream histories, written in one go through `git fast-import`.

A history is a model first: every commit knows its whole tree, so that a test can compare
bytes without asking git. Nothing passes through a work tree: no filter, attribute, umask or
user setting can change what is written.

    history = History(tmp_path / "upstream")
    history.commit("start").write("a.txt", b"one\n").tag("v1")
    history.commit("more").edit("a.txt", b"one", b"two").tag("v2")
    history.branch("topic", at="v1").commit("ours").write("b.txt", b"new\n")
    history.save()
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FILE = 0o100644
SCRIPT = 0o100755
LINK = 0o120000
SUBMODULE = 0o160000

Name = str | bytes


@dataclass(frozen=True)
class Entry:
    """What stands at a path: content (a link's target, a submodule's commit in hex) and git mode."""

    data: bytes
    mode: int = FILE

    def __repr__(self) -> str:
        return f"{self.mode:o} {self.data!r}"


Tree = dict[bytes, Entry]
Literal = Mapping[Name, bytes | Entry]
"""A tree as a test writes it: plain bytes stand for an ordinary file."""


def script(data: bytes) -> Entry:
    return Entry(data, SCRIPT)


def link(target: bytes) -> Entry:
    return Entry(target, LINK)


def submodule(commit: str) -> Entry:
    return Entry(commit.encode(), SUBMODULE)


def as_path(name: Name) -> bytes:
    return name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")


def as_tree(literal: Literal) -> Tree:
    return {
        as_path(name): what if isinstance(what, Entry) else Entry(what)
        for name, what in literal.items()
    }


def lines(*numbers: int | range, word: str = "line") -> bytes:
    """`line 1`, `line 2`, ...: each line of its own, so that nothing is alike by chance."""
    flat = [n for part in numbers for n in ([part] if isinstance(part, int) else part)]
    return b"".join(b"%s %d\n" % (word.encode(), n) for n in flat)


@dataclass(repr=False)
class Commit:
    """One commit of the model; its verbs return itself and change `tree` at once."""

    history: History
    mark: int
    branch: str
    parent: int | None
    message: bytes
    tree: Tree
    name: bytes = b"Ada Tester"
    mail: bytes = b"ada@example.org"
    zone: bytes = b"+0200"
    encoding: bytes | None = None
    second: int | None = None

    def write(self, name: Name, data: bytes | Entry, mode: int = FILE) -> Commit:
        self.tree[as_path(name)] = data if isinstance(data, Entry) else Entry(data, mode)
        return self

    def link(self, name: Name, target: bytes) -> Commit:
        return self.write(name, Entry(target, LINK))

    def delete(self, *names: Name) -> Commit:
        for name in names:
            del self.tree[as_path(name)]
        return self

    def move(self, old: Name, new: Name) -> Commit:
        self.tree[as_path(new)] = self.tree.pop(as_path(old))
        return self

    def move_folder(self, old: str, new: str) -> Commit:
        prefix = old.encode() + b"/"
        for path in [path for path in self.tree if path.startswith(prefix)]:
            self.move(path, new.encode() + b"/" + path[len(prefix) :])
        return self

    def chmod(self, name: Name, mode: int) -> Commit:
        return self.write(name, Entry(self.tree[as_path(name)].data, mode))

    def edit(self, name: Name, old: bytes, new: bytes) -> Commit:
        """Replaces the one place where `old` stands."""
        entry = self.tree[as_path(name)]
        assert entry.data.count(old) == 1, (old, entry.data.count(old))
        return self.write(name, Entry(entry.data.replace(old, new), entry.mode))

    def by(self, name: bytes, mail: bytes = b"x@example.org", zone: bytes = b"+0000") -> Commit:
        self.name, self.mail, self.zone = name, mail, zone
        return self

    def merging(self, branch: str) -> Commit:
        """The tip of `branch` as a second parent, and its files where it changed them."""
        tip = self.history.tips[branch]
        self.second = tip.mark
        base = next(c for c in self.history.commits if c.mark == self._fork(tip))
        changed = {
            path for path in tip.tree | base.tree if tip.tree.get(path) != base.tree.get(path)
        }
        for path in changed:
            self.tree.pop(path, None)
            if path in tip.tree:
                self.tree[path] = tip.tree[path]
        return self

    def _fork(self, tip: Commit) -> int:
        parents = {each.mark: each.parent for each in self.history.commits}
        mine: list[int | None] = [self.parent]
        while mine[-1] is not None:
            mine.append(parents[mine[-1]])
        at: int | None = tip.mark
        while at not in mine:
            assert at is not None
            at = parents[at]
        assert at is not None
        return at

    def encoded(self, encoding: str) -> Commit:
        self.encoding = encoding.encode()
        return self

    def commit(self, message: Name = "change") -> Commit:
        """The next commit on the same branch."""
        return self.history.commit(message)

    def tag(self, name: str, *, annotated: bool = False) -> Commit:
        self.history.tags[name] = (self, annotated)
        return self


@dataclass(repr=False)
class History:
    """A repository to be; the current branch starts as `main`."""

    path: Path
    commits: list[Commit] = field(default_factory=list)
    tips: dict[str, Commit] = field(default_factory=dict)
    tags: dict[str, tuple[Commit, bool]] = field(default_factory=dict)
    current: str = "main"

    def commit(self, message: Name = "change") -> Commit:
        tip = self.tips.get(self.current)
        made = Commit(
            self,
            mark=len(self.commits) + 1,
            branch=self.current,
            parent=tip.mark if tip else None,
            message=as_path(message),
            tree=dict(tip.tree) if tip else {},
        )
        self.commits.append(made)
        self.tips[self.current] = made
        return made

    def branch(self, name: str, at: str | None = None) -> History:
        """Goes on at the branch `name`, made at the tag or branch `at` if it is given."""
        if at is not None:
            self.tips[name] = self.tags[at][0] if at in self.tags else self.tips[at]
        self.current = name
        return self

    def tree(self, ref: str) -> Tree:
        found = self.tags[ref][0] if ref in self.tags else self.tips[ref]
        return dict(found.tree)

    def save(self) -> History:
        """Writes everything into a bare repository at `path`, replacing one that is there."""
        if not self.path.exists():
            git(self.path.parent, "init", "-q", "--bare", "-b", "main", str(self.path))
        git(self.path, "fast-import", "--quiet", "--force", input=self._stream())
        return self

    def _stream(self) -> bytes:
        out: list[bytes] = [b"feature done\n"]
        out.extend(_commit(commit) for commit in self.commits)
        for name, tip in self.tips.items():
            out.append(b"reset refs/heads/%s\nfrom :%d\n\n" % (name.encode(), tip.mark))
        for name, (commit, annotated) in self.tags.items():
            if annotated:
                who = b"tagger Ada Tester <ada@example.org> 1750000000 +0000\n"
                out.append(b"tag %s\nfrom :%d\n" % (name.encode(), commit.mark))
                out.append(who + _data(b"release\n"))
            else:
                out.append(b"reset refs/tags/%s\nfrom :%d\n\n" % (name.encode(), commit.mark))
        out.append(b"done\n")
        return b"".join(out)


def _commit(commit: Commit) -> bytes:
    time = 1_750_000_000 + commit.mark * 3600
    who = b"%s <%s> %d %s" % (commit.name, commit.mail, time, commit.zone)
    out = [b"commit refs/heads/%s\nmark :%d\n" % (commit.branch.encode(), commit.mark)]
    out.append(b"author %s\ncommitter %s\n" % (who, who))
    if commit.encoding:
        out.append(b"encoding %s\n" % commit.encoding)
    out.append(_data(commit.message))
    if commit.parent:
        out.append(b"from :%d\n" % commit.parent)
    if commit.second:
        out.append(b"merge :%d\n" % commit.second)
    out.append(b"deleteall\n")
    for path, entry in sorted(commit.tree.items()):
        if entry.mode == SUBMODULE:
            out.append(b"M 160000 %s %s\n" % (entry.data, _quoted(path)))
        else:
            out.append(b"M %o inline %s\n" % (entry.mode, _quoted(path)) + _data(entry.data))
    return b"".join(out) + b"\n"


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


def _quoted(path: bytes) -> bytes:
    return (
        b'"' + b"".join(b"\\%03o" % c if c < 33 or c in b'"\\' else bytes([c]) for c in path) + b'"'
    )


def clean_env(home: Path | None = None, **more: str) -> dict[str, str]:
    """An environment with nothing of the user's: no git setting, no locale, no identity."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home or "/nonexistent"),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        **more,
    }


def git(
    where: Path,
    *args: str | bytes,
    input: bytes | None = None,
    env: Mapping[str, str] | None = None,
    ok: tuple[int, ...] = (0,),
) -> bytes:
    """Output of a git command; identity fixed, the user's settings out of sight."""
    who = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in WHO}
    done = subprocess.run(
        ["git", "-c", "core.autocrlf=false", "-c", "commit.gpgsign=false", *args],
        cwd=where,
        input=input,
        env={**clean_env(), **who, **(env or {})},
        capture_output=True,
        check=False,
    )
    assert done.returncode in ok, (args, done.returncode, done.stderr.decode(errors="replace"))
    return done.stdout


WHO = (("NAME", "Mona Maintainer"), ("EMAIL", "mona@example.org"))
