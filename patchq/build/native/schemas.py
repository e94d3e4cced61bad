"""Operators: how csrc registers them, how Python calls them, and where the two part: pure.

Schemas as PyTorch writes them: `name(Tensor a, int b=1, *, bool? c=None) -> (Tensor, Tensor)`.
Only calls by name are seen (`torch.ops._C.name(...)`); what goes by `getattr` is not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from patchq.build.native.model import Tree

_LIBRARY = re.compile(
    r"\b(?:STABLE_)?TORCH_LIBRARY(?P<kind>\w*)"
    r"\s*\(\s*(?P<space>[\w() ,]*?)\s*,\s*(?P<name>\w+)\s*\)\s*\{"
)
_DEF = re.compile(r'\b(\w+)\.def\(\s*((?:"(?:[^"\\\n]|\\.)*"\s*)+)')
_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_SCHEMA = re.compile(r"\s*([\w.]+)\s*\((.*)\)\s*->\s*(.*?)\s*", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*")
_NATIVE = (".cpp", ".cc", ".cu", ".cuh", ".h", ".hpp")
_OTHERS = ("csrc/cpu/", "csrc/rocm/")
"""Libraries of other devices: they register the same names, with schemas of their own."""
_GONE = "the operator is gone, and this still calls it"
_STALE = "the schema changed, and this call did not"


@dataclass(frozen=True)
class Parameter:
    """`kind` is the type as it is written ("Tensor!", "int[]?")."""

    kind: str
    name: str
    default: bool = False
    keyword: bool = False


@dataclass(frozen=True)
class Operator:
    """One registration. `text` is the schema in one line, at `line` (from 1) of `path`."""

    space: str
    name: str
    parameters: tuple[Parameter, ...]
    returns: str
    text: str
    path: str
    line: int


@dataclass(frozen=True)
class Call:
    """A call of an operator in Python. `positional` None: `*args`, not to be counted."""

    space: str
    name: str
    positional: int | None
    keywords: tuple[str, ...]
    text: str
    path: str
    line: int


@dataclass(frozen=True)
class Finding:
    """A call that does not go with the operator's new schema; `new` is None where it is gone.

    `certain`: it fails when it is called. Otherwise it could be called, but means what was before.
    """

    says: str
    operator: str
    old: Operator
    new: Operator | None
    call: Call
    certain: bool


def findings(old: Tree, new: Tree) -> tuple[Finding, ...]:
    """Operators whose schema differs between two trees, with the calls that did not follow."""
    before, after = operators(old), operators(new)
    names = [key for key, each in before.items() if _differs(each, after.get(key))]
    if not names:
        return ()
    wanted = frozenset(names)
    known = {(each.space, each.name, each.text) for each in calls(old, wanted)}
    found: list[Finding] = []
    for call in calls(new, wanted):
        key = (call.space, call.name)
        one, other = before[key], after.get(key)
        wrong = _GONE if other is None else misfits(other, call)
        says = wrong or (_STALE if (*key, call.text) in known and not _grown(one, other) else "")
        if says:
            name = f"torch.ops.{call.space}.{call.name}"
            found.append(Finding(says, name, one, other, call, bool(wrong)))
    return tuple(found)


def _differs(old: Operator, new: Operator | None) -> bool:
    return new is None or (old.parameters, old.returns) != (new.parameters, new.returns)


def _grown(old: Operator, new: Operator | None) -> bool:
    """Whether the schema only takes more than before: a call as before means the same."""
    count = len(old.parameters)
    return (
        new is not None and new.parameters[:count] == old.parameters and new.returns == old.returns
    )


def misfits(operator: Operator, call: Call) -> str:
    """Why `call` cannot be bound to the schema; nothing where it can."""
    if call.positional is None or "**" in call.keywords:
        return ""
    places = [each for each in operator.parameters if not each.keyword]
    if call.positional > len(places):
        return f"it gives {call.positional} arguments, the schema takes {len(places)}"
    given = {each.name for each in places[: call.positional]}
    strange = [each for each in call.keywords if each not in _names(operator)]
    if strange:
        return f"it gives {strange[0]!r}, which the schema does not have"
    twice = [each for each in call.keywords if each in given]
    if twice:
        return f"it gives {twice[0]!r} twice"
    given |= set(call.keywords)
    missing = [e.name for e in operator.parameters if not e.default and e.name not in given]
    return f"it does not give {missing[0]!r}, which the schema asks for" if missing else ""


def _names(operator: Operator) -> frozenset[str]:
    return frozenset(each.name for each in operator.parameters)


def operators(tree: Tree) -> Mapping[tuple[str, str], Operator]:
    """The operators that csrc registers for CUDA, by namespace and name."""
    found: dict[tuple[str, str], Operator] = {}
    for path in tree.paths():
        if not path.startswith("csrc/") or not path.endswith(_NATIVE) or path.startswith(_OTHERS):
            continue
        data = tree.read(path) or b""
        if b"TORCH_LIBRARY" in data:
            text = data.decode("utf-8", "replace")
            for each in registered(text, path):
                found.setdefault((each.space, each.name), each)
    return found


def registered(text: str, path: str) -> Iterator[Operator]:
    """The operators that one source registers."""
    text = _COMMENT.sub(lambda found: " " * len(found[0]), text)
    opened = [each for each in _LIBRARY.finditer(text) if "IMPL" not in each["kind"]]
    ends = [each.start() for each in _LIBRARY.finditer(text)] + [len(text)]
    for library in opened:
        end = min(each for each in ends if each > library.start())
        for found in _DEF.finditer(text, library.end(), end):
            if found[1] != library["name"]:
                continue
            schema = "".join(_TEXT.findall(found[2])).replace('\\"', '"')
            line = text.count("\n", 0, found.start()) + 1
            made = operator(library["space"], schema, path, line)
            if made:
                yield made


def operator(space: str, schema: str, path: str = "", line: int = 0) -> Operator | None:
    """Read a schema; None for one that leaves its types to C++ (`def("name", &function)`)."""
    found = _SCHEMA.fullmatch(schema)
    if not found:
        return None
    parameters: list[Parameter] = []
    keyword = False
    for part in _split(found[2]):
        if part == "*":
            keyword = True
            continue
        head, equals, _ = part.partition("=")
        kind, _, name = head.strip().rpartition(" ")
        parameters.append(Parameter(" ".join(kind.split()), name, bool(equals), keyword))
    returns = " ".join(found[3].split())
    text = " ".join(schema.split())
    return Operator(space, found[1], tuple(parameters), returns, text, path, line)


def _split(text: str) -> Iterator[str]:
    """Parts between commas that stand in no bracket."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()


def calls(tree: Tree, wanted: frozenset[tuple[str, str]]) -> Iterator[Call]:
    """The calls of the `wanted` operators in the package's Python."""
    for path in tree.paths():
        if not path.startswith("vllm/") or not path.endswith(".py"):
            continue
        data = tree.read(path) or b""
        if b"torch.ops" not in data:
            continue
        try:
            nodes = ast.walk(ast.parse(data))
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in nodes:
            if isinstance(node, ast.Call):
                key = _called(node.func)
                if key in wanted:
                    yield _call(key, node, path)


def _called(node: ast.expr) -> tuple[str, str]:
    """("_C", "name") for `torch.ops._C.name`, ("_C", "name.out") for an overload of it."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    parts.reverse()
    if parts[:2] == ["torch", "ops"] and len(parts) in (4, 5):
        return parts[2], ".".join(each for each in parts[3:] if each != "default")
    return "", ""


def _call(key: tuple[str, str], node: ast.Call, path: str) -> Call:
    starred = any(isinstance(each, ast.Starred) for each in node.args)
    keywords = tuple(each.arg or "**" for each in node.keywords)
    count = None if starred else len(node.args)
    return Call(*key, count, keywords, ast.unparse(node), path, node.lineno)
