"""Read a tree's CMake files for what they build, without CMake and without a compiler: pure.

Conditions that the facts decide are decided; of the others every branch is taken, and what stands
in them may be built. The tree's own functions are run, so that a release that sorts architectures
otherwise is read as it means them.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence

from patchq.build.native import strings
from patchq.build.native.cmake import Argument, Command
from patchq.build.native.collect import Collector, normal
from patchq.build.native.flow import ROOT, Flow
from patchq.build.native.model import Built, Facts, Tree
from patchq.build.native.values import UNKNOWN, Value, expand, expand_all, join, split

_DEFINES = re.compile(r"define_\w*extension_target")
_NVCC = ("-DENABLE_FP8", "--expt-relaxed-constexpr")
"""What get_torch_gpu_compiler_flags leaves of torch's COMMON_NVCC_FLAGS from CUDA 12 on."""


def evaluate(tree: Tree, facts: Facts) -> Built:
    """What `tree` builds under `facts`; nothing where it has no CMakeLists.txt.

    Raises PatchqError where one of its files is no CMake, or runs on and on.
    """
    machine = _Machine(tree, facts)
    machine.include(ROOT)
    standard = machine.known.get("CMAKE_CUDA_STANDARD", UNKNOWN)
    return machine.collector.built(machine.files, standard.text)


class _Machine(Flow):
    def __init__(self, tree: Tree, facts: Facts) -> None:
        super().__init__(tree, facts)
        self.collector = Collector()

    def do(self, command: Command) -> None:
        words = command.arguments
        action = _ACTIONS.get(command.name)
        if action is not None:
            if words:
                action(self, words)
        elif _DEFINES.fullmatch(command.name):
            self.collector.define(self.expanded(words), self.file)
        elif command.name in self.functions:
            self.call(self.functions[command.name], words)

    def expanded(self, words: Sequence[Argument]) -> list[str]:
        return list(expand_all(words, self.known).items)

    def do_include(self, words: Sequence[Argument]) -> None:
        self.include(normal(self.name(words[0])))

    def do_set(self, words: Sequence[Argument]) -> None:
        name, rest = self.name(words[0]), list(words[1:])
        plain = ["" if each.quoted else each.text for each in rest]
        if "CACHE" in plain:
            # A cache entry is a default: what is given before stands.
            if name in self.known:
                return
            rest = rest[: plain.index("CACHE")]
        value = expand_all([e for e in rest if e.quoted or e.text != "PARENT_SCOPE"], self.known)
        if "PARENT_SCOPE" not in plain:
            self.known[name] = value
        elif self.outer:
            old = self.outer[-1].get(name)
            self.outer[-1][name] = join([old, value]) if self.doubt else value

    def do_unset(self, words: Sequence[Argument]) -> None:
        self.known.pop(self.name(words[0]), None)

    def do_list(self, words: Sequence[Argument]) -> None:
        if len(words) < 2:
            return
        what, name = words[0].text.upper(), self.name(words[1])
        value = self.known.get(name, Value())
        changed = strings.on_list(what, value, expand_all(words[2:], self.known))
        if changed is not None:
            self.known[name] = changed
        elif words[2:]:
            more = [self.name(each) for each in words[2:-1]]
            self.known[self.name(words[-1])] = strings.from_list(what, value, more)

    def do_string(self, words: Sequence[Argument]) -> None:
        texts = [expand(each.text, self.known) for each in words]
        exact = all(sure for _, sure in texts)
        for name, value in strings.string([text for text, _ in texts]).items():
            sure = value is not None and exact
            self.known[name] = Value(tuple(split(value or ""))) if sure else UNKNOWN

    def do_file(self, words: Sequence[Argument]) -> None:
        if len(words) < 3 or words[0].text.upper() not in ("GLOB", "GLOB_RECURSE"):
            return
        texts = [expand(each.text, self.known) for each in words[2:]]
        found: list[str] = []
        for at, (text, _) in enumerate(texts):
            if text in ("RELATIVE", "CONFIGURE_DEPENDS") or (at and texts[at - 1][0] == "RELATIVE"):
                continue
            pattern = normal(text)
            there = [path for path in self.paths if _matches(path, pattern)]
            # What a script writes while CMake configures is not in the tree.
            found += there or [pattern]
            if not there:
                self.collector.generated.add(pattern)
        self.known[words[1].text] = Value(tuple(found), all(exact for _, exact in texts))

    def do_process(self, words: Sequence[Argument]) -> None:
        for path in map(normal, self.expanded(words)):
            known = path in self.collector.scripts or path not in self.paths
            if path.endswith((".py", ".sh")) and not known:
                self.collector.scripts.append(path)

    def do_flags(self, words: Sequence[Argument]) -> None:
        """The options that torch's own CMake files give nvcc for TORCH_CUDA_ARCH_LIST."""
        name, arch = self.name(words[0]), self.facts.arch
        plain = (arch or "").replace(".", "")
        flag = f"-gencode arch=compute_{plain},code=sm_{plain}"
        self.known[name] = UNKNOWN if arch is None else Value((flag,))

    def do_nvcc(self, words: Sequence[Argument]) -> None:
        self.known[self.name(words[0])] = Value(_NVCC)

    def do_hipify(self, words: Sequence[Argument]) -> None:
        """hipify_sources_target(OUT NAME SOURCES): the same sources, translated."""
        self.known[self.name(words[0])] = expand_all(words[2:], self.known)

    def do_gencode(self, words: Sequence[Argument]) -> None:
        """set_gencode_flags_for_srcs(SRCS ... CUDA_ARCHS ...)"""
        taken: dict[str, list[Argument]] = {"": []}
        what = ""
        for each in words:
            if each.text in ("SRCS", "CUDA_ARCHS", "BUILD_PTX_FOR_ARCH") and not each.quoted:
                what = each.text
            else:
                taken.setdefault(what, []).append(each)
        archs = expand_all(taken.get("CUDA_ARCHS", []), self.known)
        self.collector.gencode(
            self.expanded(taken.get("SRCS", [])), UNKNOWN if self.doubt else archs
        )

    def do_properties(self, words: Sequence[Argument]) -> None:
        at = next((i for i, each in enumerate(words) if each.text == "PROPERTIES"), len(words))
        pairs = [self.expanded([each]) for each in words[at + 1 :]]
        self.collector.properties(self.expanded(words[:at]), pairs)


def _matches(path: str, pattern: str) -> bool:
    return path.count("/") == pattern.count("/") and fnmatch.fnmatchcase(path, pattern)


_Action = Callable[[_Machine, Sequence[Argument]], None]


def _adds(what: str) -> _Action:
    return lambda machine, words: machine.collector.add(what, machine.expanded(words), machine.file)


def _library(machine: _Machine, words: Sequence[Argument]) -> None:
    machine.collector.library(machine.expanded(words), machine.file)


_ACTIONS: dict[str, _Action] = {
    "include": _Machine.do_include,
    "set": _Machine.do_set,
    "unset": _Machine.do_unset,
    "list": _Machine.do_list,
    "string": _Machine.do_string,
    "file": _Machine.do_file,
    "execute_process": _Machine.do_process,
    "clear_cuda_arches": _Machine.do_flags,
    "clear_cuda_gencode_flags": _Machine.do_flags,
    "get_torch_gpu_compiler_flags": _Machine.do_nvcc,
    "hipify_sources_target": _Machine.do_hipify,
    "set_gencode_flags_for_srcs": _Machine.do_gencode,
    "set_source_files_properties": _Machine.do_properties,
    "add_library": _library,
    "python_add_library": _library,
    "target_sources": _adds("sources"),
    "target_compile_definitions": _adds("definitions"),
    "target_compile_options": _adds("options"),
    "target_include_directories": _adds("includes"),
    "fetchcontent_declare": lambda machine, words: machine.collector.fetch(machine.expanded(words)),
}
