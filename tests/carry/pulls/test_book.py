"""Which pull requests a queue knows, and how their heads stand to the pinned ones."""

from __future__ import annotations

import pytest

from patchq.carry.decisions import PullDecision
from patchq.carry.pulls.accept import repinned
from patchq.carry.pulls.book import Use, book, pins, rules, watched
from patchq.config import Track
from patchq.queue import header as headers
from patchq.queue.patch import Patch
from patchq.upstream.pulls import Pull
from tests.support.kit import made

A, B = "a" * 40, "b" * 40
KEY = "acme/engine#7"


def patch(**fields: str) -> Patch:
    return made(1, "knob", b"", **fields)


def test_pins_and_rules() -> None:
    header = headers.make(
        [
            ("Patchq-Pr", f"{KEY} @ {A}"),
            ("Patchq-Pr", "acme/engine#8"),
            ("Patchq-Pr", "see the mailing list"),
            ("Patchq-Pr", f"acme/../x#9 @ {A}"),
            ("Patchq-Drop-When", "reverted acme/engine#5"),
            ("Patchq-Drop-When", "landed acme/engine#6"),
            ("Patchq-Drop-When", "the moon is full"),
        ],
        "",
    )
    assert pins(header) == {KEY: A, "acme/engine#8": ""}
    assert rules(header) == [("reverted", "acme/engine#5"), ("landed", "acme/engine#6")]


def test_the_book() -> None:
    """Tracked, named and decided upon, in the order of their numbers; the decided is not asked."""
    series = [patch(pr=f"{KEY} @ {A}", drop_when="reverted acme/engine#10")]
    said = {"acme/engine#2": PullDecision("refuse", "no", "")}
    track = [Track("acme/engine#9", "later"), Track("zeta/x#1")]
    found = book(track, series, {KEY: Pull("acme/engine", 7, head_sha=A)}, said)

    keys = ["acme/engine#2", KEY, "acme/engine#9", "acme/engine#10", "zeta/x#1"]
    assert [entry.key for entry in found] == keys
    assert found[1].uses == (Use("knob", "0001-knob.patch", "carries", A),)
    assert found[3].uses == (Use("knob", "0001-knob.patch", "reverts"),)
    assert [entry.why for entry in found] == [None, None, "later", None, ""]
    assert watched(found) == tuple(keys[1:])


@pytest.mark.parametrize(
    ("pin", "head", "held", "stand"),
    [
        (A, A, "", "same"),
        (A, B, "", "moved"),
        (A, B, B, "held"),
        (A, B, A, "moved"),
        (A, "", "", "unknown"),
        ("", B, "", ""),
    ],
)
def test_how_a_head_stands(pin: str, head: str, held: str, stand: str) -> None:
    said = {KEY: PullDecision("hold", "", held)} if held else {}
    series = [patch(pr=f"{KEY} @ {pin}" if pin else KEY)]
    (entry,) = book([], series, {KEY: Pull("acme/engine", 7, head_sha=head)}, said)
    assert entry.stand == stand


def test_a_tracked_one_is_pinned_in_the_record() -> None:
    recorded = {KEY: Pull("acme/engine", 7, head_sha=B, pinned=A)}
    (entry,) = book([Track(KEY)], [], recorded, {})
    assert (entry.pin, entry.stand) == (A, "moved")


def test_only_its_own_pin_is_exchanged() -> None:
    header = patch(pr=f"acme/engine#70 @ {A}").header
    header = header.replace("Patchq-Pr", f"acme/engine#70 @ {A}", f"{KEY} @ {A}")
    assert repinned(header, KEY, B).all("Patchq-Pr") == (f"acme/engine#70 @ {A}", f"{KEY} @ {B}")
