"""What lines of a Python file use of the modules around it, looked up in one tree."""

from __future__ import annotations

import ast
import builtins
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from patchq.judge.fit import misfit
from patchq.judge.parsed import parsed
from patchq.judge.resolve import UNKNOWN, Defined, Missing, Module, Thing, World, as_object
from patchq.judge.surface import dotted, import_source

State = Literal["found", "missing", "misfit"]
IMPLICIT = frozenset(dir(builtins)) | {"__file__", "__name__", "__path__", "__class__", "__doc__"}
FORGIVING = frozenset(
    {"AttributeError", "Exception", "ImportError", "ModuleNotFoundError", "NameError", "TypeError"}
)
NAMED = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.ExceptHandler,
    ast.MatchAs,
    ast.MatchStar,
)
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True)
class Use:
    """One use on `line`: `text` is the expression, the same in every tree.

    `says` tells of a missing or unfit one what is wrong; `name` is what is looked for, and
    `module` where it should stand. `unsure`: something that is not read may still have it.
    """

    line: int
    text: str
    state: State
    says: str = ""
    module: str = ""
    name: str = ""
    unsure: bool = False


Later = Callable[[], Thing]
Scope = dict[str, Thing | Later]
"""Names and what they are, found out where a wanted line uses one: modules cost time to read."""


def uses(
    module: str, source: bytes, lines: frozenset[int], world: World, *, package: bool
) -> list[Use]:
    """Uses on `lines` (from 1) of the file that is `module`; what is unknown is left out.

    Guarded ones (under `hasattr`, or in a `try` that catches their failure) are left out too: they
    were written for trees that lack them. Source that is no Python has no uses.
    """
    tree = parsed(source)
    if tree is None:
        return []
    reader = _Reader(module, package, lines, world)
    reader.body(tree.body, [{}], None)
    return reader.found


class _Reader:
    def __init__(self, module: str, package: bool, lines: frozenset[int], world: World) -> None:
        self.module = module
        self.package = module if package else module.rpartition(".")[0]
        self.lines = lines
        self.sorted = sorted(lines)
        self.world = world
        self.found: list[Use] = []

    def body(self, nodes: list[ast.stmt], scopes: list[Scope], owner: Later | None) -> None:
        for node in nodes:
            self.visit(node, scopes, owner)

    def visit(self, node: ast.AST, scopes: list[Scope], owner: Later | None) -> None:
        if not self._reaches(node):
            return
        if isinstance(node, ast.ClassDef):
            for each in (*node.decorator_list, *node.bases, *node.keywords):
                self.visit(each, scopes, owner)
            nested = len(scopes) > 1
            # A class's own names are no scope of its methods; what is read in its body may be.
            self.body(
                node.body,
                [*scopes, _bound_by(node.body)],
                lambda: UNKNOWN if nested else self.world.in_module(self.module, node.name),
            )
        elif isinstance(node, Function):
            self._function(node, scopes, owner)
        elif isinstance(node, ast.Try) and _forgives(node):
            self.body([*node.orelse, *node.finalbody], scopes, owner)
        elif isinstance(node, ast.If | ast.IfExp | ast.BoolOp) and _asks(node):
            if isinstance(node, ast.If):
                self.body(node.orelse, scopes, owner)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            targets: Scope = {
                each.id: UNKNOWN
                for part in node.generators
                for each in ast.walk(part.target)
                if isinstance(each, ast.Name)
            }
            self._children(node, [*scopes, targets], owner)
        else:
            if isinstance(node, ast.Call | ast.Attribute | ast.Name):
                self._use(node, scopes)
            self._children(node, scopes, owner)

    def _reaches(self, node: ast.AST) -> bool:
        """Whether any wanted line is in it; what has no place of its own may have children."""
        first = getattr(node, "lineno", None)
        if first is None:
            return True
        for each in getattr(node, "decorator_list", ()):
            first = min(first, each.lineno)
        at = bisect_left(self.sorted, first)
        return at < len(self.sorted) and self.sorted[at] <= (node.end_lineno or first)  # type: ignore[attr-defined]

    def _children(self, node: ast.AST, scopes: list[Scope], owner: Later | None) -> None:
        for child in ast.iter_child_nodes(node):
            self.visit(child, scopes, owner)

    def _function(self, node: Function, scopes: list[Scope], owner: Later | None) -> None:
        decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
        for each in (*decorators, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(each, scopes, owner)
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        scope: Scope = {each.arg: self._annotated(each.annotation) for each in arguments}
        for rest in (node.args.vararg, node.args.kwarg):
            if rest is not None:
                scope[rest.arg] = UNKNOWN
        if owner is not None and node.args.args and not isinstance(node, ast.Lambda):
            names = {dotted(each) for each in decorators}
            if "classmethod" in names:
                scope[node.args.args[0].arg] = owner
            elif "staticmethod" not in names:
                scope[node.args.args[0].arg] = lambda: as_object(owner())
        outer = scopes[:-1] if owner is not None and len(scopes) > 1 else scopes
        inner: list[ast.stmt] = [ast.Expr(node.body)] if isinstance(node, ast.Lambda) else node.body
        locals_ = _bound_by(inner)
        stack = [*outer, {**locals_, **scope}]
        self._infer(inner, stack, set(scope))
        self.body(inner, stack, None)

    def _infer(self, body: list[ast.stmt], stack: list[Scope], given: set[str]) -> None:
        """Types of the locals that are bound once, from what they are bound to."""
        count: dict[str, int] = dict.fromkeys(given, 1)
        values: Scope = {}
        for node in _own(body):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                count[node.id] = count.get(node.id, 0) + 1
            elif isinstance(node, ast.ImportFrom):
                source = import_source(node, self.package)
                for each in node.names:
                    values[each.asname or each.name] = self._absolute(f"{source}.{each.name}")
            elif isinstance(node, ast.Import):
                for each in node.names:
                    first = each.name if each.asname else each.name.partition(".")[0]
                    values[each.asname or first] = self._absolute(first)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                values[node.target.id] = self._annotated(node.annotation)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                values[node.targets[0].id] = self._valued(node.value, stack)
        stack[-1] |= {key: value for key, value in values.items() if count.get(key, 1) == 1}
        stack[-1] |= {name: UNKNOWN for name, number in count.items() if number > 1}

    def _absolute(self, whole: str) -> Later:
        return lambda: self.world.absolute(whole)

    def _valued(self, node: ast.expr, stack: list[Scope]) -> Later:
        return lambda: self.type_of(node, stack)

    def _annotated(self, annotation: ast.expr | None) -> Thing | Later:
        if annotation is None:
            return UNKNOWN
        return lambda: self.world.object_of(self.module, ast.unparse(annotation))

    def type_of(self, node: ast.expr, scopes: list[Scope]) -> Thing:
        """What the expression gives, read as a value."""
        return self.world.value(self.thing(node, scopes))

    def thing(self, node: ast.expr, scopes: list[Scope]) -> Thing:
        """What the expression names."""
        if isinstance(node, ast.Name):
            for scope in reversed(scopes):
                if node.id in scope:
                    return _known(scope, node.id)
            if node.id in IMPLICIT:
                return UNKNOWN
            return self.world.in_module(self.module, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.type_of(node.value, scopes)
            return self.world.member(owner, node.attr)
        if isinstance(node, ast.Call):
            return self.world.result(self.thing(node.func, scopes))
        if isinstance(node, ast.Await):
            return self.thing(node.value, scopes)
        return UNKNOWN

    def _use(self, node: ast.Call | ast.Attribute | ast.Name, scopes: list[Scope]) -> None:
        if node.lineno not in self.lines:
            return
        if isinstance(node, ast.Call):
            target = self.thing(node.func, scopes)
            if isinstance(target, Defined) and target.name.kind in ("function", "class"):
                self._called(node, target)
        elif isinstance(node.ctx, ast.Load):
            self._seen(node.lineno, ast.unparse(node), self.thing(node, scopes))

    def _called(self, node: ast.Call, target: Defined) -> None:
        why = misfit(self.world, target, node)
        says = f"{target.where} {why}" if why else ""
        state: State = "misfit" if why else "found"
        name = target.where.removeprefix(f"{target.module}.")
        self.found.append(
            Use(node.lineno, f"{ast.unparse(node)} fits", state, says, target.module, name)
        )

    def _seen(self, line: int, text: str, thing: Thing) -> None:
        if isinstance(thing, Missing):
            says = f"{thing.owner} has no {thing.name!r}"
            name = f"{thing.owner}.{thing.name}".removeprefix(f"{thing.module}.")
            self.found.append(Use(line, text, "missing", says, thing.module, name, thing.unsure))
        elif isinstance(thing, Defined | Module):
            module = thing.name if isinstance(thing, Module) else thing.module
            self.found.append(Use(line, text, "found", "", module))

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        source = import_source(node, self.package) if isinstance(node, ast.ImportFrom) else ""
        for each in node.names:
            if each.name == "*" or each.lineno not in self.lines:
                continue
            whole = f"{source}.{each.name}" if source else each.name
            self._seen(each.lineno, f"import {whole}", self.world.absolute(whole))


def _known(scope: Scope, name: str) -> Thing:
    found = scope[name]
    if callable(found):
        # What is made of itself (`x = x.next`) ends here.
        scope[name] = UNKNOWN
        found = scope[name] = found()
    return found


def _own(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of a body in source order, functions and classes inside of it left out."""
    todo: list[ast.AST] = list(reversed(body))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            todo += reversed(list(ast.iter_child_nodes(node)))


def _bound_by(body: list[ast.stmt]) -> Scope:
    """Every name that the body binds, of whatever type."""
    names: set[str] = set()
    for node in _own(body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(each.asname or each.name).partition(".")[0] for each in node.names}
        elif isinstance(node, NAMED) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
    return dict.fromkeys(names, UNKNOWN)


def _forgives(node: ast.Try) -> bool:
    caught: set[str] = set()
    for handler in node.handlers:
        if handler.type is None:
            return True
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        caught |= {dotted(kind).rpartition(".")[2] for kind in kinds}
    return bool(caught & FORGIVING)


def _asks(node: ast.If | ast.IfExp | ast.BoolOp) -> bool:
    """Whether its condition asks first if the thing is there."""
    tested = node.values[:-1] if isinstance(node, ast.BoolOp) else [node.test]
    return any(
        isinstance(each, ast.Call) and dotted(each.func) == "hasattr"
        for condition in tested
        for each in ast.walk(condition)
    )
