"""What requirements come to on an index, for a machine that is not this one: by the real uv."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from patchq.errors import PatchqError
from patchq.upstream import resolver
from patchq.upstream.components import Hardware
from patchq.upstream.metadata import inside
from patchq.upstream.resolver import Resolved, resolve
from tests.build.wheels import make, plain
from tests.upstream.conftest import Site, entry

SPARK = Hardware("aarch64", "3.12", "2.39")


@pytest.fixture
def index(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple")
    return site


def publish(site: Site, folder: Path, name: str, *releases: tuple[str, Sequence[str]]) -> None:
    files = []
    for version, requires in releases:
        wheel = plain(folder / "published", name, version, {f"{name}/a.py": b"1\n"}, *requires)
        files.append(told(site, wheel))
    site.add_package(name, *files)


def told(site: Site, wheel: Path) -> dict[str, Any]:
    """The wheel's entry; what it asks for stands beside it, as on a real index."""
    site.add(f"/files/{wheel.name}", wheel.read_bytes())
    site.add(f"/files/{wheel.name}.metadata", inside(wheel))
    return entry(wheel.name, wheel.read_bytes(), **{"core-metadata": True})


def names(found: tuple[Resolved, ...]) -> list[str]:
    return [f"{each.name}=={each.version}" for each in found]


def test_the_newest_that_fits_with_its_hash(index: Site, tmp_path: Path, cache: Path) -> None:
    publish(index, tmp_path, "a", ("1.0", []), ("2.0", ["b<2"]))
    publish(index, tmp_path, "b", ("1.0", []), ("2.0", []))
    found = resolve(["a"], SPARK, cache)
    assert names(found) == ["a==2.0", "b==1.0"]
    assert all(len(each.hashes) == 1 and len(each.hashes[0]) == 64 for each in found)


def test_it_is_resolved_for_the_other_machine(index: Site, tmp_path: Path, cache: Path) -> None:
    here = 'x; platform_machine == "x86_64"'
    there = 'b; platform_machine == "aarch64" and python_version == "3.12"'
    publish(index, tmp_path, "a", ("1.0", [here, there]))
    files = []
    for tag in ("cp312-cp312-manylinux_2_39_aarch64", "cp312-cp312-manylinux_2_28_x86_64"):
        wheel = make(
            tmp_path / f"b-1.0-{tag}.whl",
            {"b.py": tag.encode()},
            info="b-1.0.dist-info",
            metadata=b"Metadata-Version: 2.4\nName: b\nVersion: 1.0\n",
        )
        files.append(told(index, wheel))
    index.add_package("b", *files)
    _, b = resolve(["a"], SPARK, cache)
    assert b.hashes == (files[0]["hashes"]["sha256"],), "no wheel of another machine"


def test_versions_stay_where_they_fit(index: Site, tmp_path: Path, cache: Path) -> None:
    publish(index, tmp_path, "a", ("1.0", []), ("2.0", []))
    assert names(resolve(["a"], SPARK, cache, keep=["a==1.0"])) == ["a==1.0"]
    assert names(resolve(["a>1"], SPARK, cache, keep=["a==1.0"])) == ["a==2.0"]
    assert names(resolve(["a"], SPARK, cache, keep=["a==7", "gone==1"])) == ["a==2.0"]


def test_what_a_release_asks_for_can_be_set_aside(index: Site, tmp_path: Path, cache: Path) -> None:
    publish(index, tmp_path, "a", ("1.0", ["flash-attn", "b"]))
    publish(index, tmp_path, "b", ("1.0", []))
    with pytest.raises(PatchqError, match="do not resolve"):
        resolve(["a"], SPARK, cache)
    assert names(resolve(["a"], SPARK, cache, instead={("a", "1.0"): ["b"]})) == [
        "a==1.0",
        "b==1.0",
    ]


def test_what_contradicts_is_said(index: Site, tmp_path: Path, cache: Path) -> None:
    publish(index, tmp_path, "a", ("1.0", ["b==1.0"]))
    publish(index, tmp_path, "b", ("1.0", []), ("2.0", []))
    with pytest.raises(PatchqError, match=r"depend on b==1\.0 and you require a") as caught:
        resolve(["a", "b==2.0"], SPARK, cache)
    assert "patchq deps check" in caught.value.hint
    assert "\n" not in caught.value.message


def test_nothing_is_built_on_the_way(index: Site, cache: Path) -> None:
    index.add("/files/evil-1.0.tar.gz", b"a source archive whose setup.py would be run")
    index.add_package("evil", entry("evil-1.0.tar.gz"))
    with pytest.raises(PatchqError, match="do not resolve"):
        resolve(["evil"], SPARK, cache)
    assert index.asked("/files/evil-1.0.tar.gz") == 0


def test_a_password_is_in_no_message(
    index: Site, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:s3cret@{index.host}/simple")
    with pytest.raises(PatchqError) as caught:
        resolve(["missing"], SPARK, cache)
    assert "s3cret" not in caught.value.message + caught.value.hint
    asked = [each.headers for each in index.log if "missing" in each.path]
    assert any("Authorization" in each for each in asked), "but the index is told it"


def test_without_uv(index: Site, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver.sysconfig, "get_path", lambda _: "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PatchqError, match="resolver uv is not here"):
        resolve(["a"], SPARK, cache)


def test_an_answer_of_another_form() -> None:
    for text in ("", "packages = 1", "[[packages]]\nname = 'a'\n", "not toml ["):
        if text:
            with pytest.raises(PatchqError, match="is not understood"):
                resolver._read(text)
        else:
            assert resolver._read(text) == ()
