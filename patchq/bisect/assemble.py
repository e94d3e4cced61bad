"""Any subset of the moves as a project of its own, in which plain patchq commands work."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patchq.bisect import parts, way
from patchq.bisect.ends import LOCK, End
from patchq.bisect.moves import ORDER, Between
from patchq.bisect.stacking import Base, Stack, stack
from patchq.build import lockfacts, requirements
from patchq.build.overlay import Wanted
from patchq.build.target import TARGETS
from patchq.carry.prove import apply_check, compiles
from patchq.config import Source, find_project
from patchq.errors import PatchqError, ProofFailed
from patchq.gitstore import snapshot
from patchq.gitstore.store import Store
from patchq.judge.requirement import RELAXES
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.queue import patch as patches
from patchq.queue.patch import Patch
from patchq.queue.series import Line, Series, held_line
from patchq.upstream import state as states
from patchq.upstream.releases import Release

MESSAGE = "A step of a bisection\n"


class Unbuildable(ProofFailed):
    """There is no such runner: `why` says which part of it does not go."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"this subset cannot be made: {why}", "try another one")


@dataclass(frozen=True)
class Assembled:
    """A subset as a project in `folder`, committed. `tree` is its runner tree, `lock` the digest
    of its runner lock; `there`: patches of which nothing was left to do on its base.
    """

    folder: Path
    tree: str
    lock: str
    there: tuple[str, ...] = ()


def assemble(
    between: Between, subset: frozenset[str], folder: Path, *, progress: Progress = SILENT
) -> Assembled:
    """Make A with the moves of `subset` in the new or empty `folder`.

    Everything that is not part of a runner is as B has it. Raises Unbuildable where a patch does
    not go there, the result does not compile or cannot be locked; PatchqError for a subset that is
    none, or a folder that is in use.
    """
    if folder.exists() and any(folder.iterdir()):
        raise PatchqError(f"{folder} is not empty", "name a new folder, or empty that one")
    made = between.made(subset)
    base = between.base(made)
    source, offline = between.source, between.offline
    with way.opened(between.root, source, offline=offline, progress=progress) as upstream:
        if base not in (between.bases[0], between.bases[-1]):
            upstream.release(base.name, commit=base.commit)  # brings its contents
        store = upstream.store
        progress.step("putting the patches together")
        found = stacked(store, between, made)
        if found.misfits:
            name, why = next(iter(found.misfits.items()))
            raise Unbuildable(f"{name} does not go on {base.name}: {why}")
        _require_sound(store, between, base, found)
        return _project(between, made, base, found, folder)


def stacked(store: Store, between: Between, made: frozenset[str]) -> Stack:
    """The patches of both ends, as `made` has them, on its base."""
    base = between.base(made)
    at_b = base == between.bases[-1] and (len(between.bases) > 1 or bool(made))
    known = frozenset(part for each in between.parts.values() for part in each)
    order = between.orders[0 if ORDER in known - made else 1]
    slots = {slot.name: slot for slot in between.slots}
    wanted = [(name, slots[name].wanted(slots[name].move in made, at_b)) for name in order]
    return stack(store, base, wanted)


def _require_sound(store: Store, between: Between, base: Base, found: Stack) -> None:
    """The texts, applied by git, give the tree; what reads as at no end compiles."""
    series = list(found.patches.values())
    check = apply_check(store, base.tree, series, found.tree)
    if not check.ok:
        raise Unbuildable(f"the series does not apply: {check.detail}")
    for change in store.changes(base.tree, found.tree):
        if change.status == "D" or not change.path.endswith(b".py") or change.new_mode == "120000":
            continue
        there = [store.objects.lookup(tree, change.path) for tree in between.trees]
        if any(entry is not None and entry.oid == change.new_oid for entry in there):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            why = compiles(store.objects.blob(change.new_oid), show(change.path))
        if why is not None:
            raise Unbuildable(f"{show(change.path)} does not compile: {why}")


def _project(
    between: Between, made: frozenset[str], base: Base, found: Stack, folder: Path
) -> Assembled:
    a, b = between.a, between.b
    known = frozenset(part for each in between.parts.values() for part in each)

    def side(name: str) -> End:
        return a if name in known - made else b

    whole = len({name in made for name in known & _environment(between)}) < 2
    series = _series(between, found)
    files: dict[str, bytes | None] = _series_files(a, b, series)
    files |= parts.files(a, b, side)
    files |= _state(between, base, series, found.tree, made)
    files |= _config(b, between.source)
    snapshot.lay_out(between.root, b.commit, folder)
    if find_project(folder).root != folder:
        raise PatchqError(
            f"patchq commands in {folder} would work on {find_project(folder).root}",
            "name a folder outside `.git/patchq` (`patchq bisect --state DIR`)",
        )
    _write(folder, files)
    config = b.queue.config
    applied = series.applied
    try:
        pins = lockfacts.pins_of(folder, applied)
        own = lockfacts.patched(folder, pins)
        locked = {
            f"upstream/{requirements.file_name(target.name)}": parts.requirements_file(
                a, b, target, base.name, pins, own, side, whole=whole
            )
            for target in TARGETS.values()
        }
        _write(folder, locked)
        wanted = Wanted(config.name, base.name, base.tree, found.tree)
        lock = lockfacts.report(folder, wanted, applied, check=False).lock
    except PatchqError as error:
        raise Unbuildable(f"its lock cannot be made: {error.message}") from error
    _write(folder, {LOCK: lock.text})
    snapshot.seal(folder, sorted({*files, *locked, LOCK}), MESSAGE)
    return Assembled(folder, found.tree, lock.digest, found.there)


def _environment(between: Between) -> set[str]:
    """The differences that requirements' locks are made from, as they would be called."""
    found = {parts.REQUIREMENTS, *(base.move for base in between.bases)}
    for end in (between.a, between.b):
        found |= {f"component/{each.name}" for each in end.pins.components}
    for slot in between.slots:
        both = [each for each in (slot.a, slot.b) if each is not None]
        if any(each.patch.header.all(RELAXES) for each in both):
            found.add(slot.move)
    return found


def _series(between: Between, found: Stack) -> Series:
    """The series of the subset; that of an end to the letter where it reads like it."""
    applied = list(found.patches.values())
    for end in (between.b, between.a):
        theirs = end.queue.series
        if [each.text for each in theirs.applied] == [each.text for each in applied]:
            return theirs
    held = _held(between, {each.name for each in applied})
    names = {each.name for each in applied} | {patch.name for patch, _ in held}
    retired = {*between.a.queue.series.retired, *between.b.queue.series.retired}
    gone = sorted(file for file in retired if (m := patches.FILE.match(file)) and m[2] not in names)
    numbered = _numbered([*applied, *(patch for patch, _ in held)], gone)
    lines = [Line("patch", patch.file, patch) for patch in numbered[: len(applied)]]
    whys = [why for _, why in held]
    lines += [
        held_line(patch, why) for patch, why in zip(numbered[len(applied) :], whys, strict=True)
    ]
    return Series(tuple(lines), tuple(gone))


def _held(between: Between, applied: set[str]) -> list[tuple[Patch, str]]:
    """Patches that an end holds and the subset does not apply; B's word counts before A's."""
    found: dict[str, tuple[Patch, str]] = {}
    for end in (between.b, between.a):
        series = end.queue.series
        for patch in series.all:
            if patch.name in series.held and patch.name not in applied:
                found.setdefault(patch.name, (patch, series.held[patch.name]))
    return list(found.values())


def _numbered(series: Sequence[Patch], gone: Sequence[str]) -> list[Patch]:
    """With a number of its own for each: both ends may have given one to a new patch."""
    taken = {int(m[1]) for file in gone if (m := patches.FILE.match(file))}
    highest = max([*taken, *(each.number for each in series)], default=0)
    out = []
    for patch in series:
        doubled = patch.number in taken
        highest += doubled
        out.append(replace(patch, number=highest) if doubled else patch)
        taken.add(out[-1].number)
    return out


def _series_files(a: End, b: End, series: Series) -> dict[str, bytes | None]:
    folder = b.queue.config.series
    top = [path for end in (a, b) for path in end.below(folder)]
    # Folders below it are other queues, and what was resolved or dropped.
    direct = [path for path in top if "/" not in path.removeprefix(f"{folder}/")]
    out: dict[str, bytes | None] = dict.fromkeys(direct)
    out |= {f"{folder}/{name}": data for name, data in series.files().items()}
    kept = {f"{folder}/retired/{file}" for file in series.retired}
    for path in top:
        if path.startswith(f"{folder}/retired/"):
            data = b.files.get(path, a.files.get(path))
            out[path] = data if path in kept else None
        elif path.startswith(f"{folder}/resolutions/"):
            out[path] = b.files.get(path, a.files.get(path))
    return out


def _state(
    between: Between, base: Base, series: Series, tree: str, made: frozenset[str]
) -> dict[str, bytes]:
    a, b = between.a.queue, between.b.queue
    known = frozenset(part for each in between.parts.values() for part in each)
    undone = known - made
    merged = dict(b.states)
    merged |= {name: each for name, each in a.states.items() if f"component/{name}" in undone}
    name = b.config.name
    state = a.state if base == between.bases[0] else b.state
    here = Release(base.name, base.commit, base.tree, base.facts)
    merged[name] = state.on(here, series.digest, tree)
    return {"upstream/state.json": states.format(merged)}


def _config(b: End, source: Source) -> dict[str, bytes]:
    """The queue's settings with `source` first: where the bases were found."""
    config = b.queue.config
    if config.sources[0] == source:
        return {}
    import tomlkit

    path = f"upstream/{config.name}.toml"
    document = tomlkit.parse(b.files[path].decode("utf-8"))
    found = tomlkit.aot()
    for each in (source, *(one for one in config.sources if one != source)):
        table = tomlkit.table()
        table[each.kind] = each.value
        found.append(table)
    document["sources"] = found
    return {path: tomlkit.dumps(document).encode()}


def _write(folder: Path, files: Mapping[str, bytes | None]) -> None:
    for path, data in files.items():
        target = folder / path
        if data is None:
            target.unlink(missing_ok=True)
            continue
        os.makedirs(target.parent, exist_ok=True)
        target.write_bytes(data)
