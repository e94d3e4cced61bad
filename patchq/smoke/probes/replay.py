"""A conversation that went wrong, asked again and again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from patchq.errors import PatchqError
from patchq.smoke.asking import Asking
from patchq.smoke.model import NotRun, Wrong
from patchq.smoke.report import Probe

MAX_FILE = 16 << 20
_OURS = frozenset({"model", "stream", "stream_options", "n"})
"""What a run sets itself."""


def read(path: Path) -> Mapping[str, Any]:
    """The body of a request, or its messages alone, as JSON. Raises PatchqError."""
    try:
        if path.stat().st_size > MAX_FILE:
            raise PatchqError(f"{path} is larger than {MAX_FILE >> 20} MB", "name a conversation")
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise PatchqError(f"there is no file {path}", "name one that has a conversation") from None
    except (ValueError, RecursionError) as error:
        raise PatchqError(
            f"{path} is no JSON: {error}", "write the request's body, or its list of messages"
        ) from None
    body = {"messages": data} if isinstance(data, list) else data
    messages = body.get("messages") if isinstance(body, dict) else None
    if (
        not isinstance(messages, list)
        or not messages
        or not all(isinstance(each, dict) and "role" in each for each in messages)
    ):
        raise PatchqError(
            f"{path} has no messages", 'write {"messages": [{"role": ..., "content": ...}, ...]}'
        )
    return {key: value for key, value in body.items() if key not in _OURS}


def _replay(asking: Asking) -> str:
    body, repeat = asking.setting.conversation, asking.setting.repeat
    if body is None:
        raise NotRun("no conversation was given")
    wrong: list[str] = []
    for _ in range(repeat):
        try:
            reply = asking.again(body)
        except Wrong as problem:
            wrong.append(str(problem))
            continue
        if not reply.content.strip() and not reply.calls:
            wrong.append("the answer is empty")
    asking.evidence.update(asked=repeat, wrong=len(wrong))
    if wrong:
        raise Wrong(f"{len(wrong)} of {repeat} times: {wrong[0]}")
    return f"{repeat} times answered, none of them spun or was cut"


REPLAY = Probe(
    "replay",
    "a conversation of yours, as often as you say",
    "each answer ends by itself and is not empty",
    "whatever went wrong with it",
    _replay,
)
