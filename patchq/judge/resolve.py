"""Follow names through the modules of a tree, as Python would, from their surfaces alone.

What cannot be seen (a package that is not read, a base class from there) is `UNKNOWN`: nothing is
ever said of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from patchq.judge.surface import Name, Surface, only_class


@dataclass(frozen=True, slots=True)
class Module:
    """A module that is read; `name` is dotted."""

    name: str


@dataclass(frozen=True, slots=True)
class Defined:
    """A name that a module or a class defines, `where` dotted. `instance`: an object of that class;
    `through`: reached through an instance, so that a method has its first argument.
    """

    module: str
    where: str
    name: Name
    instance: bool = False
    through: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """`owner` (dotted) does not define `name`. `module` is where its source stands; `unsure`: a
    base class that is not read, or the module's own `__getattr__`, may still have it.
    """

    owner: str
    name: str
    module: str
    unsure: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing can be said."""


UNKNOWN = Unknown()
Thing = Module | Defined | Missing | Unknown
DEEP = 40
"""Imports and bases that are followed at most: a ring of them is nobody's finding."""


class World:
    """Names of one tree. `surface` gives a module's, None where it is not read."""

    def __init__(self, surface: Callable[[str], Surface | None]) -> None:
        self.surface = surface

    def absolute(self, dotted: str, depth: int = 0) -> Thing:
        """What an import of `dotted` gives."""
        first, *rest = dotted.split(".")
        if self.surface(first) is None:
            return UNKNOWN
        thing: Thing = Module(first)
        for part in rest:
            if isinstance(thing, Missing):
                return thing
            thing = self.member(thing, part, depth + 1)
        return thing

    def member(self, owner: Thing, attribute: str, depth: int = 0) -> Thing:
        """`owner.attribute`."""
        if depth > DEEP or (attribute.startswith("__") and attribute.endswith("__")):
            return UNKNOWN
        if isinstance(owner, Module):
            return self._of_module(owner.name, attribute, depth)
        if isinstance(owner, Defined) and owner.name.kind == "class":
            return self._of_class(owner, attribute, depth)
        return UNKNOWN

    def in_module(self, module: str, text: str, depth: int = 0) -> Thing:
        """What the expression `text`, dotted, means in the scope of `module`."""
        first, *rest = text.split(".")
        thing = self._of_module(module, first, depth)
        for part in rest:
            if isinstance(thing, Missing):
                return UNKNOWN
            thing = self.member(self.value(thing, depth + 1), part, depth + 1)
        return thing

    def object_of(self, module: str, annotation: str, depth: int = 0) -> Thing:
        """An object of the type that `annotation` names in `module`; it may go on from a class to
        what its objects hold (`Config.cache`).
        """
        text = only_class(annotation)
        if not text or depth > DEEP:
            return UNKNOWN
        thing = self.in_module(module, text, depth + 1)
        if isinstance(thing, Defined) and thing.name.kind == "attribute":
            return self.value(thing, depth + 1)
        return as_object(thing)

    def value(self, thing: Thing, depth: int = 0) -> Thing:
        """What reading the name gives: an attribute's type as an object of it."""
        if isinstance(thing, Defined) and thing.name.kind == "attribute":
            return self.object_of(thing.module, thing.name.type, depth)
        return thing

    def result(self, thing: Thing) -> Thing:
        """What calling it gives."""
        if isinstance(thing, Defined) and not thing.instance:
            if thing.name.kind == "class":
                return as_object(thing)
            if thing.name.kind == "function":
                return self.object_of(thing.module, thing.name.type)
        return UNKNOWN

    def bases(self, owner: Defined, depth: int = 0) -> list[Thing]:
        """The base classes of a class, `object` left out."""
        return [
            self.in_module(owner.module, base.partition("[")[0], depth + 1)
            for base in owner.name.bases
            if base.partition("[")[0].rpartition(".")[2]
            not in ("object", "ABC", "Generic", "Protocol")
        ]

    def _of_module(self, module: str, attribute: str, depth: int) -> Thing:
        surface = self.surface(module)
        if surface is None or depth > DEEP:
            return UNKNOWN
        name = surface.names.get(attribute)
        inner = f"{module}.{attribute}"
        if name is not None and not (name.kind == "import" and name.target == inner):
            return self._named(module, inner, name, depth)
        if self.surface(inner) is not None:
            return Module(inner)
        unsure = surface.dynamic
        for star in surface.stars:
            thing = self._of_module(star, attribute, depth + 1)
            if isinstance(thing, Unknown) or (isinstance(thing, Missing) and thing.unsure):
                unsure = True
            elif not isinstance(thing, Missing):
                return thing
        return Missing(module, attribute, module, unsure)

    def _named(self, module: str, where: str, name: Name, depth: int) -> Thing:
        if name.kind != "import":
            return Defined(module, where, name)
        thing = self.absolute(name.target, depth + 1)
        # An import that is broken in upstream itself is upstream's own matter.
        return UNKNOWN if isinstance(thing, Missing) else thing

    def _of_class(self, owner: Defined, attribute: str, depth: int) -> Thing:
        name = owner.name.members.get(attribute)
        if name is not None:
            where = f"{owner.where}.{attribute}"
            thing = self._named(owner.module, where, name, depth)
            if isinstance(thing, Defined) and owner.instance:
                return Defined(thing.module, thing.where, thing.name, thing.instance, True)
            return thing
        unsure = "__getattr__" in owner.name.members
        for base in self.bases(owner, depth):
            if not isinstance(base, Defined) or base.name.kind != "class":
                unsure = True
                continue
            below = Defined(base.module, base.where, base.name, owner.instance)
            thing = self._of_class(below, attribute, depth + 1)
            if not isinstance(thing, Missing):
                return thing
            unsure = unsure or thing.unsure
        return Missing(owner.where, attribute, owner.module, unsure)


def as_object(thing: Thing) -> Thing:
    if isinstance(thing, Defined) and thing.name.kind == "class":
        return Defined(thing.module, thing.where, thing.name, instance=True)
    return UNKNOWN
