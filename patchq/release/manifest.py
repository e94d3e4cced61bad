"""`releases/N.toml`: what release N is, by digest. The same release gives the same bytes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from patchq.errors import PatchqError
from patchq.release import tables
from patchq.release.tables import Date, FileName, Line, Pull, Sha256, Tree, Word
from patchq.smoke.released import FOLDER as FOLDER
from patchq.smoke.released import numbers as numbers

SCHEMA = "patchq.release/1"
NUMBERS = range(1, 1_000_000)
Number = Annotated[int, NUMBERS]
Size = Annotated[int, range(1 << 44)]
MANIFEST = "release.toml"
SUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"
OWN = (MANIFEST, SUMS, SIGNATURE)
"""What a bundle holds that its manifest cannot name."""
_SCHEMA = re.compile(r"patchq\.release/(\d{1,6})")


@dataclass(frozen=True)
class Base:
    """The upstream release that the series stands on; `commit` where it is known."""

    release: Word
    tree: Tree
    commit: Tree | None = None


@dataclass(frozen=True)
class PatchIs:
    """A patch of the release. `sha256` is of what it changes; `prs`: OWNER/REPO#N @ head."""

    number: int
    name: Word
    sha256: Sha256
    title: Line
    state: Annotated[str, re.compile("new|refreshed|carried")]
    prs: tuple[Pull, ...] = ()
    topic: Line = ""


@dataclass(frozen=True)
class Dropped:
    """A patch of the previous release that this one has no more, and why."""

    number: int
    name: Word
    why: Line


@dataclass(frozen=True)
class Part:
    """One file of an asset that is too large for one."""

    name: FileName
    size: Size
    sha256: Sha256


@dataclass(frozen=True)
class Asset:
    """A file of the bundle, its size in bytes; with `parts`, it comes in these, in order."""

    name: FileName
    size: Size
    sha256: Sha256
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class TargetIs:
    """A kind of machine: its locked requirements, the `wheels` that were built for it (assets)."""

    name: Word
    requirements: FileName
    sha256: Sha256
    wheels: tuple[FileName, ...]
    python: Line = ""
    machine: Line = ""
    glibc: Line = ""


@dataclass(frozen=True)
class ModelIs:
    """What it serves with, at its own source: a model, a draft or a template.

    `sha256` is of its index or its one file, None where it is not pinned.
    """

    kind: Annotated[str, re.compile("model|draft|template")]
    name: Word
    repository: Line
    revision: Word
    sha256: Sha256 | None = None
    file: Line | None = None


@dataclass(frozen=True)
class EvidenceIs:
    """A file of evidence.tar.gz that the gate has read."""

    kind: Word
    sha256: Sha256
    when: Line = ""


@dataclass(frozen=True)
class Rule:
    """What one rule of the gate said."""

    rule: Line
    ok: bool
    says: Line


@dataclass(frozen=True)
class GateIs:
    """How the gate decided."""

    passed: bool
    findings: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class Figure:
    """Medians of a benchmark's cell: tokens/s, seconds; `context` in tokens."""

    kind: Line
    context: int
    concurrency: int
    warm: bool
    decode: float | None = None
    ttft: float | None = None
    wall: float | None = None


@dataclass(frozen=True)
class Tested:
    """A node that the evidence comes from. Neither its name nor its address stands here."""

    rank: int
    machine: Line
    gpu: Line | None = None
    driver: Line | None = None


def _no_facts() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Manifest:
    """`date`: UTC, as YYYY-MM-DDTHH:MM:SSZ. `tree` is the runner tree, `lock` the runner lock's
    digest and `facts` what stands in it. `previous` is the release before, None for the first one.
    `folder`: where its patches are. `why`: the reason of a gap before this number. `limits`:
    sentences for whoever installs it.
    """

    number: Number
    date: Date
    queue: Word
    base: Base
    tree: Tree
    lock: Sha256
    patches: tuple[PatchIs, ...]
    assets: tuple[Asset, ...]
    targets: tuple[TargetIs, ...]
    models: tuple[ModelIs, ...]
    previous: Number | None = None
    evidence: tuple[EvidenceIs, ...] = ()
    gate: GateIs = GateIs(False)
    why: Line = ""
    profile: Line = ""
    folder: Line = "series"
    series: Sha256 | None = None
    patchq: Word = "0"
    dropped: tuple[Dropped, ...] = ()
    bench: tuple[Figure, ...] = ()
    tested: tuple[Tested, ...] = ()
    limits: tuple[Line, ...] = ()
    facts: Mapping[str, str] = field(default_factory=_no_facts)

    def asset(self, name: str) -> Asset | None:
        return next((each for each in self.assets if each.name == name), None)


def write(manifest: Manifest) -> bytes:
    """The file's bytes."""
    import tomlkit

    return tomlkit.dumps({"schema": SCHEMA, **tables.to_table(manifest)}).encode()


def read(data: bytes, where: str = MANIFEST) -> Manifest:
    """What `write` made.

    Raises PatchqError for one of a newer patchq, for what is malformed, and for names that stand
    twice.
    """
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise _damaged(where, f"it is no TOML: {error}") from error
    schema = table.pop("schema", None)
    known = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
    if known is None:
        raise _damaged(where, "it does not say that it is a release")
    if schema != SCHEMA:
        raise PatchqError(
            f"{where} is of a newer patchq: it is {schema}, this one knows {SCHEMA}",
            "install the patchq that comes with that release",
        )
    try:
        found = tables.from_table(Manifest, table)
        _check(found)
    except ValueError as error:
        raise _damaged(where, str(error)) from error
    return found


def read_at(root: Path, number: int) -> Manifest | None:
    """The manifest of release `number` in the project at `root`; None where there is none."""
    path = root / FOLDER / f"{number}.toml"
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    found = read(data, f"{FOLDER}/{path.name}")
    if found.number != number:
        raise _damaged(f"{FOLDER}/{path.name}", f"it says that it is release {found.number}")
    return found


def file_names(asset: Asset) -> tuple[str, ...]:
    """The files in which the asset comes."""
    return tuple(part.name for part in asset.parts) or (asset.name,)


def _check(found: Manifest) -> None:
    files = [name for asset in found.assets for name in file_names(asset)]
    for name in files:
        if name in OWN or files.count(name) > 1:
            raise ValueError(f"the asset {name} stands twice")
    for asset in found.assets:
        want = [f"{asset.name}.part-{n:02}" for n in range(1, len(asset.parts) + 1)]
        if [part.name for part in asset.parts] != want or (
            asset.parts and sum(part.size for part in asset.parts) != asset.size
        ):
            raise ValueError(f"the parts of {asset.name} do not make it up")
    names = {asset.name for asset in found.assets}
    for target in found.targets:
        for name in (target.requirements, *target.wheels):
            if name not in names:
                raise ValueError(f"{name}, of the target {target.name}, is no asset")
    if found.previous is not None and found.previous >= found.number:
        raise ValueError(f"release {found.previous} cannot come before {found.number}")


def _damaged(where: str, why: str) -> PatchqError:
    return PatchqError(f"{where} is damaged: {why}", "git knows the last good one; get it afresh")
