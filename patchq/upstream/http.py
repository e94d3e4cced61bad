"""Requests as pip makes them: addresses, credentials, trust, and why one failed.

No text that leaves here holds a password or a token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from patchq.errors import PatchqError
from patchq.upstream.pipconf import IndexSettings

if TYPE_CHECKING:
    from requests import Response, Session


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
