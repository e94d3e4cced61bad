"""patchq's own bare repository: releases as commits, carried series as commits on them.

It is never garbage collected: what a dropped patch was stays retrievable, and packed deltas
would make reading file by file slow.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.errors import PatchqError
from patchq.gitstore import contents
from patchq.gitstore.contents import PLAIN, Merged
from patchq.gitstore.fastimport import FastImport
from patchq.gitstore.files import write
from patchq.gitstore.git import Done, init, require_version, run, stream
from patchq.gitstore.objects import Objects

if TYPE_CHECKING:
    from patchq.gitstore.memo import Memo

DIFF = (*PLAIN, "--binary")
"""The canonical form of a patch's diff (design: on-disk forms)."""

CHUNK = 400
"""Paths on one command line."""


@dataclass(frozen=True, slots=True)
class Change:
    """One line of a raw diff between two trees. Modes and ids are all zeros where absent."""

    status: str
    path: bytes
    new_path: bytes
    old_mode: str
    new_mode: str
    old_oid: str
    new_oid: str


class Store:
    """The bare repository at `path`, made when it is missing."""

    def __init__(
        self, path: Path, *, alternates: Sequence[Path] = (), borrow: Path | None = None
    ) -> None:
        """`alternates` stay readable from here on; `borrow` only through this value."""
        self.path = path
        self._borrowed = (
            {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(borrow / "objects")} if borrow else {}
        )
        require_version()
        if not (path / "HEAD").is_file():
            init(path)
        self._share(alternates)

    def _share(self, alternates: Sequence[Path]) -> None:
        """Read the objects of `alternates` in place, without copying them."""
        if not alternates:
            return
        listed = self.path / "objects" / "info" / "alternates"
        text = b"".join(os.fsencode(folder) + b"\n" for folder in alternates)
        write(listed, text)

    @cached_property
    def objects(self) -> Objects:
        return Objects(self.path, self._borrowed)

    @cached_property
    def memo(self) -> Memo:
        """Answers about contents that were worked out before, by this process or another."""
        from patchq.gitstore.memo import Memo

        return Memo(self.path / "patchq-answers")

    def close(self) -> None:
        for name in ("objects", "memo"):
            if name in self.__dict__:
                self.__dict__.pop(name).close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def git(
        self,
        args: Sequence[str],
        *,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        ok: tuple[int, ...] = (0,),
        network: bool = False,
        cwd: Path | None = None,
    ) -> Done:
        """Run a plumbing command here."""
        return run(
            args,
            git_dir=self.path,
            input=input,
            env={**self._borrowed, **(env or {})},
            ok=ok,
            network=network,
            cwd=cwd,
        )

    def stream(self, args: Sequence[str], input: bytes) -> AbstractContextManager[Iterable[bytes]]:
        """The lines of a plumbing command's output, while it runs."""
        return stream(args, git_dir=self.path, input=input, env=self._borrowed)

    def fast_import(self, *, compression: int = 1) -> FastImport:
        return FastImport(self.path, compression=compression)

    def resolve(self, name: str) -> str | None:
        """The commit that `name` means, or None."""
        done = self.git(
            ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"],
            ok=(0, 1, 128),
        )
        return done.out.decode().strip() if done.code == 0 else None

    @contextmanager
    def index(self, tree: str) -> Iterator[Index]:
        """A temporary index that holds `tree`."""
        with tempfile.TemporaryDirectory(prefix="patchq-") as folder:
            index = Index(self, Path(folder) / "index")
            index.read(tree)
            yield index

    def diff_texts(self, pairs: Sequence[tuple[str, str]]) -> list[bytes]:
        """The canonical diff of each (tree, tree), by one process."""
        if not pairs:
            return []
        lines = "".join(f"{old} {new}\n" for old, new in pairs)
        done = self.git(["diff-tree", "--stdin", "-r", "-p", *DIFF], input=lines.encode())
        texts: list[bytes] = []
        rest = done.out
        for position, (old, new) in enumerate(pairs):
            head = f"{old} {new}\n".encode()
            if not rest.startswith(head):
                raise PatchqError("git diff-tree answered out of order", "report this as a bug")
            start = len(head)
            if position + 1 < len(pairs):
                after, then = pairs[position + 1]
                following = f"{after} {then}\n".encode()
                if rest.startswith(following, start):
                    end = start
                else:
                    end = rest.index(b"\n" + following, start) + 1
            else:
                end = len(rest)
            texts.append(rest[start:end])
            rest = rest[end:]
        return texts

    def changes(
        self, old: str, new: str, *, paths: Iterable[bytes] = (), renames: bool = False
    ) -> list[Change]:
        """What differs between two trees, limited to `paths` (literal) where given."""
        args = ["diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-color"]
        args.append("-M" if renames else "--no-renames")
        wanted = [os.fsdecode(path) for path in paths]
        if not wanted:
            return list(raw_changes(self.git([*args, old, new]).out))
        found: list[Change] = []
        for start in range(0, len(wanted), CHUNK):
            chunk = wanted[start : start + CHUNK]
            done = self.git(["--literal-pathspecs", *args, old, new, "--", *chunk])
            found.extend(raw_changes(done.out))
        return found

    def hunks(self, old: str, new: str, paths: Iterable[bytes]) -> bytes:
        """The zero-context diff of `paths` between two trees, for hunk arithmetic.

        Histogram, as git's own three-way merge of trees aligns (merge-ort).
        """
        wanted = [os.fsdecode(path) for path in paths]
        out = b""
        for start in range(0, len(wanted), CHUNK):
            chunk = wanted[start : start + CHUNK]
            out += self.git(
                [
                    "--literal-pathspecs",
                    *("diff-tree", "-r", "-p", "-U0", "--diff-algorithm=histogram", *PLAIN),
                    *(old, new, "--", *chunk),
                ]
            ).out
        return out

    def diff_data(self, old: bytes, new: bytes) -> bytes:
        """The zero-context diff of two contents, aligned as `hunks` aligns."""
        question = contents.question(b"diff", old, new)
        if (known := self.memo.get(question)) is not None:
            return known
        answer = contents.difference(self.git, old, new)
        self.memo.put(question, answer)
        return answer

    def merge_file(
        self,
        base: bytes,
        ours: bytes,
        theirs: bytes,
        *,
        labels: tuple[str, str, str] = ("ours", "base", "theirs"),
        favour: str | None = None,
    ) -> Merged:
        """A three-way merge of file contents. `favour`: "ours" or "theirs" wins conflicts.

        Binary content that both sides changed is one conflict, with ours as the text.
        """
        asked = "\0".join((*labels, favour or "")).encode()
        question = contents.question(b"merge", asked, base, ours, theirs)
        if (known := self.memo.get(question)) is not None:
            count, _, data = known.partition(b" ")
            return Merged(data, int(count))
        merged = contents.merged(self.git, base, ours, theirs, labels, favour)
        self.memo.put(question, b"%d %b" % (merged.conflicts, merged.data))
        return merged


class Index:
    """A temporary index of a store: apply to it, write it as a tree.

    Applied with --3way, a patch that makes a file which the index has already writes that file into
    the work tree, --cached or not: there is an empty one for that, beside the index at `path`.
    """

    def __init__(self, store: Store, path: Path) -> None:
        self._store = store
        self._tree = path.with_name("tree")
        self._tree.mkdir()
        self._env = {"GIT_INDEX_FILE": str(path), "GIT_WORK_TREE": str(self._tree)}

    def read(self, tree: str) -> None:
        self._store.git(["read-tree", tree], env=self._env)

    def apply(self, patches: Sequence[Path], *, options: Sequence[str] = ()) -> Done:
        """`git apply --cached` of all patches in order; exact context, no fuzz."""
        return self._store.git(
            ["apply", "--cached", "--whitespace=nowarn", *options, *map(os.path.abspath, patches)],
            env=self._env,
            ok=(0, 1, 128),
            cwd=self._tree,
        )

    def apply_bytes(self, patch: bytes, *, options: Sequence[str] = ()) -> Done:
        """The same for one patch in memory."""
        return self._store.git(
            ["apply", "--cached", "--whitespace=nowarn", *options, "-"],
            env=self._env,
            input=patch,
            ok=(0, 1, 128),
            cwd=self._tree,
        )

    def write(self) -> str:
        """The tree that the index holds."""
        return self._store.git(["write-tree"], env=self._env).out.decode().strip()


def raw_changes(out: bytes) -> Iterator[Change]:
    """Parse `--raw -z`: `:MODE MODE ID ID STATUS NUL PATH NUL [PATH NUL]`."""
    fields = iter(out.split(b"\0"))
    for head in fields:
        if not head:
            return
        old_mode, new_mode, old_oid, new_oid, status = head[1:].decode().split(" ")
        path = next(fields)
        new_path = next(fields) if status[0] in "RC" else path
        yield Change(status[0], path, new_path, old_mode, new_mode, old_oid, new_oid)
