"""Which patch needs which: for people, for graphviz, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patchq.paths import lossless, show

if TYPE_CHECKING:
    from rich.console import RenderableType

    from patchq.work.graph import GraphReport, Need


def draw(report: GraphReport) -> RenderableType:
    """Each patch in order, and below it what it needs."""
    from rich.console import Group

    from patchq.render.console import text

    parts = []
    for name in report.names:
        parts.append(text(name, "bold"))
        needs = report.of(name)
        for place, need in enumerate(needs, 1):
            branch = "└─" if place == len(needs) else "├─"
            parts.append(text(f"  {branch} {need.other}  ({_reason(need)})"))
    if not parts:
        parts.append(text("No patch is applied."))
    return Group(*parts)


def _reason(need: Need) -> str:
    words = {"lines": "its lines in", "context": "lines around in", "file": "the file"}
    return f"{words[need.kind]} {show(need.path)}"


def dot(report: GraphReport) -> str:
    """A directed graph in graphviz' language; an arrow goes to the patch that is needed."""
    lines = ["digraph series {", "  rankdir=BT;", "  node [shape=box];"]
    lines += [f"  {_quoted(name)};" for name in report.names]
    lines += [
        f"  {_quoted(need.patch)} -> {_quoted(need.other)} [label={_quoted(need.kind)}];"
        for need in report.needs
    ]
    return "\n".join([*lines, "}"])


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def as_json(report: GraphReport) -> dict[str, Any]:
    return {
        "schema": "patchq.graph/1",
        "queue": report.queue,
        "base": report.base,
        "patches": [
            {
                "name": name,
                "needs": [
                    {"name": need.other, "kind": need.kind, "path": lossless(need.path)}
                    for need in report.of(name)
                ],
            }
            for name in report.names
        ],
    }
