"""Which files a source takes in: `#include` followed through the tree, whatever is defined.

What stands under a condition counts as taken in: an object too many costs minutes, one too few a
wrong runner. Names that are not in the tree are the compiler's or another project's.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence

from patchq.build.native.model import Tree

_INCLUDE = re.compile(rb"#[ \t]*include[ \t]*([\"<])([^\">\n]{1,300})[\">]")


class Includes:
    """The includes of one tree. `folders` are searched as with -I, in order."""

    def __init__(self, tree: Tree, folders: Sequence[str] = ("csrc",)) -> None:
        self._tree = tree
        self._folders = tuple(folders)
        self._paths = frozenset(tree.paths())
        self._direct: dict[str, tuple[str, ...]] = {}
        self._strange: dict[str, tuple[str, ...]] = {}

    def reached(self, path: str) -> Mapping[str, str]:
        """Every file that `path` takes in, each with the file that names it first."""
        found: dict[str, str] = {}
        waiting = [path]
        while waiting:
            at = waiting.pop(0)
            for each in self.direct(at):
                if each not in found and each != path:
                    found[each] = at
                    waiting.append(each)
        return found

    def direct(self, path: str) -> tuple[str, ...]:
        """What `path` itself names. A script that writes sources names theirs in its texts."""
        known = self._direct.get(path)
        if known is None:
            data = self._tree.read(path) or b""
            names = dict.fromkeys(
                (found[2].decode("utf-8", "surrogateescape"), found[1] == b'"')
                for found in _INCLUDE.finditer(data)
            )
            places = {name: self._place(path, name, near=near) for name, near in names}
            known = tuple(dict.fromkeys(each for each in places.values() if each))
            self._direct[path] = known
            self._strange[path] = tuple(name for name, place in places.items() if not place)
        return known

    def strange(self, path: str) -> frozenset[str]:
        """The names that `path`, or what it takes in, names and the tree does not have."""
        reached = [path, *self.reached(path)]
        return frozenset(name for each in reached for name in self._strange.get(each, ()))

    def _place(self, path: str, name: str, *, near: bool) -> str:
        folders = (*((posixpath.dirname(path),) if near else ()), *self._folders)
        for folder in folders:
            place = posixpath.normpath(posixpath.join(folder, name))
            if place in self._paths:
                return place
        return ""


def chain(reached: Mapping[str, str], path: str) -> tuple[str, ...]:
    """How `path` is reached: itself, who names it, who names that, ... without the source."""
    found = [path]
    while (after := reached.get(found[-1])) in reached and after is not None:
        found.append(after)
    return tuple(found)
