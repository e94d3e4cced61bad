"""What a source tree builds, as its CMake files say: values without behaviour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol


class Tree(Protocol):
    """The files of a source tree, by path relative to it (`/` between folders)."""

    def read(self, path: str) -> bytes | None:
        """A file's content; None where there is no such file."""

    def paths(self) -> Iterator[str]:
        """All files, in order."""


@dataclass(frozen=True)
class Facts:
    """What is known before CMake runs. None: not known, whatever depends on it may be built.

    `device` is vLLM's VLLM_TARGET_DEVICE, `arch` in the form of TORCH_CUDA_ARCH_LIST ("12.1a"),
    `cuda` the compiler's version ("13.0").
    """

    device: str | None = None
    arch: str | None = None
    cuda: str | None = None


@dataclass(frozen=True)
class Source:
    """A file that an extension compiles.

    `path` may be a pattern where a generator writes the files (`generated`), or lie outside of the
    tree (`${name_SOURCE_DIR}/...`, of an external project). `archs` are the CUDA architectures in
    CMake's form, None where they are not known.
    """

    path: str
    archs: tuple[str, ...] | None = ()
    options: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    generated: bool = False

    @property
    def external(self) -> bool:
        return self.path.startswith(("$", "/"))


@dataclass(frozen=True)
class Extension:
    """One library: what is compiled into it and how. `file` is the CMake file that defines it.

    `generators` are scripts of the tree that write some of its sources.
    """

    name: str
    file: str
    destination: str = ""
    language: str = ""
    sources: tuple[Source, ...] = ()
    definitions: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    abi: str = ""
    generators: tuple[str, ...] = ()

    def source(self, path: str) -> Source | None:
        return next((each for each in self.sources if each.path == path), None)


@dataclass(frozen=True)
class Fetched:
    """A project that CMake fetches while it configures: where from, and which revision."""

    name: str
    repository: str
    revision: str


@dataclass(frozen=True)
class Built:
    """Everything that the tree's CMake files build. `files` are those files themselves,
    `standard` the C++ standard that CUDA sources are compiled for ("20").
    """

    extensions: Mapping[str, Extension] = field(default_factory=dict)
    fetched: tuple[Fetched, ...] = ()
    files: tuple[str, ...] = ()
    standard: str = ""
