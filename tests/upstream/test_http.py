"""Requests reach whom pip's reach, and say nothing that is secret."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.upstream import http
from patchq.upstream.http import redact
from patchq.upstream.index import look_up
from patchq.upstream.pipconf import IndexSettings
from tests.upstream.conftest import Site, entry


def test_credentials_go_to_their_server_only(site: Site, cache: Path) -> None:
    """They are sent, and stand neither in the cache nor in what is said."""
    secret = site.url.replace("http://", "http://me:s%3Acret@")
    settings = IndexSettings(urls=(f"{secret}/simple",), timeout=2)
    site.add_package("vllm", entry("vllm-1.0.tar.gz"))
    (found,) = look_up("vllm", settings, cache).sdists
    assert site.log[0].headers["Authorization"] == "Basic bWU6czpjcmV0"
    assert found.url == f"{site.url}/files/vllm-1.0.tar.gz"
    assert not [file for file in cache.iterdir() if b"cret" in file.read_bytes()]
    with pytest.raises(PatchqError) as caught:
        look_up("none", replace(settings, urls=(f"{secret}/none?key=cret",)), cache / "no")
    assert "cret" not in caught.value.message
    site.stop()
    with pytest.raises(PatchqError) as caught:
        look_up("none", settings, cache)
    assert f"http://***@{site.host}/simple/none/: it cannot be reached" in caught.value.message


def test_why_an_index_is_not_reached(site: Site, cache: Path, closed: str) -> None:
    """In words, without the libraries' own, in which addresses with credentials stand."""
    site.add("/slow/vllm/", delay=0.3)
    site.add("/round/vllm/", status=302, headers={"Location": "/round/vllm/"})
    plain = IndexSettings(urls=(f"{site.url}/simple",), timeout=2.0, retries=0)
    https = site.url.replace("http", "https")

    def why(settings: IndexSettings) -> str:
        with pytest.raises(PatchqError) as caught:
            look_up("vllm", settings, cache)
        assert "secret" not in caught.value.message
        return caught.value.message

    assert "no answer within 0.1 s" in why(replace(plain, urls=(f"{site.url}/slow",), timeout=0.1))
    assert "it redirects in circles" in why(replace(plain, urls=(f"{site.url}/round",)))
    assert "no encrypted connection" in why(replace(plain, urls=(f"{https}/simple",)))
    assert "the proxy cannot be reached" in why(replace(plain, proxy=f"http://me:secret@{closed}"))
    assert "the request failed" in why(replace(plain, urls=("gopher://me:secret@x",)))


@pytest.fixture
def closed() -> str:
    """The address of a port on which nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{sock.getsockname()[1]}"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:secret@host.example.com:8/x", "https://***@host.example.com:8/x"),
        ("https://token@host.example.com/x?key=secret#f", "https://***@host.example.com/x?***"),
        ("https://a@b@host.example.com/", "https://***@host.example.com/"),
        ("/some/folder", "/some/folder"),
        ("https://[secret", "(a malformed address)"),
    ],
)
def test_credentials_are_never_shown(url: str, shown: str) -> None:
    assert redact(url) == shown


def test_local_places() -> None:
    assert http.local_path("file:///a%20b/c") == Path("/a b/c")
    assert http.local_path("file://localhost/a") == Path("/a")
    assert http.local_path("wheels") == Path("wheels")
    assert http.local_path("file://elsewhere/a") is None
    assert http.local_path("https://host.example.com/a") is None


def test_trust() -> None:
    """A named certificate file, the system's, or none for hosts that are trusted unseen."""
    with pytest.raises(PatchqError, match=r"certificate file /none\.pem"):
        http.open_session(IndexSettings(urls=(), ca="/none.pem"))
    settings = IndexSettings(urls=(), trusted_hosts=frozenset({"a.example.com", "b.example.com:8"}))
    with http.open_session(settings) as session:

        def kind(url: str) -> str:
            return type(session.get_adapter(url)).__name__

        assert kind("https://a.example.com/x") == kind("https://a.example.com:8/") == "Unverified"
        assert kind("https://b.example.com:8/") == "Unverified"
        assert (
            kind("https://b.example.com/") == kind("https://a.example.com.evil/") == "SystemTrust"
        )
