"""CMake files as commands: pure. (cmake-language(7): comments, quoted and bracket arguments.)"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from patchq.errors import PatchqError
from patchq.paths import show

_SPACE = re.compile(r"(?:\s|#\[(=*)\[.*?\]\1\]|#[^\n]*)*", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")
_BRACKET = re.compile(r"\[(=*)\[\n?(.*?)\]\1\]", re.DOTALL)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_PLAIN = re.compile(r'(?:[^\s()#"\\]|\\.|"[^"\n]*")+')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument as it stands: `raw` takes no `${...}`, `quoted` is one value, never a list."""

    text: str
    quoted: bool = False
    raw: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """`name(arguments)` at `line` (from 1); the name in lower case, as CMake takes it."""

    name: str
    arguments: tuple[Argument, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Block:
    """A command, and what stands in it where it opens a block.

    `branches`: for an `if` the body of each branch with its condition (empty for `else`); a loop,
    a function or a macro has one branch.
    """

    command: Command
    branches: tuple[tuple[Command, tuple[Block, ...]], ...] = ()


_CLOSES = {
    "if": "endif",
    "foreach": "endforeach",
    "while": "endwhile",
    "function": "endfunction",
    "macro": "endmacro",
    "block": "endblock",
}


_ENDS = frozenset({*_CLOSES.values(), "else", "elseif"})
_DEEP = 100
"""Blocks in blocks: vLLM's files have five."""


def blocks(data: bytes, name: str) -> tuple[Block, ...]:
    """The commands of one file with their nesting. Raises PatchqError where it is no CMake."""
    waiting = list(commands(data, name))
    waiting.reverse()
    found, end = _body(waiting, name, 0)
    if end is not None:
        raise _bad(name, end.line, f"{end.name}() closes nothing")
    return found


def _body(
    waiting: list[Command], name: str, depth: int
) -> tuple[tuple[Block, ...], Command | None]:
    found: list[Block] = []
    while waiting:
        command = waiting.pop()
        if command.name in _ENDS:
            return tuple(found), command
        if command.name in _CLOSES:
            if depth == _DEEP:
                raise _bad(name, command.line, "its blocks are nested too deep")
            found.append(_block(command, waiting, name, depth))
        else:
            found.append(Block(command))
    return tuple(found), None


def _block(opening: Command, waiting: list[Command], name: str, depth: int) -> Block:
    close = _CLOSES[opening.name]
    ends = (close, "else", "elseif") if opening.name == "if" else (close,)
    branches: list[tuple[Command, tuple[Block, ...]]] = []
    head = opening
    while True:
        body, end = _body(waiting, name, depth + 1)
        if end is None or end.name not in ends:
            raise _bad(name, opening.line, f"{opening.name}() is not closed")
        branches.append((head, body))
        head = end
        if end.name == close:
            break
    return Block(opening, tuple(branches))


def commands(data: bytes, name: str) -> Iterator[Command]:
    """The commands of a file, one after the other."""
    text = data.decode("utf-8", "surrogateescape")
    at, line, counted = 0, 1, 0
    while True:
        at = _skip(text, at)
        if at == len(text):
            return
        line += text.count("\n", counted, at)
        counted = at
        word = _NAME.match(text, at)
        if not word:
            raise _bad(name, line, f"{text[at : at + 20]!r} is no command")
        at = _skip(text, word.end())
        if text[at : at + 1] != "(":
            raise _bad(name, line, f"{word[0]} has no arguments in parentheses")
        arguments, at = _arguments(text, at + 1, name, line)
        yield Command(word[0].lower(), arguments, line)


def _arguments(text: str, at: int, name: str, line: int) -> tuple[tuple[Argument, ...], int]:
    found: list[Argument] = []
    depth = 1
    while True:
        at = _skip(text, at)
        if at == len(text):
            raise _bad(name, line, "its parenthesis is not closed")
        if text[at] in "()":
            depth += 1 if text[at] == "(" else -1
            at += 1
            if depth == 0:
                return tuple(found), at
            found.append(Argument(text[at - 1], raw=True))
        elif match := _BRACKET.match(text, at):
            found.append(Argument(match[2], quoted=True, raw=True))
            at = match.end()
        elif match := _QUOTED.match(text, at):
            found.append(Argument(_unescape(match[1]), quoted=True))
            at = match.end()
        elif match := _PLAIN.match(text, at):
            found.append(Argument(_unescape(match[0])))
            at = match.end()
        else:
            raise _bad(name, line, f"{text[at : at + 20]!r} is no argument")


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), text)


def _bad(name: str, line: int, why: str) -> PatchqError:
    return PatchqError(
        f"{show(name)}, line {line}: {why}",
        "the build plan is read from this file: mend the patch that changes it",
    )
