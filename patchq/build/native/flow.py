"""The control flow of CMake files, where a condition may be unknown: pure.

Of conditions that are not decided every branch is taken, and what they leave is joined.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from patchq.build.native.cmake import Argument, Block, Command, blocks
from patchq.build.native.model import Facts, Tree
from patchq.build.native.values import UNKNOWN, Value, decide, expand, expand_all, join
from patchq.errors import PatchqError

ROOT = "CMakeLists.txt"
_HERE = ("CMAKE_SOURCE_DIR", "CMAKE_CURRENT_SOURCE_DIR", "CMAKE_CURRENT_LIST_DIR")
_STEPS = 200_000
_DEEP = 50


class _Return(Exception):
    """The rest of the file or function is not read."""


class _Break(Exception):
    """The loop ends."""


@dataclass(frozen=True)
class _Function:
    macro: bool
    parameters: tuple[str, ...]
    body: tuple[Block, ...]


class Flow(ABC):
    """`known` are the variables of the present scope; `doubt` counts undecided branches around."""

    def __init__(self, tree: Tree, facts: Facts) -> None:
        self.tree = tree
        self.facts = facts
        self.paths = tuple(tree.paths())
        self.known = _start(facts)
        self.outer: list[dict[str, Value]] = []
        self.functions: dict[str, _Function] = {}
        self.files: list[str] = []
        self.file = ROOT
        self.doubt = 0
        self.steps = 0

    def include(self, path: str) -> None:
        data = self.tree.read(path)
        if data is None or path in self.files:
            return
        self.files.append(path)
        before, self.file = self.file, path
        with suppress(_Return, _Break):
            self.run(blocks(data, path))
        self.file = before

    def run(self, body: Sequence[Block]) -> None:
        for block in body:
            command = block.command
            self.steps += 1
            if self.steps > _STEPS:
                raise PatchqError(
                    f"{self.file} runs on and on from line {command.line}",
                    "the build plan is read from it: mend the patch that changes it",
                )
            match command.name:
                case "if":
                    self.branch(block)
                case "foreach" | "while":
                    self.loop(block)
                case "function" | "macro":
                    self.remember(block)
                case "block":
                    self.run(block.branches[0][1])
                case "return" if not self.doubt:
                    raise _Return
                case "break" if not self.doubt:
                    raise _Break
                case _:
                    self.do(command)

    def branch(self, block: Block) -> None:
        """Take the branch that is decided, or all that may be taken, and join what they leave."""
        start = self.known
        ends: list[dict[str, Value]] = []
        for head, body in block.branches:
            sure = True if head.name == "else" else decide(head.arguments, start)
            if sure is False:
                continue
            if sure and not ends:
                self.run(body)
                return
            self.known = dict(start)
            self.doubt += 1
            self.run(body)
            self.doubt -= 1
            ends.append(self.known)
            if sure:
                break
        else:
            ends.append(start)
        self.known = _joined(ends)

    def loop(self, block: Block) -> None:
        """The body once for each item where the items are known, else once with none known."""
        words = block.command.arguments
        body = block.branches[0][1]
        items = self.items(words[1:]) if block.command.name == "foreach" else UNKNOWN
        if not items.exact or not words:
            start, self.known = self.known, dict(self.known)
            if words:
                self.known[words[0].text] = UNKNOWN
            self.doubt += 1
            self.run(body)
            self.doubt -= 1
            self.known = _joined([start, self.known])
            return
        for item in items.items:
            self.known[words[0].text] = Value((item,))
            try:
                self.run(body)
            except _Break:
                break

    def items(self, words: Sequence[Argument]) -> Value:
        if not words or words[0].text not in ("IN", "RANGE"):
            return expand_all(words, self.known)
        if words[0].text == "RANGE" or len(words) < 2:
            return UNKNOWN
        if words[1].text == "ITEMS":
            return expand_all(words[2:], self.known)
        lists = [self.known.get(each.text, UNKNOWN) for each in words[2:]]
        items = tuple(item for value in lists for item in value.items)
        return Value(items, all(value.exact for value in lists))

    def remember(self, block: Block) -> None:
        words = [each.text for each in block.command.arguments]
        if words:
            macro = block.command.name == "macro"
            made = _Function(macro, tuple(words[1:]), block.branches[0][1])
            self.functions[words[0].lower()] = made

    def call(self, function: _Function, words: Sequence[Argument]) -> None:
        if len(self.outer) == _DEEP:
            raise PatchqError(
                f"a function of {self.file} calls itself on and on",
                "the build plan is read from it: mend the patch that changes it",
            )
        given = [expand_all([each], self.known) for each in words]
        if not all(each.exact for each in given):
            # Nothing comes of it that could be known. Functions name what they set first.
            self.known[self.name(words[0])] = UNKNOWN
            return
        inner = dict(zip(function.parameters, given, strict=False))
        rest = given[len(function.parameters) :]
        inner["ARGN"] = Value(
            tuple(item for value in rest for item in value.items), all(v.exact for v in rest)
        )
        self.outer.append(self.known)
        self.known = {**self.known, **inner}
        with suppress(_Return, _Break):
            self.run(function.body)
        outer = self.outer.pop()
        if function.macro:
            # A macro has no scope of its own: what it set stays, its parameters do not.
            outer = {**outer, **{k: v for k, v in self.known.items() if k not in inner}}
        self.known = outer

    @abstractmethod
    def do(self, command: Command) -> None:
        """Run a command that is no control flow."""

    def name(self, argument: Argument) -> str:
        return expand(argument.text, self.known)[0]


def _start(facts: Facts) -> dict[str, Value]:
    known = {name: Value((".",)) for name in _HERE}
    sure = facts.device is not None
    for name, word in {
        "VLLM_TARGET_DEVICE": facts.device,
        "CMAKE_CUDA_COMPILER_VERSION": facts.cuda,
        "CUDA_VERSION": facts.cuda,
    }.items():
        known[name] = UNKNOWN if word is None else Value((word,))
    for name, on in {
        "CUDA_FOUND": facts.device == "cuda",
        "HIP_FOUND": facts.device == "rocm",
        "PYTORCH_FOUND_HIP": facts.device == "rocm",
    }.items():
        known[name] = Value(("ON" if on else "OFF",)) if sure else UNKNOWN
    return known


def _joined(ends: Sequence[dict[str, Value]]) -> dict[str, Value]:
    names = dict.fromkeys(name for end in ends for name in end)
    return {name: join([end.get(name) for end in ends]) for name in names}
