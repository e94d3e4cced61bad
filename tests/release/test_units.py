"""The systemd unit that an install writes, as systemd reads it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.release import units


def verify(unit: Path, runtime: Path) -> str:
    """What `systemd-analyze verify` has to say of an instance; it is silent where all is well."""
    analyze = shutil.which("systemd-analyze")
    assert analyze, "systemd-analyze is not installed: run ci/install-test-packages.sh"
    runtime.mkdir(mode=0o700, exist_ok=True)
    instance = unit.with_name(unit.name.replace("@.", "@sparks."))
    done = subprocess.run(
        [analyze, "verify", "--user", "--man=no", instance],
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr + (f"exit {done.returncode}" if done.returncode else "")


def test_systemd_takes_it(sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "RUNS", tmp_path)
    path = units.write(shutil.which("true") or "/bin/true")
    assert path == sealed / ".config/systemd/user/patchq@.service"
    assert verify(path, tmp_path / "run") == ""
    path.write_text(path.read_text().replace("KillMode", "KilMode"))
    assert "Unknown key" in verify(path, tmp_path / "run")


def test_it_is_not_written_where_systemd_does_not_run(
    sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "RUNS", tmp_path / "nowhere")
    assert units.write("/bin/true") is None
    assert not (sealed / ".config/systemd").exists()


def test_it_is_removed_with_what_enables_it(
    sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "RUNS", tmp_path)
    path = units.write("/bin/true")
    assert path is not None
    wants = path.parent / "default.target.wants"
    wants.mkdir()
    (wants / "patchq@sparks.service").symlink_to(path)
    assert units.remove() == path
    assert [each for each in path.parent.rglob("*") if not each.is_dir()] == []
    assert units.remove() is None


def test_a_program_that_a_unit_cannot_name() -> None:
    assert "ExecStart=/opt/100%%/patchq cluster" in units.text("/opt/100%/patchq")
    for program in ("/a b/patchq", "patchq", '/a"b/patchq', "/a\nb"):
        with pytest.raises(PatchqError, match="cannot name"):
            units.text(program)
