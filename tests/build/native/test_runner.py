"""A native build on a node: really compiled, resumed, and shown where it fails.

The compiler is the machine's own, the node this machine, itself and by ssh.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from patchq.build.fatbin import Code
from patchq.build.native import build, runner, source, steps
from patchq.build.native.build import compile_objects, planned
from patchq.build.native.node import Node, Tools, jobs
from patchq.build.native.runner import Ran
from patchq.build.native.steps import Step
from patchq.build.overlay import Wanted
from patchq.build.target import find
from patchq.cluster.shell import Shell, local, ssh
from patchq.errors import PatchqError, ProofFailed
from tests.support.kit import Kit
from tests.support.sshd import NODE, Sshd

CPU = find("cpu")
TOOLS = Tools(includes=())
CMAKE = b"""cmake_minimum_required(VERSION 3.20)
project(small CXX)
set(CMAKE_CUDA_STANDARD 17)
add_library(_x MODULE csrc/a.cpp csrc/b.cpp)
set_target_properties(_x PROPERTIES PREFIX "")
target_include_directories(_x PRIVATE csrc)
target_compile_definitions(_x PRIVATE VALUE=2)
install(TARGETS _x LIBRARY DESTINATION vllm COMPONENT _x)
"""


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[Kit]:
    made = Kit(tmp_path / "kit")
    first = made.history.commit()
    first.write("CMakeLists.txt", CMAKE)
    first.write("csrc/a.cpp", b'#include "v.h"\nint a() { return v() + VALUE; }\n')
    first.write("csrc/b.cpp", b'#include "v.h"\nint b() { return v(); }\n')
    first.write("csrc/v.h", b"inline int v() { return 1; }\n")
    first.write("csrc/old.md", b"x\n")
    first.write("requirements/build/cpu.txt", b"# nothing\n")
    first.tag("v1")
    head = made.history.branch("header", at="v1").commit()
    head.write("csrc/v.h", b"inline int v() { return 3; }\n").delete("csrc/old.md")
    broken = made.history.branch("broken", at="header").commit()
    broken.write("csrc/b.cpp", b'#include "v.h"\nint b() { return v() + nowhere; }\n')
    broken.tag("broken-1")
    made.history.branch("mended", at="broken").commit().write("csrc/b.cpp", b"int b();\n")
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with Sshd(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture(params=["here", "there"])
def shell(request: pytest.FixtureRequest, server: Sshd) -> Iterator[Shell]:
    with local() if request.param == "here" else ssh(NODE, server.config) as opened:
        yield opened


def objects(kit: Kit, shell: Shell, ref: str, tmp_path: Path) -> tuple[Ran, ...]:
    wanted = Wanted("small", "1.0", kit.tree("v1"), kit.tree(ref))
    made = planned(kit.store, wanted, CPU)
    where, logs = str(tmp_path / "node"), tmp_path / "logs"
    _, ran = compile_objects(shell, kit.store, wanted, made, where, logs, tools=TOOLS)
    return ran


def again(ran: Sequence[Ran]) -> list[tuple[str, bool]]:
    return [(each.step.name.removeprefix("object csrc/"), each.again) for each in ran]


def test_a_failing_object_and_what_goes_on_after_it(kit: Kit, shell: Shell, tmp_path: Path) -> None:
    assert again(objects(kit, shell, "header", tmp_path)) == [("a.cpp", True), ("b.cpp", True)]
    assert (tmp_path / "node/objects/_x/csrc/a.cpp.o").stat().st_size > 0
    assert not (tmp_path / "node/src/csrc/old.md").exists()
    assert again(objects(kit, shell, "header", tmp_path)) == [("a.cpp", False), ("b.cpp", False)]

    with pytest.raises(PatchqError) as caught:
        objects(kit, shell, "broken", tmp_path)
    said = caught.value.message
    assert said.startswith(f"'object csrc/b.cpp' failed on {shell.name} with exit status 1:")
    assert "-DVALUE=2" in said and "nowhere" in said and "c++" in said
    log = tmp_path / "logs/object-csrc+b.cpp.log"
    assert str(log) in caught.value.hint and "nowhere" in log.read_text()

    assert again(objects(kit, shell, "mended", tmp_path)) == [("a.cpp", False), ("b.cpp", True)]
    (tmp_path / "node/objects/_x/csrc/a.cpp.o").unlink()
    assert again(objects(kit, shell, "mended", tmp_path)) == [("a.cpp", True), ("b.cpp", False)]


class Cut:
    """A shell whose line breaks off when it is to run or copy for the `at`-th time."""

    def __init__(self, inner: Shell, at: int) -> None:
        self._inner, self._left = inner, at
        self.name = inner.name

    def __getattr__(self, what: str) -> Callable[..., object]:
        method = getattr(self._inner, what)

        def called(*args: object, **options: object) -> object:
            self._left -= 1
            if self._left < 0:
                raise KeyboardInterrupt
            return method(*args, **options)

        return called


def test_a_build_that_is_killed_anywhere_goes_on(kit: Kit, tmp_path: Path) -> None:
    with local() as shell:
        for at in range(0, 60, 6):
            folder = tmp_path / str(at)
            folder.mkdir()
            try:
                objects(kit, Cut(shell, at), "header", folder)  # type: ignore[arg-type]
            except KeyboardInterrupt:
                assert len(objects(kit, shell, "header", folder)) == 2
            else:
                break
            header = folder / "node/src/csrc/v.h"
            assert header.read_bytes() == b"inline int v() { return 3; }\n"
        assert 10 < at < 57


def test_a_change_of_the_source_that_is_killed(kit: Kit, tmp_path: Path) -> None:
    trees = {name: kit.tree(name) for name in ("v1", "header", "broken-1", "mended")}
    where = str(tmp_path / "node")
    with local() as shell:
        source.send(shell, kit.store, trees["v1"], where)
        old = (tmp_path / "node/src/csrc/a.cpp").stat().st_mtime_ns
        for at in range(4, 9):
            with pytest.raises(KeyboardInterrupt):
                source.send(Cut(shell, at), kit.store, trees["broken-1"], where)  # type: ignore[arg-type]
        source.send(shell, kit.store, trees["header"], where)
    src = tmp_path / "node/src"
    found = {str(p.relative_to(src)): p.read_bytes() for p in src.rglob("*") if p.is_file()}
    walked = kit.store.objects.walk(trees["header"])
    assert found == {path.decode(): kit.store.objects.blob(each.oid) for path, each in walked}
    assert (src / "csrc/a.cpp").stat().st_mtime_ns == old, "what did not change was not sent"


def test_offline_stops_at_what_fetches(tmp_path: Path) -> None:
    fetches = Step("requirements", ("true",), "", online=True)
    with local() as shell:
        with pytest.raises(PatchqError, match="'requirements' fetches"):
            runner.run(shell, [fetches], str(tmp_path), tmp_path / "logs", offline=True)
        runner.run(shell, [fetches], str(tmp_path), tmp_path / "logs")
        (ran,) = runner.run(shell, [fetches], str(tmp_path), tmp_path / "logs", offline=True)
    assert not ran.again


def test_architectures_are_asked_for() -> None:
    codes = (Code("elf", "sm_120f"), Code("ptx", "sm_90"))
    runner.require("x.so", codes, ["sm_120f"])
    with pytest.raises(ProofFailed, match=r"x\.so should hold sm_121a, sm_90, and holds sm_120f"):
        runner.require("x.so", codes, ["sm_121a", "sm_90"])


@pytest.mark.parametrize(
    ("cores", "memory", "most"), [(20, 119, 13), (2, 119, 2), (20, 23.9, 1), (8, 0, 1), (4, 24, 2)]
)
def test_jobs_by_memory_and_cores(cores: int, memory: float, most: int) -> None:
    assert jobs(cores, memory) == most


def test_a_node_without_what_is_needed(kit: Kit, tmp_path: Path) -> None:
    wanted = Wanted("small", "1.0", kit.tree("v1"), kit.tree("header"))
    made = planned(kit.store, wanted, find("spark"))
    with local() as shell:
        with pytest.raises(PatchqError, match="this machine has no nvcc that works"):
            compile_objects(
                shell, kit.store, wanted, made, str(tmp_path / "n"), tmp_path, tools=Tools("no")
            )
        with pytest.raises(PatchqError, match="and the target is aarch65"):
            build.compile_all(
                shell, kit.store, wanted, made, "aarch65", str(tmp_path / "n"), tmp_path
            )


def test_the_steps_of_a_spark(kit: Kit) -> None:
    wanted = Wanted("small", "1.0", kit.tree("v1"), kit.tree("header"))
    made = planned(kit.store, wanted, find("spark"))
    node = Node("aarch64", 20, 119.0, "13.0", "ccache", ("/t/include",))
    todo = [*steps.environment(Tools(), "/n", "requirements/x.txt", "d")]
    todo += steps.extensions(made, Tools(), node, "/n", wanted.tree)
    assert [each.name for each in todo] == [
        *("environment", "requirements", "configure"),
        *("build _x", "install _x"),
    ]
    assert [each.name for each in todo if each.online] == ["requirements", "configure"]
    configure = todo[2].command
    assert "TORCH_CUDA_ARCH_LIST=12.1a" in configure
    assert "-DCMAKE_CUDA_COMPILER_LAUNCHER=ccache" in configure
    assert "-DCMAKE_JOB_POOLS:STRING=compile=13" in configure
    first = steps.alone(made, Tools(), node, "/n")[0].args
    assert first[:3] == ("ccache", "c++", "-fPIC") and "-I/t/include" in first
    assert shutil.which("c++")


def test_crates_are_fetched_before_anything_is_built(kit: Kit) -> None:
    wanted = Wanted("small", "1.0", kit.tree("v1"), kit.tree("header"))
    made = replace(planned(kit.store, wanted, find("spark")), rust=("rust/lib.rs",))
    node = Node("aarch64", 20, 119.0, "13.0", "", ())
    todo = list(steps.extensions(made, Tools(), node, "/n", wanted.tree))
    names = [each.name for each in todo]
    assert names == ["configure", "crates", "build _x", "install _x", "rust"]
    assert [each.name for each in todo if each.online] == ["configure", "crates"]
    assert "CARGO_NET_OFFLINE=true" in todo[-1].command
