"""The forge for what a workflow tells and publishes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ci.machine import ROOT, Machine, plain
from tests.release.conftest import shop  # noqa: F401
from tests.support.forge.fixtures import forge, forge_server  # noqa: F401
from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge
from tests.upstream.conftest import site  # noqa: F401

REPO = "acme/runner"
SETUP = (
    *("ci/venv.sh", "ci/find-python.sh", "pyproject.toml"),
    *("requirements.lock", "requirements-test.lock"),
)


@pytest.fixture
def repo(forge: Forge) -> Repo:  # noqa: F811
    return forge.repo(REPO)


@pytest.fixture
def machine(forge: Forge, repo: Repo, tmp_path: Path) -> Machine:  # noqa: F811
    home = tmp_path / "home"
    home.mkdir()
    return Machine(
        tmp_path / "jobs",
        forge.git(repo),
        forge.token,
        # As GitHub's runners have it.
        plain(home, GITHUB_API_URL=forge.api),
        REPO,
    )


@pytest.fixture
def set_up() -> Callable[[Path], None]:
    """Puts into a project what the workflows install patchq by."""

    def put(root: Path) -> None:
        for name in SETUP:
            (root / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, root / name)

    return put
