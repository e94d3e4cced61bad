"""Withdraw a release: a signed mark in the repository and at the forge names the last good one.

Nothing is deleted: who has the release must be able to see what it was. Safe to repeat: what stands
already is left as it is.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from patchq.config import Project
from patchq.errors import PatchqError
from patchq.forge import releases
from patchq.forge.errors import ForgeError
from patchq.forge.releases import Asset, Release
from patchq.forge.writing import Writer
from patchq.gitstore import files
from patchq.gitstore import project as git
from patchq.release import manifest, sign, sums, withdraw
from patchq.release.tables import LINE
from patchq.release.withdraw import FILE, MARKER, SIGNATURE, Mark, Withdrawal


@dataclass(frozen=True)
class WithdrawReport:
    """`steps`: what was done, or with `dry_run` would be, a sentence each; none where it stood.

    `page`: of the release at the forge; empty where it is not published, or nobody was asked.
    `commit`: the one that brought the mark, None without one.
    """

    withdrawal: Withdrawal
    repo: str | None
    dry_run: bool
    steps: tuple[str, ...]
    notes: tuple[str, ...]
    page: str
    commit: str | None = None


def run(
    project: Project,
    number: int,
    why: str,
    *,
    banner: Callable[[Withdrawal], str],
    key: Path | None = None,
    client: Writer | None = None,
    repo: str | None = None,
    commit: bool = False,
    dry_run: bool = False,
) -> WithdrawReport:
    """Withdraw release `number`; `banner` says it for its notes, in Markdown.

    Without `client` only the repository has the mark. Raises PatchqError without such a release, a
    reason or a key that `releases/allowed_signers` names; ForgeError where the forge is not
    reached: the mark stands in the repository then.
    """
    root = project.root
    if manifest.read_at(root, number) is None:
        raise PatchqError(
            f"there is no release {number} here", "`patchq release list` names those that are"
        )
    if not why.strip() or not LINE.fullmatch(why):
        raise PatchqError("the reason is no line of text", "say in one line why, with --why")
    there = releases.listed(client, repo) if client and repo else None
    marks = withdraw.recorded(root)
    steps: list[str] = []
    if number not in marks:
        value = _value(root, number, why, marks, there)
        # Also where nothing is written: a key that nobody knows is said before.
        marks[number] = _signed(root, value, key)
        steps.append(f"{FILE} has the signed mark")
        if not dry_run:
            files.write(root / FILE, withdraw.record(marks))
    value = withdraw.read(marks[number])
    made = None
    if commit and not dry_run and git.changed(root, [FILE]):
        made = git.commit(root, [FILE], f"release: withdraw release {number}\n\n{value.why}\n")
    report = WithdrawReport(value, repo, dry_run, tuple(steps), (), "", made)
    if value.why != why.strip():
        report = replace(report, notes=(f"it was withdrawn on {value.date[:10]}, and that stays",))
    if client is None or repo is None or there is None:
        return replace(report, repo=None)
    at = _Forge(client, repo, dry_run)
    try:
        at.tell(there, value, marks[number], banner(value))
    except ForgeError as error:
        again = "the mark stands in the repository; run it again for the forge"
        raise ForgeError(error.kind, error.message, again) from error
    return replace(
        report,
        steps=(*report.steps, *at.steps),
        notes=(*report.notes, *at.notes),
        page=at.page,
    )


def _value(
    root: Path,
    number: int,
    why: str,
    marks: dict[int, Mark],
    there: tuple[Release, ...] | None,
) -> Withdrawal:
    known = set(manifest.numbers(root))
    if there is not None:
        known &= {each.number for each in there if not each.draft and each.number}
    good = known - set(marks) - {number}
    digest = sums.sha256(root / manifest.FOLDER / f"{number}.toml")
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Withdrawal(number, why.strip(), now, digest, max(good, default=None))


def _signed(root: Path, value: Withdrawal, key: Path | None) -> Mark:
    text = withdraw.write(value)
    with tempfile.TemporaryDirectory(prefix="patchq-") as folder:
        path = Path(folder) / MARKER
        path.write_bytes(text)
        mark = Mark(text, sign.sign(path, sign.key_of(root, key)).read_bytes())
    who, why = withdraw.signed_by(mark, root / sign.SIGNERS)
    if who is None:
        raise PatchqError(
            f"the mark would be believed by nobody: {why}",
            f"sign with a key that {sign.SIGNERS} names for releases",
        )
    return mark


class _Forge:
    """The steps at the forge."""

    def __init__(self, client: Writer, repo: str, dry_run: bool) -> None:
        self.client, self.repo, self.dry_run = client, repo, dry_run
        self.steps: list[str] = []
        self.notes: list[str] = []
        self.page = ""

    def tell(self, there: tuple[Release, ...], value: Withdrawal, mark: Mark, banner: str) -> None:
        """Notes, files where they can be added, and which is the latest. Raises ForgeError."""
        published = {each.number: each for each in there if not each.draft}
        found = published.get(value.release)
        if found is None:
            self.notes.append(
                f"release {value.release} is not published at {self.repo}:"
                " nothing was changed there"
            )
            return
        self.page = found.page
        if withdraw.in_notes(found.notes) != mark:
            notes = withdraw.into_notes(found.notes, banner, mark)
            self.steps.append(f"the notes of release {value.release} say that it is withdrawn")
            if not self.dry_run:
                releases.edit(self.client, self.repo, found, found.title, notes)
        self._add(found, mark)
        if value.last_good in published:
            self._lead_to(published[value.last_good])

    def _add(self, found: Release, mark: Mark) -> None:
        stands = f"the mark stands in its notes and in {FILE}"
        if found.immutable:
            self.notes.append(f"release {found.number} is immutable: {stands}")
            return
        assets = {each.name: each for each in releases.assets_of(self.client, self.repo, found.id)}
        try:
            # The signature first: a mark without one is believed by nobody.
            for name, data in ((SIGNATURE, mark.signature), (MARKER, mark.text)):
                self._put(found, assets.get(name), name, data)
        except ForgeError as error:
            if error.kind != "refused":
                raise
            self.notes.append(f"{error.message}: {stands}")

    def _lead_to(self, good: Release) -> None:
        now = releases.latest(self.client, self.repo)
        if now is None or now.id == good.id:
            return
        self.steps.append(f"release {good.number} is shown as the latest")
        if not self.dry_run:
            releases.show_as_latest(self.client, self.repo, good)

    def _put(self, found: Release, asset: Asset | None, name: str, data: bytes) -> None:
        if asset and asset.uploaded and asset.sha256 == hashlib.sha256(data).hexdigest():
            return
        self.steps.append(f"release {found.number} has the file {name}")
        if self.dry_run:
            return
        if asset:
            releases.delete_asset(self.client, self.repo, asset)
        with tempfile.TemporaryDirectory(prefix="patchq-") as folder:
            path = Path(folder) / name
            path.write_bytes(data)
            releases.upload(self.client, found, path)
