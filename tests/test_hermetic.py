"""The seal of conftest.py holds, and lets through what tests need."""

from __future__ import annotations

import http.server
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import requests

UNSEALED = dict(os.environ)
REFUSED = pytest.fail.Exception
FAR = "192.0.2.1"  # reserved for documentation: nobody is there


def test_environment_is_the_same_everywhere(sealed: Path) -> None:
    assert Path.home() == sealed
    assert Path.cwd().parent == sealed
    shown = subprocess.run(
        ["git", "config", "--list", "--show-origin"], capture_output=True, text=True, check=True
    )
    assert shown.stdout == ""
    identity = subprocess.run(
        ["git", "var", "GIT_AUTHOR_IDENT"], capture_output=True, text=True, check=True
    )
    assert identity.stdout == "A. Author <author@example.com> 1767323045 +0000\n"
    assert not [name for name in os.environ if name.startswith(("PIP_INDEX", "GITHUB_"))]


@pytest.mark.parametrize("name", ["connect", "connect_ex"])
def test_connects_elsewhere_are_refused(name: str) -> None:
    with socket.socket() as sock, pytest.raises(REFUSED, match="mark it `network`"):
        getattr(sock, name)((FAR, 9))


def test_datagrams_and_names_are_refused() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as sock, pytest.raises(REFUSED):
        sock.sendto(b"", (FAR, 9))
    with pytest.raises(REFUSED):
        socket.getaddrinfo("example.com", 443)


def test_a_refusal_is_not_taken_for_being_offline() -> None:
    with pytest.raises(REFUSED):
        requests.get(f"http://{FAR}/", timeout=1)


def test_loopback_answers() -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        answer = requests.get(f"http://localhost:{server.server_port}/", timeout=5)
        thread.join()
    assert answer.status_code == 501


def test_a_tests_own_undo_keeps_the_seal(monkeypatch: pytest.MonkeyPatch, sealed: Path) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.undo()
    assert Path.home() == sealed


@pytest.mark.network
def test_network_tests_keep_pips_configuration() -> None:
    """Which index to ask is the machine's word: pip says the same, sealed or not."""

    def configuration(environment: dict[str, str]) -> str:
        command = [sys.executable, "-m", "pip", "--no-input", "config", "list"]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert configuration(dict(os.environ)) == configuration(UNSEALED)
