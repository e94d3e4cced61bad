"""What became of the series, drawn and as JSON; names of strangers are harmless."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from patchq.carry.arrange import ChangeReport
from patchq.carry.replay import Clash
from patchq.carry.report import Check, Proof
from patchq.render import changes, changes_json, graph
from patchq.work.graph import GraphReport, Need

DOCS = Path(__file__).resolve().parents[2] / "docs/json.md"
DONE = ChangeReport(
    *("demo", "move", "one", "one to the top", "1234"),
    (),
    ("0001-one.patch",),
    ("series/0001-one.patch", "series/series"),
    Proof((Check("git apply", True, "2 patches"),)),
    7,
    False,
)
CLASH = Clash("two", b"a\x1b[31m\xff.txt", "the file is not there", ("one", "zero"))
TORN = replace(DONE, clashes=(CLASH, Clash("three", b"", "why")), rewritten=(), entry=None)
GRAPH = GraphReport(
    "demo",
    "1.0",
    ("one", "two", "three"),
    (Need("three", "one", "lines", b"a.txt"), Need("three", "two", "file", b"b\n.txt")),
)


def drawn(value: object) -> str:
    out = io.StringIO()
    Console(file=out, width=100, highlight=False).print(value)
    return out.getvalue()


def test_done() -> None:
    assert drawn(changes.changed(DONE)) == (
        "moved one to the top\n  rewritten for their new place: 0001-one.patch\n  tree 1234\n"
    )
    tried = drawn(changes.changed(replace(DONE, dry_run=True, entry=None)))
    assert tried.startswith("moved one to the top (--dry-run: nothing was changed)\n")
    assert "so already" in drawn(changes.changed(replace(DONE, entry=None)))


def test_clashes() -> None:
    assert drawn(changes.changed(TORN)) == (
        "move one to the top: not done, nothing was changed\n"
        "  two in a\\x1b[31m\\xff.txt: the file is not there (because of one, zero)\n"
        "  three: why\n"
        "`patchq graph` shows what needs what; move those along.\n"
    )
    assert TORN.exit_code == 4


def test_a_failed_proof() -> None:
    failed = replace(DONE, proof=Proof((Check("git apply", False, "no"),)), entry=None)
    assert failed.exit_code == 5
    assert "the proof failed, nothing was changed" in drawn(changes.changed(failed))


def test_json() -> None:
    found = changes_json.changed(TORN)
    assert found["schema"] == "patchq.move/1"
    assert found["conflicts"] == [
        {
            "patch": "two",
            "path": "a\x1b[31m\udcff.txt",
            "why": "the file is not there",
            "with": ["one", "zero"],
        },
        {"patch": "three", "path": None, "why": "why", "with": []},
    ]
    text = DOCS.read_text(encoding="utf-8")
    for key in found:
        assert key == "schema" or key in text.partition("## Changes of the series")[2]


@pytest.mark.parametrize("command", [*changes.SAID])
def test_every_command_has_its_words_and_its_schema(command: str) -> None:
    report = replace(DONE, command=command)
    assert DONE.summary in drawn(changes.changed(report))
    assert f"`patchq.{command}/1`" in DOCS.read_text(encoding="utf-8")


def test_graph() -> None:
    assert drawn(graph.draw(GRAPH)) == (
        "one\ntwo\nthree\n  ├─ one  (its lines in a.txt)\n  └─ two  (the file b\\n.txt)\n"
    )
    assert graph.dot(GRAPH) == (
        'digraph series {\n  rankdir=BT;\n  node [shape=box];\n  "one";\n  "two";\n  "three";\n'
        '  "three" -> "one" [label="lines"];\n  "three" -> "two" [label="file"];\n}'
    )
    found = graph.as_json(GRAPH)
    assert found["schema"] == "patchq.graph/1"
    assert found["patches"][2]["needs"][0] == {"name": "one", "kind": "lines", "path": "a.txt"}
