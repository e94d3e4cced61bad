"""Get a release: from a folder, a web address, or GitHub; resumed, and verified before it is used.

A place holds one release (`SHA256SUMS` lies in it), or many, each in a folder `release-N` (as on
GitHub) or `N` (as in `build/releases/`).
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from patchq.errors import PatchqError, ProofFailed, UsageError
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.release import bundle, manifest, sign, sums, withdraw
from patchq.release.bundle import Bundle, Check
from patchq.release.manifest import MANIFEST, SIGNATURE, SUMS, Manifest
from patchq.upstream import download, pipconf, web
from patchq.upstream.http import redact
from patchq.upstream.origin import Origin, stored
from patchq.upstream.pages import Dist

ORIGIN = Origin(
    who="the release",
    room="set PATCHQ_HOME to another folder",
    refused="see whether the release is whole there; run it again later",
    wrong="do not use it; run it again later, and tell those who publish the release",
)
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{1,100}")
_SMALL = (SUMS, SIGNATURE, MANIFEST)


@dataclass(frozen=True)
class Source:
    """Where a release's files are. `told`: for people; `kept`: what to name it by the next time;
    `address` gives that of a file, a path or a web address, None where it has no such file."""

    told: str
    kept: str
    local: bool
    address: Callable[[str], str | None] = field(repr=False)
    notes: str = ""
    """The release's notes, where a forge has them."""

    def small(self, name: str) -> bytes | None:
        """A small file; None where it is not there. Raises PatchqError."""
        address = self.address(name)
        if address is None:
            return None
        if self.local:
            path = Path(address)
            if not path.is_file() or path.stat().st_size > web.MOST:
                return None
            return path.read_bytes()
        return web.whole(address, pipconf.read_settings())


@dataclass(frozen=True)
class Offer:
    """A release that somebody whom we know has signed; its files are not here yet."""

    source: Source
    manifest: Manifest
    small: Mapping[str, bytes] = field(repr=False)
    sums: Mapping[str, str] = field(repr=False)
    signer: str

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(asset.size for asset in self.manifest.assets)


def find(what: str, base: str | None, *, offline: bool = False) -> Source:
    """Where the release `what` is: a number, of those at `base`, or itself a folder or address.

    Raises UsageError for a number without a base, PatchqError where nothing is there.
    """
    if not what.isdecimal():
        if base is not None:
            raise UsageError(f"{show(what)} says itself where it is", "leave out --from")
        what, base = "", what
    if base is None:
        raise UsageError(
            f"where is release {what}?", "name the folder or address that has it with --from"
        )
    if not base.startswith(("http://", "https://")):
        if _REPOSITORY.fullmatch(base) and not Path(base).is_dir() and what:
            return _at_github(base, int(what), offline)
        return _in_folder(Path(base), what)
    if offline:
        raise PatchqError(
            f"{redact(base)} is not here, and --offline forbids to ask for it",
            "name a folder that holds the release",
        )
    return _at_address(base.rstrip("/"), what)


def _in_folder(folder: Path, number: str) -> Source:
    tried = [folder / f"release-{number}", folder / number, folder] if number else [folder]
    for each in tried:
        if (each / SUMS).is_file():
            address = partial("{}/{}".format, each.resolve())
            return Source(str(each), str(folder.resolve()), True, address)
    raise PatchqError(
        f"{show(str(folder))} holds no release{f' {number}' if number else ''}",
        f"name the folder in which {SUMS} lies",
    )


def _at_address(base: str, number: str) -> Source:
    tried = [f"{base}/release-{number}", f"{base}/{number}", base] if number else [base]
    for each in tried:
        found = Source(redact(each), base, False, partial("{}/{}".format, each))
        if found.small(SUMS) is not None:
            return found
    raise PatchqError(
        f"{redact(base)} has no release{f' {number}' if number else ''}",
        f"name the address below which {SUMS} is",
    )


def _at_github(repository: str, number: int, offline: bool) -> Source:
    from patchq.forge import releases

    if offline:
        raise PatchqError(
            f"release {number} of {repository} is not here, and --offline forbids to ask for it",
            "name a folder that holds the release with --from",
        )
    there = {each.name: each.url for each in releases.assets(repository, number)}
    notes = releases.notes(repository, number)
    return Source(f"release {number} of {repository}", repository, False, there.get, notes)


def look(source: Source, number: int | None, signers: Path | None) -> Offer:
    """Read what says what the release is, and see that it is signed.

    Raises ProofFailed where that does not hold, PatchqError where it is no release, or another one.
    """
    found = {name: source.small(name) for name in _SMALL}
    small = {name: data for name, data in found.items() if data is not None}
    for name in _SMALL:
        if name not in small:
            raise PatchqError(f"{source.told} holds no release: {name} is missing", "name another")
    if signers is None:
        raise ProofFailed(
            "nobody's key is known here, so nothing can be verified",
            "run the release's install.sh, or name the file of known keys with --signers",
        )
    with tempfile.TemporaryDirectory(prefix="patchq-") as folder:
        signature = Path(folder) / SIGNATURE
        signature.write_bytes(small[SIGNATURE])
        who, why = sign.signer(small[SUMS], signature, signers)
    if who is None:
        raise _untrue(source, f"its signature does not hold: {why}")
    try:
        told = sums.read(small[SUMS])
    except ValueError as error:
        raise _untrue(source, f"{SUMS} is malformed: {error}") from error
    if told.get(MANIFEST) != hashlib.sha256(small[MANIFEST]).hexdigest():
        raise _untrue(source, f"{MANIFEST} is not what was signed")
    said = manifest.read(small[MANIFEST])
    if number is not None and said.number != number:
        raise PatchqError(
            f"{source.told} is release {said.number}, not {number}", "name the right place"
        )
    return Offer(source, said, small, told, who)


def standing(offer: Offer, signers: Path | None) -> None:
    """Raises PatchqError where the release was withdrawn, ProofFailed where that is unclear."""
    number, source = offer.manifest.number, offer.source
    found = withdraw.withdrawn(number, signers, small=source.small, notes=source.notes)
    if found is not None:
        raise PatchqError(withdraw.sentence(found), withdraw.advice(found))


def bring(offer: Offer, folder: Path, progress: Progress = SILENT) -> Bundle:
    """All files of the release in `folder`, which holds nothing else; verified.

    What is there and right is not got again, what broke off goes on. Raises PatchqError where
    something is not got, ProofFailed where it is not what was signed.
    """
    with stored(f"release {offer.manifest.number}", folder, ORIGIN):
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            if path.name.removesuffix(".part") not in offer.sums:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name, data in offer.small.items():
            (folder / name).write_bytes(data)
    settings = pipconf.read_settings()
    sizes = {
        each.name: each.size
        for asset in offer.manifest.assets
        for each in (asset.parts or (asset,))
    }
    for name, digest in offer.sums.items():
        if name in offer.small:
            continue
        address = offer.source.address(name)
        if address is None:
            raise PatchqError(
                f"{offer.source.told} is not whole: {name} is missing", "run it again later"
            )
        dist = Dist("", name, address, digest, sizes.get(name))
        download.fetch(dist, folder, settings, progress, origin=ORIGIN)
    progress.step(f"verifying release {offer.manifest.number}")
    return bundle.load(folder)


def verified(found: Bundle, source: Source, signers: Path | None) -> tuple[Check, ...]:
    """The release's checks. Raises ProofFailed where one does not hold."""
    checks = bundle.verify(found.folder, signers)
    if bad := [check for check in checks if not check.ok]:
        raise _untrue(source, f"{bad[0].name}: {bad[0].detail}")
    return checks


def _untrue(source: Source, why: str) -> ProofFailed:
    return ProofFailed(
        f"{source.told} is not what was released: {why}",
        "do not use it; get it afresh, and tell those who publish it if it stays so",
    )
