"""Publish a release at GitHub, once, whatever stops it on the way: run again, it goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from patchq.config import Project
from patchq.errors import PatchqError, ProofFailed
from patchq.forge import releases
from patchq.forge.errors import ForgeError
from patchq.forge.releases import Release
from patchq.forge.writing import Writer
from patchq.gitstore import remote, tags
from patchq.release import bundle, manifest, sign, sums, withdraw
from patchq.release.publishing import File, Stands, Step, Wanted, plan

_PASSES = ("server", "network", "refused", "answer")
"""What may be gone at the next look: the line, the server, or a name that was taken."""


@dataclass(frozen=True)
class PublishReport:
    """`steps`: what was done, or with `dry_run` would be; none where it stood published already.

    `release` is None while it is not published.
    """

    number: int
    repo: str
    dry_run: bool
    steps: tuple[Step, ...]
    release: Release | None
    files: int
    size: int
    """Bytes of all its files."""


def wanted(project: Project, number: int, repo: str) -> Wanted:
    """Release `number` as it lies in `build/releases/`, verified.

    Raises PatchqError where bundle or tag are missing, or the release is withdrawn; ProofFailed
    where the bundle is not what was signed, or not what was tagged.
    """
    root, name = project.root, releases.tag_name(number)
    place = bundle.folder(root, number)
    if not place.is_dir():
        raise PatchqError(
            f"there is no bundle of release {number} in {place}",
            "`patchq release cut` makes it; of one that was cut elsewhere bring the folder here",
        )
    if mark := withdraw.recorded(root).get(number):
        raise PatchqError(
            withdraw.sentence(withdraw.read(mark)), "cut the next number and publish that"
        )
    commit = tags.tagged(root, name)
    ids = remote.heads(project.git_dir, [f"refs/tags/{name}"])
    if commit is None or not ids:
        raise PatchqError(
            f"there is no tag {name} here", "get it with `git fetch --tags`; cut makes it"
        )
    for check in bundle.verify(place, root / sign.SIGNERS):
        if not check.ok:
            raise ProofFailed(
                f"the bundle of release {number} does not hold: {check.name}: {check.detail}",
                "cut it again, or bring the right folder",
            )
    found = bundle.load(place)
    told = (place / manifest.MANIFEST).read_bytes()
    if tags.at(root, commit, f"{manifest.FOLDER}/{number}.toml") != told:
        raise ProofFailed(
            f"the bundle in {place} is not the release that {name} has",
            "cut it again, or bring the right folder",
        )
    listed = sums.read((place / manifest.SUMS).read_bytes())
    files = tuple(
        File(path, path.stat().st_size, listed.get(path.name) or sums.sha256(path))
        for path in found.files
    )
    notes = (place / bundle.NOTES).read_text(encoding="utf-8", errors="replace")
    which = next(file.sha256 for file in files if file.name == manifest.SUMS)
    return Wanted(number, repo, next(iter(ids.values())), f"Release {number}", notes, which, files)


def publish(
    client: Writer,
    want: Wanted,
    *,
    dry_run: bool = False,
    before: Callable[[], object] = lambda: None,
) -> PublishReport:
    """Do what is left until the release stands published; what passes is waited for.

    `before` is called before others can see it, and where they can already.
    Raises ForgeError where the forge is not reached or refuses, ProofFailed where a file does not
    come as it is sent, and what `plan` raises.
    """
    done: list[Step] = []
    tried: Counter[str] = Counter()
    made: Release | None = None
    failures = 0
    while True:
        try:
            stands = look(client, want, made)
        except ForgeError as error:
            raise _later(want, error) from error
        steps = plan(want, stands)
        if dry_run:
            break
        if not steps or steps[0].do == "publish":
            before()
        if not steps:
            break
        try:
            for step in _next(steps):
                _count(client, tried, step)
                made = _do(client, want, step) or made
                if step.do != "await":
                    done.append(step)
                    failures = 0
                else:
                    failures = _again(client, failures, "it does not tell the digests yet")
        except ForgeError as error:
            limit = client.patience.tries if error.kind in ("server", "network") else 1
            if error.kind not in _PASSES or failures >= limit:
                raise _later(want, error) from error
            failures = _again(client, failures, "it failed")
    published = [each for each in stands.releases if each.tag == want.tag and not each.draft]
    return PublishReport(
        want.number,
        want.repo,
        dry_run,
        steps if dry_run else tuple(done),
        published[0] if published else None,
        len(want.files),
        sum(file.size for file in want.files),
    )


def look(client: Writer, want: Wanted, made: Release | None = None) -> Stands:
    """What the forge has now. `made`: a draft that a list may not show yet. Raises ForgeError."""
    client.progress.step(f"looking at {want.repo}")
    tag = releases.tag(client, want.repo, want.tag)
    found = list(releases.listed(client, want.repo))
    if made is not None and made.id not in {each.id for each in found}:
        found.append(made)
    stands = [
        releases.whole(client, want.repo, each) if each.tag == want.tag else each for each in found
    ]
    return Stands(tuple(stands), tag)


def _next(steps: Sequence[Step]) -> Sequence[Step]:
    """Those that may be done before the next look: none that hides or hurries."""
    if steps[0].do == "create":
        return steps[:1]
    return [step for step in steps if step.do != "publish"] or steps


def _do(client: Writer, want: Wanted, step: Step) -> Release | None:
    """One step; the release that it made or changed. Raises ForgeError."""
    release = step.release
    match step.do:
        case "create":
            client.progress.step(f"making a draft at {want.repo}")
            return releases.create(client, want.repo, want.tag, want.title, want.body)
        case "edit":
            assert release
            return releases.edit(client, want.repo, release, want.title, want.body)
        case "remove-draft":
            assert release
            releases.delete_draft(client, want.repo, release)
        case "remove-asset":
            assert step.asset
            releases.delete_asset(client, want.repo, step.asset)
        case "upload":
            assert release
            assert step.file
            releases.upload(client, release, step.file.path)
        case "publish":
            assert release
            client.progress.step(f"publishing {want.tag} at {want.repo}")
            return releases.publish(client, want.repo, release, newest=step.newest)
        case "await":
            pass
    return None


def _count(client: Writer, tried: Counter[str], step: Step) -> None:
    """Raises ProofFailed where a file was sent so often, and each time another one came."""
    tried[f"{step.do} {step.what}"] += 1
    if step.do == "upload" and tried[f"{step.do} {step.what}"] > client.patience.tries + 1:
        raise ProofFailed(
            f"{client.host} has another file each time that {step.what} is sent",
            "something on the way alters it, a proxy say; the draft stays, unpublished",
        )


def _again(client: Writer, failures: int, why: str) -> int:
    """Waits, the longer the more often it failed. Raises ForgeError where it did so too often."""
    if failures >= client.patience.tries:
        raise ForgeError(
            "answer",
            f"{client.host} tells no digest of a file, so nothing proves that it came whole",
            "the draft stays; run it again later",
        )
    client.wait(client.patience.backoff * 2**failures, why)
    return failures + 1


def _later(want: Wanted, error: ForgeError) -> ForgeError:
    again = f"`patchq release publish {want.number}` goes on where it stopped"
    hint = f"{error.hint}; {again}" if error.hint and error.kind in ("token", "limit") else again
    return ForgeError(error.kind, error.message, hint)
