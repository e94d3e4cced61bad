"""Writes docs/patchq.1, the man page, from the help texts of the commands.

    .venv/bin/python ci/man.py

A test compares the file with what this prints, so that the two never say different things.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from patchq import __version__
from patchq.cli.main import COMMANDS, app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "patchq.1"
EXIT = (
    ("0", "Done."),
    ("1", "A mistake that one can mend: a sentence says what is wrong, another what to do."),
    ("2", "The command line does not make sense."),
    ("3", "A bug of patchq; the message names a log."),
    ("4", "A decision is needed: a conflict, or a patch about which the evidence disagrees."),
    ("5", "A proof or a gate failed; nothing was changed."),
    ("6", "A network, a node or a forge was not reached; the rest is done."),
    ("130", "Interrupted; nothing is half done."),
)
ENVIRONMENT = (
    ("GITHUB_TOKEN, GH_TOKEN", "The token for GitHub. It is read from nowhere else."),
    ("HF_ENDPOINT, HF_TOKEN", "The hub that models come from, and the token for it."),
    ("NO_COLOR", "No colours, whatever the terminal can do."),
    ("PATCHQ_CACHE", "Where stores and downloads are kept, instead of the user's cache folder."),
    ("PATCHQ_HOME", "Where `patchq install` keeps what is not the runner's."),
    ("VISUAL, EDITOR", "The editor of `patchq edit`."),
)
FILES = (
    ("series/", "The patches: a quilt folder."),
    ("upstream/NAME.toml", "What the queue NAME patches, and where its releases come from."),
    ("upstream/state.json", "What the queues stand on; written by patchq."),
    (".git/patchq/", "Journal, lock, sessions, and the tree of push and pop."),
)


def page() -> str:
    """The whole page, in man(7)'s macros."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    group: Any = get_command(app)
    yield f'.TH PATCHQ 1 "" "patchq {__version__}" "User Commands"'
    yield from (".SH NAME", "patchq \\- " + _roff(str(group.help)).rstrip("."))
    yield from (".SH SYNOPSIS", ".B patchq", "COMMAND [OPTIONS] [ARGUMENTS]")
    yield ".SH COMMANDS"
    for name in COMMANDS:
        command = group.get_command(None, name)
        inner = getattr(command, "commands", {})
        if inner:
            yield f".SS patchq {_roff(name)}"
            yield from _text(str(command.help))
            for each, below in inner.items():
                yield from _command(f"patchq {name} {each}", below)
        else:
            yield from _command(f"patchq {name}", command)
    for title, entries in (
        ("EXIT STATUS", EXIT),
        ("ENVIRONMENT", ENVIRONMENT),
        ("FILES", FILES),
    ):
        yield f".SH {title}"
        for term, says in entries:
            yield from (".TP", f".B {_roff(term)}", _roff(says))
    yield from (".SH SEE ALSO", ".BR quilt (1),", ".BR git (1),", ".BR git-am (1)")


def _command(path: str, command: Any) -> Iterator[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    shown = " ".join(_metavar(each) for each in arguments)
    yield f'.SS "{_roff(path)}{" " + _roff(shown) if shown else ""}"'
    yield from _text(str(command.help))
    for each in command.params:
        if each.param_type_name != "option" or each.name == "help":
            continue
        names = ", ".join(_roff(name) for name in (*each.opts, *each.secondary_opts))
        value = "" if each.is_flag else f" \\fI{_roff(_metavar(each))}\\fR"
        yield from (".TP", f"\\fB{names}\\fR{value}", _roff(str(each.help or "")))


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _text(help_text: str) -> Iterator[str]:
    """Paragraphs; one that is a call of patchq is an example."""
    for part in re.split(r"\n\s*\n", help_text.strip()):
        words = " ".join(part.split())
        if words.startswith("patchq "):
            yield from (".PP", ".RS", ".nf", f"\\fB{_roff(words)}\\fR", ".fi", ".RE")
        else:
            yield from (".PP", _roff(words))


def _roff(text: str) -> str:
    """`text` as it is meant, whatever it starts with."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return "\\&" + plain if plain.startswith((".", "'")) else plain


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
