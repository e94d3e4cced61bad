"""Every test runs sealed: nothing of the user, the machine or the network reaches it."""

from __future__ import annotations

import ipaddress
import itertools
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase

ROOT = Path(__file__).resolve().parents[1]

# What a user, a git hook or a CI service may have set, and what changes how a tool behaves.
FOREIGN_PREFIXES = ("GIT_", "GITHUB_", "GH_", "PATCHQ_", "QUILT_", "XDG_", "LC_")
FOREIGN = frozenset(
    {
        "CLICOLOR_FORCE",
        "COLORTERM",
        "EDITOR",
        "FORCE_COLOR",
        "LANG",
        "LANGUAGE",
        "LESS",
        "LINES",
        "PAGER",
        "PYTEST_ADDOPTS",
        "PYTHONDONTWRITEBYTECODE",
        "SOURCE_DATE_EPOCH",
        "TTY_COMPATIBLE",
        "TTY_INTERACTIVE",
        "VISUAL",
    }
)
PROXIES = frozenset({"ALL_PROXY", "FTP_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"})

# Where pip looks for the user's own configuration, relative to the home folder.
PIP_CONFIGURATION = (".config/pip", ".pip", "Library/Application Support/pip")

HOMES = itertools.count()

settings.register_profile(
    "here",
    deadline=None,
    database=DirectoryBasedExampleDatabase(ROOT / ".hypothesis" / "examples"),
)
settings.register_profile("ci", deadline=None, database=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_configure() -> None:
    # Whoever starts the tests in the background of a script has Ctrl-C ignored, for all that we
    # start, too: then the tests of Ctrl-C would wait for what never comes.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() == 0:
        return
    skip = pytest.mark.skip(reason="needs root (run `make test` as root, as CI does)")
    for item in items:
        if "root" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def sealed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """An empty home and environment, fixed identities and dates, no network but loopback.

    Yields the home folder. The current folder is an empty one inside it, so that nothing that
    a test runs finds this repository by accident; tests name their files by `__file__`.
    """
    network = request.node.get_closest_marker("network") is not None
    # Numbered here: pytest would look through all that were made before.
    home = tmp_path_factory.mktemp(f"sealed{next(HOMES)}", numbered=False)
    old_mask = os.umask(0o022)
    # Not the test's own monkeypatch: its undo() must not break the seal.
    with pytest.MonkeyPatch.context() as monkeypatch:
        _seal(monkeypatch, home, network=network)
        yield home
    os.umask(old_mask)


def _seal(monkeypatch: pytest.MonkeyPatch, home: Path, *, network: bool) -> None:
    real_home = Path.home()
    real_config = os.environ.get("XDG_CONFIG_HOME")
    real_config_dirs = os.environ.get("XDG_CONFIG_DIRS")
    for name in list(os.environ):
        foreign = name in FOREIGN or name.startswith(FOREIGN_PREFIXES)
        if foreign or (not network and (name.startswith("PIP_") or name.upper() in PROXIES)):
            monkeypatch.delenv(name)
    cwd = home / "cwd"
    cwd.mkdir()
    for name, value in {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "PATCHQ_CACHE": str(home / "patchq-cache"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "A. Author",
        "GIT_AUTHOR_EMAIL": "author@example.com",
        "GIT_AUTHOR_DATE": "2026-01-02T03:04:05+00:00",
        "GIT_COMMITTER_NAME": "C. Committer",
        "GIT_COMMITTER_EMAIL": "committer@example.com",
        "GIT_COMMITTER_DATE": "2026-02-03T04:05:06+00:00",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "COLUMNS": "100",
        "EDITOR": "false",
        "PAGER": "cat",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(cwd)

    if network:
        if real_config_dirs is not None:
            monkeypatch.setenv("XDG_CONFIG_DIRS", real_config_dirs)
        _keep_pip_configuration(home, real_home, real_config)
    else:
        monkeypatch.setenv("XDG_CONFIG_DIRS", str(home / "xdg"))
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        _refuse_network(monkeypatch)


def _keep_pip_configuration(home: Path, real_home: Path, real_config: str | None) -> None:
    """Show pip its real configuration in the new home: which index to ask is the machine's word."""
    for place in PIP_CONFIGURATION:
        real = real_home / place
        if place == ".config/pip" and real_config:
            real = Path(real_config) / "pip"
        if real.is_dir():
            (home / place).parent.mkdir(parents=True, exist_ok=True)
            (home / place).symlink_to(real)


def _refuse_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sockets of this process reach loopback and local sockets only.

    The failure is not an `Exception`: code that takes any error for "offline" cannot swallow it.
    """

    def refuse(what: object) -> None:
        pytest.fail(f"the test reaches for {what!r}: mark it `network` or serve it on 127.0.0.1")

    def local(host: object) -> bool:
        if isinstance(host, bytes):
            host = os.fsdecode(host)
        if host in (None, "", "localhost"):
            return True
        try:
            return ipaddress.ip_address(str(host).partition("%")[0]).is_loopback
        except ValueError:
            return False

    def guard(name: str) -> None:
        real = getattr(socket.socket, name)

        def method(self: socket.socket, *args: Any) -> Any:
            address = args[-1] if args else None
            inet = self.family in (socket.AF_INET, socket.AF_INET6)
            if inet and isinstance(address, tuple) and not local(address[0]):
                refuse(address)
            return real(self, *args)

        monkeypatch.setattr(socket.socket, name, method)

    for name in ("connect", "connect_ex", "sendto"):
        guard(name)

    real_getaddrinfo = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        if not local(host):
            refuse(host)
        return real_getaddrinfo(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
