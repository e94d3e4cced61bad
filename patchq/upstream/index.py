"""Releases on the package index: which source archives there are, and since when we know.

The index's JSON form (PEP 691) is asked for, its HTML form (PEP 503, 592) understood; folders
that hold either or just archives serve as well. A fresh answer comes from one small file of
the cache and needs neither requests nor packaging.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from patchq.errors import PatchqError
from patchq.upstream import pipconf
from patchq.upstream.pipconf import IndexSettings, local_path, redact

if TYPE_CHECKING:
    from requests import Response, Session

MAX_AGE = 600.0
"""Seconds that an answer counts as fresh: what uv and the index's own caches use."""

ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_FORMAT = 1
_MAX_PAGE = 64 << 20
_ATTEMPTS = 3
_PAUSE = 0.5
_NAME = re.compile(r"[A-Z0-9]|[A-Z0-9][A-Z0-9._-]{0,200}[A-Z0-9]", re.IGNORECASE)
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]*\.tar\.gz")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Sdist:
    """A release's source archive (.tar.gz) on the index.

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


@dataclass(frozen=True)
class IndexAnswer:
    """The archives of `package` in the order of their versions, as of a moment in UTC.

    Not `complete`: an index was wanted but not reached, so newer ones may exist.
    """

    package: str
    sdists: tuple[Sdist, ...]
    as_of: datetime
    from_cache: bool
    complete: bool


@dataclass(frozen=True)
class Page:
    """What one index says of a package: raw files, or why it could not be asked."""

    files: tuple[Sdist, ...] = ()
    exists: bool = False
    failure: str = ""


def normalized(package: str) -> str:
    """The name as it stands in addresses (PEP 503).

    Raises PatchqError for what is no package name: it becomes part of addresses and file names.
    """
    if not _NAME.fullmatch(package):
        raise PatchqError(
            f"{package!r} is not the name of a package",
            "names consist of letters, digits, `.`, `_` and `-`",
        )
    return re.sub(r"[-_.]+", "-", package).lower()


def look_up(
    package: str,
    settings: IndexSettings,
    cache: Path,
    *,
    max_age: float = MAX_AGE,
    offline: bool = False,
    refresh: bool = False,
    now: Callable[[], float] = time.time,
) -> IndexAnswer:
    """The source archives of `package`, from `cache` if known for less than `max_age` seconds.

    `refresh` asks in any case; `offline` asks only what lies on this machine, and that only
    if nothing is cached. Where an index does not answer, the cached answer of any age helps.

    Raises PatchqError if nothing is known, no index has the package, or its name is not one.
    """
    name = normalized(package)
    file = cache / f"{name}-{_configuration(settings)}.json"
    cached = _read_cache(file, name)
    if cached and (offline or (not refresh and 0 <= now() - cached.as_of.timestamp() < max_age)):
        return cached
    pages = _ask(name, settings, offline)
    failures = [page.failure for page in pages if page.failure]
    found = _union(page.files for page in pages)
    if not failures:
        if not any(page.exists for page in pages):
            raise PatchqError(
                f"no configured package index has a package {name!r}",
                "check the name, and pip's configuration (`pip config debug`)",
            )
        answer = IndexAnswer(name, _sorted(found), _moment(now()), False, True)
        _write_cache(file, answer)
        return answer
    if not found:
        if cached:
            return replace(cached, complete=False)
        raise PatchqError(
            f"the releases of {name} are not known: " + "; ".join(failures),
            "run it once without --offline"
            if offline
            else "check the network and pip's configuration (`pip config debug`), and try again",
        )
    known = _union([found, cached.sdists if cached else ()])
    return IndexAnswer(name, _sorted(known), _moment(now()), False, False)


def choose(answer: IndexAnswer, wanted: str) -> Sdist:
    """The archive of the release `wanted`: a version, or "latest".

    The latest is the highest that is neither yanked nor a pre-release; a version that is
    named may be both. Raises PatchqError, naming what there is, where there is no such.
    """
    if wanted == "latest":
        final = [each for each in answer.sdists if each.yanked is None and not each.prerelease]
        if final:
            return final[-1]
        raise PatchqError(
            f"{answer.package} has no release that is neither a pre-release nor yanked"
            " and has a source archive",
            f"name a version; {_known(answer)}",
        )
    version = wanted.strip().removeprefix("v")
    for each in answer.sdists:
        if each.version == version:
            return each
    return _choose_equal(answer, wanted, version)


def _choose_equal(answer: IndexAnswer, wanted: str, version: str) -> Sdist:
    from packaging.version import InvalidVersion, Version

    try:
        number = Version(version)
    except InvalidVersion:
        raise PatchqError(
            f"{wanted!r} is not a version of {answer.package}", _known(answer)
        ) from None
    for each in answer.sdists:
        if Version(each.version) == number:
            return each
    import difflib

    close = difflib.get_close_matches(version, [each.version for each in answer.sdists], n=3)
    hint = _known(answer) + (f"; close to it: {', '.join(close)}" if close else "")
    if not answer.complete:
        hint += f"; the index was not reached, this is as of {answer.as_of:%Y-%m-%d %H:%M} UTC"
    raise PatchqError(f"{answer.package} has no release {wanted} with a source archive", hint)


def _known(answer: IndexAnswer) -> str:
    names = [
        each.version + (" (yanked)" if each.yanked is not None else "")
        for each in answer.sdists[-8:]
    ]
    return f"the last ones are: {', '.join(names)}" if names else "there are none"


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _configuration(settings: IndexSettings) -> str:
    """Answers of different indexes must not mix; credentials must not be derivable."""
    places = [redact(url) for url in (*settings.find_links, "|", *settings.urls)]
    return hashlib.sha256("\n".join(places).encode("utf-8", "surrogateescape")).hexdigest()[:12]


# -- the cache


def _read_cache(file: Path, name: str) -> IndexAnswer | None:
    """What was written there; None if that cannot be understood, whatever the reason."""
    try:
        data = json.loads(file.read_bytes())
        if data["format"] != _FORMAT or data["package"] != name:
            return None
        sdists = tuple(Sdist(*entry) for entry in data["sdists"])
        return IndexAnswer(name, sdists, _moment(data["as_of"]), True, True)
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return None


def _write_cache(file: Path, answer: IndexAnswer) -> None:
    data = {
        "format": _FORMAT,
        "package": answer.package,
        "as_of": answer.as_of.timestamp(),
        "sdists": [astuple(each) for each in answer.sdists],
    }
    import tempfile

    temporary = None
    # A cache that cannot be written (full, read-only) costs time, not the answer.
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=file.stem, suffix=".tmp")
        with open(handle, "w", encoding="utf-8") as out:
            json.dump(data, out, separators=(",", ":"))
        Path(temporary).replace(file)
    except OSError:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


# -- asking


def _ask(name: str, settings: IndexSettings, offline: bool) -> list[Page]:
    """The pages of all places, in the order of their precedence."""
    places = [(url, True) for url in settings.find_links]
    places += [(url, False) for url in settings.urls]
    if not offline:
        settings = pipconf.resolved(settings)
        places[len(settings.find_links) :] = [(url, False) for url in settings.urls]
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
                session = session or pipconf.open_session(settings)
                page = url if is_page else f"{url}/{name}/"
                pages.append(_remote_page(session, page, name, settings))
    finally:
        if session:
            session.close()
    return pages


def _union(pages: Iterable[Iterable[Sdist]]) -> tuple[Sdist, ...]:
    """All files; of those that have one name the first."""
    files: dict[str, Sdist] = {}
    for page in pages:
        for each in page:
            files.setdefault(each.filename, each)
    return tuple(files.values())


def _sorted(sdists: Iterable[Sdist]) -> tuple[Sdist, ...]:
    from packaging.version import Version

    return tuple(sorted(sdists, key=lambda each: Version(each.version)))


def _remote_page(session: Session, url: str, name: str, settings: IndexSettings) -> Page:
    from requests import RequestException
    from urllib3.exceptions import HTTPError

    where, why = redact(url), ""
    for attempt in range(min(settings.retries, _ATTEMPTS - 1) + 1):
        if attempt:
            time.sleep(_PAUSE * attempt)
        try:
            with pipconf.get(session, url, settings, {"Accept": ACCEPT}) as response:
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
            why = pipconf.reason(error, settings)
        except ValueError as error:
            why = f"its answer is no index page ({error})"
            break
    return Page(failure=f"{where}: {why}")


def _parse(response: Response, name: str) -> tuple[Sdist, ...]:
    """Raises ValueError for what is no index page."""
    body = bytearray()
    for chunk in response.iter_content(1 << 16):
        body += chunk
        if len(body) > _MAX_PAGE:
            raise ValueError(f"larger than {_MAX_PAGE >> 20} MiB")
    base = pipconf.bare(response.url)
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind.endswith("json"):
        return _from_json(bytes(body), base, name)
    if kind in ("text/html", "application/vnd.pypi.simple.v1+html"):
        return _from_html(body.decode("utf-8", "replace"), base, name)
    raise ValueError(f"of type {kind[:80]!r}")


def _from_json(body: bytes, base: str, name: str) -> tuple[Sdist, ...]:
    try:
        page = json.loads(body)
        api = str(page["meta"]["api-version"])
        files = [dict(file) for file in page["files"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("malformed JSON") from None
    if api.partition(".")[0] != "1":
        raise ValueError(f"of version {api[:20]!r}, 1 is understood")
    return tuple(sdist for file in files if (sdist := _from_entry(file, base, name)))


def _from_entry(file: dict[str, Any], base: str, name: str) -> Sdist | None:
    hashes, size, uploaded = file.get("hashes"), file.get("size"), file.get("upload-time")
    yanked = file.get("yanked", False)
    return _sdist(
        name,
        str(file.get("filename")),
        urljoin(base, str(file.get("url"))),
        base,
        sha256=str(hashes.get("sha256", "")) if isinstance(hashes, dict) else "",
        size=size if isinstance(size, int) and size >= 0 else None,
        yanked=(yanked if isinstance(yanked, str) else "") if yanked is not False else None,
        uploaded=uploaded if isinstance(uploaded, str) else None,
    )


def _from_html(text: str, base: str, name: str) -> tuple[Sdist, ...]:
    from html.parser import HTMLParser

    found: list[Sdist] = []

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
                sdist = _sdist(
                    name,
                    unquote(urlsplit(url).path.rpartition("/")[2]),
                    url,
                    base,
                    sha256=value if kind == "sha256" else "",
                    yanked=given["data-yanked"] or "" if "data-yanked" in given else None,
                )
                if sdist:
                    found.append(sdist)

    Links(convert_charrefs=True).feed(text)
    return tuple(found)


def _sdist(
    name: str, filename: str, url: str, base: str, *, sha256: str, **more: Any
) -> Sdist | None:
    """The archive, if the file that the page `base` names is one of this package."""
    from packaging.utils import InvalidSdistFilename, parse_sdist_filename
    from packaging.version import InvalidVersion

    if not _FILE_NAME.fullmatch(filename):
        return None
    try:
        package, version = parse_sdist_filename(filename)
    except (InvalidSdistFilename, InvalidVersion):
        return None
    sha256 = sha256.lower()
    # A page from elsewhere must not name files of this machine.
    schemes = {"http", "https"} | ({"file"} & {urlsplit(base).scheme})
    if package != name or urlsplit(url).scheme not in schemes:
        return None
    return Sdist(
        version=str(version),
        filename=filename,
        url=url,
        sha256=sha256 if _SHA256.fullmatch(sha256) else "",
        prerelease=version.is_prerelease,
        **more,
    )


# -- folders of this machine


def _local_page(place: Path, name: str, is_page: bool) -> Page:
    """A folder with an index (NAME/index.html or NAME/*.tar.gz below it), or with archives.

    One that does not know the package, or is not there at all, is empty.
    """
    try:
        page = place if is_page or not (place / name).is_dir() else place / name
        html = page if page.is_file() else page / "index.html"
        files: tuple[Sdist, ...] = ()
        if html.is_file() and (page != place or is_page):
            text = html.read_text(encoding="utf-8", errors="replace")
            files = _from_html(text, page.resolve().as_uri() + ("/" if page.is_dir() else ""), name)
        elif page.is_dir():
            paths = {path.name: path.resolve().as_uri() for path in sorted(page.iterdir())}
            found = (_sdist(name, each, url, url, sha256="") for each, url in paths.items())
            files = tuple(each for each in found if each)
        return Page(tuple(map(_measured, files)), bool(files) or page != place)
    except (OSError, ValueError) as error:
        return Page(failure=f"{place} cannot be read: {error}")


def _measured(sdist: Sdist) -> Sdist:
    """A local archive without a stated hash gets its own: recorded, it pins later reads."""
    path = local_path(sdist.url)
    if sdist.sha256 or path is None or not path.is_file():
        return sdist
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return replace(sdist, sha256=digest, size=path.stat().st_size)
