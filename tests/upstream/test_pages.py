"""The forms that an index comes in, sound and not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.upstream import pages
from patchq.upstream.index import IndexAnswer, look_up
from patchq.upstream.pages import Dist
from patchq.upstream.pipconf import IndexSettings
from tests.upstream.conftest import HTML, JSON, Site, entry, versions

DIGEST = "ab" * 32


def test_json(site: Site, settings: IndexSettings, cache: Path) -> None:
    site.add_package(
        "vllm",
        entry("vllm-0.10.0.tar.gz") | {"upload-time": "2026-09-09T01:02:03Z"},
        entry("vllm-0.9.0.tar.gz", yanked="broken"),
        entry("vllm-0.9.1.tar.gz", yanked=True, hashes={"md5": "00"}, size=None),
        entry("vllm-0.11.0rc1.tar.gz"),
        entry("vllm-0.10.0-py3-none-any.whl"),
        entry("vllm-0.10.0.zip"),
        entry("vllm-extra-0.10.0.tar.gz"),
        entry("vllm-later.tar.gz"),
        entry("../vllm-1.0.tar.gz"),
        entry("vllm-2.0\n.tar.gz"),
        entry("vllm-3.0.tar.gz", url="file:///etc/passwd"),
        entry("vllm-4.0.tar.gz", url="ftp://host/vllm-4.0.tar.gz"),
    )
    answer = look_up("VLLM", settings, cache)
    assert (answer.package, answer.complete, answer.from_cache) == ("vllm", True, False)
    assert versions(answer) == ["0.9.0", "0.9.1", "0.10.0", "0.11.0rc1"]
    broken, bare, final, candidate = answer.sdists
    assert (broken.yanked, bare.yanked, final.yanked) == ("broken", "", None)
    assert (bare.sha256, bare.size) == ("", None)
    assert candidate.prerelease
    assert not final.prerelease
    assert (final.uploaded, final.size) == ("2026-09-09T01:02:03Z", 7)
    assert final.url == f"{site.url}/files/vllm-0.10.0.tar.gz"
    assert JSON in site.log[0].headers["Accept"]


def test_html(site: Site, settings: IndexSettings, cache: Path) -> None:
    page = f"""<!DOCTYPE html><html><head><base href="/other/"></head><body>
        <a href="a/some_name-1.0.tar.gz#sha256={DIGEST.upper()}">some_name-1.0.tar.gz</a>
        <a href="b/some.name-1.1%2Bcpu.tar.gz#md5=00" data-yanked="it &lt;b&gt; broke">x</a>
        <a href="b/some-name-1.2.tar.gz?key=1" data-yanked>x</a> <a name="x">no link</a>
        <a href="b/some-name-1.2-py3-none-any.whl">wheel</a> <a href="file:///some-name-9.tar.gz">"""
    site.add("/simple/some-name/", page.encode(), kind=HTML)
    one, two, three = look_up("Some_Name", settings, cache).sdists
    assert one == Dist("1.0", "some_name-1.0.tar.gz", one.url, DIGEST)
    assert one.url == f"{site.url}/other/a/some_name-1.0.tar.gz"
    assert (two.version, two.filename) == ("1.1+cpu", "some.name-1.1+cpu.tar.gz")
    assert (two.yanked, three.yanked) == ("it <b> broke", "")


def test_redirects_are_followed(site: Site, settings: IndexSettings, cache: Path) -> None:
    site.add("/simple/vllm/", status=301, headers={"Location": "/moved/vllm/"})
    page = {"meta": {"api-version": "1.0"}, "files": [entry("vllm-1.tar.gz", url="vllm-1.tar.gz")]}
    site.add("/moved/vllm/", json.dumps(page).encode(), kind=JSON)
    (found,) = look_up("vllm", settings, cache).sdists
    assert found.url == f"{site.url}/moved/vllm/vllm-1.tar.gz"


@pytest.mark.parametrize(
    ("data", "kind", "says"),
    [
        (b"<html>log in</html>", "text/plain", "of type 'text/plain'"),
        (b"{", JSON, "malformed JSON"),
        (b"[]", JSON, "malformed JSON"),
        (b'{"meta": {"api-version": "2.0"}, "files": []}', JSON, "of version '2.0'"),
        (b"[" * 100_000, JSON, "malformed JSON"),
    ],
)
def test_what_is_no_index(
    site: Site, settings: IndexSettings, cache: Path, data: bytes, kind: str, says: str
) -> None:
    site.add("/simple/vllm/", data, kind=kind)
    with pytest.raises(PatchqError, match=says):
        look_up("vllm", settings, cache)


@pytest.mark.parametrize(
    ("status", "tries", "says"),
    [(500, 3, "it answered 500"), (503, 3, "503"), (403, 1, "credentials"), (418, 1, "418")],
)
def test_errors_of_the_server(
    site: Site, settings: IndexSettings, cache: Path, status: int, tries: int, says: str
) -> None:
    site.add("/simple/vllm/", status=status)
    with pytest.raises(PatchqError, match=says):
        look_up("vllm", settings, cache)
    assert len(site.log) == tries


def test_a_page_without_end(
    site: Site, settings: IndexSettings, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_MAX_PAGE", 1 << 20)
    site.add("/simple/vllm/", bytes(2 << 20), kind=JSON)
    with pytest.raises(PatchqError, match=r"no index page .larger than 1 MiB"):
        look_up("vllm", settings, cache)


def test_a_folder_that_cannot_be_read(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "simple/vllm").mkdir(parents=True)
    (tmp_path / "simple/vllm/index.html").write_text('<a href="http://[/vllm-1.0.tar.gz">x</a>')
    with pytest.raises(PatchqError, match="simple cannot be read"):
        look_up("vllm", IndexSettings(urls=((tmp_path / "simple").as_uri(),)), cache)


def test_a_passing_failure_is_tried_again(site: Site, settings: IndexSettings, cache: Path) -> None:
    page = site.add_package("vllm", entry("vllm-1.0.tar.gz"))
    page.failures, page.cuts = [503], [0, 10]
    assert versions(look_up("vllm", settings, cache)) == ["1.0"]


def test_folders_of_this_machine(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files/vllm-1.0.tar.gz").write_bytes(b"archive")
    (tmp_path / "simple/vllm").mkdir(parents=True)
    (tmp_path / "simple/index.html").write_text('<a href="vllm/">vllm</a>')
    (tmp_path / "simple/vllm/index.html").write_text(
        f'<a href="../../files/vllm-1.0.tar.gz">x</a><a href="vllm-0.9.tar.gz#sha256={DIGEST}">y</a>'
    )
    known = entry("vllm-1.0.tar.gz")["hashes"]["sha256"]

    def look(*urls: str, find_links: tuple[str, ...] = ()) -> IndexAnswer:
        return look_up(
            "vllm",
            IndexSettings(urls=urls, find_links=find_links),
            cache,
            refresh=True,
            offline=True,
        )

    indexed = look((tmp_path / "simple").as_uri())
    assert [(each.version, each.sha256) for each in indexed.sdists] == [
        ("0.9", DIGEST),
        ("1.0", known),
    ]
    assert indexed.sdists[1].url == (tmp_path / "files/vllm-1.0.tar.gz").as_uri()
    assert (indexed.complete, indexed.sdists[1].size) == (True, 7)
    for answer in (
        look((tmp_path / "files").as_uri()),
        look(str(tmp_path / "files")),
        look(find_links=(str(tmp_path / "files"),)),
    ):
        assert [(each.version, each.sha256) for each in answer.sdists] == [("1.0", known)]


def test_a_local_index_without_the_package_is_empty(
    site: Site, settings: IndexSettings, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "simple/other").mkdir(parents=True)
    site.add_package("vllm", entry("vllm-1.0.tar.gz"))
    urls = ((tmp_path / "simple").as_uri(), (tmp_path / "none").as_uri(), *settings.urls)
    answer = look_up("vllm", replace(settings, urls=urls), cache)
    assert (versions(answer), answer.complete) == (["1.0"], True)
