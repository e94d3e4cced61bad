"""Archives and wheels that depend on nothing but what is in them."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import patchq
from patchq.release import archive, own
from patchq.release.archive import Member
from tests.build.wheels import recorded

LONG = "a/" * 80 + "name"
MEMBERS = [
    Member("bin/run", "100755", b"#!/bin/sh\n"),
    Member("big", "100644", bytes(range(256)) * 1000),
    Member("empty", "100644", b""),
    Member("link", "120000", b"bin/run"),
    Member(LONG, "100644", "é\n".encode()),
    Member("n\udce9", "100644", b"latin\n"),
]


def test_tar_and_gzip_take_it(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    archive.write(path, MEMBERS, 1_000_000_000)
    subprocess.run(["gzip", "-t", path], check=True)
    out = tmp_path / "out"
    out.mkdir()
    subprocess.run(["tar", "xzf", path, "-C", out], check=True)
    for member in MEMBERS:
        place = os.path.join(os.fsencode(out), os.fsencode(member.name))
        if member.mode == "120000":
            assert os.readlink(place) == member.data
            continue
        with open(place, "rb") as file:
            assert file.read() == member.data
        assert os.stat(place).st_mtime == 1_000_000_000
        assert bool(os.stat(place).st_mode & 0o111) is (member.mode == "100755")
    with tarfile.open(path) as tar:
        assert {(info.uid, info.gid, info.uname, info.gname) for info in tar} == {(0, 0, "", "")}


def test_the_same_members_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        archive.write(tmp_path / name, MEMBERS, 7)
    data = (tmp_path / "a").read_bytes()
    assert data == (tmp_path / "b").read_bytes()
    stored = gzip.decompress(data)
    assert len(data) < len(stored) + 200, "nothing is packed: another zlib would pack it otherwise"


def test_what_is_no_small_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    archive.write(path, MEMBERS, 7)
    assert archive.read(path, 1 << 20)["big"] == MEMBERS[1].data
    with pytest.raises(ValueError, match="too large"):
        archive.read(path, 1000)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(ValueError, match="no whole archive"):
        archive.read(path, 1 << 20)
    with pytest.raises(ValueError, match="no whole archive"):
        archive.read(tmp_path / "none", 1 << 20)


def test_patchq_itself_is_a_wheel_that_pip_takes(tmp_path: Path) -> None:
    path = tmp_path / own.name()
    own.write(path)
    target = tmp_path / "target"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*pip, "--target", target, path], check=True)
    code = "import patchq, sys; from patchq.cli.main import main; sys.argv = ['patchq', '--version']; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"patchq {patchq.__version__}\n", done.stderr
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        assert {info.date_time for info in wheel.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert not [name for name in names if name.endswith(".pyc")]
    assert "patchq/release/install.sh" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert set(recorded(path)) == set(names)
