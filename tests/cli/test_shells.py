"""Completion in the real shells: the scripts that `patchq --show-completion` gives, at work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.inside import Small

BASH = """
source ./script
COMP_WORDS=({words}) COMP_CWORD={at}
_patchq_completion patchq
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1=; cd {here}; autoload -Uz compinit; compinit -u; source ./script; echo READY'
while zpty -r shell line; do [[ $line == READY* ]] && break; done
zpty -w -n shell '{words}'$'\\t'
sleep 0.1
zpty -r -m shell text '*{wanted}*'
print -r -- $text
"""


def environ(home: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(home)}


def script(small: Small, shell: str, home: Path) -> Path:
    """What `patchq --show-completion` prints in that shell."""
    env = {**environ(home), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        ["patchq", "--show-completion", shell],
        cwd=small.root,
        env=env,
        capture_output=True,
        check=True,
    )
    path = small.root / "script"
    path.write_bytes(done.stdout)
    return path


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path).filled()


def run(small: Small, home: Path, *command: str) -> list[str]:
    done = subprocess.run(
        command, cwd=small.root, env=environ(home), capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().split()


def test_bash(small: Small, sealed: Path) -> None:
    script(small, "bash", sealed)
    text = BASH.format(words="patchq show st", at=2)
    assert run(small, sealed, "bash", "--norc", "-c", text) == ["stays"]


def test_fish(small: Small, sealed: Path) -> None:
    script(small, "fish", sealed)
    text = 'source ./script; complete -C "patchq show st"'
    assert run(small, sealed, "fish", "--no-config", "-c", text) == ["stays"]


def test_zsh(small: Small, sealed: Path) -> None:
    script(small, "zsh", sealed)
    text = ZSH.format(here=small.root, words="patchq show st", wanted="stays")
    assert "stays" in " ".join(run(small, sealed, "zsh", "-f", "-c", text))
