"""What a target's environment must hold beside the built wheels, locked with hashes: pure.

`upstream/requirements.TARGET.lock` is a requirements file that `pip install --require-hashes`
takes. Comments before the first package say what it was resolved from, one fact a line; by them
`patchq lock --check` sees without a network that a lock is of other inputs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.build.target import Target
from patchq.errors import PatchqError
from patchq.judge.requirement import RELAXES, same, set_aside
from patchq.queue.patch import Patch
from patchq.upstream.components import Component, Hardware, Pins, Relaxed

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_PIN = re.compile(r"([a-z0-9][a-z0-9-]*)==([A-Za-z0-9][A-Za-z0-9.+!_-]*)(?: \\)?")
_HASH = re.compile(r"    --hash=sha256:([0-9a-f]{64})(?: \\)?")


@dataclass(frozen=True)
class Rewritten:
    """A requirement of upstream's wheel that a pinned component contradicts: `was`, `now`, why.

    `now` and `component` are empty where it was set aside and nothing is asked for instead.
    """

    was: str
    now: str
    component: str
    why: str


@dataclass(frozen=True)
class Locked:
    """One package of a lock; `hashes` are the sha256 of the wheels that fit the target."""

    name: str
    version: str
    hashes: tuple[str, ...]


@dataclass(frozen=True)
class RequirementsLock:
    """A lock, read: what it says that it is from, and its packages by name."""

    told: tuple[str, ...]
    packages: tuple[Locked, ...]


def file_name(target: str) -> str:
    return f"requirements.{target}.lock"


def normal(name: str) -> str:
    """A package's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def concerning(target: Target, components: Iterable[Component]) -> tuple[Component, ...]:
    """The components with a release on the index that belong to the target's environment."""
    return tuple(each for each in components if target.gpu and each.index and each.version)


def rewritten(
    requires: Sequence[str],
    components: Iterable[Component],
    relaxed: Iterable[Relaxed] = (),
    of: str = "vllm",
) -> tuple[Rewritten, ...]:
    """The requirements that contradict a component's pin or were set aside, and what they become.

    `relaxed` gives the reason where one stands for it; else the component's own is given. What was
    set aside and is no component is taken out. What a pin fulfils stays as it is. Raises
    PatchqError for what is no requirement.
    """
    pins = {normal(each.index): each for each in components}
    own = [each for each in relaxed if normal(each.of) == normal(of)]
    found = []
    for text in requires:
        required = _requirement(text)
        component = pins.get(normal(required.name))
        given = next((each for each in own if same(each.requirement, text)), None)
        if component is None:
            if given is not None:
                found.append(Rewritten(text, given.to, "", given.why))
        elif not required.specifier.contains(component.version, prereleases=True):
            now = _pinned(required, component.version)
            why = given.why if given is not None else component.why
            found.append(Rewritten(text, now, component.name, why))
    return tuple(found)


def needed(target: Target, hardware: Hardware | None) -> tuple[str, ...]:
    """What the machine itself asks for, where it is the target's."""
    fits = hardware is not None and target.gpu and hardware.machine == target.machine
    return hardware.requires if hardware is not None and fits else ()


def inputs(
    requires: Sequence[str],
    changes: Sequence[Rewritten],
    components: Iterable[Component],
    needs: Sequence[str] = (),
) -> tuple[str, ...]:
    """What is resolved: the wheel's requirements as the built one has them, pins, and `needs`.

    Requirements of extras are nobody's here.
    """
    exchanged = {each.was: each.now for each in changes}
    own = [exchanged.get(text, text) for text in requires if not _of_an_extra(text)]
    own = [text for text in own if text]
    return (*own, *needs, *(f"{normal(each.index)}=={each.version}" for each in components))


def relaxed_by(patches: Iterable[Patch]) -> tuple[Relaxed, ...]:
    """What the headers of patches set aside (`RELAXES`).

    Raises PatchqError for a field that is none.
    """
    return tuple(
        Relaxed(of, requirement, f"carried patch {patch.name}", to)
        for patch in patches
        for of, requirement, to in set_aside(patch.header.all(RELAXES), patch.file)
    )


def aside(component: Component, relaxed: Iterable[Relaxed]) -> tuple[Relaxed, ...]:
    """What was set aside of what the component asks for."""
    names = (component.name, normal(component.index))
    return tuple(each for each in relaxed if normal(each.of) in names)


def instead(requires: Sequence[str], gone: Sequence[Relaxed]) -> dict[str, str]:
    """Those of `requires` that were set aside, and what is asked for instead ("": nothing)."""
    return {text: each.to for text in requires for each in gone if same(each.requirement, text)}


def without(requires: Sequence[str], gone: Sequence[Relaxed]) -> tuple[str, ...]:
    """`requires` with what was set aside exchanged."""
    changes = instead(requires, gone)
    return tuple(new for text in requires if (new := changes.get(text, text)))


def told(
    target: Target, release: str, pins: Pins, patched: Collection[str] = ()
) -> tuple[str, ...]:
    """What a lock is resolved from, one fact a line. `patched`: components that the build makes."""
    exact = sorted(
        f"{'built' if each.name in patched else 'pin'} {normal(each.index)}=={each.version}"
        for each in concerning(target, pins.components)
    )
    aside = sorted(f"relaxed {each.of}: {each.requirement}" for each in pins.relaxed)
    return (
        f"for {target.package} {release}",
        f"on {target.machine}, glibc {target.glibc}, Python {target.python}",
        *exact,
        *(f"needs {each}" for each in needed(target, pins.hardware)),
        *(aside if target.gpu else ()),
    )


def write(lines: Sequence[str], packages: Iterable[Locked], left_out: Iterable[str] = ()) -> bytes:
    """The lock's bytes. `left_out`: packages that the build gives, by name."""
    out = [f"# {line}\n" for line in lines]
    gone = set(left_out)
    for each in sorted(packages, key=lambda each: each.name):
        if each.name not in gone:
            hashes = " \\\n".join(f"    --hash=sha256:{one}" for one in sorted(each.hashes))
            out.append(f"{each.name}=={each.version} \\\n{hashes}\n")
    return "".join(out).encode()


def parse(data: bytes, where: str) -> RequirementsLock:
    """Raises PatchqError for whatever `write` does not write."""
    lines: list[str] = []
    packages: list[Locked] = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        if line.startswith("# ") and not packages:
            lines.append(line[2:])
        elif pin := _PIN.fullmatch(line):
            packages.append(Locked(pin[1], pin[2], ()))
        elif (found := _HASH.fullmatch(line)) and packages:
            last = packages[-1]
            packages[-1] = Locked(last.name, last.version, (*last.hashes, found[1]))
        else:
            raise PatchqError(
                f"{where}:{number} is no line of a lock",
                "run `patchq lock --requirements`, which writes it anew",
            )
    bare = [each.name for each in packages if not each.hashes]
    if bare or len({each.name for each in packages}) != len(packages):
        which = f"{bare[0]} has no hash" if bare else "a package stands twice"
        raise PatchqError(
            f"{where} is damaged: {which}", "run `patchq lock --requirements`, which writes it anew"
        )
    return RequirementsLock(tuple(lines), tuple(packages))


def _pinned(required: Requirement, version: str) -> str:
    extras = f"[{','.join(sorted(required.extras))}]" if required.extras else ""
    marker = f"; {required.marker}" if required.marker else ""
    return f"{required.name}{extras}=={version}{marker}"


def _of_an_extra(text: str) -> bool:
    marker = _requirement(text).marker
    return marker is not None and re.search(r"\bextra\b", str(marker)) is not None


def _requirement(text: str) -> Requirement:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise PatchqError(
            f"{text!r} is no requirement: {error}", "tell those who publish the package"
        ) from error
