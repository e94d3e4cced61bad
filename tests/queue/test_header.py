"""A header is one line a field, and its body is text to everyone: no applier finds a diff in it."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.errors import PatchqError
from patchq.queue import header as headers
from patchq.queue import patch as patches
from patchq.queue.header import Header
from tests.support.history import clean_env, git

FROM = "Ada Tester <ada@example.org>"
DATE = "Mon, 30 Nov 2026 12:00:00 +0200"
VICTIM = b"one\ntwo\nthree\n"

UNIFIED = "--- a/victim\n+++ b/victim\n@@ -1,3 +1,3 @@\n one\n-two\n+evil\n three\n"
CONTEXT = "*** a/victim\n--- b/victim\n***************\n*** 1,3 ****\n  one\n! two\n  three\n--- 1,3 ----\n  one\n! evil\n  three\n"
MBOX = "From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\n"


def behind(prefix: str, text: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


BODIES = {
    "unified": UNIFIED,
    "git": "diff --git a/victim b/victim\nindex 1..2 100644\n" + UNIFIED,
    "deletion": "diff --git a/victim b/victim\ndeleted file mode 100644\n",
    "rename": "diff --git a/victim b/gone\nsimilarity index 100%\nrename from victim\nrename to gone\n",
    "fenced": f"See:\n\n```diff\n{UNIFIED}```\n\nend",
    "indented": "As this:\n\n" + behind("    ", UNIFIED),
    "tabbed": behind("\t", UNIFIED),
    "X-indented": behind("X", UNIFIED),
    "X and blanks": behind("X X\t", UNIFIED),
    "in a list": behind("- ", UNIFIED),
    "in a list in a list": behind("- - ", UNIFIED),
    "escaped once": behind("~", UNIFIED),
    "escaped twice": behind("~~", UNIFIED),
    "context": CONTEXT,
    "indented context": behind("  ", CONTEXT),
    "normal": "1c1\n< one\n---\n> evil\n",
    "normal without rule": "2c2\n< two\n> evil\n",
    "ed": "2c\nevil\n.\n",
    "ed deletion": "1,3d\n",
    "index and prerequisite": "Index: victim\nPrereq: one\n" + UNIFIED,
    "a lone hunk": "@@ -1,3 +1,3 @@\n one\n-two\n+evil\n three\n",
    "a lone hunk header": "text\n@@ -1,3 +1,3 @@\ntext",
    "rules": "above\n---\nbelow\n--- \n----\n---\r\nend",
    "stars": "above\n***\n***************\nbelow",
    "a diff command": "diff -u victim evil\n" + UNIFIED,
    "subject first": "Subject: evil\n\ntext",
    "subject first, small": "subject: evil\n\ntext",
    "person first": "From: Eve <eve@example.org>\n\ntext",
    "person first, loud": "FROM: Eve <eve@example.org>\n\ntext",
    "date first": "Date: Thu, 1 Jan 1970 00:00:00 +0000\n\ntext",
    "date first, small": "date: Thu, 1 Jan 1970 00:00:00 +0000\n\ntext",
    "tag first": "[PATCH 1/2] evil\n\ntext",
    "a mail in it": f"text\n\n{MBOX}From: Eve <eve@example.org>\nSubject: evil\n\n---\n{UNIFIED}",
    "a quoted mail": f"text\n>{MBOX}>From: Eve\n>>From x\ntext",
    "scissors": "before\n-- >8 --\nSubject: evil\n\nafter\n-- 8< --\n",
    "signature": "text\n-- \n2.39.5\n",
    "content type": "Content-Type: text/plain; charset=utf-16\nContent-Transfer-Encoding: base64\n\nx",
    "other line ends": "a\r--- a/victim\r+++ b/victim\x0b\x0c--- a/victim\u2028--- x\x85diff --git",
    "carriage returns": UNIFIED.replace("\n", "\r\n"),
    "binary": "GIT binary patch\nliteral 0\nHcmV?d00001\n",
    "modes": "old mode 100644\nnew mode 100755\n",
    "no text": "",
}  # fmt: skip


def made(place: int, body: str) -> patches.Patch:
    """A patch that adds the file `newN`."""
    diff = (
        f"diff --git a/new{place} b/new{place}\nnew file mode 100644\n"
        "index 0000000000000000000000000000000000000000..3e757656cf36eca53338e520d134963a44f793f8\n"
        f"--- /dev/null\n+++ b/new{place}\n@@ -0,0 +1 @@\n+new\n"
    )
    fields = [("From", FROM), ("Date", DATE), ("Subject", f"Patch {place}")]
    return patches.make(place, f"p{place}", headers.make(fields, body), diff.encode())


def folder_of(bodies: list[str], where: Path) -> list[Path]:
    where.mkdir()
    series = [made(place, body) for place, body in enumerate(bodies, 1)]
    for patch in series:
        (where / patch.file).write_bytes(patch.text)
    (where / "series").write_text("".join(f"{patch.file}\n" for patch in series))
    return [where / patch.file for patch in series]


def start(where: Path) -> Path:
    where.mkdir()
    (where / "victim").write_bytes(VICTIM)
    return where


def tool(where: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=where, env=clean_env(where), capture_output=True)
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")


def require_untouched(where: Path, count: int) -> None:
    seen = {path.name: path.read_bytes() for path in where.iterdir() if path.is_file()}
    assert seen == {"victim": VICTIM} | {f"new{place}": b"new\n" for place in range(1, count + 1)}


def apply_all_ways(bodies: list[str], tmp: Path, *, quilt: bool) -> None:
    files = folder_of(bodies, tmp / "series")
    here = start(tmp / "git-apply")
    tool(here, "git", "apply", *map(str, files))
    require_untouched(here, len(bodies))
    here = start(tmp / "patch")
    loop = 'for file; do patch -p1 -f --fuzz=0 -s -i "$file" || exit 1; done'
    tool(here, "sh", "-c", loop, "sh", *map(str, files))
    require_untouched(here, len(bodies))
    if quilt:
        here = start(tmp / "quilt")
        shutil.copytree(tmp / "series", here / "patches")
        tool(here, "quilt", "--quiltrc", "-", "push", "-a", "--fuzz=0")
        require_untouched(here, len(bodies))
    here = start(tmp / "git-am")
    git(here, "init", "-q")
    git(here, "add", "victim")
    git(here, "commit", "-q", "-m", "start")
    git(here, "am", "-q", "--keep-cr", "--keep-non-patch", *map(str, files))
    require_untouched(here, len(bodies))
    log = git(here, "log", "--reverse", "--format=%an <%ae>|%aD|%s").decode().splitlines()[1:]
    assert log == [f"{FROM}|{DATE}|Patch {place}" for place in range(1, len(bodies) + 1)]


def test_no_applier_takes_any_of_it(tmp_path: Path) -> None:
    """git apply, git am, patch and quilt; header fields stay the header's, too."""
    apply_all_ways(list(BODIES.values()), tmp_path, quilt=True)


BITS = [
    *(line for body in (UNIFIED, CONTEXT, MBOX) for line in body.splitlines()),
    "diff --git a/victim b/victim", "deleted file mode 100644", "new mode 100755", "diff -u a b",
    "rename from victim", "rename to gone", "Index: victim", "Prereq: two", "---", "***", "+++ ",
    "From: Eve <e@example.org>", "sUBJECT: evil", "Date: x", "[PATCH] evil", "-- >8 --", "-- ",
    "1c1", "< one", "> evil", "2d", ".", "", " ", "In-Reply-To: x", "GIT binary patch", "literal 0",
]  # fmt: skip
PREFIX = st.lists(st.sampled_from(["", "~", " ", "\t", "X", "- ", ">"]), max_size=4).map("".join)
LINE = st.builds(str.__add__, PREFIX, st.sampled_from(BITS) | st.text(max_size=8))
BODY = st.lists(LINE, max_size=12).map("\n".join)


@settings(max_examples=12)
@given(st.lists(BODY, min_size=4, max_size=16))
def test_no_applier_takes_any_of_a_random_one(
    tmp_path_factory: pytest.TempPathFactory, bodies: list[str]
) -> None:
    apply_all_ways(bodies, tmp_path_factory.mktemp("bodies"), quilt=False)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_comes_back(body: str) -> None:
    header = headers.make([("Subject", "x")], body)
    assert headers.parse(headers.format(header) + b"diff", "it") == (header, b"diff")


FIELD = st.tuples(
    st.sampled_from(headers.ORDER) | st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,9}", fullmatch=True),
    st.text() | LINE,
)
ODD = st.binary(max_size=30).map(lambda data: data.decode("utf-8", "surrogateescape"))


@given(st.lists(FIELD, max_size=8), BODY | st.text() | ODD, st.binary(max_size=40))
def test_any_header_comes_back(fields: list[tuple[str, str]], body: str, diff: bytes) -> None:
    header = headers.make(fields, body)
    text = headers.format(header) + diff
    assert headers.parse(text, "it") == (header, diff)
    assert headers.format(headers.parse(text, "it")[0]) + diff == text


@given(st.binary(max_size=200))
def test_any_bytes_are_a_header_or_refused_in_a_sentence(data: bytes) -> None:
    refused = ""
    try:
        header, diff = headers.parse(data, "series/0001-a.patch")
        assert headers.parse(headers.format(header) + diff, "it") == (header, diff)
    except PatchqError as error:
        refused = error.message
    assert not refused or "series/0001-a.patch" in refused


def test_it_reads_well() -> None:
    header = headers.make(
        [
            ("Patchq-Check", "python -c 'import x'"),
            ("Subject", "[exl3] Load\r\n rank-sliced experts"),
            ("X-Mine", "kept, behind the known ones"),
            ("Patchq-Pr", "example/up#1"),
            ("From", FROM),
            ("Patchq-Pr", "example/up#2"),
        ],
        "\n\nWhy:\n\n--- a/x\n~--- as it was escaped\n\n",
    )
    assert headers.format(header).decode() == (
        f"From: {FROM}\n"
        "Subject: [exl3] Load  rank-sliced experts\n"
        "Patchq-Pr: example/up#1\n"
        "Patchq-Pr: example/up#2\n"
        "Patchq-Check: python -c 'import x'\n"
        "X-Mine: kept, behind the known ones\n"
        "\n"
        "Why:\n"
        "\n"
        "~--- a/x\n"
        "~~--- as it was escaped\n"
        "---\n"
    )
    assert header.all("patchq-pr") == ("example/up#1", "example/up#2")
    assert header.checks == ("python -c 'import x'",)
    assert (header.get("Origin"), header.subject) == ("", "[exl3] Load  rank-sliced experts")


def test_a_field_is_exchanged_in_its_place() -> None:
    header = Header((("From", FROM), ("patchq-name", "old"), ("Origin", "x")))
    assert header.replace("Patchq-Name", "new\nSubject: evil").fields == (
        ("From", FROM),
        ("Origin", "x"),
        ("Patchq-Name", "new Subject: evil"),
    )
    assert header.replace("Origin").fields == (("From", FROM), ("patchq-name", "old"))


def test_a_body_has_no_nul() -> None:
    """git refuses a message with one."""
    assert headers.make([("Subject", "a\0b")], "c\0d") == Header((("Subject", "a b"),), "cd")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"From: x\nno field\n---\n", "it:2 is not a header field"),
        (b"From: x\n folded: y\n---\n", "it:2 is not a header field"),
        (b"From: x\r\n\r\n---\r\n", "it:2 is not a header field"),
        (b"From: x\n\nbody\n", "it has no `---` line"),
        (b"", "it has no `---` line"),
    ],
)
def test_a_header_that_is_none(text: bytes, says: str) -> None:
    with pytest.raises(PatchqError, match=says) as caught:
        headers.parse(text, "it")
    assert "patchq import" in caught.value.hint


@given(
    st.integers(-(2**33), 2**36),
    st.sampled_from(["+0000", "-0000", "+0200", "-0730", "+1400", "-1200", "+0545", "+2359"]),
)
def test_a_date_comes_back(seconds: int, zone: str) -> None:
    found = headers.when(headers.mail_date(seconds, zone), "it")
    assert int(found.timestamp()) == seconds
    assert f"{found:%z}" == zone.replace("-0000", "+0000")


@pytest.mark.parametrize("zone", ["+051800", "-7530", "+2", "", "+2460", "0200", "+１２００"])
def test_a_zone_that_is_none_is_utc(zone: str) -> None:
    assert headers.mail_date(1, zone) == "Thu, 1 Jan 1970 00:00:01 +0000"


@pytest.mark.parametrize("seconds", [10**15, -(10**15), 10**40])
def test_a_time_that_is_none_is_the_epoch(seconds: int) -> None:
    assert headers.mail_date(seconds, "+0100") == "Thu, 1 Jan 1970 01:00:00 +0100"


def test_dates_of_others() -> None:
    summer = datetime(2026, 7, 1, 9, 5, 0, tzinfo=timezone(timedelta(hours=-7)))
    assert headers.when("1 Jul 2026 09:05:00 -0700", "it") == summer
    assert headers.when("Wed, 01 Jul 26 09:05 -0700", "it") == summer
    assert headers.when("Wed, 1 Jul 2026 09:05:00", "it") == summer.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        "", "yesterday", "Mon, 99 Jan 2026 00:00:00 +0000", "Mon, 1 Jan 2026 25:00:00 +0000",
        "Mon, 1 Jan 2026 00:00:00 +9900", "Mon, 1 Jan 2026 00:00:00 +99999999999",
        "Mon, 1 Jan 99999999999999999999 00:00:00 +0000", "1 1 1", "2026-07-01",
    ],
)  # fmt: skip
def test_a_date_that_is_none(value: str) -> None:
    with pytest.raises(PatchqError, match=r"0001-a\.patch: .* is not a date") as caught:
        headers.when(value, "0001-a.patch")
    assert "Mon, 30 Nov 2026 12:00:00 +0000" in caught.value.hint


@given(st.text())
def test_any_text_is_a_date_or_refused(value: str) -> None:
    with suppress(PatchqError):
        assert headers.when(value, "it").tzinfo


@pytest.mark.parametrize(
    ("value", "name", "mail"),
    [
        (FROM, "Ada Tester", "ada@example.org"),
        ('"Tester, Ada" <a@example.org>', "Tester, Ada", "a@example.org"),
        ("<a@example.org>", "unknown", "a@example.org"),
        ("Ada", "Ada", ""),
        ("", "unknown", ""),
    ],
)
def test_a_person(value: str, name: str, mail: str) -> None:
    assert headers.person(value) == (name, mail)
