"""Whether all that a runner is made of fits at once: requirements against releases, all pure.

Requirements are PEP 508's, solved by resolvelib. Where they contradict, one that nobody chose by
hand is set aside and the rest is solved again, so that every contradiction shows in one go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from resolvelib import AbstractProvider, BaseReporter, ResolutionImpossible, Resolver

from patchq.judge.requirement import exact, package_of, parsed, same, wanted

ROUNDS = 10_000


@dataclass(frozen=True)
class Release:
    """A release of a package (its name as PEP 503 writes it) and what it asks for, PEP 508 each.

    `label` is what people call it. `unfit` says why none of its files fits the hardware.
    """

    package: str
    version: str
    requires: tuple[str, ...] = ()
    label: str = ""
    unfit: str = ""


@dataclass(frozen=True)
class Need:
    """One requirement and who has it: a release's label, or the file that pins it (`chosen`)."""

    of: str
    text: str
    chosen: bool = False


@dataclass(frozen=True)
class Waiver:
    """A requirement that does not count: of whom (a component's name), and what sets it aside.

    `to`: what is asked for in its place, "" for nothing.
    """

    of: str
    requirement: str
    by: str
    to: str = ""


@dataclass(frozen=True)
class Universe:
    """What is known: `pins` (by hand), candidates by package in the order of their versions.

    What a package that is not in `releases` asks for is nobody's question here. `names`: what
    components are called, by package; `environment`: PEP 508's markers of the hardware.
    """

    pins: tuple[Need, ...]
    releases: Mapping[str, tuple[Release, ...]]
    environment: Mapping[str, str]
    waivers: tuple[Waiver, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Conflict:
    """Needs of one package that no release of it meets together; or none of its files fits the
    hardware (`why`).
    """

    package: str
    needs: tuple[Need, ...]
    why: str = ""


@dataclass(frozen=True)
class Waived:
    """A need that was set aside on purpose, and by what."""

    need: Need
    by: str
    holds: bool = False
    """It would hold anyway: the waiver is not needed any more."""


@dataclass(frozen=True)
class Solution:
    """Which release of each package goes with all others, and what contradicts."""

    versions: Mapping[str, str]
    conflicts: tuple[Conflict, ...] = ()
    waived: tuple[Waived, ...] = ()
    idle: tuple[Waiver, ...] = ()
    """Waivers of requirements that nobody has."""

    @property
    def ok(self) -> bool:
        return not self.conflicts


def solve(universe: Universe) -> Solution:
    """All contradictions of `universe`, and a choice of releases for the rest."""
    aside: set[Need] = set()
    conflicts: list[Conflict] = []
    while True:
        provider = _Provider(universe, aside)
        resolver: Resolver[Need, _Candidate, str] = Resolver(provider, BaseReporter())
        pins = [each for each in universe.pins if each not in aside]
        try:
            result = resolver.resolve(pins, max_rounds=ROUNDS)
        except ResolutionImpossible as impossible:
            causes = [cause.requirement for cause in impossible.causes]
            found = _conflict(provider, [*pins, *causes], causes)
            conflicts.append(found)
            weakest = _weakest(found.needs)
            assert weakest not in aside, f"{weakest} contradicts though it is set aside"
            aside.add(weakest)
            continue
        break
    chosen = {each.package: each.version for each in result.mapping.values() if each.version}
    unfit = [
        Conflict(package, (), release.unfit)
        for package, version in sorted(chosen.items())
        for release in universe.releases[package]
        if release.version == version and release.unfit
    ]
    waived = tuple(
        Waived(need, waiver.by, _met(need, chosen)) for need, waiver in provider.waived.items()
    )
    used = set(provider.waived.values())
    idle = tuple(each for each in universe.waivers if each not in used)
    return Solution(chosen, (*_joined(conflicts), *unfit), waived, idle)


def less(after: Solution, before: Solution) -> Solution:
    """`after` with those contradictions alone that `before` does not have."""
    known = {(each.package, need) for each in before.conflicts for need in each.needs}
    unfit = {(each.package, each.why) for each in before.conflicts}
    fresh = [
        each
        for each in after.conflicts
        if not (
            all((each.package, need) in known for need in each.needs)
            if each.needs
            else (each.package, each.why) in unfit
        )
    ]
    return replace(after, conflicts=tuple(fresh))


def fitting(universe: Universe) -> dict[str, str]:
    """A choice of releases with which everything fits, the newest where there is one; else none."""
    found = solve(universe)
    return dict(found.versions) if found.ok else {}


def _met(need: Need, chosen: Mapping[str, str]) -> bool:
    version = chosen.get(package_of(need.text))
    return version is not None and parsed(need.text).specifier.contains(version, prereleases=True)


def _weakest(needs: Sequence[Need]) -> Need:
    """The one that is set aside to see what else contradicts: no pin, unless there are only pins;
    a narrow one before a wide one.
    """
    return max(needs, key=lambda each: (not each.chosen, bool(exact(each.text)), each.of))


def _conflict(provider: _Provider, known: Sequence[Need], causes: Sequence[Need]) -> Conflict:
    """What contradicts among `known`, about the first package of the causes where something does.

    Pins are named in any case; another need is left out, wide ones first, where the rest
    contradicts without it.
    """
    packages = sorted({package_of(need.text) for need in causes})
    for package in packages:
        core = [need for need in dict.fromkeys(known) if package_of(need.text) == package]
        if provider.candidates(package, core):
            continue
        wide_first = sorted(core, key=lambda each: (bool(exact(each.text)), each.of))
        for need in (each for each in wide_first if not each.chosen):
            rest = [each for each in core if each is not need]
            if not provider.candidates(package, rest) and not all(each.chosen for each in rest):
                core = rest
        return Conflict(package, tuple(core))
    return Conflict(packages[0], tuple(dict.fromkeys(causes)))


def _joined(conflicts: Iterable[Conflict]) -> tuple[Conflict, ...]:
    """One for each package, with all needs that contradict, pins first."""
    by_package: dict[str, list[Need]] = {}
    for each in conflicts:
        by_package.setdefault(each.package, []).extend(each.needs)
    return tuple(
        Conflict(package, tuple(sorted(dict.fromkeys(needs), key=lambda n: (not n.chosen, n.of))))
        for package, needs in sorted(by_package.items())
    )


@dataclass(frozen=True)
class _Candidate:
    """A release with extras; `version` "" stands for any of a package that is not looked at."""

    package: str
    version: str
    extras: tuple[str, ...]
    release: Release | None


class _Provider(AbstractProvider[Need, _Candidate, str]):
    """resolvelib's questions about a universe. `aside`: needs that do not count this time."""

    def __init__(self, universe: Universe, aside: set[Need]) -> None:
        self._universe = universe
        self._aside = aside
        self.waived: dict[Need, Waiver] = {}

    def identify(self, requirement_or_candidate: Need | _Candidate) -> str:
        if isinstance(requirement_or_candidate, Need):
            text = requirement_or_candidate.text
            package, extras = package_of(text), tuple(sorted(parsed(text).extras))
        else:
            package = requirement_or_candidate.package
            extras = requirement_or_candidate.extras
        return f"{package}[{','.join(extras)}]" if extras else package

    def get_preference(self, identifier: str, *args: Any, **more: Any) -> Any:
        package = identifier.partition("[")[0]
        return len(self._universe.releases.get(package, ())), identifier

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Need]],
        incompatibilities: Mapping[str, Iterator[_Candidate]],
    ) -> Sequence[_Candidate]:
        needs = list(requirements[identifier])
        bad = {each.version for each in incompatibilities[identifier]}
        package, _, rest = identifier.partition("[")
        extras = tuple(rest.removesuffix("]").split(",")) if rest else ()
        if package not in self._universe.releases:
            return [] if "" in bad else [_Candidate(package, "", extras, None)]
        return [
            _Candidate(package, each.version, extras, each)
            for each in self.candidates(package, needs)
            if each.version not in bad
        ]

    def candidates(self, package: str, needs: Sequence[Need]) -> list[Release]:
        """The releases that meet all of `needs`, the newest first."""
        known = self._universe.releases.get(package, ())
        specifiers = [parsed(need.text).specifier for need in needs]
        return [
            each
            for each in reversed(known)
            if all(spec.contains(each.version, prereleases=True) for spec in specifiers)
        ]

    def is_satisfied_by(self, requirement: Need, candidate: _Candidate) -> bool:
        specifier = parsed(requirement.text).specifier
        return not candidate.version or specifier.contains(candidate.version, prereleases=True)

    def get_dependencies(self, candidate: _Candidate) -> Iterable[Need]:
        return [need for need in self._asked_by(candidate) if need not in self._aside]

    def _asked_by(self, candidate: _Candidate) -> Iterator[Need]:
        release = candidate.release
        if release is None:
            return
        environment = self._universe.environment
        of = release.label or f"{release.package} {release.version}"
        texts = list(wanted(release.requires, environment, candidate.extras))
        if candidate.extras:
            yield Need(of, f"{release.package}=={release.version}")
            plain = set(wanted(release.requires, environment))
            texts = [text for text in texts if text not in plain]
        for text in texts:
            need = Need(of, text)
            waiver = self._waiver(release, text)
            if waiver is None:
                yield need
                continue
            self.waived[need] = waiver
            if waiver.to:
                yield Need(f"{of} with {waiver.by}", waiver.to)

    def _waiver(self, release: Release, text: str) -> Waiver | None:
        names = {release.package, self._universe.names.get(release.package, release.package)}
        for each in self._universe.waivers:
            if each.of in names and same(each.requirement, text):
                return each
        return None
