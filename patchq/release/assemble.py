"""The bundle of a release, written into a folder: every byte of it follows from what went in."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import patchq
from patchq.build.provenance import BOM, STATEMENT
from patchq.build.provenance_made import RECORD
from patchq.build.requirements import file_name
from patchq.carry import inspect
from patchq.carry.workspace import Queue, base_of, upstream_of
from patchq.errors import PatchqError
from patchq.gitstore.objects import Objects
from patchq.progress import SILENT, Progress
from patchq.release import archive, bundle, made_of, own, parts, sums
from patchq.release import manifest as manifests
from patchq.release.archive import Member
from patchq.release.manifest import Asset, Manifest, TargetIs
from patchq.release.standing import requirements_of

Notes = Callable[[Manifest, Manifest | None], str]
"""Renders a release's notes, beside the release before."""
_SIGNERS = re.compile(rb"(?m)^@ALLOWED_SIGNERS@$")


@dataclass(frozen=True)
class Source:
    """Where the files of a bundle come from.

    `draft` is the manifest without its assets; `objects` those of the project's repository,
    `commit` the one that the series is taken from; `evidence` by the name that it gets.
    """

    queue: Queue
    draft: Manifest
    commit: str
    folder: Path
    wheels: tuple[Path, ...]
    evidence: tuple[tuple[str, Path], ...]

    @property
    def seconds(self) -> int:
        """The release's date, since 1970."""
        return seconds_of(self.draft)


def seconds_of(manifest: Manifest) -> int:
    return int(datetime.fromisoformat(manifest.date).timestamp())


def date_of(seconds: int) -> str:
    """A time as a manifest writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def assemble(
    source: Source,
    previous: Manifest | None,
    place: Path,
    notes: Notes,
    *,
    part: int = parts.SIZE,
    offline: bool = False,
    progress: Progress = SILENT,
) -> Manifest:
    """Write all but the signature into the empty folder `place`; what it is, as a manifest.

    Raises PatchqError where something that belongs to it is missing or changed meanwhile.
    """
    assets: list[Asset] = []
    with tempfile.TemporaryDirectory(prefix=".made-", dir=place.parent) as folder:
        made = Path(folder)
        for name, path in _files(source, made, offline=offline, progress=progress):
            progress.step(f"packing {name}")
            assets.append(parts.put(path, place, name, part))
            if path.parent == made:
                path.unlink()
    manifest = replace(
        source.draft,
        assets=tuple(sorted(assets, key=lambda each: each.name)),
        targets=_targets(source, assets),
    )
    text = place / bundle.NOTES
    text.write_text(notes(manifest, previous), encoding="utf-8")
    assets.append(Asset(bundle.NOTES, text.stat().st_size, sums.sha256(text)))
    manifest = replace(manifest, assets=tuple(sorted(assets, key=lambda each: each.name)))
    data = manifests.write(manifest)
    assert manifests.read(data) == manifest, "a manifest that is not read as it was written"
    (place / manifests.MANIFEST).write_bytes(data)
    files = [each for asset in manifest.assets for each in (asset.parts or (asset,))]
    digests = {each.name: each.sha256 for each in files}
    digests[manifests.MANIFEST] = hashlib.sha256(data).hexdigest()
    (place / manifests.SUMS).write_bytes(sums.write(digests))
    return manifest


def series_archive(git_dir: Path, commit: str, path: Path, seconds: int) -> None:
    """Write the archive of `series/` and `upstream/` as a commit of the project has them."""
    with Objects(git_dir) as objects:
        tree = objects.tree_of(commit)

        def members() -> Iterator[Member]:
            for folder in (b"series", b"upstream"):
                entry = objects.lookup(tree, folder)
                if entry is not None and entry.mode == "40000":
                    yield from archive.of_tree(objects, entry.oid, f"{folder.decode()}/")

        archive.write(path, members(), seconds)


def _files(
    source: Source, made: Path, *, offline: bool, progress: Progress
) -> Iterator[tuple[str, Path]]:
    """Every asset's name and the file that it is copied from; what is made, is made in `made`."""
    queue, draft = source.queue, source.draft
    root = queue.project.root
    for wheel in source.wheels:
        yield wheel.name, wheel
    for target in requirements_of(root):
        yield file_name(target), root / "upstream" / file_name(target)
    for name, kept in (
        (bundle.RECORD, RECORD),
        (bundle.STATEMENT, STATEMENT),
        (bundle.BOM, BOM),
    ):
        yield name, _there(source.folder / kept)
    yield bundle.PROFILE, _there(root / "ci" / "profiles" / f"{draft.profile}.toml")
    series_archive(queue.project.git_dir, source.commit, made / bundle.SERIES, source.seconds)
    yield bundle.SERIES, made / bundle.SERIES
    progress.step("packing the source")
    with upstream_of(queue, offline=offline, progress=progress) as upstream:
        store = upstream.store
        tree = inspect.made_tree(queue, store, base_of(queue, upstream), progress)
        if tree != draft.tree:
            raise PatchqError("the series changed meanwhile", "cut the release again")
        top = f"{draft.queue}-{draft.base.release}-release-{draft.number}/"
        members = archive.of_tree(store.objects, tree, top)
        archive.write(made / bundle.SOURCE, members, source.seconds)
    yield bundle.SOURCE, made / bundle.SOURCE
    archive.write(made / bundle.EVIDENCE, archive.of_files(source.evidence), source.seconds)
    yield bundle.EVIDENCE, made / bundle.EVIDENCE
    own.write(made / own.name())
    yield own.name(), made / own.name()
    if (root / "patchq/__init__.py").is_file() and (root / "requirements.lock").is_file():
        yield bundle.OWN_LOCK, root / "requirements.lock"  # the project is patchq's own
    installer = made / bundle.INSTALLER
    installer.write_bytes(_installer(root))
    yield bundle.INSTALLER, installer


def _installer(root: Path) -> bytes:
    """install.sh, with the keys that this project signs releases with."""
    from patchq.release.sign import SIGNERS

    text = _there(Path(patchq.__file__).parent / "release" / bundle.INSTALLER).read_bytes()
    keys = _there(root / SIGNERS, "name the keys that sign releases in it").read_bytes().strip()
    if any(line.startswith(b"PATCHQ") for line in keys.split(b"\n")):
        raise PatchqError(
            f"{SIGNERS} has a line that no key is", "remove it"
        )  # ends the list early
    return _SIGNERS.sub(lambda _: keys, text)


def _targets(source: Source, assets: list[Asset]) -> tuple[TargetIs, ...]:
    digests = {each.name: each.sha256 for each in assets}
    built = source.folder.name
    wheels = tuple(sorted(each.name for each in source.wheels))
    held = requirements_of(source.queue.project.root)
    return tuple(
        TargetIs(
            target.name,
            file_name(target.name),
            digests[file_name(target.name)],
            wheels if target.name == built else (),
            target.python,
            target.machine,
            target.glibc,
        )
        for target in made_of.targets_of(held)
    )


def _there(path: Path, remedy: str = "run `patchq build` again") -> Path:
    if not path.is_file():
        raise PatchqError(f"there is no {path}", remedy)
    return path
