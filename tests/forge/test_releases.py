"""Releases at the forge: what is read, what is written, and that nothing is written twice."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests

from patchq.forge import releases
from patchq.forge.client import Client
from patchq.forge.errors import ForgeError
from patchq.forge.writing import Writer
from tests.forge.conftest import QUICK, Said
from tests.support.forge.accidents import Accident
from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge
from tests.support.forge.shelf import Release

REPO = "acme/runner"
BUSY = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes."}


@pytest.fixture
def repo(forge: Forge) -> Repo:
    made = forge.repo(REPO)
    made.tag("release-1")
    return made


@pytest.fixture
def writer(forge: Forge, said: Said) -> Iterator[Writer]:
    with Writer(forge.api, forge.token, progress=said, patience=QUICK) as made:
        yield made


@pytest.fixture
def draft(repo: Repo, writer: Writer) -> releases.Release:
    return releases.create(writer, REPO, "release-1", "Release 1", "It goes on.")


def file(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def posts(forge: Forge) -> int:
    return sum(each.method == "POST" for each in forge.asked)


def test_a_release_from_draft_to_download(
    forge: Forge,
    repo: Repo,
    writer: Writer,
    anyone: Client,
    draft: releases.Release,
    tmp_path: Path,
) -> None:
    assert (draft.number, draft.draft, draft.assets) == (1, True, ())
    assert releases.listed(writer, REPO) == (draft,)
    assert releases.listed(anyone, REPO) == (), "a draft is for those who may write"
    assert releases.find(writer, REPO, 1) is None, "it is not found by its tag"
    data = b"abc" * 1000
    sent = releases.upload(writer, draft, file(tmp_path, "a+b.whl", data))
    assert (sent.name, sent.size, sent.uploaded) == ("a+b.whl", 3000, True)
    assert sent.sha256 == hashlib.sha256(data).hexdigest()
    assert requests.get(sent.url, timeout=5).status_code == 404, "nor has anybody its files"
    releases.edit(writer, REPO, draft, "Release one", "It went on.")
    out = releases.publish(writer, REPO, draft, newest=True)
    assert (out.draft, out.notes, out.title) == (False, "It went on.", "Release one")
    assert releases.find(anyone, REPO, 1) == replace(out, assets=(sent,))
    assert releases.assets(REPO, 1, anyone) == (sent,)
    assert releases.notes(REPO, 1, anyone) == "It went on."
    assert releases.latest(anyone, REPO) == out
    assert requests.get(sent.url, timeout=5).content == data
    part = requests.get(sent.url, headers={"Range": "bytes=2990-"}, timeout=5)
    assert (part.status_code, part.content) == (206, data[2990:])
    assert releases.assets(REPO, 1, anyone)[0].downloads == 2


def test_nothing_is_there(repo: Repo, anyone: Client) -> None:
    assert releases.listed(anyone, REPO) == ()
    assert releases.latest(anyone, REPO) is None
    assert releases.tag(anyone, REPO, "release-2") is None
    assert releases.tag(anyone, REPO, "release-1") == repo.bare.sha("main")
    assert releases.notes(REPO, 7, anyone) == ""
    with pytest.raises(ForgeError, match="has no release 7 of acme/runner") as caught:
        releases.assets(REPO, 7, anyone)
    assert caught.value.kind == "absent"


def test_the_usual_api(forge: Forge, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an installer asks: nobody gives it a client."""
    monkeypatch.setenv("GITHUB_API_URL", forge.api)
    monkeypatch.setenv("GH_TOKEN", forge.token)
    repo.private = True
    with pytest.raises(ForgeError, match="has no release 1 of acme/runner"):
        releases.assets(REPO, 1)
    assert forge.asked[-1].token == forge.token


def test_many_pages(repo: Repo, writer: Writer) -> None:
    for number in range(1, 103):
        repo.shelf.create(Release(number, f"release-{number}", "", "", repo.clock.now))
    found = [each.number for each in releases.listed(writer, REPO)]
    assert found == list(range(102, 0, -1))


@pytest.mark.parametrize("after", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("ends", ["502", "cut"])
def test_nothing_is_sent_twice(
    forge: Forge, repo: Repo, writer: Writer, ends: str, after: bool
) -> None:
    forge.accident = Accident(1, ends, after)
    with pytest.raises(ForgeError) as caught:
        releases.create(writer, REPO, "release-1", "", "")
    assert caught.value.kind == ("server" if ends == "502" else "network")
    assert forge.accident.count == 1, "PyGithub alone would have asked again"
    assert len(repo.shelf.releases) == after


@pytest.mark.parametrize("status", [403, 429])
def test_limits_are_waited_for(
    forge: Forge, writer: Writer, draft: releases.Release, tmp_path: Path, status: int
) -> None:
    """A limit is told before anything is done: the whole body is sent again."""
    forge.fails("rest", status, BUSY)
    sent = releases.upload(writer, draft, file(tmp_path, "a", b"abc" * 50_000))
    assert sent.sha256 == hashlib.sha256(b"abc" * 50_000).hexdigest()
    assert posts(forge) == 3


def test_reads_are_asked_again(forge: Forge, repo: Repo, writer: Writer) -> None:
    forge.fails("rest", 502, b"<html>")
    assert releases.listed(writer, REPO) == () and forge.count() == 2


def test_half_an_upload(
    forge: Forge, writer: Writer, draft: releases.Release, tmp_path: Path
) -> None:
    """What is left of it takes the name, until it is deleted."""
    path = file(tmp_path, "a", b"abcdef")
    forge.accident = Accident(1, "502", half=3)
    with pytest.raises(ForgeError):
        releases.upload(writer, draft, path)
    (left,) = releases.assets_of(writer, REPO, draft.id)
    assert (left.name, left.uploaded, left.sha256) == ("a", False, None)
    with pytest.raises(ForgeError, match="Validation Failed; already_exists") as caught:
        releases.upload(writer, draft, path)
    assert caught.value.kind == "refused"
    releases.delete_asset(writer, REPO, left)
    releases.delete_asset(writer, REPO, left)
    assert releases.upload(writer, draft, path).uploaded


def test_what_is_locked(
    repo: Repo, writer: Writer, draft: releases.Release, tmp_path: Path
) -> None:
    repo.shelf.locks = True
    sent = releases.upload(writer, draft, file(tmp_path, "a", b"abc"))
    out = releases.publish(writer, REPO, draft, newest=True)
    assert out.immutable
    with pytest.raises(ForgeError, match="Cannot upload assets to an immutable release"):
        releases.upload(writer, out, file(tmp_path, "b", b"abc"))
    with pytest.raises(ForgeError, match="Cannot delete assets of an immutable release"):
        releases.delete_asset(writer, REPO, sent)
    assert releases.edit(writer, REPO, out, out.title, "Mended.").notes == "Mended."


def test_a_published_release_is_not_deleted(writer: Writer, draft: releases.Release) -> None:
    out = releases.publish(writer, REPO, draft, newest=True)
    with pytest.raises(AssertionError, match="never deleted"):
        releases.delete_draft(writer, REPO, out)


def test_a_name_that_is_not_kept(writer: Writer, draft: releases.Release, tmp_path: Path) -> None:
    with pytest.raises(ForgeError, match=r"calls a b 'a\.b'"):
        releases.upload(writer, draft, file(tmp_path, "a b", b"abc"))


def test_without_rights(forge: Forge, repo: Repo) -> None:
    forge.others.add("ghp_reader")
    with (
        Writer(forge.api, "ghp_reader", patience=QUICK) as reader,
        pytest.raises(ForgeError) as caught,
    ):
        releases.create(reader, REPO, "release-1", "", "")
    assert caught.value.kind == "absent" and "ghp_" not in caught.value.sentence


ODD: tuple[Any, ...] = ([], {}, {"id": "1"}, {"id": True}, "text", None, [1])


@pytest.mark.parametrize("body", ODD, ids=str)
def test_answers_of_another_kind(forge: Forge, repo: Repo, writer: Writer, body: Any) -> None:
    forge.fails("rest", 200, body)
    with pytest.raises(ForgeError) as caught:
        releases.create(writer, REPO, "release-1", "", "")
    assert caught.value.kind == "answer"


def test_facts_of_another_kind(forge: Forge, repo: Repo, anyone: Client) -> None:
    """What is missing or odd is unknown: and what does not say that it is published is none."""
    odd = {"id": 3, "name": "\ud800", "digest": "md5:1", "size": -1, "browser_download_url": "x y"}
    forge.fails("rest", 200, [{"id": 1, "tag_name": 7, "assets": [odd]}, "x"])
    (found,) = releases.listed(anyone, REPO)
    assert (found.draft, found.number, found.page) == (True, None, "")
    assert found.assets == (releases.Asset(3, "?", 0, False, None, 0, ""),)


# Where a token may go


@pytest.mark.parametrize(
    ("api", "url", "ours"),
    [
        ("https://api.github.com", "https://uploads.github.com/repos/a/b", True),
        ("https://api.acme.ghe.com", "https://uploads.acme.ghe.com/repos/a/b", True),
        ("https://ghe.example/api/v3", "https://ghe.example/api/uploads/repos/a/b", True),
        ("https://api.github.com", "https://uploads.github.com:8443/repos/a/b", False),
        ("https://api.github.com", "http://uploads.github.com/repos/a/b", False),
        ("https://api.github.com", "https://uploads.github.com.evil.example/a", False),
        ("https://api.github.com", "https://me@uploads.github.com/a", False),
        ("https://api.github.com", "", False),
    ],
)
def test_which_hosts_are_ours(tmp_path: Path, api: str, url: str, ours: bool) -> None:
    with Writer(api, "secret", patience=QUICK) as writer:
        assert writer._is_ours(url) is ours


def test_a_release_that_sends_us_elsewhere(
    forge: Forge, writer: Writer, draft: releases.Release, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        away = replace(draft, upload_url=f"http://127.0.0.1:{port}/uploads{{?name}}")
        with pytest.raises(ForgeError, match="wants files sent to another host") as caught:
            releases.upload(writer, away, file(tmp_path, "a", b"abc"))
        other.settimeout(0)
        with pytest.raises(BlockingIOError):
            other.accept()
    assert forge.token not in caught.value.sentence


def test_a_server_that_says_nothing(tmp_path: Path) -> None:
    """PyGithub's own connection for uploads would wait for ever."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        lines: list[socket.socket] = []
        threading.Thread(target=lambda: lines.append(silent.accept()[0]), daemon=True).start()
        with (
            Writer(url, "secret", patience=replace(QUICK, timeout=1)) as writer,
            pytest.raises(ForgeError, match="no answer within 1 s"),
        ):
            writer.upload(f"{url}/uploads", "a", file(tmp_path, "a", b"abc"))
        for line in lines:
            line.close()


def test_progress_of_a_file(
    writer: Writer, draft: releases.Release, said: Said, tmp_path: Path
) -> None:
    releases.upload(writer, draft, file(tmp_path, "a", b"x" * 3_000_000))
    assert said.lines.count("sending a") == 3
