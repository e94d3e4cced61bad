"""`patchq` as a user has it: a process, its exit code, its two streams, its files."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import ready
from tests.support.appliers import (
    apply_with_git,
    apply_with_quilt,
    series_files,
    without_submodules,
)
from tests.support.history import History, Literal, as_tree, clean_env, git

Json = dict[str, Any]
Snapshot = dict[str, tuple[int, bytes, int]]
"""Relative path -> mode, content or link target, mtime in ns."""


def program() -> str:
    """The `patchq` that belongs to this interpreter."""
    beside = Path(sys.executable).parent / "patchq"
    found = str(beside) if beside.exists() else shutil.which("patchq")
    assert found, "patchq is not installed beside this interpreter"
    return found


@dataclass(frozen=True)
class Outcome:
    """What a run of `patchq` left."""

    args: tuple[str, ...]
    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "surrogateescape")

    @property
    def json(self) -> Json:
        """The one object on stdout."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value

    def patch(self, place: int) -> Json:
        """The entry of the patch that stood at `place` (from 1) before the sync."""
        entry: Json = self.json["patches"][place - 1]
        return entry

    def column(self, key: str) -> list[Any]:
        return [entry[key] for entry in self.json["patches"]]

    def __str__(self) -> str:
        out, err = (part.decode(errors="replace") for part in (self.out, self.err))
        return f"patchq {' '.join(self.args)} -> {self.code}\n--- stdout\n{out}\n--- stderr\n{err}"


@dataclass(repr=False)
class Queue:
    """A repository that keeps a queue, its upstream and the folders beside it."""

    folder: Path
    upstream: History
    env: dict[str, str] = field(default_factory=dict)
    """What `patchq` finds beside a clean environment; with it each run is a fresh interpreter."""
    judged: int = 0

    @property
    def root(self) -> Path:
        return self.folder / "queue"

    @property
    def series(self) -> Path:
        return self.root / "series"

    def run(self, *args: str, code: int | None = 0, cwd: Path | None = None) -> Outcome:
        """Runs `patchq ARGS`; `code` is what it must exit with (None: anything)."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        env = clean_env(home, PATCHQ_CACHE=str(self.folder / "cache"), COLUMNS="100")
        if self.env:
            done = subprocess.run(
                [program(), *args],
                cwd=cwd or self.root,
                env={**env, **self.env},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        else:
            done = ready.run(args, cwd=cwd or self.root, env=env)
        outcome = Outcome(args, done.returncode, done.stdout, done.stderr)
        assert b"Traceback" not in done.stderr + done.stdout, str(outcome)
        assert code is None or outcome.code == code, str(outcome)
        return outcome

    def start(self, commits: str | None = "v1..topic", base: str = "v1") -> Queue:
        """init, import, and a commit as the maintainer would make it."""
        self.upstream.save()
        self.root.mkdir()
        git(self.root, "init", "-q", "-b", "main")
        self.run("init", "demo", "--git", str(self.upstream.path), "--base", base)
        if commits:
            self.run("import", "--git", str(self.upstream.path), commits)
        return self.commit()

    def commit(self, message: str = "queue") -> Queue:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--no-verify", "-m", message)
        return self

    def sync(self, onto: str = "v2", *more: str, code: int | None = 0) -> Outcome:
        """`patchq sync --json`, with what holds for each of its outcomes checked."""
        before = self.snapshot()
        outcome = self.run("sync", "--onto", onto, "--json", *more, code=code)
        if outcome.code in (0, 4, 5):
            _well_formed(outcome.json)
        if outcome.code != 0:
            assert self.snapshot() == before, f"a failed sync changed files\n{outcome}"
            assert self.status() == b"", self.status()
        if outcome.code in (4, 5):
            assert outcome.json["recorded"] is False
        return outcome

    def tree(self) -> str:
        return self.run("tree").text.strip()

    def status(self) -> bytes:
        return git(self.root, "status", "--porcelain")

    def patch_file(self, place: int) -> Path:
        """The file of the patch at `place` (from 1) in the series as it is now."""
        return series_files(self.series)[place - 1]

    def names(self) -> list[str]:
        return [path.name for path in series_files(self.series)]

    def retired(self) -> list[str]:
        return sorted(path.name for path in self.series.glob("retired/*.patch"))

    def snapshot(self) -> Snapshot:
        """Every file of the work tree."""
        found: Snapshot = {}
        for folder, names, files in os.walk(self.root):
            if ".git" in names and Path(folder) == self.root:
                names.remove(".git")
            for name in files:
                path = Path(folder, name)
                info = path.lstat()
                data = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
                where = str(path.relative_to(self.root))
                found[where] = (stat.S_IMODE(info.st_mode), data, info.st_mtime_ns)
        return found

    def content(self) -> dict[str, tuple[int, bytes]]:
        """The snapshot without times."""
        return {path: (mode, data) for path, (mode, data, _) in self.snapshot().items()}

    def expect(self, literal: Literal, release: str = "v2", *, quilt: bool = True) -> None:
        """The series applied to the bare `release` gives the tree written in the test.

        Judged by `git apply --index`, by quilt (where it can take the series), and by
        `patchq tree`.
        """
        self.judged += 1
        work = self.folder / f"judged-{self.judged}"
        wanted = without_submodules(as_tree(literal))
        hash_, tree = apply_with_git(self.upstream, release, self.series, work / "git")
        assert tree == wanted, "git apply gives another tree"
        assert self.tree() == hash_, "`patchq tree` is not the tree that git apply gives"
        if quilt:
            pushed = apply_with_quilt(self.upstream, release, self.series, work / "quilt")
            assert pushed == wanted, "quilt gives another tree"

    def set_config(self, text: str) -> None:
        """The user's git settings."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        (home / ".gitconfig").write_text(text)


def _well_formed(value: Mapping[str, Any]) -> None:
    assert value["schema"] == "patchq.sync/1"
    assert set(value) >= {"base", "changed", "recorded", "session", "upstream", "patches", "proof"}
    assert set(value["base"]) >= {"from", "to", "tree"}
    for patch in value["patches"]:
        assert set(patch) >= {
            *("number", "name", "file", "verdict", "carry", "action"),
            *("evidence", "conflicts", "findings"),
        }
        assert patch["verdict"] in VERDICTS
        assert patch["carry"] in CARRIES
        assert patch["action"] in ACTIONS
        if patch["action"] == "drop":
            assert patch["evidence"], "a drop names its evidence"
            assert len({one["signal"] for one in patch["evidence"]}) > 1, "never on one signal"
        for conflict in patch["conflicts"]:
            assert conflict["path"]
            assert conflict["kind"]


VERDICTS = {
    *("needed", "landed", "landed-with-changes", "partly-landed", "reverted"),
    *("superseded", "updated", "gone", "uncertain"),
}
CARRIES = {"clean", "moved", "residual", "empty", "conflict", "held", None}
ACTIONS = {"keep", "drop", "shrink", "update", "hold", "ask"}
