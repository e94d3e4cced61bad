"""`upstream/state.json`: the same facts are the same bytes, and damage is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.errors import PatchqError
from patchq.upstream import state
from patchq.upstream.releases import Release
from patchq.upstream.state import QueueState

ONE = QueueState("v1", "c" * 40, "t" * 40)


def test_a_sync_moves_the_base_and_keeps_what_was_seen() -> None:
    first = ONE.on(Release("v1", "c1", "t1", (("archive", "a"),)), "s1", "r1")
    second = first.on(Release("v2", "c2", "t2"), "s2", "r2")
    assert (second.release, second.commit, second.tree) == ("v2", "c2", "t2")
    assert (second.series, second.runner_tree) == ("s2", "r2")
    assert second.releases == {
        "v1": {"archive": "a", "commit": "c1", "tree": "t1"},
        "v2": {"commit": "c2", "tree": "t2"},
    }
    assert second.proved("s3", "r3").releases == second.releases
    assert first.releases.keys() == {"v1"}, "values stay as they are"


def test_the_file(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    assert state.read(path) == {}
    states = {"vllm": ONE.on(Release("ü1", "c", "t"), "s", "r"), "a": ONE}
    path.write_bytes(state.format(states))
    assert state.read(path) == states
    text = path.read_text(encoding="utf-8")
    assert '      "release": "ü1",\n' in text, "one fact a line"
    assert text.index('"a"') < text.index('"vllm"')
    assert state.format(dict(reversed(states.items()))) == path.read_bytes()


TEXT = st.text()
STATES = st.dictionaries(
    TEXT,
    st.builds(
        QueueState, TEXT, TEXT, TEXT, TEXT, TEXT,
        releases=st.dictionaries(TEXT, st.dictionaries(TEXT, TEXT, max_size=3), max_size=3),
    ),
    max_size=3,
)  # fmt: skip


@settings(max_examples=40)
@given(STATES)
def test_any_state_comes_back(
    tmp_path_factory: pytest.TempPathFactory, states: dict[str, QueueState]
) -> None:
    path = tmp_path_factory.getbasetemp() / "state.json"
    path.write_bytes(state.format(states))
    assert state.read(path) == states


GOOD = json.loads(state.format({"q": ONE.on(Release("v1", "c", "t"), "s", "r")}))


def broken(**more: object) -> str:
    return json.dumps({**GOOD, "queues": {"q": {**GOOD["queues"]["q"], **more}}})


DAMAGED = {
    "empty": "",
    "conflict": "<<<<<<< ours\n{}\n",
    "a list": "[]",
    "no schema": "{}",
    "another schema": json.dumps({**GOOD, "schema": "patchq.state/2"}),
    "no queues": json.dumps({"schema": state.SCHEMA}),
    "queues are a list": json.dumps({**GOOD, "queues": [1]}),
    "a queue is a text": json.dumps({**GOOD, "queues": {"q": "x"}}),
    "no base": broken(base=None),
    "half a base": broken(base={"release": "v1"}),
    "releases are a list": broken(releases=["v1"]),
    "a release is a text": broken(releases={"v1": "abc"}),
    "a release is a number": broken(releases={"v1": 1}),
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED.keys())
def test_damage(tmp_path: Path, text: str) -> None:
    path = tmp_path / "upstream" / "state.json"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(PatchqError, match=r"upstream/state\.json is damaged: ") as caught:
        state.read(path)
    assert "restore it from git" in caught.value.hint


def test_not_even_text(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_bytes(b"\xff\xfe\0")
    with pytest.raises(PatchqError, match="is damaged"):
        state.read(tmp_path / "state.json")
