"""A wheel's Python, of wheels that are right and of hostile ones."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.upstream.archive import Limits
from patchq.upstream.archives import Archives
from patchq.upstream.wheel import python_files
from tests.upstream.conftest import Site, entry


def wheel(path: Path, *members: tuple[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members:
            file.writestr(name, data)
    return path


def test_the_python_and_nothing_else(tmp_path: Path) -> None:
    file = wheel(
        tmp_path / "a.whl",
        ("a/__init__.py", b"x = 1\n"),
        ("a/_C.abi3.so", b"\x7fELF"),
        ("a-1.dist-info/RECORD", b""),
    )
    assert [(each.path, each.data) for each in python_files(file)] == [
        (b"a/__init__.py", b"x = 1\n")
    ]


@pytest.mark.parametrize("name", ["../a.py", "/etc/a.py", "a/../../b.py", ".git/a.py"])
def test_a_member_that_leaves_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(PatchqError, match="leaves its folder"):
        list(python_files(wheel(tmp_path / "a.whl", (name, b""))))


def test_a_member_that_stands_twice(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        file = wheel(tmp_path / "a.whl", ("a.py", b"1"), ("a.py", b"2"))
    with pytest.raises(PatchqError, match="twice"):
        list(python_files(file))


def test_a_member_that_is_too_large(tmp_path: Path) -> None:
    file = wheel(tmp_path / "a.whl", ("a.py", b"x" * 100), ("b.py", b"x" * 100))
    for limits in (Limits(file=99), Limits(total=150)):
        with pytest.raises(PatchqError, match="too large"):
            list(python_files(file, limits=limits))


def test_a_torn_wheel(tmp_path: Path) -> None:
    whole = wheel(tmp_path / "a.whl", ("a.py", b"x = 1\n" * 500)).read_bytes()
    torn = tmp_path / "b.whl"
    for data in (whole[:-30], b"", b"no zip", whole.replace(b"x", b"y", 1)[:40] + whole[41:]):
        torn.write_bytes(data)
        with pytest.raises(PatchqError, match="not a whole wheel"):
            list(python_files(torn))


def test_a_release_without_a_source_archive_is_taken_from_its_wheel(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", site.url + "/simple")
    data = wheel(
        tmp_path / "kit-1.0-py3-none-any.whl", ("kit/__init__.py", b"x = 1\n")
    ).read_bytes()
    site.add("/files/kit-1.0-py3-none-any.whl", data)
    site.add_package("kit", entry("kit-1.0-py3-none-any.whl", data))
    with pytest.raises(PatchqError, match=r"no release 1\.0 with a source archive") as caught:
        Archives("kit", tmp_path / "cache").release("1.0")
    assert caught.value.hint == "it has wheels alone: 1.0"
    archives = Archives("kit", tmp_path / "cache", wheels=True)
    release = archives.release("1.0")
    assert dict(release.facts)["archive"] == "kit-1.0-py3-none-any.whl"
    (found,) = list(archives.store.objects.walk(release.tree))
    assert found[0] == b"kit/__init__.py"
    archives.close()
