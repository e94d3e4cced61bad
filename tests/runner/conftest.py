"""`server` and `release` for the tests of the series on real servers.

A test that takes `server` says by `serves("profile", ...)` which ones it wants; it runs at each
release, and all tests of a release run in one process, so that they share the servers.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runner.profiles import PROFILES
from tests.support import runner
from tests.support.runner_server import Server, serving


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("serves")
        assert mark is not None, f"{metafunc.definition.nodeid}: no serves(...)"
        places = [(release, name) for release in runner.RELEASES for name in mark.args]
        values = [
            pytest.param(place, id=f"{place[1]}-{place[0]}", marks=_marks(place[0]))
            for place in places
        ]
        metafunc.parametrize("server", values, indirect=True, scope="session")
    elif "release" in metafunc.fixturenames:
        values = [
            pytest.param(release, id=release, marks=_marks(release)) for release in runner.RELEASES
        ]
        metafunc.parametrize("release", values, indirect=True, scope="session")


def _marks(release: str) -> list[pytest.MarkDecorator]:
    group = pytest.mark.xdist_group(f"runner-{release}")
    return [group, pytest.mark.runner, pytest.mark.network, pytest.mark.slow]


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
