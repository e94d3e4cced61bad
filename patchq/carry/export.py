"""`patchq export`: the queue as a branch, one commit a patch on the base, or as an mbox."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from patchq.carry.canonical import applied
from patchq.carry.exchange import explained
from patchq.carry.workspace import Queue, base_of, upstream_of
from patchq.errors import PatchqError
from patchq.gitstore.git import run
from patchq.progress import SILENT, Progress
from patchq.queue import mail
from patchq.upstream.history import local_git_dir


@dataclass(frozen=True)
class ExportReport:
    queue: str
    repository: str
    branch: str
    base: str
    commit: str
    tree: str
    patches: int


@dataclass(frozen=True)
class MboxReport:
    queue: str
    file: str
    base: str
    patches: int


def export_mbox(queue: Queue, file: Path, *, force: bool = False) -> MboxReport:
    """Write the applied patches to `file`, for `git am --keep-cr --keep-non-patch` on the base.

    Raises PatchqError where the file is there already (without `force`) or cannot be written.
    """
    if file.exists() and not force:
        raise PatchqError(f"{file} is there already", "choose another name, or replace it: --force")
    series = queue.series.applied
    mails = [mail.mail(patch, place, len(series)) for place, patch in enumerate(series, 1)]
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    with explained("nothing was exported"):
        try:
            beside.write_bytes(b"".join(mails))
            beside.replace(file)
        finally:
            beside.unlink(missing_ok=True)
    return MboxReport(queue.config.name, str(file), queue.state.release, len(series))


def export(
    queue: Queue,
    repository: Path,
    branch: str,
    *,
    force: bool = False,
    progress: Progress = SILENT,
) -> ExportReport:
    """Write the series to `branch` of the repository at a path.

    An existing branch is moved only forward, or with `force`. Raises PatchqError where git
    refuses: the branch is checked out there, or holds other commits.
    """
    git_dir = local_git_dir(str(repository))
    if git_dir is None:
        raise PatchqError(f"{repository} is not a path", "give the path of a repository")
    ref = f"refs/heads/{branch}"
    if run(["check-ref-format", ref], ok=(0, 1)).code != 0 or branch.startswith("-"):
        raise PatchqError(f"{branch!r} cannot be a branch's name", "choose another name")
    with upstream_of(queue, progress=progress) as upstream:
        base = base_of(queue, upstream)
        carry = applied(upstream.store, base, queue.series.applied, progress)
        there = run(["rev-parse", "--verify", "--quiet", ref], git_dir=git_dir, ok=(0, 1))
        if there.out.decode().strip() != carry.commit:
            progress.step("exporting")
            done = run(
                [
                    "fetch",
                    "--quiet",
                    "--no-tags",
                    "--no-write-fetch-head",
                    str(upstream.store.path.resolve()),
                    f"{'+' if force else ''}{carry.commit}:{ref}",
                ],
                git_dir=git_dir,
                cwd=git_dir,
                ok=(0, 1, 128),
            )
            if done.code != 0:
                raise PatchqError(
                    f"git does not write the branch {branch}: {done.why or 'it has other commits'}",
                    "choose another branch, or replace that one with --force",
                )
    return ExportReport(
        queue.config.name,
        str(repository),
        branch,
        base.name,
        carry.commit,
        carry.tree,
        len(carry.patches),
    )
