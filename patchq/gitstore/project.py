"""The project's own repository, by GitPython: what was committed, and committing.

GitPython is imported here only, and only when a command comes this far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from patchq.errors import PatchqError
from patchq.gitstore.git import network_env


def committed(root: Path, path: str) -> bytes | None:
    """The content of `path` (relative to `root`) in HEAD, or None."""
    from git import Repo

    with Repo(root) as repo:
        if not repo.head.is_valid():
            return None
        try:
            data: bytes = (repo.head.commit.tree / path).data_stream.read()
        except KeyError:
            return None
        return data


def versions(root: Path, path: str) -> Iterator[bytes]:
    """Each content that `path` (relative to `root`) had in HEAD's history, the newest first."""
    from git import Repo

    with Repo(root) as repo:
        if not repo.head.is_valid():
            return
        seen: set[str] = set()
        for commit in repo.iter_commits("HEAD", paths=path):
            try:
                blob = commit.tree / path
            except KeyError:
                continue  # the commit that removed it
            if blob.hexsha not in seen:
                seen.add(blob.hexsha)
                yield blob.data_stream.read()


def commit(root: Path, paths: Sequence[str], message: str) -> str:
    """Commit `paths` and nothing else; the id of the new commit.

    Raises PatchqError where git refuses (no identity, a merge under way, ...).
    """
    from git import GitCommandError, Repo

    env = network_env() | {"GIT_EDITOR": "true"}
    with Repo(root) as repo:
        try:
            with repo.git.custom_environment(**env):
                repo.git.add("--all", "--", *paths)
                repo.git.commit("--quiet", "--message", message, "--only", "--", *paths)
        except GitCommandError as error:
            why = str(error.stderr or error).strip().strip("'").strip()
            raise PatchqError(
                f"git does not commit: {why.splitlines()[-1] if why else error}",
                "the files are written; commit them by hand",
            ) from error
        return str(repo.head.commit.hexsha)


def changed(root: Path, paths: Sequence[str]) -> list[str]:
    """Lines of `git status --porcelain` for `paths`."""
    from git import Repo

    with Repo(root) as repo:
        text: str = repo.git.status("--porcelain", "--", *paths)
    return text.splitlines()
