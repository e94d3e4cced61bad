"""A copy of the project to work in, and commits on their way back from it: by a fetch beside it, or
as a bundle from another machine, which is looked at before a branch may have it.

Plumbing of the project's own repository; no work tree but the copy's is touched, no hook runs.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from patchq.errors import Incomplete, PatchqError
from patchq.gitstore.git import run
from patchq.gitstore.secret import Secret, clean
from patchq.gitstore.tags import setting
from patchq.paths import show

NIGHTS = "refs/patchq/nights/"
"""Where the project keeps the commits of its nights, each by the night's name."""
BUNDLED = "refs/patchq/night"
"""The one ref that a bundle has."""
LARGEST = 64 << 20
"""Bytes of a bundle."""
DEEPEST = 10
"""Commits in a bundle."""
_SPECS = (
    "+HEAD:refs/patchq/head",
    "+refs/heads/*:refs/patchq/heads/*",
    "+refs/remotes/origin/*:refs/remotes/origin/*",
    "+refs/patchq/fetched/*:refs/patchq/fetched/*",
    f"+{NIGHTS}*:{NIGHTS}*",
    "+refs/tags/*:refs/tags/*",
)
_KEPT = ("user.name", "user.email", "user.signingkey", "gpg.format")
_MODES = ("000000", "100644", "100755")
_QUIET = ("--quiet", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-gc")
_NOT = "nothing was changed; make the night again where it can be trusted"


@dataclass(frozen=True)
class Who:
    """Whose name commits have where git knows none."""

    name: str = "patchq nightly"
    mail: str = "patchq@localhost"


def clone(root: Path, target: Path, commit: str, branch: str, who: Who | None = None) -> None:
    """Make `target` a repository of its own with `commit` checked out on the branch `branch`.

    Its `origin` is that of the project at `root` (none: it has none), so that a push goes there.
    Nothing is shared with the project: what happens in either does not harm the other. Raises
    PatchqError where git refuses.
    """
    who = who or Who()
    run(["init", "--quiet", "--initial-branch", branch, "--end-of-options", str(target)])
    url = setting(root, "remote.origin.url")
    settings = {key: setting(root, key) for key in _KEPT}
    settings["user.name"] = settings["user.name"] or who.name
    settings["user.email"] = settings["user.email"] or who.mail
    if url is not None:
        # A path counts from the project, which the copy does not lie in.
        settings["remote.origin.url"] = str(root / url) if (root / url).exists() else url
        settings["remote.origin.fetch"] = "+refs/heads/*:refs/remotes/origin/*"
    for key, value in settings.items():
        if value is not None:
            run(["config", "--local", key, value], cwd=target)
    run(
        ["fetch", *_QUIET, "--update-shallow", "--no-tags", "--stdin", str(root)],
        cwd=target,
        input="".join(f"{spec}\n" for spec in _SPECS).encode(),
    )
    run(["checkout", "--quiet", "-B", branch, commit], cwd=target)


def lend(root: Path, target: Path, folder: str) -> None:
    """Let the copy have what lies in a folder of the project now, committed or not.

    Its git takes that for unchanged: it comes into no commit, and nothing is dirty for it.
    """
    if not (root / folder).is_dir():
        return
    shutil.copytree(root / folder, target / folder, symlinks=True, dirs_exist_ok=True)
    tracked = run(["ls-files", "-z", "--", folder], cwd=target).out
    run(["update-index", "--skip-worktree", "-z", "--stdin"], cwd=target, input=tracked)
    exclude = target / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    with exclude.open("a", encoding="utf-8") as out:
        out.write(f"/{folder}/\n")


def bring(root: Path, other: Path, commit: str, ref: str) -> None:
    """Let the project at `root` have `commit` of the repository `other`, kept by `ref`."""
    run(["update-ref", BUNDLED, commit], cwd=other)
    run(
        ["fetch", *_QUIET, "--no-tags", "--end-of-options", str(other), f"+{BUNDLED}:{ref}"],
        cwd=root,
    )


def drop(root: Path, ref: str) -> None:
    """Let go of a ref; done where it is not there."""
    run(["update-ref", "-d", ref], cwd=root, ok=(0, 1, 128))


def bundle(root: Path, start: str, commit: str, out: Path) -> None:
    """Write the commits after `start` up to `commit` into a file that git can fetch from."""
    run(["update-ref", BUNDLED, commit], cwd=root)
    beside = out.with_name(f".{out.name}")
    run(["bundle", "create", "--quiet", str(beside), BUNDLED, f"^{start}"], cwd=root)
    beside.replace(out)


def unbundle(
    root: Path,
    file: Path,
    *,
    start: str,
    commit: str,
    branches: Sequence[str],
    allowed: Mapping[str, bool],
    ref: str,
) -> None:
    """Take `commit` out of a bundle that somebody else has made, and keep it by `ref`.

    It has to be what it says: one ref, the one named, a straight line of at most DEEPEST commits on
    `start`, which has to be in one of `branches` here; each changes plain files below `allowed`
    (paths from the root, or folders where True) and nothing else. Raises PatchqError otherwise, and
    then no ref has it.
    """
    if file.is_symlink() or not file.is_file():
        raise _refused("there is no such file")
    if file.stat().st_size > LARGEST:
        raise _refused(f"it is larger than {LARGEST >> 20} MB")
    listed = run(["bundle", "list-heads", str(file)], cwd=root, ok=(0, 1, 128))
    if listed.code != 0 or listed.out.decode("utf-8", "replace").splitlines() != [
        f"{commit} {BUNDLED}"
    ]:
        raise _refused("it does not hold the night's commit, and that alone")
    if not any(_has(root, branch, start) for branch in branches):
        raise _refused(f"it begins with {start[:12]}, which is in no branch that it goes into")
    checked = run(["bundle", "verify", "--quiet", str(file)], cwd=root, ok=(0, 1, 128))
    if checked.code != 0:
        raise _refused(checked.why)
    strict = ("-c", "fetch.fsckObjects=true", "-c", "transfer.fsckObjects=true")
    fetched = run(
        [*strict, "fetch", *_QUIET, "--no-tags", str(file), f"+{BUNDLED}:{ref}"],
        cwd=root,
        ok=(0, 1, 128),
    )
    try:
        if fetched.code != 0:
            raise _refused(fetched.why)
        _look(root, start, commit, allowed)
    except BaseException:
        drop(root, ref)
        raise


def _has(root: Path, branch: str, commit: str) -> bool:
    args = ["merge-base", "--is-ancestor", commit, branch]
    return run(args, cwd=root, ok=(0, 1, 128)).code == 0


def _look(root: Path, start: str, commit: str, allowed: Mapping[str, bool]) -> None:
    args = ["rev-list", "--parents", "--topo-order", "--reverse", f"{start}..{commit}"]
    lines = [line.split() for line in run(args, cwd=root).out.decode().splitlines()]
    if not 1 <= len(lines) <= DEEPEST:
        raise _refused(f"it has {len(lines)} commits")
    before = start
    for line in lines:
        if line[1:] != [before]:
            raise _refused(f"{line[0][:12]} does not stand on {before[:12]} alone")
        before = line[0]
        for mode, path in _changes(root, line[0]):
            if mode not in _MODES or not _may(path, allowed):
                raise _refused(f"{line[0][:12]} changes {show(path)[:200]}")


def _changes(root: Path, commit: str) -> list[tuple[str, bytes]]:
    """The mode and the path of all that a commit changes."""
    args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-commit-id", commit]
    parts = run(args, cwd=root).out.split(b"\0")[:-1]
    return [
        (about.split(b" ")[1].decode(), path)
        for about, path in zip(parts[::2], parts[1::2], strict=True)
    ]


def _may(path: bytes, allowed: Mapping[str, bool]) -> bool:
    return any(
        path.startswith(name.encode() + b"/") if folder else path == name.encode()
        for name, folder in allowed.items()
    )


def _refused(why: str) -> PatchqError:
    return PatchqError(f"the bundle of the night is refused: {why}", _NOT)


def push_tag(root: Path, remote: str, tag: str, *, secret: Secret | None = None) -> None:
    """Let the remote have the tag; done where it has that very one. Raises Incomplete otherwise."""
    done = run(["remote", "get-url", "--push", "--end-of-options", remote], cwd=root, ok=(0, 2))
    url = done.out.decode("utf-8", "replace").strip() or remote
    ref = f"refs/tags/{tag}"
    pushed = run(
        ["push", "--quiet", "--no-follow-tags", "--end-of-options", remote, f"{ref}:{ref}"],
        cwd=root,
        network=True,
        env=secret.environment([url]) if secret else {},
        ok=tuple(range(256)),
    )
    if pushed.code != 0:
        raise Incomplete(
            f"the tag {tag} is not taken by {clean(url, secret)}: {clean(pushed.why, secret)}",
            "a token needs to write the repository's contents; run it again",
        )
