"""Wheels are read without trusting them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from patchq.build.wheelfile import Wheel, Writer
from patchq.errors import PatchqError
from tests.build.wheels import INFO, NAME, contents, make

FILES = {"vllm/a.py": b"x = 1\n" * 400, "vllm/b.so": bytes(range(256)) * 8}


def test_a_wheel_without_record_or_with_two_infos(tmp_path: Path) -> None:
    with pytest.raises(PatchqError, match=r"no one \.dist-info"):
        Wheel(make(tmp_path / NAME, FILES, record=False))
    path = make(tmp_path / NAME, {**FILES, "other-1.dist-info/METADATA": b""})
    with pytest.raises(PatchqError, match=r"no one \.dist-info"):
        Wheel(path)


@pytest.mark.parametrize("name", ["../out.py", "/etc/out.py", "vllm/../../out.py"])
def test_a_member_that_leaves_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(PatchqError, match="leaves its folder"):
        Wheel(make(tmp_path / NAME, {**FILES, name: b""}))


def test_a_member_that_is_not_recorded(tmp_path: Path) -> None:
    path = make(tmp_path / NAME, FILES)
    with zipfile.ZipFile(path, "a") as wheel:
        wheel.writestr("vllm/smuggled.py", b"")
    with pytest.raises(PatchqError, match=r"RECORD does not name vllm/smuggled\.py"):
        Wheel(path)


def test_torn_wheels(tmp_path: Path) -> None:
    whole = make(tmp_path / NAME, FILES).read_bytes()
    torn = tmp_path / "torn.whl"
    for data in (b"", b"no zip at all", whole[: len(whole) // 2], whole[:-20]):
        torn.write_bytes(data)
        with pytest.raises(PatchqError, match="not a whole wheel"):
            Wheel(torn)


def test_a_member_whose_bytes_were_changed(tmp_path: Path) -> None:
    path = make(tmp_path / NAME, FILES)
    data = bytearray(path.read_bytes())
    at = data.index(b"vllm/a.py") + len(b"vllm/a.py") + 3
    data[at] ^= 0xFF
    path.write_bytes(data)
    with Wheel(path) as wheel, pytest.raises(PatchqError, match="not a whole wheel"):
        wheel.read("vllm/a.py")


def test_a_header_that_lies_about_its_place(tmp_path: Path) -> None:
    path = make(tmp_path / NAME, FILES)
    with Wheel(path) as wheel:
        info = wheel.members["vllm/b.so"]
        info.header_offset += 7
        with pytest.raises(PatchqError, match="not where its directory says"):
            list(wheel.packed(info))
        info.header_offset = path.stat().st_size - 3
        with pytest.raises(PatchqError, match="not a whole wheel"):
            list(wheel.packed(info))


def test_a_name_with_a_comma_is_quoted_in_the_record(tmp_path: Path) -> None:
    with Wheel(make(tmp_path / NAME, FILES)) as wheel:
        target = tmp_path / "new.whl"
        Writer(wheel, target, INFO).write({}, {"vllm/a,b.py": b"1"})
    assert contents(target)[f"{INFO}/RECORD"].startswith(b'"vllm/a,b.py",sha256=')
