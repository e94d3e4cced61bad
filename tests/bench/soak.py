"""Sixty rounds of the probes against a server that is good: not one false alarm.

    python -m tests.bench.soak [--url URL] [--rounds 60] [OPTION]...

Without --url the model that is made to answer (tests/support/answering.py) is served by real
vLLM with the series, on the CPU. What else is given goes to `patchq smoke`, whose exit status this
has.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.runner.profiles import ANSWERS
from tests.support import answering, runner
from tests.support.cli import program
from tests.support.runner_server import serving


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, add_help=False)
    parser.add_argument("--url")
    parser.add_argument("--rounds", default="60")
    given, more = parser.parse_known_args()
    if given.url is not None:
        return soak(given.url, given.rounds, more)
    release = runner.base()
    made = answering.models(runner.environment(release)).answers
    engine = replace(runner.patched(release), model=made)
    with (
        tempfile.TemporaryDirectory(prefix="patchq-soak-") as folder,
        serving(engine, Path(folder), *ANSWERS) as server,
    ):
        return soak(server.url, given.rounds, more)


def soak(url: str, rounds: str, more: list[str]) -> int:
    command = [program(), "smoke", "--url", url, "--rounds", rounds, *more]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
