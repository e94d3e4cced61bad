"""An unknown command's error knows what quilt and StGit call things."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from patchq.cli.main import COMMANDS
from patchq.cli.peers import PEERS, hint
from tests.support.inside import call


def test_a_peers_word_and_a_slip(tmp_path: Path) -> None:
    assert "Here it is: patchq move NAME --to-top" in call(tmp_path, "float", code=2).err
    assert "Did you mean sync?" in call(tmp_path, "sycn", code=2).err
    assert call(tmp_path, "xyzzy", code=2).err.endswith("No such command 'xyzzy'.\n")


@pytest.mark.parametrize("word", PEERS)
def test_what_is_named_exists(word: str) -> None:
    assert word not in COMMANDS
    named = re.findall(r"patchq (\w+)", hint(word, []))
    assert named and set(named) <= set(COMMANDS)
