"""What a wheel asks for: from the file beside it, from the wheel, from the cache."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.errors import PatchqError
from patchq.upstream.metadata import Metadata, inside, of, parse
from patchq.upstream.pages import Dist
from tests.build.wheels import plain
from tests.upstream.conftest import Site, entry

NAME = "pkg-1.0-py3-none-any.whl"
TEXT = (
    b"Metadata-Version: 2.4\nName: pkg\nVersion: 1.0\nRequires-Dist: torch\n\nRequires-Dist: no\n"
)


@pytest.fixture
def wheel(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dist:
    path = plain(tmp_path, "pkg", "1.0", {"pkg/a.py": b"1\n"}, "torch", "numpy<3")
    data = path.read_bytes()
    site.add(f"/files/{NAME}", data)
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple")
    told = entry(NAME, data)
    url = f"{site.url}/files/{NAME}"
    return Dist("1.0", NAME, url, told["hashes"]["sha256"], len(data), wheel=True)


def test_the_file_beside_the_wheel_is_enough(wheel: Dist, site: Site, cache: Path) -> None:
    site.add(f"/files/{NAME}.metadata", TEXT)
    assert of(wheel, cache).requires == ("torch",), "what stands in the description is none"
    assert site.asked(f"/files/{NAME}") == 0, "the wheel itself is not brought"
    assert of(wheel, cache, offline=True).requires == ("torch",), "and it is kept"
    assert site.asked(f"/files/{NAME}.metadata") == 1


def test_without_it_the_wheel_is_brought(wheel: Dist, site: Site, cache: Path) -> None:
    assert of(wheel, cache).requires == ("torch", "numpy<3")
    assert of(wheel, cache, offline=True).requires == ("torch", "numpy<3")
    assert site.asked(f"/files/{NAME}") == 1


def test_a_file_beside_it_that_is_none_is_not_kept(wheel: Dist, site: Site, cache: Path) -> None:
    site.add(f"/files/{NAME}.metadata", b"<html>not here</html>")
    with pytest.raises(PatchqError, match="names no package"):
        of(wheel, cache)
    assert not list(cache.rglob("*.txt"))


def test_offline_without_anything(wheel: Dist, cache: Path, site: Site) -> None:
    with pytest.raises(PatchqError, match="--offline forbids"):
        of(wheel, cache, offline=True)
    assert not site.log


def test_an_index_that_does_not_answer(
    wheel: Dist, site: Site, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.stop()
    with pytest.raises(PatchqError, match="was not learned from"):
        of(wheel, cache)


def test_the_fields() -> None:
    text = b"Name: a\r\nVersion: 1\r\nLicense-Expression: MIT\r\nRequires-Dist: b\r\n  c\r\n"
    found = parse(text, "it")
    assert (found.name, found.version, found.licence) == ("a", "1", "MIT")
    assert found.requires == ("b",)
    assert isinstance(found, Metadata)
    for bad in (b"", b"Name: a\n", b"\xff\xfe", b"Version: 1\n"):
        with pytest.raises(PatchqError, match="names no package or no version"):
            parse(bad, "it\x1b[31m")


def test_line_ends_of_another_system() -> None:
    assert parse(TEXT.replace(b"\n", b"\r\n"), "it").requires == ("torch",)


@given(st.binary(max_size=60) | st.text("Name: Vrsion1\n\r\t", max_size=60).map(str.encode))
def test_anything_is_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(PatchqError):
        found = parse(data, "it")
        assert found.name and found.version


def test_a_file_that_is_no_wheel(tmp_path: Path) -> None:
    path = tmp_path / NAME
    for data in (b"", b"not a zip", plain(tmp_path / "x", "pkg", "1.0", {}).read_bytes()[:-30]):
        path.write_bytes(data)
        with pytest.raises(PatchqError, match="is not a whole wheel"):
            inside(path)
