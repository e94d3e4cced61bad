"""What texts of pull requests say of others: said plainly, and to this repository, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.forge.words import Relations, relations

REPLACES = {
    "Supersedes #12": (12,),
    "This supersedes #12, #13 and #14.": (12, 13, 14),
    "replaces PR #12 & pull request": (12,),
    "Replacement for https://github.com/acme/engine/pull/12 (closed)": (12,),
    "Takes over acme/engine#12": (12,),
    "Supersedes: #12": (12,),
    "supersedes other/thing#12": (),
    "superseded by #12": (),
    "replaces the gear, see #12": (),
    "see #12": (),
    "<!-- Supersedes #12 -->": (),
    "> Supersedes #12": (),
    "```\nSupersedes #12\n```\n": (),
    "`Supersedes #12`": (),
    "    Supersedes #12": (),
    "Supersedes #7": (),
    "supersedes #0": (),
}


@pytest.mark.parametrize(("text", "numbers"), REPLACES.items(), ids=REPLACES.keys())
def test_replaces(text: str, numbers: tuple[int, ...]) -> None:
    assert relations("acme/engine", 7, "Knob", text).replaces == numbers


REPLACED = {
    "Closing in favor of #20": (20,),
    "closed in favour of https://github.com/ACME/engine/pull/20": (20,),
    "Superseded by #20.": (20,),
    "Replaced by PR #20": (20,),
    "Supersedes #20": (),
}


@pytest.mark.parametrize(("text", "numbers"), REPLACED.items(), ids=REPLACED.keys())
def test_replaced(text: str, numbers: tuple[int, ...]) -> None:
    assert relations("acme/engine", 7, "Knob", text).replaced_by == numbers


REVERTS = {
    ('Revert "Knob (#5)"', ""): (5,),
    ('[Bugfix] Revert "Knob (#5)" (#7)', ""): (5,),
    ('Revert "Revert "Knob (#5)" (#6)"', ""): (6,),
    ("Revert #5", ""): (5,),
    ("Knob", "Reverts acme/engine#5"): (5,),
    ("Knob", "It is slow.\r\nThis reverts #5 and #6\r\n"): (5, 6),
    ("Knob", "Reverts other/thing#5"): (),
    ("Knob", "A change that reverts #5"): (),
    ("Revert the gear, fixes #5", ""): (),
    ("Do not revert #5", ""): (),
}


@pytest.mark.parametrize(("texts", "numbers"), REVERTS.items(), ids=map(str, REVERTS))
def test_reverts(texts: tuple[str, str], numbers: tuple[int, ...]) -> None:
    assert relations("acme/engine", 7, *texts).reverts == numbers


@given(st.text(), st.text(alphabet=st.sampled_from("Supersedes #12,\n`>-<!"), max_size=80))
def test_any_text(title: str, body: str) -> None:
    found = relations("acme/engine", 7, title, body)
    assert isinstance(found, Relations)
    assert 7 not in (*found.replaces, *found.replaced_by, *found.reverts)


def test_a_long_hostile_text_takes_no_time() -> None:
    for text in ("`" * 60_000, "<!--" * 20_000, "supersedes #1," * 7_000, "> " * 40_000):
        relations("acme/engine", 7, text, text)
