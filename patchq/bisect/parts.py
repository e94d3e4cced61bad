"""What a runner is made of beside its base and patches: what differs, and any mixture of it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from patchq.bisect.ends import End
from patchq.bisect.model import Move, MoveKind
from patchq.build import requirements
from patchq.build.requirements import Locked, RequirementsLock
from patchq.build.target import TARGETS, Target
from patchq.errors import PatchqError
from patchq.paths import show
from patchq.queue import patch as patches
from patchq.queue.header import one_line
from patchq.upstream.components import FILE, Component, Model, Pins, Template

PINS = f"upstream/{FILE}"
PROFILES = "ci/profiles"
KINDS = ("component", "model", "draft", "template")
REQUIREMENTS = "requirements/locks"

Entry = Component | Model | Template
Side = Callable[[str], End]
"""The end that a thing is taken from, by the name of its move (B's where it has none)."""


def differences(a: End, b: End, based: frozenset[str]) -> list[Move]:
    """The moves of everything but base and patches.

    `based`: the move that leads to B's base, none where it is A's.
    """
    found = list(_pins(a, b))
    if _locks_differ(a, b):
        targets = ", ".join(name for name in TARGETS if _locked(a, name) or _locked(b, name))
        says = f"locked requirements ({targets})" if targets else f"what {PINS} sets aside"
        # The base's own requirements are among them.
        found.append(Move(REQUIREMENTS, "requirements", says, None, based))
    old, new = a.below(PROFILES), b.below(PROFILES)
    for path in sorted(old | new):
        if path.endswith(".toml") and old.get(path) != new.get(path):
            name = path.removeprefix(f"{PROFILES}/").removesuffix(".toml")
            what = "changed" if path in old and path in new else _came(path in new)
            found.append(Move(f"profile/{name}", "profile", f"serve profile {show(name)} {what}"))
    return found


def _pins(a: End, b: End) -> Iterator[Move]:
    old = {(kind, each.name): each for kind, each in a.pins.all}
    new = {(kind, each.name): each for kind, each in b.pins.all}
    for key in sorted(old | new):
        kind, name = key
        was, now = old.get(key), new.get(key)
        own = kind == "component" and _own(a, name) != _own(b, name)
        if not own and _bare(was) == _bare(now):
            continue
        says = f"{kind} {show(name)}"
        if was is None or now is None:
            says += f" {_came(now is not None)}"
        elif was.pin != now.pin:
            says += f" {show(was.pin)} to {show(now.pin)}"
        elif _bare(was) != _bare(now):
            says += " described otherwise"
        if own and was is not None and now is not None:
            says += ", with other patches of its own" if was.pin != now.pin else " patched anew"
        yield Move(f"{kind}/{name}", cast(MoveKind, kind), says, _address(b.pins, now or was))


def _came(there: bool) -> str:
    return "added" if there else "taken out"


def _bare(entry: Entry | None) -> Entry | None:
    """Without the reason, which no runner behaves by."""
    return replace(entry, why="") if entry is not None else None


def _address(pins: Pins, entry: Entry | None) -> str | None:
    if isinstance(entry, Component):
        found = entry.git
    else:
        found = f"{pins.hub}/{entry.repository}" if entry is not None else ""
    return one_line(show(found)) if found.startswith("https://") else None


def _own(end: End, component: str) -> list[tuple[str, bytes]]:
    """The names and diffs of a component's own patches, in the order of its series file."""
    below = end.below(f"series/{component}")
    text = below.get(f"series/{component}/series", b"").decode("utf-8", "surrogateescape")
    found = []
    for line in text.splitlines():
        file = line.split("#")[0].strip().partition(" ")[0]
        data = below.get(f"series/{component}/{file}")
        if file and data is not None:
            found.append((file, patches.parse(file, data).diff))
    return found


def _locks_differ(a: End, b: End) -> bool:
    """Whether other packages are locked, those aside that a component's pin decides."""
    if _rest(a) != _rest(b):
        return True
    return any(_packages(a, b, name) != _packages(b, a, name) for name in TARGETS)


def _rest(end: End) -> dict[str, Any]:
    """What the pins' file holds beside the pins."""
    text = end.files.get(PINS, b"").decode("utf-8", "replace")
    return {key: value for key, value in tomllib.loads(text).items() if key not in KINDS}


def _locked(end: End, target: str) -> RequirementsLock | None:
    path = f"upstream/{requirements.file_name(target)}"
    data = end.files.get(path)
    return requirements.parse(data, path) if data is not None else None


def _packages(end: End, other: End, target: str) -> frozenset[Locked] | None:
    lock = _locked(end, target)
    if lock is None:
        return None
    pinned = {
        requirements.normal(each.index)
        for pins in (end.pins, other.pins)
        for each in pins.components
        if each.index
    }
    return frozenset(each for each in lock.packages if each.name not in pinned)


def files(a: End, b: End, side: Side) -> dict[str, bytes | None]:
    """Pins, components' own patches and profiles of a subset, by path; None: not there."""
    out: dict[str, bytes | None] = {PINS: _pins_file(a, b, side)}
    names = {each.name for pins in (a.pins, b.pins) for each in pins.components}
    for name in sorted(names):
        folder = f"series/{name}"
        out |= dict.fromkeys({*a.below(folder), *b.below(folder)})
        out |= side(f"component/{name}").below(folder)
    for path in {*a.below(PROFILES), *b.below(PROFILES)}:
        name = path.removeprefix(f"{PROFILES}/").removesuffix(".toml")
        out[path] = side(f"profile/{name}").files.get(path)
    return out


def _pins_file(a: End, b: End, side: Side) -> bytes | None:
    """The pins' file of one end where every entry is that end's, else one that is composed."""
    sides = {REQUIREMENTS: side(REQUIREMENTS)}
    for pins in (a.pins, b.pins):
        for kind, each in pins.all:
            sides[f"{kind}/{each.name}"] = side(f"{kind}/{each.name}")
    for end in (b, a):
        if all(found is end or _alike(a, b, name) for name, found in sides.items()):
            return end.files.get(PINS)
    import tomlkit

    document: dict[str, Any] = dict(_rest(sides[REQUIREMENTS]))
    for kind in KINDS:
        entries = []
        for name in dict.fromkeys(
            each.name for end in (b, a) for its, each in end.pins.all if its == kind
        ):
            entries += _tables(sides[f"{kind}/{name}"], kind, name)
        if entries:
            document[kind] = entries
    return tomlkit.dumps(document).encode()


def _alike(a: End, b: End, name: str) -> bool:
    if name == REQUIREMENTS:
        return _rest(a) == _rest(b)
    kind, _, entry = name.partition("/")
    return _tables(a, kind, entry) == _tables(b, kind, entry)


def _tables(end: End, kind: str, name: str) -> list[dict[str, Any]]:
    text = end.files.get(PINS, b"").decode("utf-8", "replace")
    return [each for each in tomllib.loads(text).get(kind, []) if each.get("name") == name]


def requirements_file(
    a: End,
    b: End,
    target: Target,
    release: str,
    pins: Pins,
    patched: Collection[str],
    side: Side,
    *,
    whole: bool,
) -> bytes | None:
    """The locked requirements of a subset: the chosen end's, with the pinned components exchanged.

    `pins` are the subset's, `patched` the components that it builds itself; `whole`: all of it is
    as at that end. Nothing is resolved: a mixture that contradicts itself is seen when it is
    installed. Raises PatchqError where neither end knows the hashes of a component's wheels.
    """
    end = side(REQUIREMENTS)
    lock = _locked(end, target.name)
    path = f"upstream/{requirements.file_name(target.name)}"
    if lock is None:
        return None
    told = requirements.told(target, release, pins, patched)
    if whole or set(lock.told) == set(told):
        return end.files[path]
    known: Mapping[tuple[str, str], Locked] = {
        (each.name, each.version): each
        for one in (a, b)
        if (found := _locked(one, target.name)) is not None
        for each in found.packages
    }
    packages = {each.name: each for each in lock.packages}
    for each in requirements.concerning(target, end.pins.components):
        packages.pop(requirements.normal(each.index), None)
    for each in requirements.concerning(target, pins.components):
        name = requirements.normal(each.index)
        if each.name in patched:
            continue
        if (name, each.version) in known:
            packages[name] = known[name, each.version]
        else:
            raise PatchqError(
                f"neither end has {show(name)} {show(each.version)} locked for {target.name}",
                f"run `patchq lock --requirements {target.name}` at both ends",
            )
    return requirements.write(told, packages.values())
