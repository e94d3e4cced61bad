"""What the page has to ask others for: upstream's releases, the forge's counts of downloads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from patchq.carry.shelf import now
from patchq.carry.workspace import Queue
from patchq.config import find_project
from patchq.errors import PatchqError
from patchq.forge.client import Client, token
from patchq.gitstore import tags
from patchq.gitstore.remote import heads
from patchq.nightly import kept, shared
from patchq.nightly import page_known as known
from patchq.nightly.begin import secret
from patchq.nightly.model import Night
from patchq.nightly.page import Downloads, Page, gather, ordered
from patchq.nightly.settings import Settings, load
from patchq.nightly.shared import Shared
from patchq.nightly.tell import united
from patchq.progress import SILENT, Progress
from patchq.release.stats import stats
from patchq.release.where import Where, where
from patchq.upstream.drift import Drift
from patchq.upstream.drift import drift as measure


def place(root: Path, repo: str | None) -> Where | None:
    """The repository at its forge (`repo`: OWNER/REPO, where that is set); None where none is."""
    try:
        return where(root, repo)
    except PatchqError:
        return None


def site(at: Where) -> str:
    """The repository's address for people."""
    api = urlsplit(at.api)
    host = "github.com" if api.netloc == "api.github.com" else api.netloc
    return f"{api.scheme}://{host}/{at.repo}"


def drift(queue: Queue, *, offline: bool, progress: Progress = SILENT) -> Drift:
    """How far the queue's base is behind upstream."""
    state = queue.state
    root = queue.project.root
    return measure(
        queue.config, root, state.release, state.commit, offline=offline, progress=progress
    )


def downloads(
    at: Where | None,
    folder: Path,
    nights: Sequence[Night],
    *,
    offline: bool,
    progress: Progress = SILENT,
) -> Downloads:
    """Asked of the forge, with a token; else as a night kept them in `folder`; else unknown.

    `nights`: the newest first.
    """
    why, reached, found = "", True, token()
    if at is None:
        why = "no repository is set in releases/publish.toml, and git's origin is none at GitHub"
    elif offline:
        why = "nobody is asked with --offline"
    elif found is None:
        why = "there is no token in GITHUB_TOKEN or GH_TOKEN to ask with"
    else:
        try:
            with Client(at.api, *found, progress=progress) as client:
                told = stats(client, at.repo)
        except PatchqError as problem:
            why, reached = problem.message, False
        else:
            counts = {each.number: each.downloads for each in told.releases}
            pages = {each.number: each.page for each in told.releases}
            return Downloads(counts, pages, told.as_of.isoformat(timespec="seconds"))
    kept = known.downloads(folder, nights)
    if kept is None:
        return Downloads({}, {}, missing=why, reached=reached)
    listed = list(known.counted(kept))
    return Downloads(
        {number: count for number, count, _ in listed},
        {number: page for number, _, page in listed if page},
        str(kept.get("as_of") or "") or None,
        reached=reached,
    )


def whole(
    queue: Queue,
    *,
    nights: Path | None = None,
    offline: bool = False,
    progress: Progress = SILENT,
) -> Page:
    """The page of a queue now, with everything that can be had.

    `nights`: the folder of the nights, where it is not the one of ci/nightly.toml. Raises
    PatchqError for a queue, or settings, that cannot be read.
    """
    root = queue.project.root
    settings = load(root)
    folder = nights or settings.folder(root)
    name = queue.config.name
    told, reached = _shared(root, settings, offline=offline)
    found = ordered(united(kept.listed(folder, name), told.nights), name)
    at = place(root, settings.repository)
    return gather(
        queue,
        now=now(),
        nights=found,
        folder=folder,
        drift=drift(queue, offline=offline, progress=progress),
        downloads=downloads(at, folder, found, offline=offline, progress=progress),
        stale_hours=settings.stale_hours,
        site=site(at) if at else None,
        notes=told.says,
        reached=reached,
    )


def _shared(root: Path, settings: Settings, *, offline: bool) -> tuple[Shared, bool]:
    """The nights of the remote's branch, where there is a remote, and whether it answered.

    Offline, and where it did not, they are as it was seen last.
    """
    if tags.setting(root, f"remote.{shared.REMOTE}.url") is None:
        return Shared(), True
    says: tuple[str, ...] = ()
    if not offline:
        try:
            return shared.ask(root, secret=secret(root, settings)), True
        except PatchqError as problem:
            says = (f"nights of other machines are as they were seen last: {problem.message}",)
    ref = f"refs/remotes/{shared.REMOTE}/{shared.BRANCH}"
    tip = heads(find_project(root).git_dir, [ref]).get(ref)
    nights, odd = shared.parsed(tags.folder_at(root, tip, shared.FOLDER) if tip else {})
    return Shared(nights, (*says, *odd)), not says
