"""A runner brought to two nodes, by real ssh, rsync and pip: once, whole, verified, or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.build import wheels
from tests.support.fleet import Fleet, fleet
from tests.support.sshd import Sshd


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Fleet]:
    with fleet(tmp_path / "fleet") as made:
        yield made


def deploy(nodes: Fleet, wheel: Path) -> dict[str, object]:
    said = nodes.call("deploy", "two", "--wheel", str(wheel), "--json").json
    first, second = said["nodes"]
    own = {"name": "", "python": ""}
    assert {**first, **own} == {**second, **own}, "both nodes are alike"
    assert isinstance(first, dict)
    return first


def there(nodes: Fleet) -> dict[str, set[str]]:
    """What lies in the first node's folder."""
    folder = nodes.homes[0] / "patchq"
    return {
        name: {each.name for each in (folder / name).glob("[!.]*")}
        for name in ("artifacts", "releases", "environments")
    }


def test_it_is_shipped_once_and_the_one_before_is_kept(nodes: Fleet) -> None:
    wheel = nodes.wheel()
    first = deploy(nodes, wheel)
    assert first["shipped"] == [wheel.name] and first["installed"] is True
    assert first["previous"] is None
    folder = nodes.homes[0] / "patchq"
    assert os.readlink(folder / "current") == f"releases/{first['release']}"
    assert (folder / "current/bin/vllm").read_text().startswith(f"#!{sys.executable}")
    same = deploy(nodes, wheel)
    assert (same["shipped"], same["installed"], same["release"]) == ([], False, first["release"])
    second = deploy(nodes, nodes.wheel("2.0"))
    assert second["previous"] == first["release"]
    third = deploy(nodes, nodes.wheel("3.0"))
    assert third["previous"] == second["release"]
    assert there(nodes)["releases"] == {second["release"], third["release"]}
    assert there(nodes)["artifacts"] == {f"vllm-{n}.0-py3-none-any.whl" for n in (2, 3)}
    back = deploy(nodes, nodes.wheel("2.0"))
    assert back["installed"] is False and back["release"] == second["release"]
    assert nodes.call("status", "two").out.count("vllm-2.0") == 2


def test_what_lies_there_under_its_name_is_not_trusted(nodes: Fleet) -> None:
    """The same size and the same time: rsync alone would take it for the same."""
    wheel = nodes.wheel()
    data = bytearray(wheel.read_bytes())
    data[40] ^= 1
    for home in nodes.homes:
        spoilt = home / "patchq/artifacts" / wheel.name
        spoilt.parent.mkdir(parents=True)
        spoilt.write_bytes(data)
        shutil.copystat(wheel, spoilt)
    assert deploy(nodes, wheel)["shipped"] == [wheel.name]
    assert spoilt.read_bytes() == wheel.read_bytes()


def test_what_runs_is_left_alone(nodes: Fleet) -> None:
    first = deploy(nodes, nodes.wheel("1.0"))
    nodes.call("start", "two")
    try:
        for version in ("2.0", "3.0"):
            deploy(nodes, nodes.wheel(version))
        assert first["release"] in there(nodes)["releases"]
        states = [each["state"] for each in nodes.call("status", "two", "--json").json["nodes"]]
        assert states == ["running", "running"]
    finally:
        nodes.call("stop", "two")
    assert nodes.left() == []
    deploy(nodes, nodes.wheel("4.0"))
    assert first["release"] not in there(nodes)["releases"]


def test_nodes_that_differ_are_not_started(nodes: Fleet) -> None:
    said = nodes.call("start", "two", code=1)
    assert "node-0 has no runner" in said.err and "patchq cluster deploy two" in said.err
    deploy(nodes, nodes.wheel("1.0"))
    deploy(nodes, nodes.wheel("2.0"))
    folder = nodes.homes[1] / "patchq"
    (folder / "current").unlink()
    (folder / "current").symlink_to(os.readlink(folder / "previous"))
    said = nodes.call("start", "two", code=1)
    assert "node-0 has vllm-2.0" in said.err and "node-1 has vllm-1.0" in said.err
    assert nodes.left() == []


def test_one_node_that_fails_keeps_all_as_they_were(nodes: Fleet) -> None:
    first = deploy(nodes, nodes.wheel("1.0"))
    nodes.servers[1].cut()
    nodes.servers[1].__exit__()
    try:
        said = nodes.call("deploy", "two", "--wheel", str(nodes.wheel("2.0")), code=6)
    finally:
        nodes.servers[1].__enter__()
    assert "node-1 is not reached" in said.err
    for home in nodes.homes:
        assert os.readlink(home / "patchq/current") == f"releases/{first['release']}"
    assert deploy(nodes, nodes.wheel("2.0"))["previous"] == first["release"]


def test_a_wheel_that_pip_refuses(nodes: Fleet) -> None:
    broken = nodes.root / "vllm-1.0-py3-none-any.whl"
    broken.write_bytes(b"no wheel")
    said = nodes.call("deploy", "two", "--wheel", str(broken), code=6)
    assert "node-0: the wheels were not installed: " in said.err
    assert there(nodes)["releases"] == set()
    assert not (nodes.homes[0] / "patchq/current").is_symlink()


@pytest.mark.parametrize("python", ["no/such/python", "/bin/false"])
def test_a_python_that_is_none(nodes: Fleet, python: str) -> None:
    nodes.cluster(python=python)
    said = nodes.call("deploy", "two", "--wheel", str(nodes.wheel()), code=1)
    assert f"node-0 has no Python {python}" in said.err


def test_a_folder_that_cannot_be_made(nodes: Fleet) -> None:
    (nodes.homes[0] / "patchq").write_text("a file", encoding="utf-8")
    said = nodes.call("deploy", "two", "--wheel", str(nodes.wheel()), code=1)
    assert "node-0 refuses: " in said.err


@pytest.mark.root
def test_a_disk_that_is_full(nodes: Fleet) -> None:
    """One node has no space: a sentence, and neither is switched."""
    folder = nodes.homes[1] / "patchq"
    folder.mkdir()
    padding = wheels.plain(nodes.root / "large", "vllm", "1.0", {"vllm/noise": os.urandom(2 << 20)})
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], check=True)
    try:
        said = nodes.call("deploy", "two", "--wheel", str(padding), code=6)
        assert "node-1 has no space left for" in said.err
        assert not list(folder.glob("releases/*"))
        for home in nodes.homes:
            assert not (home / "patchq/current").is_symlink()
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.fixture
def located(nodes: Fleet, tmp_path: Path) -> Fleet:
    """Nodes that make their environment: pip there finds packages in a folder alone."""
    shelf = tmp_path / "shelf"
    wheels.plain(shelf, "helper", "1.0", {"helper.py": b"print('helps')\n"})
    for server, home in zip(nodes.servers, nodes.homes, strict=True):
        given = {"HOME": str(home), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(shelf)}
        given["PATH"] = f"{Path(sys.executable).parent}:/usr/bin:/bin:/usr/sbin"
        restart(server, given)
    nodes.cluster(python=None)
    (nodes.root / "upstream").mkdir()
    return nodes


def restart(server: Sshd, environment: dict[str, str]) -> None:
    server.__exit__()
    server.serve_config("", environment)
    server.__enter__()


def lock(nodes: Fleet, digest: str) -> None:
    text = f"# for tests\nhelper==1.0 \\\n    --hash=sha256:{digest}\n"
    (nodes.root / "upstream/requirements.cpu.lock").write_text(text, encoding="utf-8")


@pytest.mark.slow
def test_an_environment_is_made_from_the_locked_requirements(
    located: Fleet, tmp_path: Path
) -> None:
    wheel = located.wheel()
    said = located.call("deploy", "two", "--wheel", str(wheel), code=1)
    assert "there are no locked requirements" in said.err
    lock(located, "0" * 64)
    said = located.call("deploy", "two", "--wheel", str(wheel), code=6)
    assert "its environment was not made: THESE PACKAGES DO NOT MATCH THE HASHES" in said.err
    assert there(located)["environments"] == set()
    (package,) = (tmp_path / "shelf").glob("*.whl")
    lock(located, hashlib.sha256(package.read_bytes()).hexdigest())
    made = deploy(located, wheel)
    python = Path(str(made["python"]))
    assert python.parents[2] == located.homes[0] / "patchq/environments"
    assert subprocess.check_output([python, "-m", "helper"], text=True) == "helps\n"
    stamp = python.parents[1] / "made"
    before = stamp.stat().st_mtime_ns
    deploy(located, located.wheel("2.0"))
    assert stamp.stat().st_mtime_ns == before, "it is made once"


def test_an_interpreter_that_the_lock_is_not_for(located: Fleet) -> None:
    lock(located, "0" * 64)
    for server, home in zip(located.servers, located.homes, strict=True):
        tools = home / "bin"
        tools.mkdir()
        (tools / "python3").write_text(
            '#!/bin/sh\n[ "$1" = -I ] && echo 3.9 || exec /usr/bin/python3 "$@"\n'
        )
        (tools / "python3").chmod(0o755)
        restart(server, {"HOME": str(home), "PATH": str(tools)})
    said = located.call("deploy", "two", "--wheel", str(located.wheel()), code=1)
    assert "node-0 has no Python 3.11, which the locked requirements are for" in said.err
    assert "apt-get install python3.11-venv" in said.err


def test_the_last_build_is_taken(nodes: Fleet) -> None:
    said = nodes.call("deploy", "two", code=1)
    assert "there is no build for cpu" in said.err
    folder = nodes.root / "build/cpu"
    wheel = shutil.copy(nodes.wheel(), folder) if folder.mkdir(parents=True) is None else ""
    output = {
        "name": Path(wheel).name,
        "sha256": hashlib.sha256(Path(wheel).read_bytes()).hexdigest(),
    }
    record = {
        "target": "cpu",
        "requirements": None,
        "lock": "5" * 64,
        "outputs": [output],
        "runner": {"series": "vllm", "release": 0, "base": {"release": "1.0"}, "tree": "7" * 40},
    }
    (folder / "build.json").write_text(json.dumps(record), encoding="utf-8")
    report = nodes.call("deploy", "two", "--json").json
    assert report["labels"]["lock"] == "5" * 64 and report["labels"]["tree"] == "7" * 40
    assert "runner 555555555555" in nodes.call("status", "two").out
