"""Archives arrive whole and verified, or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import shutil
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import filelock
import pytest

from patchq.errors import PatchqError
from patchq.upstream import download
from patchq.upstream.download import alone, fetch
from patchq.upstream.pages import Dist
from patchq.upstream.pipconf import IndexSettings
from tests.upstream.conftest import Reply, Site

NAME = "vllm-1.0.tar.gz"
PATH = f"/files/{NAME}"
DATA = random.Random(7).randbytes(700_000)
DIGEST = hashlib.sha256(DATA).hexdigest()


class Steps:
    def __init__(self) -> None:
        self.seen: list[tuple[str, int, int | None, str]] = []

    def step(self, what: str, done: int = 0, total: int | None = None, unit: str = "") -> None:
        self.seen.append((what, done, total, unit))


@pytest.fixture
def archive(site: Site) -> Reply:
    return site.add(PATH, DATA, etag='"one"')


@pytest.fixture
def sdist(site: Site, archive: Reply) -> Dist:
    return Dist("1.0", NAME, f"{site.url}{PATH}", DIGEST, len(DATA))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "downloads"


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"}


def ranges(site: Site) -> list[str | None]:
    return [asked.headers.get("Range") for asked in site.log]


def test_plain(site: Site, settings: IndexSettings, sdist: Dist, folder: Path) -> None:
    steps = Steps()
    path = fetch(sdist, folder, settings, steps)
    assert path == folder / NAME
    assert path.read_bytes() == DATA
    assert left(folder) == {NAME}
    what = f"downloading {NAME}"
    assert steps.seen[0] == (what, 0, len(DATA), "B")
    assert steps.seen[-1] == (what, len(DATA), len(DATA), "B")
    assert site.log[0].headers["Accept-Encoding"] == "identity"


def test_what_is_there_needs_no_network(
    site: Site, settings: IndexSettings, sdist: Dist, folder: Path
) -> None:
    fetch(sdist, folder, settings)
    site.stop()
    steps = Steps()
    assert fetch(sdist, folder, settings, steps).read_bytes() == DATA
    assert not steps.seen


@pytest.mark.parametrize("wrong", [DATA[:-1] + b"?", DATA[:-1], DATA + b"?"])
@pytest.mark.parametrize("size", [len(DATA), None])
def test_what_is_there_and_wrong_is_replaced(
    settings: IndexSettings, sdist: Dist, folder: Path, wrong: bytes, size: int | None
) -> None:
    folder.mkdir()
    (folder / NAME).write_bytes(wrong)
    assert fetch(replace(sdist, size=size), folder, settings).read_bytes() == DATA


def test_offline_what_is_damaged_is_not_replaced(
    site: Site, settings: IndexSettings, sdist: Dist, folder: Path
) -> None:
    for damage, why in ((None, "is not here"), (DATA[:-1], "is damaged")):
        if damage is not None:
            (folder / NAME).write_bytes(damage)
        with pytest.raises(PatchqError, match=f"{why}, and --offline forbids to download it"):
            fetch(sdist, folder, settings, offline=True)
    assert not site.log


@pytest.mark.parametrize("size", [len(DATA), None])
@pytest.mark.parametrize("cuts", [[100_000], [0], [0, 0, 5, 300_000]])
def test_a_cut_connection_is_resumed(
    site: Site,
    settings: IndexSettings,
    sdist: Dist,
    archive: Reply,
    folder: Path,
    cuts: list[int],
    size: int | None,
) -> None:
    archive.cuts = list(cuts)
    assert fetch(replace(sdist, size=size), folder, settings).read_bytes() == DATA
    done = sum(cuts)
    assert ranges(site)[-1] == (f"bytes={done}-" if done else None)
    if done:
        assert site.log[-1].headers["If-Range"] == '"one"'


def test_a_truncated_archive_of_unstated_length_is_resumed(
    settings: IndexSettings, sdist: Dist, archive: Reply, folder: Path
) -> None:
    """Without Content-Length only the index's size tells that something is missing."""
    archive.chunked, archive.cuts = True, [100_000]
    assert fetch(sdist, folder, settings).read_bytes() == DATA


def test_an_earlier_run_is_resumed(
    site: Site, settings: IndexSettings, sdist: Dist, folder: Path
) -> None:
    folder.mkdir()
    (folder / f"{NAME}.part").write_bytes(DATA[:600_000])
    assert fetch(sdist, folder, settings).read_bytes() == DATA
    assert ranges(site) == ["bytes=600000-"]


@pytest.mark.parametrize("part", [DATA, DATA[:-9] + b"different", DATA + b"more"])
def test_a_part_that_is_whole_wrong_or_too_long(
    site: Site, settings: IndexSettings, sdist: Dist, folder: Path, part: bytes
) -> None:
    folder.mkdir()
    (folder / f"{NAME}.part").write_bytes(part)
    assert fetch(sdist, folder, settings).read_bytes() == DATA
    assert ranges(site) == ([] if part == DATA else [None])


def test_a_part_longer_than_what_the_server_has(
    site: Site, settings: IndexSettings, sdist: Dist, folder: Path
) -> None:
    folder.mkdir()
    (folder / f"{NAME}.part").write_bytes(DATA + b"more")
    assert fetch(replace(sdist, size=None), folder, settings).read_bytes() == DATA
    assert ranges(site) == [f"bytes={len(DATA) + 4}-", None]


def test_a_server_without_ranges_starts_again(
    settings: IndexSettings, sdist: Dist, archive: Reply, folder: Path
) -> None:
    archive.ranges, archive.cuts = False, [400_000, 200_000]
    assert fetch(sdist, folder, settings).read_bytes() == DATA


def test_a_file_that_changed_meanwhile_starts_again(
    site: Site, settings: IndexSettings, sdist: Dist, archive: Reply, folder: Path
) -> None:
    """If-Range: the pieces of two files are not put together."""
    old = site.add(PATH, b"\0" * len(DATA), etag='"old"', cuts=[1000])

    class Switching(Steps):
        def step(self, what: str, done: int = 0, total: int | None = None, unit: str = "") -> None:
            if done:
                site.replies[PATH] = archive

    assert old is not archive
    assert fetch(sdist, folder, settings, Switching()).read_bytes() == DATA
    assert ranges(site) == [None, "bytes=1000-"]


def test_pieces_that_do_not_fit_are_fetched_again_once(
    site: Site, settings: IndexSettings, sdist: Dist, folder: Path
) -> None:
    folder.mkdir()
    (folder / f"{NAME}.part").write_bytes(b"\0" * 1000)
    assert fetch(sdist, folder, settings).read_bytes() == DATA
    assert ranges(site) == ["bytes=1000-", None]


@pytest.mark.parametrize("part", [b"", DATA[:1000]])
def test_a_wrong_sha256(
    site: Site, settings: IndexSettings, sdist: Dist, archive: Reply, folder: Path, part: bytes
) -> None:
    folder.mkdir()
    if part:
        (folder / f"{NAME}.part").write_bytes(part)
    archive.data = DATA[:-1] + b"?"
    actual = hashlib.sha256(archive.data).hexdigest()
    with pytest.raises(PatchqError, match=f"sha256 {actual} instead of {DIGEST}"):
        fetch(sdist, folder, settings)
    assert not left(folder)
    assert len(site.log) == (2 if part else 1)


def test_more_than_was_promised(
    settings: IndexSettings, sdist: Dist, archive: Reply, folder: Path
) -> None:
    archive.data = DATA * 20
    with pytest.raises(PatchqError, match="not what the index promises"):
        fetch(sdist, folder, settings)
    assert not left(folder)


def test_a_connection_that_keeps_breaking(
    site: Site, settings: IndexSettings, sdist: Dist, archive: Reply, folder: Path
) -> None:
    archive.cuts = [1000] * 99
    with pytest.raises(PatchqError, match=r"was not downloaded .*connection") as caught:
        fetch(sdist, folder, settings)
    assert "goes on where it ended" in caught.value.hint
    assert len(site.log) == 5
    assert (folder / f"{NAME}.part").read_bytes() == DATA[:5000]


def test_breaks_do_not_count_while_it_gets_on(
    settings: IndexSettings, sdist: Dist, archive: Reply, folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(download, "_GAIN", 1000)
    archive.cuts = [70_000] * 9
    assert fetch(sdist, folder, settings).read_bytes() == DATA


def test_a_busy_server_is_asked_again(
    settings: IndexSettings, sdist: Dist, archive: Reply, folder: Path
) -> None:
    archive.failures = [503, 429, 500]
    assert fetch(sdist, folder, settings).read_bytes() == DATA


@pytest.mark.parametrize("status", [404, 403, 206])
def test_answers_that_are_final(
    site: Site, settings: IndexSettings, sdist: Dist, archive: Reply, folder: Path, status: int
) -> None:
    archive.status = status
    with pytest.raises(PatchqError, match=f"the server answered {status}"):
        fetch(sdist, folder, settings)
    assert len(site.log) == 1
    assert not left(folder)


def test_another_range_than_was_asked_for(
    site: Site, settings: IndexSettings, sdist: Dist, archive: Reply, folder: Path
) -> None:
    folder.mkdir()
    (folder / f"{NAME}.part").write_bytes(DATA[:1000])
    archive.ranges, archive.failures = False, [206]
    archive.headers = {"Content-Range": f"bytes 2000-{len(DATA) - 1}/{len(DATA)}"}
    assert fetch(sdist, folder, settings).read_bytes() == DATA
    assert ranges(site) == ["bytes=1000-", None]


def test_a_server_that_is_down(
    site: Site, settings: IndexSettings, sdist: Dist, folder: Path
) -> None:
    site.stop()
    secret = replace(sdist, url=sdist.url.replace("//", "//me:secret@") + "?key=secret")
    with pytest.raises(PatchqError, match="it cannot be reached") as caught:
        fetch(secret, folder, settings)
    assert "secret" not in caught.value.message


def test_redirects_are_followed(site: Site, settings: IndexSettings, folder: Path) -> None:
    site.add("/moved", status=302, headers={"Location": PATH})
    site.add(PATH, DATA, cuts=[5000])
    sdist = Dist("1.0", NAME, f"{site.url}/moved", DIGEST)
    assert fetch(sdist, folder, settings).read_bytes() == DATA


def test_an_encoding_on_top_is_not_undone(
    settings: IndexSettings, sdist: Dist, archive: Reply, folder: Path
) -> None:
    """Servers say of a .tar.gz that it is gzip-encoded; its bytes are what was hashed."""
    archive.headers = {"Content-Encoding": "gzip"}
    assert fetch(sdist, folder, settings).read_bytes() == DATA


@pytest.mark.parametrize("digest", ["", "00", DIGEST.upper(), "g" * 64])
def test_without_a_sha256_nothing_is_fetched(
    site: Site, settings: IndexSettings, sdist: Dist, folder: Path, digest: str
) -> None:
    with pytest.raises(PatchqError, match="gives no sha256"):
        fetch(replace(sdist, sha256=digest), folder, settings)
    assert not site.log


@pytest.mark.parametrize("name", ["../x.tar.gz", "a/b.tar.gz", ".hidden", "a\n", ""])
def test_odd_file_names(settings: IndexSettings, sdist: Dist, folder: Path, name: str) -> None:
    with pytest.raises(PatchqError, match="no plain file name"):
        fetch(replace(sdist, filename=name), folder, settings)


def test_an_archive_of_a_local_index(tmp_path: Path, settings: IndexSettings, folder: Path) -> None:
    source = tmp_path / NAME
    source.write_bytes(DATA)
    sdist = Dist("1.0", NAME, source.as_uri(), DIGEST)
    assert fetch(sdist, folder, settings).read_bytes() == DATA
    assert source.exists()
    (folder / NAME).unlink()
    source.unlink()
    with pytest.raises(PatchqError, match="which the index names, cannot be read"):
        fetch(sdist, folder, settings)


# -- the disk


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the disk is full"),
        (errno.EROFS, "cannot be written to .*: Read-only file system"),
        (errno.EIO, "cannot be stored in"),
    ],
)
def test_what_the_disk_refuses(
    settings: IndexSettings, sdist: Dist, folder: Path, monkeypatch: pytest.MonkeyPatch,
    code: int, says: str,
) -> None:  # fmt: skip
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(download, "_put", refuse)
    with pytest.raises(PatchqError, match=says) as caught:
        fetch(sdist, folder, settings)
    assert str(folder) in caught.value.message
    assert NAME not in left(folder)
    if says == "the disk is full":
        assert not left(folder), "what was fetched does not keep the disk full"


def test_space_is_looked_for_first(
    site: Site, settings: IndexSettings, sdist: Dist, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1000))
    with pytest.raises(PatchqError, match="the disk is full"):
        fetch(sdist, folder, settings)
    assert not site.log


def test_a_folder_that_cannot_be(settings: IndexSettings, sdist: Dist, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PatchqError, match="cannot be stored in"):
        fetch(sdist, tmp_path / "file/downloads", settings)


def test_a_read_only_folder(sdist: Dist, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its mode, or for root, whom modes do not stop, by what the lock then says."""
    folder.mkdir()
    if os.geteuid():
        folder.chmod(0o555)
    else:

        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    with (
        pytest.raises(PatchqError, match=r"cannot be written to .*: Permission denied"),
        alone(sdist, folder),
    ):
        pass


# -- two at once


def test_waiting_is_told(sdist: Dist, folder: Path) -> None:
    other = filelock.FileLock(folder / f"{NAME}.lock", thread_local=False)
    other.acquire()

    class Releasing(Steps):
        def step(self, what: str, done: int = 0, total: int | None = None, unit: str = "") -> None:
            super().step(what, done, total, unit)
            other.release()

    steps = Releasing()
    with alone(sdist, folder, steps), pytest.raises(filelock.Timeout):
        other.acquire(timeout=0)
    other.acquire(timeout=0)
    other.release()
    assert [what for what, *_ in steps.seen] == [f"waiting for another patchq that brings {NAME}"]


def test_no_lock_for_what_is_no_file_name(sdist: Dist, folder: Path) -> None:
    with (
        pytest.raises(PatchqError, match="no plain file name"),
        alone(replace(sdist, filename="../x"), folder),
    ):
        pass
    assert not folder.exists()
