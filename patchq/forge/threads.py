"""What issues and pull requests have in common at GitHub: their texts, their limits, their rights.

Facts that these functions rest on (GitHub's documentation and OpenAPI description): a title has at
most 256 characters and a text 65,536; a lost answer says nothing about whether something was
done; who may not write is told 403, or 404 where not even the repository shall be known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from patchq.forge.answers import utf8
from patchq.forge.client import Client
from patchq.forge.errors import ForgeError

LONGEST_TITLE = 256
LONGEST_BODY = 65_536
"""Characters; GitHub refuses more."""

NOTE = "*Cut here: this is as much as fits.*"

_LOST = ("server", "network", "answer")
"""After these nobody knows whether it was done."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_COMMENT = re.compile(r"<!--[^\n]*-->")

Made = TypeVar("Made")


def once(
    client: Client,
    send: Callable[[], Made],
    made: Callable[[], Made | None],
    *,
    again: bool = True,
) -> Made:
    """What `send` makes by a POST, which is sent again only where `made` does not find it.

    Raises ForgeError; it may have been made nevertheless.
    """
    try:
        return send()
    except ForgeError as error:
        if error.kind not in _LOST:
            raise
        found = _after(client, error, made)
        if found is not None:
            return found
        if not again:
            raise
    return once(client, send, made, again=False)


def twice(client: Client, send: Callable[[], Made]) -> Made:
    """What `send` changes, sent again after a lost answer: the same change does no harm."""
    try:
        return send()
    except ForgeError as error:
        if error.kind not in _LOST:
            raise
    client.wait(client.patience.backoff, "its answer was lost")
    return send()


def _after(client: Client, lost: ForgeError, made: Callable[[], Made | None]) -> Made | None:
    """What became of it. Raises `lost` where that is not to be learned."""
    # A forge that lost its line may still be at it.
    client.wait(client.patience.backoff, "its answer was lost")
    try:
        return made()
    except ForgeError:
        raise lost from None


@contextmanager
def permitted(client: Client, repo: str, what: str, advice: str) -> Iterator[None]:
    """Says what a token needs, where the forge refuses to write `what` (a name for a sentence)."""
    try:
        yield
    except ForgeError as error:
        needs = f"the token in {client.variable} needs {advice} on {repo}"
        if error.kind == "absent":
            message = f"{client.host} has no {what}, or not for this token"
            raise ForgeError("absent", message, needs) from None
        if error.kind == "token" and not error.hint:
            raise ForgeError("token", error.message, needs) from None
        raise


def fit_title(title: str) -> str:
    """The title as it is sent: in one line, and cut where GitHub would refuse it."""
    line = " ".join(utf8(title).split())
    return line if len(line) <= LONGEST_TITLE else line[: LONGEST_TITLE - 1] + "…"


def fit_body(body: str) -> str:
    """The text as it is sent: cut where GitHub would refuse it, with a note that can be seen.

    What is open there (a fence, a folded part) is closed before the note; a comment in the last
    line stays the last line.
    """
    body = utf8(body)
    if len(body) <= LONGEST_BODY:
        return body
    last = body.rstrip("\n").rpartition("\n")[2]
    end = f"\n{last}\n" if _COMMENT.fullmatch(last.strip()) and len(last) < 1000 else "\n"
    head = body[: LONGEST_BODY - 1000 - len(end)]
    line = head.rfind("\n")
    if line > len(head) // 2:
        head = head[:line]
    return f"{head.rstrip()}{_closed(head)}\n\n{NOTE}\n{end}"


def _closed(head: str) -> str:
    """What closes that which is open at the end of `head`; at most some hundred characters."""
    fence, plain = "", []
    for line in head.split("\n"):
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not line.strip(" `~"):
                fence = ""
        elif found:
            fence = found[1]
        else:
            plain.append(line)
    words = "\n".join(plain)
    comment = "\n-->" if words.rfind("<!--") > words.rfind("-->") else ""
    folded = words.count("<details") - words.count("</details")
    return f"\n{fence[:100]}"[: 101 if fence else 0] + comment + "\n\n</details>" * min(folded, 40)
