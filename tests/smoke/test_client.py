"""Addresses, and what a server's refusals and faults become."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from patchq.errors import PatchqError, UsageError
from patchq.smoke import client as module
from patchq.smoke.client import Client, address
from patchq.smoke.model import NotRun, Wrong

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"


@contextmanager
def raw(*sends: bytes) -> Iterator[str]:
    """A server of one connection: reads a request, sends these bytes, hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                for each in sends:
                    connection.sendall(each)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize(
    "given", ["http://h:80", "http://h:80/", "http://h:80/v1", "http://h:80/v1/"]
)
def test_an_address_is_the_root(given: str) -> None:
    assert address(given) == "http://h:80"


@pytest.mark.parametrize(
    "given", ["", "h:80", "ftp://h", "http://", "http://[", "http://h:99999", "file:///etc/passwd"]
)
def test_what_is_no_address(given: str) -> None:
    with pytest.raises(UsageError, match="no address of a server"):
        address(given)


def test_an_answer_cut_in_its_transfer() -> None:
    with raw(HEAD, b"5\r\nvllm:\r\n") as url, pytest.raises(NotRun, match="the stream was cut"):
        Client(url).metrics()


def test_a_server_that_hangs_up() -> None:
    with raw() as url, pytest.raises(NotRun, match="it hung up"):
        Client(url).metrics()


def test_an_answer_without_end_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST", 1 << 20)
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with raw(HEAD, *[chunk] * 17, b"0\r\n\r\n") as url, pytest.raises(NotRun, match="larger than"):
        Client(url).metrics()


def test_a_server_that_is_no_such_server() -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"
    with raw(page) as url, pytest.raises(PatchqError, match="does not answer with JSON"):
        Client(url).about()


def test_a_refusal_is_told_in_the_servers_words() -> None:
    body = b'{"error": {"message": "no  such\\nmodel"}}'
    head = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n" % len(body)
    with raw(head + body) as url, pytest.raises(Wrong, match="/x answers 400: no such model"):
        Client(url).post("/x", {})
