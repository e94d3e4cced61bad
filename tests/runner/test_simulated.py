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


MERGED = """
from vllm.outputs import CompletionOutput, RequestOutput
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.output_processor import RequestOutputCollector

def chunk(text, token, **last):
    output = CompletionOutput(0, text, [token], None, None, **last)
    return RequestOutput("r", None, [1], None, [output], finished=bool(last))

waiting = RequestOutputCollector(RequestOutputKind.DELTA, "r")
waiting.put(chunk("a", 5))
waiting.put(chunk("b", 6, finish_reason="stop", reasoning_closed="cap"))
(given,) = waiting.get_nowait().outputs
assert (given.text, given.finish_reason, given.reasoning_closed) == ("ab", "stop", "cap"), given
"""


def test_a_slow_client_is_told_too(release: str, tmp_path: Path) -> None:
    """What it has not taken yet is merged into one chunk: the mark went missing there."""
    patched = runner.patched(release)
    done = subprocess.run(
        [patched.python, "-c", MERGED],
        cwd=tmp_path,
        env=environment(patched, tmp_path, tmp_path),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
