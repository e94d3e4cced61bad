"""Nodes that are sound, and each fault that one may have: as values, and as real nodes by ssh."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.cluster import facts, probe
from patchq.cluster.config import Cluster, Kind, Needs, Node, load
from patchq.cluster.facts import Adapter, Facts, File, Gid, Gpu, Link, Memory
from patchq.doctor import agreement
from patchq.doctor.model import Check, Diagnosis
from patchq.doctor.nodes import check, judge
from patchq.paths import show
from tests.support import sysfs
from tests.support.sshd import NODE, Sshd

ROOT = Path(__file__).resolve().parents[2]
GIB = 1 << 30
SPARKS = load(ROOT, "sparks")
FIRST, SECOND = SPARKS.nodes
GIDS = tuple(Gid(index, text, kind) for index, (text, kind) in sysfs.table(FIRST.address).items())
SOUND = Facts(
    machine="aarch64",
    home="/home/me",
    ahead=0.02,
    doubt=0.03,
    memory=Memory(119 * GIB, 60 * GIB, 115 * GIB, 32 * GIB),
    driver="580.95.05",
    gpu=Gpu("13.0", (("NVIDIA GB10", "12.1"),)),
    disk=("/home/me", 900 * GIB),
    ports={8888: None, 29521: None},
    address=True,
    link=Link("up", 9000, 200000, (FIRST.address, "fe80::1")),
    adapters=(Adapter("rocep1s0f0", "4: ACTIVE", GIDS),),
    files={},
)


def test_a_sound_node_is_one_line() -> None:
    assert judge(SPARKS, FIRST, SOUND) == (
        Check(
            "spark-a",
            "ok",
            "aarch64, NVIDIA GB10 (12.1), driver 580.95.05, CUDA 13.0, 115.0 GiB of"
            " 119.0 GiB memory available, 32.0 GiB swap, 900.0 GiB disk free, ports 8888 and"
            " 29521 free, 192.168.100.10 on enp1s0f0np0 at 200 Gbit/s, rocep1s0f0 with GID 3",
        ),
    )


MEMORY = SOUND.memory or Memory(0, 0, 0, 0)
LINK = SOUND.link or Link("", 0, None, ())
FAULTS: dict[str, tuple[Mapping[str, object], str, str, str]] = {
    "another processor": ({"machine": "x86_64"}, "processor", "fatal", "spark-a is x86_64, the target spark is for aarch64"),
    "no driver": ({"driver": None}, "driver", "fatal", "has no NVIDIA driver loaded"),
    "old driver": ({"driver": "570.86.10"}, "driver", "fatal", "has driver 570.86.10, older than 580"),
    "driver updated, not restarted": (
        {"gpu": None, "failed": {"gpu": "nvmlInit_v2 answers 18"}}, "driver", "fatal",
        "driver 580.95.05 of spark-a does not answer: nvmlInit_v2 answers 18",
    ),
    "old CUDA": ({"gpu": Gpu("12.8", ())}, "driver", "fatal", "takes CUDA 12.8 at most"),
    "another GPU": (
        {"gpu": Gpu("13.0", (("NVIDIA H200", "9.0"),))}, "graphics processor", "fatal",
        "has NVIDIA H200 (9.0), the runner is compiled for 12.1",
    ),
    "no GPU": ({"gpu": Gpu("13.0", ())}, "graphics processor", "fatal", "has no graphics processor"),
    "memory in use": (
        {"memory": replace(MEMORY, available=40 * GIB)}, "memory", "fatal",
        "40.0 GiB of memory available (60.0 GiB free, 119.0 GiB in all), 110 are needed",
    ),
    "little swap": ({"memory": replace(MEMORY, swap=0)}, "swap", "warning", "has 0.0 GiB of swap, 32 are advised"),
    "full disk": ({"disk": ("/", 90 * GIB)}, "disk", "fatal", "has 90.0 GiB free at /, 200 are needed"),
    "port in use": (
        {"ports": {8888: "process 7 (VLLM::EngineCor)", 29521: None}}, "port 8888", "fatal",
        "port 8888 of spark-a is taken by process 7 (VLLM::EngineCor)",
    ),
    "clock ahead": ({"ahead": 95.0}, "clock", "warning", "clock of spark-a is 95.0 s ahead of the one here"),
    "clock behind": ({"ahead": -2.0}, "clock", "warning", "clock of spark-a is 2.0 s behind the one here"),
    "no such interface": ({"link": None}, "link", "fatal", "spark-a has no interface enp1s0f0np0"),
    "cable out": ({"link": replace(LINK, state="down")}, "link", "fatal", "enp1s0f0np0 of spark-a is down"),
    "address elsewhere": (
        {"link": replace(LINK, addresses=("10.0.0.1",))}, "link", "fatal",
        "192.168.100.10 is on another interface of spark-a than enp1s0f0np0, which has 10.0.0.1",
    ),
    "address nowhere": (
        {"link": replace(LINK, addresses=()), "address": False}, "link", "fatal",
        "192.168.100.10 is no address of enp1s0f0np0 on spark-a, which has none",
    ),
    "no adapter": ({"adapters": ()}, "RoCE", "fatal", "no RDMA adapter behind enp1s0f0np0"),
    "port of the adapter down": (
        {"adapters": (Adapter("rocep1s0f0", "1: DOWN", ()),)}, "RoCE", "fatal",
        "no RDMA port behind enp1s0f0np0 of spark-a is up: rocep1s0f0 is 1: DOWN",
    ),
    "no GID": (
        {"adapters": (Adapter("rocep1s0f0", "4: ACTIVE", GIDS[:2]),)}, "RoCE", "fatal",
        "rocep1s0f0 of spark-a has no RoCE v2 GID for 192.168.100.10",
    ),
    "memory not told": ({"memory": None}, "memory", "unknown", "the memory of spark-a could not be found out: it does not say"),
    "disk not told": ({"disk": None}, "disk", "unknown", "the disk of spark-a could not be found out"),
    "ports not told": ({"ports": None}, "ports", "unknown", "the ports of spark-a could not be found out"),
    "adapters not told": ({"adapters": None}, "adapters", "unknown", "the RDMA adapters of spark-a could not be found out"),
    "interface not told": (
        {"link": None, "failed": {"link": "\x1b[1mno"}}, "link", "unknown",
        "the interface enp1s0f0np0 of spark-a could not be found out: \\x1b[1mno",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_and_nothing_else(fault: str) -> None:
    changed, name, state, says = FAULTS[fault]
    (told,) = judge(SPARKS, FIRST, replace(SOUND, **changed))  # type: ignore[arg-type]
    assert (told.name, told.state) == (f"spark-a {name}", state)
    assert says in told.says
    assert told.remedy


def test_an_index_that_was_written_down_is_held_against_the_table() -> None:
    (told,) = judge(SPARKS, replace(FIRST, gid_index=6), SOUND)
    assert "GID 6 of rocep1s0f0 on spark-a is empty, not RoCE v2 of 192.168.100.10" in told.says
    assert told.remedy.endswith("(now it is 3)")


def test_the_wheel_says_which_processor_it_is_for() -> None:
    wheel = Path("vllm-0.32.0+patchq.0-cp38-abi3-manylinux_2_28_x86_64.whl")
    (told,) = judge(SPARKS, FIRST, SOUND, wheel)
    assert told.says == f"spark-a is aarch64, {wheel} is for x86_64"


def test_the_other_ranks_serve_nothing() -> None:
    link = replace(LINK, addresses=(SECOND.address,))
    (told,) = judge(
        SPARKS, replace(SECOND, rank=1), replace(SOUND, link=link, ports={}, adapters=None)
    )
    assert told.name == "spark-b adapters"


def test_a_cluster_on_the_cpu_needs_no_driver_and_no_adapter() -> None:
    local = load(ROOT, "local")
    found = replace(
        SOUND, machine="x86_64", driver=None, gpu=None, adapters=(), link=Link("unknown", 65536, None, ("127.0.0.1",))
    )  # fmt: skip
    (told,) = judge(local, local.nodes[0], found)
    assert told.state == "ok"


def test_what_is_there_already_needs_no_room() -> None:
    there = {"model": (File("a.safetensors", 155 * GIB, "d"),)}
    assert judge(SPARKS, FIRST, replace(SOUND, disk=("/", 46 * GIB), files=there))[0].state == "ok"


JSON = st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.just([]) | st.just({})
ANSWER = probe.answer(
    {
        "folder": ".", "ports": [18898], "address": "127.0.0.1", "device": "lo",
        "files": {"model": str(ROOT / "ci" / "clusters")},
    }
) | {
    "gpu": {"cuda": "13.0", "devices": [{"name": "NVIDIA GB10", "capability": "12.1"}]},
    "adapters": [{"name": "roce0", "state": "4: ACTIVE", "gids": [[0, "::1", "RoCE v2", "lo"]]}],
}  # fmt: skip


@settings(max_examples=300)
@given(st.data())
def test_an_answer_with_anything_wrong_in_it_is_refused_or_judged(data: st.DataObject) -> None:
    """Whatever stands in one place of the answer: no crash, and nothing raw for a terminal."""
    answer = json.loads(json.dumps(ANSWER))
    inside: Any = answer
    while True:
        keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(inside[key], dict | list) or not inside[key] or data.draw(st.booleans()):
            break
        inside = inside[key]
    inside[key] = data.draw(JSON)
    try:
        found = facts.read(answer, 0.0, 0.0)
    except (AttributeError, LookupError, TypeError, ValueError):
        return  # `ask` makes a sentence of it
    told = (
        *judge(SPARKS, FIRST, found),
        *agreement.of_files("model", "glm", None, [(FIRST, found)]),
        *agreement.of_machines([(FIRST, found)]),
    )
    assert [each.says for each in told] == [show(each.says) for each in told]


def of_files(
    *listings: tuple[File, ...] | None, here: tuple[File, ...] | None = None
) -> list[Check]:
    pairs = zip((FIRST, SECOND), listings, strict=False)
    answered = [(node, replace(SOUND, files={"model": each})) for node, each in pairs]
    return list(agreement.of_files("model", "glm", here, answered))


ONE = (File("config.json", 2, "c" * 64), File("m.safetensors", 10**11, "a" * 64))


def test_the_same_model_everywhere_is_one_line() -> None:
    (told,) = of_files(ONE, ONE, here=ONE)
    assert told.state == "ok"
    assert (
        told.says
        == f"glm (model) is the same everywhere: {agreement.digest(ONE)[:12]}, 2 files, 100.0 GB"
    )


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (None, "spark-b has no glm (model), spark-a has it"),
        (ONE[:1], "glm (model) on spark-b is not that of spark-a: m.safetensors is missing"),
        ((*ONE, File("new", 1, "n")), "new is too much"),
        ((ONE[0], replace(ONE[1], size=5)), "m.safetensors has 5 bytes, not 100000000000"),
        (
            (ONE[0], replace(ONE[1], digest="b" * 64)),
            "has the digest bbbbbbbbbbbb, not aaaaaaaaaaaa",
        ),
    ],
)
def test_models_that_differ(other: tuple[File, ...] | None, says: str) -> None:
    (told,) = of_files(ONE, other)
    assert (told.name, told.state) == ("spark-b model", "fatal")
    assert says in told.says


def test_nodes_that_agree_on_another_model_than_here() -> None:
    told = of_files(ONE[:1], ONE[:1], here=ONE)
    assert [each.says for each in told] == [
        f"glm (model) on {name} is not that of this machine: m.safetensors is missing"
        for name in ("spark-a", "spark-b")
    ]


def test_a_model_that_is_nowhere_yet_is_no_fault() -> None:
    (told,) = of_files(None, None, here=ONE)
    assert told.state == "note"
    assert Diagnosis((told,)).exit_code == 0


def test_a_model_that_cannot_be_read() -> None:
    broken = replace(SOUND, files=None, failed={"files": "x.safetensors points to nothing"})
    (told,) = agreement.of_files("model", "glm", None, [(FIRST, broken)])
    assert told.state == "fatal"
    assert "points to nothing" in told.says


def test_nodes_that_are_not_alike() -> None:
    other = replace(SOUND, driver="580.65.06", link=replace(LINK, mtu=1500))
    mtu, drivers = agreement.of_machines([(FIRST, SOUND), (SECOND, other)])
    assert mtu.says == "the interfaces take frames of different sizes: spark-a 9000, spark-b 1500"
    assert drivers.says == "the nodes have different drivers: spark-a 580.95.05, spark-b 580.65.06"
    assert list(agreement.of_machines([(FIRST, SOUND), (SECOND, SOUND)])) == []


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with Sshd(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture
def two(server: Sshd, tmp_path: Path) -> Cluster:
    """Two nodes by ssh, in truth this machine twice, each with folders of its own."""

    def node(name: str, rank: int) -> Node:
        folder = tmp_path / name
        (folder / "models").mkdir(parents=True)
        address = f"127.0.0.{rank + 1}"
        return Node(name, rank, address, "lo", str(folder), str(folder / "models"), NODE)

    nodes = (node("a", 0), node("b", 1))
    return Cluster("two", "cpu", nodes, 18890, 18891, needs=Needs(0.1), ssh_config=server.config)


@pytest.fixture
def model(two: Cluster, tmp_path: Path) -> Path:
    """A model here, and the same on both nodes."""
    folder = tmp_path / "glm"
    folder.mkdir()
    (folder / "config.json").write_bytes(b"{}")
    (folder / "m.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}data")
    for node in two.nodes:
        shutil.copytree(folder, node.place("model", folder))
    return folder


def said(
    cluster: Cluster, given: Mapping[Kind, Path] | None = None, **more: bool
) -> dict[str, Check]:
    found = check(cluster, given, **more)
    assert len({each.name for each in found}) == len(found)
    return {each.name: each for each in found}


@pytest.mark.skipif(probe.platform.machine() != "x86_64", reason="the cpu target is x86-64")
class TestBySsh:
    def test_two_sound_nodes_are_three_lines(self, two: Cluster, model: Path) -> None:
        found = said(two, {"model": model})
        assert {name: each.state for name, each in found.items()} == {
            "a": "ok",
            "b": "ok",
            "model": "ok",
        }
        assert "ports 18890 and 18891 free, 127.0.0.1 on lo" in found["a"].says
        assert Diagnosis(tuple(found.values())).exit_code == 0

    def test_a_node_with_another_model_is_named(self, two: Cluster, model: Path) -> None:
        Path(two.nodes[1].place("model", model), "config.json").write_bytes(b"[]")
        found = said(two, {"model": model})
        assert "config.json has the digest" in found["b model"].says
        assert Diagnosis(tuple(found.values())).exit_code == 5

    def test_bytes_that_headers_do_not_show_need_full(self, two: Cluster, model: Path) -> None:
        shard = Path(two.nodes[1].place("model", model), "m.safetensors")
        shard.write_bytes(shard.read_bytes()[:-1] + b"X")
        assert said(two, {"model": model})["model"].state == "ok"
        assert (
            "m.safetensors has the digest" in said(two, {"model": model}, full=True)["b model"].says
        )

    def test_a_node_that_is_not_reached_hides_no_other(self, two: Cluster, model: Path) -> None:
        away = replace(two, nodes=(two.nodes[0], replace(two.nodes[1], ssh="nobody-has-this-name")))
        found = said(away, {"model": model})
        assert found["a"].state == "ok"
        assert found["b"].state == "unknown"
        assert "nobody-has-this-name is a name that nobody knows" in found["b"].says
        assert Diagnosis(tuple(found.values())).exit_code == 6

    def test_a_model_that_is_broken_here_is_said_beside_the_rest(
        self, two: Cluster, model: Path
    ) -> None:
        (model / "lost.safetensors").symlink_to("nowhere")
        found = said(two, {"model": model})
        assert (found["a"].state, found["model"].state) == ("ok", "fatal")
        assert "lost.safetensors points to nothing" in found["model"].says

    def test_a_node_that_lacks_the_template(self, two: Cluster, tmp_path: Path) -> None:
        template = tmp_path / "chat.jinja"
        template.write_bytes(b"{{ x }}")
        target = Path(two.nodes[0].place("template", template))
        target.parent.mkdir()
        shutil.copy(template, target)
        assert said(two, {"template": template})["b template"].says == (
            "b has no chat.jinja (template), a has it"
        )


def test_this_machine_by_itself(tmp_path: Path) -> None:
    local = replace(load(ROOT, "local"), needs=Needs(), port=18892, master_port=18893)
    template = tmp_path / "chat.jinja"
    template.write_bytes(b"{{ x }}")
    found = {each.name: each.state for each in check(local, {"template": template})}
    assert found["template"] == "ok"
