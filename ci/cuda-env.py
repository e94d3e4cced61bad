#!/usr/bin/env python3
"""Makes build/cuda/13.0/env: nvcc of CUDA 13.0 with what it needs, CMake and ninja, all pinned.

    .venv/bin/python ci/cuda-env.py

Prints the toolkit's folder. Where the packages come from is pip's own configuration. Does nothing
where the environment stands and its pins have not changed; two at once are held apart. No GPU and
no driver are needed: it compiles, nothing runs.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path

from filelock import FileLock

ROOT = Path(__file__).resolve().parents[1]
RELEASE = "13.0"
PINS = ROOT / "ci" / "cuda-pins" / f"{RELEASE}.txt"

_spec = importlib.util.spec_from_file_location("runner_env", ROOT / "ci" / "runner-env.py")
assert _spec and _spec.loader
runner_env = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(runner_env)


def make(env: Path, pins: str) -> None:
    runner_env.run(sys.executable, "-m", "venv", str(env))
    pip = [str(env / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pins"
        file.write_text(pins, encoding="utf-8")
        options = ("--quiet", "--no-input", "--only-binary", ":all:", "--no-deps")
        runner_env.run(*pip, *options, "--require-hashes", "--requirement", str(file))


def toolkit(env: Path) -> Path:
    """The folder with bin/nvcc. Raises Failed where the packages brought none."""
    found = sorted(env.glob("lib/python3*/site-packages/nvidia/cu13/bin/nvcc"))
    if not found:
        raise runner_env.Failed(
            f"The packages of {PINS.name} brought no nvcc for this machine. "
            "They exist for x86-64 and aarch64 with glibc 2.17 or newer."
        )
    return found[0].parents[1]


def ensure() -> Path:
    """The toolkit's folder. Raises Failed."""
    pins = PINS.read_text(encoding="utf-8")
    home = ROOT / "build" / "cuda" / RELEASE
    home.mkdir(parents=True, exist_ok=True)
    env, stamp = home / "env", home / "made-from"
    wanted = runner_env.describe(pins)
    with FileLock(home / "lock"):
        made = stamp.read_text(encoding="utf-8") if stamp.is_file() else ""
        if made != wanted or not (env / "bin" / "python").exists():
            stamp.unlink(missing_ok=True)
            shutil.rmtree(env, ignore_errors=True)
            make(env, pins)
            stamp.write_text(wanted, encoding="utf-8")
    return toolkit(env)


def main() -> int:
    try:
        print(ensure())
    except runner_env.Failed as failed:
        print(failed, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
