"""What the runner's Python asks of its compiled extensions, read without running it: pure.

`import vllm._C_stable_libtorch` at the top of a module fails where the file is missing. An op,
`torch.ops._C.rms_norm`, is looked up when it is first used, and raises AttributeError then: its
name stands as a string in the shared object that registers it (`ops.def("rms_norm(Tensor! ...`).
vLLM's Python asks for ops of all platforms, most of them behind a guard; whether a guard holds
cannot be known from the text, so what stands behind one, or is named for another platform, is
left out, and so are the wrappers of `vllm/_custom_ops.py`, which are called from guarded places.
(Vetted on the CUDA wheels of 0.29.0, 0.32.0 and 0.33.0: nothing is found there.)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchq.judge.parsed import parsed

OP = re.compile(rb"\btorch\.ops\.([A-Za-z_]\w*)\.([A-Za-z_]\w*)")
WRAPPERS = "vllm/_custom_ops.py"
_COMPILED = re.compile(r"_\w*C(?:_[a-z]\w*)?")
_IMPORTS = re.compile(rb"(?m)^(?:import|from)\s[^\n]*\b_\w*C(?:_[a-z]\w*)?\b")
_OTHERS = r"cpu|xpu|rocm|hip|amd|aiter|zentorch|onednn|dnnl|rdna|amx|hpu|tpu|oink"
_NOT_CUDA = re.compile(rf"{_OTHERS}|/inc/|hasattr|find_spec", re.I)
_NOT_CPU = re.compile(r"xpu|rocm|hip|amd|aiter|hpu|tpu|cuda|nvidia", re.I)
_NOTHING = ast.Module([], [])
_NOT_OURS = re.compile(rf"^(?!_)|{_OTHERS}", re.I)


@dataclass(frozen=True)
class Op:
    """`torch.ops.SPACE.NAME`, asked for in the file `where`."""

    space: str
    name: str
    where: str


def imports(name: str, text: bytes, *, gpu: bool) -> Iterator[str]:
    """The compiled modules of vLLM that the module `name` (its path) cannot be loaded without."""
    if (_NOT_CUDA if gpu else _NOT_CPU).search(name) or not _IMPORTS.search(text):
        return
    for node in (parsed(text) or _NOTHING).body:
        for module in _imported(node, name):
            if module.startswith("vllm.") and _COMPILED.fullmatch(module.rpartition(".")[2]):
                yield module


def _imported(node: ast.stmt, name: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        package = node.module or ""
        if node.level:
            above = name.split("/")[: -node.level]
            package = ".".join([*above, *filter(None, [node.module])])
        yield package
        yield from (f"{package}.{alias.name}" for alias in node.names)


def ops(name: str, text: bytes) -> frozenset[Op]:
    """Every op that the file names."""
    return frozenset(Op(a.decode(), b.decode(), name) for a, b in OP.findall(text))


def unregistered(asked: Sequence[Op], objects: Sequence[bytes]) -> tuple[Op, ...]:
    """Those whose name stands in none of the objects' strings, in the order given."""
    # By words first: to look for each name in all bytes would take half a minute.
    words = {word for data in objects for word in re.findall(rb"[A-Za-z_]\w*(?=[(\0])", data)}
    return tuple(op for op in asked if not _stands(op.name.encode(), words, objects))


def _stands(name: bytes, words: set[bytes], objects: Sequence[bytes]) -> bool:
    # The linker lets a string begin inside another one that ends alike.
    return name in words or any(name + end in data for data in objects for end in (b"(", b"\0"))


def registers(space: str, objects: Sequence[bytes]) -> bool:
    """Whether one of the objects registers ops in this namespace."""
    return any(space.encode() + b"\0" in data for data in objects)


def is_own(space: str) -> bool:
    """Whether a namespace is of vLLM's own for CUDA: `_C` and `_moe_C`, not `aten` or `_xpu_C`."""
    return _COMPILED.fullmatch(space) is not None and not _NOT_OURS.search(space)


def unguarded(missing: Sequence[Op], name: str, text: bytes) -> tuple[Op, ...]:
    """Those of `missing`, all asked for in the file `name`, that are meant for CUDA."""
    if name == WRAPPERS or _NOT_CUDA.search(name):
        return ()
    wanted = {(op.space, op.name): op for op in missing}
    found = {key for key, words in _uses(parsed(text) or _NOTHING) if not _NOT_CUDA.search(words)}
    return tuple(op for key, op in wanted.items() if key in found)


def _uses(tree: ast.AST) -> Iterator[tuple[tuple[str, str], str]]:
    """Ops with all that stands around them: names, conditions, decorators, attempts."""
    left: list[tuple[ast.AST, tuple[str, ...]]] = [(tree, ())]
    while left:
        node, above = left.pop()
        match node:
            case ast.Attribute(attr=name, value=ast.Attribute(attr=space)):
                yield (space, name), " ".join((*above, name))
            case ast.If(test=test) | ast.IfExp(test=test):
                above = (*above, _said(test))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                above = (*above, node.name, *map(_said, node.decorator_list))
            case ast.Try():
                above = (*above, "hasattr")
        left += [(child, above) for child in ast.iter_child_nodes(node)]


def _said(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except RecursionError:
        return ""
