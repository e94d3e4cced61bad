"""One console for people on stdout, one for progress and errors on stderr."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

from patchq.paths import show

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


@lru_cache(maxsize=2)
def console(*, stderr: bool = False) -> Console:
    """rich's console; `NO_COLOR` and redirected output switch colours off."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None
    if not stream.isatty() and "COLUMNS" not in os.environ:
        width = 120
    return Console(stderr=stderr, width=width, highlight=False, emoji=False, markup=False)


def text(value: str | bytes, style: str = "") -> Text:
    """`value` harmless for a terminal: titles and paths come from strangers."""
    from rich.text import Text

    return Text(show(value), style=style)


def lines(value: str) -> str:
    """A text of several lines, each of them harmless."""
    return "\n".join(show(line) for line in value.split("\n"))


DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def diff(value: str | bytes, indent: int = 0) -> Text:
    """A diff in colours, each line whole and harmless."""
    from rich.text import Text

    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    found = Text(no_wrap=False, overflow="fold")
    for place, line in enumerate(value.removesuffix("\n").split("\n")):
        found.append("\n" if place else "")
        found.append(" " * indent + show(line), DIFF_STYLES.get(line[:1], ""))
    return found
