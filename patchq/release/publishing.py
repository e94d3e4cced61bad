"""What is left to do until a release stands published: from what the forge has, and nothing else.

The plan has no memory. Whatever happened before (a process killed, an answer lost, half a file
sent), the next look gives the steps that are left, down to none. Nothing is visible to others
before the last one, and that one is done only when every file there has the digest of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from patchq.errors import PatchqError, ProofFailed
from patchq.forge.releases import LARGEST, LONGEST, MOST, Asset, Release, tag_name
from patchq.paths import show

Do = Literal["create", "edit", "remove-draft", "remove-asset", "upload", "await", "publish"]

MARKER = ("WITHDRAWN", "WITHDRAWN.sig")
"""Files that a release may get after it was published (see withdraw.py)."""
_MARK = "<!-- patchq: release {}, SHA256SUMS {} -->"
_MARKED = re.compile(r"<!-- patchq: release [1-9][0-9]{0,5}, SHA256SUMS [0-9a-f]{64} -->")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")


@dataclass(frozen=True)
class File:
    """A file of the bundle; `size` in bytes."""

    path: Path
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True)
class Wanted:
    """What shall stand there. `object` is the id that the tag has in our repository."""

    number: int
    repo: str
    object: str
    title: str
    notes: str
    sums: str
    """The sha256 of SHA256SUMS: which bundle it is."""
    files: tuple[File, ...]

    @property
    def tag(self) -> str:
        return tag_name(self.number)

    @property
    def body(self) -> str:
        """The notes as GitHub shall have them, with the mark by which a draft is known as ours."""
        text = self.notes.strip()
        if len(text) > LONGEST:
            text = text[:LONGEST].rpartition("\n")[0] + "\n\nThe rest stands in notes.md."
        return f"{text}\n\n{self.mark}\n"

    @property
    def mark(self) -> str:
        """It names the bundle; words that somebody changes in a draft beside it are left alone."""
        return _MARK.format(self.number, self.sums)


@dataclass(frozen=True)
class Stands:
    """What the forge has: all releases; those of the wanted tag with all their assets."""

    releases: tuple[Release, ...]
    tag: str | None
    """The id of what the tag is there; None without one."""


@dataclass(frozen=True)
class Step:
    """One change. `what`: of which file or draft; `why`: where it is not plain; `size` in bytes."""

    do: Do
    what: str
    why: str = ""
    size: int = 0
    release: Release | None = None
    asset: Asset | None = None
    file: File | None = None
    newest: bool = False


def plan(wanted: Wanted, stands: Stands) -> tuple[Step, ...]:
    """The steps that are left; none where exactly one right release is published.

    Raises PatchqError where the tag or a draft of somebody else's stands in the way, ProofFailed
    where another release is published under the number already.
    """
    _check_files(wanted)
    _check_tag(wanted, stands)
    own = [each for each in stands.releases if each.tag == wanted.tag]
    drafts = sorted((each for each in own if each.draft), key=lambda each: each.id)
    published = [each for each in own if not each.draft]
    for each in drafts:
        if not _MARKED.search(each.notes):
            raise PatchqError(
                f"{wanted.repo} has a draft for {wanted.tag} that patchq did not make"
                f" ({each.page or each.id})",
                "delete it there, then run this again",
            )
    if published:
        _check_published(wanted, published[0])
        return tuple(_remove(each, "it is published already") for each in drafts)
    extra = tuple(_remove(each, "there are two") for each in drafts[1:])
    draft = drafts[0] if drafts else None
    return (*extra, *_to_do(wanted, draft), _publish(wanted, stands, draft))


def differences(wanted: Wanted, release: Release) -> Iterator[str]:
    """What of a published release is not as in the bundle, in a few words each."""
    there = {each.name: each for each in release.assets if each.name not in MARKER}
    for file in wanted.files:
        asset = there.pop(file.name, None)
        if asset is None or not asset.uploaded:
            yield f"{file.name} is missing"
        elif asset.sha256 is None:
            yield f"{file.name} has no digest there"
        elif (asset.sha256, asset.size) != (file.sha256, file.size):
            yield f"{file.name} is another file"
    for name in there:
        yield f"{show(name)} is not of the bundle"


def _to_do(wanted: Wanted, draft: Release | None) -> Iterator[Step]:
    if draft is None:
        yield Step("create", wanted.tag)
    elif wanted.mark not in draft.notes:
        yield Step("edit", wanted.tag, "it is of another cut", release=draft)
    files = {file.name: file for file in wanted.files}
    right: set[str] = set()
    for asset in draft.assets if draft else ():
        why = _wrong(files.get(asset.name), asset)
        if why:
            yield Step("remove-asset", asset.name, why, release=draft, asset=asset)
            continue
        right.add(asset.name)
        if asset.sha256 is None:
            yield Step("await", asset.name, "its digest is not told yet", release=draft)
    for file in wanted.files:
        if file.name not in right:
            yield Step("upload", file.name, size=file.size, release=draft, file=file)


def _wrong(file: File | None, asset: Asset) -> str:
    """Why an asset of a draft cannot stay; empty where it can."""
    if file is None:
        return "it is not of the bundle"
    if not asset.uploaded:
        return "an upload broke off"
    if asset.size != file.size or asset.sha256 not in (file.sha256, None):
        return "it is another file"
    return ""


def _publish(wanted: Wanted, stands: Stands, draft: Release | None) -> Step:
    others = [each.number or 0 for each in stands.releases if not each.draft]
    newest = wanted.number > max(others, default=0)
    return Step("publish", wanted.tag, release=draft, newest=newest)


def _remove(draft: Release, why: str) -> Step:
    return Step("remove-draft", draft.tag, why, release=draft)


def _check_files(wanted: Wanted) -> None:
    if len(wanted.files) > MOST:
        raise PatchqError(
            f"release {wanted.number} has {len(wanted.files)} files, and GitHub takes {MOST}",
            "cut it again with larger parts",
        )
    for file in wanted.files:
        if not 0 < file.size <= LARGEST:
            raise PatchqError(
                f"{file.name} has {file.size} bytes, and GitHub takes 1 to {LARGEST}",
                "cut the release again: what is larger is cut into parts",
            )
        if not _NAME.fullmatch(file.name):
            raise PatchqError(
                f"GitHub would give {show(file.name)!r} another name",
                "cut the release again with a name of letters, digits and . _ - +",
            )


def _check_tag(wanted: Wanted, stands: Stands) -> None:
    if stands.tag is None:
        raise PatchqError(
            f"the tag {wanted.tag} is not at {wanted.repo} yet",
            f"push it with its commit: `git push origin HEAD {wanted.tag}`; then run this again",
        )
    if stands.tag != wanted.object:
        raise PatchqError(
            f"the tag {wanted.tag} at {wanted.repo} is {stands.tag[:12]}, and here it is"
            f" {wanted.object[:12]}",
            "see which one is right; a number that others have seen is not used again",
        )


def _check_published(wanted: Wanted, release: Release) -> None:
    if found := list(differences(wanted, release)):
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        raise ProofFailed(
            f"release {wanted.number} is published already, and is another one:"
            f" {'; '.join(found[:3])}{more}",
            "what is published is never exchanged: withdraw it, and cut the next number",
        )
