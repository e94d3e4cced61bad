"""A patch file as a value: its name is its identity, its bytes stay as they are."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.errors import PatchqError
from patchq.queue import header as headers
from patchq.queue import patch as patches
from patchq.queue.header import Header

DIFF = b"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n"


def test_a_patch_is_made_and_read_again() -> None:
    header = headers.make([("Subject", "x"), ("From", "Ada <a@example.org>")], "why")
    made = patches.make(7, "some-name", header, DIFF)
    assert made.file == "0007-some-name.patch"
    assert made.text == (
        b"From: Ada <a@example.org>\nSubject: x\nPatchq-Name: some-name\n\nwhy\n---\n" + DIFF
    )
    assert patches.parse(made.file, made.text) == made
    assert made.author == ("Ada", "a@example.org")
    assert made.date.timestamp() == 0, "as old as the epoch"
    assert made.files and made.files[0].path == b"f"


def test_a_file_written_otherwise_stays_so() -> None:
    """Fields in another order, blanks, a body that needs no escape: only what changes is new."""
    text = b"Subject:   x \nFrom: Ada <a@example.org>\n\n\n  why\n\n\n---\n" + DIFF
    patch = patches.parse("0001-x.patch", text)
    assert patch.text == text
    assert patch.with_diff(DIFF) is patch
    assert patch.with_diff(b"").text == text.removesuffix(DIFF)
    changed = patch.with_header(patch.header.replace("Origin", "vendor"))
    assert (
        changed.text
        == b"From: Ada <a@example.org>\nSubject: x\nOrigin: vendor\n\n  why\n---\n" + DIFF
    )


@given(st.binary(max_size=60))
def test_any_diff_stays_as_it_is(diff: bytes) -> None:
    patch = patches.make(1, "x", Header((("Subject", "s"),), "body"), diff)
    assert patches.parse(patch.file, patch.text) == patch


@pytest.mark.parametrize(
    "file",
    [
        "x.patch", "1-x.patch", "001-x.patch", "0001-X.patch", "0001-x.diff", "0001-.patch",
        "0001-.x.patch", "0001-x y.patch", "0001-x/y.patch", "0001_x.patch", "0001-x.patch\n",
        "00001-x.patch", "٠٠٠١-x.patch", "0001-ü.patch",
    ],
)  # fmt: skip
def test_a_name_that_is_none(file: str) -> None:
    with pytest.raises(PatchqError, match=r"its name is not NNNN-name\.patch") as caught:
        patches.parse(file, b"Subject: x\n---\n")
    assert "patchq import" in caught.value.hint


@pytest.mark.parametrize("file", ["0001-x.patch", "9999-x.patch", "10000-a.b_c+d-e.patch"])
def test_a_name_is_that_of_the_file(file: str) -> None:
    assert patches.parse(file, b"Subject: x\n---\n").file == file


def test_a_patch_that_calls_itself_otherwise() -> None:
    with pytest.raises(PatchqError, match=r"0001-x\.patch calls itself 'y' in its Patchq-Name"):
        patches.parse("0001-x.patch", b"Patchq-Name: y\n---\n")


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("[exl3] Load rank-sliced routed experts", "load-rank-sliced-routed-experts"),
        ("[A][B]  Fix: it's broken!", "fix-it-s-broken"),
        ("[only-a-tag]", "only-a-tag"),
        ("Größe zählt", "gre-zhlt"),
        ("漢字", "patch"),
        ("", "patch"),
        ("../../etc/passwd", "etc-passwd"),
        ("x" * 80, "x" * 50),
        ("a" * 49 + " b", "a" * 49),
    ],
)
def test_a_name_of_a_subject(subject: str, name: str) -> None:
    assert patches.slug(subject) == name


def test_a_name_that_is_taken() -> None:
    assert patches.slug("Fix it", {"fix-it"}) == "fix-it-2"
    assert patches.slug("Fix it", frozenset({"fix-it", "fix-it-2"})) == "fix-it-3"


@given(st.text() | st.from_regex(r"(\[[^\]]*\])? ?\w*"), st.integers(1, 20000))
def test_any_subject_gives_a_file_name(subject: str, number: int) -> None:
    name = patches.slug(subject)
    file = patches.file_name(number, name)
    assert patches.FILE.match(file) and len(name) <= 50
    assert re.fullmatch(r"[a-z0-9-]+", name)
