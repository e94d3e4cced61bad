"""Help and completion start short: what is slow to import is not imported for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ready
from tests.support.cli import program
from tests.support.history import clean_env

# Measured imports: PyGithub 177 ms, requests 98, GitPython 82, griffe 79,
# jinja2 54, pydantic 48.
SLOW = frozenset({"git", "github", "griffe", "jinja2", "pydantic", "requests"})

# Runs the command line as the console script does, then says what has been imported.
PROBE = """
import json, sys
target, *sys.argv[1:] = sys.argv[1:]
sys.argv[0] = "patchq"
from patchq.cli.main import main
try:
    status = main()
except SystemExit as end:
    status = end.code
with open(target, "w", encoding="utf-8") as file:
    json.dump({"status": status or 0, "modules": sorted(sys.modules)}, file)
"""


def imported(tmp_path: Path, *args: str, **environment: str) -> tuple[set[str], str]:
    """The modules that `patchq ARGS` imports, and what it prints; it must end with status 0."""
    target = tmp_path / "modules.json"
    done = subprocess.run(
        [sys.executable, "-c", PROBE, target, *args],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(target.read_text(encoding="utf-8"))
    assert found["status"] == 0, done.stderr
    return set(found["modules"]), done.stdout


@pytest.mark.parametrize("args", [("--help",), ("sync", "--help")], ids=" ".join)
def test_help_imports_nothing_slow(tmp_path: Path, args: tuple[str, ...]) -> None:
    modules, text = imported(tmp_path, *args)
    assert "sync" in text
    assert modules.isdisjoint(SLOW), sorted(modules & SLOW)


def test_completion_imports_nothing_slow(tmp_path: Path) -> None:
    modules, text = imported(
        tmp_path, _PATCHQ_COMPLETE="complete_bash", COMP_WORDS="patchq sy", COMP_CWORD="1"
    )
    assert "sync" in text
    assert modules.isdisjoint(SLOW), sorted(modules & SLOW)


def test_the_console_script_is_that_function() -> None:
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="patchq")
    assert script.value == "patchq.cli.main:main"


@pytest.mark.parametrize("args", [("series", "--json"), ("no-such-command",), ("--version",)])
def test_the_python_that_is_kept_is_as_a_fresh_one(tmp_path: Path, args: tuple[str, ...]) -> None:
    """tests/support/ready.py: its answers, its streams and its exit status, call after call."""
    env = clean_env(tmp_path)
    fresh = subprocess.run([program(), *args], cwd=tmp_path, env=env, capture_output=True)
    for _ in range(2):
        kept = ready.run(args, cwd=tmp_path, env=env)
        assert (kept.returncode, kept.stdout, kept.stderr) == (
            fresh.returncode,
            fresh.stdout,
            fresh.stderr,
        )
