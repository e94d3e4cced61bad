"""Python source as a syntax tree, parsed once for all who look at it in turn."""

from __future__ import annotations

import ast
from functools import lru_cache


@lru_cache(maxsize=4)
def parsed(source: bytes) -> ast.Module | None:
    """The tree, not to be changed; None for what is no Python (in UTF-8)."""
    try:
        return ast.parse(source.decode("utf-8"))
    except (SyntaxError, ValueError, RecursionError):
        return None
