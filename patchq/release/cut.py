"""`patchq release cut`: take the next number, see that all holds, make the bundle, sign, record."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import patchq
from patchq.build import lockfacts
from patchq.carry.workspace import Queue
from patchq.errors import PatchqError
from patchq.gitstore import tags
from patchq.progress import SILENT, Progress
from patchq.queue import header as headers
from patchq.queue.patch import FILE
from patchq.queue.series import RETIRED
from patchq.release import assemble, bundle, made_of, parts, record, sign, standing, sums
from patchq.release import manifest as manifests
from patchq.release.assemble import Notes, Source
from patchq.release.bundle import Check
from patchq.release.manifest import (
    NUMBERS,
    SUMS,
    Base,
    EvidenceIs,
    GateIs,
    Manifest,
    Rule,
    Tested,
)
from patchq.release.standing import Standing
from patchq.smoke import gate as gates
from patchq.smoke.gate_model import Gate

LIMITS = "releases/limits.md"


@dataclass(frozen=True)
class CutReport:
    """What was looked at, and what became of it. `manifest` None: it may not be a release.

    `folder` and `commit` None: nothing was written. `entry` is the journal's number.
    """

    number: int
    previous: int | None
    checks: tuple[Check, ...]
    manifest: Manifest | None
    folder: Path | None = None
    commit: str | None = None
    entry: int | None = None
    dry_run: bool = False
    code: int = 0

    @property
    def tag(self) -> str:
        return record.tag_of(self.number)

    @property
    def exit_code(self) -> int:
        return self.code


def cut(
    queue: Queue,
    notes: Notes,
    *,
    number: int | None = None,
    why: str = "",
    key: Path | None = None,
    dry_run: bool = False,
    part: int = parts.SIZE,
    gate: Callable[..., Gate] = gates.decide,
    offline: bool = False,
    progress: Progress = SILENT,
) -> CutReport:
    """Cut the next release; the caller holds the project's lock, and has settled the last one.

    Nothing is written, and the report says why, where something does not hold. Raises PatchqError
    for a number that cannot be had, a missing key, and what is malformed.
    """
    root = queue.project.root
    number, previous = _number(root, number, why)
    commit, seconds = tags.head(root)
    seconds = _date(seconds)
    signing = None if dry_run else sign.key_of(root, key)
    progress.step("asking the gate")
    found = standing.look_at(queue, gate(queue.project), offline=offline, progress=progress)
    report = CutReport(number, previous.number if previous else None, found.checks, None)
    if found.exit_code or found.built is None:
        return CutReport(**{**vars(report), "code": found.exit_code, "dry_run": dry_run})
    draft = _draft(queue, found, number, why, previous, seconds)
    if dry_run:
        return CutReport(**{**vars(report), "manifest": draft, "dry_run": True})
    assert signing is not None
    source = Source(
        queue, draft, commit, found.built.folder, found.built.wheels, _evidence(found.gate)
    )
    place = bundle.folder(root, number).parent
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix=f".{number}-", dir=place, ignore_cleanup_errors=True
    ) as folder:
        made = Path(folder) / str(number)
        made.mkdir()
        manifest = assemble.assemble(
            source, previous, made, notes, part=part, offline=offline, progress=progress
        )
        progress.step("signing")
        sign.sign(made / SUMS, signing)
        _signed(made, root / sign.SIGNERS)
        sealed, entry = record.record(queue.project, number, made)
    done = {"manifest": manifest, "folder": bundle.folder(root, number), "commit": sealed}
    return CutReport(**{**vars(report), **done, "entry": entry.id if entry else None})


def _number(root: Path, wanted: int | None, why: str) -> tuple[int, Manifest | None]:
    there = manifests.numbers(root)
    number = wanted if wanted is not None else (there[-1] + 1 if there else 1)
    if number not in NUMBERS:
        raise PatchqError(f"{number} is no number of a release", "give one from 1 on")
    if number in there or tags.tagged(root, record.tag_of(number)) is not None:
        raise PatchqError(
            f"release {number} exists already",
            f"a number is given once; the next one is {there[-1] + 1 if there else number + 1}",
        )
    if (place := bundle.folder(root, number)).exists():
        raise PatchqError(
            f"{place} is there, of a release that this repository does not know",
            "get its tag (`git fetch --tags`), or remove the folder",
        )
    if there and number < there[-1]:
        raise PatchqError(
            f"release {number} would come before release {there[-1]}",
            f"the next one is {there[-1] + 1}",
        )
    if number != (there[-1] + 1 if there else 1) and not why.strip():
        raise PatchqError(
            f"release {number} would leave a gap after {there[-1] if there else 0}",
            "say why with --why; it stands in the release",
        )
    return number, manifests.read_at(root, there[-1]) if there else None


def _date(committed: int) -> int:
    """The release's date: SOURCE_DATE_EPOCH, or the time of the commit that it is made of."""
    told = os.environ.get("SOURCE_DATE_EPOCH")
    if told is None:
        return committed
    if not told.isdecimal() or int(told) > 253402300799:  # the year 9999
        raise PatchqError(
            f"SOURCE_DATE_EPOCH is {told!r}, no time", "give seconds since 1970, or unset it"
        )
    return int(told)


def _draft(
    queue: Queue,
    found: Standing,
    number: int,
    why: str,
    previous: Manifest | None,
    seconds: int,
) -> Manifest:
    gate, built, profile = found.gate, found.built, found.profile
    assert built is not None and profile is not None and gate.identity is not None
    root, state = queue.project.root, queue.state
    from_archive = "archive" in state.releases.get(state.release, {})
    pins = lockfacts.pins_of(root, queue.series.applied)
    try:
        by_hand = (root / LIMITS).read_text(encoding="utf-8")
    except FileNotFoundError:
        by_hand = ""
    return Manifest(
        number=number,
        date=assemble.date_of(seconds),
        queue=queue.config.name,
        base=Base(state.release, state.tree, None if from_archive else state.commit),
        tree=found.tree,
        lock=found.lock.digest,
        patches=made_of.patches(queue.series.applied, previous),
        assets=(),
        targets=(),
        models=made_of.models(pins, profile),
        previous=previous.number if previous else None,
        evidence=tuple(
            EvidenceIs(each.kind, each.sha256, each.when.isoformat() if each.when else "")
            for each in gate.evidence
        ),
        gate=GateIs(
            gate.passed,
            tuple(Rule(made_of.line(f.rule), f.ok, made_of.line(f.says)) for f in gate.findings),
        ),
        why=made_of.line(why),
        profile=profile.name,
        folder=queue.config.series,
        series=queue.series.digest,
        patchq=patchq.__version__,
        dropped=made_of.dropped(queue.series.applied, previous, _retired(queue)),
        bench=made_of.figures(_bench(gate), found.tree),
        tested=tuple(
            Tested(node.rank, made_of.line(node.machine), node.gpu, node.driver)
            for node in gate.identity.nodes
        ),
        limits=made_of.limits(built.target, built.record, profile, gate.identity, by_hand),
        facts=made_of.facts(found.lock),
    )


def _bench(gate: Gate) -> Mapping[str, object] | None:
    import json

    for each in gate.evidence:
        if each.kind == "bench":
            value = json.loads(each.path.read_bytes())
            return value if isinstance(value, dict) else None
    return None


def _retired(queue: Queue) -> dict[str, str]:
    """Why each patch was dropped or deleted, by name."""
    found: dict[str, str] = {}
    for file in queue.series.retired:
        header, _ = headers.parse((queue.folder / RETIRED / file).read_bytes(), file)
        told = [header.get("Patchq-Dropped"), *header.all("Patchq-Evidence")]
        if match := FILE.match(file):
            found[match[2]] = "; ".join(filter(None, told))
    return found


def _evidence(gate: Gate) -> tuple[tuple[str, Path], ...]:
    """What the gate has read, by name. Raises PatchqError where a file changed since."""
    for each in gate.evidence:
        with suppress(OSError):
            if sums.sha256(each.path) == each.sha256:
                continue
        raise PatchqError(f"{each.path} changed meanwhile", "cut the release again")
    return tuple((f"{each.kind}.json", each.path) for each in gate.evidence)


def _signed(made: Path, signers: Path) -> None:
    """The bundle must hold for those who get it, with the keys that the repository names."""
    for check in bundle.verify(made, signers):
        if not check.ok:
            raise PatchqError(
                f"the release does not hold: {check.name}: {check.detail}",
                f"name the public key in {sign.SIGNERS} (releases/README.md), commit it, and cut"
                " again"
                if check.name == "signature"
                else "report this as a bug",
            )
