"""The sentences that every drawing has in common."""

from __future__ import annotations

import pytest

from patchq.carry.report import SyncReport
from patchq.judge import model
from patchq.render import words
from tests.render import reports


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (
            reports.DONE,
            "demo from 1.0 to 2.0: done, 1 kept, 1 kept in part, 1 dropped, 1 held.",
        ),
        (
            reports.ASKED,
            "demo from 1.0 to 2.0: 2 patches need your decision. Nothing was changed.",
        ),
        (
            reports.sync(reports.TORN),
            "demo from 1.0 to 2.0: 1 patch needs your decision. Nothing was changed.",
        ),
        (reports.UNPROVED, "demo from 1.0 to 2.0: the proof failed. Nothing was changed."),
        (
            reports.TRIED,
            "demo from 1.0 to 2.0: would be done (1 kept). Nothing was changed (--dry-run).",
        ),
        (reports.NOTHING, "demo is on 2.0 already: nothing changed."),
        (reports.sync(base_from="2.0"), "demo on 2.0: done, no patches."),
    ],
)
def test_headline(report: SyncReport, line: str) -> None:
    assert words.headline(report) == line


def test_reason() -> None:
    assert words.reason(reports.KEPT) == "merges cleanly; only its context changed"
    assert words.reason(reports.SHRUNK) == "1 of 2; a.py: f stands twice"
    assert words.reason(reports.UNCERTAIN) == ""


def test_next_steps() -> None:
    assert words.next_steps(reports.DONE)[0].startswith("`patchq undo` takes it back")
    torn, unsure = words.next_steps(reports.ASKED)
    assert torn == (
        "torn: rewrite it for 2.0, or let it go with"
        " `patchq decide torn drop --why TEXT`, then sync again."
    )
    assert "`patchq decide unsure keep|drop --why TEXT`" in unsure
    assert words.next_steps(reports.UNPROVED) == [
        "Mend the patch that the proof names, then sync again."
    ]
    assert words.next_steps(reports.TRIED) == []
    assert words.next_steps(reports.NOTHING) == []


def test_every_action_has_a_word() -> None:
    assert set(words.DID) == set(model.Action.__args__)
    assert set(words.STYLES) <= {*model.VerdictWord.__args__, "conflict"}
