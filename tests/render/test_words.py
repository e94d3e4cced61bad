"""The sentences that every drawing has in common."""

from __future__ import annotations

from dataclasses import replace

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
    assert not any("Commit" in step for step in words.next_steps(reports.DONE, committed=True))
    torn, unsure = words.next_steps(reports.ASKED)
    assert torn == (
        "torn: resolve it in the session that `patchq sync` opens, or let it go with"
        " `patchq decide torn drop --why TEXT`, then sync again."
    )
    assert "`patchq decide unsure keep|drop --why TEXT`" in unsure
    assert words.next_steps(reports.OPEN) == [
        "Resolve a.txt, \\xff.txt of torn in",
        "  /tree",
        "and type one of",
        "  patchq sync --continue              go on",
        "  patchq sync --skip torn             hold it back",
        "  patchq decide torn drop --why TEXT  let it go",
        "  patchq sync --abort                 end the session: the queue is as it was",
        "After it: unsure.",
    ]
    question = words.next_steps(replace(reports.OPEN, shown="unsure"))
    assert question[0] == "Is unsure upstream's now? Answer, or edit it in"
    assert "  patchq decide unsure keep --why TEXT  keep it as it is" in question
    unproved = replace(reports.UNPROVED, session="/tree")
    assert words.next_steps(unproved) == [
        "Edit the tree in /tree, then `patchq sync --continue`; or `patchq sync --abort`."
    ]
    assert words.next_steps(reports.UNPROVED) == [
        "Mend the patch that the proof names, then sync again."
    ]
    assert words.next_steps(reports.TRIED) == []
    assert words.next_steps(reports.NOTHING) == []


def test_what_is_held_is_named_at_every_sync() -> None:
    assert words.held(reports.NOTHING) == ["held: held, not applied: later."]
    assert words.held(reports.DONE) == [], "its table names it"


def test_every_action_has_a_word() -> None:
    assert set(words.DID) == set(model.Action.__args__)
    assert set(words.STYLES) <= {*model.VerdictWord.__args__, "conflict"}
