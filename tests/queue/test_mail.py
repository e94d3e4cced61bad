"""What people bring: mails, DEP-3 files, bare diffs and commits, read to a header and a diff."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.errors import PatchqError
from patchq.queue import header as headers
from patchq.queue import mail
from patchq.queue import patch as patches
from tests.support.history import History, git

DIFF = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"


def one(data: bytes) -> mail.Brought:
    (found,) = mail.read(data, "it")
    return found


def test_a_series_of_format_patch(tmp_path: Path) -> None:
    """As git writes it: signature and stat are not in the diff, encoded words are text."""
    history = History(tmp_path / "up")
    history.commit("start").write("f", b"a\r\n").write("g", b"x\n- \n")
    history.commit("Über [all] things: first line that goes on for longer than a header line has room\n\nWhy.\n\n  indented\n").by(
        "Zoë Straße".encode(), zone=b"-0730"
    ).write("f", b"b\r\n")  # fmt: skip
    history.commit("second").write("g", b"x\n")
    history.save()
    data = git(history.path, "format-patch", "--stdout", "--full-index", "main~2..main")
    first, second = mail.read(data, "it")
    assert first.header.get("From") == "Zoë Straße <x@example.org>"
    assert first.header.subject == (
        "Über [all] things: first line that goes on for longer than a header line has room"
    )
    assert first.header.body == "Why.\n\n  indented"
    assert headers.when(first.header.get("Date"), "it").isoformat() == "2025-06-15T09:36:40-07:30"
    assert b"\n-a\r\n+b\r\n" in first.diff and first.diff.startswith(b"diff --git a/f b/f\n")
    assert second.diff.endswith(b"\n x\n-- \n"), "a line of the diff is no signature"


def test_a_header_in_plain_utf_8() -> None:
    text = "From: Zoë <z@example.org>\nSubject: [PATCH v2 3/4] Grüße aus =?utf-8?q?K=C3=B6ln?=\n\nbödy\n"
    found = one(text.encode() + b"---\n" + DIFF).header
    assert (found.get("From"), found.subject) == ("Zoë <z@example.org>", "Grüße aus Köln")
    assert found.body == "bödy"


@pytest.mark.parametrize(
    "word", ["=?x-nope?q?abc?=", "=?utf-8?b?a?=", "=?idna?q?..?=", "=?utf-16?q?a?="]
)
def test_an_encoded_word_that_is_none(word: str) -> None:
    assert (
        one(b"Subject: a %s b\n\n---\n%s" % (word.encode(), DIFF)).header.subject == f"a {word} b"
    )


def test_encoded_words_side_by_side() -> None:
    word = b"=?utf-8?b?w6Q=?="
    found = one(b"Subject: %s\n %s x\n\n---\n%s" % (word, word, DIFF)).header
    assert found.subject == "ää x"


def test_a_line_break_in_an_encoded_word_starts_no_field() -> None:
    found = one(b"Subject: =?utf-8?q?a=0APatchq-Check:_evil?=\n\n---\n" + DIFF)
    assert found.header.subject == "a Patchq-Check: evil"
    assert found.header.checks == ()


def test_a_mail_that_travelled_as_base64() -> None:
    import base64

    text = base64.encodebytes(b"body\n---\n" + DIFF)
    head = b"Subject: x\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n"
    found = one(head + text)
    assert (found.header.body, found.diff) == ("body", DIFF)


def test_a_debian_patch() -> None:
    text = (
        b"Description: Keep it small\n More of it.\nAuthor: Ada <a@example.org>\n"
        b"Origin: upstream, https://github.com/example/up/pull/7\nBug: none\n---\n"
    )
    found = one(text + DIFF).header
    assert found.subject == "Keep it small"
    assert found.get("From") == "Ada <a@example.org>"
    assert found.all("Patchq-Pr") == ("example/up#7",)


def test_words_before_a_diff() -> None:
    found = one(b"\nMake it work\n\nSee there.\n" + DIFF)
    assert (found.header.subject, found.header.body, found.diff) == (
        "Make it work",
        "See there.",
        DIFF,
    )


def test_a_bare_diff_is_called_by_its_file() -> None:
    (found,) = mail.read(DIFF, "fix.diff")
    assert (found.header.subject, found.header.body, found.diff) == ("fix.diff", "", DIFF)


@pytest.mark.parametrize(
    "diff",
    [
        b"Index: f\n=====\n--- f.orig\n+++ f\n@@ -1 +1 @@\n-a\n+b\n",
        b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
        b"diff -u a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
        b"*** a/f\n--- b/f\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n",
    ],
)
def test_diffs_of_other_programs(diff: bytes) -> None:
    assert one(b"words\n\n" + diff).diff == diff


def test_a_line_of_a_diff_is_no_signature() -> None:
    """A removed `- `, as the last line or with one behind it."""
    head = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n"
    for diff in (
        head + b"@@ -1,2 +1 @@\n a\n-- \n",
        head + b"@@ -1,2 +1,2 @@\n a\n-- \n+b\n",
        head + b"@@ -1,2 +1 @@\n a\n-- \n\\ No newline at end of file\n",
    ):
        assert one(diff).diff == diff
        assert one(b"Subject: x\n\n---\n" + diff).diff == diff
        assert one(b"Subject: x\n\n---\n" + diff + b"-- \n2.39.5\n\n").diff == diff


def test_our_own_file_comes_back() -> None:
    fields = [("From", "Ada <a@example.org>"), ("Subject", "x"), ("Patchq-Topic", "t")]
    body = "See:\n--- a/x\n+++ b/x"
    patch = patches.make(3, "some-name", headers.make(fields, body), DIFF)
    found = one(patch.text)
    assert found.name == "some-name"
    assert found.header == headers.make(fields, body)
    assert found.diff == DIFF


def test_commands_and_rules_do_not_come_in() -> None:
    """Neither from our own form, nor from trailers; they are named."""
    fields = [("Subject", "x"), ("Patchq-Check", "rm -rf ~"), ("Patchq-Drop-When", "base>=1")]
    own = one(patches.make(1, "x", headers.make(fields, ""), DIFF).text)
    trailers = one(
        b"Subject: x\n\nwhy\n\nPatchq-Check: rm -rf ~\nPatchq-Drop-When: base>=1\n"
        b"Patchq-Topic: t\nSigned-off-by: Ada <a@example.org>\n---\n" + DIFF
    )
    for found in (own, trailers):
        assert set(found.left_out) == {"Patchq-Check: rm -rf ~", "Patchq-Drop-When: base>=1"}
        assert found.header.checks == () and not found.header.get("Patchq-Drop-When")
    assert trailers.header.get("Patchq-Topic") == "t"
    assert trailers.header.body == "why\n\nSigned-off-by: Ada <a@example.org>"


def test_pull_requests_of_origin_lines_only() -> None:
    body = (
        b"Origin: backport, https://github.com/example/up/pull/7\n"
        b"See https://github.com/example/up/pull/8\n"
        b"Origin: x, https://github.com/example/up/pull/7 https://ghe.example/o.x/r_y/pull/9/files\n"
    )
    found = one(b"Subject: x\n\n" + body + b"\ntext\n---\n" + DIFF).header
    assert found.all("Patchq-Pr") == ("example/up#7", "o.x/r_y#9")


@pytest.mark.parametrize("data", [b"", b"words\n", b"Subject: x\n\nwords\n", b"\0\xff"])
def test_no_diff(data: bytes) -> None:
    with pytest.raises(PatchqError, match="it holds no diff") as caught:
        mail.read(data, "it")
    assert "mbox" in caught.value.hint


COMMIT = b"tree x\nauthor %s\ncommitter A <a@b> 1 +0000\n%s\n%s"


def test_a_commit() -> None:
    message = b"Title\nthat goes on\n\nBody.\n\nPatchq-Topic: t\n"
    found = mail.from_commit(COMMIT % (b"Ada <a@b> 1750000000 +0200", b"", message), DIFF)
    assert found.header.fields == (
        ("From", "Ada <a@b>"),
        ("Date", "Sun, 15 Jun 2025 17:06:40 +0200"),
        ("Subject", "Title that goes on"),
        ("Patchq-Topic", "t"),
    )
    assert (found.header.body, found.diff) == ("Body.", DIFF)


@pytest.mark.parametrize(
    ("encoding", "message", "subject"),
    [
        (b"latin1", b"gr\xfcn", "grün"),
        (b"shift_jis", "漢字".encode("shift_jis"), "漢字"),
        (b"x-nope", "grün".encode(), "grün"),
        (b"\xff", b"x", "x"),
        (b"idna", b".a.\xff..b", ".a.\udcff..b"),
        (b"undefined", b"x", "x"),
        (b"a\0b", b"x", "x"),
    ],
)
def test_a_commit_in_another_encoding(encoding: bytes, message: bytes, subject: str) -> None:
    data = COMMIT % (b"Ada <a@b> 1 +0000", b"encoding " + encoding + b"\n", message)
    assert mail.from_commit(data, b"").header.subject == subject


def test_a_commit_from_no_time_and_place() -> None:
    """Old histories hold zones and times that are none; they are carried all the same."""
    for stamp in (b"1 +051800", b"1 -7530", b"99999999999999999999 +0000"):
        found = mail.from_commit(COMMIT % (b"A <a@b> " + stamp, b"", b"x"), b"")
        assert headers.when(found.header.get("Date"), "it").timestamp() in (0, 1)


PIECE = st.sampled_from([b"Subject: x\n", b"From: a\n", b"\n", b"---\n", DIFF, b"=?utf-8?b?", b"Content-Transfer-Encoding: base64\n", b"Content-Type: multipart/mixed; boundary=x\n", b"--x\n", b"From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\n", b"Patchq-Name: x\n", b"Index: f\n"])  # fmt: skip


@given(st.lists(PIECE | st.binary(max_size=10), max_size=10).map(b"".join))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        brought = mail.read(data, "it")
    except PatchqError:
        return
    for found in brought:
        header, diff = headers.parse(headers.format(found.header) + found.diff, "it")
        assert (header, diff) == (found.header, found.diff)


# Written as mails


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=60)
FIELDS = st.lists(
    st.tuples(
        st.sampled_from(["Origin", "Upstream-Status", "Patchq-Topic", "Patchq-Pr", "Bug", "X-Y"]),
        TEXTS.map(headers.one_line).filter(bool),
    ),
    max_size=4,
)


@given(TEXTS.map(headers.one_line).filter(bool), TEXTS, FIELDS)
def test_a_mail_reads_back(subject: str, body: str, fields: list[tuple[str, str]]) -> None:
    who = ("From", "Zoë Straße <x@example.org>")
    date = ("Date", "Thu, 2 Jan 2025 03:04:05 +0200")
    header = headers.make([who, date, ("Subject", subject), *fields], body)
    made = patches.make(3, "it", header, DIFF)
    (found,) = mail.read(mail.mail(made, 1, 1), "it")
    pulls = [("Patchq-Pr", pull) for pull in mail._pulls(list(header.fields), header.body)]
    known = {value.partition(" ")[0] for value in header.all("Patchq-Pr")}
    wanted = [*header.fields, *(pull for pull in pulls if pull[1] not in known)]
    assert found.header == headers.make(wanted, header.body)
    assert (found.name, found.left_out) == ("it", ())
    assert found.diff.rstrip(b"\n") == DIFF.rstrip(b"\n")


def test_an_mbox_of_mails() -> None:
    many = [
        patches.make(
            n, f"p{n}", headers.make([("Subject", f"[x][PATCH] {n}")], "From x\n---"), DIFF
        )
        for n in (1, 2, 3)
    ]
    data = b"".join(mail.mail(patch, n, 3) for n, patch in enumerate(many, 1))
    found = mail.read(data, "it")
    assert [each.name for each in found] == ["p1", "p2", "p3"]
    assert [each.header.subject for each in found] == [f"[x][PATCH] {n}" for n in (1, 2, 3)]
    assert {each.header.body for each in found} == {"From x\n---"}
    assert all(len(line) < 998 for line in data.split(b"\n"))


def test_what_is_dangerous_is_not_read_back() -> None:
    header = headers.make([("Subject", "x"), ("Patchq-Check", "rm"), ("Patchq-Drop-When", "y")], "")
    (found,) = mail.read(mail.mail(patches.make(1, "x", header, DIFF), 1, 1), "it")
    assert found.header.checks == ()
    assert found.left_out == ("Patchq-Drop-When: y", "Patchq-Check: rm")
