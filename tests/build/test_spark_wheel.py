"""The wheel that `patchq build --target spark` makes of the shipped series, opened and looked at."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from patchq.build.fatbin import architectures
from tests.build.elves import cuobjdump
from tests.scenarios.conftest import cache as cache
from tests.support.vllm import shipped

pytestmark = [pytest.mark.network, pytest.mark.slow]


def test_a_spark_can_run_it_and_cuobjdump_sees_the_same(tmp_path: Path, cache: Path) -> None:
    """Half a gigabyte of fat binaries; the doctor has nothing to say beside that all is well."""
    queue = shipped(tmp_path / "queue", cache)
    out = tmp_path / "dist"
    queue.patchq("build", "--target", "spark", "--out", str(out))
    (wheel,) = out.glob("*.whl")
    assert wheel.name.endswith("_aarch64.whl")
    told = json.loads(queue.patchq("doctor", "--artifact", str(wheel), "--json"))
    assert [(each["name"], each["state"]) for each in told["checks"]] == [
        ("artifact", "ok"),
        ("GPU code", "ok"),
    ]
    with zipfile.ZipFile(wheel) as members:
        names = [name for name in members.namelist() if name.endswith(".so")]
        for name in names:
            path = Path(members.extract(name, tmp_path))
            said = subprocess.run([cuobjdump(), path], capture_output=True, text=True).stdout
            theirs = set(re.findall(r"Fatbin (elf|ptx) code:\n=+\narch = (\S+)", said))
            assert {(each.kind, each.arch) for each in architectures(path)} == theirs, name
            path.unlink()
    assert len(names) > 10
