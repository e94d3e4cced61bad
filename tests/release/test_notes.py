"""The notes: one screen first, and nothing that strangers wrote is markup."""

from __future__ import annotations

import re
from dataclasses import replace

from patchq.release.manifest import Base, Figure, PatchIs
from patchq.render.release_notes import notes
from tests.release.test_manifest import SHA, release

HOSTILE = "](http://evil.example) <script>x</script> `a` | b\u202e @everyone #1 **bold**"


def test_what_a_stranger_wrote_stays_text() -> None:
    patch = replace(release().patches[0], title=HOSTILE, topic=HOSTILE)
    dropped = replace(release().dropped[0], why=HOSTILE)
    limits, gate = (HOSTILE,), replace(release().gate.findings[0], says=HOSTILE)
    made = release(
        patches=(patch,),
        dropped=(dropped,),
        limits=limits,
        why=HOSTILE,
        gate=replace(release().gate, findings=(gate,)),
    )
    text = notes(made, release(number=4, previous=None))
    for live in (
        r"<script",
        r"]\(http:",
        r"\*\*bold",
        r"@everyone",
        r"`a` ",
        "\u202e",
        r"#1 ",
        r"\| b",
    ):
        assert not re.search(rf"(?<!\\){live}", text), live
    row = next(line for line in text.split("\n") if line.startswith("| 0003"))
    assert row.replace("\\|", "").count("|") == 6, "a title adds no column"


def test_pull_requests_are_links_and_the_first_screen_is_one() -> None:
    many = tuple(
        PatchIs(n, f"patch-{n}", SHA, f"Title {n}", "new", (f"o/r#{n} @ {'d' * 40}",))
        for n in range(1, 31)
    )
    bench = tuple(Figure("prose", 1024 * n, 1, False, 20.0 + n, 1.0, 9.0) for n in range(1, 20))
    old = release(number=4, previous=None, base=Base("0.29.0", "b" * 40), bench=bench[:3])
    text = notes(release(patches=many, bench=bench), old)
    first, _, details = text.partition("\n## Details\n")
    assert first.count("\n") < 45
    assert "Since release 4: 30 new, 1 dropped; now on 0.32.0, before on 0.29.0." in first
    assert "and 23 more, below" in first
    assert "patchq rollback" in first and "patchq install 5" in first
    assert "[o/r\\#&#8203;7](https://github.com/o/r/pull/7) at dddddddddddd" in details
    assert details.count("Title ") == 30
    assert "| 19456 | prose |  | 39 |  |" in details
    assert "| 1024 | prose | 21 | 21 | +0.0% |" in details
    assert (
        "- 0002 `old`: landed in 0.32.0, [o/r\\#&#8203;9](https://github.com/o/r/pull/9)" in details
    )


def test_the_first_release_has_nothing_to_be_held_against() -> None:
    text = notes(release(previous=None, dropped=()), None)
    assert "The first release." in text and "Since release" not in text
    assert "change |" not in text
