"""Run the steps of a native build on a node: what is done is not repeated, what fails is shown."""

from __future__ import annotations

import collections
import posixpath
import shlex
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from patchq.build.fatbin import Code, architectures
from patchq.build.native.source import note, noted
from patchq.build.native.steps import Step
from patchq.cluster.shell import Shell
from patchq.errors import PatchqError, ProofFailed
from patchq.paths import show
from patchq.progress import SILENT, Progress

LAST = 15
"""Lines of a failing command that are shown; the log has them all."""


@dataclass(frozen=True)
class Ran:
    """A step that is done: `again` whether it was run now. `codes` are the architectures in what
    it gave, where it gave a fat binary.
    """

    step: Step
    again: bool
    codes: tuple[Code, ...] = ()


def run(
    shell: Shell,
    steps: Iterable[Step],
    folder: str,
    logs: Path,
    *,
    offline: bool = False,
    progress: Progress = SILENT,
) -> tuple[Ran, ...]:
    """Run `steps` one after the other in `folder` of the node; logs go into the folder `logs`.

    A step whose key is written down there as done is left out. Raises PatchqError for a step that
    fails, with the last lines of its log, ProofFailed for a fat binary that lacks an architecture,
    Incomplete where the node is not reached.
    """
    done: list[Ran] = []
    for step in steps:
        state = posixpath.join(folder, "state", _file(step))
        if noted(shell, state) == step.key and _is_there(shell, step, folder):
            done.append(Ran(step, False, _codes(shell, step, folder)))
            continue
        if step.online and offline:
            raise PatchqError(
                f"the step {step.name!r} fetches, and --offline forbids it",
                "run it once without --offline: no step after it goes out",
            )
        progress.step(f"{step.name} on {shell.name}")
        _one(shell, step, folder, logs)
        codes = _codes(shell, step, folder)
        note(shell, state, step.key)
        done.append(Ran(step, True, codes))
    return tuple(done)


def _one(shell: Shell, step: Step, folder: str, logs: Path) -> None:
    if step.gives:
        made = posixpath.join(folder, posixpath.dirname(step.gives))
        shell.run(["mkdir", "-p", "--", made])
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{_file(step)}.log"
    command = shlex.join(step.command)
    last: collections.deque[bytes] = collections.deque(maxlen=LAST)
    with log.open("wb") as file:
        file.write(f"$ {command}\n".encode("utf-8", "surrogateescape"))
        tail = b""

        def take(data: bytes) -> None:
            nonlocal tail
            file.write(data)
            file.flush()
            *lines, tail = (tail + data).split(b"\n")
            last.extend(lines)

        code = shell.stream(step.command, take)
    if code != 0:
        lines = [show(line) for line in [*last, tail] if line.strip()]
        shown = "".join(f"\n    {line:.300}" for line in lines[-LAST:])
        raise PatchqError(
            f"{step.name!r} failed on {shell.name} with exit status {code}:"
            f"\n    $ {show(command):.500}{shown}",
            f"the whole log is {log}; what is done stays done, so mend it and build again",
        )


def _is_there(shell: Shell, step: Step, folder: str) -> bool:
    if not step.gives:
        return True
    return shell.run(["test", "-e", posixpath.join(folder, step.gives)]).code == 0


def _codes(shell: Shell, step: Step, folder: str) -> tuple[Code, ...]:
    """What is in the object that a step gave. Raises ProofFailed where it lacks an architecture."""
    if not step.archs or not step.gives.endswith(".o"):
        return ()
    with tempfile.TemporaryDirectory(prefix="patchq-") as name:
        local = Path(name) / posixpath.basename(step.gives)
        shell.fetch(posixpath.join(folder, step.gives), local)
        codes = architectures(local)
    require(step.gives, codes, step.archs)
    return codes


def require(what: str, codes: Sequence[Code], archs: Sequence[str]) -> None:
    """Raises ProofFailed where the fat binary of `what` lacks one of `archs` ("sm_121a")."""
    there = {each.arch for each in codes if each.kind == "elf"}
    missing = [each for each in archs if each not in there]
    if missing:
        held = ", ".join(sorted(there)) or "no GPU code"
        raise ProofFailed(
            f"{show(what)} should hold {', '.join(missing)}, and holds {held}",
            "see TORCH_CUDA_ARCH_LIST and nvcc's version on the node",
        )


def _file(step: Step) -> str:
    """The step's name as a file's name."""
    return step.name.replace("/", "+").replace(" ", "-")
