"""Repositories of models: which commits their branches and tags are at, by git's own protocol;
what a commit holds, by the hub's."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from patchq.errors import Incomplete, PatchqError
from patchq.gitstore import remote
from patchq.paths import is_inside, show
from patchq.upstream import web
from patchq.upstream.components import HUB
from patchq.upstream.http import redact
from patchq.upstream.pipconf import IndexSettings

LOGIN = "accept its terms on the hub, then set HF_TOKEN to a token that may read it"
_REPOSITORY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)?")
_LINE = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})\t(\S+)")
HEAD = "HEAD"


def heads(url: str) -> Mapping[str, str]:
    """Commits by ref; `HEAD` is that of the main branch.

    Raises Incomplete where the repository is not reached, PatchqError for what is no address.
    """
    if url.startswith(("-", "ext::")) or any(char.isspace() for char in url):
        raise PatchqError(f"{url!r} is not the address of a repository", "correct the file")
    done = remote.listed(url)
    if done.code:
        raise Incomplete(
            f"{redact(url)} was not reached: {_why(done.why)}",
            "check the network and the address, and run it again",
        )
    lines = done.out.decode("utf-8", "replace").splitlines()
    return {found[2]: found[1] for line in lines if (found := _LINE.fullmatch(line))}


def resolved(url: str, revision: str) -> tuple[str, str]:
    """The commit that `revision` means there, and a sentence where that is not certain.

    A branch or tag gives its commit, a commit's first digits the whole. Raises as `heads` does,
    and PatchqError for a name that is not there.
    """
    known = heads(url)
    for ref in (revision, f"refs/heads/{revision}", f"refs/tags/{revision}"):
        if ref in known:
            return known.get(f"{ref}^{{}}", known[ref]), ""
    if not re.fullmatch(r"[0-9a-f]{7,64}", revision):
        raise PatchqError(
            f"{redact(url)} has no branch, tag or commit {revision!r}",
            "name a commit, or a branch: " + ", ".join(sorted(known)[:6]),
        )
    whole = {commit for commit in known.values() if commit.startswith(revision)}
    if len(whole) == 1:
        return whole.pop(), ""
    return revision, f"no branch or tag of {redact(url)} is at {revision}: it is taken as it is"


def _why(told: str) -> str:
    """git's reason without the address, which may hold a password."""
    return re.sub(r"^.*?'[^']*://[^']*'(?:: )?", "", told) or "git says no more"


@dataclass(frozen=True)
class HubFile:
    """A file of a revision: `sha256` of a large one, `blob` (git's id) of any other."""

    path: str
    size: int
    sha256: str | None
    blob: str | None


@dataclass(frozen=True)
class Revision:
    """What a repository holds at a commit, sorted by path."""

    repository: str
    commit: str
    files: tuple[HubFile, ...]


def endpoint() -> str:
    """Where models are: HF_ENDPOINT, as huggingface_hub reads it, else the hub itself."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB


def login() -> dict[str, str]:
    """The header that says who asks, where HF_TOKEN is set."""
    token = os.environ.get("HF_TOKEN", "").strip()
    return {"Authorization": f"Bearer {token}"} if token else {}


def revision(base: str, repository: str, wanted: str, settings: IndexSettings) -> Revision:
    """The files of `repository` at the commit `wanted` (perhaps abbreviated).

    By the hub's API (`/api/models/REPOSITORY/revision/COMMIT?blobs=true`). Raises Incomplete where
    the hub is not reached, PatchqError where it has no such commit, or answers something else.
    """
    if not _REPOSITORY.fullmatch(repository):
        raise PatchqError(f"{repository!r} is no repository of a hub", "it is written OWNER/NAME")
    url = f"{base}/api/models/{repository}/revision/{quote(wanted, safe='')}?blobs=true"
    said = web.whole(url, settings, login(), login=LOGIN)
    if said is None:
        raise PatchqError(
            f"{redact(base)} has no {repository} at the revision {wanted}",
            "see whether it was withdrawn there; a copy in the models folder is taken",
        )
    try:
        found = json.loads(said)
        commit = found["sha"]
        files = tuple(sorted(map(_file, found["siblings"]), key=lambda each: each.path))
        right = isinstance(commit, str) and commit.startswith(wanted) and bool(files)
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        raise PatchqError(
            f"{redact(base)} does not say what {repository} holds", "set HF_ENDPOINT to a hub"
        ) from error
    if not right:
        raise PatchqError(
            f"{redact(base)} gives {repository} at {show(str(commit))}, not at {wanted}",
            "the release is pinned to the latter: do not use the other",
        )
    return Revision(repository, commit, files)


def address(base: str, at: Revision, file: HubFile) -> str:
    """Where the file's bytes are."""
    return f"{base}/{at.repository}/resolve/{at.commit}/{quote(file.path)}"


def _file(entry: Any) -> HubFile:
    path, size, lfs, blob = entry["rfilename"], entry.get("size"), entry.get("lfs"), None
    if not isinstance(path, str) or not is_inside(path.encode("utf-8", "surrogateescape")):
        raise ValueError("a path that leaves its folder")
    sha256 = None
    if lfs:
        sha256, size = str(lfs["sha256"]), lfs["size"]
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise ValueError("no sha256")
    else:
        blob = str(entry["blobId"])
        if not re.fullmatch(r"[0-9a-f]{40}", blob):
            raise ValueError("no blob")
    if type(size) is not int or size < 0:
        raise ValueError("no size")
    return HubFile(path, size, sha256, blob)
