"""A member of a wheel, read by ranges though it is packed."""

from __future__ import annotations

import io
import os
import random
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.build.wheelfile import Wheel, digest
from patchq.doctor.packed import Content, FolderFiles, WheelFiles
from patchq.errors import PatchqError
from tests.build.wheels import NAME, make

DATA = random.Random(1).randbytes(3 << 20)
RANGES = st.lists(st.tuples(st.integers(0, len(DATA) + 9), st.integers(0, 99_999)), max_size=6)


@pytest.fixture(scope="module")
def packed() -> zipfile.ZipFile:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("_C.so", DATA)
    return zipfile.ZipFile(raw)


@given(RANGES)
def test_every_range_is_what_stands_there(
    packed: zipfile.ZipFile, ranges: list[tuple[int, int]]
) -> None:
    with packed.open("_C.so") as stream:
        content = Content(stream)
        assert (content.size, content.sha256) == (len(DATA), digest(DATA))
        assert content.seek(0, os.SEEK_END) == len(DATA)
        for at, size in ranges:
            assert content.seek(at) == at
            assert content.read(size) == DATA[at : at + size]
        assert content.seek(-5, os.SEEK_END) == len(DATA) - 5
        assert content.read() == DATA[-5:]
        assert content.all() == DATA


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "site/vllm").mkdir(parents=True)
    (tmp_path / "site/vllm/a.py").touch()
    (tmp_path / "site/vllm/round").symlink_to(tmp_path, target_is_directory=True)
    files = FolderFiles(tmp_path / "site", ("vllm", "none"), {})
    assert files.names == ("vllm/a.py",)
    (tmp_path / "site/vllm/a.py").unlink()
    with pytest.raises(PatchqError, match=r"vllm/a\.py cannot be read"), files.open("vllm/a.py"):
        pass


def test_damage_shows_where_it_is(tmp_path: Path) -> None:
    path = make(tmp_path / NAME, {"vllm/_C.so": DATA})
    data = bytearray(path.read_bytes())
    data[len(DATA) // 2] ^= 0xFF
    path.write_bytes(data)
    damaged = pytest.raises(PatchqError, match=r"vllm/_C\.so is damaged")
    with Wheel(path) as wheel, damaged, WheelFiles(wheel).open("vllm/_C.so"):
        pass
