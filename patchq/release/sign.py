"""Signatures by `ssh-keygen -Y`: they hold offline, with the keys that people have.

The keys stand in `releases/allowed_signers` (ssh-keygen(1), ALLOWED SIGNERS). A key itself is never
read here: ssh-keygen or an agent has it.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from patchq.cluster.process import NOT_FOUND, Done, run_program
from patchq.errors import PatchqError
from patchq.paths import show

NAMESPACE = "patchq-release"
SIGNERS = "releases/allowed_signers"
PROGRAM = "ssh-keygen"
VARIABLE = "PATCHQ_SIGNING_KEY"
_LIMIT = 120.0
_PRINCIPAL = re.compile(r"[^\s\x00-\x20\x7f,*?!\"]{1,200}")


def key_of(root: Path, given: Path | None) -> str:
    """The file of the key to sign with: the one given, $PATCHQ_SIGNING_KEY, or git's own.

    Of a key that an agent holds its public file does. Raises PatchqError where there is none.
    """
    from patchq.gitstore.tags import setting

    literal = ""
    told = str(given) if given else os.environ.get(VARIABLE)
    if not told and setting(root, "gpg.format") == "ssh":
        told = setting(root, "user.signingkey")
        literal = told.removeprefix("key::") if told and not _is_path(told) else ""
    if not told:
        raise PatchqError(
            "there is no key to sign the release with",
            f"name its file with --key, in {VARIABLE}, or as git's user.signingkey"
            " (gpg.format ssh)",
        )
    if literal:
        return literal
    path = Path(told).expanduser()
    if not path.is_file():
        raise PatchqError(f"there is no key {path}", "name the file of an ssh key")
    return str(path)


def _is_path(told: str) -> bool:
    return not told.startswith(("key::", "ssh-", "ecdsa-", "sk-"))


def sign(path: Path, key: str) -> Path:
    """Sign the file `path`; the signature beside it, `path`.sig.

    `key`: a file, or a public key whose private half an agent holds. Raises PatchqError where
    ssh-keygen refuses.
    """
    made = path.with_name(f"{path.name}.sig")
    made.unlink(missing_ok=True)
    with _file_of(key) as file:
        command = [PROGRAM, "-Y", "sign", "-f", str(file), "-n", NAMESPACE, str(path)]
        done = _run(command, None)
    if done.code != 0 or not made.is_file():
        raise PatchqError(
            f"ssh-keygen does not sign with {show(str(file))}: {_why(done)}",
            "a key with a passphrase needs an agent (ssh-add); the agent must hold that key",
        )
    return made


def signer(data: bytes, signature: Path, signers: Path) -> tuple[str | None, str]:
    """Who of `signers` made `signature` over `data`; or None, and why it does not hold."""
    if not signers.is_file():
        return None, f"there is no {signers.name}, so nobody's key is known"
    base = ["-s", str(signature), "-f", str(signers)]
    found = _run([PROGRAM, "-Y", "find-principals", *base], None)
    names = found.stdout.decode("utf-8", "replace").split("\n")[0].split(",")
    if found.code != 0 or not names[0]:
        return None, _refusal(_why(found), signers)
    why = ""
    for name in names:
        if not _PRINCIPAL.fullmatch(name):
            why = f"{show(name)!r} is no name of a signer"
            continue
        done = _run([PROGRAM, "-Y", "verify", *base, "-I", name, "-n", NAMESPACE], data)
        if done.code == 0:
            return name, ""
        why = _why(done)
    return None, _refusal(why, signers)


def _refusal(why: str, signers: Path) -> str:
    if "expired" in why:
        return f"it is by a key that {signers.name} has as expired"
    if "not yet valid" in why:
        return f"it is by a key that is not valid yet ({signers.name})"
    if "not permitted" in why:
        return f"it is by a key that {signers.name} does not have for releases"
    if "No principal" in why:
        return f"it is by a key that {signers.name} does not name"
    if "namespace" in why:
        return "it was not made for a release"
    if "incorrect signature" in why:
        return "it is not over these sums"
    return f"it is none that ssh-keygen reads: {show(why)}"


@contextmanager
def _file_of(key: str) -> Iterator[Path]:
    if _is_path(key):
        yield Path(key)
        return
    with tempfile.TemporaryDirectory(prefix="patchq-") as folder:
        path = Path(folder) / "key.pub"
        path.write_text(key + "\n", encoding="utf-8")
        yield path


def _run(command: list[str], data: bytes | None) -> Done:
    done = run_program(command, "ssh-keygen", data, _LIMIT)
    if done.code == NOT_FOUND:
        raise PatchqError(
            "ssh-keygen is not installed", "install it (Debian, Ubuntu: openssh-client)"
        )
    return done


def _why(done: Done) -> str:
    lines = (done.stderr + done.stdout).decode("utf-8", "replace").strip().splitlines()
    return lines[0] if lines else f"exit status {done.code}"
