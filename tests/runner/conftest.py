"""`server` and `release` for the tests of the series on real servers.

A test that takes `server` says by `serves("profile", ...)` which ones it wants; it runs at each
release, and all tests of a release run in one process, so that they share the servers.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.runner.profiles import PROFILES
from tests.support import runner
from tests.support.runner_server import Server, serving

HERE = Path(__file__).parent
PLACES = {each: each for each in product(runner.RELEASES, PROFILES)}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("serves")
        assert mark is not None, f"{metafunc.definition.nodeid}: no serves(...)"
        # The very same values for all tests: pytest knows a parameter by its identity, and starts
        # the server anew for another one.
        places = [PLACES[release, name] for release in runner.RELEASES for name in mark.args]
        values = [
            pytest.param(place, id=f"{place[1]}-{place[0]}", marks=_marks(place[0]))
            for place in places
        ]
        metafunc.parametrize("server", values, indirect=True, scope="session")
    elif "release" in metafunc.fixturenames:
        newest = "newest_alone" in metafunc.fixturenames
        releases = runner.RELEASES[-1:] if newest else runner.RELEASES
        values = [pytest.param(release, id=release, marks=_marks(release)) for release in releases]
        metafunc.parametrize("release", values, indirect=True, scope="session")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of a server stand together: pytest goes by the place of a parameter in each test's
    own list, and starts it anew."""
    places = [at for at, item in enumerate(items) if _server_of(item)]
    for at, item in zip(places, sorted((items[at] for at in places), key=_server_of), strict=True):
        items[at] = item


def _server_of(item: pytest.Item) -> tuple[str, str] | None:
    spec = getattr(item, "callspec", None)
    return spec.params.get("server") if spec is not None and item.path.parent == HERE else None


def _marks(release: str) -> list[pytest.MarkDecorator]:
    group = pytest.mark.xdist_group(f"runner-{release}")
    return [group, pytest.mark.runner, pytest.mark.network, pytest.mark.slow]


@pytest.fixture(scope="session")
def newest_alone() -> None:
    """For tests whose start costs too much to be made at each release."""


@pytest.fixture(scope="session")
def release(request: pytest.FixtureRequest) -> str:
    """For tests that start a server of their own."""
    value: str = request.param
    runner.environment(value)
    return value


@pytest.fixture(scope="session")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """One at a time: pytest orders the tests so that each is started once."""
    release, name = request.param
    profile = PROFILES[name]
    engine = runner.patched(release) if profile.patched else runner.stock(release)
    with serving(engine, tmp_path_factory.mktemp(name), *profile.flags) as running:
        yield running
