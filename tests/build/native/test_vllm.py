"""On vLLM's own source: what is found, what compiles for GB10, what the fat binary says.

nvcc and CMake come from the package index (ci/cuda-env.py), torch's headers from the CPU
environment of the release. Nothing here needs a GPU.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from patchq.build.native import schemas
from patchq.build.native.build import FACTS, compile_all, compile_objects, planned
from patchq.build.native.evaluate import evaluate
from patchq.build.native.model import Facts
from patchq.build.native.node import Tools
from patchq.build.native.plan import NativePlan
from patchq.build.native.trees import StoreTree
from patchq.build.overlay import Wanted, lay
from patchq.build.target import find
from patchq.cluster.shell import local
from patchq.errors import ProofFailed
from patchq.gitstore.store import Store
from patchq.upstream.archives import Archives
from tests.build.native.test_runner import CPU, TOOLS
from tests.build.native.test_runner import kit as kit
from tests.build.wheels import contents, make
from tests.support.kit import Kit
from tests.support.runner import environment

pytestmark = [pytest.mark.network, pytest.mark.xdist_group("cuda")]

ROOT = Path(__file__).parents[3]
RELEASE = "0.32.0"
SPARK = find("spark")
VIEW = "csrc/cuda_view.cu"
KERNEL = b"\n__global__ void patched(int* out) { *out = 121; }\n"
BINDINGS = "csrc/torch_bindings.cpp"
SCHEMA = b"get_cuda_view_from_cpu_tensor(Tensor cpu_tensor)"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same store as in tests/scenarios: a release is downloaded once."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if base.name.startswith("popen-") else base) / "vllm-cache"


@pytest.fixture
def store(cache: Path) -> Iterator[Store]:
    upstream = Archives("vllm", cache)
    upstream.release(RELEASE)
    yield upstream.store
    upstream.close()


@pytest.fixture
def toolkit() -> Path:
    done = subprocess.run(
        [sys.executable, ROOT / "ci" / "cuda-env.py"], capture_output=True, text=True
    )
    assert done.returncode == 0, f"nvcc is out of reach:\n{done.stderr}"
    return Path(done.stdout.strip())


def base(cache: Path, release: str = RELEASE) -> str:
    upstream = Archives("vllm", cache)
    try:
        return upstream.release(release).tree
    finally:
        upstream.close()


def patched(store: Store, tree: str, files: Mapping[str, bytes]) -> Wanted:
    """The runner tree of a series that writes `files`."""
    with store.index(tree) as index:
        for path, data in files.items():
            entry = store.objects.lookup(tree, path.encode())
            assert entry is not None, path
            old = store.objects.blob(entry.oid)
            diff = _diff(store, path, old, data)
            assert index.apply_bytes(diff, options=["--unidiff-zero"]).code == 0
        return Wanted("vllm", RELEASE, tree, index.write())


def _diff(store: Store, path: str, old: bytes, new: bytes) -> bytes:
    hunks = store.diff_data(old, new).partition(b"\n@@")
    name = path.encode()
    head = b"diff --git a/%s b/%s\n--- a/%s\n+++ b/%s" % (name, name, name, name)
    return head + hunks[1] + hunks[2]


def content(store: Store, tree: str, path: str) -> bytes:
    entry = store.objects.lookup(tree, path.encode())
    assert entry is not None
    return store.objects.blob(entry.oid)


def objects(made: NativePlan) -> dict[str, list[str]]:
    return {work.extension.name: [e.source.path for e in work.objects] for work in made.works}


@pytest.mark.runner
def test_one_cuda_source_is_found_and_compiles_for_gb10(
    store: Store, cache: Path, toolkit: Path, tmp_path: Path
) -> None:
    tree = base(cache)
    wanted = patched(store, tree, {VIEW: content(store, tree, VIEW) + KERNEL})
    made = planned(store, wanted, SPARK)
    assert objects(made) == {"_C_stable_libtorch": [VIEW]}
    assert not made.unknown and not made.findings
    torch = environment(RELEASE).parents[1] / "lib"
    (headers,) = torch.glob("python3*/site-packages/torch/include")
    includes = (
        str(headers),
        str(headers / "torch/csrc/api/include"),
        sysconfig.get_path("include"),
    )
    tools = Tools(nvcc=str(toolkit / "bin/nvcc"), includes=includes)
    where, logs = str(tmp_path / "node"), tmp_path / "logs"
    with local() as shell:
        node, (ran,) = compile_objects(shell, store, wanted, made, where, logs, tools=tools)
        assert node.cuda == "13.0" and ran.again
        assert [(each.kind, each.arch) for each in ran.codes] == [("elf", "sm_121a")]
        _, (ran,) = compile_objects(shell, store, wanted, made, where, logs, tools=tools)
        assert not ran.again, "what is done is not repeated"
    symbols = (tmp_path / "node/objects/_C_stable_libtorch" / f"{VIEW}.o").read_bytes()
    assert b"patched" in symbols


def test_a_schema_without_its_caller_is_a_finding(store: Store, cache: Path) -> None:
    from patchq.build.native.build import sound

    tree = base(cache)
    text = content(store, tree, BINDINGS)
    assert text.count(SCHEMA) == 1
    changed = text.replace(SCHEMA, SCHEMA[:-1] + b", bool pinned)")
    made = planned(store, patched(store, tree, {BINDINGS: changed}), SPARK)
    (one,) = made.findings
    assert one.says == "it does not give 'pinned', which the schema asks for"
    assert (one.call.path, one.new and one.new.path) == ("vllm/utils/torch_utils.py", BINDINGS)
    assert "get_cuda_view_from_cpu_tensor" in one.call.text and one.call.line > 1
    with pytest.raises(ProofFailed, match=r"vllm/utils/torch_utils\.py:\d+ calls"):
        sound(made)


@pytest.mark.parametrize("release", ["0.29.0", RELEASE])
def test_every_source_of_a_release_has_its_extension(cache: Path, release: str) -> None:
    upstream = Archives("vllm", cache)
    tree = StoreTree(upstream.store, upstream.release(release).tree)
    files = [p for p in tree.paths() if p.startswith("csrc/") and p.endswith((".cu", ".cpp"))]
    anywhere = evaluate(tree, Facts())
    owned = {each.path for made in anywhere.extensions.values() for each in made.sources}
    assert len(files) > 130 and not set(files) - owned
    spark = evaluate(tree, FACTS["spark"])
    archs = {each.archs for made in spark.extensions.values() for each in made.sources}
    assert archs == {(), ("12.0",), ("12.0f",), ("8.0+PTX",), ("8.9+PTX",), ("9.0+PTX",)}
    known = schemas.operators(tree)
    calls = list(schemas.calls(tree, frozenset(known)))
    assert len(known) > 150 and len(calls) > 170
    assert not [c for c in calls if schemas.misfits(known[c.space, c.name], c)]
    upstream.close()


def test_the_trees_own_rules_as_cmake_runs_them(
    store: Store, cache: Path, toolkit: Path, tmp_path: Path
) -> None:
    """What is read of utils.cmake without CMake is what CMake makes of it."""
    utils = tmp_path / "cmake" / "utils.cmake"
    utils.parent.mkdir()
    utils.write_bytes(content(store, base(cache), "cmake/utils.cmake"))
    lines, asked = ["cmake_minimum_required(VERSION 3.26)", "include(cmake/utils.cmake)"], []
    for target in ("12.0", "12.1a", "8.0;9.0a;12.1a", "7.5;10.0f;12.0", "10.3"):
        for able in ("8.0+PTX;12.0f", "9.0a;10.0f;11.0f;12.0f", "8.0;8.6;8.9", "12.0a;12.1a"):
            name = f"X{len(asked)}"
            asked.append(name)
            lines.append(f'cuda_archs_loose_intersection({name} "{able}" "{target}")')
    script = tmp_path / "CMakeLists.txt"
    printed = [f'message(NOTICE "{name}=${{{name}}}")' for name in asked]
    script.write_text("\n".join([*lines, *printed]))
    cmake = toolkit.parents[4] / "bin" / "cmake"
    done = subprocess.run([cmake, "-P", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = dict(line.split("=") for line in done.stderr.splitlines() if line.startswith("X"))

    read = [f"add_library({name} OBJECT a.c ${{{name}}}.c)" for name in asked]
    files = {"CMakeLists.txt": "\n".join([*lines, *read])}
    files["cmake/utils.cmake"] = utils.read_text()
    from tests.build.native.sources import Files

    built = evaluate(Files(files), Facts()).extensions
    ours = {
        name: ";".join(each.path for each in built[name].sources[1:]).removesuffix(".c").lstrip(".")
        for name in asked
    }
    assert {k: v for k, v in ours.items() if v} == {
        k: v for k, v in said.items() if v and v != "."
    }, "the same architectures"


def test_a_whole_extension_is_built_and_laid_into_the_wheel(
    kit: Kit, toolkit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps of vLLM's own build, on a small tree: environment, CMake, ninja, the library."""
    bin_ = toolkit.parents[4] / "bin"
    monkeypatch.setenv("PATH", f"{bin_}:/usr/bin:/bin")
    wanted = Wanted("small", "1.0", kit.tree("v1"), kit.tree("header"))
    made = planned(kit.store, wanted, CPU)
    where, logs = str(tmp_path / "node"), tmp_path / "logs" / "native"
    machine = subprocess.run(["uname", "-m"], capture_output=True, text=True).stdout.strip()
    tools = Tools(cmake=str(bin_ / "cmake"), python=sys.executable, includes=TOOLS.includes)
    with local() as shell:
        for _ in range(2):
            libraries = compile_all(
                shell, kit.store, wanted, made, machine, where, logs, tools=tools
            )
    assert list(libraries) == ["vllm/_x.so"]
    assert libraries["vllm/_x.so"].read_bytes()[:4] == b"\x7fELF"
    wheel = make(tmp_path / "vllm-1.0-cp38-abi3-manylinux_2_28_x86_64.whl", {"vllm/a.py": b""})
    out = lay(kit.store, wanted, CPU, wheel, tmp_path / "out", compiled=libraries)
    assert contents(out.path)["vllm/_x.so"] == libraries["vllm/_x.so"].read_bytes()
    assert list(out.compiled) == ["vllm/_x.so"]
