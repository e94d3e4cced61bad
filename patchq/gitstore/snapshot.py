"""The project at one of its commits: read without a checkout, or laid out as a repository of its
own beside it. Plumbing only; index, branches and files of the project are not touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from patchq.gitstore.git import run
from patchq.gitstore.objects import GITLINK, TREE, Objects
from patchq.paths import lossless

LINK = "120000"
_WHO = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "patchq"), ("EMAIL", "patchq@localhost"))
}


def commit_of(root: Path, name: str) -> str | None:
    """The commit that `name` (a branch, a tag, a hash, `HEAD~2`) means in the project, or None."""
    done = run(
        ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"],
        cwd=root,
        ok=(0, 1, 128),
    )
    return done.out.decode().strip() if done.code == 0 else None


def tags(root: Path, prefix: str) -> list[str]:
    """The tags whose names start with `prefix`."""
    done = run(["for-each-ref", "--format=%(refname:strip=2)", f"refs/tags/{prefix}*"], cwd=root)
    return done.out.decode("utf-8", "surrogateescape").split("\n")[:-1]


def versions(root: Path, path: str, *, most: int) -> Iterator[tuple[str, bytes]]:
    """The commits that brought a content of `path`, and that content, HEAD's history first.

    Then the other branches and tags, the newest first; at most `most` commits of each.
    """
    seen: set[str] = set()
    with Objects(git_dir(root)) as objects:
        for heads in (["HEAD"], ["--branches", "--tags", "--remotes"]):
            args = ["rev-list", f"--max-count={most}", *heads, "--", path]
            for commit in run(args, cwd=root, ok=(0, 128)).out.decode().split():
                if commit in seen:
                    continue
                seen.add(commit)
                entry = objects.lookup(objects.tree_of(commit), path.encode())
                if entry is not None and entry.mode not in (TREE, GITLINK, LINK):
                    yield commit, objects.blob(entry.oid)


def files_at(root: Path, commit: str, folders: Sequence[str]) -> dict[str, bytes]:
    """The plain files below `folders` in a commit, by path from the root; links are left out."""
    with Objects(git_dir(root)) as objects:
        top = objects.tree_of(commit)
        found: dict[str, str] = {}
        for folder in folders:
            entry = objects.lookup(top, folder.encode())
            if entry is None or entry.mode != TREE:
                continue
            for path, each in objects.walk(entry.oid, folder.encode() + b"/"):
                if each.mode not in (GITLINK, LINK):
                    found[lossless(path)] = each.oid
        blobs = objects.blobs(found.values())
    return {path: blobs[oid] for path, oid in found.items()}


def lay_out(root: Path, commit: str, folder: Path) -> None:
    """Make the new or empty `folder` a repository whose branch `main` is `commit`, checked out.

    It reads the project's objects in place, and has none of its remotes, hooks and settings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    run(["init", "--quiet", "--template=", "--initial-branch=main", "."], cwd=folder)
    shared = folder / ".git" / "objects" / "info" / "alternates"
    shared.parent.mkdir(exist_ok=True)
    shared.write_bytes(os.fsencode(git_dir(root) / "objects") + b"\n")
    for key, value in (("user.name", "patchq"), ("user.email", "patchq@localhost")):
        run(["config", key, value], cwd=folder)
    run(["update-ref", "refs/heads/main", commit], cwd=folder)
    run(["reset", "--quiet", "--hard"], cwd=folder)


def seal(folder: Path, paths: Sequence[str], message: str) -> str:
    """Commit what stands at `paths` in a folder that `lay_out` made; the new commit.

    What is gone there goes. Its date is that of the commit before: same content, same id.
    """
    names = b"".join(os.fsencode(path) + b"\0" for path in paths)
    run(["update-index", "--add", "--remove", "-z", "--stdin"], cwd=folder, input=names)
    tree = run(["write-tree"], cwd=folder).out.decode().strip()
    when = run(["log", "-1", "--format=%ct +0000", "HEAD"], cwd=folder).out.decode().strip()
    env = {**_WHO, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    args = ["commit-tree", tree, "-p", "HEAD"]
    commit = run(args, cwd=folder, input=message.encode(), env=env).out.decode().strip()
    run(["update-ref", "refs/heads/main", commit], cwd=folder)
    return commit


def git_dir(root: Path) -> Path:
    """The git directory that holds the project's objects (of a linked work tree: the common one).

    Raises GitError where `root` is in no repository.
    """
    done = run(["rev-parse", "--path-format=absolute", "--git-common-dir"], cwd=root)
    return Path(os.fsdecode(done.out.rstrip(b"\n")))
