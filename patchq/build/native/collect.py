"""What the commands of CMake files say of extensions, gathered while they are read."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from patchq.build.native.model import Built, Extension, Fetched, Source
from patchq.build.native.values import Value

_FLAGS = ("WITH_SOABI",)
_WORDS = ("DESTINATION", "LANGUAGE", "USE_SABI")
_LISTS = ("SOURCES", "ARCHITECTURES", "COMPILE_FLAGS", "INCLUDE_DIRECTORIES", "LIBRARIES")
_SCOPES = frozenset({"PRIVATE", "PUBLIC", "INTERFACE"})
FOLDER = "csrc"
"""define_extension_target has every extension search it for headers."""


@dataclass
class _Target:
    file: str
    words: dict[str, list[str]] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    definitions: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    includes: list[str] = field(default_factory=list)


@dataclass
class _Properties:
    """What is set for one source. `archs` None: not known."""

    archs: list[str] | None = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    includes: list[str] = field(default_factory=list)


class Collector:
    """Lists of words come in expanded, paths as they stand in the CMake files."""

    def __init__(self) -> None:
        self._targets: dict[str, _Target] = {}
        self._properties: dict[str, _Properties] = {}
        self._fetched: dict[str, Fetched] = {}
        self.generated: set[str] = set()
        self.scripts: list[str] = []

    def define(self, words: Sequence[str], file: str) -> None:
        """define_extension_target(NAME DESTINATION d LANGUAGE l SOURCES ...)"""
        if not words:
            return
        target = self._target(words[0], file)
        target.file = file
        what = ""
        for text in words[1:]:
            if text in (*_WORDS, *_LISTS):
                what = text
            elif text in _FLAGS:
                what = ""
            elif what:
                target.words.setdefault(what, []).append(text)
        target.sources += target.words.pop("SOURCES", [])
        target.options += target.words.pop("COMPILE_FLAGS", [])
        target.includes += [FOLDER, *target.words.pop("INCLUDE_DIRECTORIES", [])]

    def library(self, words: Sequence[str], file: str) -> None:
        """add_library and Python_add_library, outside of vLLM's own function."""
        if words and not {"IMPORTED", "ALIAS", "INTERFACE"} & set(words[1:]):
            named = [each for each in words[1:] if "." in posixpath.basename(each)]
            self._target(words[0], file).sources += named

    def add(self, what: str, words: Sequence[str], file: str) -> None:
        """target_sources and its like: `what` is a field of the target."""
        if words:
            kept = [each for each in words[1:] if each not in _SCOPES]
            getattr(self._target(words[0], file), what).extend(kept)

    def gencode(self, paths: Iterable[str], archs: Value) -> None:
        for path in map(normal, paths):
            its = self._properties.setdefault(path, _Properties())
            if not archs.exact or its.archs is None:
                its.archs = None
            else:
                its.archs += [each for each in archs.items if each not in its.archs]

    def properties(self, paths: Iterable[str], pairs: Sequence[Sequence[str]]) -> None:
        """set_source_files_properties: `pairs` are names and values by turns."""
        for path in map(normal, paths):
            its = self._properties.setdefault(path, _Properties())
            for name, values in zip(pairs[::2], pairs[1::2], strict=False):
                if list(name) in (["COMPILE_FLAGS"], ["COMPILE_OPTIONS"]):
                    its.options += [word for value in values for word in value.split()]
                elif list(name) == ["INCLUDE_DIRECTORIES"]:
                    its.includes += values

    def fetch(self, words: Sequence[str]) -> None:
        """FetchContent_Declare(NAME GIT_REPOSITORY r GIT_TAG t ...)"""
        said = dict(pairwise(words))
        if words and "GIT_REPOSITORY" in said:
            revision = said.get("GIT_TAG", "")
            self._fetched[words[0]] = Fetched(words[0], said["GIT_REPOSITORY"], revision)

    def built(self, files: Iterable[str], standard: str) -> Built:
        made = {name: self._extension(name) for name in sorted(self._targets)}
        kept = {name: each for name, each in made.items() if each.sources}
        return Built(kept, tuple(self._fetched.values()), tuple(files), standard)

    def _target(self, name: str, file: str) -> _Target:
        return self._targets.setdefault(name, _Target(file))

    def _extension(self, name: str) -> Extension:
        target = self._targets[name]
        paths = dict.fromkeys(map(normal, target.sources))
        words = {key: value[0] for key, value in target.words.items()}
        return Extension(
            name,
            target.file,
            words.get("DESTINATION", ""),
            words.get("LANGUAGE", ""),
            tuple(map(self._source, paths)),
            _unique(each.removeprefix("-D") for each in target.definitions),
            _unique(target.options),
            _unique(map(normal, target.includes)),
            words.get("USE_SABI", ""),
            tuple(each for each in self.scripts if any(writes(each, path) for path in paths)),
        )

    def _source(self, path: str) -> Source:
        its = self._properties.get(path, _Properties())
        archs = None if its.archs is None else tuple(its.archs)
        folders = _unique(map(normal, its.includes))
        return Source(path, archs, _unique(its.options), folders, path in self.generated)


def normal(text: str) -> str:
    return posixpath.normpath(text) if text else text


def writes(script: str, path: str) -> bool:
    """Whether `script` writes the files of the pattern `path`: they lie beside or below it."""
    return "*" in path and path.startswith(posixpath.dirname(script) + "/")


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
