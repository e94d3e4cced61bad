"""A bisection on disk: whole or not there, one writer, results from elsewhere checked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patchq.bisect import session as sessions
from patchq.bisect.model import Move
from patchq.bisect.run import take
from patchq.bisect.session import Asked, Result, Session, Trial
from patchq.errors import PatchqError

MOVES = (
    Move("a", "patch", "a is new"),
    Move("b\udcff", "base", "odd name", "https://example.com", frozenset({"a"})),
)
BOTH = frozenset({"a", "b\udcff"})
ASKED = Asked("show it", "1" * 40, "2" * 40, repeat=5, skip_codes=(7, 125), cluster="two")


@pytest.fixture
def session() -> Session:
    return Session(ASKED, MOVES, (Trial(BOTH, bad=1, built=True),), ("release 1", "."))


def test_what_is_saved_is_read(tmp_path: Path, session: Session) -> None:
    session = replace(session, rounds=3, issued=(BOTH, frozenset()))
    session = session.put(
        Trial(frozenset({"a"}), skipped="it breaks", tree="3" * 40, lock="4" * 64)
    )
    sessions.save(tmp_path, session)
    assert sessions.load(tmp_path) == session
    assert sessions.load(tmp_path / "none") is None


def test_a_trial_keeps_its_place(session: Session) -> None:
    """The order says what was known when: a later run of an old build changes no earlier step."""
    after = session.put(Trial(frozenset())).put(Trial(BOTH, bad=2))
    assert [each.moves for each in after.trials] == [BOTH, frozenset()]
    assert after.trial(BOTH).bad == 2


@pytest.mark.parametrize(
    "data",
    [b"{", b"[]", b'{"schema": "patchq.bisect-session/1"}', b'{"schema": "other"}'],
    ids=["torn", "no object", "empty", "other"],
)
def test_a_damaged_session_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "session.json").write_bytes(data)
    with pytest.raises(PatchqError, match="is damaged"):
        sessions.load(tmp_path)


def test_a_step_has_the_same_name_everywhere() -> None:
    assert sessions.name_of(frozenset("ab")) == sessions.name_of(frozenset("ba"))
    assert len({sessions.name_of(each) for each in (frozenset("ab"), frozenset({"a\nb"}))}) == 1
    assert sessions.name_of(frozenset()) == "e3b0c44298fc"


def test_another_question_is_another_bisection() -> None:
    others = [replace(ASKED, **{name: value}) for name, value in (("run", "x"), ("repeat", 6))]
    assert len({ASKED.key, *(each.key for each in others)}) == 3


def test_one_at_a_time(tmp_path: Path) -> None:
    with (
        sessions.held(tmp_path / "new"),
        pytest.raises(PatchqError, match="another patchq is at work"),
        sessions.held(tmp_path / "new"),
    ):
        pass
    with sessions.held(tmp_path / "new"):
        pass


# Results that other machines bring


def result(tmp_path: Path, session: Session, **more: Any) -> Path:
    """A result on top of what the session has of BOTH."""
    before = session.trial(BOTH)
    path = tmp_path / "step.json"
    sessions.give(path, Result(session.asked.key, before, replace(before, good=3)))
    if more:
        value = json.loads(path.read_bytes())
        after = {key: each for key, each in more.items() if key in value["after"]}
        others = {key: each for key, each in more.items() if key not in after}
        value = {**value, **others, "after": {**value["after"], **after}}
        path.write_text(json.dumps(value))
    return path


def test_a_result_is_taken_once(tmp_path: Path, session: Session) -> None:
    path = result(tmp_path, session)
    once = take(tmp_path, session, [path])
    assert (once.trial(BOTH).bad, once.trial(BOTH).good, once.rounds) == (1, 3, 1)
    assert sessions.load(tmp_path) == once
    assert take(tmp_path, once, [path, path]) == once
    on = session.put(replace(session.trial(BOTH), bad=4))
    assert take(tmp_path, on, [path]) == on, "it began with what is no longer so"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"bisection": "0" * 12}, "of another bisection"),
        ({"schema": "patchq.bisect/1"}, "no result of a step"),
        ({"moves": ["a"]}, "of other moves"),
        ({"moves": ["a", "c"]}, "of other moves"),
        ({"bad": 0}, "fewer runs"),
        ({"bad": -1}, "fewer runs"),
        ({"good": True}, "good is True"),
        ({"good": "3"}, "good is '3'"),
        ({"skipped": 5}, "skipped is 5"),
        ({"moves": [1]}, "not names"),
    ],
    ids=str,
)
def test_a_result_that_is_none(
    tmp_path: Path, session: Session, more: dict[str, Any], says: str
) -> None:
    with pytest.raises(PatchqError, match=says):
        take(tmp_path, session, [result(tmp_path, session, **more)])


def test_results_that_cannot_be_read(tmp_path: Path, session: Session) -> None:
    (tmp_path / "torn.json").write_bytes(b"\xff{")
    for name, says in (("torn.json", "no result"), ("none.json", "cannot be read")):
        with pytest.raises(PatchqError, match=says):
            take(tmp_path, session, [tmp_path / name])


def test_which_one_is_meant(tmp_path: Path, session: Session) -> None:
    with pytest.raises(PatchqError, match="no bisection here"):
        sessions.one(tmp_path)
    sessions.save(tmp_path / "x", session)
    assert sessions.one(tmp_path) == tmp_path / "x"
    sessions.save(tmp_path / "y", session)
    with pytest.raises(PatchqError, match="which bisection") as caught:
        sessions.one(tmp_path)
    assert f"--state {tmp_path / 'y'}" in caught.value.hint


def test_steps_by_their_names(session: Session) -> None:
    named = replace(session, issued=(frozenset({"a"}),))
    assert named.subset(sessions.name_of(frozenset({"a"}))) == {"a"}
    assert named.subset(sessions.name_of(BOTH)) == BOTH
    with pytest.raises(PatchqError, match="there is no step"):
        session.subset(sessions.name_of(frozenset({"a"})))
