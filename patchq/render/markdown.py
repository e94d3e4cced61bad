"""A sync's report as Markdown, for a pull request or a commit message.

Names and titles come from strangers: they stand in code spans and cannot break out of them.
"""

from __future__ import annotations

import re

from patchq.carry.rangediff import changes_lines
from patchq.carry.report import SyncReport
from patchq.paths import show
from patchq.render import words
from patchq.render.console import lines


def sync(report: SyncReport) -> str:
    """The whole report; the same report gives the same bytes."""
    out = [f"# {plain(words.headline(report))}", ""]
    if report.patches:
        out += [
            "| # | patch | verdict | carry | done | why |",
            "|--:|---|---|---|---|---|",
        ]
        for patch in report.patches:
            cells = [
                f"{patch.number:04d}",
                code(patch.name),
                patch.verdict,
                patch.carry or "",
                words.DID[patch.action],
                plain(words.reason(patch)),
            ]
            out.append("| " + " | ".join(cells) + " |")
        out.append("")
    for patch in report.patches:
        for conflict in patch.conflicts:
            out.append(
                f"- {code(patch.name)} conflicts in {code(show(conflict.path))}:"
                f" {plain(conflict.kind)}"
            )
            out += [f"  - since {plain(cause.told)}" for cause in conflict.causes]
    for patch in report.patches:
        if changes_lines(patch.range_diff):
            what = "Upstream's version of" if patch.action == "drop" else "What changed in"
            out += ["", f"## {what} {code(patch.name)}", "", *_fenced(patch.range_diff)]
    if report.proof.checks:
        out += ["", "## Proof", ""]
        for check in report.proof.checks:
            mark = "ok" if check.ok else "**failed**"
            out.append(f"- {mark}: {plain(check.name)}: {code(check.detail)}")
    out += ["", f"Tree: `{report.tree}`. Upstream: {plain(report.upstream.source)}."]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)) + "\n"


def code(value: str) -> str:
    """A code span that holds `value` whatever is in it."""
    plain = show(value).replace("|", "\\|")
    longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{pad}{plain}{pad}{fence}"


def plain(value: str) -> str:
    """Text in which nothing is markup, a mention or a link."""
    escaped = re.sub(r"([\\`*_\[\]<>|#~&])", r"\\\1", show(value))
    # GitHub looks for names and numbers in the text that the markup gives: a character of no
    # width between keeps it from finding them.
    split = re.sub(r"(?i)(@|#(?=\d)|\bGH-(?=\d)|\bwww(?=\.))", r"\1&#8203;", escaped)
    return split.replace("://", ":&#47;&#47;")


def _fenced(value: str) -> list[str]:
    longest = max((len(run) for run in re.findall(r"^`{3,}", value, re.MULTILINE)), default=2)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}diff", *lines(value).split("\n"), fence]
