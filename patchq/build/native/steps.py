"""A native build as steps, each with a key: a step whose key is known to be done is not repeated.

Everything happens in one folder of the node: `src` (the runner tree), `env` (what it is built
with), `deps` (what CMake fetches), `build`, `objects`, `out`. Pure.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from patchq.build.native.model import Extension
from patchq.build.native.node import Node, Tools
from patchq.build.native.plan import NativePlan, Object


@dataclass(frozen=True)
class Step:
    """A program to run in `folder`, with `environment` beside the node's own.

    `gives` is the file that is there afterwards, `archs` what its fat binary must hold. `online`:
    it may fetch; no other step does.
    """

    name: str
    args: tuple[str, ...]
    inputs: str
    folder: str = "."
    environment: tuple[str, ...] = ()
    gives: str = ""
    archs: tuple[str, ...] = ()
    online: bool = False

    @property
    def command(self) -> tuple[str, ...]:
        """As the node runs it: `env -C FOLDER NAME=VALUE ... PROGRAM ...`."""
        return ("env", "-C", self.folder, *self.environment, *self.args)

    @property
    def key(self) -> str:
        told = json.dumps([self.name, self.args, self.folder, self.environment, self.inputs])
        return hashlib.sha256(told.encode()).hexdigest()


def alone(plan: NativePlan, tools: Tools, node: Node, folder: str) -> tuple[Step, ...]:
    """Each changed object for itself, for the target's own architecture: what does not compile
    shows in seconds. Those that need what CMake fetches wait for their extension.
    """
    return tuple(
        _object(plan, work.extension, each, tools, node, folder)
        for work in plan.works
        for each in work.objects
        if not each.source.generated and not each.source.external and not each.needs
    )


def _object(
    plan: NativePlan, extension: Extension, each: Object, tools: Tools, node: Node, folder: str
) -> Step:
    path = each.source.path
    gives = f"objects/{extension.name}/{path}.o"
    cuda = path.endswith(".cu")
    arch = (plan.facts.arch or "").replace(".", "")
    plain = [each for each in (*extension.options, *each.source.options) if "$" not in each]
    defined = [f"-D{each}" for each in extension.definitions]
    inner = [each for each in (*extension.includes, *each.source.includes) if "$" not in each]
    args = [
        *([node.cache] if node.cache else []),
        *([tools.nvcc, "-Xcompiler", "-fPIC"] if cuda else [tools.cxx, "-fPIC"]),
        *(["-gencode", f"arch=compute_{arch},code=sm_{arch}"] if cuda else []),
        *([f"-std=c++{plan.standard}"] if plan.standard else []),
        *("-O2", "-DNDEBUG", f"-DTORCH_EXTENSION_NAME={extension.name}"),
        *defined,
        *(plain if cuda else [each for each in plain if each.startswith(("-D", "-m"))]),
        *(f"-I{each}" for each in inner),
        *(
            f"-I{each}"
            for each in (*node.includes, *(_toolkit(tools.nvcc) if node.cuda and not cuda else ()))
        ),
        *("-c", path, "-o", posixpath.join(folder, gives)),
    ]
    return Step(
        f"object {path}",
        tuple(args),
        f"{each.content} {node.cuda}",
        posixpath.join(folder, "src"),
        gives=gives,
        archs=(f"sm_{arch}",) if cuda else (),
    )


def _toolkit(nvcc: str) -> tuple[str, ...]:
    """The headers beside an nvcc that is named by its path."""
    folder = posixpath.dirname(nvcc)
    return (posixpath.normpath(posixpath.join(folder, "..", "include")),) if folder else ()


def environment(tools: Tools, folder: str, requirements: str, digest: str) -> tuple[Step, ...]:
    """What vLLM is built with, torch among it: the tree's file `requirements`, by its digest."""
    installs = ("-m", "pip", "install", "--quiet", "--no-input", "-r", f"src/{requirements}")
    return (
        Step("environment", (tools.python, "-m", "venv", "env"), digest, folder),
        Step("requirements", (python_of(folder), *installs), digest, folder, online=True),
    )


def python_of(folder: str) -> str:
    """The interpreter of the environment that is built with."""
    return posixpath.join(folder, "env/bin/python")


def extensions(
    plan: NativePlan, tools: Tools, node: Node, folder: str, tree: str
) -> Iterator[Step]:
    """vLLM's own build of the extensions that changed. `tree` is the runner tree's id."""
    python = python_of(folder)
    arch = (f"TORCH_CUDA_ARCH_LIST={plan.facts.arch}",)
    if plan.works:
        configure = (
            *(tools.cmake, "-S", "src", "-B", "build", "-G", "Ninja"),
            "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
            f"-DVLLM_TARGET_DEVICE={plan.facts.device}",
            f"-DVLLM_PYTHON_EXECUTABLE={python}",
            f"-DFETCHCONTENT_BASE_DIR={posixpath.join(folder, 'deps')}",
            "-DFETCHCONTENT_UPDATES_DISCONNECTED=ON",
            "-DCMAKE_JOB_POOL_COMPILE:STRING=compile",
            f"-DCMAKE_JOB_POOLS:STRING=compile={node.jobs}",
            "-DNVCC_THREADS=1",
            *(
                f"-DCMAKE_{language}_COMPILER_LAUNCHER={node.cache}"
                for language in ("C", "CXX", "CUDA")
                if node.cache
            ),
        )
        fetched = json.dumps([[each.name, each.repository, each.revision] for each in plan.fetched])
        yield Step("configure", configure, fetched, folder, arch, online=True)
    src = posixpath.join(folder, "src")
    if plan.rust:
        crates = ("cargo", "fetch", "--locked", "--manifest-path", "rust/Cargo.toml")
        yield Step("crates", crates, tree, src, online=True)
    for work in plan.works:
        name = work.extension.name
        build = (tools.cmake, "--build", "build", "--target", name)
        yield Step(f"build {name}", build, tree, folder, arch)
        install = (tools.cmake, "--install", "build", "--component", name, "--prefix", "out")
        yield Step(
            f"install {name}", install, tree, folder, gives="out", archs=expected(work.extension)
        )
    if plan.rust:
        rust = (python, "setup.py", "build_rust", "--release", "--inplace")
        device = f"VLLM_TARGET_DEVICE={plan.facts.device}"
        yield Step("rust", rust, tree, src, (device, "CARGO_NET_OFFLINE=true"))


def expected(extension: Extension) -> tuple[str, ...]:
    """The architectures that an extension's fat binary holds, if all was compiled as planned."""
    archs = dict.fromkeys(
        arch.removesuffix("+PTX") for each in extension.sources for arch in each.archs or ()
    )
    return tuple(f"sm_{arch.replace('.', '')}" for arch in archs)
