"""Which GPUs a shared object holds code for, and which GPU runs it."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.build import elf
from patchq.build.fatbin import Code, architectures, fatbins
from patchq.errors import PatchqError
from tests.build.elves import cuobjdump, fatbin, shared

CODES = [
    "sm_80",
    "sm_90a",
    "sm_100f",
    "sm_120",
    "sm_120a",
    "sm_120f",
    "sm_121a",
    "ptx sm_80",
    "ptx sm_120f",
]


def test_what_the_linker_filled_up_is_passed_over() -> None:
    data = bytes(24), fatbin("sm_80"), bytes(200_000), fatbin("sm_120f"), bytes(4096)
    source = io.BytesIO(shared(fatbins=data))
    found = fatbins(source, elf.read(source, "_C.so"))
    assert found == ({code("sm_80")}, {code("sm_120f")})


def code(text: str) -> Code:
    kind, _, arch = text.rpartition(" ")
    return Code("ptx" if kind else "elf", arch)


def test_every_kind_of_code_is_found_once_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "_C.so"
    path.write_bytes(shared(fatbins=[fatbin(*reversed(CODES)), fatbin("sm_80")]))
    assert list(architectures(path)) == [code(each) for each in CODES]
    path.write_bytes(shared())
    assert architectures(path) == ()


def test_each_source_file_has_its_own() -> None:
    source = io.BytesIO(shared(fatbins=[fatbin("sm_80", "sm_120f"), fatbin("sm_90a"), fatbin()]))
    found = fatbins(source, elf.read(source, "_C.so"))
    assert found == ({code("sm_80"), code("sm_120f")}, {code("sm_90a")}, frozenset())


@pytest.mark.parametrize(
    ("text", "runs", "not_on"),
    [
        ("sm_120", "sm_120 sm_121", "sm_100 sm_90"),
        ("sm_121", "sm_121", "sm_120"),
        ("sm_120f", "sm_120 sm_121", "sm_100 sm_110"),
        ("sm_120a", "sm_120", "sm_121"),
        ("sm_121a", "sm_121", "sm_120"),
        ("sm_80", "sm_80 sm_89", "sm_121 sm_90"),
        ("sm_90a", "sm_90", "sm_100"),
        ("ptx sm_80", "sm_80 sm_90 sm_121", "sm_75"),
        ("ptx sm_120f", "sm_120 sm_121", "sm_130"),
        ("ptx sm_120a", "sm_120", "sm_121"),
    ],
)
def test_which_gpu_runs_it(text: str, runs: str, not_on: str) -> None:
    assert all(code(text).runs_on(gpu) for gpu in runs.split())
    assert not any(code(text).runs_on(gpu) for gpu in not_on.split())


@pytest.mark.skipif(sys.platform != "linux", reason="NVIDIA has a cuobjdump for Linux alone")
def test_cuobjdump_reads_the_same(tmp_path: Path) -> None:
    """Of an empty kernel, made for every kind of architecture by ptxas and fatbinary 13.5."""
    real = (Path(__file__).parent / "data/empty_kernel.fatbin").read_bytes()
    path = tmp_path / "_C.so"
    path.write_bytes(shared(fatbins=[real]))
    told = subprocess.run([cuobjdump(), path], capture_output=True, text=True, check=True).stdout
    theirs = re.findall(r"Fatbin (elf|ptx) code:\n=+\narch = (\S+)", told)
    ours = [(each.kind, each.arch) for each in architectures(path)]
    assert ours == theirs == [(code(text).kind, code(text).arch) for text in CODES]


@pytest.mark.parametrize("at", [0, 4 + 2, 8, 16 + 4, 16 + 8])
def test_a_damaged_one(at: int) -> None:
    whole = fatbin("sm_121a", "ptx sm_121a")
    source = io.BytesIO(shared(fatbins=[whole[:at] + b"\xff\x01" + whole[at + 2 :]]))
    file = elf.read(source, "_C.so")
    with pytest.raises(PatchqError, match=r"_C\.so: the fat binary at byte \d+ is damaged"):
        fatbins(source, file)


@given(st.binary(max_size=200), st.lists(st.sampled_from(CODES)), st.integers(0, 300))
def test_anything_may_stand_there(noise: bytes, codes: list[str], cut: int) -> None:
    whole = fatbin(*codes)
    source = io.BytesIO(shared(fatbins=[whole[: max(0, len(whole) - cut)] + noise]))
    with suppress(PatchqError):
        fatbins(source, elf.read(source, "_C.so"))
