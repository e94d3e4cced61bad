"""Files of a hub's repository at a commit, each held against what the hub says of it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from patchq.errors import PatchqError, ProofFailed
from patchq.gitstore.objects import blob_id
from patchq.progress import Progress
from patchq.upstream import download as downloads
from patchq.upstream import hub, web
from patchq.upstream.hub import HubFile, Revision
from patchq.upstream.origin import Origin, stored
from patchq.upstream.pages import Dist
from patchq.upstream.pipconf import IndexSettings

INDEX = "model.safetensors.index.json"
_ROOM = "give `models` of the node another place"
_REFUSED = "see whether it was withdrawn there; a model behind terms wants HF_TOKEN"
_WRONG = "do not use it; run it again later"


def download(
    base: str,
    revision: Revision,
    folder: Path,
    free: int,
    settings: IndexSettings,
    progress: Progress,
) -> None:
    """All its files into `folder`, where `free` bytes are left; what broke off goes on.

    Raises PatchqError where they do not fit or are not got, ProofFailed where one is another.
    """
    origin = Origin("the hub", _ROOM, _REFUSED, _WRONG, hub.login())
    missing = sum(max(0, each.size - _size(folder / each.path)) for each in revision.files)
    if missing > free:
        raise PatchqError(
            f"{revision.repository} does not fit into {folder.parent}: it needs"
            f" {missing / 1e9:.1f} GB more, {free / 1e9:.1f} GB are free",
            f"free some space, or {_ROOM}",
        )
    for file in revision.files:
        target = folder / file.path
        with stored(file.path, folder, origin):
            target.parent.mkdir(parents=True, exist_ok=True)
        if file.sha256 is None:
            data = small(base, revision, file, settings)
            with stored(file.path, folder, origin):
                target.write_bytes(data)
            continue
        url = hub.address(base, revision, file)
        dist = Dist("", target.name, url, file.sha256, file.size)
        downloads.fetch(dist, target.parent, settings, progress, origin=origin)


def small(base: str, revision: Revision, file: HubFile, settings: IndexSettings) -> bytes:
    """A file that is no weights, whole. Raises as `download` does."""
    url = hub.address(base, revision, file)
    data = web.whole(url, settings, hub.login(), most=max(web.MOST, file.size), login=hub.LOGIN)
    if data is None:
        raise PatchqError(f"{file.path} of {revision.repository} is gone", _REFUSED)
    plain = file.sha256 is not None
    found = hashlib.sha256(data).hexdigest() if plain else blob_id(data)
    if found != (file.sha256 if plain else file.blob):
        raise ProofFailed(
            f"{file.path} of {revision.repository} is not what the hub promises", _WRONG
        )
    return data


def _size(path: Path) -> int:
    for each in (path, path.with_name(f"{path.name}.part")):
        if each.is_file():
            return each.stat().st_size
    return 0
