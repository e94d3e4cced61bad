"""What a node says of itself: the probe as it runs there, on this machine and on made-up ones."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from patchq.cluster import facts, probe
from patchq.cluster.config import Cluster, Node
from patchq.cluster.facts import Facts, File, Memory
from patchq.cluster.process import Done
from patchq.cluster.shell import Shell, local
from patchq.errors import Incomplete
from tests.support import sysfs

GIB = 1 << 30
HERE = Node("here", 0, "127.0.0.1", "lo")


def cluster(node: Node, port: int = 18888, master_port: int = 18889) -> Cluster:
    return Cluster("here", "cpu", (node,), port, master_port)


def asked(node: Node = HERE, **more: object) -> Facts:
    with local() as shell:
        return facts.ask(shell, cluster(node), node, **more)  # type: ignore[arg-type]


def test_this_machine_answers() -> None:
    found = asked()
    assert found.machine == platform.machine()
    assert found.memory is not None
    assert 0 < found.memory.available <= found.memory.total
    assert found.memory.total == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert found.address is True
    assert found.link is not None and "127.0.0.1" in found.link.addresses
    assert found.ports == {18888: None, 18889: None}
    assert found.failed == {}
    assert abs(found.ahead) <= found.doubt + 0.001


def test_a_spark_is_read_from_proc_and_sys(tmp_path: Path) -> None:
    node = Node("spark-a", 0, "192.168.100.10", "enp1s0f0np0")
    found = asked(node, root=str(sysfs.spark(tmp_path)))
    assert found.memory == Memory(119 * GIB, 57 * GIB, 115 * GIB, 32 * GIB)
    assert found.driver == "580.95.05"
    assert found.link is not None
    assert (found.link.state, found.link.mtu, found.link.speed) == ("up", 9000, 200000)
    assert found.address is False
    assert found.adapters is not None
    (adapter,) = found.adapters
    assert (adapter.name, adapter.active) == ("rocep1s0f0", True)
    assert [(gid.index, gid.kind) for gid in adapter.gids] == [
        (0, "IB/RoCE v1"),
        (1, "RoCE v2"),
        (2, "IB/RoCE v1"),
        (3, "RoCE v2"),
    ]
    gid = adapter.gid("192.168.100.10")
    assert gid is not None and gid.index == 3
    assert adapter.gid("192.168.100.11") is None


def test_what_cannot_be_read_hides_nothing_else(tmp_path: Path) -> None:
    sysfs.interface(tmp_path, "lo")
    found = asked(root=str(tmp_path))
    assert found.memory is None
    assert "meminfo" in found.failed["memory"]
    assert found.link is not None
    assert found.adapters == ()
    assert found.driver is None


def test_a_port_that_is_taken_names_who_has_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, local() as shell:
        port = server.getsockname()[1]
        found = facts.ask(shell, cluster(HERE, port), HERE)
    assert found.ports is not None
    assert found.ports[18889] is None
    assert (
        found.ports[port]
        == f"process {os.getpid()} ({Path('/proc/self/comm').read_text().strip()})"
    )


def test_only_rank_0_opens_ports() -> None:
    second = Node("second", 1, "127.0.0.1", "lo")
    assert asked(second).ports == {}


def test_an_interface_that_is_not_there() -> None:
    found = asked(Node("here", 0, "192.0.2.7", "none0"))
    assert found.link is None
    assert found.address is False


def test_a_folder_that_is_not_made_yet_is_asked_for_above(sealed: Path) -> None:
    found = asked()
    assert found.disk is not None
    assert found.disk[0] == str(sealed)
    assert found.disk[1] > 0


def shard(path: Path, header: bytes, data: bytes) -> None:
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)


@pytest.fixture
def model(sealed: Path) -> Path:
    folder = sealed / "models" / "tiny"
    (folder / "sub").mkdir(parents=True)
    shard(folder / "a.safetensors", b'{"x": 1}', b"data")
    (folder / "config.json").write_bytes(b"{}")
    (folder / "sub" / "chat.jinja").write_bytes(b"{{ x }}")
    (folder / ".cache").mkdir()
    (folder / ".cache" / "lock").write_bytes(b"")
    return folder


def listed(*, full: bool = False) -> tuple[File, ...]:
    """The model as its node lists it, by a path below the account's home."""
    found = asked(files={"model": "models/tiny", "none": "models/none"}, full=full)
    assert found.files is not None and found.files["none"] is None
    listing = found.files["model"]
    assert listing is not None
    return listing


def test_files_are_listed_by_size_and_header(model: Path) -> None:
    header = (model / "a.safetensors").read_bytes()[:16]
    assert listed() == (
        File("a.safetensors", 20, hashlib.sha256(header).hexdigest()),
        File("config.json", 2, hashlib.sha256(b"{}").hexdigest()),
        File("sub/chat.jinja", 7, hashlib.sha256(b"{{ x }}").hexdigest()),
    )
    before = listed()
    shard(model / "a.safetensors", b'{"x": 2}', b"data")
    assert listed() != before


def test_data_is_read_when_all_is_asked_for(model: Path) -> None:
    quick, whole = listed(), listed(full=True)
    shard(model / "a.safetensors", b'{"x": 1}', b"dat0")
    assert listed() == quick
    assert listed(full=True) != whole


def test_a_large_file_that_is_no_shard_is_told_by_its_ends(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (model / "weights.bin").open("wb") as file:
        file.truncate(probe.WHOLE + 1)
    before = listed()
    with (model / "weights.bin").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"x")
    assert listed() != before


def test_a_snapshot_of_links_is_as_its_files_and_a_broken_link_is_said(model: Path) -> None:
    before = listed()
    blob = model.parent / "blob"
    (model / "a.safetensors").rename(blob)
    (model / "a.safetensors").symlink_to(blob)
    assert listed() == before
    blob.unlink()
    found = asked(files={"model": "models/tiny"})
    assert found.files is None
    assert "a.safetensors points to nothing" in found.failed["files"]


def test_a_header_that_lies_about_its_length_takes_no_memory(model: Path) -> None:
    (model / "a.safetensors").write_bytes(b"\xff" * 8 + b"x")
    assert listed()[0].digest == hashlib.sha256(b"\xff" * 8 + b"x").hexdigest()


def test_links_that_go_round_end(model: Path) -> None:
    (model / "loop").symlink_to(model)
    (model / "self").symlink_to("self")
    found = asked(files={"model": "models/tiny"})
    assert "points to nothing" in found.failed["files"]


class Answering:
    """A node whose python3 writes what it is told to."""

    name = "node"

    def __init__(self, out: bytes, err: bytes = b"", code: int = 0) -> None:
        self._done = Done(code, out, err)

    def run(self, args: Sequence[str], **_: object) -> Done:
        self.args = args
        return self._done


@pytest.mark.parametrize(
    "out",
    [
        b"",
        b"hello\n",
        b"patchq-answer:",
        b"patchq-answer:[]",
        b"patchq-answer:{}",
        b'patchq-answer:{"time": [1, 2], "memory": {"MemTotal": "much"}}',
        b"patchq-answer:" + b"[" * 100_000,
        b"\xff\xfepatchq-answer:\xff",
    ],
)
def test_answers_that_are_none(out: bytes) -> None:
    shell: Shell = Answering(out, b"\x1b[31mno\n", 1)  # type: ignore[assignment]
    with pytest.raises(Incomplete, match="here could not be asked") as told:
        facts.ask(shell, cluster(HERE), HERE)
    assert "\x1b" not in told.value.message
    assert "3.8" in told.value.hint


QUESTION = {"folder": ".", "ports": [], "address": "127.0.0.1", "device": "lo", "files": {}}


def test_greetings_around_the_answer_do_no_harm() -> None:
    said = json.dumps(probe.answer(QUESTION)).encode()
    loud: Shell = Answering(b"Welcome!\npatchq-answer:" + said + b"\nBye.\n")  # type: ignore[assignment]
    assert facts.ask(loud, cluster(HERE), HERE).machine == platform.machine()


def test_a_clock_that_is_wrong_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node whose clock is 90 s ahead, and that is asked over a line with 0.2 s each way."""
    real = {**probe.answer(QUESTION), "time": [1090.2, 1091.2]}
    node: Shell = Answering(b"patchq-answer:" + json.dumps(real).encode())  # type: ignore[assignment]
    ticks = iter([1000.0, 1001.4])
    monkeypatch.setattr("patchq.cluster.facts.time.time", lambda: next(ticks))
    found = facts.ask(node, cluster(HERE), HERE)
    assert found.ahead == pytest.approx(90.0)
    assert found.doubt == pytest.approx(0.2)


def test_the_probe_runs_on_an_old_python_and_needs_nothing_of_ours() -> None:
    text = Path(probe.__file__).read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 8))
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert {str(name).split(".")[0] for name in imported} <= sys.stdlib_module_names
    assert not imported & {"subprocess", "shutil"}
