"""`patchq build`: upstream's wheel, ours laid over it, and the record of both."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from patchq.build import components, provenance, requirements
from patchq.build.components import Part
from patchq.build.given import Given
from patchq.build.overlay import Built, Wanted, lay
from patchq.build.provenance_made import RECORD, Made
from patchq.build.requirements import Rewritten
from patchq.build.target import Target, wheel_for
from patchq.errors import PatchqError, ProofFailed
from patchq.gitstore.store import Store
from patchq.progress import SILENT, Progress
from patchq.queue.patch import Patch
from patchq.upstream import metadata as metadatas
from patchq.upstream.pages import Dist, measured


@dataclass(frozen=True)
class BuildReport:
    """What was built, from what. `record` is the file that says so; `same` whether a rebuild gave
    the bytes of what was to be verified (None: nothing was), `compared` that of each file.

    `notes` are sentences about what the build does not bind.
    """

    target: str
    wanted: Wanted
    source: Dist
    built: Built
    record: Path | None
    same: bool | None = None
    parts: tuple[Part, ...] = ()
    rewritten: tuple[Rewritten, ...] = ()
    lock: str | None = None
    compared: Mapping[str, bool] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        return ProofFailed.exit_code if self.same is False else 0


def build(
    store: Store,
    wanted: Wanted,
    target: Target,
    patches: Sequence[Patch],
    out: Path,
    cache: Path,
    *,
    given: Given = Given(),  # noqa: B008 - frozen
    offline: bool = False,
    progress: Progress = SILENT,
) -> BuildReport:
    """Build the runner `wanted` and its patched components into the folder `out`.

    All of it is made beside the folder and comes into it when it is whole, the record last. Raises
    PatchqError where the index has no such wheel or the series needs a compiler,
    ProofFailed where the wheel was not built from the base's source.
    """
    out = out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
        stage = Path(folder)
        made = _make(
            store, wanted, target, patches, given, stage, cache, offline=offline, progress=progress
        )
        for name, data in provenance.records(made).items():
            (stage / name).write_bytes(data)
        out.mkdir(exist_ok=True)
        for path in sorted(stage.iterdir(), key=lambda path: (path.name == RECORD, path.name)):
            path.replace(out / path.name)
    return _report(_moved(made, out), given, out / RECORD)


def verify(
    store: Store,
    wanted: Wanted,
    target: Target,
    patches: Sequence[Patch],
    file: Path,
    cache: Path,
    *,
    given: Given = Given(),  # noqa: B008 - frozen
    offline: bool = False,
    progress: Progress = SILENT,
) -> BuildReport:
    """Build it again, elsewhere, and compare with `file` and the records beside it byte for byte.

    Raises as `build` does.
    """
    if not file.is_file():
        raise PatchqError(f"there is no file {file}", "name the wheel that a build made")
    with tempfile.TemporaryDirectory(prefix="patchq-", dir=cache) as folder:
        made = _make(
            store,
            wanted,
            target,
            patches,
            given,
            Path(folder),
            cache,
            offline=offline,
            progress=progress,
        )
        compared = _compared(made, file)
    return replace(_report(made, given, None), compared=compared, same=all(compared.values()))


def _moved(made: Made, out: Path) -> Made:
    """The same build, its files in the folder `out`."""

    def part(each: Part) -> Part:
        wheel, brought = each.wheel, each.brought
        return replace(
            each,
            wheel=replace(wheel, path=out / wheel.path.name) if wheel is not None else None,
            brought=out / brought.name if brought is not None else None,
        )

    built = replace(made.built, path=out / made.built.path.name)
    return replace(made, built=built, parts=tuple(map(part, made.parts)))


def _report(made: Made, given: Given, record: Path | None) -> BuildReport:
    return BuildReport(
        made.target.name,
        made.wanted,
        made.source,
        made.built,
        record,
        parts=made.parts,
        rewritten=made.rewritten,
        lock=made.lock,
        notes=given.notes,
    )


def bring(
    target: Target, release: str, cache: Path, *, offline: bool, progress: Progress = SILENT
) -> tuple[Dist, Path]:
    """Upstream's wheel for the target, downloaded once and verified. It stays in the cache."""
    wheel = find_wheel(target, release, cache, offline=offline, progress=progress)
    return wheel, components.bring(wheel, cache, offline=offline, progress=progress)


def find_wheel(
    target: Target, release: str, cache: Path, *, offline: bool = False, progress: Progress = SILENT
) -> Dist:
    """Upstream's wheel for the target, as the index knows it."""
    from patchq.upstream import index as indexes
    from patchq.upstream import pipconf

    settings = pipconf.read_settings()
    progress.step(f"asking the package index for {target.package}")
    answer = indexes.look_up(target.package, settings, cache / "index", offline=offline)
    return measured(wheel_for(target, release, answer.wheels(release)))


def _make(
    store: Store,
    wanted: Wanted,
    target: Target,
    patches: Sequence[Patch],
    given: Given,
    out: Path,
    cache: Path,
    *,
    offline: bool,
    progress: Progress,
) -> Made:
    source, wheel = bring(target, wanted.release, cache, offline=offline, progress=progress)
    own = metadatas.parse(metadatas.inside(wheel), wheel.name)
    concerning = requirements.concerning(target, given.pins.components)
    relaxed = given.pins.relaxed if target.gpu else ()
    changes = requirements.rewritten(own.requires, concerning, relaxed)
    instead = {each.was: each.now for each in changes}
    built = lay(store, wanted, target, wheel, out, progress, instead, given.compiled)
    parts = components.parts(
        target, given.pins.components, given.grow, out, cache, offline=offline, progress=progress
    )
    return Made(
        wanted,
        target,
        patches,
        source,
        built,
        parts,
        changes,
        given.lock,
        given.requirements,
        given.requirements_sha256,
        own.licence,
    )


def _compared(made: Made, file: Path) -> dict[str, bool]:
    """Whether what stands beside `file` is what the build gives, by name: wheels and records."""
    found = {file.name: made.built.path.name == file.name and _equal(made.built.path, file)}
    for part in made.parts:
        if part.wheel is not None and (file.parent / part.wheel.path.name).is_file():
            beside = file.parent / part.wheel.path.name
            found[beside.name] = _equal(part.wheel.path, beside)
    for name, data in provenance.records(made).items():
        if (file.parent / name).is_file():
            found[name] = (file.parent / name).read_bytes() == data
    return found


def _equal(one: Path, other: Path) -> bool:
    import filecmp

    return filecmp.cmp(one, other, shallow=False)
