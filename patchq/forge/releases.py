"""Releases on GitHub: what is there, drafts included, and the single steps that change it.

Facts that these functions rest on (GitHub's documentation and OpenAPI description): a draft is in
the list of releases for those who may write, and is not found by its tag; an upload that broke off
can leave an asset in the state `starter`, whose name is then taken; of a published immutable
release the notes may be edited, its assets and its tag may not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from patchq.forge.answers import address, at, entries, text
from patchq.forge.client import TOKENS, Client, token, usual_api
from patchq.forge.errors import ForgeError
from patchq.forge.writing import Writer

LARGEST = 2_000_000_000
"""Bytes of an asset: exactly 2 GiB is refused."""
MOST = 1000
"""Assets of a release."""
LONGEST = 120_000
"""Characters of notes; GitHub refuses more than 125,000."""

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_TAG = re.compile(r"release-([1-9][0-9]{0,5})")


@dataclass(frozen=True)
class Asset:
    """A file of a release as GitHub has it. `size` in bytes; `sha256` None where it tells none."""

    id: int
    name: str
    size: int
    uploaded: bool
    """False: an upload that broke off left it."""
    sha256: str | None
    downloads: int
    url: str
    """Where anyone may download it; empty where it is no address."""


@dataclass(frozen=True)
class Release:
    """`assets` may lack some in a list; `assets_of` has them all. `published`: ISO 8601, UTC."""

    id: int
    tag: str
    title: str
    notes: str
    """As they were written: hostile."""
    draft: bool
    immutable: bool
    page: str
    published: str | None
    upload_url: str
    assets: tuple[Asset, ...]

    @property
    def number(self) -> int | None:
        """N of `release-N`; None of a release that is none of ours."""
        found = _TAG.fullmatch(self.tag)
        return int(found[1]) if found else None


def tag_name(number: int) -> str:
    return f"release-{number}"


def listed(client: Client, repo: str) -> tuple[Release, ...]:
    """All releases, the newest first; drafts only for a token that may write. Raises ForgeError."""
    return tuple(_release(client, item) for item in entries(client, f"{at(repo)}/releases", {}))


def assets_of(client: Client, repo: str, release: int) -> tuple[Asset, ...]:
    """The assets of the release with this id, leftovers included. Raises ForgeError."""
    items = entries(client, f"{at(repo)}/releases/{release}/assets", {})
    return tuple(_asset(client, item) for item in items)


def find(client: Client, repo: str, number: int) -> Release | None:
    """Release `number` where it is published, with all its assets; else None. Raises ForgeError."""
    try:
        found = client.get(f"{at(repo)}/releases/tags/{tag_name(number)}")
    except ForgeError as error:
        if error.kind == "absent":
            return None
        raise
    release = _release(client, found)
    return whole(client, repo, release)


def whole(client: Client, repo: str, release: Release) -> Release:
    """The release with all its assets. Raises ForgeError."""
    return replace(release, assets=assets_of(client, repo, release.id))


def assets(repo: str, number: int, client: Client | None = None) -> tuple[Asset, ...]:
    """What may be downloaded of release `number`.

    Without a `client` the usual API is asked, with the token that is set, if one is. Raises
    ForgeError (`absent`) where it is not published, or not for these eyes.
    """
    with _opened(client) as asked:
        found = find(asked, repo, number)
    if found is None:
        raise ForgeError(
            "absent",
            f"{asked.host} has no release {number} of {repo}, or not for these eyes",
            "`patchq release stats` lists what is there; a private repository wants a token",
        )
    return tuple(each for each in found.assets if each.uploaded)


def notes(repo: str, number: int, client: Client | None = None) -> str:
    """The notes of release `number` as they are now; empty where it is not published."""
    with _opened(client) as asked:
        found = find(asked, repo, number)
    return found.notes if found else ""


@contextmanager
def _opened(client: Client | None) -> Iterator[Client]:
    if client is not None:
        yield client
        return
    value, variable = token() or (None, TOKENS[0])
    with Client(usual_api(), value, variable) as made:
        yield made


def latest(client: Client, repo: str) -> Release | None:
    """The one that GitHub shows as the latest, or None. Raises ForgeError."""
    try:
        return _release(client, client.get(f"{at(repo)}/releases/latest"))
    except ForgeError as error:
        if error.kind == "absent":
            return None
        raise


def tag(client: Client, repo: str, name: str) -> str | None:
    """The id of the object that a tag is (its own, where it is annotated). Raises ForgeError."""
    try:
        found = client.get(f"{at(repo)}/git/ref/tags/{quote(name, safe='')}")
    except ForgeError as error:
        if error.kind == "absent":
            return None
        raise
    target = found.get("object") if isinstance(found, dict) else None
    sha = target.get("sha") if isinstance(target, dict) else None
    if not isinstance(sha, str):
        raise client.odd()
    return sha


def create(client: Writer, repo: str, tag: str, title: str, notes: str) -> Release:
    """A new draft for a tag. Raises ForgeError; it may have been made nevertheless."""
    value = {
        "tag_name": tag,
        "name": title,
        "body": notes,
        "draft": True,
        "prerelease": False,
    }
    return _release(client, client.write("POST", f"{at(repo)}/releases", value))


def edit(client: Writer, repo: str, release: Release, title: str, notes: str) -> Release:
    """Other words for a release, nothing else. Raises ForgeError."""
    return _patch(client, repo, release, {"name": title, "body": notes})


def publish(client: Writer, repo: str, release: Release, *, newest: bool) -> Release:
    """Let everybody see a draft; `newest`: as the latest. Raises ForgeError."""
    value = {"draft": False, "prerelease": False, "make_latest": "true" if newest else "false"}
    return _patch(client, repo, release, value)


def show_as_latest(client: Writer, repo: str, release: Release) -> Release:
    return _patch(client, repo, release, {"make_latest": "true"})


def upload(client: Writer, release: Release, file: Path) -> Asset:
    """Send a file to a release. Raises ForgeError; some of it may have come nevertheless."""
    url = release.upload_url.partition("{")[0]
    made = _asset(client, client.upload(url, file.name, file))
    if made.name != file.name:
        raise ForgeError(
            "answer",
            f"{client.host} calls {file.name} {made.name!r:.100}",
            "give the file a name of letters, digits and . _ - +",
        )
    return made


def delete_asset(client: Writer, repo: str, asset: Asset) -> None:
    _gone(client, f"{at(repo)}/releases/assets/{asset.id}")


def delete_draft(client: Writer, repo: str, release: Release) -> None:
    assert release.draft, "a published release is never deleted"
    _gone(client, f"{at(repo)}/releases/{release.id}")


def _gone(client: Writer, path: str) -> None:
    try:
        client.write("DELETE", path)
    except ForgeError as error:
        if error.kind != "absent":
            raise


def _patch(client: Writer, repo: str, release: Release, value: Mapping[str, Any]) -> Release:
    # Where the tag is left out of a change, a draft may come out under another one.
    value = {"tag_name": release.tag, **value}
    path = f"{at(repo)}/releases/{release.id}"
    return _release(client, client.write("PATCH", path, value))


def _release(client: Client, item: Any) -> Release:
    if not isinstance(item, dict) or type(item.get("id")) is not int:
        raise client.odd()
    found = item.get("assets")
    return Release(
        id=item["id"],
        tag=text(item, "tag_name"),
        title=text(item, "name"),
        notes=text(item, "body"),
        # What does not say that it is published is none, and is never shown as one.
        draft=item.get("draft") is not False,
        immutable=item.get("immutable") is True,
        page=address(item, "html_url"),
        published=text(item, "published_at") or None,
        upload_url=text(item, "upload_url"),
        assets=tuple(_asset(client, each) for each in (found if isinstance(found, list) else ())),
    )


def _asset(client: Client, item: Any) -> Asset:
    if not isinstance(item, dict) or type(item.get("id")) is not int:
        raise client.odd()
    digest = _DIGEST.fullmatch(text(item, "digest"))
    return Asset(
        id=item["id"],
        name=text(item, "name"),
        size=_count(item, "size"),
        uploaded=item.get("state") == "uploaded",
        sha256=digest[1] if digest else None,
        downloads=_count(item, "download_count"),
        url=address(item, "browser_download_url"),
    )


def _count(item: Mapping[str, Any], key: str) -> int:
    value = item.get(key)
    return value if type(value) is int and value >= 0 else 0
