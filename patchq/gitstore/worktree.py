"""A tree of the store as files that people edit, and what they did there.

The files stand in `folder`, a small git repository for the user's own tools in `git_dir` beside it
(detached HEAD, objects read from the store). Our own work there goes another way: git runs on the
store with an index of ours, so no setting, hook, attribute or recorded resolution of the user's
acts on it, and git commands that the user or an editor runs at the same time do not disturb it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from patchq.errors import PatchqError
from patchq.gitstore.edits import Blocked, Edit, in_the_way
from patchq.gitstore.files import NONE, Files, copy, is_litter, markers, write
from patchq.gitstore.git import Done, run
from patchq.gitstore.objects import GITLINK
from patchq.gitstore.store import Change, Store
from patchq.paths import show

__all__ = ["EMPTY_TREE", "Blocked", "Edit", "Worktree", "is_litter", "markers"]

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
RAW = b"* -text -eol -ident -filter -working-tree-encoding !diff !merge\n"
"""Attributes in `info/` outrank the tree's own: bytes in, the same bytes out."""

_CONFIG = (
    b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
    b"[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
)


@dataclass(frozen=True)
class Plan:
    """A switch to `tree`: what differs there, and what of it is to be written."""

    tree: str
    changes: tuple[Change, ...]
    written: tuple[Change, ...]


class Worktree:
    """The files in `folder` with their repository in `git_dir`; both are made when missing."""

    def __init__(self, store: Store, folder: Path, git_dir: Path) -> None:
        self._store = store
        self.folder = folder
        self.git_dir = git_dir
        self._files = Files(folder)
        self._own = git_dir / "patchq.index"
        self._next = "", self._own

    @property
    def exists(self) -> bool:
        """Whether any file is there; a tree whose folder was deleted is made anew."""
        try:
            return any(name != ".git" for name in os.listdir(self.folder))
        except (FileNotFoundError, NotADirectoryError):
            return False

    @property
    def is_ready(self) -> bool:
        """Whether it can be looked at without `ensure`, which writes."""
        return self.exists and self._own.exists()

    def switch(self, old: str, new: str, head: str) -> None:
        """Bring the files from the tree `old` to the tree `new`; HEAD becomes the commit `head`.

        `old` is EMPTY_TREE where nothing stands yet. Files that do not differ are not touched.
        Raises Blocked, before anything is touched, where edits stand in the way. A caller that
        wrote the three names down before can `repair` a switch that was killed.
        """
        self.carry_out(self.plan(old, new), head)

    def plan(self, old: str, new: str, edits: Sequence[Edit] | None = None) -> Plan:
        """The first half of `switch`, which touches no file; `edits` where they are known.

        Raises Blocked.
        """
        self.ensure(old)
        changes = self._store.changes(old, new) if old != new else []
        if changes and edits is None:
            edits = self.edits()
        found = {edit.path: edit for edit in edits or ()}
        blocked = in_the_way(self._files, changes, found)
        if blocked:
            raise Blocked(blocked, self.folder)
        written = [change for change in changes if change.path not in found]
        return Plan(new, tuple(changes), tuple(written))

    def carry_out(self, plan: Plan, head: str) -> None:
        """The second half of `switch`."""
        self._put(plan.changes, plan.written, plan.tree)
        self._show(head, plan.tree)

    def ensure(self, tree: str) -> None:
        """Make what is missing around the files of `tree`: repository, index."""
        self._prepare()
        if tree == EMPTY_TREE:
            self._own.unlink(missing_ok=True)
        elif not self._own.exists():
            self._git(["read-tree", tree])
        info = self.folder.stat()
        where = b"%d %d\n" % (info.st_dev, info.st_ino)
        known = self.git_dir / "patchq.place"
        if tree != EMPTY_TREE and not (known.exists() and known.read_bytes() == where):
            # A copied tree has other times: all files are compared by content, once.
            self._git(["update-index", "-q", "--refresh"], ok=(0, 1))
        write(known, where)

    def repair(self, old: str, new: str, head: str) -> None:
        """Complete a switch that was killed: what it left half done, not what was edited since."""
        self._prepare()
        with suppress(FileNotFoundError):
            self._own.with_name(self._own.name + ".lock").unlink()
        changes = self._store.changes(old, new)
        left = [
            change
            for change in changes
            if not self._files.holds(change.path, change.new_mode, change.new_oid)
            and (
                self._files.holds(change.path, change.old_mode, change.old_oid)
                or (self._files.found(change.path) or (GITLINK,))[0] == GITLINK
                or self._torn(change)
            )
        ]
        self._put(changes, left, new)
        self._show(head, new)

    def edits(self) -> tuple[Edit, ...]:
        """What is not as in the tree last switched to, litter included, sorted by path.

        Nothing is ignored: a file that `.gitignore` names is a file like any other.
        """
        # Times alone tell nothing: files whose time differs are compared by content.
        listed = self._git(["ls-files", "-z", "-t", "-m", "-d", "-o"]).out.split(b"\0")
        found: dict[bytes, Edit] = {}
        for line in filter(None, listed):
            tag, path = line[:1], line[2:]
            if tag == b"?":
                found[path] = Edit(path, "added")
            elif tag == b"R":
                found[path] = Edit(path, "deleted")
            else:
                found.setdefault(path, Edit(path, "modified"))
        return tuple(found[path] for path in sorted(found))

    def write_tree(self, edits: Iterable[Edit], *, switching: bool = False) -> str:
        """The tree last switched to with these edits taken in, written to the store.

        `switching`: the next switch is to that tree, if any; the caller holds the lock.
        Raises PatchqError for what is neither a file nor a link (a repository inside the tree).
        """
        paths = [edit.path for edit in edits]
        for path in paths:
            if path.endswith(b"/"):
                raise PatchqError(
                    f"{self.folder}/{show(path)} is a git repository inside the tree",
                    "move it away: a patch cannot hold it",
                )
        index = self.git_dir / f"patchq.index.{'next' if switching else os.getpid()}"
        copy(self._own, index)
        try:
            args = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]
            if paths:
                self._git(args, input=b"".join(path + b"\0" for path in paths), index=index)
            tree = self._git(["write-tree"], index=index).out.decode().strip()
        finally:
            if not switching:
                index.unlink()
        if switching:
            self._next = tree, index
        return tree

    def keep(self, tree: str, parent: str, message: str, name: str) -> str:
        """Keep a tree as a commit that the user's git finds under `refs/patchq/`; its id."""
        who = {
            f"GIT_{role}_{part}": "patchq"
            for role in ("AUTHOR", "COMMITTER")
            for part in ("NAME", "EMAIL")
        }
        done = self._store.git(["commit-tree", tree, "-p", parent, "-m", message], env=who)
        commit = done.out.decode().strip()
        ref = self.git_dir / "refs/patchq" / name.replace("..", "-").replace(".lock", "-lock")
        ref.parent.mkdir(parents=True, exist_ok=True)
        write(ref, commit.encode() + b"\n")
        return commit

    def read(self, path: bytes) -> bytes | None:
        """A file's content (a link's target) as it stands there, or None."""
        found = self._files.found(path)
        return found[1] if found else None

    def _git(
        self,
        args: Sequence[str],
        *,
        input: bytes = b"",
        index: Path | None = None,
        ok: tuple[int, ...] = (0,),
    ) -> Done:
        env = {"GIT_WORK_TREE": str(self.folder), "GIT_INDEX_FILE": str(index or self._own)}
        git_dir = self._store.path.resolve()
        return run(args, git_dir=git_dir, cwd=self.folder, input=input, env=env, ok=ok)

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ("objects/info", "refs", "info"):
            (self.git_dir / name).mkdir(parents=True, exist_ok=True)
        objects = os.fsencode(self._store.path.resolve() / "objects")
        write(self.git_dir / "objects/info/alternates", objects + b"\n")
        write(self.git_dir / "info/attributes", RAW)
        write(self._store.path / "info/attributes", RAW)
        told = b"gitdir: %b\n" % os.fsencode(os.path.relpath(self.git_dir, self.folder))
        write(self.folder / ".git", told, self.git_dir)
        if not (self.git_dir / "config").exists():
            write(self.git_dir / "config", _CONFIG)
        if not (self.git_dir / "HEAD").exists():
            write(self.git_dir / "HEAD", b"ref: refs/heads/none\n")

    def _put(self, changes: Sequence[Change], written: Sequence[Change], tree: str) -> None:
        """The index becomes `tree`'s, and the files those of `written`."""
        if self._next[0] == tree and not written:
            self._next[1].replace(self._own)  # the very files that this index was made of
            self._next = "", self._own
            return
        if changes or not self._own.exists():
            try:
                self._git(["read-tree", "-m", tree])  # what does not differ keeps its times
            except PatchqError:
                self._own.unlink(missing_ok=True)  # a damaged index
                self._git(["read-tree", tree])
        for change in written:
            if change.new_oid == NONE:
                self._files.remove(change.path)
        # git would remove a folder with all that is in it to make room for a file.
        wanted = [
            change.path
            for change in written
            if change.new_oid != NONE and not self._files.is_full(change.path)
        ]
        if wanted:
            listed = b"".join(path + b"\0" for path in wanted)
            self._git(["checkout-index", "-f", "-u", "-z", "--stdin"], input=listed)
        if len(written) < len(changes):
            self._git(["update-index", "-q", "--refresh", "--unmerged"], ok=(0, 1))

    def _show(self, head: str, tree: str) -> None:
        """What the user's own git sees: HEAD and an index with its files, a copy of ours."""
        write(self.git_dir / "HEAD", head.encode() + b"\n")
        beside = self.git_dir / "patchq.index.copy"
        copy(self._own, beside)
        if tree != self._store.objects.tree_of(head):
            self._git(["read-tree", "-m", head], index=beside)  # `git diff` shows what conflicts
        beside.replace(self.git_dir / "index")

    def _torn(self, change: Change) -> bool:
        """Whether a file is the first part of the one that was being written."""
        found = self._files.found(change.path)
        if found is None or found[0] not in ("100644", "100755") or change.new_mode == GITLINK:
            return False
        return change.new_oid != NONE and self._store.objects.blob(change.new_oid).startswith(
            found[1]
        )
