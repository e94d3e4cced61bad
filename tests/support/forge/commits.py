"""A bare repository and its commits, each written in one go; no work tree, no user's settings."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from pathlib import Path
from typing import Self

from tests.support.history import git


class Clock:
    """An hour passes with each thing that happens."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 5, 9, tzinfo=UTC)

    def tick(self) -> datetime:
        self.now += timedelta(hours=1)
        return self.now


def iso(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Commit:
    """A commit to be written: `tree` is what it starts from, `files` what it changes (None: gone)."""

    parents: tuple[str, ...]
    tree: str | None
    message: str
    author: str
    when: datetime
    files: Mapping[str, bytes | None]


class Bare:
    """The repository at `path`, as GitHub serves it: filters and any object may be asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._trees: dict[str, str] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        git(path.parent, "init", "-q", "--bare", "-b", "main", str(path))
        for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
            git(path, "config", key, "true")

    def git(self, *args: str, ok: tuple[int, ...] = (0,)) -> str:
        return git(self.path, *args, ok=ok).decode("utf-8", "surrogateescape").strip()

    def sha(self, name: str) -> str:
        loose = self.path / name
        if name.startswith("refs/") and loose.is_file():
            return loose.read_text().strip()
        return self.git("rev-parse", "--verify", f"{name}^{{commit}}")

    def tree(self, name: str) -> str:
        """Of a commit's id; asked once."""
        if name not in self._trees:
            self._trees[name] = self.git("rev-parse", "--verify", f"{name}^{{tree}}")
        return self._trees[name]

    def show(self, name: str, path: str) -> bytes:
        return git(self.path, "cat-file", "blob", f"{name}:{path}")

    def set(self, ref: str, sha: str) -> None:
        """As a loose ref, without a process: many tests open a hundred pull requests."""
        loose = self.path / ref
        loose.parent.mkdir(parents=True, exist_ok=True)
        loose.write_text(f"{sha}\n")

    def forget(self, ref: str) -> None:
        (self.path / ref).unlink(missing_ok=True)

    def write(self, commit: Commit) -> str:
        """The new commit's id; no ref moves."""
        who = f"{commit.author} <{mail(commit.author)}> {int(commit.when.timestamp())} +0000"
        message = commit.message.encode("utf-8", "backslashreplace")
        if commit.tree and not commit.files:
            lines = [f"tree {commit.tree}", *(f"parent {parent}" for parent in commit.parents)]
            text = "\n".join([*lines, f"author {who}", f"committer {who}", "", ""])
            return self._object(b"commit", text.encode() + message)
        out = [b"feature done\ncommit refs/heads/unborn\nmark :1\n"]
        out.append(f"author {who}\ncommitter {who}\n".encode() + _data(message))
        for word, parent in zip(("from", "merge", "merge"), commit.parents, strict=False):
            out.append(f"{word} {parent}\n".encode())
        if commit.tree:
            out.append(f'M 040000 {commit.tree} ""\n'.encode())
        for path, data in sorted(commit.files.items()):
            if data is None:
                out.append(f'D "{path}"\n'.encode())
            else:
                out.append(f'M 100644 inline "{path}"\n'.encode() + _data(data))
        out.append(b"get-mark :1\nreset refs/heads/unborn\ndone\n")
        done = git(self.path, "fast-import", "--quiet", "--force", input=b"".join(out))
        return done.decode().strip()

    def _object(self, kind: bytes, data: bytes) -> str:
        """Writes a loose object without a process."""
        whole = b"%s %d\0%s" % (kind, len(data), data)
        oid = sha1(whole).hexdigest()
        path = self.path / "objects" / oid[:2] / oid[2:]
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(zlib.compress(whole, 1))
        return oid

    def merged(self, ours: str, theirs: str, base: str | None = None) -> str:
        """The tree of a merge, which must not conflict; `base` stands for the common ancestor."""
        if base:  # git 2.39 finds the ancestor itself: give it a history that has this one
            root = self._bare_commit(base)
            ours, theirs = self._bare_commit(ours, root), self._bare_commit(theirs, root)
        return self.git("merge-tree", "--write-tree", ours, theirs).split("\n")[0]

    def _bare_commit(self, name: str, parent: str | None = None) -> str:
        parents = ["-p", parent] if parent else []
        return self.git("commit-tree", *parents, "-m", "x", f"{name}^{{tree}}")


def mail(author: str) -> str:
    return re.sub(r"[^a-z0-9]+", ".", author.lower()).strip(".") + "@example.org"


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


class Writes:
    """Verbs that change the commit just made: it is written again, and `_place` moves the ref."""

    bare: Bare
    commit: Commit
    sha: str
    _place: Callable[[str], None]

    def write(self, path: str, data: bytes) -> Self:
        return self._amend(path, data)

    def delete(self, path: str) -> Self:
        return self._amend(path, None)

    def edit(self, path: str, old: bytes, new: bytes) -> Self:
        """Replaces the one place where `old` stands."""
        data = self.bare.show(self.sha, path)
        assert data.count(old) == 1, (path, old, data.count(old))
        return self._amend(path, data.replace(old, new))

    def _amend(self, path: str, data: bytes | None) -> Self:
        self.commit = replace(self.commit, files={**self.commit.files, path: data})
        self.sha = self.bare.write(self.commit)
        self._place(self.sha)
        return self


class Change(Writes):
    """A commit whose files are still being said."""

    def __init__(self, bare: Bare, commit: Commit, place: Callable[[str], None]) -> None:
        self.bare = bare
        self.commit = commit
        self._place = place
        self.sha = bare.write(commit)
        place(self.sha)
