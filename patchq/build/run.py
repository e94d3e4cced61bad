"""`patchq build`: upstream's wheel, ours laid over it, and the record of both."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchq import __version__
from patchq.build.overlay import Built, Wanted, lay
from patchq.build.target import Target, wheel_for
from patchq.errors import PatchqError, ProofFailed
from patchq.gitstore.files import write
from patchq.gitstore.store import Store
from patchq.paths import lossless
from patchq.progress import SILENT, Progress
from patchq.queue.patch import Patch
from patchq.upstream.pages import Dist, measured

RECORD = "build.json"


@dataclass(frozen=True)
class BuildReport:
    """What was built, from what. `record` is the file that says so; `same` whether a rebuild gave
    the bytes of the file that was to be verified (None: none was).
    """

    target: str
    wanted: Wanted
    source: Dist
    built: Built
    record: Path | None
    same: bool | None = None


def build(
    store: Store,
    wanted: Wanted,
    target: Target,
    patches: Sequence[Patch],
    out: Path,
    cache: Path,
    *,
    offline: bool = False,
    progress: Progress = SILENT,
) -> BuildReport:
    """Build the runner `wanted` into the folder `out`.

    Raises PatchqError where the index has no such wheel or the series needs a compiler,
    ProofFailed where the wheel was not built from the base's source.
    """
    source, wheel = bring(target, wanted.release, cache, offline=offline, progress=progress)
    made = lay(store, wanted, target, wheel, out, progress)
    record = out / RECORD
    write(record, provenance(wanted, target, patches, source, made))
    return BuildReport(target.name, wanted, source, made, record)


def verify(
    store: Store,
    wanted: Wanted,
    target: Target,
    file: Path,
    cache: Path,
    *,
    offline: bool = False,
    progress: Progress = SILENT,
) -> BuildReport:
    """Build it again, elsewhere, and compare with `file` byte for byte. Raises as `build` does."""
    if not file.is_file():
        raise PatchqError(f"there is no file {file}", "name the wheel that a build made")
    source, wheel = bring(target, wanted.release, cache, offline=offline, progress=progress)
    with tempfile.TemporaryDirectory(prefix="patchq-", dir=cache) as folder:
        made = lay(store, wanted, target, wheel, Path(folder), progress)
        same = made.path.name == file.name and _equal(made.path, file)
    return BuildReport(target.name, wanted, source, made, None, same)


def bring(
    target: Target, release: str, cache: Path, *, offline: bool, progress: Progress = SILENT
) -> tuple[Dist, Path]:
    """Upstream's wheel for the target, downloaded once and verified. It stays in the cache."""
    from patchq.upstream import download, pipconf
    from patchq.upstream import index as indexes

    settings = pipconf.read_settings()
    progress.step(f"asking the package index for {target.package}")
    answer = indexes.look_up(target.package, settings, cache / "index", offline=offline)
    wheel = measured(wheel_for(target, release, answer.wheels(release)))
    folder = cache / "wheels"
    if offline and not (folder / wheel.filename).is_file():
        raise PatchqError(
            f"{wheel.filename} is not here, and --offline forbids to download it",
            "run it once without --offline",
        )
    with download.alone(wheel, folder, progress):
        return wheel, download.fetch(wheel, folder, settings, progress)


def provenance(
    wanted: Wanted, target: Target, patches: Sequence[Patch], source: Dist, built: Built
) -> bytes:
    """`build.json`: what went in, what came out, by digest. The same inputs give the same bytes."""
    told: dict[str, Any] = {
        "schema": "patchq.build/1",
        "target": target.name,
        "runner": {
            "series": wanted.series,
            "release": wanted.number,
            "base": {"release": wanted.release, "tree": wanted.base},
            "tree": wanted.tree,
            "patches": [
                {
                    "number": each.number,
                    "name": each.name,
                    "sha256": hashlib.sha256(each.text).hexdigest(),
                    "prs": each.header.all("Patchq-Pr"),
                }
                for each in patches
            ],
        },
        "inputs": [{"name": source.filename, "sha256": source.sha256}],
        "tools": {"patchq": __version__},
        "laid": sorted(map(lossless, built.overlay.laid)),
        "removed": sorted(map(lossless, built.overlay.removed)),
        "apart": sorted(map(lossless, (*built.overlay.apart, *built.overlay.unlisted))),
        "differing": list(built.differing),
        "outputs": [{"name": built.path.name, "sha256": built.sha256, "size": built.size}],
    }
    return (json.dumps(told, indent=2, sort_keys=True) + "\n").encode()


def _equal(one: Path, other: Path) -> bool:
    import filecmp

    return filecmp.cmp(one, other, shallow=False)


def proved(report: BuildReport) -> None:
    """Raises ProofFailed where a file that was to be verified is not what the build gives."""
    if report.same is False:
        raise ProofFailed(
            f"the build gives {report.built.path.name} with the sha256 {report.built.sha256},"
            " and that is not the file",
            "it was built from other inputs, or changed since",
        )
