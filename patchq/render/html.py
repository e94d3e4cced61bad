"""How pages are made: templates of this folder, in which what others wrote stays text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchq.render.console import lines

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
LONGEST = 20_000
"""Characters of a text: the probes keep less, a stranger's file may have more."""


def environment() -> Environment:
    """jinja's, with everything escaped: markup, and characters that no reader should meet raw."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        autoescape=True,
        finalize=_harmless,
        loader=FileSystemLoader(HERE),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )


def cut(value: str, most: int) -> str:
    """`value` with no more than `most` characters, visibly shortened."""
    return f"{value[:most]} ..." if len(value) > most else value


def _harmless(value: Any) -> Any:
    """Control characters escaped, line by line; what is HTML already stays."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return lines(cut(value, LONGEST))
    return value
