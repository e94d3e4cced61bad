"""Exactly the fields that docs/json.md promises, with their schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from patchq.carry.shelf import Change, Entry
from patchq.errors import DecisionNeeded, PatchqError
from patchq.render import jsons
from tests.render import reports

DOCS = Path(__file__).parents[2] / "docs/json.md"
PROOF = {"ok": True, "checks": [{"name": "git apply", "ok": True, "detail": "2 patches give 1234"}]}
FAILED = {
    "ok": False,
    "checks": [*PROOF["checks"], {"name": "check of b", "ok": False, "detail": "no"}],  # type: ignore[misc]
}
SEEN = {
    "source": "index, demo",
    "as_of": "2026-01-02T03:04:05+00:00",
    "complete": True,
    "history": False,
    "notes": [],
}


def signal(name: str, says: str, detail: str, ref: str | None = None) -> dict[str, Any]:
    return {"signal": name, "says": says, "detail": detail, "ref": ref}


def test_sync() -> None:
    assert jsons.sync(reports.sync(reports.SHRUNK, reports.DROPPED)) == {
        "schema": "patchq.sync/1",
        "queue": "demo",
        "base": {"from": "1.0", "to": "2.0", "tree": "1234"},
        "changed": True,
        "recorded": True,
        "dry_run": False,
        "entry": 7,
        "recovered": None,
        "session": None,
        "shown": None,
        "notes": [],
        "upstream": SEEN,
        "patches": [
            {
                "number": 3,
                "name": "shrunk",
                "subject": "Shrink it",
                "file": "0003-shrunk.patch",
                "verdict": "partly-landed",
                "carry": "residual",
                "action": "shrink",
                "rewritten": True,
                "evidence": [signal("patch-id", "partly", "1 of 2")],
                "conflicts": [],
                "findings": [
                    {"kind": "double", "path": "a.py", "says": "f stands twice", "fatal": False}
                ],
                "range_diff": reports.RANGE_DIFF,
            },
            {
                "number": 2,
                "name": "dropped",
                "subject": "Drop it",
                "file": None,
                "verdict": "landed",
                "carry": "empty",
                "action": "drop",
                "rewritten": False,
                "evidence": [
                    signal("merge", "landed", "it is there"),
                    signal("lines", "landed", "4 of 4", "abc123"),
                ],
                "conflicts": [],
                "findings": [],
                "range_diff": "",
            },
        ],
        "proof": PROOF,
    }


def test_sync_that_asks() -> None:
    found = jsons.sync(reports.ASKED)
    assert (found["recorded"], found["entry"]) == (False, None)
    assert found["recovered"] == "It was completed."
    assert found["proof"] == {"ok": False, "checks": []}
    first, second = found["patches"][1]["conflicts"]
    assert (first["path"], first["kind"], first["new_path"]) == ("a.txt", "content", "b.txt")
    assert first["cause"]["commit"] == "0123456789abcdef"
    assert first["sides"] == [{"line": 2, "ours": "b\n", "base": "a\n", "theirs": "c\n"}]
    assert first["versions"] == {
        "base": "100644 78981922613b2afb6025042ff6bd878ac1994e85",
        "ours": "100644 61780798228d17af2d34fce4cfbdf35556832472",
        "theirs": "100755 f2ad6c76f0115a6ba5b00456a849810e7ec0af20",
    }
    assert (second["path"], second["cause"]) == ("\udcff.txt", None)
    assert (second["sides"], second["versions"]["ours"]) == ([], None)


ONE = {"number": 1, "name": "one", "file": "0001-one.patch", "subject": "About one"}
TWO = {"number": 2, "name": "two", "file": "0002-two.patch", "subject": "About two"}
FIELDS = [
    ["From", "Ada <ada@example.org>"],
    ["Date", "Thu, 2 Jan 2025 03:04:05 +0200"],
    ["Subject", "About one"],
    ["Patchq-Name", "one"],
    ["Patchq-Topic", "x"],
]
ENTRY = Entry(
    id=9,
    at=reports.WHEN,
    command="undo",
    summary="demo from 1.0 to 2.0",
    changes=(Change("series/series", None, "12"),),
    undoes=7,
)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (
            jsons.init(reports.INIT),
            {
                "schema": "patchq.init/1",
                "queue": "demo",
                "file": "upstream/demo.toml",
                "series": "series",
                "base": {"release": "1.0", "commit": "c0", "tree": "1234"},
                "entry": 1,
            },
        ),
        (
            jsons.imported(reports.IMPORT),
            {
                "schema": "patchq.import/1",
                "queue": "demo",
                "tree": "1234",
                "dry_run": False,
                "entry": 2,
                "patches": [
                    {**ONE, "commits": ["c1", "c2"]},
                    {**TWO, "commits": ["two.patch"]},
                ],
                "left_out": [{"name": "one", "field": "Patchq-Check: rm -rf /"}],
                "proof": PROOF,
            },
        ),
        (
            jsons.exported(reports.EXPORT),
            {
                "schema": "patchq.export/1",
                "queue": "demo",
                "repository": "/src/demo",
                "branch": "patchq",
                "base": "1.0",
                "commit": "c1",
                "tree": "1234",
                "patches": 2,
            },
        ),
        (
            jsons.exported_mbox(reports.MBOX),
            {
                "schema": "patchq.export-mbox/1",
                "queue": "demo",
                "file": "series.mbox",
                "base": "1.0",
                "patches": 2,
            },
        ),
        (
            jsons.check(reports.CHECK),
            {
                "schema": "patchq.check/1",
                "queue": "demo",
                "base": "1.0",
                "tree": "1234",
                "renumbered": [],
                "proof": FAILED,
            },
        ),
        (
            jsons.status(reports.STATUS),
            {
                "schema": "patchq.status/1",
                "queue": "demo",
                "source": "git ../demo",
                "base": "1.0",
                "tree": "1234",
                "applied": 3,
                "held": [{"name": "two", "why": "not yet"}],
                "retired": 1,
                "proved": True,
                "recovered": None,
            },
        ),
        (
            jsons.status(reports.CHANGED),
            {
                "schema": "patchq.status/1",
                "queue": "demo",
                "source": "git ../demo",
                "base": "1.0",
                "tree": None,
                "applied": 3,
                "held": [],
                "retired": 0,
                "proved": False,
                "recovered": "It was completed.",
            },
        ),
        (
            jsons.series("demo", reports.SERIES),
            {
                "schema": "patchq.series/1",
                "queue": "demo",
                "patches": [{**ONE, "held": None}, {**TWO, "held": "not yet"}],
            },
        ),
        (
            jsons.show("demo", reports.ONE, None),
            {
                "schema": "patchq.show/1",
                "queue": "demo",
                **ONE,
                "held": None,
                "header": FIELDS,
                "body": "Why.",
                "diff": "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+\udcff\n",
            },
        ),
        (
            jsons.history(reports.HISTORY),
            {
                "schema": "patchq.history/1",
                "queue": "demo",
                "name": "one",
                "events": [
                    {
                        "when": "2026-01-02T03:04:05+00:00",
                        "entry": 3,
                        "what": "sync",
                        "detail": "demo from 1.0 to 2.0",
                        "patch": None,
                    },
                    {
                        "when": None,
                        "entry": None,
                        "what": "dropped: landed in 2.0",
                        "detail": "merge: it is there",
                        "patch": "-a\n+\udcff\n",
                    },
                ],
            },
        ),
        (
            jsons.undone(ENTRY, dry_run=False),
            {
                "schema": "patchq.undo/1",
                "entry": 9,
                "undoes": 7,
                "summary": "demo from 1.0 to 2.0",
                "files": ["series/series"],
                "dry_run": False,
            },
        ),
        (
            jsons.decided(reports.DECIDED),
            {
                "schema": "patchq.decide/1",
                "queue": "demo",
                "name": "torn",
                "answer": "drop",
                "why": "theirs will do",
                "onto": "2.0",
                "evidence": "0123456789abcdef",
                "entry": 8,
                "sync": None,
            },
        ),
        (
            jsons.tree("demo", "1234"),
            {"schema": "patchq.tree/1", "queue": "demo", "tree": "1234"},
        ),
        (
            jsons.error(PatchqError("what", "do that")),
            {"schema": "patchq.error/1", "message": "what", "hint": "do that", "log": None},
        ),
        (
            jsons.error(DecisionNeeded("what"), "/log"),
            {"schema": "patchq.error/1", "message": "what", "hint": "", "log": "/log"},
        ),
    ],
    ids=lambda value: value["schema"] if isinstance(value, dict) else None,
)
def test_fields(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert found == wanted
    assert list(found)[:1] == ["schema"]
    assert json.loads(jsons.dump(found)) == wanted
    if DOCS.exists():
        text = DOCS.read_text(encoding="utf-8")
        assert found["schema"] in text
        (part,) = [line for line in text.split("\n") if found["schema"] in line][:1]
        if part.startswith("|"):
            assert not [key for key in found if key != "schema" and key not in part]


def test_a_dry_undo_has_no_entry() -> None:
    found = jsons.undone(ENTRY, dry_run=True)
    assert (found["entry"], found["dry_run"]) == (None, True)


def test_any_bytes_come_through_and_back() -> None:
    text = jsons.dump(jsons.sync(reports.evil()))
    assert text.isascii()
    assert "\x1b" not in text
    (patch,) = json.loads(text)["patches"]
    assert patch["subject"] == reports.EVIL
