"""A runner's Python over upstream's wheel: what stays, what changes, what is refused."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchq.build.overlay import Built, Wanted, lay
from patchq.build.target import find
from patchq.build.wheelfile import digest
from patchq.errors import PatchqError, ProofFailed
from tests.build.wheels import NAME, contents, make, recorded
from tests.support.kit import Kit

NATIVE = b"\x7fELF" + bytes(range(256)) * 40
SETUP = b'package_data = {"vllm": ["*.json"]}\n'
BASE = {
    "vllm/__init__.py": b"from vllm import engine\n",
    "vllm/engine.py": b"SPEED = 1\n",
    "vllm/old.py": b"old = 1\n",
    "vllm/a.json": b"{}\n",
}
WHEEL = {**BASE, "vllm/_C.so": NATIVE, "vllm/run": b"#!", "vllm/_version.py": b"v = 1\n"}


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[Kit]:
    made = Kit(tmp_path / "kit")
    start = made.history.commit()
    for path, data in BASE.items():
        start.write(path, data)
    start.write("setup.py", SETUP).write("csrc/ops.cu", b"//\n").tag("v1")
    yield made
    made.close()


def built(kit: Kit, tmp_path: Path, wheel: Path | None = None, target: str = "spark") -> Built:
    source = wheel or make(tmp_path / NAME, WHEEL, runs="vllm/run")
    wanted = Wanted("vllm", "1.0", kit.tree("v1"), kit.tree("ours"), 5)
    return lay(kit.store, wanted, find(target), source, tmp_path / "out")


def ours(kit: Kit) -> None:
    change = kit.history.branch("ours", at="v1").commit().edit("vllm/engine.py", b"1", b"2")
    change.write("vllm/new.py", b"new = 1\n").delete("vllm/old.py").write("tests/t.py", b"")
    change.write("vllm/note.md", b"")


def test_patched_files_are_laid_and_all_else_stays(kit: Kit, tmp_path: Path) -> None:
    ours(kit)
    made = built(kit, tmp_path)
    tree = kit.tree("ours")
    assert made.path.name == f"vllm-1.0+patchq.5.g{tree[:12]}-cp38-abi3-manylinux_2_28_aarch64.whl"
    found = contents(made.path)
    info = f"vllm-1.0+patchq.5.g{tree[:12]}.dist-info"
    assert found["vllm/engine.py"] == b"SPEED = 2\n"
    assert found["vllm/new.py"] == b"new = 1\n"
    assert found["vllm/_C.so"] == NATIVE
    assert found["vllm/_version.py"] == b"v = 1\n"
    assert tree.encode() in found["vllm/patchq.json"]
    assert b"Version: 1.0+patchq.5" in found[f"{info}/METADATA"]
    assert not {"vllm/old.py", "tests/t.py", "vllm/note.md"} & set(found)
    assert (made.overlay.apart, made.overlay.unlisted) == ((b"tests/t.py",), (b"vllm/note.md",))
    assert made.beyond == ("vllm/_C.so", "vllm/run", "vllm/_version.py")


def test_what_the_loader_reads_stands_below_the_package(kit: Kit, tmp_path: Path) -> None:
    """The tree has patchq-capabilities.json at its root, where no wheel has anything."""
    ours(kit)
    told = b'{"schema": "patchq.capabilities/1"}\n'
    kit.history.branch("ours").commit().write("patchq-capabilities.json", told)
    made = built(kit, tmp_path)
    assert contents(made.path)["vllm/patchq-capabilities.json"] == told
    assert made.overlay.apart == (b"tests/t.py",), "it is not among what no wheel has"


def test_the_record_is_true_of_every_member(kit: Kit, tmp_path: Path) -> None:
    ours(kit)
    path = built(kit, tmp_path).path
    rows = recorded(path)
    assert list(contents(path)) == list(rows), "in one order, itself last"
    for name, data in contents(path).items():
        told = ("", "") if name.endswith("/RECORD") else (digest(data), str(len(data)))
        assert rows[name] == told


def test_what_stays_is_packed_as_it_was_and_keeps_its_mode(kit: Kit, tmp_path: Path) -> None:
    ours(kit)
    made = built(kit, tmp_path)
    with zipfile.ZipFile(tmp_path / NAME) as old, zipfile.ZipFile(made.path) as new:
        for name in ("vllm/_C.so", "vllm/run"):
            was, now = old.getinfo(name), new.getinfo(name)
            assert (was.CRC, was.compress_size, was.external_attr, was.date_time) == (
                now.CRC,
                now.compress_size,
                now.external_attr,
                now.date_time,
            )


def test_the_same_inputs_give_the_same_bytes(kit: Kit, tmp_path: Path) -> None:
    ours(kit)
    first = built(kit, tmp_path)
    other = tmp_path / "elsewhere"
    other.mkdir()
    shutil.copy(tmp_path / NAME, other / NAME)
    second = lay(
        kit.store,
        Wanted("vllm", "1.0", kit.tree("v1"), kit.tree("ours"), 5),
        find("spark"),
        other / NAME,
        other / "out",
    )
    assert first.path.read_bytes() == second.path.read_bytes()
    assert first.sha256 == second.sha256


def test_pip_takes_it(kit: Kit, tmp_path: Path) -> None:
    ours(kit)
    name = NAME.replace("cp38-abi3-manylinux_2_28_aarch64", "py3-none-any")
    made = built(kit, tmp_path, make(tmp_path / name, WHEEL))
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target"]
    done = subprocess.run([*pip, tmp_path / "site", made.path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site/vllm/engine.py").read_bytes() == b"SPEED = 2\n"
    program = "import importlib.metadata as m; print(m.version('vllm'))"
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
    )
    assert told.stdout.strip() == made.version


@pytest.mark.parametrize("path", ["csrc/ops.cu", "setup.py"])
def test_native_code_needs_a_compiler(kit: Kit, tmp_path: Path, path: str) -> None:
    kit.history.branch("ours", at="v1").commit().write(path, b"# other\n")
    with pytest.raises(PatchqError, match=f"compiled or packaged anew: {path}"):
        built(kit, tmp_path)
    assert not (tmp_path / "out").exists()


def test_a_wheel_that_was_not_built_from_that_release(kit: Kit, tmp_path: Path) -> None:
    ours(kit)
    strange = make(tmp_path / NAME, {**WHEEL, "vllm/a.json": b"[]\n"})
    with pytest.raises(ProofFailed, match=r"vllm/a\.json differs \(1 of 10 files do\)"):
        built(kit, tmp_path, strange)
    assert not (tmp_path / "out").exists()


def test_a_foreign_build_may_differ_where_the_series_does_not(kit: Kit, tmp_path: Path) -> None:
    ours(kit)
    name = NAME.replace("aarch64", "x86_64")
    foreign = make(tmp_path / name, {**WHEEL, "vllm/a.json": b"[1]\n"})
    made = built(kit, tmp_path, foreign, "cpu")
    assert made.differing == ("vllm/a.json",)
    assert contents(made.path)["vllm/a.json"] == b"[1]\n"
    assert ".cpu-cp38" in made.path.name
    foreign = make(tmp_path / name, {**WHEEL, "vllm/engine.py": b"SPEED = 7\n"})
    with pytest.raises(ProofFailed, match=r"vllm/engine\.py differs"):
        built(kit, tmp_path, foreign, "cpu")


def test_a_wheel_that_lacks_what_the_series_removes(kit: Kit, tmp_path: Path) -> None:
    ours(kit)
    without = {name: data for name, data in WHEEL.items() if name != "vllm/old.py"}
    with pytest.raises(ProofFailed, match=r"has no vllm/old\.py"):
        built(kit, tmp_path, make(tmp_path / NAME, without))


def test_a_tag_names_the_version_that_wheels_have() -> None:
    assert Wanted("vllm", "v0.29.0", "", "").release == Wanted("vllm", "0.29.0", "", "").release
