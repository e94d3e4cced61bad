"""A bisection on disk: what was asked, the moves, every trial. Written whole after each run.

    DIR/session.json    `patchq.bisect-session/1`
    DIR/made/STEP/      a subset, as a project; with its build
    DIR/logs/           what was run for it, and what it said
    DIR/STEP.json       a result for `--take`: `patchq.bisect-step/1`

A step's name is made of its moves, so that every machine has the same for the same subset.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from patchq.bisect.chances import Question
from patchq.bisect.model import Move, Tried
from patchq.errors import PatchqError
from patchq.gitstore.files import write
from patchq.paths import show

SCHEMA = "patchq.bisect-session/1"
STEP = "patchq.bisect-step/1"
_FILE = "session.json"
_NAME = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True)
class Asked:
    """What a bisection is about. `a` and `b` are commits of the project; minutes bound one run."""

    run: str
    a: str
    b: str
    queue: str | None = None
    repeat: int = 1
    sure: float = 0.99
    false_alarms: float = 0.0
    skip_codes: tuple[int, ...] = (125,)
    minutes: float = 60.0
    hang_is_bad: bool = False
    known: bool = False
    minimal: bool = False
    source: bool = False
    cluster: str | None = None
    profile: str | None = None
    target: str | None = None

    @property
    def key(self) -> str:
        return _digest(json.dumps(asdict(self), sort_keys=True))


@dataclass(frozen=True)
class Trial:
    """One subset: what its runs showed, and what was made for it.

    late: runs that did not end in time, and say nothing. built: a runner was made of it.
    """

    moves: frozenset[str]
    bad: int = 0
    good: int = 0
    late: int = 0
    skipped: str | None = None
    built: bool = False
    tree: str | None = None
    lock: str | None = None

    @property
    def step(self) -> str:
        return name_of(self.moves)

    @property
    def seen(self) -> Tried:
        return Tried(self.moves, self.bad, self.good, self.skipped)


@dataclass(frozen=True)
class Session:
    """All that is known. labels: what people call A and B. issued: the steps that were named last,
    for other machines. rounds: how often something was tried, all at the same time being one."""

    asked: Asked
    moves: tuple[Move, ...]
    trials: tuple[Trial, ...] = ()
    labels: tuple[str, str] = ("A", "B")
    rounds: int = 0
    issued: tuple[frozenset[str], ...] = ()

    @property
    def question(self) -> Question:
        asked = self.asked
        return Question(
            self.moves,
            repeat=asked.repeat,
            sure=asked.sure,
            false_alarms=asked.false_alarms,
        )

    @property
    def tried(self) -> tuple[Tried, ...]:
        return tuple(each.seen for each in self.trials)

    def trial(self, moves: frozenset[str]) -> Trial:
        return next((each for each in self.trials if each.moves == moves), Trial(moves))

    def put(self, trial: Trial) -> Session:
        """With this trial in the place of the one of the same subset."""
        if trial.moves in (known := [each.moves for each in self.trials]):
            at = known.index(trial.moves)
            return replace(self, trials=(*self.trials[:at], trial, *self.trials[at + 1 :]))
        return replace(self, trials=(*self.trials, trial))

    def subset(self, step: str) -> frozenset[str]:
        """The moves of a step that was named for others, or tried. Raises PatchqError."""
        for moves in (*self.issued, *(each.moves for each in self.trials)):
            if name_of(moves) == step:
                return moves
        raise PatchqError(f"there is no step {show(step)!r}", "`--next` names those there are")


def name_of(moves: frozenset[str]) -> str:
    return _digest("\n".join(sorted(moves)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def load(folder: Path) -> Session | None:
    """None where there is none. Raises PatchqError for one that cannot be read."""
    path = folder / _FILE
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise _damaged(path, f"it is no {SCHEMA}")
    try:
        asked = dict(value["asked"])
        asked["skip_codes"] = tuple(asked["skip_codes"])
        a, b = value["labels"]
        return Session(
            Asked(**asked),
            tuple(Move(**{**each, "needs": frozenset(each["needs"])}) for each in value["moves"]),
            tuple(_trial(each) for each in value["trials"]),
            (str(a), str(b)),
            int(value["rounds"]),
            tuple(frozenset(each) for each in value["issued"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error


def save(folder: Path, session: Session) -> None:
    """At once, whole or not at all."""
    value = {
        "schema": SCHEMA,
        "asked": asdict(session.asked),
        "labels": list(session.labels),
        "rounds": session.rounds,
        "issued": [sorted(each) for each in session.issued],
        "moves": [{**asdict(each), "needs": sorted(each.needs)} for each in session.moves],
        "trials": [_plain(each) for each in session.trials],
    }
    write(folder / _FILE, _dumped(value))


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Be the only one that writes this bisection. Raises PatchqError where another one does."""
    import filelock

    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / "lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise PatchqError(
            f"another patchq is at work on the bisection in {folder}",
            "wait until it is done; `--next` and `--try` spread one over several machines",
        ) from error
    try:
        yield
    finally:
        lock.release()


@dataclass(frozen=True)
class Result:
    """What `--try` brings for `--take`: of which bisection, before and after."""

    key: str
    before: Trial
    after: Trial


def give(path: Path, result: Result) -> None:
    value = {
        "schema": STEP,
        "bisection": result.key,
        "step": result.after.step,
        "before": _plain(result.before),
        "after": _plain(result.after),
    }
    write(path, _dumped(value))


def take(path: Path, session: Session) -> Result:
    """A result for this session; what it says is checked, for it came from elsewhere."""
    try:
        value = json.loads(path.read_bytes())
        if value["schema"] != STEP:
            raise ValueError(f"it is no {STEP}")
        before, after = _trial(value["before"]), _trial(value["after"])
        known = {move.name for move in session.moves}
        if before.moves != after.moves or not after.moves <= known:
            raise ValueError("it is of other moves")
        counts = [(before.bad, after.bad), (before.good, after.good), (before.late, after.late)]
        if any(not 0 <= was <= now for was, now in counts):
            raise ValueError("it has fewer runs than it began with")
    except OSError as error:
        raise PatchqError(
            f"{path} cannot be read: {error.strerror}", "name what `--try` wrote"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise PatchqError(
            f"{path} is no result of a step: {show(str(error))}", "name what `--try` wrote"
        ) from error
    if value.get("bisection") != session.asked.key:
        raise PatchqError(
            f"{path} is of another bisection", "try the steps that this one's `--next` names"
        )
    return Result(session.asked.key, before, after)


def one(folder: Path) -> Path:
    """The folder of the one bisection below `folder`. Raises PatchqError where it is not one."""
    found = sorted(each.parent for each in folder.glob(f"*/{_FILE}"))
    if len(found) == 1:
        return found[0]
    raise PatchqError(
        "which bisection?" if found else "there is no bisection here",
        f"name it: {', '.join(f'--state {each}' for each in found)}"
        if found
        else "give --run and --between",
    )


def _plain(trial: Trial) -> dict[str, Any]:
    found = {each.name: getattr(trial, each.name) for each in fields(trial)}
    return {**found, "moves": sorted(trial.moves)}


def _trial(value: dict[str, Any]) -> Trial:
    for key, kinds in _KINDS.items():
        if not isinstance(value[key], kinds) or type(value[key]) not in kinds:
            raise ValueError(f"{key} is {value[key]!r}")
    names: Sequence[str] = value["moves"]
    if not all(isinstance(name, str) for name in names):
        raise ValueError("moves are not names")
    return Trial(**{**{key: value[key] for key in _KINDS}, "moves": frozenset(names)})


_NONE = type(None)
_KINDS: dict[str, tuple[type, ...]] = {
    "moves": (list,),
    "bad": (int,),
    "good": (int,),
    "late": (int,),
    "skipped": (str, _NONE),
    "built": (bool,),
    "tree": (str, _NONE),
    "lock": (str, _NONE),
}


def _dumped(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=True) + "\n").encode("ascii")


def _damaged(path: Path, why: str) -> PatchqError:
    return PatchqError(
        f"{path} is damaged: {show(why)}", "remove its folder; the bisection then begins anew"
    )
