"""One writer at a time, whoever and wherever; Ctrl-C waits for the end of what must be whole."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from patchq.carry import lock
from patchq.config import Project
from patchq.errors import PatchqError

HOLDER = """
import sys
from pathlib import Path
from patchq.carry import lock
from patchq.config import Project
root = Path(sys.argv[1])
with lock.hold(Project(root, root / ".git"), "sync"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / ".git").mkdir()
    return Project(tmp_path, tmp_path / ".git")


def other(project: Project) -> subprocess.Popen[str]:
    """Another process that holds the lock until its stdin is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(project.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_patchq_is_told_who_holds_the_lock(project: Project) -> None:
    with other(project) as holder:
        with pytest.raises(PatchqError) as caught, lock.hold(project, "import"):
            pytest.fail("two at once")
        assert "`patchq sync` of " in caught.value.message
        assert f"(process {holder.pid} on " in caught.value.message
        assert ", since 20" in caught.value.message
        assert str(project.root) in caught.value.message
        assert f"kill {holder.pid}" in caught.value.hint
        holder.communicate("")
    with lock.hold(project, "import"):
        told = json.loads((project.private / "holder").read_text())
        assert (told["command"], told["pid"]) == ("import", os.getpid())
    assert not (project.private / "holder").exists()


def test_a_killed_holder_blocks_nobody(project: Project) -> None:
    with other(project) as holder:
        holder.kill()
    assert (project.private / "holder").exists()
    with lock.hold(project, "import"):
        assert json.loads((project.private / "holder").read_text())["pid"] == os.getpid()


def test_waiting_for_the_other_to_end(project: Project) -> None:
    with other(project) as holder:
        assert holder.stdin is not None
        timer = threading.Timer(0.2, holder.stdin.close)
        timer.start()
        with lock.hold(project, "import", wait=20):
            pass
        timer.join()
    assert holder.returncode == 0


def test_a_holder_that_cannot_be_read_is_another_patchq(project: Project) -> None:
    with other(project) as holder:
        for text in (b"", b"{", b"[]", b'{"pid": 1}', b"\xff"):
            (project.private / "holder").write_bytes(text)
            with pytest.raises(PatchqError, match=r"^another patchq is at work in "):
                lock.hold(project, "import").__enter__()
        holder.communicate("")


def test_the_lock_is_let_go_on_an_error(project: Project) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), lock.hold(project, "sync"):
            raise ZeroDivisionError


def test_a_read_only_folder_is_a_sentence(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: object, *_arguments: object, **_options: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(PatchqError) as caught, lock.hold(project, "sync"):
        pytest.fail("held nothing")
    assert caught.value.message == f"{project.private} cannot be written: read-only file system"


def test_ctrl_c_waits_for_the_end_of_the_block() -> None:
    done: list[bool] = []

    def work() -> None:
        with lock.uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_comes_through() -> None:
    done: list[bool] = []

    def work() -> None:
        with lock.uninterrupted():
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert not done


def test_a_ctrl_c_goes_to_the_handler_that_was_there() -> None:
    caught: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: caught.append(number))
    try:
        with lock.uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            assert not caught
        assert caught == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_thread_needs_no_shield() -> None:
    entered: list[bool] = []

    def work() -> None:
        with lock.uninterrupted():
            entered.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert entered == [True]


def test_the_lock_file_is_loaded_late() -> None:
    code = "import sys, patchq.carry.journal as j; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    ).stdout.split()
    assert not {"filelock", "ctypes", "logging", "rich", "typer", "requests"} & set(loaded)
