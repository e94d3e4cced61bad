"""What a person made of a patch's conflict, as resolutions: each changed file, and all of them."""

from __future__ import annotations

from patchq.carry.clash import Clash, beside
from patchq.carry.fold import Carried
from patchq.carry.merge import Blob
from patchq.carry.prove import compiles
from patchq.carry.resolutions import Edit, Resolution, make, untouched
from patchq.carry.stand import Picture, standing
from patchq.errors import PatchqError
from patchq.gitstore.store import Store
from patchq.gitstore.worktree import markers
from patchq.paths import show


def solve(
    store: Store, carried: Carried, picture: Picture, tree: str, releases: tuple[str, str]
) -> tuple[Resolution, ...]:
    """The resolutions that make `carried` what `tree` says it is.

    Raises PatchqError where something of the conflict is left, where a Python file does not
    compile (line given), and where nothing is left of the patch.
    """
    stop = carried.stop
    assert stop is not None, f"{carried.patch.name} does not ask"
    clashes = {clash.new_path: clash for clash in stop.clashes}
    changed = {change.path for change in store.changes(picture.clean, tree)}
    name = carried.patch.name
    if not clashes and not changed:
        raise PatchqError(
            f"{name} waits for an answer, and its tree is as it was shown",
            f"say `patchq decide {name} keep|drop --why TEXT`, or edit the tree first",
        )
    if tree == picture.before:
        raise PatchqError(
            f"nothing would be left of {name}: the tree is the one before it",
            f"let it go with `patchq decide {name} drop --why TEXT`,"
            f" or hold it back with `patchq sync --skip {name}`",
        )
    keys = {key.path: key for key in stop.keys}
    edits = []
    for path in sorted(clashes.keys() | changed):
        before, result = _blob(store, picture.before, path), _blob(store, tree, path)
        key = keys.get(path) or untouched(path, before)
        ours = _of(store, key.ours)
        sides = [each for each in (ours, _of(store, key.theirs), before) if each is not None]
        if result is not None:
            _look(path, result, sides)
        clash = clashes.get(path)
        if clash is not None:
            _require_gone(store, picture, tree, clash)
        edits.append(Edit(key, ours, result, clash.kind if clash else ""))
    return make(store, name, releases, edits, stop.bound)


def _look(path: bytes, result: Blob, sides: list[Blob]) -> None:
    """Raises PatchqError for conflict markers, and for Python that breaks here."""
    left = _left(result.data, [side.data for side in sides])
    if left:
        where = ", ".join(f"{show(path)}:{line}" for line in left[:8])
        raise PatchqError(
            f"conflict markers are left in {where}",
            "edit the file until it reads as it shall be, then go on",
        )
    if path.endswith(b".py") and result.mergeable:
        why = compiles(result.data, show(path))
        if why and any(compiles(side.data, "") is None for side in sides if side.mergeable):
            raise PatchqError(
                f"{show(path)} does not compile: {why}", "correct it in the tree, then go on"
            )


def _left(data: bytes, sides: list[bytes]) -> list[int]:
    """Lines with markers that come from no side."""
    lines = data.split(b"\n")
    found = markers(data)
    # A line of seven `=` may be a heading, and each side may bring one.
    rule = [number for number in found if lines[number - 1].startswith(b"=")]
    others = [number for number in found if number not in rule]
    known = [
        (sum(line.startswith(b"=") for line in marked), len(marked))
        for marked in ([side.split(b"\n")[n - 1] for n in markers(side)] for side in sides)
    ]
    allowed = max((total - rules for rules, total in known), default=0)
    left = others if len(others) > allowed else []
    if left or len(rule) > sum(rules for rules, _ in known):
        left = sorted({*left, *rule})
    return left


def _require_gone(store: Store, picture: Picture, tree: str, clash: Clash) -> None:
    """The patch's version that was shown beside a file must have been dealt with."""
    if clash.marked:
        return
    side = beside(clash, picture.patch, standing(store, picture.before))
    if store.objects.lookup(tree, side) is not None:
        raise PatchqError(
            f"{show(side)} is still there, with the version of {picture.patch}"
            f" ({show(clash.new_path)}: {clash.kind})",
            f"move it to where it belongs, or remove it to leave {show(clash.new_path)} as it is",
        )


def _blob(store: Store, tree: str, path: bytes) -> Blob | None:
    entry = store.objects.lookup(tree, path)
    if entry is None or entry.mode == "40000":
        return None
    return Blob(entry.mode, store.objects.blob(entry.oid))


def _of(store: Store, version: str) -> Blob | None:
    mode, _, oid = version.partition(" ")
    return Blob(mode, store.objects.blob(oid)) if oid else None
