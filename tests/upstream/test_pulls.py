"""The record of pull requests: news is written down with its date, and no news changes no byte."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.errors import PatchqError
from patchq.forge.model import PullRequest
from patchq.upstream import state
from patchq.upstream.pulls import Pull, changes, record
from patchq.upstream.state import QueueState

A, B, C = "a" * 40, "b" * 40, "c" * 40
FIRST, LATER, LAST = "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", "2026-05-01T00:00:00Z"
OPEN = PullRequest(
    "acme/engine", 12, title="Knob", author="ada", state="open", base="main", head_sha=A,
    created_at="2026-02-01T00:00:00Z", updated_at="2026-02-01T00:00:00Z", labels=("bug",), commits=2,
)  # fmt: skip


def written(pull: Pull) -> bytes:
    return state.format({"q": QueueState("v1", C, C, pulls={pull.key: pull})})


def test_news_is_dated() -> None:
    first = record(None, OPEN, FIRST)
    assert first.first_seen == dict.fromkeys(("base", "draft", "head_sha", "state"), FIRST)
    landed = dataclasses.replace(OPEN, state="merged", merge_sha=B, merged_at=LATER)
    second = record(first, landed, LATER)
    assert changes(first, second) == ("merge_sha", "merged_at", "state")
    assert second.first_seen == {
        "base": FIRST, "draft": FIRST, "head_sha": FIRST, "merge_sha": LATER, "state": LATER,
    }  # fmt: skip


def test_no_news_changes_no_byte() -> None:
    first = record(None, OPEN, FIRST)
    commented = dataclasses.replace(OPEN, updated_at=LATER)
    assert record(first, commented, LATER) is first
    by_rest = dataclasses.replace(OPEN, means="rest", commits=None)
    assert record(first, by_rest, LATER) is first
    by_git = PullRequest("acme/engine", 12, head_sha=A, means="git")
    assert record(first, by_git, LATER) is first
    assert record(first, first, LATER) is first


def test_what_a_means_does_not_know_stays() -> None:
    first = record(None, dataclasses.replace(OPEN, closed_by=B, former_bases=("dev",)), FIRST)
    moved = record(first, PullRequest("acme/engine", 12, head_sha=B, means="git"), LATER)
    assert (moved.head_sha, moved.title, moved.state) == (B, "Knob", "open")
    assert moved.first_seen["head_sha"] == LATER and moved.first_seen["state"] == FIRST
    assert moved.means == "git", "the last news came so"
    listed = dataclasses.replace(OPEN, means="rest", title="Knobs", commits=None)
    again = record(moved, listed, LAST)
    assert (again.title, again.head_sha) == ("Knobs", A)
    assert (again.commits, again.closed_by, again.former_bases) == (2, B, ("dev",))


def test_what_an_answer_leaves_out_stays() -> None:
    landed = dataclasses.replace(OPEN, state="merged", merge_sha=B, merged_at=LATER)
    first = record(None, landed, FIRST)
    thin = dataclasses.replace(landed, merge_sha=None, base="", head_sha="", means="rest")
    assert record(first, thin, LATER) is first
    reopened = record(first, dataclasses.replace(OPEN, means="rest"), LATER)
    assert (reopened.state, reopened.merge_sha) == ("open", None)


def test_by_git_alone_only_the_head_is_known() -> None:
    first = record(None, PullRequest("acme/engine", 12, head_sha=A, means="git"), FIRST)
    assert (first.state, first.head_sha) == ("unknown", A)


def test_events_that_a_forge_no_longer_tells_stay() -> None:
    told = dataclasses.replace(OPEN, reverted_by=(14,), mentioned_by=(13, 14))
    first = record(None, told, FIRST)
    again = record(first, dataclasses.replace(OPEN, mentioned_by=(99,)), LATER)
    assert (again.reverted_by, again.mentioned_by) == ((14,), (13, 14, 99))


def test_files_belong_to_a_head() -> None:
    first = record(None, dataclasses.replace(OPEN, files=("a.py",)), FIRST)
    assert record(first, OPEN, LATER).files == ("a.py",)
    assert record(first, dataclasses.replace(OPEN, head_sha=B), LATER).files == ()


def test_the_pin_is_ours() -> None:
    pinned = dataclasses.replace(record(None, OPEN, FIRST), pinned=A)
    assert record(pinned, dataclasses.replace(OPEN, head_sha=B), LATER).pinned == A


def test_the_file_reads_as_news() -> None:
    """A head that moved is two lines: the head, and when that was first seen."""
    first = dataclasses.replace(record(None, OPEN, FIRST), pinned=A)
    second = record(first, dataclasses.replace(OPEN, head_sha=B, updated_at=LATER), LATER)
    before, after = written(first).splitlines(), written(second).splitlines()
    news = [line.strip() for line in after if line not in before]
    assert news == [
        b'"head_sha": "2026-04-01T00:00:00Z",',
        b'"head_sha": "' + B.encode() + b'",',
        b'"updated_at": "2026-04-01T00:00:00Z"',
    ]
    assert len(before) == len(after)


def test_files_without_pull_requests_stay_as_they_are(tmp_path: Path) -> None:
    old = QueueState("v1", C, C)
    assert b"pulls" not in state.format({"q": old})
    (tmp_path / "state.json").write_bytes(state.format({"q": old}))
    assert state.read(tmp_path / "state.json") == {"q": old}


def test_a_sync_keeps_them() -> None:
    from patchq.upstream.releases import Release

    before = QueueState("v1", C, C, pulls={OPEN.key: record(None, OPEN, FIRST)})
    assert before.on(Release("v2", A, B), "s", "r").pulls == before.pulls


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
NUMBERS = st.tuples(st.integers(1, 999), st.integers(1, 999))
PULLS = st.builds(
    Pull, st.just("acme/engine"), st.integers(1, 10**8), title=TEXTS, author=TEXTS, base=TEXTS,
    state=st.sampled_from(["open", "closed", "merged", "unknown"]), draft=st.booleans(),
    former_bases=st.tuples(TEXTS), head_sha=TEXTS, forced_at=st.none() | st.just(FIRST),
    merge_sha=st.none() | st.just(A), labels=st.tuples(TEXTS), commits=st.none() | st.integers(1),
    files=st.tuples(TEXTS), replaces=NUMBERS, replaced_by=NUMBERS, reverts=NUMBERS,
    reverted_by=NUMBERS, mentioned_by=NUMBERS, means=st.sampled_from(["graphql", "rest", "git"]),
    pinned=st.none() | st.just(B), first_seen=st.dictionaries(TEXTS, TEXTS, max_size=2),
)  # fmt: skip


@settings(max_examples=50)
@given(PULLS)
def test_any_record_comes_back(tmp_path_factory: pytest.TempPathFactory, pull: Pull) -> None:
    path = tmp_path_factory.getbasetemp() / "pulls.json"
    path.write_bytes(written(pull))
    assert state.read(path)["q"].pulls == {pull.key: pull}


DAMAGE: dict[str, tuple[str, Any]] = {
    "no number": ("acme/engine", {}),
    "a list": ("acme/engine#1", []),
    "an unknown fact": ("acme/engine#1", {"mood": "good"}),
    "the key twice": ("acme/engine#1", {"number": 2}),
    "a text for a number": ("acme/engine#1", {"commits": "2"}),
    "a truth for a number": ("acme/engine#1", {"commits": True}),
    "no state": ("acme/engine#1", {"state": "hovering"}),
    "a number for labels": ("acme/engine#1", {"labels": 1}),
    "numbers for labels": ("acme/engine#1", {"labels": [1]}),
    "texts for numbers": ("acme/engine#1", {"replaces": ["1"]}),
    "null": ("acme/engine#1", {"title": None}),
    "a list for dates": ("acme/engine#1", {"first_seen": []}),
    "numbers for dates": ("acme/engine#1", {"first_seen": {"state": 1}}),
}


@pytest.mark.parametrize(("key", "facts"), DAMAGE.values(), ids=DAMAGE.keys())
def test_damage(tmp_path: Path, key: str, facts: Any) -> None:
    good = json.loads(written(record(None, OPEN, FIRST)))
    good["queues"]["q"]["pulls"] = {key: facts}
    path = tmp_path / "upstream" / "state.json"
    path.parent.mkdir()
    path.write_text(json.dumps(good))
    with pytest.raises(PatchqError, match=r"upstream/state\.json is damaged: "):
        state.read(path)
