"""Hand a result to render: JSON on stdout, or a drawing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from patchq.render import jsons
from patchq.render.console import console


def give(
    as_json: bool,
    value: Callable[[], dict[str, Any]],
    drawing: Callable[[], object],
    *,
    raw: bytes = b"",
) -> None:
    """Print `value` as JSON, or what `drawing` draws.

    Where no terminal reads it, no blanks fill the lines up, and `raw` (a diff, for other programs)
    comes in place of the drawing. A terminal breaks the lines of such a text itself.
    """
    if as_json:
        sys.stdout.write(jsons.dump(value()) + "\n")
    elif sys.stdout.isatty():
        console().print(drawing(), soft_wrap=bool(raw))
    elif raw:
        sys.stdout.flush()
        sys.stdout.buffer.write(raw)
    else:
        with console().capture() as drawn:
            console().print(drawing())
        told = drawn.get().removesuffix("\n").split("\n")
        sys.stdout.write("".join(f"{line.rstrip()}\n" for line in told))


def give_by(as_json: bool, values: str, drawings: str, what: str, report: object) -> None:
    """Print a report as the function `what` has it, of the two modules of render so named."""

    def of(module: str) -> Any:
        return getattr(importlib.import_module(f"patchq.render.{module}"), what)(report)

    give(as_json, lambda: of(values), lambda: of(drawings))


def say(message: str | None) -> None:
    """One line for people, beside the result."""
    if message:
        from patchq.render.console import text

        console(stderr=True).print(text(message))
