"""The set-up: locks that pin everything, scripts that say in one sentence what is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.lock", "requirements-test.lock")
SCRIPTS = sorted([ROOT / ".ci/run", *(ROOT / "ci").glob("*.sh")])
PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(?P<version>[^ ;]+)")


def pins(lock: str) -> dict[str, tuple[Version, int]]:
    """Per package its version and the number of its hashes."""
    found = {}
    for entry in (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        pin = PIN.match(entry)
        assert pin, f"{lock}: {entry!r} is no pin"
        version = Version(pin["version"])
        found[canonicalize_name(pin["name"])] = (version, entry.count("--hash=sha256:"))
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_pins_with_hashes_and_names_no_place(lock: str) -> None:
    assert all(hashes for _, hashes in pins(lock).values())
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert "://" not in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith(("-i", "#", "/"))]
    assert "--index" not in text
    assert "--find-links" not in text


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_fits_what_is_declared(lock: str) -> None:
    """A dependency that was added, or raised, without `make lock`."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = [*settings["project"]["dependencies"], *settings["dependency-groups"]["build"]]
    if "test" in lock:
        declared += settings["project"]["optional-dependencies"]["test"]
    locked = pins(lock)
    for text in declared:
        requirement = Requirement(text)
        version, _ = locked[canonicalize_name(requirement.name)]
        assert version in requirement.specifier, f"run `make lock`: {text} is locked at {version}"


def test_the_smaller_lock_is_a_part_of_the_larger() -> None:
    assert pins("requirements.lock").items() <= pins("requirements-test.lock").items()


def test_scripts_pass_shellcheck() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([shellcheck, *SCRIPTS], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_scripts_can_be_run() -> None:
    assert [path for path in SCRIPTS if not os.access(path, os.X_OK)] == []


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The scripts in a folder of their own, and `bin` for a PATH with the tools they may find."""
    place = tmp_path / "clone"
    shutil.copytree(ROOT / "ci", place / "ci")
    for name in ("Makefile", "pyproject.toml", *LOCKS):
        shutil.copy(ROOT / name, place)
    tools = place / "bin"
    tools.mkdir()
    for name in ("cat", "cksum", "cut", "dirname", "id", "make", "mkdir", "rm", "sed", "sh", "tr"):
        real = shutil.which(name)
        assert real
        (tools / name).symlink_to(real)
    return place


def tool(clone: Path, name: str, script: str) -> None:
    path = clone / "bin" / name
    path.write_text(f"#!{shutil.which('sh')}\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def run(clone: Path, *command: str, **environment: str) -> tuple[int, list[str]]:
    """Status, and the lines of standard error, with nothing on PATH but the clone's tools."""
    done = subprocess.run(
        [clone / "bin/sh", "-c", '"$@"', "sh", *command],
        cwd=clone,
        env={"PATH": str(clone / "bin"), "HOME": os.environ["HOME"], "SBIN": "", "OS_RELEASE": ""}
        | environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr.splitlines()


OLD = "exit 1"  # what a Python older than 3.11 answers to the question
GIT = "echo git version 2.39.5"
WANTED = (
    *("quilt", "patch", "npm", "groff", "zsh", "fish", "ssh", "sshd", "rsync", "ip"),
    *("curl", "systemd-analyze"),
)


def test_no_git(clone: Path) -> None:
    status, said = run(clone, "ci/venv.sh", "requirements.lock")
    assert (status, len(said)) == (1, 1)
    assert said[0].startswith("git is missing: install git 2.39 or newer")


@pytest.mark.parametrize("version", ["1.9.5", "2.38.4", "2.9.0"])
def test_old_git(clone: Path, version: str) -> None:
    tool(clone, "git", f"echo git version {version}")
    status, said = run(clone, "ci/venv.sh", "requirements.lock")
    assert (status, len(said)) == (1, 1)
    assert said[0].startswith(f"git is too old ({version}): patchq needs 2.39 or newer")


@pytest.mark.parametrize("version", ["2.39.5", "2.55.0.windows.1", "2.50.1 (Apple Git-155)", "3.0"])
def test_git_that_will_do_and_no_python(clone: Path, version: str) -> None:
    tool(clone, "git", f"echo 'git version {version}'")
    tool(clone, "python3", OLD)
    tool(clone, "python3.13", OLD)
    status, said = run(clone, "ci/venv.sh", "requirements.lock")
    assert (status, len(said)) == (1, 1)
    assert said[0].startswith("Python 3.11 or newer is missing: install it")


def test_named_python_is_too_old(clone: Path) -> None:
    tool(clone, "git", GIT)
    tool(clone, "older", OLD)
    status, said = run(clone, "ci/venv.sh", "requirements.lock", PYTHON="older")
    assert (status, len(said)) == (1, 1)
    assert said[0].startswith("PYTHON=older does not run Python 3.11 or newer")


def test_python_without_venv(clone: Path) -> None:
    tool(clone, "git", GIT)
    tool(
        clone,
        "python3",
        "case $2 in *ensurepip*) exit 1;; *print*) echo 3.11;; *) exit 0;; esac",
    )
    status, said = run(clone, "ci/venv.sh", "requirements.lock")
    assert (status, len(said)) == (1, 1)
    assert said[0].startswith("python3 cannot make virtual environments")
    assert "apt-get install python3.11-venv" in said[0]


def test_somebody_elses_venv_is_left_alone(clone: Path) -> None:
    tool(clone, "git", GIT)
    tool(clone, "python3", "exit 0")
    (clone / ".venv").mkdir()
    (clone / ".venv/mine").touch()
    status, said = run(clone, "ci/venv.sh", "requirements.lock")
    assert (status, len(said)) == (1, 1)
    assert said[0].startswith(".venv is there and was not made by this Makefile")
    assert (clone / ".venv/mine").is_file()


def test_missing_system_packages_are_named_one_sentence_each(clone: Path) -> None:
    status, said = run(clone, "ci/install-test-packages.sh")
    assert status == 1
    assert [line.split(" (")[0] for line in said] == [f"{name} is missing" for name in WANTED]
    status, said = run(clone, "ci/install-test-packages.sh", "--bench")
    assert [line.split(" (")[0] for line in said][-1] == "stg is missing"


def test_a_browser_is_wanted_where_it_is_a_package(clone: Path) -> None:
    for name in WANTED:
        tool(clone, name, "exit 0")
    for system, code in (("debian", 1), ("ubuntu", 0)):
        (clone / "os-release").write_text(f"NAME=x\nID={system}\n", encoding="utf-8")
        status, said = run(clone, "ci/install-test-packages.sh", OS_RELEASE=f"{clone}/os-release")
        assert (status, [line.split(" (")[0] for line in said]) == (
            code,
            ["chromium is missing"][:code],
        )


def test_system_packages_are_installed_where_it_may(clone: Path) -> None:
    (clone / "bin/id").unlink()
    tool(clone, "id", "echo 0")
    for name in WANTED[1:]:
        tool(clone, name, "exit 0")
    tool(clone, "apt-get", f'echo "$DEBIAN_FRONTEND $*" >>{clone}/asked')
    done = subprocess.run(
        [clone / "ci/install-test-packages.sh"],
        env={"PATH": str(clone / "bin"), "SBIN": "", "OS_RELEASE": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "Installing system packages: quilt \n"
    asked = (clone / "asked").read_text(encoding="utf-8").splitlines()
    assert asked[0] == "noninteractive update -qq"
    assert asked[1].startswith("noninteractive install ")
    assert asked[1].endswith(" quilt")


def test_nothing_is_installed_where_nothing_is_missing(clone: Path) -> None:
    for name in WANTED:
        tool(clone, name, "exit 0")
    tool(clone, "apt-get", "exit 9")
    assert run(clone, "ci/install-test-packages.sh") == (0, [])


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (0, None),
        (1, None),
        (4, "a decision is needed"),
        (5, "a proof failed"),
        (6, "something was not reached"),
    ],
)
def test_make_sync_hands_on_what_sync_says(clone: Path, status: int, says: str | None) -> None:
    """4, 5 and 6 are results: said so, and still no success."""
    (clone / "ci/venv.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    (clone / ".venv/bin").mkdir(parents=True)
    tool(clone, "patchq", f'echo "$*" >{clone}/asked; exit {status}')
    (clone / "bin/patchq").rename(clone / ".venv/bin/patchq")
    ended, said = run(clone, "make", "sync", "ARGS=--dry-run")
    assert (clone / "asked").read_text(encoding="utf-8") == "sync --dry-run\n"
    assert (ended == 0) == (status == 0)
    assert not status or said[-1].endswith(f"Error {status}")
    assert (says or "The report above") in " ".join(said) or not says
    assert len(said) == bool(status) + bool(says)


def test_make_alone_says_what_there_is(clone: Path) -> None:
    done = subprocess.run(
        ["make", "--no-print-directory"], cwd=clone, capture_output=True, text=True, check=True
    )
    for target in ("sync", "test", "lint", "bench", "lock", "clean"):
        assert f"make {target} " in done.stdout
