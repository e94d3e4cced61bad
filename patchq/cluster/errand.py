"""Run a function of `patchq.cluster.there` on a node: its source goes along, its answer comes back.

Nothing of patchq is installed there: python3 (3.8 or newer) makes the modules from their text.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from patchq.cluster import there
from patchq.cluster.config import Node
from patchq.cluster.process import Done
from patchq.cluster.shell import Shell
from patchq.errors import Incomplete, PatchqError
from patchq.paths import show

LIMIT = 120.0
"""Seconds in which a node answers."""
MARK = "patchq-answer:"
_MODULES = ("procs", "net", "logs", "lock", "files", "ranks", "weights", "removal")
"""In the order in which they import each other."""
_BOOT = """
import json, os, signal, sys, types
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what is half made is removed then
for package in ("patchq", "patchq.cluster", "patchq.cluster.there"):
    sys.modules[package] = types.ModuleType(package)
    sys.modules[package].__path__ = []
for name, source in MODULES:
    made = types.ModuleType("patchq.cluster.there." + name)
    sys.modules[made.__name__] = made
    setattr(sys.modules["patchq.cluster.there"], name, made)
    exec(compile(source, name + ".py", "exec"), made.__dict__)
module, function = sys.argv[1].split(".")
asked = json.loads(sys.argv[2])
asked["folder"] = os.path.join(os.path.expanduser("~"), asked["folder"])
try:
    said = {"said": getattr(sys.modules["patchq.cluster.there." + module], function)(asked)}
except OSError as error:
    said = {"errno": error.errno, "why": error.strerror or str(error), "file": error.filename}
print(sys.argv[3] + json.dumps(said), flush=True)
"""


@cache
def _program() -> str:
    folder = Path(there.__file__).parent
    sources = [(name, (folder / f"{name}.py").read_text(encoding="utf-8")) for name in _MODULES]
    return f"MODULES = {sources!r}\n{_BOOT}"


def command(node: Node, function: str, asked: dict[str, Any]) -> list[str]:
    """A command line that runs it: for what is streamed or held. `function`: MODULE.FUNCTION."""
    return ["python3", "-c", _program(), function, _question(node, asked), MARK]


def _question(node: Node, asked: dict[str, Any]) -> str:
    return json.dumps({"folder": node.folder, **asked})


def run(
    shell: Shell, node: Node, function: str, asked: dict[str, Any], timeout: float = LIMIT
) -> Any:
    """What the function answers to `asked` and the node's folder.

    Raises Incomplete where the node is not reached, has no python3, has no space left, or answers
    something else; PatchqError where the system refuses something there.
    """
    done = shell.run(
        ["python3", "-", function, _question(node, asked), MARK],
        input=_program().encode(),
        timeout=timeout,
    )
    said = marked(done.stdout)
    if said is None:
        raise unanswered(node, done)
    if "errno" in said:
        raise refused(node, said)
    return said["said"]


def stream(
    shell: Shell,
    node: Node,
    function: str,
    asked: dict[str, Any],
    sink: Callable[[bytes], None],
) -> tuple[Any, str]:
    """The same for long work, which ends with us: its answer, and all that it wrote.

    What it writes comes to `sink` as well. The answer is None where it ended without one.
    """
    said: list[bytes] = []

    def hear(chunk: bytes) -> None:
        said.append(chunk)
        sink(chunk)

    shell.stream(command(node, function, asked), hear)
    words = b"".join(said)
    found = marked(words)
    if found is not None and "errno" in found:
        raise refused(node, found)
    return (found or {}).get("said"), words.decode("utf-8", "replace")


def marked(output: bytes) -> dict[str, Any] | None:
    """The answer among what login files may have written before it."""
    lines = [line for line in output.decode("utf-8", "replace").splitlines() if MARK in line]
    try:
        found = json.loads(lines[-1].partition(MARK)[2])
    except (LookupError, RecursionError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def unanswered(node: Node, done: Done) -> Incomplete:
    """A node that answers something else, or has no python3."""
    last_words = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    why = show(last_words[0])[:200] if last_words else f"it ended with {done.code}"
    return Incomplete(
        f"{node.name} could not be asked: {why}",
        f"see that `ssh {node.ssh or 'HOST'} python3 --version` gives 3.8 or newer",
    )


def refused(node: Node, said: dict[str, Any]) -> PatchqError:
    """What the system of the node said no to."""
    if said["errno"] in (errno.ENOSPC, errno.EDQUOT):
        return no_space(node, str(said["file"] or node.folder))
    where = f"{show(str(said['file']))}: " if said["file"] else ""
    return PatchqError(
        f"{node.name} refuses: {where}{show(str(said['why']))}",
        f"see to it there, or give `folder` of {node.name} another place",
    )


def no_space(node: Node, path: str) -> Incomplete:
    return Incomplete(
        f"{node.name} has no space left for {show(path)}",
        "make room there, then run it again; nothing was switched",
    )
