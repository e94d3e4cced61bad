"""A cluster of this machine alone, without ssh: its file, and ports that no other test takes."""

from __future__ import annotations

import os
from pathlib import Path

CLUSTER = """\
target = "cpu"
port = {port}
master_port = {master}
[[node]]
name = "here"
rank = 0
address = "127.0.0.1"
device = "lo"
python = "{python}"
"""
"""Whose folders are the usual ones."""
_FOLDERS = """\
folder = "{home}/patchq"
models = "{home}/models"
"""


def cluster(first: int, python: Path | str, home: Path) -> str:
    """`ci/clusters/here.toml`; its ports are two from `first` on, others for each worker of
    pytest-xdist."""
    port = first + 2 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    text = CLUSTER + _FOLDERS
    return text.format(port=port, master=port + 1, python=python, home=home)
