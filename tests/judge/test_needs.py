"""Requirements against releases: what fits at once, every contradiction, what is set aside."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from patchq.judge.needs import (
    Conflict,
    Need,
    Release,
    Universe,
    Waiver,
    fitting,
    less,
    solve,
)
from patchq.judge.requirement import package_of, parsed

ENVIRONMENT = {
    "implementation_name": "cpython",
    "implementation_version": "3.12.0",
    "os_name": "posix",
    "platform_machine": "aarch64",
    "platform_python_implementation": "CPython",
    "platform_release": "",
    "platform_system": "Linux",
    "platform_version": "",
    "python_full_version": "3.12.0",
    "python_version": "3.12",
    "sys_platform": "linux",
}


def release(label: str, *requires: str, unfit: str = "") -> Release:
    package, version = label.split(" ")
    return Release(package, version, requires, label, unfit)


def universe(*releases: Release, free: tuple[str, ...] = (), **more: object) -> Universe:
    """Every package is pinned to its one release; those in `free` to none of theirs."""
    by_package: dict[str, tuple[Release, ...]] = {}
    for each in releases:
        by_package[each.package] = (*by_package.get(each.package, ()), each)
    pins = tuple(
        Need("the file", package if package in free else f"{package}=={known[0].version}", True)
        for package, known in by_package.items()
    )
    return Universe(pins, by_package, ENVIRONMENT, **more)  # type: ignore[arg-type]


def told(conflict: Conflict) -> list[str]:
    return [f"{need.of}: {need.text}" for need in conflict.needs]


FLASHINFER = release("flashinfer 0.6.18", "dsl>=4.7.0", "numpy")
SPARKINFER = release("sparkinfer 1", "dsl==4.6.0")


def test_all_that_fits() -> None:
    found = solve(universe(FLASHINFER, release("dsl 4.7.0")))
    assert found.ok
    assert found.versions == {"flashinfer": "0.6.18", "dsl": "4.7.0"}


def test_every_contradiction_in_one_go_with_those_who_ask() -> None:
    engine = release("engine 1", "flashinfer==0.7", "dsl<4.7", "torch>=2")
    found = solve(universe(engine, FLASHINFER, SPARKINFER, release("dsl 4.7.0")))
    assert [each.package for each in found.conflicts] == ["dsl", "flashinfer"]
    assert told(found.conflicts[0]) == [
        "the file: dsl==4.7.0",
        "engine 1: dsl<4.7",
        "sparkinfer 1: dsl==4.6.0",
    ], "who agrees with the pin is not named"
    assert told(found.conflicts[1]) == ["the file: flashinfer==0.6.18", "engine 1: flashinfer==0.7"]


def test_two_bounds_that_no_release_meets() -> None:
    a, b = release("a 1", "numpy<2", "tqdm"), release("b 1", "numpy>=2.1", "tqdm")
    versions = tuple(Release("numpy", version) for version in ("1.26", "2.0", "2.1"))
    whole = universe(a, b)
    found = solve(Universe(whole.pins, {**whole.releases, "numpy": versions}, ENVIRONMENT))
    (conflict,) = found.conflicts
    assert told(conflict) == ["a 1: numpy<2", "b 1: numpy>=2.1"]


def test_a_choice_is_the_newest_that_all_take() -> None:
    a, b = release("a 1", "numpy<2.1"), release("b 1", "numpy>=1.26")
    versions = tuple(Release("numpy", version) for version in ("1.26", "2.0", "2.1"))
    whole = universe(a, b)
    found = solve(Universe(whole.pins, {**whole.releases, "numpy": versions}, ENVIRONMENT))
    assert found.versions["numpy"] == "2.0"


def test_markers_count_for_the_hardware_and_extras_where_they_are_asked_for() -> None:
    engine = release(
        "engine 1",
        "dsl[cu13]>=4",
        'nothing==1; sys_platform == "win32"',
        'dsl==9; extra == "other"',
    )
    dsl = release("dsl 4.7.0", 'libs==4.7.0; extra == "cu13"', 'libs==1; extra == "cu12"')
    assert solve(universe(engine, dsl, release("libs 4.7.0"))).ok
    (conflict,) = solve(universe(engine, dsl, release("libs 4.6.0"))).conflicts
    assert told(conflict) == ["the file: libs==4.6.0", "dsl 4.7.0: libs==4.7.0"]
    wider = release("engine 1", "dsl[cu13,cu12]")
    (conflict,) = solve(universe(wider, dsl, release("libs 4.7.0"))).conflicts
    assert told(conflict) == ["the file: libs==4.7.0", "dsl 4.7.0: libs==1"]


def test_what_is_set_aside() -> None:
    waiver = Waiver("sparkinfer", "DSL == 4.6.0", "carried patch sparkinfer-dsl")
    parts = (FLASHINFER, SPARKINFER, release("dsl 4.7.0"))
    found = solve(universe(*parts, waivers=(waiver,)))
    assert found.ok
    (waived,) = found.waived
    assert (waived.need.of, waived.by, waived.holds) == (
        "sparkinfer 1",
        "carried patch sparkinfer-dsl",
        False,
    )


def test_a_waiver_that_is_not_needed_any_more_and_one_of_nothing() -> None:
    kept = Waiver("sparkinfer", "dsl==4.6.0", "a")
    idle = Waiver("sparkinfer", "dsl==4.5.0", "b")
    found = solve(universe(SPARKINFER, release("dsl 4.6.0"), waivers=(kept, idle)))
    assert [each.holds for each in found.waived] == [True]
    assert found.idle == (idle,)


def test_what_a_patch_asks_for_instead_counts() -> None:
    waiver = Waiver("sparkinfer", "dsl==4.6.0", "carried patch p", "dsl>=4.8")
    found = solve(universe(SPARKINFER, release("dsl 4.7.0"), waivers=(waiver,)))
    (conflict,) = found.conflicts
    assert told(conflict)[1] == "sparkinfer 1 with carried patch p: dsl>=4.8"


def test_a_component_is_known_by_its_name_too() -> None:
    waiver = Waiver("flash", "dsl>=4.7.0", "p")
    whole = universe(FLASHINFER, release("dsl 4.6.0"), waivers=(waiver,))
    assert not solve(whole).ok
    named = Universe(
        whole.pins, whole.releases, ENVIRONMENT, whole.waivers, {"flashinfer": "flash"}
    )
    assert solve(named).ok


def test_a_release_without_a_file_that_fits() -> None:
    (conflict,) = solve(universe(release("a 1", unfit="none of its files fits"))).conflicts
    assert (conflict.package, conflict.why) == ("a", "none of its files fits")


def test_two_pins_that_contradict_end() -> None:
    pins = (Need("one", "a==1", True), Need("other", "a==2", True))
    found = solve(Universe(pins, {"a": (release("a 1"), release("a 2"))}, ENVIRONMENT))
    assert [told(each) for each in found.conflicts] == [["one: a==1", "other: a==2"]]


def test_what_would_fit() -> None:
    parts = (
        release("engine 1", "flashinfer==0.7"),
        FLASHINFER,
        release("flashinfer 0.7", "dsl>=4.8"),
        release("dsl 4.7.0"),
        release("dsl 4.8.0"),
        release("dsl 4.8.1"),
    )
    assert fitting(universe(*parts, free=("flashinfer", "dsl"))) == {
        "engine": "1",
        "flashinfer": "0.7",
        "dsl": "4.8.1",
    }
    assert fitting(universe(*parts, free=("flashinfer",))) == {}


def test_only_what_is_new_counts_against_a_change() -> None:
    before = solve(universe(FLASHINFER, SPARKINFER, release("dsl 4.7.0")))
    assert less(before, before).ok
    after = solve(universe(FLASHINFER, SPARKINFER, release("dsl 4.6.1")))
    assert [each.package for each in less(after, before).conflicts] == ["dsl"]


NAMES = st.sampled_from(("a", "b", "c", "d"))
NUMBERS = st.integers(1, 3).map(str)
TEXTS = st.builds(
    lambda name, sign, number: f"{name}{sign}{number}",
    NAMES,
    st.sampled_from(("==", ">=", "<=", "!=")),
    NUMBERS,
)
RELEASES = st.dictionaries(
    st.tuples(NAMES, NUMBERS), st.lists(TEXTS, max_size=3), min_size=1, max_size=8
)


@given(RELEASES, st.sets(NAMES, max_size=4))
def test_what_is_said_to_fit_fits(known: dict[tuple[str, str], list[str]], free: set[str]) -> None:
    found = universe(
        *(
            release(f"{name} {number}", *requires)
            for (name, number), requires in sorted(known.items())
        ),
        free=tuple(free),
    )
    solution = solve(found)
    packages = {package for package, _ in known}
    assert packages <= solution.versions.keys(), "there is always a choice for the rest"
    if solution.ok:
        for package, version in solution.versions.items():
            for text in known[package, version]:
                chosen = solution.versions.get(package_of(text))
                assert chosen is None or chosen in parsed(text).specifier
    elif not free:  # where there is a choice, each release may fail for another reason
        for conflict in solution.conflicts:
            versions = [each.version for each in found.releases[conflict.package]]
            specifiers = [parsed(need.text).specifier for need in conflict.needs]
            assert not any(all(v in each for each in specifiers) for v in versions)
