"""The man page is the commands' own help, in a form that formatters take."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

from patchq.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("man", ROOT / "ci" / "man.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_commands_say() -> None:
    page = (ROOT / "docs/patchq.1").read_text(encoding="utf-8")
    assert page == generator().page(), "run ci/man.py"


def test_every_command_has_an_example() -> None:
    page = (ROOT / "docs/patchq.1").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"\\fBpatchq {name}".replace("-", "\\-") in page, name


def test_a_formatter_has_nothing_to_say() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-rHY=0", ROOT / "docs/patchq.1"],
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    assert b"NAME" in done.stdout
