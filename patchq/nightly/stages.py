"""What a night does, as values: the commands of each stage, and what their ends mean.

Every command is one that a person would type, without the `patchq`. Nothing here runs anything.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchq.nightly.model import NightState, Stage, StageState
from patchq.nightly.settings import Settings
from patchq.nightly.step import Ended

Result = Mapping[str, Any]
"""The JSON object that a command gave; empty where it gave none."""

GO_ON: Mapping[str, frozenset[StageState]] = {
    # What upstream did not tell tonight may be known already: what is here is tried.
    "sync": frozenset({"done", "unreached"}),
    # The gate says what is missing, or too slow.
    "bench": frozenset({"done", "failed", "unreached"}),
}
_CANNOT_TELL = frozenset({"sync"})
"""Stages whose time limit says nothing about the runner."""
REPEAT = 5
"""Runs of each that a bisection builds: a fault may show in some of them only."""
_FULL = "no space left on device"
_BUSY = re.compile(r" is in use(?:[: ]|$)| runs on .* since .*, started by ")
_RANK = re.compile(r"^rank \d+ |did not serve within")


@dataclass(frozen=True)
class Command:
    """`args` of patchq, `--json` among them; `name`: of its files, NAME.json and NAME.log.

    `tokens`: whether it may have the tokens of the environment; `project`: whether it runs in the
    project itself, and not in the night's clone.
    """

    name: str
    args: tuple[str, ...]
    tokens: bool = False
    project: bool = False


@dataclass(frozen=True)
class Bench:
    """What the gate asks of bench and compare. `saved`: the last release's bench."""

    contexts: tuple[int, ...] = ()
    rounds: int | None = None
    saved: Path | None = None


def sync(settings: Settings, queue: str, report: Path) -> Command:
    args = ("--onto", settings.onto, "--commit", "--markdown", str(report))
    return Command("sync", ("sync", *args, "--queue", queue, "--json"), tokens=True)


def lock(queue: str, requirements: str | None = None) -> Command:
    """Write the runner lock; `requirements`: a target whose environment is locked anew first."""
    more = (requirements, "--requirements") if requirements else ()
    return Command("lock", ("lock", *more, "--queue", queue, "--json"))


def needs_requirements(locked: Result, target: str) -> bool:
    """Whether the lock says that the target's requirements are of other inputs."""
    notes = locked.get("notes")
    name = f"requirements.{target}.lock"
    return isinstance(notes, list) and any(name in str(note) for note in notes)


def build(settings: Settings, queue: str) -> Command:
    args = ("--target", settings.target, "--cluster", settings.cluster)
    return Command("build", ("build", *args, "--queue", queue, "--json"))


def deploy(settings: Settings) -> Command:
    return Command("deploy", ("cluster", "deploy", settings.cluster, "--json"))


def start(settings: Settings) -> Command:
    args = (settings.cluster, "--profile", settings.profile)
    return Command("start", ("cluster", "start", *args, "--json"))


def stop(cluster: str) -> Command:
    return Command("stop", ("cluster", "stop", cluster, "--json"))


def smoke(settings: Settings) -> Command:
    return Command("smoke", ("smoke", *_served(settings), "--json"))


def bench(settings: Settings, asked: Bench) -> Command:
    """Against the last release where its bench is known, else by itself."""
    if asked.saved is not None:
        return Command("compare", ("compare", str(asked.saved), *_served(settings), "--json"))
    sizes = [word for each in asked.contexts for word in ("--context", str(each))]
    rounds = ("--rounds", str(asked.rounds)) if asked.rounds else ()
    return Command("bench", ("bench", *_served(settings), *sizes, *rounds, "--json"))


def gate(report: Path) -> Command:
    return Command("gate", ("gate", "--html", str(report), "--json"))


def holds(lock: str) -> Command:
    """Whether the evidence of a runner that the project has already still passes."""
    return Command("holds", ("gate", lock[:16], "--json"), project=True)


def cut(key: str, queue: str) -> Command:
    return Command("cut", ("release", "cut", "--key", key, "--queue", queue, "--json"))


def publish(number: int) -> Command:
    return Command("publish", ("release", "publish", str(number), "--json"), tokens=True)


def bisect(settings: Settings, queue: str, good: str, bad: str, shows: str) -> Command:
    """Look for the culprit between two commits; `shows`: the command that fails by it."""
    ends = ("--between", good, bad, "--known", "--run", shows, "--repeat", str(REPEAT))
    where = (*_served(settings), "--target", settings.target, "--queue", queue)
    # A probe that could not be asked says nothing of the patches.
    unsaid = ("--skip-code", "6", "--skip-code", "125")
    return Command("bisect", ("bisect", *ends, *where, *unsaid, "--json"))


def _served(settings: Settings) -> tuple[str, ...]:
    return ("--cluster", settings.cluster, "--profile", settings.profile)


def plan(
    settings: Settings, queue: str, folder: Path, asked: Bench | None
) -> dict[str, tuple[Command, ...]]:
    """The commands of each stage, in order, as far as they are known before the night."""
    stages: dict[str, tuple[Command, ...]] = {
        "sync": (sync(settings, queue, folder / "sync.md"), lock(queue)),
        "build": (build(settings, queue),),
        "deploy": (deploy(settings), start(settings)),
        "smoke": (smoke(settings),),
        "bench": () if asked is None else (bench(settings, asked),),
        "gate": (gate(folder / "gate.html"),),
    }
    return stages | ({"release": (cut(settings.key or "", queue),)} if settings.publish else {})


# What an end means


def meaning(command: str, ended: Ended, value: Result, limit: float) -> tuple[StageState, str]:
    """What the end of a command says of its stage, and a sentence. `limit` in seconds."""
    if ended.late:
        return "late", f"{command} was not done after {limit / 60:.3g} minutes, and was ended"
    if ended.code == 0:
        return "done", _done(command, value)
    if ended.code < 0:
        return "failed", f"{command} was killed by {_signal(-ended.code)}"
    if value.get("schema") == "patchq.error/1":
        return _refused(command, ended.code, str(value.get("message") or "it said nothing"))
    if command == "start":
        failure = _table(value, "failure")
        says = str(failure.get("says") or f"it ended with {ended.code}")
        bad = bool(failure.get("lines")) or bool(_RANK.search(says))
        return ("failed" if bad else "unreached"), says
    states: dict[int, StageState] = {4: "asks", 6: "unreached"}
    return states.get(ended.code, "failed"), _bad(command, ended.code, value)


def _refused(command: str, code: int, message: str) -> tuple[StageState, str]:
    says = f"{command}: {message}"
    if code == 4:
        return "asks", says
    return ("unreached" if code == 6 or is_elsewhere(message) else "failed"), says


def is_elsewhere(message: str) -> bool:
    """Whether what it says is no fault of the runner's: a full disk, a cluster that is in use."""
    return _FULL in message.lower() or _BUSY.search(message) is not None


def _done(command: str, value: Result) -> str:
    if command == "sync":
        base, patches = _table(value, "base"), _tables(value, "patches")
        where, came = str(base.get("to")), str(base.get("from"))
        if not value.get("changed"):
            return f"{_patches(patches)} on {where}; nothing moved"
        dropped = sum(each.get("action") == "drop" for each in patches)
        return f"{_patches(patches)} from {came} to {where}, {dropped} dropped"
    if command == "smoke":
        probes = [each.get("state") for each in _tables(value, "probes")]
        return f"{probes.count('passed')} of {len(probes)} probes passed"
    if command == "compare":
        return f"beside the last release: {value.get('verdict')}"
    if command == "start":
        return f"{value.get('profile')} serves after {value.get('seconds')} s"
    said = {
        "lock": f"runner {str(value.get('digest'))[:16]}",
        "build": f"{Path(str(value.get('file'))).name}",
        "deploy": "it is on all nodes",
        "bench": "all was measured",
        "gate": "the gate is passed",
        "cut": f"release {value.get('number')} is cut",
        "publish": "the release is published",
    }
    return said.get(command, "done")


def _bad(command: str, code: int, value: Result) -> str:
    if command == "sync":
        asks = [str(each.get("name")) for each in _tables(value, "patches") if _asks(each)]
        if asks:
            many = f"{len(asks)} patches ask" if len(asks) > 1 else "a patch asks"
            return f"{many} for a decision: {', '.join(asks)[:500]}"
        bad = [each for each in _tables(_table(value, "proof"), "checks") if not each.get("ok")]
        if bad:
            return f"the proof failed: {bad[0].get('name')}: {bad[0].get('detail')}"[:1000]
        return "not all of upstream was reached; it is tried with what is known"
    if command == "smoke":
        probes = _tables(value, "probes")
        names = [str(each.get("name")) for each in probes if each.get("state") == "failed"]
        if names:
            return f"failed: {', '.join(names)}"
        names = [str(each.get("name")) for each in probes if each.get("state") == "not run"]
        return f"not run: {', '.join(names)}" if names else f"smoke ended with {code}"
    if command == "compare":
        return f"beside the last release: {value.get('verdict')}"
    if command == "gate":
        bad = [each for each in _tables(value, "findings") if not each.get("ok")]
        return "; ".join(f"{each.get('rule')}: {each.get('says')}" for each in bad[:3])[:1000]
    if command == "cut":
        bad = [each for each in _tables(value, "checks") if not each.get("ok")]
        return "; ".join(f"{each.get('name')}: {each.get('detail')}" for each in bad[:3])[:1000]
    return f"{command} ended with {code}"


def _patches(patches: Sequence[Result]) -> str:
    return "1 patch" if len(patches) == 1 else f"{len(patches)} patches"


def _asks(patch: Result) -> bool:
    return patch.get("action") == "ask"


def goes_on(stage: Stage) -> bool:
    """Whether the stages after it have a reason."""
    return stage.state in GO_ON.get(stage.name, {"done"})


def outcome(stages: Sequence[Stage], wanted: Iterable[str], *, unsure: bool = False) -> NightState:
    """How a night ended whose stages ended so. `wanted`: those that there had to be.

    `unsure`: something was not reached before the first stage.
    """
    states = {stage.name: stage.state for stage in stages}
    if "asks" in states.values():
        return "asks"
    if "failed" in states.values():
        return "red"
    if any(state == "late" and name not in _CANNOT_TELL for name, state in states.items()):
        return "red"
    whole = all(states.get(name) in ("done", "left out") for name in wanted)
    if unsure or not whole or states.get("gate") != "done":
        return "incomplete"
    return "green"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _table(value: Result, key: str) -> Result:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _tables(value: Result, key: str) -> list[Result]:
    found = value.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
