"""Merging and comparing contents that stand in no tree, by git's own plumbing."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from patchq.errors import PatchqError
from patchq.gitstore.git import Done

PLAIN = ("--no-renames", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv")
"""What a user's settings would change in a diff."""


class Git(Protocol):
    """Runs git in the store: the settings of the repository around are not ours."""

    def __call__(self, args: Sequence[str], *, ok: tuple[int, ...]) -> Done: ...


@dataclass(frozen=True, slots=True)
class Merged:
    """A three-way merge of contents: the text, and how many conflicts stand in it."""

    data: bytes
    conflicts: int


def question(*parts: bytes) -> bytes:
    """A key for what is asked about contents: a sha256, parts told apart by their lengths."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.digest()


def difference(git: Git, old: bytes, new: bytes) -> bytes:
    """The zero-context diff of two contents; histogram, as git's merge of trees aligns."""
    with tempfile.TemporaryDirectory(prefix="patchq-") as folder:
        names = [f"{folder}/old", f"{folder}/new"]
        for name, data in zip(names, (old, new), strict=True):
            Path(name).write_bytes(data)
        args = ["diff", "--no-index", "--text", "-U0", "--diff-algorithm=histogram", *PLAIN]
        return git([*args, "--", *names], ok=(0, 1)).out


def merged(
    git: Git,
    base: bytes,
    ours: bytes,
    theirs: bytes,
    labels: tuple[str, str, str],
    favour: str | None,
) -> Merged:
    """`git merge-file`. `favour`: "ours" or "theirs" wins conflicts.

    Binary content that both sides changed is one conflict, with ours as the text.
    """
    with tempfile.TemporaryDirectory(prefix="patchq-") as folder:
        names = [f"{folder}/{name}" for name in ("ours", "base", "theirs")]
        for name, data in zip(names, (ours, base, theirs), strict=True):
            Path(name).write_bytes(data)
        args = ["merge-file", "--stdout", "--quiet", "--diff3"]
        if favour:
            args[-1] = f"--{favour}"
        for label in labels:
            args += ["-L", label]
        done = git([*args, *names], ok=tuple(range(256)))
    if done.code == 255:
        return Merged(theirs if favour == "theirs" else ours, 0 if favour else 1)
    if done.code > 127:
        raise PatchqError(f"git merge-file failed: {done.why}", "report this as a bug")
    return Merged(done.out, done.code)
