"""What a template renders the golden conversations to, kept in upstream/goldens/NAME.json.

    {"schema": "patchq.goldens/1", "template": "NAME", "sha256": "...",
     "conversations": {"plain": {"text": "..."}, "tools": {"refuses": "..."}}}

`refuses`: the template has its own reason not to render the conversation. Made once with
`patchq doctor --template FILE --write-goldens`, read by a person, committed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patchq.doctor.conversations import ALL
from patchq.doctor.rendering import ChatTemplate, Refused
from patchq.errors import PatchqError
from patchq.exl3.checkpoint import read_json

SCHEMA = "patchq.goldens/1"
FOLDER = "goldens"


@dataclass(frozen=True)
class Rendered:
    """What came of one conversation."""

    text: str
    refused: bool = False

    @property
    def kind(self) -> str:
        return "refuses" if self.refused else "text"


Goldens = Mapping[str, Rendered]
"""By conversation."""


def render(template: ChatTemplate) -> dict[str, Rendered]:
    """All conversations. Raises Unrenderable."""
    found = {}
    for conversation in ALL:
        try:
            found[conversation.name] = Rendered(template.render(conversation))
        except Refused as refusal:
            found[conversation.name] = Rendered(str(refusal), refused=True)
    return found


def path_of(name: str) -> str:
    """The file of the template `name`, below the project's root."""
    return f"upstream/{FOLDER}/{name}.json"


def read(path: Path) -> dict[str, Rendered] | None:
    """None where there is no such file. Raises PatchqError for one that is malformed."""
    if not path.exists():
        return None
    where = f"upstream/{FOLDER}/{path.name}"
    data = read_json(path)
    try:
        if data["schema"] != SCHEMA:
            raise ValueError
        return {name: _rendered(entry) for name, entry in data["conversations"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise PatchqError(
            f"{where} is none that patchq wrote ({SCHEMA})",
            "restore it from git, or make it anew with --write-goldens",
        ) from None


def _rendered(entry: Mapping[str, str]) -> Rendered:
    ((kind, text),) = entry.items()
    if kind not in ("text", "refuses") or not isinstance(text, str):
        raise ValueError
    return Rendered(text, kind == "refuses")


def dump(name: str, sha256: str, found: Goldens) -> bytes:
    document = {
        "schema": SCHEMA,
        "template": name,
        "sha256": sha256,
        "conversations": {each: {found[each].kind: found[each].text} for each in found},
    }
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode("utf-8")


def difference(wanted: Rendered, found: Rendered) -> str:
    """Where they part, for a sentence; empty where they are the same."""
    if wanted == found:
        return ""
    if wanted.kind != found.kind:
        return "it refuses it" if found.refused else "it does not refuse it any more"
    old, new = wanted.text.splitlines(keepends=True), found.text.splitlines(keepends=True)
    for number in range(max(len(old), len(new))):
        one = old[number] if number < len(old) else ""
        other = new[number] if number < len(new) else ""
        if one != other:
            return f"line {number + 1} is {other[:80]!r}, not {one[:80]!r}"
    return "it is another text"
