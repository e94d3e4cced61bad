"""What a series' changes to native code come to: which objects are compiled anew, and why. Pure."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchq.build.native import schemas
from patchq.build.native.collect import writes
from patchq.build.native.evaluate import evaluate
from patchq.build.native.flow import ROOT
from patchq.build.native.includes import Includes, chain
from patchq.build.native.model import Built, Extension, Facts, Fetched, Source, Tree
from patchq.build.native.schemas import Finding

RUST = ("rust/", "Cargo.toml", "Cargo.lock")
_CUTLASS = {"cute", "cutlass"}
"""How headers of CUTLASS, which CMake fetches, are named."""
_UNSEEN = "what it changes is not in what is read of it"
_TEXTS = (".md", ".rst", ".txt")
_SOURCES = (".cu", ".cpp", ".cc", ".c")


@dataclass(frozen=True)
class Object:
    """A source that is compiled anew. `archs` as CMake has them ("12.0f"), None: not known.

    `reasons` are sentences. `content` is the digest of the source and all that it takes in from
    the tree; `needs` are the fetched projects whose headers it takes in.
    """

    source: Source
    reasons: tuple[str, ...]
    content: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Work:
    """An extension that is built anew. `total`: how many sources it has.

    `whole` says why everything of it is compiled, nothing where only `objects` are. The extension
    is linked from all of its objects: those that did not change come from the compiler's cache,
    or are compiled once.
    """

    extension: Extension
    objects: tuple[Object, ...]
    total: int
    whole: str = ""
    removed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Apart:
    """A changed path that compiles nothing here, or of which it is not known; and why."""

    path: str
    says: str


@dataclass(frozen=True)
class NativePlan:
    """`works` by extension; `apart` needs nothing here, `unknown` was given to whole extensions.

    `rust`: the paths that cargo compiles. `fetched`: the projects that CMake fetches.
    """

    facts: Facts
    changed: tuple[str, ...] = ()
    works: tuple[Work, ...] = ()
    apart: tuple[Apart, ...] = ()
    unknown: tuple[Apart, ...] = ()
    rust: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    fetched: tuple[Fetched, ...] = ()
    standard: str = ""

    @property
    def compiles(self) -> bool:
        return bool(self.works or self.rust)


def plan(old: Tree, new: Tree, changed: Sequence[str], facts: Facts) -> NativePlan:
    """What the `changed` paths between two trees have compiled anew.

    Raises PatchqError where a CMake file of either tree cannot be read.
    """
    rust = tuple(path for path in changed if path.startswith(RUST))
    native = [path for path in changed if path not in rust]
    made = _Plan(old, new, native, facts)
    works = {name: made.work(extension) for name, extension in made.now.extensions.items()}
    apart: list[Apart] = []
    unknown: list[Apart] = []
    for path in native:
        if path in made.explained:
            continue
        says = made.elsewhere(path)
        if says:
            apart.append(Apart(path, says))
            continue
        owners = made.nearest(path)
        named = ", ".join(owners) or "nothing"
        why = _UNSEEN if path in made.now.files else "nothing says what takes it in"
        unknown.append(Apart(path, f"{why}; compiled for it: {named}"))
        for name in owners:
            works[name] = _all(made.now.extensions[name], f"{path}: {why}")
    return NativePlan(
        facts,
        tuple(changed),
        tuple(each for each in works.values() if each),
        tuple(apart),
        tuple(unknown),
        rust,
        schemas.findings(old, new),
        made.now.fetched,
        made.now.standard,
    )


class _Plan:
    def __init__(self, old: Tree, new: Tree, changed: Sequence[str], facts: Facts) -> None:
        self.trees = (old, new)
        self.changed = frozenset(changed)
        self.before, self.now = evaluate(old, facts), evaluate(new, facts)
        self.includes = (Includes(old), Includes(new))
        self.explained: set[str] = set()
        self._any: tuple[Built, Built] | None = None

    def work(self, extension: Extension) -> Work | None:
        """What is compiled anew of one extension; None where nothing is."""
        before = self.before.extensions.get(extension.name)
        if before is None:
            self.explained |= self.changed & set(self.now.files)
            return _all(extension, "the extension is new")
        whole = _options(before, extension)
        objects = tuple(
            self.object(source, reasons)
            for source in extension.sources
            if (reasons := tuple(self.reasons(extension, before, source)))
        )
        there = {each.path for each in extension.sources}
        removed = tuple(each.path for each in before.sources if each.path not in there)
        self.explained |= self.changed & set(removed)
        if whole or removed or any(before.source(each.source.path) is None for each in objects):
            # That is what the change of the CMake files comes to.
            self.explained |= self.changed & set(self.now.files)
        if whole:
            return _all(extension, whole, removed)
        if not objects and not removed:
            return None
        return Work(extension, objects, len(extension.sources), removed=removed)

    def object(self, source: Source, reasons: tuple[str, ...]) -> Object:
        includes, tree = self.includes[1], self.trees[1]
        total = hashlib.sha256()
        for path in (source.path, *sorted(includes.reached(source.path))):
            total.update(hashlib.sha256(tree.read(path) or b"").digest())
        first = {name.partition("/")[0] for name in includes.strange(source.path)}
        projects = {each.name for each in self.now.fetched} | _CUTLASS
        return Object(source, reasons, total.hexdigest(), tuple(sorted(first & projects)))

    def reasons(self, extension: Extension, before: Extension, source: Source) -> Iterator[str]:
        old = before.source(source.path)
        if old is None:
            yield "it is new in the extension"
        elif old != source:
            self.explained |= self.changed & set(self.now.files)
            yield f"it is compiled otherwise: {_said(old)} before, {_said(source)} now"
        yield from self.changes(extension, source)

    def changes(self, extension: Extension, source: Source) -> Iterator[str]:
        """Why a source's content, or what it takes in, is another than before."""
        roots = (
            [each for each in extension.generators if writes(each, source.path)]
            if source.generated
            else [source.path]
        )
        for root in roots:
            if root in self.changed:
                self.explained.add(root)
                written = f"{root} writes it, and is changed"
                yield "it is changed" if root == source.path else written
            told: set[str] = set()
            for includes in self.includes:
                reached = includes.reached(root)
                for header in sorted(self.changed & set(reached) - told):
                    told.add(header)
                    self.explained.add(header)
                    by = chain(reached, header)[1:]
                    way = f" by way of {', '.join(by)}" if by else ""
                    yield f"it takes in {header}{way}"

    def elsewhere(self, path: str) -> str:
        """Why a changed path compiles nothing here; nothing where that is not known."""
        if path.endswith(_TEXTS) and posixpath.basename(path) != ROOT:
            return "documentation"
        if not path.startswith("csrc/") and path.endswith(_SOURCES):
            return "no part of the build: what uses it compiles it when it runs"
        for built, includes in zip(self._anywhere(), self.includes, strict=True):
            owners = [
                each.name
                for each in built.extensions.values()
                if any(
                    path == source.path or path in includes.reached(source.path)
                    for source in each.sources
                )
            ]
            if owners:
                return f"belongs to {', '.join(owners)}, but is not compiled for this target"
        return ""

    def nearest(self, path: str) -> list[str]:
        """The extensions that may take in a path of which nothing is known: those beside it."""
        if path in self.now.files:
            inside = [n for n, each in self.now.extensions.items() if each.file == path]
            return inside or list(self.now.extensions)
        folder = posixpath.dirname(path)
        while folder:
            near = [
                name
                for name, each in self.now.extensions.items()
                if any(source.path.startswith(f"{folder}/") for source in each.sources)
            ]
            if near:
                return near
            folder = posixpath.dirname(folder)
        return list(self.now.extensions)

    def _anywhere(self) -> tuple[Built, Built]:
        """What the trees build for any device at all."""
        if self._any is None:
            self._any = (evaluate(self.trees[0], Facts()), evaluate(self.trees[1], Facts()))
        return self._any


def _all(extension: Extension, why: str, removed: tuple[str, ...] = ()) -> Work:
    return Work(extension, (), len(extension.sources), why, removed)


def _options(before: Extension, now: Extension) -> str:
    """How the options of a whole extension differ; nothing where they do not."""
    told: list[str] = []
    for old, new in (
        (before.definitions, now.definitions),
        (before.options, now.options),
        (before.includes, now.includes),
    ):
        told += [f"without {each}" for each in old if each not in new]
        told += [f"with {each}" for each in new if each not in old]
    if (before.language, before.abi) != (now.language, now.abi):
        told.append(f"as {now.language} {now.abi}".strip())
    return f"its options are others: {', '.join(told[:5])}" if told else ""


def _said(source: Source) -> str:
    archs = "unknown architectures" if source.archs is None else " ".join(source.archs)
    return " ".join([archs or "no architecture", *source.options])
