"""`patchq build` of a series that touches native code, as a user types it."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from tests.build.native.sources import VLLM
from tests.support.cli import Queue
from tests.support.history import History


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    upstream = History(tmp_path / "upstream.git")
    first = upstream.commit()
    for path, text in VLLM.items():
        first.write(path, text.encode())
    first.tag("1.0")
    broken = VLLM["csrc/bindings.cpp"].replace("float by=1.0,", "float by, int mode,").encode()
    topic = upstream.branch("topic", at="1.0").commit("kernel")
    topic.write("csrc/util/b.cuh", b"#pragma once\n").write("csrc/sm90.cu", b"\n")
    upstream.commit("schema").write("csrc/bindings.cpp", broken).tag("broken")
    return Queue(tmp_path, upstream)


def test_the_plan(queue: Queue) -> None:
    queue.start("1.0..broken~1", "1.0")
    told = queue.run("build", "--plan", "--json").json
    assert told["schema"] == "patchq.build-plan/1" and told["arch"] == "12.1a"
    (work,) = told["extensions"]
    assert (work["name"], [each["source"] for each in work["objects"]]) == (
        "_C_stable",
        ["csrc/a.cu"],
    )
    assert [each["path"] for each in told["apart"]] == ["csrc/sm90.cu"]
    text = queue.run("build", "--plan").out.decode()
    assert "csrc/a.cu [12.0]: it takes in csrc/util/b.cuh" in text


def test_a_schema_without_its_caller(queue: Queue) -> None:
    queue.start("1.0..broken", "1.0")
    told = queue.run("build", "--plan", "--json", code=5).json
    assert told["findings"][0]["says"] == "it does not give 'mode', which the schema asks for"
    text = queue.run("build", "--plan", code=5).out.decode()
    assert "vllm/ops.py:4: torch.ops._C.scale(out, a, 2.0)" in text
    said = queue.run("build", "--target", "spark", code=5).err.decode()
    assert "vllm/ops.py:4 calls torch.ops._C.scale" in said


def test_a_machine_of_another_kind(queue: Queue) -> None:
    queue.start("1.0..broken~1", "1.0")
    if platform.machine() != "aarch64":
        said = queue.run("build", "--target", "spark", code=1).err.decode()
        assert "and the target is aarch64" in said and "--cluster" in said
    said = queue.run("build", "--target", "spark", "--cluster", "none", code=1).err.decode()
    assert "there is no cluster 'none'" in said


def test_what_contradicts_itself_or_is_not_there_shows_before_the_work(queue: Queue) -> None:
    queue.start("1.0..broken~1", "1.0")
    said = queue.run("build", "--plan", "--verify", "none.whl", code=2).err.decode()
    assert "--plan builds nothing" in said
    said = queue.run("build", "--target", "cpu", "--cluster", "none", code=1).err.decode()
    assert "there is no cluster 'none'" in said
