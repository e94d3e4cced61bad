"""How often a release was downloaded, as the forge counts it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from patchq.forge import releases
from patchq.forge.client import Client
from patchq.forge.errors import ForgeError
from patchq.release import withdraw


@dataclass(frozen=True)
class Downloads:
    """A file of a release; `size` in bytes."""

    name: str
    size: int
    downloads: int


@dataclass(frozen=True)
class ReleaseStats:
    """`withdrawn`: its notes say so; nobody has looked whether that is signed."""

    number: int
    published: str | None
    page: str
    withdrawn: bool
    files: tuple[Downloads, ...]

    @property
    def downloads(self) -> int:
        return sum(each.downloads for each in self.files)


@dataclass(frozen=True)
class StatsReport:
    """`releases`: the published ones, the newest first."""

    repo: str
    releases: tuple[ReleaseStats, ...]
    as_of: datetime


def stats(client: Client, repo: str, number: int | None = None) -> StatsReport:
    """Of all releases, or of one.

    Raises ForgeError; `absent` where that one is not published.
    """
    client.progress.step(f"asking {client.host}")
    if number is None:
        found = [each for each in releases.listed(client, repo) if each.number]
    else:
        one = releases.find(client, repo, number)
        if one is None:
            raise ForgeError(
                "absent",
                f"{client.host} has no release {number} of {repo}, or not for these eyes",
                f"`patchq release publish {number}` publishes it",
            )
        found = [one]
    shown = [
        ReleaseStats(
            each.number or 0,
            each.published,
            each.page,
            withdraw.BEGIN in each.notes,
            tuple(
                Downloads(asset.name, asset.size, asset.downloads)
                for asset in sorted(each.assets, key=lambda asset: asset.name)
                if asset.uploaded
            ),
        )
        for each in found
        if not each.draft
    ]
    shown.sort(key=lambda each: -each.number)
    return StatsReport(repo, tuple(shown), datetime.now(UTC))
