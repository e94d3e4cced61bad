"""A release as a flat folder, one file an asset, and whether it is what was signed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from patchq.errors import PatchqError
from patchq.paths import show
from patchq.release import manifest as manifests
from patchq.release import parts, sign, sums, withdraw
from patchq.release.manifest import MANIFEST, SIGNATURE, SUMS, Manifest, file_names

NOTES = "notes.md"
SERIES = "series.tar.gz"
SOURCE = "source.tar.gz"
EVIDENCE = "evidence.tar.gz"
PROFILE = "profile.toml"
RECORD = "build.json"
STATEMENT = "statement.json"
BOM = "sbom.json"
INSTALLER = "install.sh"
OWN_LOCK = "requirements.patchq.lock"
"""What patchq itself needs, with hashes, where that is known."""
LARGEST = 1 << 24
"""Bytes of a manifest, of sums or of a signature; none is larger."""


@dataclass(frozen=True)
class Bundle:
    """`files`: all that it consists of, sorted by name; `manifest` says what they are."""

    number: int
    folder: Path
    manifest: Manifest
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Check:
    """Whether something holds, and one sentence about it, without a full stop."""

    name: str
    ok: bool
    detail: str


def folder(root: Path, number: int) -> Path:
    """Where the bundle of release `number` of the project at `root` lies."""
    return root / "build" / "releases" / str(number)


def load(place: Path) -> Bundle:
    """The bundle in a folder, which is not verified by this.

    Raises PatchqError where there is none, or a file is missing.
    """
    found = manifests.read(_small(place / MANIFEST), str(place / MANIFEST))
    names = sorted({*manifests.OWN, *(n for asset in found.assets for n in file_names(asset))})
    files = tuple(place / name for name in names)
    missing = [path.name for path in files if not path.is_file()]
    if missing:
        raise PatchqError(
            f"{place} is no whole release: {missing[0]} is missing",
            f"cut it again (`patchq release cut --number {found.number}`), or get it afresh",
        )
    return Bundle(found.number, place, found, files)


def verify(place: Path, signers: Path | None) -> tuple[Check, ...]:
    """Whether the folder is the release that somebody whom `signers` names has signed.

    Signature, sums, and where these are right manifest and parts; nothing is run or unpacked.
    Without `signers` nobody is known, so the signature does not hold. Raises PatchqError where the
    folder holds no release, or ssh-keygen is missing.
    """
    if not place.is_dir():
        raise PatchqError(f"{place} is no folder", "name the folder that holds the release")
    return tuple(_verify(place, signers))


def holds(checks: tuple[Check, ...]) -> bool:
    return all(check.ok for check in checks)


def _verify(place: Path, signers: Path | None) -> Iterator[Check]:
    signed = _small(place / SUMS)
    _small(place / SIGNATURE)
    yield _signature(signed, place / SIGNATURE, signers)
    try:
        told = sums.read(signed)
    except ValueError as error:
        yield Check("sums", False, f"{SUMS} is malformed: {error}")
        return
    bad = list(_against(place, told))
    yield Check("sums", not bad, "; ".join(bad) or f"{len(told)} files")
    if bad:
        return  # what the manifest says of other bytes would say nothing
    try:
        manifest = manifests.read(_small(place / MANIFEST))
    except PatchqError as error:
        yield Check("manifest", False, error.message)
        return
    bad = list(_named(manifest, told))
    yield Check("manifest", not bad, "; ".join(bad) or f"release {manifest.number}")
    bad = list(_parts(place, manifest))
    count = sum(bool(asset.parts) for asset in manifest.assets)
    yield Check("parts", not bad, "; ".join(bad) or f"{count} assets in parts")


def _signature(signed: bytes, signature: Path, signers: Path | None) -> Check:
    if signers is None:
        return Check("signature", False, "nobody's key is known here: releases/allowed_signers")
    who, why = sign.signer(signed, signature, signers)
    return Check("signature", who is not None, f"by {show(who)}" if who else why)


def _against(place: Path, told: dict[str, str]) -> Iterator[str]:
    # A mark of withdrawal came later, and has a signature of its own.
    apart = {SUMS, SIGNATURE, withdraw.MARKER, withdraw.SIGNATURE}
    there = {path.name for path in place.iterdir()} - apart
    for name in sorted(there - set(told)):
        yield f"{show(name)} is not among the sums"
    for name, digest in told.items():
        path = place / name
        if path.is_symlink() or not path.is_file():
            yield f"{name} is missing"
        elif sums.sha256(path) != digest:
            yield f"{name} is not what was signed"


def _named(manifest: Manifest, told: dict[str, str]) -> Iterator[str]:
    """The manifest and the sums name the same files, alike."""
    own = {
        each.name: each.sha256 for asset in manifest.assets for each in (asset.parts or (asset,))
    }
    if MANIFEST not in told:
        yield f"{MANIFEST} is not among the sums"
    for name in sorted({*own, *told} - {MANIFEST}):
        if own.get(name) != told.get(name):
            yield f"{name} is not the same in {MANIFEST} and {SUMS}"


def _parts(place: Path, manifest: Manifest) -> Iterator[str]:
    for asset in manifest.assets:
        try:
            if asset.parts:
                whole = hashlib.sha256()
                for chunk in parts.chunks(place, asset):
                    whole.update(chunk)
                if whole.hexdigest() != asset.sha256:
                    yield f"the parts of {asset.name} do not make it up"
            elif (place / asset.name).stat().st_size != asset.size:
                yield f"{asset.name} has another size"
        except OSError:
            yield f"{asset.name} is not whole"


def _small(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise PatchqError(
            f"{path.parent} holds no release: {path.name} is missing",
            "name the folder of a release; `patchq release cut` makes build/releases/N",
        ) from error
    if len(data) > LARGEST:
        raise PatchqError(f"{path} is too large to be one", "get the release afresh")
    return data
