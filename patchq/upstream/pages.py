"""Pages of package indexes: asked over HTTP or read from folders, in both of their forms.

The JSON form (PEP 691) is asked for, the HTML form (PEP 503, 592) understood; folders that hold
either or just archives serve as well.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from patchq.upstream import http, pipconf
from patchq.upstream.http import local_path
from patchq.upstream.pipconf import IndexSettings

if TYPE_CHECKING:
    from packaging.version import Version
    from requests import Response, Session

ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_MAX_PAGE = 64 << 20
_ATTEMPTS = 3
_PAUSE = 0.5
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]*\.(?:tar\.gz|whl)")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Dist:
    """A file of a release on the index: its source archive (.tar.gz) or one of its wheels.

    `sha256` is in lower-case hex, empty where the index gives none; `size` in bytes; `yanked` is
    the reason, perhaps empty, None for what is not yanked; `uploaded` as the index writes it.
    """

    version: str
    filename: str
    url: str
    sha256: str
    size: int | None = None
    yanked: str | None = None
    prerelease: bool = False
    uploaded: str | None = None
    wheel: bool = False


@dataclass(frozen=True)
class Page:
    """What one index says of a package: raw files, or why it could not be asked."""

    files: tuple[Dist, ...] = ()
    exists: bool = False
    failure: str = ""


def ask(name: str, settings: IndexSettings, offline: bool) -> list[Page]:
    """The pages of all places, in the order of their precedence."""
    if not offline:
        settings = pipconf.resolved(settings)
    places = [(url, True) for url in settings.find_links]
    places += [(url, False) for url in settings.urls]
    pages: list[Page] = []
    session: Session | None = None
    try:
        for url, is_page in places:
            local = None if url == pipconf.PIP_DEFAULT else local_path(url)
            if local is not None:
                pages.append(_local_page(local, name, is_page))
            elif offline:
                pages.append(Page(failure="nothing is cached, and the network is not to be used"))
            else:
                session = session or http.open_session(settings)
                page = url if is_page else f"{url}/{name}/"
                pages.append(_remote_page(session, page, name, settings))
    finally:
        if session:
            session.close()
    return pages


def _remote_page(session: Session, url: str, name: str, settings: IndexSettings) -> Page:
    from requests import RequestException
    from urllib3.exceptions import HTTPError

    where, why = http.redact(url), ""
    for attempt in range(min(settings.retries, _ATTEMPTS - 1) + 1):
        if attempt:
            time.sleep(_PAUSE * attempt)
        try:
            with http.get(session, url, settings, {"Accept": ACCEPT}) as response:
                status = response.status_code
                if status in (404, 410):
                    return Page()
                if status == 200:
                    return Page(_parse(response, name), True)
                why = f"it answered {status} {response.reason}"
                if status in (401, 403):
                    why += " (are the credentials of pip's configuration right?)"
                if status < 500 and status != 429:
                    break
        except (RequestException, HTTPError, OSError) as error:
            why = http.reason(error, settings)
        except ValueError as error:
            why = f"its answer is no index page ({error})"
            break
    return Page(failure=f"{where}: {why}")


def _parse(response: Response, name: str) -> tuple[Dist, ...]:
    """Raises ValueError for what is no index page."""
    body = bytearray()
    for chunk in response.iter_content(1 << 16):
        body += chunk
        if len(body) > _MAX_PAGE:
            raise ValueError(f"larger than {_MAX_PAGE >> 20} MiB")
    base = http.bare(response.url)
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind.endswith("json"):
        return _from_json(bytes(body), base, name)
    if kind in ("text/html", "application/vnd.pypi.simple.v1+html"):
        return _from_html(body.decode("utf-8", "replace"), base, name)
    raise ValueError(f"of type {kind[:80]!r}")


def _from_json(body: bytes, base: str, name: str) -> tuple[Dist, ...]:
    try:
        page = json.loads(body)
        api = str(page["meta"]["api-version"])
        files = [dict(file) for file in page["files"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("malformed JSON") from None
    if api.partition(".")[0] != "1":
        raise ValueError(f"of version {api[:20]!r}, 1 is understood")
    return tuple(dist for file in files if (dist := _from_entry(file, base, name)))


def _from_entry(file: dict[str, Any], base: str, name: str) -> Dist | None:
    hashes, size, uploaded = file.get("hashes"), file.get("size"), file.get("upload-time")
    yanked = file.get("yanked", False)
    return _dist(
        name,
        str(file.get("filename")),
        urljoin(base, str(file.get("url"))),
        base,
        sha256=str(hashes.get("sha256", "")) if isinstance(hashes, dict) else "",
        size=size if isinstance(size, int) and size >= 0 else None,
        yanked=(yanked if isinstance(yanked, str) else "") if yanked is not False else None,
        uploaded=uploaded if isinstance(uploaded, str) else None,
    )


def _from_html(text: str, base: str, name: str) -> tuple[Dist, ...]:
    from html.parser import HTMLParser

    found: list[Dist] = []

    class Links(HTMLParser):
        base = ""

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            given = dict(attrs)
            href = given.get("href")
            if href is None:
                return
            if tag == "base" and not self.base:
                self.base = urljoin(base, href)
            elif tag == "a":
                url, fragment = urldefrag(urljoin(self.base or base, href.strip()))
                kind, _, value = fragment.partition("=")
                dist = _dist(
                    name,
                    unquote(urlsplit(url).path.rpartition("/")[2]),
                    url,
                    base,
                    sha256=value if kind == "sha256" else "",
                    yanked=given["data-yanked"] or "" if "data-yanked" in given else None,
                )
                if dist:
                    found.append(dist)

    Links(convert_charrefs=True).feed(text)
    return tuple(found)


def _dist(
    name: str, filename: str, url: str, base: str, *, sha256: str, **more: Any
) -> Dist | None:
    """The file, if the one that the page `base` names is of this package."""
    if not _FILE_NAME.fullmatch(filename):
        return None
    known = _parsed(filename)
    sha256 = sha256.lower()
    # A page from elsewhere must not name files of this machine.
    schemes = {"http", "https"} | ({"file"} & {urlsplit(base).scheme})
    if known is None or known[0] != name or urlsplit(url).scheme not in schemes:
        return None
    return Dist(
        version=str(known[1]),
        filename=filename,
        url=url,
        sha256=sha256 if _SHA256.fullmatch(sha256) else "",
        prerelease=known[1].is_prerelease,
        wheel=filename.endswith(".whl"),
        **more,
    )


def _parsed(filename: str) -> tuple[str, Version] | None:
    """Package and version that the name of a file says."""
    from packaging.utils import (
        InvalidSdistFilename,
        InvalidWheelFilename,
        parse_sdist_filename,
        parse_wheel_filename,
    )
    from packaging.version import InvalidVersion

    try:
        if filename.endswith(".whl"):
            return parse_wheel_filename(filename)[:2]
        return parse_sdist_filename(filename)
    except (InvalidSdistFilename, InvalidWheelFilename, InvalidVersion):
        return None


# -- folders of this machine


def _local_page(place: Path, name: str, is_page: bool) -> Page:
    """A folder with an index (NAME/index.html or NAME/*.tar.gz below it), or with archives.

    One that does not know the package, or is not there at all, is empty.
    """
    try:
        page = place if is_page or not (place / name).is_dir() else place / name
        html = page if page.is_file() else page / "index.html"
        files: tuple[Dist, ...] = ()
        if html.is_file() and (page != place or is_page):
            text = html.read_text(encoding="utf-8", errors="replace")
            files = _from_html(text, page.resolve().as_uri() + ("/" if page.is_dir() else ""), name)
        elif page.is_dir():
            paths = {path.name: path.resolve().as_uri() for path in sorted(page.iterdir())}
            found = (_dist(name, each, url, url, sha256="") for each, url in paths.items())
            files = tuple(each for each in found if each)
        # A wheel has hundreds of megabytes: it is measured when it is wanted.
        known = tuple(each if each.wheel else measured(each) for each in files)
        return Page(known, bool(files) or page != place)
    except (OSError, ValueError) as error:
        return Page(failure=f"{place} cannot be read: {error}")


def measured(dist: Dist) -> Dist:
    """A local file without a stated hash gets its own: recorded, it pins later reads."""
    path = local_path(dist.url)
    if dist.sha256 or path is None or not path.is_file():
        return dist
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return replace(dist, sha256=digest, size=path.stat().st_size)
