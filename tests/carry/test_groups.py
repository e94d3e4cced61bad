"""Which commits become one patch: decided on subjects and ids alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.carry import groups
from patchq.carry.groups import Group, Wanted
from patchq.errors import PatchqError
from patchq.queue import header as headers
from patchq.queue.mail import Brought

IDS = [f"{number:x}{0:033x}" for number in range(0x1111111, 0x1111119)]


@pytest.mark.parametrize(
    ("subject", "topic"),
    [
        ("[Exl3] Load", "exl3"),
        ("  [a b][c] x", "a b"),
        ("fix(loader)!: x", "fix"),
        ("vllm/exl3: x", "vllm/exl3"),
        ("Fix: x", "fix"),
        ("A sentence: with a colon", ""),
        ("https://x", ""),
        ("[] x", ""),
        ("plain", ""),
    ],
)
def test_topic(subject: str, topic: str) -> None:
    assert groups.topic_of(subject) == topic


def test_targets() -> None:
    subjects = [
        "A",
        "B",
        "fixup! A",
        "squash! fixup! A",
        "fixup! nobody",
        f"amend! {IDS[1][:9]}",
        "A",
        "fixup! A",
    ]
    assert groups.targets(IDS, subjects) == [0, 1, 0, 0, 4, 1, 6, 6]


@given(
    st.lists(
        st.sampled_from(["a: x", "b: y", "z", "fixup! z", "fixup! a: x", "[a] q"]), max_size=12
    )
)
def test_every_commit_is_in_one_group(subjects: list[str]) -> None:
    ids = [f"{place:040x}" for place in range(len(subjects))]
    for by_topic in (False, True):
        found = groups.grouped(ids, subjects, by_topic=by_topic)
        assert sorted(at for group in found for at in group.members) == list(range(len(subjects)))
        assert [group.members[0] for group in found] == sorted(g.members[0] for g in found)


def test_a_list() -> None:
    subjects = ["A", "B", "C", "fixup! A"]
    wanted = (Wanted("x", ("C", IDS[0][:10])),)
    assert groups.grouped(IDS[:4], subjects, wanted=wanted) == (
        Group((0, 2, 3), "x"),
        Group((1,)),
    )
    for commits, why in (
        (("Z",), "no commit is called 'Z'"),
        (("A",), "2 commits are called 'A' in the range"),
    ):
        with pytest.raises(PatchqError, match=why):
            groups.grouped(IDS[:3], ["A", "A", "B"], wanted=(Wanted("x", commits),))
    twice = (Wanted("x", ("A",)), Wanted("y", ("A",)))
    with pytest.raises(PatchqError, match="A is listed for x and for y"):
        groups.grouped(IDS[:2], ["A", "B"], wanted=twice)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"patch": []} | {"other": 1},
        {"patch": [{"name": "x"}]},
        {"patch": [{"name": "x", "commits": []}]},
        {"patch": [{"name": "x", "commits": [1]}]},
        {"patch": [{"name": "x", "commits": ["a"], "more": 1}]},
    ],
)
def test_no_list(data: dict[str, Any]) -> None:
    with pytest.raises(PatchqError, match="is not a list of patches"):
        groups.listed(data, "groups.toml")


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(PatchqError, match="cannot be read"):
        groups.read_list(tmp_path / "x.toml")
    (tmp_path / "x.toml").write_text("= 1")
    with pytest.raises(PatchqError, match="is not valid TOML"):
        groups.read_list(tmp_path / "x.toml")


def brought(subject: str, who: str = "Ada <a@x>", body: str = "", pull: str = "") -> Brought:
    fields = [("From", who), ("Subject", subject)] + ([("Patchq-Pr", pull)] if pull else [])
    return Brought(headers.make(fields, body), b"")


def test_a_header_for_many() -> None:
    """The first one's author and date, everybody's text and pull requests, the others' names."""
    many = [
        brought("[x] A", body="Why a.", pull="o/r#1"),
        brought("[x] B", "Bob <b@x>", pull="o/r#2"),
        brought("fixup! [x] A", "Eve <e@x>"),
    ]
    found = groups.header(Group((0, 1, 2), "", "x"), many, [0, 1, 0])
    assert found.get("From") == "Ada <a@x>"
    assert found.subject == "[x] 2 commits"
    assert found.all("Patchq-Pr") == ("o/r#1", "o/r#2")
    assert found.get("Patchq-Topic") == "x"
    assert found.body == "* [x] A\n\nWhy a.\n\n* [x] B\n\nCo-authored-by: Bob <b@x>"
