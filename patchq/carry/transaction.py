"""One change of series/, upstream/ and releases/ that happens wholly or not at all.

The states of a transaction, each told by a file in its folder; a kill between any two calls
leaves one of them:

    (none)      the folder is being written; nothing outside of it exists yet
    entry.json  all bytes, old and new, are kept; copies may stand beside their places
    committed   the copies are complete: from here on it is carried through
    switched    everything is in its place; only leftovers remain

The copies are `.series.patchq-new` beside `series` and `.NAME.patchq-new` beside any other file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from errno import EXDEV
from pathlib import Path

from patchq.carry import exchange
from patchq.carry.exchange import state
from patchq.carry.steps import SERIES, Step
from patchq.errors import PatchqError


@dataclass(frozen=True)
class Transaction:
    """`folder` holds its state, `root` is the project's.

    `made`: folders below `root` that it adds, outer ones first; `content` gives the bytes of a
    sha256 that stands in `steps`.
    """

    folder: Path
    root: Path
    steps: tuple[Step, ...]
    made: tuple[str, ...]
    content: Callable[[str], bytes]

    def place(self, step: Step) -> Path:
        return self.root / step.path

    def copy(self, step: Step) -> Path:
        place = self.place(step)
        return place.with_name(f".{place.name}.patchq-new")

    @property
    def series(self) -> tuple[Step, ...]:
        return tuple(s for s in self.steps if s.path.startswith(SERIES + "/"))

    @property
    def others(self) -> tuple[Step, ...]:
        return tuple(s for s in self.steps if not s.path.startswith(SERIES + "/"))

    def beside(self, what: str) -> Path:
        return self.root / f".{SERIES}.patchq-{what}"

    def has(self, mark: str) -> bool:
        return (self.folder / mark).exists()


def begin(tx: Transaction) -> None:
    """Make the transaction's folder. Raises PatchqError where another one is unfinished."""
    tx.folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        tx.folder.mkdir()
    except FileExistsError as error:
        raise PatchqError(
            "an earlier change is unfinished", "run `patchq status`, which completes it"
        ) from error
    for path in [*map(tx.beside, ("build", "new", "old")), *map(tx.copy, tx.others)]:
        if os.path.lexists(path):
            tx.folder.rmdir()
            raise PatchqError(
                f"{path} was left by an interrupted patchq whose journal is gone",
                "see whether it holds anything that you need, then remove it",
            )


def stage(tx: Transaction) -> None:
    """Write everything beside its place, on the disk. Reversed by `revert`."""
    if tx.series:
        _stage_series(tx)
    for step in tx.others:
        if step.new is not None:
            tx.copy(step).parent.mkdir(parents=True, exist_ok=True)
            _stage_file(tx, step)
    exchange.sync({tx.copy(s).parent for s in tx.others if s.new is not None} | {tx.root})


def mark(tx: Transaction, name: str) -> None:
    exchange.write_new(tx.folder / name, b"")
    exchange.sync([tx.folder / name, tx.folder])


def revert(tx: Transaction) -> None:
    """Take back what `stage` did; nothing was switched."""
    exchange.remove_file(tx.folder / "committed")
    for what in ("build", "new"):
        exchange.remove_tree(tx.beside(what))
    for step in tx.others:
        exchange.remove_file(tx.copy(step))
    for folder in reversed(tx.made):
        exchange.remove_empty(tx.root / folder, stop=(tx.root / folder).parent)


def finish(tx: Transaction, *, staged: bool) -> None:
    """Carry a committed transaction through from whatever state it is in; idempotent.

    `staged`: the copies were made by this process just now; otherwise they are made afresh, since
    the files that stay may have been edited meanwhile. Raises PatchqError, before it changes
    anything, where a file is neither as before nor as after.
    """
    if not tx.has("switched"):
        moved = not tx.series or _series_moved(tx)
        steps = tx.others if moved else tx.steps
        edited = [s for s in steps if state(tx.place(s)) not in (s.old, s.new)]
        if edited:
            raise _edited(tx, edited)
        if not moved:
            _switch_series(tx, staged)
        for step in tx.others:
            _switch_file(tx, step, staged)
        exchange.sync({p.parent for p in map(tx.place, tx.others) if p.parent.exists()})
        mark(tx, "switched")
    for what in ("old", "build", "new"):
        exchange.remove_tree(tx.beside(what))
    for step in tx.steps:
        exchange.remove_file(tx.copy(step))
        if step.new is None:
            exchange.remove_empty(tx.place(step).parent, stop=tx.root)
    exchange.sync([tx.root])


def _series_moved(tx: Transaction) -> bool:
    """Whether `series` is the new folder already; ends an exchange that was cut in two."""
    series, new, old = tx.root / SERIES, tx.beside("new"), tx.beside("old")
    if old.exists() and new.exists():
        if os.path.lexists(series):
            raise PatchqError(
                f"{series} was made while a change of it was unfinished",
                f"move it away and run patchq again: it then puts {new} there",
            )
        new.rename(series)
    elif new.exists() and _holds(new, {s.path: s.old for s in tx.series}):
        new.rename(old)
    if old.exists():
        return True
    return _holds(series, {s.path: s.new for s in tx.series})


def _holds(folder: Path, expected: Mapping[str, str | None]) -> bool:
    return all(
        state(folder / path.removeprefix(SERIES + "/")) == key for path, key in expected.items()
    )


def _stage_series(tx: Transaction) -> None:
    series, build, new = tx.root / SERIES, tx.beside("build"), tx.beside("new")
    exchange.remove_tree(build)
    if new.exists():
        new.rename(build)  # a half removed `new` could be taken for the old folder
        exchange.remove_tree(build)
    changes: dict[str, tuple[bytes, int | None] | None] = {}
    for step in tx.series:
        changes[step.path.removeprefix(SERIES + "/")] = (
            None if step.new is None else (tx.content(step.new), step.new_mode)
        )
    exchange.copy_tree(series if series.exists() else None, build, changes)
    build.rename(new)


def _switch_series(tx: Transaction, staged: bool) -> None:
    series, new, old = tx.root / SERIES, tx.beside("new"), tx.beside("old")
    if not staged:
        _stage_series(tx)
    try:
        if not series.exists():
            new.rename(series)
        else:
            try:
                exchange.swap(new, series)
                new.rename(old)
            except exchange.ExchangeUnsupported:
                series.rename(old)
                new.rename(series)
            _adopt(tx, old, series)
    except OSError as error:
        if error.errno != EXDEV:
            raise
        # A folder of a container's image (overlayfs) cannot be renamed, its files can.
        for step in tx.series:
            _switch_file(tx, step, staged=False)
        exchange.sync({p.parent for p in map(tx.place, tx.series) if p.parent.exists()})
    exchange.sync([tx.root])


def _adopt(tx: Transaction, old: Path, series: Path) -> None:
    """Save what an editor put into the old folder after its content was linked.

    A file of its own moves over; one that the change replaces goes to `kept/` of the journal.
    """
    changed = {s.path.removeprefix(SERIES + "/"): (s.old, s.new) for s in tx.series}
    for relative, entry in list(exchange.walk(old)):
        if entry.is_dir(follow_symlinks=False):
            continue
        if relative in changed:
            if state(old / relative) not in changed[relative]:
                kept = tx.folder / "kept" / SERIES / relative
                kept.parent.mkdir(parents=True, exist_ok=True)
                exchange.write_new(kept, (old / relative).read_bytes())
            continue
        before = entry.stat(follow_symlinks=False)
        try:
            now = (series / relative).lstat()
        except FileNotFoundError:
            (series / relative).parent.mkdir(parents=True, exist_ok=True)
        else:
            if os.path.samestat(before, now) or before.st_mtime_ns == now.st_mtime_ns:
                continue
        (old / relative).replace(series / relative)


def _stage_file(tx: Transaction, step: Step) -> None:
    if step.new is not None:
        exchange.remove_file(tx.copy(step))
        exchange.write_new(tx.copy(step), tx.content(step.new), step.new_mode)
        exchange.sync([tx.copy(step)])


def _switch_file(tx: Transaction, step: Step, staged: bool) -> None:
    place = tx.place(step)
    if state(place) == step.new:
        return
    if step.new is None:
        exchange.remove_file(place)
        return
    if not staged:
        place.parent.mkdir(parents=True, exist_ok=True)
        _stage_file(tx, step)
    tx.copy(step).replace(place)


def _edited(tx: Transaction, steps: list[Step]) -> PatchqError:
    lines: list[str] = []
    for step in steps:
        for name, key in (("before", step.old), ("after", step.new)):
            kept = tx.folder / name / step.path
            if key is None:
                lines.append(f"{step.path} {name}: no such file")
                continue
            if state(kept) != key:
                kept.parent.mkdir(parents=True, exist_ok=True)
                exchange.remove_file(kept)
                exchange.write_new(kept, tx.content(key))
            lines.append(f"{step.path} {name}: {kept}")
    names = ", ".join(step.path for step in steps)
    return PatchqError(
        f"an interrupted change cannot be completed: {names} was edited since and is neither as"
        " before nor as after it",
        "keep a copy of yours, put one of the two versions there, and run patchq again: "
        + "; ".join(lines),
    )
