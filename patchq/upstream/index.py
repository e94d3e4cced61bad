"""Releases on the package index: which files there are, and since when we know.

A fresh answer comes from one small file of the cache and needs neither requests nor packaging.
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

from patchq.errors import PatchqError
from patchq.upstream.http import redact
from patchq.upstream.pages import Dist, ask
from patchq.upstream.pipconf import IndexSettings

MAX_AGE = 600.0
"""Seconds that an answer counts as fresh: what uv and the index's own caches use."""

_FORMAT = 2
_NAME = re.compile(r"[A-Z0-9]|[A-Z0-9][A-Z0-9._-]{0,200}[A-Z0-9]", re.IGNORECASE)


@dataclass(frozen=True)
class IndexAnswer:
    """The files of `package` in the order of their versions, as of a moment in UTC.

    Not `complete`: an index was wanted but not reached, so newer ones may exist.
    """

    package: str
    dists: tuple[Dist, ...]
    as_of: datetime
    from_cache: bool
    complete: bool

    @property
    def sdists(self) -> tuple[Dist, ...]:
        return tuple(each for each in self.dists if not each.wheel)

    def wheels(self, version: str) -> tuple[Dist, ...]:
        return tuple(each for each in self.dists if each.wheel and each.version == version)


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
    """The files of `package`, from `cache` if known for less than `max_age` seconds.

    `refresh` asks in any case; `offline` asks only what lies on this machine, and that only
    if nothing is cached. Where an index does not answer, the cached answer of any age helps.

    Raises PatchqError if nothing is known, no index has the package, or its name is not one.
    """
    name = normalized(package)
    file = cache / f"{name}-{_configuration(settings)}.json"
    cached = _read_cache(file, name)
    if cached and (offline or (not refresh and 0 <= now() - cached.as_of.timestamp() < max_age)):
        return cached
    pages = ask(name, settings, offline)
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
    known = _union([found, cached.dists if cached else ()])
    return IndexAnswer(name, _sorted(known), _moment(now()), False, False)


def choose(answer: IndexAnswer, wanted: str) -> Dist:
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


def _choose_equal(answer: IndexAnswer, wanted: str, version: str) -> Dist:
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
    if names:
        return f"the last ones are: {', '.join(names)}"
    wheels = dict.fromkeys(each.version for each in answer.dists)
    return f"it has wheels alone: {', '.join([*wheels][-8:])}" if wheels else "there are none"


def _union(pages: Iterable[Iterable[Dist]]) -> tuple[Dist, ...]:
    """All files; of those that have one name the first."""
    files: dict[str, Dist] = {}
    for page in pages:
        for each in page:
            files.setdefault(each.filename, each)
    return tuple(files.values())


def _sorted(dists: Iterable[Dist]) -> tuple[Dist, ...]:
    from packaging.version import Version

    return tuple(sorted(dists, key=lambda each: Version(each.version)))


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _configuration(settings: IndexSettings) -> str:
    """Answers of different indexes must not mix; credentials must not be derivable."""
    places = [redact(url) for url in (*settings.find_links, "|", *settings.urls)]
    return hashlib.sha256("\n".join(places).encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _read_cache(file: Path, name: str) -> IndexAnswer | None:
    """What was written there; None if that cannot be understood, whatever the reason."""
    try:
        data = json.loads(file.read_bytes())
        if data["format"] != _FORMAT or data["package"] != name:
            return None
        dists = tuple(Dist(*entry) for entry in data["dists"])
        return IndexAnswer(name, dists, _moment(data["as_of"]), True, True)
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return None


def _write_cache(file: Path, answer: IndexAnswer) -> None:
    data = {
        "format": _FORMAT,
        "package": answer.package,
        "as_of": answer.as_of.timestamp(),
        "dists": [astuple(each) for each in answer.dists],
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
