"""How this machine reaches its package index: pip's own configuration, read without pip.

Starting pip takes over 200 ms, so its files and variables are read here, with its precedence
(pip's docs, "Configuration"; pip/_internal/configuration.py): global, user and site files, the
file that PIP_CONFIG_FILE names, PIP_* variables; later ones win, empty values do not count.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from patchq.errors import PatchqError

if TYPE_CHECKING:
    from requests import Response, Session

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


def local_path(url: str) -> Path | None:
    """The path that a file: address, or an address without a scheme, means; None for others."""
    if "://" not in url and not url.startswith("file:"):
        return Path(url).expanduser()
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return Path(unquote(parts.path))


def bare(url: str) -> str:
    """The address without user name and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def redact(url: str) -> str:
    """The address as people may see it: no credentials, no query (tokens stand there too)."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(a malformed address)"
    _, at, host = parts.netloc.rpartition("@")
    query = "***" if parts.query else ""
    netloc = f"***@{host}" if at else host
    return urlunsplit(parts._replace(netloc=netloc, query=query, fragment=""))


def _credentials(url: str, settings: IndexSettings) -> tuple[str, str] | None:
    """Those that the configuration has for this server (pip sends them for files, too)."""
    wanted = urlsplit(url)
    for known in (url, *settings.urls, *settings.find_links):
        parts = urlsplit(known)
        user, at, host = parts.netloc.rpartition("@")
        if at and (parts.scheme, host) == (wanted.scheme, wanted.netloc.rpartition("@")[2]):
            name, _, password = user.partition(":")
            return unquote(name), unquote(password)
    return None


def open_session(settings: IndexSettings) -> Session:
    """A requests session that trusts what pip trusts (close it, or use it with `with`).

    Raises PatchqError where a certificate file of the configuration is missing.
    """
    import ssl

    import requests
    import urllib3
    from requests.adapters import HTTPAdapter

    for path in (settings.ca, settings.client_cert):
        if path and not Path(path).exists():
            raise PatchqError(
                f"the certificate file {path} of pip's configuration does not exist",
                "correct `cert` or `client-cert` there, or PIP_CERT",
            )

    class SystemTrust(HTTPAdapter):
        """Like today's pip, trusts the system's certificates beside the bundled ones."""

        context: ssl.SSLContext | None = None

        def build_connection_pool_key_attributes(self, request: Any, *more: Any) -> Any:
            host, pool = super().build_connection_pool_key_attributes(request, *more)
            if host["scheme"] == "https":
                self.context = self.context or ssl.create_default_context()
                pool["ssl_context"] = self.context
            return host, pool

    class Unverified(HTTPAdapter):
        def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
            super().cert_verify(conn, url, False, cert)  # type: ignore[no-untyped-call]

    session = requests.Session()
    session.headers["User-Agent"] = "patchq"
    session.cert = settings.client_cert
    if not settings.ca:
        session.mount("https://", SystemTrust())
    if settings.trusted_hosts:
        # The user's own word; pip keeps quiet about it as well.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    for host in settings.trusted_hosts:
        ends = ("/",) if re.search(r":\d+$", host) else ("/", ":")
        for end in ends:
            session.mount(f"https://{host}{end}", Unverified())
    return session


def get(
    session: Session, url: str, settings: IndexSettings, headers: Mapping[str, str]
) -> Response:
    """Answers before the body is read (`stream`); raises what requests raises."""
    proxies = {"http": settings.proxy, "https": settings.proxy} if settings.proxy else None
    # Given with each request: what stands in the session loses to the environment.
    return session.get(
        bare(url),
        headers=dict(headers),
        auth=_credentials(url, settings),
        stream=True,
        timeout=settings.timeout or 15.0,
        verify=settings.ca or True,
        proxies=proxies,
    )


def reason(error: Exception, settings: IndexSettings) -> str:
    """Why a request failed, in words without an address (the libraries' texts hold them)."""
    from requests import exceptions as e
    from urllib3 import exceptions as u

    match error:
        case e.ProxyError():
            return "the proxy cannot be reached"
        case e.SSLError() if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return "its certificate is not trusted (pip's `cert` setting names the right one)"
        case e.SSLError():
            return "no encrypted connection comes about"
        case e.Timeout() | u.TimeoutError():
            return f"no answer within {settings.timeout:g} s"
        case e.ChunkedEncodingError() | u.ProtocolError():
            return "the connection broke"
        case e.TooManyRedirects():
            return "it redirects in circles"
        case e.ConnectionError():
            return "it cannot be reached"
    return f"the request failed ({type(error).__name__})"
