"""Hand a result to render: JSON on stdout, or a drawing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from patchq.render import jsons
from patchq.render.console import console


def give(as_json: bool, value: Callable[[], dict[str, Any]], drawing: Callable[[], object]) -> None:
    """Print `value` as JSON, or what `drawing` draws."""
    if as_json:
        sys.stdout.write(jsons.dump(value()) + "\n")
    else:
        console().print(drawing())


def say(message: str | None) -> None:
    """One line for people, beside the result."""
    if message:
        from patchq.render.console import text

        console(stderr=True).print(text(message))
