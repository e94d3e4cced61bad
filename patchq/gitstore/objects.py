"""Read objects fast: one long-lived `git cat-file --batch` per store, trees cached by id."""

from __future__ import annotations

import hashlib
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from patchq.errors import PatchqError
from patchq.gitstore.git import no_git, plumbing_env

BATCH = 500
"""Requests written before answers are read: 41 bytes each stay below the pipe's buffer."""

TREE = "40000"
GITLINK = "160000"


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands at a path of a tree: a git mode ("100644", "40000", ...) and an object id."""

    mode: str
    oid: str


def blob_id(data: bytes) -> str:
    """The id git gives to `data` as a blob (SHA-1 object format)."""
    digest = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


class Objects:
    """Objects of the repository at `git_dir`, by id or by any name `git rev-parse` takes."""

    def __init__(self, git_dir: Path, env: Mapping[str, str] | None = None) -> None:
        try:
            self._process = subprocess.Popen(
                ["git", f"--git-dir={git_dir}", "cat-file", "--batch"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=plumbing_env(env),
            )
        except FileNotFoundError as error:
            raise no_git() from error
        assert self._process.stdin and self._process.stdout
        self._requests = self._process.stdin
        self._answers = self._process.stdout
        self._trees: dict[str, dict[bytes, Entry]] = {}

    def close(self) -> None:
        self._requests.close()
        self._answers.close()
        self._process.wait()

    def __enter__(self) -> Objects:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read_many(self, names: Iterable[str]) -> Iterator[tuple[str, str, bytes]]:
        """(id, type, content) of each name, in order.

        Raises PatchqError where one is missing.
        """
        waiting = list(names)
        for start in range(0, len(waiting), BATCH):
            chunk = waiting[start : start + BATCH]
            self._requests.write("".join(f"{name}\n" for name in chunk).encode())
            self._requests.flush()
            # All of them: what stays in the pipe would answer the next question.
            answers = [self._answer(name) for name in chunk]
            for name, answer in zip(chunk, answers, strict=True):
                if answer is None:
                    raise PatchqError(
                        f"the store has no object {name}",
                        "remove the cache folder's stores and run the command again",
                    )
                yield answer

    def _answer(self, name: str) -> tuple[str, str, bytes] | None:
        head = self._answers.readline().split()
        if len(head) != 3 or not head[2].isdigit():
            return None
        size = int(head[2])
        data = self._answers.read(size)
        self._answers.read(1)
        if len(data) != size:
            raise PatchqError(f"the store's object {name} is cut short", "remove the store")
        return head[0].decode(), head[1].decode(), data

    def blob(self, oid: str) -> bytes:
        return next(self.read_many([oid]))[2]

    def blobs(self, oids: Iterable[str]) -> dict[str, bytes]:
        """The contents of many blobs, by id."""
        return {oid: data for oid, _, data in self.read_many(sorted(set(oids)))}

    def tree_of(self, commit: str) -> str:
        """The tree id of a commit (or of a tree itself)."""
        oid, kind, data = next(self.read_many([commit]))
        if kind == "tree":
            return oid
        if kind == "tag":
            return self.tree_of(data[7:47].decode())
        return data[5:45].decode()

    def trees_of(self, commits: Iterable[str]) -> list[str]:
        """The tree ids of many commits, given by id."""
        return [data[5:45].decode() for _, _, data in self.read_many(commits)]

    def tree(self, oid: str) -> dict[bytes, Entry]:
        """The direct entries of one tree object."""
        known = self._trees.get(oid)
        if known is None:
            _, kind, data = next(self.read_many([oid]))
            if kind != "tree":
                raise PatchqError(f"{oid} is a {kind}, not a tree", "name a commit or a tree")
            known = self._trees[oid] = dict(_entries(data))
        return known

    def lookup(self, tree: str, path: bytes) -> Entry | None:
        """What stands at `path`; a path below a file is absent."""
        *folders, name = path.split(b"/")
        for folder in folders:
            entry = self.tree(tree).get(folder)
            if entry is None or entry.mode != TREE:
                return None
            tree = entry.oid
        return self.tree(tree).get(name)

    def walk(self, tree: str, prefix: bytes = b"") -> Iterator[tuple[bytes, Entry]]:
        """Every path below `tree` that is not a folder itself."""
        for name, entry in self.tree(tree).items():
            if entry.mode == TREE:
                yield from self.walk(entry.oid, prefix + name + b"/")
            else:
                yield prefix + name, entry


@lru_cache(maxsize=64)
def _mode(raw: bytes) -> str:
    """A mode as git reads it; old trees have "040000" and "100664"."""
    mode = int(raw, 8)
    if stat.S_ISREG(mode):
        return "100755" if mode & 0o100 else "100644"
    if stat.S_ISLNK(mode):
        return "120000"
    return TREE if stat.S_ISDIR(mode) else GITLINK


def _entries(data: bytes) -> Iterator[tuple[bytes, Entry]]:
    """Tree object format: `MODE SP NAME NUL` and 20 raw bytes, repeated (gitformat-tree)."""
    at, end = 0, len(data)
    while at < end:
        space = data.index(b" ", at)
        zero = data.index(b"\0", space)
        yield (
            data[space + 1 : zero],
            Entry(_mode(data[at:space]), data[zero + 1 : zero + 21].hex()),
        )
        at = zero + 21
