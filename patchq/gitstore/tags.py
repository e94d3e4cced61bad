"""A commit and its tag, made at once in the project's own repository, by git's plumbing.

Nothing in it depends on what else stands in the index or the work tree; both come in by one
transaction of refs, so that there is never one without the other.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from patchq.errors import PatchqError
from patchq.gitstore.git import GitError, run
from patchq.gitstore.objects import TREE, Objects
from patchq.paths import lossless


@dataclass(frozen=True)
class Sealed:
    """What is to become of the refs: `branch` from `old` to `commit`, and the tag `name`.

    `branch` is HEAD itself where no branch is checked out.
    """

    branch: str
    old: str
    commit: str
    name: str
    tag: str


def setting(root: Path, key: str) -> str | None:
    """What the user's and the repository's git settings say of `key`; None where nothing."""
    done = run(["config", "--get", key], cwd=root, env=_env(), network=True, ok=(0, 1))
    return done.out.decode("utf-8", "replace").strip() or None


def head(root: Path) -> tuple[str, int]:
    """The commit that is checked out, and its time in seconds since 1970, UTC.

    Raises PatchqError where there is none.
    """
    done = run(
        ["log", "-1", "--format=%H %ct", "--no-show-signature", "HEAD"], cwd=root, ok=(0, 128)
    )
    if done.code != 0:
        raise PatchqError("nothing is committed here yet", "commit the queue first")
    commit, _, when = done.out.decode().strip().partition(" ")
    return commit, int(when)


def tagged(root: Path, name: str) -> str | None:
    """The commit that the tag `name` is of, or None."""
    done = run(
        ["rev-parse", "--verify", "--quiet", "--end-of-options", f"refs/tags/{name}^{{commit}}"],
        cwd=root,
        ok=(0, 1, 128),
    )
    return done.out.decode().strip() if done.code == 0 else None


def at(root: Path, commit: str, path: str) -> bytes | None:
    """The content of `path` in a commit, or None."""
    done = run(["cat-file", "blob", f"{commit}:{path}"], cwd=root, ok=(0, 128))
    return done.out if done.code == 0 else None


def folder_at(root: Path, commit: str, folder: str) -> dict[str, bytes]:
    """The files directly in `folder` in a commit, by name; none where there is no such folder."""
    with Objects(_git_dir(root)) as objects:
        entry = objects.lookup(objects.tree_of(commit), folder.encode())
        if entry is None or entry.mode != TREE:
            return {}
        files = {
            lossless(name): each.oid
            for name, each in objects.tree(entry.oid).items()
            if each.mode in ("100644", "100755")
        }
        found = objects.blobs(files.values())
        return {name: found[oid] for name, oid in files.items()}


def prepare(root: Path, files: Mapping[str, bytes], message: str, name: str) -> Sealed:
    """Make the commit of `files` (by path) on HEAD and its tag; no ref is changed yet.

    Raises PatchqError where the tag is there, or git knows no name to commit by.
    """
    if tagged(root, name) is not None:
        raise PatchqError(f"the tag {name} is there already", "give another number with --number")
    env = {"GIT_WORK_TREE": str(root), **_env()}
    old, _ = head(root)
    with tempfile.TemporaryDirectory(prefix="patchq-") as folder:
        env["GIT_INDEX_FILE"] = str(Path(folder) / "index")
        run(["read-tree", old], cwd=root, env=env)
        for path, data in files.items():
            blob = _said(root, ["hash-object", "-w", "--stdin"], data)
            info = f"100644,{blob},{path}"
            run(["update-index", "--add", "--cacheinfo", info], cwd=root, env=env)
        tree = run(["write-tree"], cwd=root, env=env).out.decode().strip()
    try:
        commit = _said(root, ["commit-tree", tree, "-p", old], message.encode(), own=True)
        who = _said(root, ["var", "GIT_COMMITTER_IDENT"], None, own=True)
    except GitError as error:
        raise PatchqError(
            f"git does not commit: {error.done.why}",
            "set user.name and user.email (`git config`), then run it again; nothing was changed",
        ) from error
    text = f"object {commit}\ntype commit\ntag {name}\ntagger {who}\n\n{message}"
    tag = _said(root, ["mktag"], text.encode())
    done = run(["symbolic-ref", "--quiet", "HEAD"], cwd=root, ok=(0, 1))
    return Sealed(done.out.decode().strip() or "HEAD", old, commit, name, tag)


def seal(root: Path, sealed: Sealed) -> None:
    """Let branch and tag be what `prepare` made, both or none.

    Raises PatchqError where something else was committed or tagged meanwhile.
    """
    lines = (
        "start",
        f"update {sealed.branch} {sealed.commit} {sealed.old}",
        f"create refs/tags/{sealed.name} {sealed.tag}",
        "prepare",
        "commit",
    )
    text = "".join(f"{line}\n" for line in lines).encode()
    done = run(
        ["update-ref", "-m", f"release: {sealed.name}", "--stdin"],
        cwd=root,
        input=text,
        env=_env(),
        network=True,
        ok=(0, 1, 128),
    )
    if done.code != 0:
        raise PatchqError(
            f"git does not take the release: {done.why}",
            "somebody else committed or tagged meanwhile; run it again",
        )


def remove_tag(root: Path, name: str, commit: str) -> None:
    """Remove the tag, which must still be of `commit`."""
    if tagged(root, name) == commit:
        run(["update-ref", "-d", f"refs/tags/{name}"], cwd=root)


def refresh(root: Path, files: Sequence[str]) -> None:
    """Let the index have `files` as HEAD has them, and nothing else."""
    run(["reset", "--quiet", "--", *files], cwd=root, env=_env(), network=True, ok=(0, 1))


def dirty(root: Path, but: str) -> list[str]:
    """Lines of `git status --porcelain`, without what git ignores and the folder `but`."""
    args = ["status", "--porcelain", "--untracked-files=normal", "--", ".", f":(exclude){but}"]
    done = run(args, cwd=root, env=_env(), network=True)
    return done.out.decode("utf-8", "replace").splitlines()


def _git_dir(root: Path) -> Path:
    done = run(["rev-parse", "--absolute-git-dir"], cwd=root)
    return Path(os.fsdecode(done.out.rstrip(b"\n")))


def _said(root: Path, args: list[str], data: bytes | None, *, own: bool = False) -> str:
    """What a command answers; `own`: by the user's settings, which hold the name."""
    env = _env() if own else None
    return run(args, cwd=root, input=data, env=env, network=own).out.decode().strip()


def _env() -> dict[str, str]:
    kept = ("GIT_AUTHOR_", "GIT_COMMITTER_")
    return {key: value for key, value in os.environ.items() if key.startswith(kept)}


def is_pushed(root: Path, commit: str) -> bool:
    """Whether a remote's branch, as it was last seen, has the commit."""
    args = ["branch", "--remotes", "--contains", commit]
    return bool(run(args, cwd=root, ok=(0, 129)).out.strip())
