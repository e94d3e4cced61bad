"""The units in ci/systemd, as systemd reads them, and as the shell runs what they start."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.ci.machine import ROOT

UNITS = ROOT / "ci/systemd"
ACCOUNT = "root"  # one that is there: an instance of it is looked at


def analyze(*arguments: str | Path, runtime: Path) -> str:
    """What `systemd-analyze` says; silent where all is well."""
    program = shutil.which("systemd-analyze")
    assert program, "systemd-analyze is not installed: run ci/install-test-packages.sh"
    runtime.mkdir(mode=0o700, exist_ok=True)
    done = subprocess.run(
        [program, *arguments],
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr + (f"exit {done.returncode}" if done.returncode else "")


def read(path: Path) -> configparser.RawConfigParser:
    found = configparser.RawConfigParser(strict=False, interpolation=None)
    found.optionxform = str  # type: ignore[method-assign, assignment]
    found.read_string(path.read_text(encoding="utf-8"))
    return found


def values(path: Path, key: str) -> list[str]:
    """Of a key that may stand more than once."""
    return re.findall(rf"^{key}=(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture
def placed(tmp_path: Path) -> Path:
    """The units of the system in a folder, with instances of an account that is there."""
    folder = tmp_path / "units"
    folder.mkdir()
    for path in UNITS.glob("patchq-*"):
        shutil.copy(path, folder)
        shutil.copy(path, folder / path.name.replace("@.", f"@{ACCOUNT}."))
    return folder


def test_systemd_takes_the_systems(placed: Path, tmp_path: Path) -> None:
    instances = sorted(placed.glob(f"*@{ACCOUNT}.*"))
    assert len(instances) == 5
    verify = ["verify", "--man=no", *instances]
    assert analyze(*verify, runtime=tmp_path / "run") == ""
    path = placed / f"patchq-nightly@{ACCOUNT}.service"
    path.write_text(path.read_text().replace("KillMode", "KilMode"))
    assert "Unknown key" in analyze(*verify, runtime=tmp_path / "run")


def test_systemd_takes_the_users(sealed: Path, tmp_path: Path) -> None:
    (sealed / "patchq").mkdir()
    folder = tmp_path / "units"
    shutil.copytree(UNITS / "user", folder)
    failed = folder / "patchq-nightly-failed@.service"
    failed.rename(folder / "patchq-nightly-failed@x.service")
    units = sorted(folder.iterdir())
    assert len(units) == 5
    assert analyze("verify", "--user", "--man=no", *units, runtime=tmp_path / "run") == ""


@pytest.mark.parametrize("name", ["nightly", "nightly-alarm"])
def test_it_may_do_little(placed: Path, tmp_path: Path, name: str) -> None:
    unit = placed / f"patchq-{name}@{ACCOUNT}.service"
    said = analyze("security", "--offline=yes", "--threshold=25", unit, runtime=tmp_path / "run")
    # The account is `root` here only because it is one that every machine has.
    assert re.search(r"Overall exposure level for \S+: [0-2]\.\d OK", said), said[-300:]
    assert "exit" not in said.splitlines()[-1], said[-300:]


def test_both_ways_do_the_same() -> None:
    """What the account's own units do is what root's do; they only may not shut it in as much."""
    for name in ("nightly", "nightly-alarm"):
        theirs, own = UNITS / f"patchq-{name}@.timer", UNITS / f"user/patchq-{name}.timer"
        assert read(theirs)["Timer"] == read(own)["Timer"]
        theirs, own = UNITS / f"patchq-{name}@.service", UNITS / f"user/patchq-{name}.service"
        shared = {
            *("Type", "SuccessExitStatus", "TimeoutStartSec", "TimeoutStopSec", "KillMode"),
            *("NoNewPrivileges", "LockPersonality", "RestrictRealtime", "RestrictSUIDSGID"),
        }
        for key in shared:
            assert values(theirs, key) == values(own, key), f"{name}: {key}"
        for key in ("ExecStartPre", "ExecStart"):
            # One begins in the home, the other in the clone.
            plain = [
                re.sub(r"cd patchq && | -C patchq|patchq/(?=ci/)", "", line)
                for line in values(theirs, key)
            ]
            assert plain == values(own, key)
        assert read(theirs)["Unit"]["OnFailure"] == read(own)["Unit"]["OnFailure"]


def test_no_token_stands_in_a_unit() -> None:
    for path in UNITS.rglob("patchq-*"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^(Set)?(Environment|Credential)\w*=.*TOKEN", text, re.MULTILINE)
        assert not re.search(r"gh[a-z]_|github_pat_", text)


def test_a_machine_that_was_off_makes_up_for_it() -> None:
    for path in UNITS.rglob("*.timer"):
        timer = read(path)["Timer"]
        assert timer["Persistent"] == "true" and timer["RandomizedDelaySec"]
        minute = int(timer["OnCalendar"].rpartition(":")[2])
        assert minute % 5, "everybody's jobs run at those"


def test_the_unit_waits_longer_than_the_stages() -> None:
    settings = tomllib.loads((ROOT / "ci/nightly.toml").read_text(encoding="utf-8"))
    (limit,) = values(UNITS / "patchq-nightly@.service", "TimeoutStartSec")
    assert sum(settings["minutes"].values()) < 60 * int(limit.removesuffix("h"))


@pytest.mark.parametrize(
    ("unit", "where"),
    [("patchq-nightly@.service", "."), ("user/patchq-nightly.service", "patchq")],
)
def test_what_it_starts(unit: str, where: str, tmp_path: Path) -> None:
    """The commands as systemd would split them, in a home that has a clone: in order, and the token
    is the night's alone."""
    import shlex

    clone, tools = tmp_path / "patchq", tmp_path / "tools"
    said = tmp_path / "said"
    for path in (tools / "git", clone / "ci/venv.sh", clone / ".venv/bin/patchq"):
        path.parent.mkdir(parents=True, exist_ok=True)
        words = f'printf "%s\\n" "$PWD ${{0##*/}} $* ${{GITHUB_TOKEN-none}}" >>{said}'
        path.write_text(f"#!/bin/sh\n{words}\n")
        path.chmod(0o755)
    for line in values(UNITS / unit, "ExecStartPre") + values(UNITS / unit, "ExecStart"):
        subprocess.run(
            shlex.split(line.removeprefix("-")),
            cwd=tmp_path / where,
            env={"PATH": f"{tools}:/usr/bin:/bin", "GITHUB_TOKEN": "secret"},
            check=True,
        )
    place = (tmp_path / where).resolve()
    at = "-C patchq " if where == "." else ""
    assert said.read_text().splitlines() == [
        f"{place} git {at}pull --quiet --ff-only none",
        f"{place} venv.sh requirements.lock none",
        f"{clone} patchq nightly secret",
    ]
