"""Two machines at one bisection: each takes a step, both bring their results; fewer rounds.

What a job matrix does (docs/bisect.md): one names the steps, each of the others tries one, the
first takes what they bring.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.bisect.toys import Toy


def test_two_processes_at_once(tmp_path: Path) -> None:
    toy = Toy(tmp_path, 8)
    asks = [*toy.asks(5), "--known"]
    once = toy.bisect(*asks, "--state", str(tmp_path / "alone"), "--json").json
    toy.log.unlink()
    rounds = 0
    found = toy.bisect(*asks, "--next", "2", "--json").json
    while found["state"] == "open":
        rounds += 1
        assert 1 <= len(found["steps"]) <= 2
        workers = [toy.start("--try", each["step"], "--json") for each in found["steps"]]
        files = []
        for worker in workers:
            out, err = worker.communicate(timeout=60)
            assert worker.returncode == 0, err.decode()
            files += ["--take", json.loads(out)["file"]]
        toy.bisect(*files)
        found = toy.bisect("--next", "2", "--json").json
    assert found["culprit"] == once["culprit"] and found["culprit"]["name"] == "change-5"
    assert found["rounds"] == rounds < once["rounds"]
    assert len(toy.runs) == len(set(toy.runs)), "no step was done twice"


def test_another_machine_has_its_own_clone(tmp_path: Path) -> None:
    """The folder of the session is all that travels; the project is a clone."""
    toy = Toy(tmp_path / "here", 3)
    state = tmp_path / "here" / "state"
    named = toy.bisect(*toy.asks(4), "--known", "--next", "1", "--state", str(state), "--json").json
    there = Toy(tmp_path / "there", 4)
    carried = tmp_path / "there" / "state"
    carried.mkdir()
    (carried / "session.json").write_bytes((state / "session.json").read_bytes())
    step = named["steps"][0]["step"]
    # A clone has the same commits; this one does not, and says so instead of trying others.
    said = there.bisect("--try", step, "--state", str(carried), code=1)
    assert "no revision of this repository" in said.err
    told = toy.bisect("--try", step, "--state", str(state), "--json").json
    after = toy.bisect("--take", told["file"], "--state", str(state), "--json").json
    assert [each["step"] for each in after["trials"]] == [step]


def test_at_work_somewhere_else(tmp_path: Path) -> None:
    """A step that is tried only reads the session; everything else is one at a time."""
    from patchq.bisect.session import held

    toy = Toy(tmp_path, 4)
    named = toy.bisect(*toy.asks(2), "--known", "--next", "1", "--json").json
    with held(Path(named["folder"])):
        assert "another patchq is at work" in toy.bisect("--next", "1", code=1).err
        toy.bisect("--try", named["steps"][0]["step"])
