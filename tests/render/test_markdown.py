"""A report for a pull request: nothing in it is anybody's markup but ours."""

from __future__ import annotations

import re

import pytest

from patchq.render import markdown
from tests.render import reports


def test_a_whole_report() -> None:
    assert (
        markdown.sync(reports.DONE)
        == """\
# demo from 1.0 to 2.0: done, 1 kept, 1 kept in part, 1 dropped, 1 held.

| # | patch | verdict | carry | done | why |
|--:|---|---|---|---|---|
| 0001 | `kept` | needed | clean | kept | merges cleanly; only its context changed |
| 0002 | `dropped` | landed | empty | dropped | it is there; 4 of 4 |
| 0003 | `shrunk` | partly-landed | residual | kept, the rest of it | 1 of 2; a.py: f stands twice |
| 0006 | `held` | needed | held | held | held, not applied: later |

## What changed in `shrunk`

```diff
## a.txt ##
@@ -1,3 +1,3 @@
 @@
--old
-+ours
++ours, again
```

## Proof

- ok: git apply: `2 patches give 1234`

Tree: `1234`. Upstream: index, demo.
"""
    )


def test_conflicts_and_failed_checks() -> None:
    text = markdown.sync(reports.ASKED)
    assert "- `torn` conflicts in `a.txt`: content\n" in text
    assert "- `torn` conflicts in `\\xff.txt`: deleted upstream\n" in text
    assert "## Proof" not in text
    assert "- **failed**: check of b: `no`\n" in markdown.sync(reports.UNPROVED)
    assert "| # |" not in markdown.sync(reports.sync())


def test_the_same_report_gives_the_same_bytes() -> None:
    for report in (reports.DONE, reports.ASKED, reports.evil()):
        assert markdown.sync(report) == markdown.sync(report)


def test_hostile_texts() -> None:
    text = markdown.sync(reports.evil())
    assert not [c for c in text if c != "\n" and not c.isprintable()]
    rows = [line for line in text.split("\n") if line.startswith("| 0001")]
    (row,) = rows
    assert len(cells(row)) == 6
    plain = outside_code(text)
    for mark in ("<b>", "[link]", "![i]", "**bold**", "~~no~~", "https://"):
        assert mark not in plain
    assert not re.search(r"(?<!\\)&(?!#8203;|#47;)", plain)
    assert not re.search(r"@\w", plain)
    assert not re.search(r"(?<!&)#\d", plain)
    heads = [line for line in outside_fences(text) if line.startswith("#")]
    assert [head.split(" ")[:2] for head in heads] == [
        ["#", "demo"],
        ["##", "What"],
        ["##", "Proof"],
    ]


@pytest.mark.parametrize("value", ["GH-12", "see gh-3.", "www.example.org", "@ada", "#4"])
def test_what_github_makes_links_of(value: str) -> None:
    linked = re.compile(r"(?i)\bGH-\d|\bwww\.|@\w|#\d")
    assert not linked.search(markdown.plain(value).replace("&#8203;", "\u200b"))


def cells(row: str) -> list[str]:
    """As GitHub's tables are split: a backslash takes the next character with it."""
    return re.findall(r"\|((?:\\.|[^|\\])+)(?=\|)", row)


def outside_fences(text: str) -> list[str]:
    out, fence = [], ""
    for line in text.split("\n"):
        found = re.match(r"`{3,}", line)
        if fence:
            fence = "" if line == fence else fence
        elif found:
            fence = found[0]
        else:
            out.append(line)
    assert not fence, "a fence is left open"
    return out


def outside_code(text: str) -> str:
    """Without code spans, which end at a run of as many backticks (CommonMark)."""
    lines = "\n".join(outside_fences(text))
    out, at = "", 0
    while found := re.compile(r"\\.|`+", re.DOTALL).search(lines, at):
        out += lines[at : found.start()]
        at = found.end()
        if found[0][0] == "\\":
            out += found[0]
            continue
        end = re.compile(rf"(?<!`){found[0]}(?!`)").search(lines, at)
        assert end, "a code span is left open"
        at = end.end()
    return out + lines[at:]


@pytest.mark.parametrize(
    ("value", "span"),
    [
        ("plain", "`plain`"),
        ("a`b", "``a`b``"),
        ("`a", "`` `a ``"),
        ("a``", "``` a`` ```"),
        ("a|b", r"`a\|b`"),
        ("a\nb\x1b", r"`a\nb\x1b`"),
    ],
)
def test_code(value: str, span: str) -> None:
    assert markdown.code(value) == span
