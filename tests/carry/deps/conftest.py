"""A small runner: an engine with two components, one of them written in the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from patchq.upstream import download, pages
from tests.support.parts import Index, Parts
from tests.upstream.conftest import Site

ENGINE = b"""\
from kernels.ops import attend


def run(x):
    return attend(x)
"""
OPS = b"def attend(x):\n    return x\n\n\ndef scale(x):\n    return 2 * x\n"


def kernels(ops: bytes = OPS) -> dict[str, bytes]:
    """The files of a release of the kernels."""
    return {"kernels/__init__.py": b"", "kernels/ops.py": ops}


TOML = """
[[component]]
name = "kernels"
index = "kernels-python"
version = "1.7"
import = ["kernels"]
why = "attention"  # the fast one

[[component]]
name = "dsl"
index = "dsl"
version = "4.6.0"
why = "what kernels are written in"
"""


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    site = Site()
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setattr(download, "_PAUSE", 0.0)
    monkeypatch.setattr(pages, "_PAUSE", 0.0)
    yield Index(site)
    site.stop()


@pytest.fixture
def parts(index: Index, tmp_path: Path) -> Parts:
    """The engine 1.0 takes kernels from 1.7 on; those of 1.8 need a newer dsl."""
    index.release("engine", "1.0", ["kernels-python>=1.7"], files={"engine/run.py": ENGINE})
    index.release("kernels-python", "1.7", ["dsl>=4.6.0"], files=kernels())
    index.release(
        "kernels-python",
        "1.8",
        ["dsl>=4.7.0", "windows-only; sys_platform == 'win32'"],
        files=kernels(OPS.replace(b"x\n\n\n", b"+x\n\n\n")),
        date="2026-10-02",
    )
    index.release("dsl", "4.6.0", sdist=False)
    index.release("dsl", "4.7.0", sdist=False, date="2026-10-01")
    return Parts(tmp_path, index).init().list(TOML)
