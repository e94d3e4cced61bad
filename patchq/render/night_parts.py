"""The pieces that texts about nights are made of, each of them harmless in GitHub's Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from patchq.nightly.model import Night, Stage
from patchq.paths import show
from patchq.release.redact import Cleaner
from patchq.render.markdown import plain

SHORT = 160
"""Characters of a reason in a table."""
LONG = 1000
"""Characters of a sentence, at most."""
_SIGNS = {
    "done": "done",
    "failed": "**failed**",
    "asks": "**asks**",
    "unreached": "*not reached*",
    "late": "**out of time**",
    "left out": "left out",
}


def why(night: Night) -> str:
    cause = f": {text(night.fault.cause, SHORT)}" if night.fault else ""
    return f"{night.state}{cause}"


def stages(night: Night) -> Iterator[str]:
    if night.stages:
        yield "### Stages"
        yield ""
        yield "| stage | | took | |"
        yield "|---|---|--:|---|"
        yield from map(_stage, night.stages)


def _stage(stage: Stage) -> str:
    took = "" if stage.state == "left out" else _took(stage.seconds)
    says = text(stage.says, SHORT)
    return f"| {text(stage.name)} | {_SIGNS.get(stage.state, '')} | {took} | {says} |"


def _took(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02} min"


def text(value: str, most: int = LONG) -> str:
    """Words of others, or of machines, harmless and clean, in `most` characters."""
    return plain(short(Cleaner({}).clean(value), most))


def short(value: str, most: int) -> str:
    return value if len(value) <= most else value[: most - 3] + "..."


def name(value: str) -> str:
    """A name for a title, where no markup helps: letters, digits, and what stands in versions."""
    return re.sub(r"[^A-Za-z0-9._+-]", "-", short(value, 60))


def fence(lines: Sequence[str], language: str) -> list[str]:
    """A block that holds the lines whatever is in them."""
    told = [show(line) for line in lines]
    longest = max((len(run) for line in told for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *told, fence]


def joined(parts: Sequence[Sequence[str]]) -> str:
    return "\n\n".join("\n".join(part) for part in parts if part)


def cut(body: str, most: int) -> str:
    """The text within `most` characters, cut at a line that all can see; no fence stays open."""
    if len(body) <= most:
        return body
    note = "*Cut here: this is as much as fits.*"
    kept: list[str] = []
    fence, size = "", len(note) + 8
    for line in body.split("\n"):
        found = re.match(r"`{3,}", line)
        if size + len(line) + 1 + 2 * len(found[0] if found else fence) > most:
            break
        kept.append(line)
        size += len(line) + 1
        if found and not fence:
            fence = found[0]
        elif found and line == fence:
            fence = ""
    return "\n".join([*kept, *([fence] if fence else []), "", note])
