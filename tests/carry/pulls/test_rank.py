"""Which pull requests matter, and why."""

from __future__ import annotations

import pytest

from patchq.carry.pulls.rank import rank, says
from patchq.forge.model import PullRequest


def pull(number: int, title: str = "", **facts: object) -> PullRequest:
    return PullRequest("acme/engine", number, title, state="open", **facts)  # type: ignore[arg-type]


def order(*pulls: PullRequest, terms: tuple[str, ...] = (), **more: tuple[str, ...]) -> list[int]:
    found = rank(pulls, terms, more.get("topics", ()), more.get("ours", ()), more.get("known", ()))
    return [int(each.key.rpartition("#")[2]) for each in found]


@pytest.mark.parametrize(
    ("title", "word", "said"),
    [
        ("[GLM-5.3] Fix it", "glm", True),
        ("glm4moe parser", "glm", True),
        ("the eglm case", "glm", False),
        ("a prefix  cache", "prefix cache", False),
        ("Prefix cache hits", "prefix cache", True),
        ("c++ (again)", "c++", True),
    ],
)
def test_says(title: str, word: str, said: bool) -> None:
    assert says(title, word) is said


def test_what_weighs_more() -> None:
    """A term outweighs a topic, files of ours outweigh a label, chance weighs nothing."""
    pulls = [
        pull(1, "Unrelated"),
        pull(2, "Topic: dflash"),
        pull(3, "About the knob"),
        pull(4, "Quiet", files=("a.py", "b.py")),
        pull(5, "Quiet", labels=("dflash",)),
    ]
    assert order(*pulls, terms=("knob",), topics=("dflash",), ours=("a.py", "b.py")) == [3, 4, 2, 5]


def test_state_counts() -> None:
    pulls = [
        pull(1, "knob"),
        pull(2, "knob", draft=True),
        PullRequest("acme/engine", 3, "knob", state="merged"),
        PullRequest("acme/engine", 4, "knob", state="closed"),
    ]
    assert order(*pulls, terms=("knob",)) == [3, 1, 2, 4]
    assert order(pulls[3], topics=("knob",)) == [], "closed, and only a topic"


def test_equals_stand_in_a_fixed_order() -> None:
    pulls = [pull(number, "knob") for number in (9, 7, 8)]
    assert order(*pulls, terms=("knob",)) == [7, 8, 9]


def test_what_touches_a_watched_one_matters() -> None:
    found = rank(
        [pull(1, "x", replaces=(7,)), pull(2, "y", reverts=(7,)), pull(3, "z", replaces=(70,))],
        (),
        (),
        (),
        ("acme/engine#7",),
    )
    assert {each.key: each.reasons[0].says for each in found} == {
        "acme/engine#1": "replaces acme/engine#7, which is watched here",
        "acme/engine#2": "takes back acme/engine#7, which is watched here",
    }


def test_reasons_add_up() -> None:
    (found,) = rank([pull(1, "knob", files=("a.py",), draft=True)], ("knob",), (), ("a.py",))
    assert found.score == sum(reason.weight for reason in found.reasons) == 40
    assert [reason.says for reason in found.reasons] == [
        "title says 'knob'",
        "changes a.py, as our patches do",
        "a draft",
    ]


def test_what_only_the_text_says_weighs_little() -> None:
    texts = {"acme/engine#1": "Closes the knob issue; see ../../etc", "acme/engine#2": ""}
    found = rank([pull(1, "x"), pull(2, "x")], ("knob",), ("knob",), (), (), texts)
    assert [(each.key, each.score) for each in found] == [("acme/engine#1", 5)]
