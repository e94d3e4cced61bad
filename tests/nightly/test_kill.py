"""A night is killed before, inside and after each of its commands; the next one goes on there."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from patchq.nightly import kept, work
from patchq.nightly.model import Night
from tests.nightly.conftest import STANDIN, Nights, gone, soon
from tests.support.history import git

NIGHT = """
import json, sys
from datetime import UTC, datetime
from pathlib import Path
from patchq.nightly.model import Told
from patchq.nightly.run import Asked, Hands, night
from patchq.nightly.settings import Settings

root, standin, folder, bench = sys.argv[1:]
program = lambda args: (sys.executable, "-I", "-S", standin, folder, *args)
def tell(*_):
    (Path(folder) / "calls").open("a").write(json.dumps({"name": "tell"}) + chr(10))
    return Told(says=("somebody was told",))
now = lambda: datetime(2026, 12, 1, 1, 23, 45, tzinfo=UTC)
settings = Settings(onto="v2", target="cpu", cluster="pair", profile="tiny")
hands = Hands(lambda *_: None, tell, program, now, grace=5)
ran = night(Path(root), settings, Asked(start="HEAD"), hands)
print(json.dumps({"resumed": ran.resumed, "state": ran.night.state, "name": ran.night.name}))
"""
# Where a night is killed, and what the next one runs up to where it is killed: the stage that was
# not done, from its first command. What is left of a runner is stopped first, and another started
# where one is needed.
KILLED = {
    "sync": "sync",
    "lock": "sync, lock",
    "build": "sync, lock, build",
    "cluster deploy": "build, cluster deploy",
    "cluster start": "cluster deploy, cluster start",
    "smoke": "cluster stop, cluster deploy, cluster start, smoke",
    "bench": "cluster stop, cluster start, smoke, bench",
    "gate": "cluster stop, cluster start, bench, gate",
    "cluster stop": "cluster stop",
}


class Killed:
    """Nights in a process of their own, which the stand-in kills when it is told to."""

    def __init__(self, nights: Nights) -> None:
        self.nights = nights

    def run(self, **orders: dict[str, Any]) -> tuple[int, dict[str, Any], list[str]]:
        """Exit status, what it printed, and the commands that it ran."""
        self.nights.orders(**orders)
        nights = self.nights
        args = [str(nights.root), str(STANDIN), str(nights.folder), ""]
        done = subprocess.run(
            [sys.executable, "-c", NIGHT, *args], capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.returncode, json.loads(done.stdout or "{}"), nights.calls()

    def night(self) -> Night:
        found = kept.load(self.nights.kept / "2026-12-01")
        assert found is not None
        return found


@pytest.fixture
def killed(nights: Nights) -> Killed:
    return Killed(nights)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_night_killed_in_every_command_in_turn_goes_on_where_it_was(
    killed: Killed, when: str
) -> None:
    """Killed as the command begins, then (after) when it has done its work and nobody knows."""
    for name, expected in KILLED.items():
        order = {"kills": when, "once": True}
        code, _, calls = killed.run(**{name.replace(" ", "_"): order})
        assert (code, ", ".join(calls)) == (-signal.SIGKILL, expected)
        assert killed.night().state == "running"
    code, said, calls = killed.run()
    assert (code, said) == (0, {"resumed": True, "state": "green", "name": "2026-12-01"})
    assert calls == ["cluster stop", "gate", "tell"]
    assert [each.state for each in killed.night().stages] == ["done"] * 6
    assert not (killed.nights.kept / work.SERVING).exists()
    assert kept.names(killed.nights.kept) == ["2026-12-01"], "it was one night all along"


def test_a_command_whose_night_is_killed_ends_as_by_ctrl_c(killed: Killed) -> None:
    code, _, _ = killed.run(smoke={"kills": "before", "sleep": 60, "once": True})
    assert code == -signal.SIGKILL
    _, said, calls = killed.run()
    assert said["state"] == "green"
    assert (killed.nights.folder / "interrupted").read_text() == "smoke"
    assert calls == [
        "cluster stop",
        "cluster start",
        "smoke",
        "bench",
        "gate",
        "cluster stop",
        "tell",
    ]


def test_a_command_that_is_deaf_is_not_left_running_beside_the_next_night(killed: Killed) -> None:
    killed.run(build={"kills": "before", "sleep": 60, "deaf": True, "once": True})
    left = int((killed.nights.kept / "busy").read_text())
    assert not gone(left)
    _, said, calls = killed.run()
    assert (said["state"], calls[0]) == ("green", "build")
    soon(lambda: gone(left))


def test_a_real_sync_that_is_killed_is_made_again_in_a_fresh_clone(killed: Killed) -> None:
    killed.nights.real()
    for when in ("before", "after"):
        killed.run(lock={"kills": when, "once": True})
        assert killed.night().stages == ()
    _, said, calls = killed.run()
    assert (said["resumed"], said["state"]) == (True, "green")
    assert calls[:3] == ["sync", "lock", "build"]
    night = killed.night()
    clone = killed.nights.kept / night.name / "queue"
    log = git(clone, "log", "--format=%s", f"{night.start}..").decode().splitlines()
    assert log == [f"lock the runner {(night.lock or '')[:16]}", "sync demo from v1 to v2"]


def test_a_night_killed_while_people_are_told_tells_them_again(
    killed: Killed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Telling can be repeated; a night that was never told would be missed."""
    kills = NIGHT.replace("return Told", "import os; os.kill(os.getpid(), 9)\n    return Told")
    monkeypatch.setattr(f"{__name__}.NIGHT", kills)
    code, _, calls = killed.run()
    assert (code, calls[-1]) == (-signal.SIGKILL, "tell")
    assert killed.night().state == "running"
    monkeypatch.undo()
    _, said, calls = killed.run()
    assert (said["state"], calls) == ("green", ["tell"])
    assert killed.night().told.says == ("somebody was told",)
