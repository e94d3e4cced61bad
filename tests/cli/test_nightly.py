"""`patchq nightly` as it is typed; its machines are in tests/nightly."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from patchq.cli import main
from patchq.nightly import kept, stages
from patchq.nightly.settings import Settings
from tests.nightly.conftest import CLUSTER, GATE, PROFILE
from tests.support.history import git
from tests.support.inside import Said, Small, call

SETTINGS = 'onto = "v2"\ntarget = "cpu"\ncluster = "pair"\nprofile = "tiny"\n'


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    small = Small(tmp_path / "story").filled()
    for name, text in {
        "ci/clusters/pair.toml": CLUSTER,
        "ci/profiles/tiny.toml": PROFILE,
        "ci/gate.toml": GATE,
        "ci/nightly.toml": SETTINGS,
        ".gitignore": "/build/\n",
    }.items():
        (small.root / name).parent.mkdir(parents=True, exist_ok=True)
        (small.root / name).write_text(text)
    small.commit()
    with mock.patch.dict(main.COMMANDS, {"nightly": "A night."}):
        yield small.root


def night(root: Path, *args: str, code: int | None = 0) -> Said:
    return call(root, "nightly", *args, code=code)


def test_a_night_up_to_sync(root: Path, tmp_path: Path) -> None:
    """Real from the first process to the last: what sync recorded, its bundle, and the telling."""
    nights = tmp_path / "nights"
    args = ("--until", "sync", "--no-tell", "--from", "HEAD", "--nights", str(nights))
    said = night(root, *args, "--json", code=6).json
    folder = Path(said["folder"])
    assert (said["schema"], said["state"], said["resumed"]) == (
        "patchq.night/1",
        "incomplete",
        False,
    )
    assert said["base"] == {"from": "v1", "to": "v2"}
    assert folder == nights / said["name"]
    on_disk = json.loads((folder / "night.json").read_bytes())
    assert on_disk == {key: value for key, value in said.items() if key in on_disk}
    assert json.loads((folder / "sync.json").read_bytes())["recorded"] is True
    assert json.loads((folder / "lock.json").read_bytes())["digest"] == said["lock"]
    assert git(root, "status", "--porcelain") == b""

    text = night(root, *args, code=6).out
    assert f"night {said['name']}.2 of demo" in text
    assert "it was not asked for" in text
    assert "2 patches from v1 to v2, 1 dropped" in text

    there = tmp_path / "there"
    shutil.copytree(folder, there, ignore=shutil.ignore_patterns("queue"))
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(root), str(other))
    told = night(other, "--tell", str(there), "--json", code=6).json
    assert told["schema"] == "patchq.night-told/1"
    assert (told["name"], told["pull"], told["issue"]) == (said["name"], None, None)
    assert told["says"][0].startswith("nobody was told: no token is set")
    found = git(other, "rev-parse", f"refs/patchq/nights/{said['name']}").decode().strip()
    assert found == said["commit"]


def test_a_dry_run_names_the_commands(root: Path) -> None:
    value = night(root, "--dry-run", "--onto", "v3", "--until", "smoke", "--json").json
    assert value["schema"] == "patchq.night-plan/1"
    assert [each["name"] for each in value["stages"]] == ["sync", "build", "deploy", "smoke"]
    assert value["stages"][0]["commands"][0][:4] == ["patchq", "sync", "--onto", "v3"]
    text = night(root, "--dry-run").out
    assert "deploy: patchq cluster start pair --profile tiny --json" in text
    assert not (root / "build").exists()


def test_every_command_of_a_night_is_one_that_patchq_takes(tmp_path: Path) -> None:
    """Parsed by the command line itself; nothing is run."""
    settings = Settings()
    plan = stages.plan(settings, "demo", tmp_path, stages.Bench((1024,), 8))
    more = (
        stages.bench(settings, stages.Bench(saved=tmp_path / "bench.json")),
        stages.lock("demo", "spark"),
        stages.stop("sparks"),
        stages.holds("a" * 64),
        stages.cut("key", "demo"),
        stages.publish(3),
        stages.bisect(settings, "demo", "a" * 40, "b" * 40, "patchq smoke --url $PATCHQ_URL"),
    )
    commands = [*chain.from_iterable(plan.values()), *more]
    for command in commands:
        name, *args = command.args
        parser = main.Commands().get_command(None, name)
        if name in ("cluster", "release"):
            parser = parser.get_command(None, args.pop(0))
        with parser.make_context(name, args) as parsed:
            assert parsed.params["json"] is True, command.args
    assert len(commands) == 15


def test_the_second_of_two_nights_at_once_is_refused(root: Path) -> None:
    nights = root / "build/nights"
    with kept.hold(nights):
        said = night(root, "--no-tell", "--json", code=1).json
    assert said["schema"] == "patchq.error/1"
    assert "is at work in" in said["message"]


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (["--alarm", "--dry-run"], 2, "do not go together"),
        (["--tell", "x", "--no-tell"], 2, "do not go together"),
        (["--until", "lunch"], 1, "there is no stage 'lunch'"),
        (["--cluster", "none"], 1, "there is no cluster 'none'"),
        (["--target", "spark"], 1, "takes cpu"),
        (["--from", "nowhere"], 1, "no commit 'nowhere'"),
        (["--tell", "nowhere"], 1, "has no night.json"),
        (["--alarm"], 1, "no token is set"),
    ],
)
def test_what_cannot_be_is_said(root: Path, args: list[str], code: int, word: str) -> None:
    assert word in night(root, *args, code=code).err


def test_a_setting_that_nobody_knows_is_an_error(root: Path) -> None:
    (root / "ci/nightly.toml").write_text("onot = 3\n")
    assert "unknown keys: onot" in night(root, code=1).err


def test_its_modules_wait_until_they_are_needed(root: Path) -> None:
    import subprocess
    import sys

    program = (
        "import sys; from patchq.cli import nightly; "
        "print([each for each in ('github', 'rich', 'requests', 'pydantic', 'git', 'jinja2') "
        "if each in sys.modules])"
    )
    done: Any = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"[]\n"
