"""Run git with nothing of the user's in the way.

Plumbing on our own store reads no configuration but ours: every option below was seen to change
bytes or behaviour when it came from a user's or a system's file. Network commands keep the user's
configuration (proxies, credential helpers, `insteadOf`), but no hooks and no prompts.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from patchq.errors import PatchqError

NEEDED = (2, 39)
"""`merge-file`, `diff-tree --stdin` and `fast-import` as used here are tested from this version."""

PINNED = {
    "core.hooksPath": "/dev/null",
    "core.attributesFile": "/dev/null",
    "core.quotePath": "true",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.compression": "1",
    "pack.compression": "1",
    "diff.suppressBlankEmpty": "false",
    "diff.noprefix": "false",
    "diff.mnemonicPrefix": "false",
    "apply.whitespace": "nowarn",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
NETWORK_ENV = (
    "GIT_ASKPASS",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_PROXY_COMMAND",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
)


@dataclass(frozen=True)
class Done:
    """What a git command left: exit status and both streams."""

    code: int
    out: bytes
    err: bytes

    @property
    def why(self) -> str:
        """The first line of stderr, without git's own prefix."""
        lines = self.err.decode("utf-8", "replace").strip().splitlines()
        return lines[0].removeprefix("fatal: ").removeprefix("error: ") if lines else ""


class GitError(PatchqError):
    """git said no where it should not have."""

    def __init__(self, args: Sequence[str], done: Done) -> None:
        verb = next((arg for arg in args if not arg.startswith("-")), "git")
        super().__init__(
            f"git {verb} failed: {done.why or f'exit status {done.code}'}",
            "see the message above; the queue was not changed",
        )
        self.done = done


def plumbing_env(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for commands on our own store: no `GIT_*`, no user configuration."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env.update(
        LC_ALL="C",
        GIT_TERMINAL_PROMPT="0",
        GIT_CONFIG_GLOBAL="/dev/null",
        GIT_CONFIG_NOSYSTEM="1",
        GIT_ATTR_NOSYSTEM="1",
        GIT_CONFIG_COUNT=str(len(PINNED)),
    )
    for index, (key, value) in enumerate(PINNED.items()):
        env[f"GIT_CONFIG_KEY_{index}"] = key
        env[f"GIT_CONFIG_VALUE_{index}"] = value
    env.update(extra or {})
    return env


def network_env() -> dict[str, str]:
    """The environment for fetches: the user's configuration stays, prompts and hooks do not."""
    env = plumbing_env()
    for key in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
        del env[key]
    env.update({key: os.environ[key] for key in NETWORK_ENV if key in os.environ})
    return env


def run(
    args: Sequence[str],
    *,
    cwd: Path | None = None,
    git_dir: Path | None = None,
    input: bytes | None = None,
    env: Mapping[str, str] | None = None,
    network: bool = False,
    ok: tuple[int, ...] = (0,),
) -> Done:
    """Run `git ARGS` and wait.

    `git_dir` names the repository, `env` adds variables, `network` keeps the user's configuration.
    Raises GitError for an exit status outside `ok`, PatchqError without a usable git.
    """
    command = ["git", *([f"--git-dir={git_dir}"] if git_dir else []), *args]
    full = network_env() if network else plumbing_env()
    full.update(env or {})
    try:
        process = subprocess.run(
            command,
            cwd=cwd,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            env=full,
            check=False,
        )
    except FileNotFoundError as error:
        raise no_git() from error
    done = Done(process.returncode, process.stdout, process.stderr)
    if done.code not in ok:
        raise GitError(args, done)
    return done


@contextmanager
def stream(
    args: Sequence[str], *, git_dir: Path, input: bytes, env: Mapping[str, str] | None = None
) -> Iterator[Iterable[bytes]]:
    """The lines of `git ARGS` as they come, for output that is larger than memory should hold.

    Raises GitError where git fails.
    """
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as said:
        asked.write(input)
        asked.seek(0)
        try:
            process = subprocess.Popen(
                ["git", f"--git-dir={git_dir}", *args],
                stdin=asked,
                stdout=subprocess.PIPE,
                stderr=said,
                env=plumbing_env(env),
            )
        except FileNotFoundError as error:
            raise no_git() from error
        with process:
            assert process.stdout
            try:
                yield process.stdout
            except BaseException:
                process.kill()
                raise
        if process.returncode != 0:
            said.seek(0)
            raise GitError(args, Done(process.returncode, b"", said.read(4000)))


def no_git() -> PatchqError:
    return PatchqError("git is not installed", "install git 2.39 or newer")


@lru_cache(maxsize=1)
def version() -> tuple[int, int]:
    """Major and minor of the git on PATH."""
    text = run(["version"]).out.decode("ascii", "replace")
    found = re.search(r"(\d+)\.(\d+)", text)
    if not found:
        raise PatchqError(f"cannot read git's version from {text.strip()!r}", "install git 2.39+")
    return int(found[1]), int(found[2])


def require_version() -> None:
    """Raises PatchqError where git is too old, with what it is needed for."""
    have = version()
    if have < NEEDED:
        raise PatchqError(
            f"git {have[0]}.{have[1]} is too old: patchq needs 2.39 or newer"
            " to merge and export patches reproducibly",
            "install a newer git",
        )


def init(path: Path) -> None:
    """An empty bare repository at `path`, in one step: another patchq may make it as well.

    Two `git init` in one folder fail at each other's files ("could not lock config file"), and a
    killed one leaves a HEAD without the rest.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
            made = Path(folder) / "store"
            run(["init", "--quiet", "--bare", "--object-format=sha1", str(made)])
            try:
                made.rename(path)
            except OSError:
                if not (path / "HEAD").is_file():
                    raise
    except OSError as error:
        raise PatchqError(
            f"cannot make the store {path}: {error.strerror}",
            "make room or set PATCHQ_CACHE to a folder that can be written",
        ) from error
