"""What ssh and rsync say when they fail, in two sentences of ours."""

from __future__ import annotations

from patchq.cluster.process import NOT_FOUND, Done
from patchq.errors import Incomplete
from patchq.paths import show


class Unreachable(Incomplete):
    """A node was not reached, or is no longer."""


# In this order: a changed key is followed by the words of an unknown one.
_CHANGED_KEY = (
    "compare the key with the machine's own (it was set up anew, or another answers in its place),"
    " then remove the old one with `ssh-keygen -R` and connect once by hand"
)
_NO_ENTRY = (
    "load the key into ssh-agent or name it in ssh's configuration, until"
    " `ssh -o BatchMode=yes {name} true` succeeds"
)
_KNOWN = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "{name} answers with another host key than the known one",
        _CHANGED_KEY,
    ),
    (
        "Host key verification failed",
        "{name} has a host key that is not known here",
        "connect once by hand (`ssh {name}`), compare the key with the machine's own, accept it",
    ),
    ("Permission denied", "{name} does not let us in: {last}", _NO_ENTRY),
    ("Too many authentication failures", "{name} does not let us in: {last}", _NO_ENTRY),
    (
        "Could not resolve hostname",
        "{name} is a name that nobody knows: {last}",
        "correct `ssh` in the cluster's file, or give the name an address in ssh's configuration",
    ),
    (
        "onfiguration option",
        "ssh's configuration for {name} is wrong: {last}",
        "correct the file that it names",
    ),
)


def refused(name: str, said: str, *, ended: bool) -> Unreachable:
    """Why no connection came to stand: `said` is ssh's stderr; not `ended`, it still waits."""
    last = _last(said)
    for sign, message, hint in _KNOWN:
        if sign in said:
            return Unreachable(message.format(name=name, last=last), hint.format(name=name))
    if not ended:
        return Unreachable(
            f"{name} was reached, but lets nobody in" + (f": {last}" if last else ""),
            f"see whether `ssh {name} true` ends, and what its login files do",
        )
    return Unreachable(
        f"{name} is not reached" + (f": {last}" if last else ""),
        "see that it is switched on, on this network, and runs an ssh server",
    )


def lost(name: str, what: str) -> Unreachable:
    """The connection broke while the program `what` ran."""
    return Unreachable(
        f"the connection to {name} broke while `{show(what)[:120]}` ran",
        "see whether the machine and its network are up, then run it again",
    )


def uncopied(name: str, path: str, done: Done) -> Incomplete:
    """Why a file did not come to `name`, or from it."""
    said = done.stderr.decode("utf-8", "replace")
    if done.code == NOT_FOUND or "rsync: command not found" in said or "rsync: not found" in said:
        return Incomplete(
            f"rsync is missing here or on {name}",
            "install it on both (Debian, Ubuntu: apt-get install rsync)",
        )
    if "No space left on device" in said:
        return Incomplete(
            f"{show(path)} does not fit on the disk: {name} or this machine has no space left",
            "make room, then run it again: it goes on where it was",
        )
    lines = [line for line in said.splitlines() if line and not line.startswith("rsync error")]
    why = show(lines[0]) if lines else f"rsync ended with {done.code}"
    return Incomplete(f"{show(path)} was not copied with {name}: {why}", "mend that, run it again")


def _last(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return show(lines[-1].removeprefix("ssh: "))[:200] if lines else ""
