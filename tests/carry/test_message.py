"""The commit's words for a patch."""

from __future__ import annotations

from datetime import datetime

from patchq.carry.message import ident, message
from patchq.queue import header as headers
from patchq.queue import patch as patches
from tests.support.kit import made


def test_message_and_ident() -> None:
    patch = made(1, "name", b"", check="true", topic="x")
    assert message(patch).decode() == (
        "About name\n\nWhy.\n\nPatchq-Name: name\nPatchq-Topic: x\nPatchq-Check: true\n"
    )
    who = ident(patch)
    assert (who.name, who.mail, who.zone) == (b"Ada", b"ada@example.org", "+0200")
    moment = datetime.fromisoformat("2025-01-02T03:04:05+02:00")
    assert who.when == int(moment.timestamp())


def test_a_message_without_anything() -> None:
    bare = patches.make(1, "name", headers.make([], ""), b"")
    assert message(bare) == b"name\n\nPatchq-Name: name\n"
    assert ident(bare).when == 0
