"""The runner tree on a node: only what differs from what is there is sent, so that what was built
stays built (ninja goes by the time of a file).
"""

from __future__ import annotations

import os
import posixpath
import re
import tempfile
from pathlib import Path

from patchq.build.native.trees import plain
from patchq.cluster.shell import Shell
from patchq.errors import PatchqError
from patchq.gitstore.checkout import check_out
from patchq.gitstore.store import Store
from patchq.paths import lossless, require_inside
from patchq.progress import SILENT, Progress

STATE = "state/tree"
_UNKNOWN = "?"
"""Stands there while the first copy is on its way."""
_AT_ONCE = 200


def send(shell: Shell, store: Store, tree: str, folder: str, progress: Progress = SILENT) -> None:
    """Make `src` below `folder` on the node the tree `tree` of the store.

    What is there is written down on the node: one tree, or several while a change is under way.
    Raises Incomplete where the node is not reached.
    """
    there = _there(shell, store, folder)
    if there == [tree]:
        return
    progress.step(f"sending the source to {shell.name}")
    moving = dict.fromkeys([*(there or [_UNKNOWN]), tree])
    note(shell, posixpath.join(folder, STATE), "\n".join(moving))
    with tempfile.TemporaryDirectory(prefix="patchq-") as name:
        here = Path(name) / "src"
        here.mkdir()
        if there:
            gone = _write_changes(store, there, tree, here)
            for start in range(0, len(gone), _AT_ONCE):
                paths = [posixpath.join(folder, "src", each) for each in gone[start:][:_AT_ONCE]]
                _must(shell, ["rm", "-f", "--", *paths])
        else:
            check_out(store, tree, here)
        shell.send(here, posixpath.join(folder, "src"))
    note(shell, posixpath.join(folder, STATE), tree)


def note(shell: Shell, path: str, text: str) -> None:
    """Write a small file on the node, at once."""
    _must(shell, ["mkdir", "-p", "--", posixpath.dirname(path)])
    _must(shell, ["tee", f"{path}.new"], text.encode())
    _must(shell, ["mv", "-f", "--", f"{path}.new", path])


def noted(shell: Shell, path: str) -> str:
    """What `note` wrote; nothing where it did not."""
    done = shell.run(["cat", "--", path])
    return done.stdout.decode("utf-8", "replace").strip() if done.code == 0 else ""


def _there(shell: Shell, store: Store, folder: str) -> list[str]:
    """The trees that `src` may be, oldest first; none where that is not known."""
    found = noted(shell, posixpath.join(folder, STATE)).split()
    known = all(
        re.fullmatch(r"[0-9a-f]{40}", each)
        and store.git(["cat-file", "-e", f"{each}^{{tree}}"], ok=(0, 1, 128)).code == 0
        for each in found
    )
    return found if known else []


def _write_changes(store: Store, there: list[str], tree: str, here: Path) -> list[str]:
    """Write below `here` what differs between `tree` and any of `there`; what is to be removed."""
    gone: list[str] = []
    paths = {each.path for old in there for each in store.changes(old, tree)}
    for path in sorted(paths):
        require_inside(path, "the tree")
        entry = store.objects.lookup(tree, path)
        if entry is None or not plain(entry.mode):
            gone.append(lossless(path))
            continue
        target = here / os.fsdecode(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(store.objects.blob(entry.oid))
        target.chmod(0o755 if entry.mode == "100755" else 0o644)
    return gone


def _must(shell: Shell, args: list[str], input: bytes | None = None) -> None:
    done = shell.run(args, input=input)
    if done.code != 0:
        why = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise PatchqError(
            f"{args[0]} failed on {shell.name}: {why[0] if why else f'exit status {done.code}'}",
            "see to the folder on the node: its disk, who may write there",
        )
