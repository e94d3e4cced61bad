"""A project with a runner that was built, and evidence of it as the commands write it."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from patchq.build import lock as locks
from patchq.build.lock import RunnerLock
from patchq.config import Project
from patchq.release.manifest import Asset, Base, Figure, Manifest, TargetIs, write
from patchq.render import bench as shown
from patchq.render.smoke import as_json
from patchq.smoke import evidence, kept
from patchq.smoke.bench import Bench, Plan, Side, Visit
from patchq.smoke.catalog import PROBES
from patchq.smoke.compare import compare
from patchq.smoke.evidence import Kind
from patchq.smoke.identity import Identity, NodeIs
from patchq.smoke.load import Cell, Taken
from patchq.smoke.model import About
from patchq.smoke.report import Outcome, Report, State

NOW = datetime(2026, 11, 30, 21, 0, tzinfo=UTC)
CLUSTER = """
target = "cpu"
port = 8000
master_port = 29555
[[node]]
name = "ns-a"
rank = 0
address = "10.77.0.1"
device = "cable"
[[node]]
name = "ns-b"
rank = 1
address = "10.77.0.2"
device = "cable"
"""
PROFILE = """
model = "m"
draft = "d"
template = "t"
served_name = "tiny"
[speculation]
method = "ngram"
num_speculative_tokens = 4
"""
RULES = """
cluster = "pair"
profile = "p"
days = 14
[smoke]
left_out = ["image"]
[bench]
contexts = [1024, 8192]
rounds = 3
acceptance = [0.15, 0.98]
[compare]
first = true
"""
WHEEL = "vllm-0.32.0+patchq.0.g0-py3-none-any.whl"
TEMPLATE = hashlib.sha256(b"template").hexdigest()
Speed = Callable[[Cell, int], float]


@dataclass(frozen=True)
class Runner:
    """The project at `root`, whose present lock is `lock`."""

    root: Path
    lock: RunnerLock
    wheel_sha256: str

    @property
    def project(self) -> Project:
        return Project(self.root, self.root / ".git")

    @property
    def identity(self) -> Identity:
        return Identity(
            lock=self.lock.digest,
            tree=self.lock.get("tree") or "",
            profile="p",
            profile_sha256=_sha256(PROFILE.encode()),
            model=_sha256(b"model"),
            draft=_sha256(b"draft"),
            template=TEMPLATE,
            artifacts=((WHEEL, self.wheel_sha256),),
            cluster="pair",
            nodes=tuple(NodeIs(f"ns-{x}", n, "x86_64", None, None) for n, x in enumerate("ab")),
        )

    @property
    def folder(self) -> Path:
        return evidence.folder(self.root, self.lock.digest)

    def keep(
        self,
        kind: Kind,
        value: Mapping[str, Any],
        when: datetime = NOW,
        **changed: Any,
    ) -> Path:
        """As the command keeps it; `changed`: what it is bound to in another way."""
        bound = evidence.bound(replace(self.identity, **changed), value, when)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{kind}.json"
        path.write_text(json.dumps(bound), encoding="utf-8")
        return path

    def keep_all(self) -> None:
        self.keep("smoke", smoke(self))
        self.keep("bench", kept.as_json(bench(self)))

    def rules(self, text: str) -> None:
        (self.root / "ci" / "gate.toml").write_text(text, encoding="utf-8")

    def release(self, number: int, facts: Mapping[str, str], **changed: Any) -> RunnerLock:
        """A release of another runner, or (without other facts) of this one."""
        lock = locks.make({**dict(self.lock.facts), **facts})
        wheel = Asset(WHEEL, 5, self.wheel_sha256)
        needs = Asset("requirements.cpu.lock", 1, _sha256(b"r"))
        manifest = Manifest(
            number=number,
            date="2026-11-01T00:00:00Z",
            queue="vllm",
            base=Base("0.32.0", "a" * 40),
            tree=lock.get("tree") or "",
            lock=lock.digest,
            patches=(),
            assets=(wheel, needs),
            targets=(TargetIs("cpu", needs.name, needs.sha256, wheels=(WHEEL,)),),
            models=(),
            facts=dict(lock.facts),
            bench=(Figure("prose", 1024, 1, False, decode=30.0, ttft=0.5, wall=4.0),),
        )
        path = self.root / "releases" / f"{number}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(write(replace(manifest, **changed)))
        return lock


def runner(root: Path) -> Runner:
    """A project with a lock, a build of it, a cluster, a profile and rules; no evidence yet."""
    subprocess.run(["git", "init", "--quiet", root], check=True)
    for name, text in (
        ("ci/clusters/pair.toml", CLUSTER),
        ("ci/profiles/p.toml", PROFILE),
        ("ci/gate.toml", RULES),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    lock = locks.make(
        {
            "tree": "b" * 40,
            "base/release": "0.32.0",
            "profile/p": _sha256(PROFILE.encode()),
            "template/t/sha256": TEMPLATE,
        }
    )
    (root / "upstream").mkdir()
    (root / "upstream" / "runner.lock").write_bytes(lock.text)
    return Runner(root, lock, build(root, lock))


def build(root: Path, lock: RunnerLock, wheel: bytes = b"wheel") -> str:
    """A build of `lock`; gives the sha256 of its wheel."""
    folder = root / "build" / "cpu"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / WHEEL).write_bytes(wheel)
    record = {
        "target": "cpu",
        "runner": {
            "series": "vllm",
            "release": None,
            "base": {"release": "0.32.0", "tree": "a" * 40},
            "tree": lock.get("tree"),
        },
        "lock": lock.digest,
        "requirements": None,
        "outputs": [{"name": WHEEL, "sha256": _sha256(wheel), "size": len(wheel)}],
    }
    (folder / "build.json").write_text(json.dumps(record), encoding="utf-8")
    return _sha256(wheel)


def about(of: Runner, **changed: Any) -> About:
    version = {"version": "0.32.0", "patchq": {"tree": of.lock.get("tree")}}
    return replace(About("http://10.77.0.1:8000", "tiny", 16384, version), **changed)


def smoke(of: Runner, states: Mapping[str, tuple[State, str]] | None = None) -> dict[str, Any]:
    """A run of all probes, passed but for `states`."""
    outcomes = []
    for probe in PROBES:
        state, says = (states or {}).get(probe.name, ("passed", "as it should be"))
        outcomes.append(Outcome(probe, state, says, 0.5, {}, ()))
    return as_json(Report(about(of), "p", 7, tuple(outcomes), runner=of.identity))


def steady(cell: Cell, number: int) -> float:
    """Tokens a second: fewer at a longer context, and with several at once."""
    return 30.0 * 1024**0.1 / cell.context**0.1 / cell.concurrency**0.5 * (1 + number % 3 * 0.004)


def bench(of: Runner, speed: Speed = steady, rounds: int = 12, **side: Any) -> Bench:
    """Prose and structured text at two lengths, cold and warm, measured in `rounds` rounds."""
    plan = Plan((1024, 8192), (1, 4), 128, rounds, 1, 0)
    visits = [
        Visit(0, number, turn, replace(cell, warm=warm), (_taken(cell, warm, number, speed),))
        for number in range(rounds)
        for cell in plan.cells
        for turn in (0, 1)
        for warm in (False, True)
    ]
    told = Side("A", about(of), **({"draft_tokens": 4.0, "acceptance": 0.6} | side))
    return Bench(f"run-{speed.__name__}", plan, (told,), tuple(visits), runner=of.identity)


def _taken(cell: Cell, warm: bool, number: int, speed: Speed) -> Taken:
    rate = speed(cell, number)
    ttft = cell.context / (20000 if warm else 2000) * 30 / rate
    return Taken(float(number), rate, ttft, ttft + 127 / rate, cell.context, 128, 0)


def against(of: Runner, speed: Speed, before: RunnerLock, **changed: Any) -> dict[str, Any]:
    """The release `before`, which was steady, against this one at another speed."""
    last = bench(of)
    version = {"patchq": {"tree": before.get("tree")}}
    old = replace(last.sides[0], about=about(of, version=version))
    bound = replace(of.identity, lock=before.digest, tree=before.get("tree"))
    last = replace(last, sides=(old,), runner=bound, **changed)
    now = replace(bench(of, speed), run=last.run)
    return shown.comparison_json(compare((last, 0), (now, 0)))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
