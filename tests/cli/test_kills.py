"""Whole commands, cut short anywhere: the old state or the new one, and nothing beside it."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patchq.carry import lock
from patchq.config import Project
from tests.support import crash
from tests.support.history import clean_env, git
from tests.support.inside import Small, call

RUN = "import sys; from patchq.cli.main import main; sys.exit(main())"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill loses nothing that a system call has taken: no need to wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _handle: None)


# Kills

UPSTREAM = "../upstream.git"
COMMANDS = {
    "init": ("repository", ("init", "demo", "--git", UPSTREAM, "--base", "v1")),
    "import": ("made", ("import", "--git", UPSTREAM, "v1..topic")),
    "sync": ("filled", ("sync", "--onto", "v2")),
    "undo": ("synced", ("undo",)),
}
BEFORE_THE_RECORD = 12
"""Steps that are tried of those before the first one in the project: they write only to the
cache and to temporary folders."""


def state(small: Small, name: str) -> Small:
    if name == "synced":
        small.filled().call("sync", "--onto", "v2")
        return small
    return getattr(small, name)()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_kill_anywhere(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step in the project itself, and some of those before and after."""
    start, args = COMMANDS[command]
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    small = state(Small(tmp_path / "story"), start)
    old, kept = small.files(), tmp_path / "kept"
    shutil.copytree(small.root, kept, symlinks=True)

    def prepare() -> None:
        shutil.rmtree(small.root)
        # Nothing of ours writes into a file that is there, so links are as good as copies.
        shutil.copytree(kept, small.root, symlinks=True, copy_function=os.link)

    def run(step: crash.Step) -> crash.Run:
        return crash.forked(lambda: call(small.root, *args), step)

    run(crash.NEVER)
    new = small.files()
    assert new != old
    prepare()
    # The first one made the store as well.
    done = run(crash.NEVER)
    assert (done.code, small.files()) == (0, new), done
    count = {"old": 0, "new": 0}

    def check(run: crash.Run) -> None:
        status = small.call("status", code=None)
        found = small.files()
        assert found in (old, new)
        assert status.code == 0 or (command == "init" and "there is no queue" in status.err)
        assert git(small.root, "status", "--porcelain", "--ignored") == clean[found == new]
        assert "interrupted" not in small.call("status", code=None).err, "it says so once"
        if run.killed and len(run.effects) % 20 == 0:
            if found == old:
                small.call(*args)
                assert small.files() == new, "the same command, once more"
            else:
                last = small.call("history", "--json").json["events"][-1]["entry"]
                small.call("undo", str(last))
                assert small.files() == old
        count["new" if found == new else "old"] += 1

    clean = {}
    for is_new in (True, False):
        clean[is_new] = git(small.root, "status", "--porcelain", "--ignored")
        prepare()
    inside = [place for place, name in enumerate(done.effects, 1) if str(small.root) in name]
    first, last = inside[0], inside[-1]
    # The lock is taken early; what counts begins with the journal.
    journal = next(n for n in inside if "journal" in done.effects[n - 1])
    before = range(1, journal, max(1, journal // BEFORE_THE_RECORD))
    steps = sorted({*before, first, *range(journal, last + 1), len(done.effects)})
    killed = crash.every_step(run, check, prepare=prepare, steps=steps)
    # git apply runs beside the parsing: a run has a few effects more or less than the one counted.
    assert killed >= 0.8 * len(steps)
    assert count["old"] > 10
    assert count["new"] > 2


@pytest.mark.usefixtures("quick")
def test_a_kill_of_a_fresh_interpreter(tmp_path: Path) -> None:
    """The console script itself, killed at a few of its steps."""
    small = Small(tmp_path / "story").filled()
    old, kept = small.files(), tmp_path / "kept"
    shutil.copytree(small.root, kept, symlinks=True)
    env = {**os.environ, "TMPDIR": str(tmp_path)}

    def prepare() -> None:
        shutil.rmtree(small.root)
        shutil.copytree(kept, small.root, symlinks=True)

    def run(step: int) -> crash.Run:
        args = ["sync", "--onto", "v2"]
        entry = "patchq.cli.main:main"
        return crash.started(entry, args, step, cwd=small.root, env=env, under=small.root)

    done = run(crash.NEVER)
    assert done.code == 0, done
    new, count = small.files(), len(done.effects)

    def check(_: crash.Run) -> None:
        small.call("status")
        assert small.files() in (old, new)

    crash.every_step(run, check, prepare=prepare, steps=range(2, count, count // 4))


# Ctrl-C


def test_ctrl_c_while_it_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Small(tmp_path).filled()
    before = small.files()

    def interrupted(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr("patchq.carry.step.prove", interrupted)
        said = small.call("sync", "--onto", "v2", code=130)
    assert said.err == "interrupted; nothing is half done\n"
    assert small.files() == before
    small.call("sync", "--onto", "v2")


def test_ctrl_c_while_it_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change is completed first."""
    small = Small(tmp_path).filled()
    from patchq.carry import exchange

    swap = exchange.swap

    def interrupted(a: Path, b: Path) -> None:
        signal.raise_signal(signal.SIGINT)
        swap(a, b)

    with monkeypatch.context() as patch:
        patch.setattr(exchange, "swap", interrupted)
        small.call("sync", "--onto", "v2", code=130)
    assert small.call("status", "--json").json["base"] == "v2"
    assert small.call("status", "--json").json["recovered"] is None


def test_ctrl_c_ends_a_check_that_runs(tmp_path: Path) -> None:
    """From outside, as a terminal sends it; the check's own processes end, too."""
    small = Small(tmp_path).filled()
    mark = tmp_path / "pid"
    (path,) = small.root.glob("series/*-stays.patch")
    line = f"Patchq-Check: sh -c 'sleep 60 & echo $! > {mark}.new; mv {mark}.new {mark}; wait'\n"
    path.write_text(path.read_text().replace("\n\n", f"\n{line}\n", 1))
    small.commit()
    before = small.files()
    with subprocess.Popen(
        [sys.executable, "-c", RUN, "sync", "--onto", "v2"],
        cwd=small.root,
        env=clean_env(tmp_path, PATCHQ_CACHE=os.environ["PATCHQ_CACHE"]),
        stderr=subprocess.PIPE,
    ) as process:
        until(mark.exists)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    child = int(mark.read_text())
    until(lambda: not Path(f"/proc/{child}").exists() or zombie(child))
    assert small.files() == before


def zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def until(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.02)


# A disk that refuses


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("call_name", ["write", "fsync", "rename", "mkdir"])
def test_a_disk_that_refuses_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call_name: str, code: int
) -> None:
    small = Small(tmp_path).filled()
    before = small.files()
    real = getattr(os, call_name)

    def refused(*args: Any, **options: Any) -> Any:
        if recording:
            raise OSError(code, os.strerror(code), str(args[0]))
        return real(*args, **options)

    recording = False
    from patchq.carry import journal, step

    def record(*args: Any, **options: Any) -> Any:
        nonlocal recording
        recording = True
        try:
            return journal.record(*args, **options)
        finally:
            recording = False

    with monkeypatch.context() as patch:
        patch.setattr(step, "journal", _Journal(record))
        patch.setattr(os, call_name, refused)
        said = small.call("sync", "--onto", "v2", code=1)
        assert len(said.err.strip().split("\n")) == 2, said.err
        assert os.strerror(code).lower() in said.err.lower()
    small.call("status")
    assert small.files() == before
    small.call("sync", "--onto", "v2")


class _Journal:
    def __init__(self, record: Any) -> None:
        self.record = record


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    options = "size=16m,nr_inodes=2000"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.root
def test_a_disk_that_is_full(small_disk: Path) -> None:
    small = Small(small_disk).filled()
    before = small.files()
    filler = small_disk / "filler"
    filler.write_bytes(b"\0" * os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize)
    said = small.call("sync", "--onto", "v2", code=1)
    assert "no space left on device" in said.err.lower()
    assert small.files() == before
    filler.unlink()
    small.call("sync", "--onto", "v2")


@pytest.mark.root
def test_a_disk_that_is_read_only(small_disk: Path) -> None:
    small = Small(small_disk).filled()
    before = small.files()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for args in (("sync", "--onto", "v2"), ("undo",), ("import", "x.patch")):
        said = small.call(*args, code=1)
        assert "read-only file system" in said.err.lower(), said
        assert str(small.root) in said.err
    assert small.call("status", "--json").json["base"] == "v1"
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert small.files() == before


# Two at once


def test_a_second_patchq_says_who_holds_the_lock(tmp_path: Path) -> None:
    small = Small(tmp_path).filled()
    before = small.files()
    with lock.hold(Project(small.root, small.root / ".git"), "sync"):
        for args in (("sync", "--onto", "v2"), ("undo",), ("import", "x.patch")):
            said = small.call(*args, code=1)
            assert "`patchq sync` of " in said.err
            assert f"(process {os.getpid()} on " in said.err
            assert f"kill {os.getpid()}" in said.err
        assert small.call("status", "--json").json["base"] == "v1"
        small.call("series")
    assert small.files() == before


def test_two_syncs_at_once(tmp_path: Path) -> None:
    """One does it; the other says who is at work, or that there is nothing left to do."""
    small = Small(tmp_path).filled()
    env = clean_env(tmp_path, PATCHQ_CACHE=os.environ["PATCHQ_CACHE"])
    running = [
        subprocess.Popen(
            [sys.executable, "-c", RUN, "sync", "--onto", "v2"],
            cwd=small.root,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    told = [(*process.communicate(), process.returncode) for process in running]
    assert sorted(code for *_, code in told) in ([0, 0], [0, 1])
    for out, err, code_ in told:
        assert code_ == 0 or b"is at work in" in err, (out, err)
    assert small.call("status", "--json").json["base"] == "v2"
    entries = small.call("history", "--json").json["events"]
    assert [event["what"] for event in entries] == ["init", "import", "sync"]
