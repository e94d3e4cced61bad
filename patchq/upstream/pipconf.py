"""How this machine reaches its package index: pip's own configuration, read without pip.

Starting pip takes over 200 ms, so its files and variables are read here, with its precedence
(pip's docs, "Configuration"; pip/_internal/configuration.py): global, user and site files, the
file that PIP_CONFIG_FILE names, PIP_* variables; later ones win, empty values do not count.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from patchq.errors import PatchqError

PIP_DEFAULT = "pip's default index"
"""Stands in `IndexSettings.urls` for the address that only pip knows: asked when it is needed."""

_ASK_PIP = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
_TRUE = {"y", "yes", "t", "true", "on", "1"}
_FALSE = {"n", "no", "f", "false", "off", "0"}
_ALIASES = {"pypi-url": "index-url", "default-timeout": "timeout"}


@dataclass(frozen=True)
class IndexSettings:
    """Where packages come from and how to get there.

    `urls` are indexes (a page for each package below them), `find_links` pages or folders
    that hold archives themselves. `timeout` is in seconds. The fields that may hold
    credentials are left out of the repr.
    """

    urls: tuple[str, ...] = field(repr=False)
    ca: str | None = None
    timeout: float = 15.0
    proxy: str | None = field(default=None, repr=False)
    trusted_hosts: frozenset[str] = frozenset()
    find_links: tuple[str, ...] = field(default=(), repr=False)
    client_cert: str | None = None
    retries: int = 5


def read_settings(
    environ: Mapping[str, str] = os.environ,
    *,
    prefix: Path = Path(sys.prefix),
    etc: Path = Path("/etc"),
) -> IndexSettings:
    """What pip would use here; `prefix` and `etc` are where site and global files lie.

    Raises PatchqError where a configuration file or value cannot be understood, as pip does.
    """
    values = _values(environ, prefix, etc)
    urls = [values.get("index-url", PIP_DEFAULT), *values.get("extra-index-url", "").split()]
    if _boolean("no-index", values.get("no-index", "no")):
        urls = []
    return IndexSettings(
        urls=tuple(dict.fromkeys(url.rstrip("/") for url in urls)),
        ca=_path(values.get("cert"), environ),
        timeout=_number("timeout", values.get("timeout", "15")),
        proxy=values.get("proxy"),
        trusted_hosts=frozenset(values.get("trusted-host", "").lower().split()),
        find_links=tuple(dict.fromkeys(values.get("find-links", "").split())),
        client_cert=_path(values.get("client-cert"), environ),
        retries=int(_number("retries", values.get("retries", "5"))),
    )


def _values(environ: Mapping[str, str], prefix: Path, etc: Path) -> dict[str, str]:
    found: dict[tuple[str, str], str] = {}
    for path in _files(environ, prefix, etc):
        found |= _read_file(path)
    for name, value in environ.items():
        if name.startswith("PIP_"):
            found[":env:", _key(name.removeprefix("PIP_"))] = value
    values: dict[str, str] = {}
    # Fetching an archive is `pip download`; who set an index only for installing means it too.
    for wanted in ("global", "install", "download", ":env:"):
        for (section, key), value in found.items():
            if section == wanted and value:
                values[_ALIASES.get(key, key)] = value
    return values


def _key(name: str) -> str:
    return name.lower().replace("_", "-").removeprefix("--")


def _files(environ: Mapping[str, str], prefix: Path, etc: Path) -> Iterator[Path]:
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return
    home = Path(environ.get("HOME") or Path.home())
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    if sys.platform == "darwin":
        yield Path("/Library/Application Support/pip/pip.conf")
        library = home / "Library/Application Support/pip"
        config = library.parent if library.is_dir() else home / ".config"
    else:
        for folder in (environ.get("XDG_CONFIG_DIRS") or str(etc / "xdg")).split(os.pathsep):
            yield Path(folder) / "pip/pip.conf"
        yield etc / "pip.conf"
    if not (named and Path(named).exists()):
        yield home / ".pip/pip.conf"
        yield config / "pip/pip.conf"
    yield prefix / "pip.conf"
    if named:
        yield Path(named)


def _read_file(path: Path) -> dict[tuple[str, str], str]:
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return {}
    except OSError as error:
        raise PatchqError(
            f"pip's configuration file {path} cannot be read: {error.strerror}",
            "correct its permissions",
        ) from error
    import configparser

    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text, source=str(path))
    except configparser.Error as error:
        # The parser's own words quote the line, which may hold a password.
        line = getattr(error, "lineno", None)
        where = f"{path} is malformed at line {line}" if line else f"{path} is malformed"
        raise PatchqError(
            f"pip's configuration file {where}",
            "correct it (`pip config debug` lists the files that count)",
        ) from None
    return {
        (section, _key(key)): value
        for section in parser.sections()
        for key, value in parser.items(section)
    }


def _boolean(key: str, value: str) -> bool:
    if value.lower() not in _TRUE | _FALSE:
        raise PatchqError(f"pip's setting {key} is {value!r}, not yes or no", "correct it")
    return value.lower() in _TRUE


def _number(key: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise PatchqError(f"pip's setting {key} is {value!r}, not a number", "correct it")
    return number


def _path(value: str | None, environ: Mapping[str, str]) -> str | None:
    if value and value.startswith("~/"):
        return str(Path(environ.get("HOME") or Path.home()) / value[2:])
    return value


def resolved(settings: IndexSettings) -> IndexSettings:
    """The settings with pip's default index by its address (asks pip: some 100 ms, once)."""
    if PIP_DEFAULT not in settings.urls:
        return settings
    urls = (default_index() if url == PIP_DEFAULT else url for url in settings.urls)
    return replace(settings, urls=tuple(urls))


@cache
def default_index() -> str:
    """The index that pip uses when nothing is configured, as pip says.

    Raises PatchqError where no pip is found.
    """
    import subprocess

    for python in dict.fromkeys((sys.executable, "python3")):
        try:
            # Not in our folder: with -I nothing there can pose as pip either.
            command = [python, "-I", "-c", _ASK_PIP]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        url = done.stdout.strip()
        if done.returncode == 0 and url.startswith("https://"):
            return url.rstrip("/")
    raise PatchqError(
        "no package index is configured, and no pip is there to ask for its default",
        "set PIP_INDEX_URL, or index-url in pip's configuration",
    )
