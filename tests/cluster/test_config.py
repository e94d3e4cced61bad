"""Clusters' files: those that are shipped, and everything that one may have wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.build.target import TARGETS
from patchq.cluster.config import Cluster, load, names, parse
from patchq.errors import PatchqError

ROOT = Path(__file__).resolve().parents[2]

NODE = """
[[node]]
name = "{name}"
rank = {rank}
ssh = "{name}"
address = "10.77.0.{rank}"
device = "eth0"
"""
SOUND = 'target = "cpu"\nport = 8888\nmaster_port = 29521\n{more}'


def written(tmp_path: Path, text: str, name: str = "two") -> Cluster:
    folder = tmp_path / "ci" / "clusters"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return load(tmp_path, name)


def sound(more: str = "") -> str:
    nodes = NODE.format(name="b", rank=1) + NODE.format(name="a", rank=0)
    return SOUND.format(more=more) + nodes


@pytest.mark.parametrize("name", names(ROOT))
def test_shipped_clusters_are_read(name: str) -> None:
    cluster = load(ROOT, name)
    assert cluster.name == name
    assert cluster.target in TARGETS


def test_the_sparks_talk_by_roce_and_pin_no_index() -> None:
    cluster = load(ROOT, "sparks")
    assert [node.rank for node in cluster.nodes] == [0, 1]
    assert cluster.transport == "roce"
    assert cluster.environment["NCCL_IB_ROCE_VERSION_NUM"] == "2"
    assert all(node.ssh and node.gid_index is None for node in cluster.nodes)


def test_local_is_this_machine() -> None:
    assert [node.ssh for node in load(ROOT, "local").nodes] == [None]


def test_nodes_stand_in_the_order_of_their_ranks(tmp_path: Path) -> None:
    cluster = written(tmp_path, sound('ssh_config = "own"\n'))
    assert [(node.name, node.rank, node.address) for node in cluster.nodes] == [
        ("a", 0, "10.77.0.0"),
        ("b", 1, "10.77.0.1"),
    ]
    assert cluster.ssh_config == tmp_path / "ci" / "clusters" / "own"
    assert cluster.transport == "tcp"


def test_where_a_node_has_things(tmp_path: Path) -> None:
    there = written(tmp_path, sound()).nodes[1]
    assert there.place("model", tmp_path / "glm") == "models/glm"
    assert there.place("draft", tmp_path / "dflash") == "models/dflash"
    assert there.place("artifact", tmp_path / "vllm.whl") == "patchq/artifacts/vllm.whl"
    assert there.place("template", Path("chat.jinja")) == "patchq/templates/chat.jinja"
    (here,) = load(ROOT, "local").nodes
    assert here.place("model", tmp_path / "glm") == str(tmp_path / "glm")


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        ('target = "cpu"', "", "target is missing or no text"),
        ('target = "cpu"', 'colour = "red"\ntarget = "cpu"', "unknown keys: colour"),
        ("port = 8888", 'port = "8888"', "port is missing or no number"),
        ("port = 8888", "port = true", "port is missing or no number"),
        ("port = 8888", "port = 29521", "port and master_port are one"),
        ("master_port = 29521", "master_port = 0", "master_port is missing or no number"),
        ('target = "cpu"', 'target = "cpu"\ntransport = "smoke"', "transport = 'smoke' is none"),
        ("rank = 1", "rank = 0", "the ranks are 0, 0"),
        ("rank = 1", "rank = 2", "the ranks are 0, 2"),
        ('name = "b"', 'name = "a"', "two nodes have the name a"),
        ('"10.77.0.1"', '"10.77.0.0"', "two nodes have the address 10.77.0.0"),
        ('"10.77.0.1"', '"0.0.0.0"', "address = '0.0.0.0' is none"),
        ('"10.77.0.1"', '"spark"', "address = 'spark' is none"),
        ('"10.77.0.1"', '"fe80::1%eth0"', "is none"),
        ('name = "b"', 'name = "../b"', "that is no name"),
        ('ssh = "b"', 'ssh = "-oProxyCommand=id"', "is no ssh target"),
        ('device = "eth0"', 'device = "../lo"', "device = '../lo' is none"),
        ('device = "eth0"', 'device = "a-name-that-is-too-long"', "is none"),
        ('device = "eth0"', 'device = "eth0"\nfolder = "../x"', "is no folder there"),
        ('device = "eth0"', 'device = "eth0"\nfolder = "~/x"', "is no folder there"),
        ('device = "eth0"', 'device = "eth0"\nmodels = "/"', "is no folder there"),
        ('device = "eth0"', 'device = "eth0"\nmodels = "a\\u001bb"', "is no folder there"),
        ('device = "eth0"', 'device = "eth0"\ngid_index = -1', "gid_index is missing or no number"),
        ('device = "eth0"', 'device = "eth0"\nuser = "root"', "unknown keys: user"),
        ('target = "cpu"', "target", "is not valid TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(tmp_path: Path, was: str, becomes: str, message: str) -> None:
    text = sound()
    assert was in text
    with pytest.raises(PatchqError, match=message) as told:
        written(tmp_path, text.replace(was, becomes, 1))
    assert "ci/clusters/two.toml" in told.value.message
    assert told.value.hint


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("[needs]\nmemory = -1\n", "memory = -1 is no number of GiB"),
        ("[needs]\nmemory = nan\n", "memory = nan is no number of GiB"),
        ("[needs]\ncores = 2\n", "unknown keys: cores"),
        ("needs = 3\n", "needs: it is no table"),
        ("[environment]\nNCCL_DEBUG = 1\n", "NCCL_DEBUG is no variable with a text"),
        ('[environment]\n"A B" = "x"\n', "A B is no variable"),
        ('[environment]\nNCCL_IB_GID_INDEX = "3"\n', "NCCL_IB_GID_INDEX differs from node to node"),
    ],
)
def test_tables_that_are_wrong(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(PatchqError, match=message):
        written(tmp_path, sound(more))


def test_a_cluster_without_nodes(tmp_path: Path) -> None:
    with pytest.raises(PatchqError, match="it has no node"):
        written(tmp_path, SOUND.format(more=""))
    with pytest.raises(PatchqError, match="node is no list of tables"):
        written(tmp_path, SOUND.format(more="node = [1]\n"))


@pytest.mark.parametrize("name", ["none", "../two", "/etc/passwd", "", "Two", "a\nb"])
def test_clusters_that_are_not_there(tmp_path: Path, name: str) -> None:
    written(tmp_path, sound())
    with pytest.raises(PatchqError, match="there is no cluster") as told:
        load(tmp_path, name)
    assert told.value.hint == "in ci/clusters there is: two"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["target", "port", "master_port", "transport", "ssh_config", "needs", "environment", "node"]
)


@given(st.dictionaries(KEYS, VALUES))
def test_any_table_is_read_or_refused_in_a_sentence(data: dict[str, Any]) -> None:
    told = "any.toml: nothing wrong"
    try:
        parse(data, "any", "any.toml", Path("."))
    except PatchqError as problem:
        told = problem.message
    assert told.startswith("any.toml")
