"""The releases of a repository as GitHub keeps them: drafts, leftovers, digests, and what is locked."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

TOO_LARGE = 1 << 31


class Refused(Exception):
    """A change that GitHub does not make: status, message, and the code of the error."""

    def __init__(self, status: int, message: str, code: str = "", field: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.field = status, message, code, field


@dataclass
class Asset:
    id: int
    name: str
    file: Path
    when: datetime
    size: int = 0
    sha256: str = ""
    state: str = "starter"
    downloads: int = 0


@dataclass
class Release:
    id: int
    tag: str
    name: str
    body: str
    created_at: datetime
    target: str = "main"
    draft: bool = True
    prerelease: bool = False
    immutable: bool = False
    published_at: datetime | None = None
    assets: dict[str, Asset] = field(default_factory=dict)


@dataclass
class Shelf:
    """`locks`: releases become immutable when they are published. `tells`: digests are told."""

    locks: bool = False
    tells: bool = True
    releases: dict[int, Release] = field(default_factory=dict)
    latest: int | None = None
    seen: list[str] = field(default_factory=list)
    """What anybody could see, after each change: tag and names of assets of what is published."""
    _ids: int = 100

    def new_id(self) -> int:
        self._ids += 1
        return self._ids

    def published(self, tag: str) -> Release | None:
        return next((r for r in self.releases.values() if r.tag == tag and not r.draft), None)

    def create(self, release: Release) -> Release:
        if self.published(release.tag):
            raise Refused(422, "Validation Failed", "already_exists", "tag_name")
        self.releases[release.id] = release
        return release

    def change(
        self, release: Release, when: datetime, asked: dict[str, object], tag: Callable[[], None]
    ) -> None:
        """PATCH: what is left out stays, but `make_latest`, which is true then."""
        if release.immutable and asked.get("tag_name", release.tag) != release.tag:
            raise Refused(422, "Cannot change the tag of an immutable release.")
        if release.immutable and asked.get("draft"):
            raise Refused(422, "Cannot make an immutable release a draft.")
        publishes = release.draft and asked.get("draft") is False
        wanted = str(asked.get("tag_name", release.tag))
        if publishes and self.published(wanted):
            raise Refused(422, "Validation Failed", "already_exists", "tag_name")
        release.tag = wanted
        for key in ("name", "body", "draft", "prerelease"):
            if key in asked:
                setattr(release, key, asked[key])
        if publishes:
            tag()
            release.published_at = when
            release.immutable = self.locks
        if not release.draft and asked.get("make_latest", "true") == "true":
            self.latest = release.id
        self._note()

    def delete(self, release: Release) -> None:
        if release.immutable:
            raise Refused(403, "Cannot delete an immutable release.")
        del self.releases[release.id]
        self._note()

    def begin(self, release: Release, asked: str, size: int, folder: Path, when: datetime) -> Asset:
        """An upload starts: its name is taken from now on."""
        name = re.sub(r"[^A-Za-z0-9._+-]", ".", asked)
        if release.immutable:
            raise Refused(422, "Cannot upload assets to an immutable release.")
        if not size:
            raise Refused(400, "Bad Content-Length: 0")
        if size >= TOO_LARGE:
            raise Refused(422, "Validation Failed", "custom", "size")
        if name in release.assets:
            raise Refused(422, "Validation Failed", "already_exists", "name")
        number = self.new_id()
        folder.mkdir(parents=True, exist_ok=True)
        asset = Asset(number, name, folder / str(number), when)
        release.assets[name] = asset
        return asset

    def end(self, asset: Asset) -> None:
        """The whole file came."""
        asset.size = asset.file.stat().st_size
        with asset.file.open("rb") as file:
            asset.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        asset.state = "uploaded"
        self._note()

    def remove(self, release: Release, asset: Asset) -> None:
        if release.immutable:
            raise Refused(422, "Cannot delete assets of an immutable release.")
        del release.assets[asset.name]
        self._note()

    def _note(self) -> None:
        for each in self.releases.values():
            if not each.draft:
                whole = sorted(a.name for a in each.assets.values() if a.state == "uploaded")
                self.seen.append(f"{each.tag}: {' '.join(whole)}")
