"""`patchq release verify`: is it what was signed, and what this repository says that it is?"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchq.build import lock as locks
from patchq.config import Project, cache_dir
from patchq.errors import PatchqError, ProofFailed
from patchq.gitstore import tags
from patchq.progress import SILENT, Progress
from patchq.release import (
    archive,
    assemble,
    bundle,
    fetch,
    history,
    manifest,
    parts,
    record,
    sign,
    sums,
    withdraw,
)
from patchq.release.bundle import Check
from patchq.release.manifest import MANIFEST, SUMS, Manifest
from patchq.smoke import identity as identities

_LARGEST = 1 << 30
_SMALL = 1 << 16


@dataclass(frozen=True)
class VerifyReport:
    """`what` was looked at; `number` None: it does not even say which release it is."""

    what: str
    number: int | None
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return bundle.holds(self.checks)

    @property
    def exit_code(self) -> int:
        return 0 if self.ok else ProofFailed.exit_code


@contextmanager
def placed(
    what: str,
    base: str | None,
    project: Project | None,
    signers: Path | None = None,
    *,
    offline: bool = False,
    progress: Progress = SILENT,
) -> Iterator[Path]:
    """The folder that holds the release `what`: a number, a folder, or an address.

    A number is looked for in build/releases, or at `base`. What is elsewhere is brought here for
    as long as this lasts. Raises PatchqError where it is not there, ProofFailed where what is
    brought is not signed.
    """
    if what.isdecimal() and base is None:
        if project is None:
            raise PatchqError(f"where is release {what}?", "say it with --from")
        place = bundle.folder(project.root, int(what))
        if not place.is_dir():
            raise PatchqError(
                f"the bundle of release {what} is not here ({place})",
                "say with --from where it is: a folder, an address, or OWNER/REPO",
            )
        yield place
        return
    source = fetch.find(what, base, offline=offline)
    if source.local:
        yield Path(source.address(SUMS) or what).parent
        return
    offer = fetch.look(source, int(what) if what.isdecimal() else None, _signers(project, signers))
    cache = cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="release-", dir=cache) as folder:
        fetch.bring(offer, Path(folder), progress)
        yield Path(folder)


def _signers(project: Project | None, given: Path | None) -> Path | None:
    if given is None and project is not None:
        return project.root / sign.SIGNERS
    return given


def verify(
    what: str, place: Path, project: Project | None, signers: Path | None = None
) -> VerifyReport:
    """Verify the release in the folder `place`, against the project where there is one.

    `signers`: whose releases are taken, in the place of the project's own. What does not hold of
    the files keeps what is in them from being looked at. Raises PatchqError where the folder holds
    no release.
    """
    checks = bundle.verify(place, _signers(project, signers))
    if not bundle.holds(checks):
        return VerifyReport(what, _number(place), checks)
    found = manifest.read((place / MANIFEST).read_bytes())
    more = [
        _bound("artifact", _artifact, place, found),
        _bound("evidence", _evidence, place, found),
    ]
    more.append(_standing(place, found.number, project, _signers(project, signers)))
    if project is not None:
        more += _repository(place, found, project)
    return VerifyReport(what, found.number, (*checks, *more))


def _number(place: Path) -> int | None:
    try:
        return manifest.read((place / MANIFEST).read_bytes()).number
    except (PatchqError, OSError):
        return None


def _bound(name: str, look: Callable[[Path, Manifest], str], place: Path, found: Manifest) -> Check:
    """What `look` says, or why it does not hold."""
    try:
        return Check(name, True, look(place, found))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return Check(name, False, str(error) or "it is malformed")


def _standing(place: Path, number: int, project: Project | None, signers: Path | None) -> Check:
    """Whether it was withdrawn, as far as folder and repository say."""

    def small(name: str) -> bytes | None:
        path = place / name
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _SMALL:
            return None
        return path.read_bytes()

    try:
        root = project.root if project is not None else None
        found = withdraw.withdrawn(number, signers, small=small, root=root)
    except ProofFailed as error:
        return Check("withdrawn", False, error.message)
    if found is not None:
        told = f"{withdraw.sentence(found)}; {withdraw.advice(found)}"
        return Check("withdrawn", False, told)
    return Check("withdrawn", True, "it is not, as far as is known here")


def _artifact(place: Path, found: Manifest) -> str:
    """The build's own records are about these wheels, this tree and this lock."""
    record_ = _json(place, found, bundle.RECORD)
    wheels = _wheels(found)
    outputs = tuple(sorted((each["name"], each["sha256"]) for each in record_["outputs"]))
    if outputs != wheels:
        raise ValueError(f"{bundle.RECORD} is about other wheels")
    if (record_["lock"], record_["runner"]["tree"]) != (found.lock, found.tree):
        raise ValueError(f"{bundle.RECORD} is about another runner")
    statement = _json(place, found, bundle.STATEMENT)
    subject = sorted((each["name"], each["digest"]["sha256"]) for each in statement["subject"])
    if tuple(subject) != wheels:
        raise ValueError(f"{bundle.STATEMENT} is about other wheels")
    return f"{len(wheels)} wheels, of the tree {found.tree}"


def _evidence(place: Path, found: Manifest) -> str:
    """What the gate has read is in the archive, and is about these wheels."""
    if not found.gate.passed or not all(rule.ok for rule in found.gate.findings):
        raise ValueError("the gate had not passed")
    with parts.whole(place, found.asset(bundle.EVIDENCE)) as path:
        files = archive.read(path, _LARGEST)
    told = {f"{each.kind}.json": each.sha256 for each in found.evidence}
    if {name: hashlib.sha256(data).hexdigest() for name, data in files.items()} != told:
        raise ValueError(f"{bundle.EVIDENCE} holds other evidence than the gate has read")
    if not told:
        raise ValueError("there is none")
    for name, data in files.items():
        runner = json.loads(data).get("runner")
        try:
            about = identities.read(runner)
        except ValueError as error:
            raise ValueError(f"{name} is bound to nothing: {error}") from error
        if (about.lock, about.tree) != (found.lock, found.tree):
            raise ValueError(f"{name} is about another runner")
        if about.artifacts != _wheels(found):
            raise ValueError(f"{name} is about other wheels")
    return f"{', '.join(sorted(files))}: of this runner"


def _wheels(found: Manifest) -> tuple[tuple[str, str], ...]:
    """Name and sha256 of what was built, sorted."""
    names = {name for target in found.targets for name in target.wheels}
    return tuple(sorted((each.name, each.sha256) for each in found.assets if each.name in names))


def _repository(place: Path, found: Manifest, project: Project) -> Iterator[Check]:
    root, name = project.root, record.tag_of(found.number)
    commit = tags.tagged(root, name)
    if commit is None:
        yield Check("repository", False, f"it has no tag {name}: `git fetch --tags` brings it")
        return
    toml, _ = record.files_of(found.number)
    same = tags.at(root, commit, toml) == (place / MANIFEST).read_bytes()
    yield Check("repository", same, f"{toml} at {name}" + ("" if same else " says otherwise"))
    yield _series(found, project, commit)
    bad = list(_base(found, root, commit))
    yield Check("base", not bad, "; ".join(bad) or f"{found.base.release}, tree {found.tree}")


def _series(found: Manifest, project: Project, commit: str) -> Check:
    """The archive of the series, made anew of what is tagged, has the same bytes."""
    asset = found.asset(bundle.SERIES)
    with tempfile.TemporaryDirectory(prefix="patchq-") as folder:
        path = Path(folder) / bundle.SERIES
        assemble.series_archive(project.git_dir, commit, path, assemble.seconds_of(found))
        ok = asset is not None and sums.sha256(path) == asset.sha256
    told = f"{len(found.patches)} patches" if ok else "the tagged series gives another archive"
    return Check("series", ok, told)


def _base(found: Manifest, root: Path, commit: str) -> Iterator[str]:
    """What the tagged repository says of base, lock and patches."""
    try:
        state = json.loads(tags.at(root, commit, "upstream/state.json") or b"")
        queue = state["queues"][found.queue]
        base = queue["base"]
        if (base["release"], base["tree"]) != (found.base.release, found.base.tree):
            yield f"the repository stands on {base['release']}, {base['tree'][:12]}"
        if queue["runner_tree"] != found.tree:
            yield f"the repository has proved the tree {queue['runner_tree'][:12]}"
    except (ValueError, LookupError, TypeError):
        yield "upstream/state.json at the tag cannot be read"
    try:
        data = tags.at(root, commit, f"upstream/{locks.FILE}") or b""
        lock = locks.parse(data, f"upstream/{locks.FILE}")
        if lock.digest != found.lock or dict(lock.facts) != dict(found.facts):
            yield "the repository's runner lock is another"
    except PatchqError as error:
        yield error.message
    there = history.content_ids(root, commit, found)
    odd = [each.name for each in found.patches if there.get(each.name) != each.sha256]
    if odd or len(there) != len(found.patches):
        yield f"the repository's patches are others ({', '.join(odd[:3]) or 'more of them'})"


def _json(place: Path, found: Manifest, name: str) -> Mapping[str, Any]:
    with parts.whole(place, found.asset(name)) as path:
        value = json.loads(path.read_bytes())
    if not isinstance(value, dict):
        raise ValueError(f"{name} is no object")
    return value
