"""What a requirement (PEP 508) says: its package, its bounds, whether it counts somewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from patchq.errors import PatchqError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

RELAXES = "Patchq-Relaxes"
"""`COMPONENT: REQUIREMENT`, perhaps `-> REQUIREMENT` that it is then: what a patch sets aside."""


@lru_cache(maxsize=4096)
def parsed(text: str) -> Requirement:
    """The requirement; raises ValueError for what is none (packaging's InvalidRequirement)."""
    from packaging.requirements import Requirement

    return Requirement(text)


def package_of(text: str) -> str:
    """The package that a requirement is about, as PEP 503 writes it."""
    from packaging.utils import canonicalize_name

    return canonicalize_name(parsed(text).name)


def exact(text: str) -> str:
    """The one version that a requirement allows, "" where it leaves a choice."""
    found = [
        each.version
        for each in parsed(text).specifier
        if each.operator in ("==", "===") and not each.version.endswith(".*")
    ]
    return found[0] if found else ""


def wanted(
    requires: Iterable[str], environment: Mapping[str, str], extras: Iterable[str] = ()
) -> Iterator[str]:
    """Those of `requires` that count there, with any of `extras` ("" is none), without markers."""
    for text in requires:
        requirement = parsed(text)
        marker = requirement.marker
        # The environment is whole: nothing of the machine that asks gets into it.
        if marker is None or any(
            marker.evaluate({**environment, "extra": extra}) for extra in extras or ("",)
        ):
            yield text.partition(";")[0].strip() if marker is not None else text


def differences(
    was: Iterable[str], will: Iterable[str], environment: Mapping[str, str]
) -> tuple[str, ...]:
    """What another release asks for otherwise there, a sentence for each package."""
    before, after = ({package_of(t): t for t in wanted(side, environment)} for side in (was, will))
    told = []
    for package in sorted(before.keys() | after.keys()):
        old, new = before.get(package), after.get(package)
        if new is None:
            told.append(f"asks no more for {old}")
        elif old is None:
            told.append(f"asks for {new}")
        elif not same(old, new):
            bounds = str(parsed(old).specifier) or "any"
            told.append(f"asks for {new} (before: {bounds})")
    return tuple(told)


def set_aside(values: Iterable[str], where: str) -> Iterator[tuple[str, str, str]]:
    """What the fields RELAXES of the patch `where` set aside, each as `_relaxed` has it.

    Raises PatchqError for a field that is none.
    """
    for value in values:
        try:
            yield _relaxed(value)
        except ValueError as error:
            raise PatchqError(
                f"{where}: {RELAXES}: {value!r} is no requirement ({error})",
                "write COMPONENT: REQUIREMENT, say `sparkinfer: nvidia-cutlass-dsl==4.6.0`",
            ) from error


def _relaxed(value: str) -> tuple[str, str, str]:
    """The field RELAXES: whose requirement, which, and what it is then ("" for nothing).

    Raises ValueError where it is none (packaging's InvalidRequirement).
    """
    of, _, rest = value.partition(":")
    requirement, _, to = (part.strip() for part in rest.partition("->"))
    for text in (requirement, *filter(None, [to])):
        parsed(text)
    return of.strip(), requirement, to


def same(one: str, other: str) -> bool:
    """Whether two requirements say the same, whatever their markers and blanks."""
    a, b = parsed(one), parsed(other)
    return (package_of(one), a.extras, a.specifier) == (package_of(other), b.extras, b.specifier)
