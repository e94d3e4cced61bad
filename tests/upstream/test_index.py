"""What releases there are: the cache, being offline, several indexes, choosing one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.upstream import pipconf
from patchq.upstream.index import IndexAnswer, choose, look_up, normalized
from patchq.upstream.pages import Dist
from patchq.upstream.pipconf import IndexSettings
from tests.upstream.conftest import Site, entry, versions

DIGEST = "ab" * 32


def test_fresh_answers_come_from_the_cache(
    site: Site, settings: IndexSettings, cache: Path
) -> None:
    site.add_package("vllm", entry("vllm-1.0.tar.gz", yanked="why"), entry("vllm-1.1rc1.tar.gz"))
    first = look_up("vllm", settings, cache, now=lambda: 1000.0)
    site.add_package("vllm", entry("vllm-2.0.tar.gz"))
    again = look_up("vllm", settings, cache, now=lambda: 1599.0)
    assert again == replace(first, from_cache=True)
    assert again.as_of == datetime(1970, 1, 1, 0, 16, 40, tzinfo=UTC)
    assert len(site.log) == 1
    assert versions(look_up("vllm", settings, cache, now=lambda: 1600.0)) == ["2.0"]
    assert len(site.log) == 2
    look_up("vllm", settings, cache, now=lambda: 1500.0)
    assert len(site.log) == 3, "an answer from the future is not fresh"
    look_up("vllm", settings, cache, now=lambda: 1500.0, refresh=True)
    assert len(site.log) == 4


def test_the_cached_path_imports_little(site: Site, settings: IndexSettings, cache: Path) -> None:
    """A sync with nothing to do has 300 ms in all."""
    site.add_package("vllm", entry("vllm-1.0.tar.gz"))
    look_up("vllm", settings, cache)
    program = (
        "import sys, pathlib; from patchq.upstream.pipconf import read_settings\n"
        "from patchq.upstream.index import choose, look_up\n"
        f"answer = look_up('vllm', read_settings(), pathlib.Path({str(cache)!r}))\n"
        "assert answer.from_cache and choose(answer, '1.0') == choose(answer, 'latest')\n"
        "heavy = {'requests', 'urllib3', 'packaging', 'subprocess', 'ssl', 'html', 'filelock'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    environ = {"PIP_INDEX_URL": settings.urls[0], "PIP_CONFIG_FILE": "/dev/null"}
    subprocess.run([sys.executable, "-c", program], env=environ, check=True)


@pytest.mark.parametrize(
    "damage",
    [b"", b"{}", b"[]", b'{"format": 0}', b'{"format": 2, "package": "vllm", "as_of": 1e99, "dists": []}', b"\xff",
     b'{"format": 2, "package": "vllm", "as_of": 1, "dists": [[1]]}'],
)  # fmt: skip
def test_a_damaged_cache_is_as_none(
    site: Site, settings: IndexSettings, cache: Path, damage: bytes
) -> None:
    site.add_package("vllm", entry("vllm-1.0.tar.gz"))
    look_up("vllm", settings, cache)
    (file,) = cache.iterdir()
    file.write_bytes(damage)
    assert versions(look_up("vllm", settings, cache)) == ["1.0"]
    assert look_up("vllm", settings, cache).from_cache


def test_a_cache_that_cannot_be_written_does_no_harm(
    site: Site, settings: IndexSettings, tmp_path: Path
) -> None:
    site.add_package("vllm", entry("vllm-1.0.tar.gz"))
    (tmp_path / "file").touch()
    assert versions(look_up("vllm", settings, tmp_path / "file/cache")) == ["1.0"]


def test_offline(site: Site, settings: IndexSettings, cache: Path) -> None:
    with pytest.raises(PatchqError, match="nothing is cached") as caught:
        look_up("vllm", settings, cache, offline=True)
    assert caught.value.hint == "run it once without --offline"
    assert not site.log
    site.add_package("vllm", entry("vllm-1.0.tar.gz"))
    look_up("vllm", settings, cache, now=lambda: 0.0)
    old = look_up("vllm", settings, cache, offline=True, refresh=True)
    assert (old.complete, old.from_cache, versions(old)) == (True, True, ["1.0"])
    assert len(site.log) == 1


def test_offline_does_not_ask_pip(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipconf, "default_index", lambda: pytest.fail("pip was asked"))
    with pytest.raises(PatchqError, match="not known"):
        look_up("vllm", IndexSettings(urls=(pipconf.PIP_DEFAULT,)), cache, offline=True)


def test_an_index_that_is_down(site: Site, settings: IndexSettings, cache: Path) -> None:
    site.add_package("vllm", entry("vllm-1.0.tar.gz"))
    first = look_up("vllm", settings, cache, now=lambda: 0.0)
    site.stop()
    assert look_up("vllm", settings, cache) == replace(first, from_cache=True, complete=False)
    with pytest.raises(PatchqError, match=f"{site.host}/simple/other/: it cannot be reached"):
        look_up("other", settings, cache)


def test_several_indexes(site: Site, cache: Path, tmp_path: Path) -> None:
    settings = IndexSettings(urls=(f"{site.url}/one", f"{site.url}/two"), timeout=2)
    site.add_package("vllm", entry("vllm-1.0.tar.gz", b"one"), base="/one")
    two = site.add_package(
        "vllm", entry("vllm-1.0.tar.gz", b"two"), entry("vllm-0.9.tar.gz"), base="/two"
    )
    answer = look_up("vllm", settings, cache, now=lambda: 0.0)
    assert versions(answer) == ["0.9", "1.0"]
    assert answer.sdists[1].sha256 == entry("", b"one")["hashes"]["sha256"]

    two.status = 500
    site.add_package("vllm", entry("vllm-1.1.tar.gz"), base="/one")
    partial = look_up("vllm", settings, cache)
    assert (versions(partial), partial.complete) == (["0.9", "1.0", "1.1"], False)
    assert look_up("vllm", settings, tmp_path / "empty").complete is False
    two.status = 404
    assert versions(look_up("vllm", settings, cache)) == ["1.1"]


def test_answers_of_different_indexes_do_not_mix(site: Site, cache: Path) -> None:
    for name, version in (("one", "1.0"), ("two", "2.0")):
        site.add_package("vllm", entry(f"vllm-{version}.tar.gz"), base=f"/{name}")
        settings = IndexSettings(urls=(f"{site.url}/{name}",))
        assert versions(look_up("vllm", settings, cache)) == [version]


def test_a_package_that_nobody_has(site: Site, settings: IndexSettings, cache: Path) -> None:
    with pytest.raises(PatchqError, match="no configured package index has a package 'vlmm'"):
        look_up("vlmm", settings, cache)
    assert not cache.exists()
    site.add_package("wheels", entry("wheels-1.0-py3-none-any.whl"))
    answer = look_up("wheels", settings, cache)
    assert answer.sdists == ()
    with pytest.raises(PatchqError, match="no release"):
        choose(answer, "1.0")


@pytest.mark.parametrize(
    "name", ["", "../x", "a/b", "-a", "a-", "a b", "a\n", "é", "a" * 300, ".."]
)
def test_what_is_no_package_name(settings: IndexSettings, cache: Path, name: str) -> None:
    with pytest.raises(PatchqError, match="not the name of a package"):
        look_up(name, settings, cache)


def test_names_are_normalized() -> None:
    assert normalized("Foo._-Bar.x") == "foo-bar-x"


# -- choosing


def sdist(version: str, *, yanked: str | None = None, prerelease: bool = False) -> Dist:
    return Dist(version, f"vllm-{version}.tar.gz", "", DIGEST, None, yanked, prerelease)


def known(*sdists: Dist, complete: bool = True) -> IndexAnswer:
    return IndexAnswer("vllm", sdists, datetime(2026, 1, 2, 3, 4, tzinfo=UTC), False, complete)


ANSWER = known(
    *(sdist(f"0.{number}.0") for number in range(20, 33)),
    sdist("0.33.0"),
    sdist("0.33.1", yanked="broken"),
    sdist("0.34.0rc1", prerelease=True),
)


@pytest.mark.parametrize(
    ("wanted", "version"),
    [
        ("latest", "0.33.0"),
        ("0.29.0", "0.29.0"),
        ("v0.29.0", "0.29.0"),
        ("0.29", "0.29.0"),
        ("0.33.1", "0.33.1"),
        ("0.34.0-RC.1", "0.34.0rc1"),
    ],
)
def test_choosing(wanted: str, version: str) -> None:
    assert choose(ANSWER, wanted).version == version


@pytest.mark.parametrize("wanted", ["0.34.0", "main", "", "../0.29.0"])
def test_an_unknown_release_says_which_exist(wanted: str) -> None:
    with pytest.raises(PatchqError) as caught:
        choose(ANSWER, wanted)
    assert "0.33.0, 0.33.1 (yanked), 0.34.0rc1" in caught.value.hint
    assert "0.20.0" not in caught.value.hint


def test_close_matches_and_age_are_told() -> None:
    with pytest.raises(PatchqError) as caught:
        choose(replace(ANSWER, complete=False), "0.20.1")
    assert "close to it: 0.20.0" in caught.value.hint
    assert "as of 2026-01-02 03:04 UTC" in caught.value.hint


def test_no_final_release() -> None:
    with pytest.raises(PatchqError, match="neither a pre-release nor yanked"):
        choose(known(sdist("1.0rc1", prerelease=True), sdist("1.0", yanked="")), "latest")


def test_wheels_are_listed_and_never_chosen_as_a_release(
    site: Site, settings: IndexSettings, cache: Path
) -> None:
    wheels = ("vllm-1.1-cp38-abi3-manylinux_2_28_aarch64.whl", "vllm-2.0-py3-none-any.whl")
    site.add_package("vllm", entry("vllm-1.1.tar.gz"), *map(entry, wheels), entry("vllm-1.x.whl"))
    look_up("vllm", settings, cache)
    answer = look_up("vllm", settings, cache)
    assert answer.from_cache
    assert choose(answer, "latest").filename == "vllm-1.1.tar.gz"
    assert [each.filename for each in answer.wheels("1.1")] == [wheels[0]]
    with pytest.raises(PatchqError, match=r"no release 2\.0 with a source archive"):
        choose(answer, "2.0")
