"""The cap and the loop's end where a CPU cannot show them: see tests/runner/simulated.py."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.support import runner
from tests.support.runner_server import environment

SCRIPT = Path(__file__).with_name("simulated.py")
CAP, THINK_END, END = 23, 901, 902
ANSWER = [THINK_END, *range(300, 305), END]


def test_both_runners_ahead_and_with_drafts(release: str, tmp_path: Path) -> None:
    patched = runner.patched(release)
    done = subprocess.run(
        [patched.python, SCRIPT, patched.model],
        cwd=tmp_path,
        env=environment(patched, tmp_path, tmp_path),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    ways = json.loads(line.removeprefix("RESULT "))
    assert len(ways) == 8
    for way, found in ways.items():
        assert found["left"] == 0, way
        wander = found["given"]["wander"]
        assert wander == [*range(101, 101 + CAP), *ANSWER], (way, wander)
        loop = found["given"]["loop"]
        assert loop == [200 + number % 5 for number in range(1, 21)] + ANSWER, (way, loop)
        assert found["marks"] == {
            "wander": "reasoning_closed:cap",
            "loop": "reasoning_closed:loop",
        }, way
