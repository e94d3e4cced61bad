"""Look up what the carried patches use in the new tree: names gone, calls that no longer fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from patchq.carry.components import Components
from patchq.carry.fold import Carried, Carry
from patchq.carry.surfaces import Surfaces
from patchq.gitstore.search import files_with
from patchq.gitstore.store import Store
from patchq.judge import contracts
from patchq.judge.contracts import Broken
from patchq.judge.model import Finding
from patchq.judge.resolve import World
from patchq.judge.surface import Surface
from patchq.judge.uses import Use, uses
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.queue.diff import FileDiff
from patchq.queue.patch import Patch

Blame = Callable[[bytes, str, str], str]
"""(file of the new tree, the name, what is wrong) -> the upstream commit that did it, or ""."""


def check(
    store: Store,
    carry: Carry,
    texts: Mapping[str, Patch],
    before: Callable[[], Carry],
    cache_folder: Path,
    *,
    components: Components | None = None,
    blame: Blame | None = None,
    progress: Progress = SILENT,
) -> dict[str, tuple[Finding, ...]]:
    """Findings by patch name. `texts`: the patches as they read on the new release; `before`: the
    series on its old base (made only if something fails on the new one); `components`: what else
    the runner is made of, of whose names the touched files are looked through.
    """
    look = _Look(store, Surfaces(store, cache_folder), components, cache_folder, blame)
    old = cache(lambda: {each.patch.name: each for each in before().patches})
    kept = [each for each in carry.patches if each.commit is not None]
    found: dict[str, tuple[Finding, ...]] = {}
    for place, each in enumerate(kept):
        progress.step("checking contracts", place, len(kept), "patches")
        name = each.patch.name
        told = tuple(
            finding
            for file in texts[name].files or ()
            for finding in look.file(each, file, lambda name=name: old().get(name))  # type: ignore[misc]
        )
        if told:
            found[name] = told
    return found


class _Look:
    def __init__(
        self,
        store: Store,
        surfaces: Surfaces,
        components: Components | None,
        folder: Path,
        blame: Blame | None,
    ) -> None:
        self._store = store
        self._surfaces = surfaces
        self._blame = blame
        self._components = components
        self._folder = folder
        self._theirs: dict[str, Callable[[str], Surface | None]] = {}
        self._places: dict[tuple[str, str], str] = {}

    def file(
        self, each: Carried, file: FileDiff, old: Callable[[], Carried | None]
    ) -> Iterator[Finding]:
        if not file.path.endswith(b".py") or file.deleted:
            return
        yield from self._components_in(each.tree, file.path)
        now = self._uses(each.tree, file.path, added(file))

        def before() -> list[Use]:
            was = old()
            if was is None:
                return []
            path = _old_path(each, file.path)
            theirs = {f.path: f for f in was.patch.files or ()}
            return self._uses(was.tree, path, added(theirs[path])) if path in theirs else []

        for broken in contracts.broken(file.path, now, before):
            yield self._told(each.tree, broken)

    def _components_in(self, tree: str, path: bytes) -> Iterator[Finding]:
        """What the whole file uses of the other components, and their releases lack."""
        entry = self._store.objects.lookup(tree, path)
        source = self._store.objects.blob(entry.oid) if entry else b""
        for module in self._components.modules if self._components else ():
            if module.encode() not in source:
                continue
            component = self._component(module)
            lines = frozenset(range(1, source.count(b"\n") + 2))
            for broken in contracts.absent(path, self._uses(tree, path, lines), module):
                yield contracts.finding(broken, now=f"{component} is pinned")

    def _component(self, module: str) -> str:
        """The name of the component that has `module`, whose Python is known from now on."""
        found = self._components.source(module) if self._components else None
        if found is None:
            return ""
        if module not in self._theirs:
            self._theirs[module] = Surfaces(found.store, self._folder).of(found.tree)
        return found.name

    def _uses(self, tree: str, path: bytes, lines: frozenset[int]) -> list[Use]:
        entry = self._store.objects.lookup(tree, path)
        if entry is None or not lines:
            return []
        module, package = module_of(path)
        ours = self._surfaces.of(tree)

        def surface(name: str) -> Surface | None:
            return self._theirs.get(name.partition(".")[0], ours)(name)

        world = World(surface)
        return uses(module, self._store.objects.blob(entry.oid), lines, world, package=package)

    def _told(self, tree: str, broken: Broken) -> Finding:
        use = broken.use
        place = self._surfaces.place(tree, use.module) if use.module else None
        by = self._blame(place, use.name, use.says) if self._blame and place else ""
        return contracts.finding(broken, by=by, now=self._now(tree, use))

    def _now(self, tree: str, use: Use) -> str:
        """Where the missing name stands now, or what it may be called."""
        if use.state != "missing" or ("." in use.name and not use.text.startswith("import ")):
            return ""
        last = (use.text if use.text.startswith("import ") else use.name).rpartition(".")[2]
        if (tree, last) not in self._places:
            self._places[tree, last] = self._search(tree, use, last)
        return self._places[tree, last]

    def _search(self, tree: str, use: Use, last: str) -> str:
        pattern = rf"^(class|def|async def) {last}\b|^{last}\b[^=(]* = "
        files = files_with(self._store, tree, pattern, "*.py")
        if len(files) == 1:
            return f"{last!r} stands in {show(files[0])} now"
        like = contracts.near(last, self._surfaces.of(tree)(use.module))
        return f"there is {like!r}" if like else ""


def _old_path(each: Carried, path: bytes) -> bytes:
    return next((old for old, new in each.moved.items() if new == path), path)


def module_of(path: bytes) -> tuple[str, bool]:
    """The dotted name of a file, and whether it is a package's `__init__.py`."""
    text = path.decode("utf-8", "surrogateescape").removeprefix("src/").removesuffix(".py")
    package = text.endswith("/__init__")
    return text.removesuffix("/__init__").replace("/", "."), package


def added(file: FileDiff) -> frozenset[int]:
    """The lines (from 1) of the new side that the patch brings."""
    out: set[int] = set()
    shift = 0
    for hunk in file.hunks:
        for atom in hunk.atoms:
            first = atom.start + shift
            out |= set(range(first + 1, first + 1 + len(atom.new)))
            shift += len(atom.new) - (atom.end - atom.start)
    return frozenset(out)
