"""A branch of a remote: where it stands, its commits, and a push that overwrites nobody's work.

The user's own settings for remotes hold (keys, helpers, `insteadOf`); what would make git do more
than was asked does not (hooks, tags that follow, submodules). A token goes to git by its
environment, is sent to the host that it is for and to no other, and stands in no message.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from patchq.errors import Incomplete, PatchqError
from patchq.gitstore.git import Done, run
from patchq.gitstore.secret import Secret as Secret
from patchq.gitstore.secret import clean
from patchq.gitstore.tags import setting
from patchq.paths import require_inside, show

NOBODY = ("patchq", "patchq@localhost")
"""Who commits where git knows no name."""

_SLOW = ("-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=60")
_ALONE = ("--no-follow-tags", "--no-signed")
_ANY = tuple(range(256))
_COMMIT = re.compile(r"[0-9a-f]{40}")
_DENIED = re.compile(
    r"error: 40[13]|Authentication failed|could not read (?:Username|Password)|Permission denied"
)


class Moved(Incomplete):
    """The branch is not where it was expected: somebody else moved it. `tip` is where it is now."""

    def __init__(self, branch: str, tip: str | None) -> None:
        now = f"is at {tip[:12]} now" if tip else "is gone"
        super().__init__(
            f"the branch {show(branch)} {now}: somebody else moved it",
            "nothing was pushed; look at it, and run it again",
        )
        self.tip = tip


def tip(root: Path, remote: str, branch: str, *, secret: Secret | None = None) -> str | None:
    """The commit of a remote's branch (`remote`: its name or address); None where there is none.

    Raises Incomplete where the remote is not reached or refuses.
    """
    ref, url, env = _asked(root, remote, branch, secret, push=False)
    args = [*_SLOW, "ls-remote", "--quiet", "--heads", "--end-of-options", remote, ref]
    done = run(args, cwd=root, network=True, env=env, ok=_ANY)
    if done.code != 0:
        raise _failed("read", branch, url, done, secret)
    # A pattern finds `refs/heads/x/refs/heads/x`, too.
    lines = (line.split("\t") for line in done.out.decode("utf-8", "replace").splitlines())
    return next((oid for oid, name in lines if name == ref), None)


def fetch_branch(
    root: Path, remote: str, branch: str, *, secret: Secret | None = None
) -> str | None:
    """Brings a remote's branch, and gives its commit; None where there is none.

    No branch of the repository moves: one hidden ref below refs/patchq/ keeps what came. Raises
    Incomplete where the remote is not reached or refuses.
    """
    ref, url, env = _asked(root, remote, branch, secret, push=False)
    which = sha256("\0".join((remote, branch)).encode("utf-8", "surrogateescape"))
    kept = f"refs/patchq/fetched/{which.hexdigest()[:16]}"
    quiet = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-prune")
    args = ["fetch", *quiet, "--refmap=", "--end-of-options", remote]
    done = run([*_SLOW, *args, f"+{ref}:{kept}"], cwd=root, network=True, env=env, ok=_ANY)
    if done.code == 0:
        return run(["rev-parse", "--verify", kept], cwd=root).out.decode().strip()
    if b"couldn't find remote ref" in done.err:
        return None
    raise _failed("fetch", branch, url, done, secret)


def push(
    root: Path,
    remote: str,
    commit: str,
    branch: str,
    *,
    expected: str | None,
    secret: Secret | None = None,
) -> None:
    """Let a remote's branch be `commit`, where it is `expected` now (None: not there).

    Done where it is `commit` already. Raises Moved where it is another, and Incomplete where the
    remote is not reached or refuses; then the branch is where it was.
    """
    for each in (commit, *([] if expected is None else [expected])):
        if not _COMMIT.fullmatch(each):
            raise PatchqError(f"{show(each)[:100]!r} is no id of a commit", "give all 40 digits")
    ref, url, env = _asked(root, remote, branch, secret, push=True)
    lease = f"--force-with-lease={ref}:{expected or ''}"
    args = [*_SLOW, "push", "--porcelain", *_ALONE, lease, "--end-of-options", remote]
    done = run([*args, f"{commit}:{ref}"], cwd=root, network=True, env=env, ok=_ANY)
    refused = _refused(done.out, ref)
    if done.code == 0 and refused is None:
        return
    # The line may have been lost after it was done, and who was first is told in many words.
    try:
        now = tip(root, remote, branch, secret=secret)
    except Incomplete:
        raise _failed("push", branch, url, done, secret, refused) from None
    if now == commit:
        return
    if now != expected:
        raise Moved(branch, now)
    raise _failed("push", branch, url, done, secret, refused)


def commit_files(
    root: Path,
    parent: str | None,
    files: Mapping[str, bytes | None],
    message: str,
    when: datetime,
) -> str:
    """A commit on `parent` (None: on nothing) in which `files`, by path, are as given (None: gone).

    All other files stay, no ref and no work tree changes, and the same asked twice is the same
    commit. Where nothing would change it is `parent` itself. `when` has a time zone. Raises
    PatchqError for a path that is outside or git's own.
    """
    names = {os.fsencode(path): data for path, data in sorted(files.items())}
    for name in names:
        require_inside(name, "the commit")
    with tempfile.TemporaryDirectory(prefix="patchq-") as folder:
        env = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        if parent:
            run(["read-tree", "--end-of-options", parent], cwd=root, env=env)
        programs = _programs(root, parent, list(names)) if parent else set()
        lines = []
        for name, data in names.items():
            mode = b"100755" if name in programs else b"100644"
            if data is None:
                mode, blob = b"0", b"0" * 40
            else:
                blob = run(["hash-object", "-w", "--stdin"], cwd=root, input=data).out.strip()
            lines.append(b"%s %s\t%s\0" % (mode, blob, name))
        added = ["update-index", "-z", "--index-info"]
        run(added, cwd=root, env=env, input=b"".join(lines))
        tree = run(["write-tree"], cwd=root, env=env).out.decode().strip()
    if parent:
        args = ["rev-parse", "--verify", "--end-of-options", f"{parent}^{{tree}}"]
        if run(args, cwd=root).out.decode().strip() == tree:
            return parent
    utf8 = ("-c", "i18n.commitEncoding=UTF-8")
    args = [*utf8, "commit-tree", *(["-p", parent] if parent else []), tree]
    text = message.rstrip("\n").encode("utf-8", "replace") + b"\n"
    return run(args, cwd=root, input=text, env=_identity(root, when)).out.decode().strip()


def _programs(root: Path, commit: str, names: list[bytes]) -> set[bytes]:
    """Those of the files that are programs in the commit."""
    args = ["ls-tree", "-z", "--full-tree", commit, "--", *map(os.fsdecode, names)]
    found = (line.split(b"\t", 1) for line in run(args, cwd=root).out.split(b"\0") if line)
    return {name for info, name in found if info.startswith(b"100755 ")}


def _identity(root: Path, when: datetime) -> dict[str, str]:
    """The user's own name, or nobody's; the time is the one that was given."""
    env = {}
    for role in ("AUTHOR", "COMMITTER"):
        for part, fallback in zip(("NAME", "EMAIL"), NOBODY, strict=True):
            key = f"GIT_{role}_{part}"
            env[key] = (
                os.environ.get(key)
                or setting(root, f"{role.lower()}.{part.lower()}")
                or setting(root, f"user.{part.lower()}")
                or fallback
            )
        env[f"GIT_{role}_DATE"] = f"{int(when.astimezone(UTC).timestamp())} +0000"
    return env


def _asked(
    root: Path, remote: str, branch: str, secret: Secret | None, *, push: bool
) -> tuple[str, str, dict[str, str]]:
    """The ref, the address that is asked, without credentials, and what git is told of both."""
    ref = f"refs/heads/{branch}"
    checked = run(["check-ref-format", ref], ok=(0, 1, 128, 129)) if "\0" not in branch else None
    if checked is None or checked.code != 0 or branch.startswith("-"):
        raise PatchqError(f"{show(branch)[:100]!r} is no name of a branch", "give another name")
    if not remote or remote.startswith("-") or "\0" in remote:
        raise PatchqError(f"{show(remote)[:100]!r} is no remote", "give its name or its address")
    urls = _urls(root, remote, push=push)
    env = secret.environment(urls) if secret else {}
    return ref, clean(urls[0] if urls else remote, secret), env


def _urls(root: Path, remote: str, *, push: bool) -> list[str]:
    """The addresses that git will ask, rewritten by the user's settings."""
    args = ["remote", "get-url", *(["--push", "--all"] if push else []), "--end-of-options", remote]
    done = run(args, cwd=root, network=True, ok=_ANY)
    if done.code != 0:
        args = ["ls-remote", "--get-url", "--end-of-options", remote]
        done = run(args, cwd=root, network=True, ok=_ANY)
    return done.out.decode("utf-8", "surrogateescape").splitlines()


def _refused(out: bytes, ref: str) -> str | None:
    """Why the remote, or git before it, did not take the ref; None where nothing says so."""
    for line in out.decode("utf-8", "replace").splitlines():
        flag, _, rest = line.partition("\t")
        names, _, summary = rest.partition("\t")
        if flag == "!" and names.endswith(f":{ref}"):
            return summary
    return None


def _failed(
    what: str,
    branch: str,
    url: str,
    done: Done,
    secret: Secret | None,
    refused: str | None = None,
) -> Incomplete:
    """The error in git's own words, and what to do."""
    said = done.err.decode("utf-8", "replace")
    words = f"{refused}; {_words(said, secret)}" if refused else _words(said, secret)
    because = f": {show(words)[:400]}" if words else f" (status {done.code})"
    if _DENIED.search(said):
        hint = (
            f"the token has to be good for {secret.host}, with the permission `contents: write`"
            if secret and secret.may_go_to(url)
            else "give git a key or a token for it; the permission `contents: write` is needed"
        )
    elif refused:
        hint = "its rules or hooks do not let this push in; change them, or the branch"
    elif secret and re.search(r"error: 30\d|redirect", said):
        hint = "it has moved: correct the remote's address"
    elif "not found" in said or "does not exist" in said:
        hint = "check the remote's address, and that the token sees it"
    else:
        hint = "check the remote's address and the network, and run it again"
    return Incomplete(f"cannot {what} the branch {show(branch)} of {show(url)}{because}", hint)


def _words(said: str, secret: Secret | None) -> str:
    """What git and the remote said, in a line, without what repeats itself."""
    lines: list[str] = []
    for line in clean(said, secret).splitlines():
        plain = re.sub(r"^(?:remote|fatal|error): ", "", line).strip()
        if plain and not plain.startswith(("hint:", "failed to push some refs", "remote:")):
            lines.append(plain)
    return "; ".join(lines[:6])
