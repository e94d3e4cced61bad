"""Make a subset and have it run: assembled, built and served as CMD needs it.

What patchq does for it are the commands that a person would type.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from patchq.bisect import trial
from patchq.bisect.assemble import Unbuildable, assemble
from patchq.bisect.moves import Between
from patchq.bisect.session import Asked, name_of
from patchq.bisect.trial import Outcome
from patchq.config import Project
from patchq.errors import Incomplete
from patchq.progress import SILENT, Progress

HOURS = 4 * 3600.0
"""Bounds a build, a deployment and a start, each."""
_SECRETS = ("GITHUB_TOKEN", "GH_TOKEN")


class Skipped(Exception):
    """Nothing can be said of this subset; `built`: a runner was made of it."""

    def __init__(self, why: str, *, built: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.built = built


@dataclass(frozen=True)
class Ready:
    """A subset that can be run: `once` runs CMD and says how it ended."""

    tree: str
    lock: str
    once: Callable[[], Outcome]


class Bench(Protocol):
    """Where subsets are tried."""

    def ready(
        self, moves: frozenset[str], progress: Progress = SILENT
    ) -> AbstractContextManager[Ready]:
        """Raises Skipped where it cannot be made or started, another PatchqError where that is not
        the subset's fault."""

    def clear(self) -> None:
        """Remove what was made; logs stay."""


@dataclass(frozen=True)
class Local:
    """Tries subsets here, on the cluster that was asked for."""

    project: Project
    between: Between
    asked: Asked
    folder: Path
    """The session's; it gets the logs."""

    @property
    def work(self) -> Path:
        return workplace(self.project, self.folder)

    def clear(self) -> None:
        shutil.rmtree(self.work / "made", ignore_errors=True)
        shutil.rmtree(self.work / "source", ignore_errors=True)
        with suppress(OSError):
            self.work.rmdir()

    @contextmanager
    def ready(self, moves: frozenset[str], progress: Progress = SILENT) -> Iterator[Ready]:
        step = name_of(moves)
        made = self._made(moves, step, progress)
        folder = Path(made["folder"])
        env = {
            "PATCHQ_BISECT_STEP": step,
            "PATCHQ_TREE": made["tree"],
            "PATCHQ_LOCK": made["lock"],
        }
        if self.asked.source:
            env["PATCHQ_SOURCE"] = str(self._source(folder, made["tree"], progress))
        target = self._target()
        if target is not None:
            progress.step(f"step {step}: building")
            self._command(step, folder, "build", ["build", "--target", target], built=False)
            env["PATCHQ_BUILD"] = str(folder / "build" / target)
        if self.asked.cluster is None:
            yield Ready(made["tree"], made["lock"], lambda: self._once(step, folder, env))
            return
        serving = self.folder / "serving"
        if serving.exists():  # a bisection that was killed has left it running
            self._stop(step, folder, self.asked.cluster, progress)
        serving.touch()
        try:
            env["PATCHQ_URL"] = self._serve(step, folder, self.asked.cluster, progress)
            yield Ready(made["tree"], made["lock"], lambda: self._once(step, folder, env))
        finally:
            if self._stop(step, folder, self.asked.cluster, progress):
                serving.unlink(missing_ok=True)

    def _stop(self, step: str, folder: Path, cluster: str, progress: Progress) -> bool:
        """Whether nothing runs there any more."""
        progress.step(f"step {step}: stopping {cluster}")
        code, _ = self._patchq(step, folder, "stop", ["cluster", "stop", cluster])
        return code == 0

    def _target(self) -> str | None:
        if self.asked.cluster is None or self.asked.target is not None:
            return self.asked.target
        from patchq.cluster import config

        return config.load(self.project.root, self.asked.cluster).target

    def _made(self, moves: frozenset[str], step: str, progress: Progress) -> dict[str, str]:
        """The subset as a project: that which is there, or another one that is the same runner."""
        home = self.work / "made"
        told = home / f"{step}.json"
        with suppress(FileNotFoundError):
            found: dict[str, str] = json.loads(told.read_bytes())
            if Path(found["folder"]).is_dir():
                return found
        progress.step(f"step {step}: putting it together")
        folder = home / step
        shutil.rmtree(folder, ignore_errors=True)
        home.mkdir(parents=True, exist_ok=True)
        try:
            made = assemble(self.between, moves, folder, progress=progress)
        except Unbuildable as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise Skipped(error.why) from error
        for other in sorted(home.glob("*.json")):
            value = json.loads(other.read_bytes())
            if value["lock"] == made.lock and Path(value["folder"]).is_dir():
                shutil.rmtree(folder)
                folder = Path(value["folder"])
                break
        clusters = self.project.root / "ci" / "clusters"
        if clusters.is_dir():  # where runners run is no part of them
            shutil.copytree(clusters, folder / "ci" / "clusters", dirs_exist_ok=True)
        found = {"folder": str(folder), "tree": made.tree, "lock": made.lock}
        beside = told.with_name(f"{told.name}.{os.getpid()}")
        beside.write_text(json.dumps(found), encoding="ascii")
        beside.replace(told)
        return found

    def _source(self, folder: Path, tree: str, progress: Progress) -> Path:
        """The patched tree of upstream's source, checked out."""
        from patchq.carry.inspect import made_tree
        from patchq.carry.workspace import base_of, read_queue, upstream_of
        from patchq.config import find_project
        from patchq.gitstore.checkout import check_out

        there = self.work / "source" / tree
        if there.is_dir():
            return there
        queue = read_queue(find_project(folder), self.asked.queue)
        offline = self.between.offline
        with upstream_of(queue, offline=offline, progress=progress) as upstream:
            made_tree(queue, upstream.store, base_of(queue, upstream), progress)
            part = there.with_name(f"{tree}.{os.getpid()}")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            check_out(upstream.store, tree, part)
            with suppress(OSError):
                part.rename(there)
        return there

    def _serve(self, step: str, folder: Path, cluster: str, progress: Progress) -> str:
        progress.step(f"step {step}: bringing it to {cluster}")
        self._command(step, folder, "deploy", ["cluster", "deploy", cluster])
        progress.step(f"step {step}: starting {cluster}")
        profile = ["--profile", self.asked.profile] if self.asked.profile else []
        said = self._command(step, folder, "start", ["cluster", "start", cluster, *profile])
        return str(said.get("url", ""))

    def _command(
        self, step: str, folder: Path, name: str, args: Sequence[str], *, built: bool = True
    ) -> dict[str, Any]:
        """A patchq command that has to succeed: what it printed.

        Raises Skipped where the subset is at fault, PatchqError where something else is.
        """
        code, said = self._patchq(step, folder, name, args)
        if code == 0:
            return said
        failure = said.get("failure")
        if isinstance(failure, dict) and failure.get("lines"):
            raise Skipped(f"it does not start: {failure.get('says')}", built=True)
        why = str(said.get("message") or (failure or {}).get("says") or f"exit status {code}")
        if code == 5 or (name == "build" and code in (1, 4)):
            raise Skipped(f"`patchq {name}`: {why}", built=built)
        log = self._log(step, name)
        raise Incomplete(
            f"`patchq {shlex.join(args)}` of step {step} failed: {why}",
            f"see {log}; run the bisection again to go on",
            exit_code=code if code in (1, 6) else 6,
        )

    def _patchq(
        self, step: str, folder: Path, name: str, args: Sequence[str]
    ) -> tuple[int, dict[str, Any]]:
        log, out = self._log(step, name), self._log(step, name, "json")
        command = [*trial.PATCHQ, *args, "--json"]
        code = trial.bounded(command, folder, os.environ, log, HOURS, out=out)
        try:
            said = json.loads(out.read_bytes())
        except ValueError:
            said = None
        if code is None:
            raise Incomplete(
                f"`patchq {shlex.join(args)}` of step {step} did not end", f"see {log}"
            )
        return code, said if isinstance(said, dict) else {}

    def _once(self, step: str, folder: Path, env: Mapping[str, str]) -> Outcome:
        argv = [trial.filled(word, env) for word in trial.words(self.asked.run)]
        place = {key: value for key, value in os.environ.items() if key not in _SECRETS}
        place |= env
        number = len(list(self._log(step, "x").parent.glob(f"{step}-run-*.log"))) + 1
        log = self._log(step, f"run-{number}")
        return trial.outcome(
            trial.bounded(argv, folder, place, log, self.asked.minutes * 60), self.asked
        )

    def _log(self, step: str, name: str, kind: str = "log") -> Path:
        folder = self.folder / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{step}-{name}.{kind}"


def workplace(project: Project, folder: Path) -> Path:
    """Where the subsets of the session in `folder` are made: there, but never in the project's own
    git folder, where patchq's commands would take a subset for the project itself."""
    inside = folder.resolve().is_relative_to(project.git_dir.resolve())
    return project.root / "build" / "bisect" / folder.name if inside else folder
