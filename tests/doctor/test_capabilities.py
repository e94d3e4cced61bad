"""What a runner says that its loader reads: in its tree, in its wheel, where it is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.carry.workspace import read_queue
from patchq.config import find_project
from patchq.doctor.capabilities import Capabilities, Unknown, of_artifact, of_queue, parse
from patchq.errors import PatchqError
from tests.build.wheels import NAME, make
from tests.support.diagnosis import capabilities, runner
from tests.support.inside import Small

FILE = "vllm/patchq-capabilities.json"


def test_a_wheel(tmp_path: Path) -> None:
    found = of_artifact(make(tmp_path / NAME, {FILE: capabilities(bits=[3, 4])}))
    assert isinstance(found, Capabilities)
    assert (found.where, found.bits) == (NAME, frozenset({3, 4}))


def test_a_folder_in_which_it_is_installed(tmp_path: Path) -> None:
    found = of_artifact(runner(tmp_path / "site", layouts=["plain"]))
    assert isinstance(found, Capabilities) and found.layouts == {"plain"}


def test_one_that_does_not_say_is_unknown(tmp_path: Path) -> None:
    for path in (make(tmp_path / NAME, {"vllm/__init__.py": b""}), tmp_path):
        found = of_artifact(path)
        assert isinstance(found, Unknown)
        assert found.why == f"{path.name} holds no patchq-capabilities.json" and found.remedy


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 99_999, b'{"schema": "x/1"}',
                                     b'{"schema": "patchq.capabilities/1", "exl3": {"bits": [true]}}',
                                     b'{"schema": "patchq.capabilities/1", "exl3": {"bits": 4}}',
                                     b'{"schema": "patchq.capabilities/1", "exl3": {"ranks": ["2"]}}',
                                     b'{"schema": "patchq.capabilities/1", "exl3": []}',
                                     b" " * (2 << 20)])  # fmt: skip
def test_what_is_none(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(PatchqError, match="is none"):
        parse(content, "x")
    (runner(tmp_path / "site") / FILE).write_bytes(content)
    found = of_artifact(tmp_path / "site")
    assert isinstance(found, Unknown) and "is none" in found.why


def test_a_runner_without_exl3_reads_none_of_it() -> None:
    found = parse(b'{"schema": "patchq.capabilities/1"}', "x")
    assert not (found.codebooks or found.bits or found.layouts or found.ranks)


def test_a_wheel_that_is_none_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"PK")
    for name, why in (("a.whl", "is not a whole wheel"), ("b.whl", "there is no file")):
        found = of_artifact(tmp_path / name)
        assert isinstance(found, Unknown) and why in found.why


def test_one_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "site" / FILE).mkdir(parents=True)
    found = of_artifact(tmp_path / "site")
    assert isinstance(found, Unknown) and "cannot be read: Is a directory" in found.why


def test_one_in_a_wheel_that_is_too_large(tmp_path: Path) -> None:
    found = of_artifact(make(tmp_path / NAME, {FILE: b" " * (2 << 20)}))
    assert isinstance(found, Unknown) and f"{FILE} has 2097152 bytes" in found.why


@pytest.fixture
def small(tmp_path: Path) -> Small:
    """A queue whose patch brings the file."""
    made = Small(tmp_path)
    topic = made.upstream.branch("loader", at="v1").commit("Loader")
    topic.write("patchq-capabilities.json", capabilities(ranks=[2]))
    made.upstream.save()
    made.made().call("import", "--git", str(made.upstream.path), "v1..loader")
    return made


def test_the_runner_tree_of_a_queue(small: Small) -> None:
    queue = read_queue(find_project(small.root), None)
    found = of_queue(queue)
    assert isinstance(found, Capabilities) and found.ranks == {2}
    assert found.where == f"the runner tree {queue.state.runner_tree[:12]}"


def test_a_recorded_tree_that_is_new_to_this_machine(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fresh clone has the record, and none of the tree's objects."""
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "fresh"))
    found = of_queue(read_queue(find_project(small.root), None))
    assert isinstance(found, Capabilities) and found.ranks == {2}


def test_a_queue_without_it_is_unknown(tmp_path: Path) -> None:
    small = Small(tmp_path).filled()
    found = of_queue(read_queue(find_project(small.root), None))
    assert isinstance(found, Unknown) and "holds no patchq-capabilities.json" in found.why


def test_an_upstream_that_is_gone_is_unknown(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "fresh"))
    small.upstream.path.rename(tmp_path / "elsewhere")
    found = of_queue(read_queue(find_project(small.root), None), offline=True)
    assert isinstance(found, Unknown) and found.why and found.remedy
