"""A wheel's METADATA: what a release asks for, without bringing the whole wheel where that goes."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from patchq.caches import keep
from patchq.errors import PatchqError
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.upstream import download, http, pipconf
from patchq.upstream.http import local_path
from patchq.upstream.pages import Dist
from patchq.upstream.pipconf import IndexSettings

_LARGEST = 8 << 20
_INFO = re.compile(r"[^/]+\.dist-info/METADATA")
_DAMAGE = (zipfile.BadZipFile, OSError, EOFError, RuntimeError, ValueError, NotImplementedError)


@dataclass(frozen=True)
class Metadata:
    """Fields of METADATA (core metadata 2.x): `requires` are its Requires-Dist, as they stand;
    `python` is its Requires-Python.
    """

    name: str
    version: str
    requires: tuple[str, ...]
    licence: str = ""
    python: str = ""


def parse(data: bytes, where: str) -> Metadata:
    """Raises PatchqError for what names neither package nor version."""
    plain = data.replace(b"\r\n", b"\n")
    head = plain.partition(b"\n\n")[0].decode("utf-8", "replace")
    pairs = [line.partition(": ") for line in head.split("\n") if line[:1] not in (" ", "\t")]
    fields: dict[str, list[str]] = {}
    for key, _, value in pairs:
        fields.setdefault(key.lower(), []).append(value.strip())
    name, version = (fields.get(key, [""])[0] for key in ("name", "version"))
    if not name or not version:
        raise PatchqError(
            f"the METADATA of {show(where)} names no package or no version",
            "delete the file from the cache, or tell those who publish it",
        )
    requires = tuple(fields.get("requires-dist", ()))
    licence, python = (
        fields.get(key, [""])[0] for key in ("license-expression", "requires-python")
    )
    return Metadata(name, version, requires, licence, python)


def of(wheel: Dist, cache: Path, *, offline: bool = False, progress: Progress = SILENT) -> Metadata:
    """`raw`, taken apart. Raises as `raw` and `parse` do."""
    return parse(raw(wheel, cache, offline=offline, progress=progress), wheel.filename)


def raw(wheel: Dist, cache: Path, *, offline: bool = False, progress: Progress = SILENT) -> bytes:
    """The METADATA of a wheel: from the cache, from the wheel where it is here, from the index.

    An index has it in a file beside the wheel (PEP 658); where it has not, the wheel is brought.
    Raises PatchqError where none of these goes.
    """
    kept = cache / "metadata" / f"{wheel.sha256 or wheel.filename}.txt"
    local = local_path(wheel.url)
    for file in (cache / "wheels" / wheel.filename, local):
        if file is not None and file.is_file():
            return inside(file)
    if wheel.sha256 and kept.is_file():
        return kept.read_bytes()
    if offline:
        raise PatchqError(
            f"what {wheel.filename} asks for is not known here, and --offline forbids to ask",
            "run it once without --offline",
        )
    settings = pipconf.read_settings()
    progress.step(f"asking what {wheel.filename} needs")
    data = _beside(wheel, settings)
    if data is None:
        folder = cache / "wheels"
        with download.alone(wheel, folder, progress):
            return inside(download.fetch(wheel, folder, settings, progress))
    parse(data, wheel.filename)  # what is none is not kept
    keep(kept, data)
    return data


def inside(wheel: Path) -> bytes:
    """The METADATA in a wheel on the disk. Raises PatchqError for what is no wheel."""
    try:
        with zipfile.ZipFile(wheel) as file:
            names = [each for each in file.infolist() if _INFO.fullmatch(each.filename)]
            if len(names) != 1 or names[0].file_size > _LARGEST:
                raise ValueError("it has no one METADATA")
            return file.read(names[0])
    except _DAMAGE as error:
        raise PatchqError(
            f"{wheel.name} is not a whole wheel: {error}",
            "delete it and run again, so that it is downloaded afresh",
        ) from error


def _beside(wheel: Dist, settings: IndexSettings) -> bytes | None:
    from requests import RequestException
    from urllib3.exceptions import HTTPError

    try:
        with (
            http.open_session(settings) as session,
            http.get(session, f"{wheel.url}.metadata", settings, {}) as response,
        ):
            if response.status_code != 200:
                return None
            body = b""
            for chunk in response.iter_content(1 << 16):
                body += chunk
                if len(body) > _LARGEST:
                    return None
            return body
    except (RequestException, HTTPError) as error:
        raise PatchqError(
            f"what {wheel.filename} needs was not learned from {http.redact(wheel.url)}:"
            f" {http.reason(error, settings)}",
            "check the network and pip's configuration (`pip config debug`), and try again",
        ) from error
