"""The plan: what is told, once, in place, and never over what people did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from patchq.forge.issues import Issue
from patchq.forge.proposals import Proposal
from patchq.nightly.model import Night, Told
from patchq.nightly.ours import BEGIN, END
from patchq.nightly.people import (
    Plan,
    Stands,
    Step,
    Tale,
    Text,
    Words,
    key,
    plan_issue,
    plan_pull,
    since,
)
from tests.nightly.tales import MADE, OTHER, SPINS, TREE, issue, night, proposal, tale

MARKER = "<!-- patchq:nightly vllm -->"


def _pull(tale: Tale, most: int) -> Text:
    off = f" not over {tale.kept_off}" if tale.kept_off else ""
    return Text(f"Series for vllm {tale.night.name}", f"{tale.night.state}{off}")


def _issue(tale: Tale, most: int) -> Text:
    return Text(f"Nightly: since {tale.since}", f"{tale.night.name} <!-- {END} -->")


PLAIN = Words(
    _pull,
    _issue,
    lambda tale: f"by {tale.night.name}",
    lambda tale: f"over since {tale.night.name}",
    lambda found, most: Text("", ""),
    lambda night: "",
)


def pull(tale: Tale, **stands: Any) -> Plan:
    return plan_pull(tale, Stands(**stands), PLAIN)


def told(tale: Tale, standing: Issue | None = None) -> Plan:
    return plan_issue(tale, Stands(issue=standing), PLAIN)


def one(plan: Plan) -> Step:
    (step,) = plan.steps
    return step


def made(plan: Plan, standing: Proposal) -> Proposal:
    """The pull request after the plan."""
    step = plan.steps[-1]
    return replace(standing, title=step.title or standing.title, body=step.body)


# The pull request


@pytest.mark.parametrize("state", ["green", "quiet"])
def test_one_that_proposes_nothing_any_more_is_closed(state: str) -> None:
    standing = proposal(body=f"Mine.\n\n{BEGIN}\n<!-- patchq:tree {TREE} -->\nred\n{END}")
    later = tale(night("2026-12-02", state, commit=None), night(state="red"))
    step = one(pull(later, pulls=(standing,), tip=MADE))
    assert (step.do, step.number, step.comment) == ("close-pull", 5, "over since 2026-12-02")
    closed = replace(standing, open=False, body=step.body)
    assert step.body.startswith("Mine.")
    again = pull(tale(night("2026-12-03")), pulls=(closed,), tip=MADE)
    assert [each.do for each in again.steps][-1] == "propose", "nobody refused it"


def test_one_with_a_persons_commits_is_not() -> None:
    later = tale(night("2026-12-02", "quiet", commit=None), night())
    assert pull(later, pulls=(proposal(),), tip=OTHER) == Plan()


def test_one_that_is_waited_for_is_not() -> None:
    later = tale(night("2026-12-02", "quiet", commit=MADE), night())
    assert pull(later, pulls=(proposal(),), tip=MADE) == Plan()


def test_a_new_series_is_pushed_and_proposed() -> None:
    push, propose = pull(tale(night())).steps
    assert push == Step("push", commit=MADE, expected=None)
    assert (propose.do, propose.title) == ("propose", "Series for vllm 2026-12-01")
    assert propose.body == f"{BEGIN}\n<!-- patchq:tree {TREE} -->\ngreen\n{END}"


def test_twice_is_once() -> None:
    first = tale(night())
    standing = made(pull(first), proposal())
    assert pull(first, pulls=(standing,), tip=MADE, same=True) == Plan()
    mended = replace(standing, body=standing.body.replace("\n", "\r\n") + "\r\n")
    assert pull(first, pulls=(mended,), tip=MADE, same=True) == Plan(), "GitHub's editor"


def test_the_next_night_brings_it_up_to_date_in_place() -> None:
    standing = made(pull(tale(night())), proposal())
    by_hand = replace(standing, body=f"Look at the router!\n\n{standing.body}\n\nAda: good.")
    second = night("2026-12-02", "red", commit=OTHER)
    earlier = night(told=Told(5, MADE, None))
    push, edit = pull(tale(second, earlier), pulls=(by_hand,), tip=MADE).steps
    assert push == Step("push", commit=OTHER, expected=MADE)
    assert (edit.do, edit.number, edit.title) == ("edit-pull", 5, "Series for vllm 2026-12-02")
    assert edit.body.startswith("Look at the router!\n\n<!-- patchq:begin -->")
    assert edit.body.endswith("\nred\n<!-- patchq:end -->\n\nAda: good.")


def test_the_same_files_are_not_pushed_again() -> None:
    """Another night, another commit, but no file differs."""
    standing = made(pull(tale(night())), proposal())
    second = night("2026-12-02", commit=OTHER)
    step = one(pull(tale(second, night()), pulls=(standing,), tip=MADE, same=True))
    assert (step.do, step.title) == ("edit-pull", "Series for vllm 2026-12-02")


def test_a_title_that_a_person_gave_stays() -> None:
    standing = made(pull(tale(night())), proposal())
    named = replace(standing, title="The router, at last")
    assert pull(tale(night()), pulls=(named,), tip=MADE, same=True) == Plan()
    step = one(pull(tale(night(state="red")), pulls=(named,), tip=MADE, same=True))
    assert step.title is None


def test_commits_of_a_person_are_not_overwritten() -> None:
    standing = made(pull(tale(night())), proposal())
    found = pull(tale(night(), night("2026-11-30")), pulls=(standing,), tip=OTHER)
    assert one(found).do == "edit-pull"
    assert f"not over {OTHER}" in one(found).body
    assert found.says == (
        "patchq/nightly has commits that patchq did not make (bbbbbbbbbbbb): nothing was pushed",
    )


def test_a_branch_of_somebody_else_without_a_pull_request_is_let_alone() -> None:
    found = pull(tale(night()), tip=OTHER)
    assert found.steps == () and len(found.says) == 1


@pytest.mark.parametrize(
    "earlier",
    [night("2026-11-30", told=Told(pushed=OTHER)), night("2026-11-30", commit=OTHER)],
    ids=["recorded", "pushed, and killed before it was recorded"],
)
def test_what_a_night_made_may_be_replaced(earlier: Night) -> None:
    push, _ = pull(tale(night(), earlier), tip=OTHER).steps
    assert push == Step("push", commit=MADE, expected=OTHER)


def test_what_was_merged_is_not_lost() -> None:
    merged_one = proposal(open=False, merged=True, head_sha=OTHER)
    push, propose = pull(tale(night()), pulls=(merged_one,), tip=OTHER).steps
    assert (push.expected, propose.do) == (OTHER, "propose")


def test_what_a_night_says_of_itself_is_no_record() -> None:
    """It may come from another machine, which would name a person's commit as its own."""
    found = pull(tale(night(told=Told(pushed=OTHER))), tip=OTHER)
    assert found.steps == ()


def test_closed_by_a_person_it_is_not_opened_again_for_the_same_tree() -> None:
    closed = replace(made(pull(tale(night())), proposal()), open=False)
    found = pull(tale(night("2026-12-02", commit=OTHER)), pulls=(closed,), tip=MADE)
    assert found == Plan(
        says=("pull request #5 has this very series, and was closed: none is opened again",)
    )
    other = night("2026-12-02", tree="8" * 40)
    assert [each.do for each in pull(tale(other, night()), pulls=(closed,), tip=MADE).steps] == [
        "push",
        "propose",
    ]
    emptied = replace(closed, body="Not now.")
    record = night(told=Told(5, MADE))
    found = pull(tale(night("2026-12-02"), record), pulls=(emptied,), tip=MADE)
    assert found.steps == (), "the nights' record knows it, too"


def test_opened_again_by_a_person_it_is_kept_up_to_date() -> None:
    first = replace(made(pull(tale(night())), proposal(4)), open=False)
    again = proposal(5)
    step = one(pull(tale(night()), pulls=(again, first), tip=MADE, same=True))
    assert (step.do, step.number) == ("edit-pull", 5)


@pytest.mark.parametrize("state", ["quiet", "asks", "incomplete", "running"])
def test_no_series_no_pull_request(state: str) -> None:
    assert pull(tale(night(state=state)), pulls=(proposal(),), tip=OTHER) == Plan()


def test_a_series_that_is_in_main_already() -> None:
    from tests.nightly.tales import STAGES, stage

    released = night(stages=(*STAGES, stage("release")))
    assert pull(tale(released)) == pull(tale(night(commit=None))) == Plan()


# The issue


def red(day: str = "2026-12-01", **fields: Any) -> Night:
    return night(day, "red", **fields)


def opened(of: Tale, number: int = 7) -> Issue:
    """The issue that its plan opens."""
    step = one(told(of))
    assert step.do == "open-issue"
    return issue(number, title=step.title, body=step.body)


def test_a_red_night_opens_one() -> None:
    standing = opened(tale(red()))
    assert standing.title == "Nightly: since 2026-12-01"
    assert standing.body.split("\n")[:2] == [MARKER, BEGIN]
    assert told(tale(red()), standing) == Plan(), "once"


def test_a_marker_in_a_strangers_words_is_none() -> None:
    """Else what follows it would be left as a person's, and grow from night to night."""
    standing = opened(tale(red()))
    assert standing.body.count(END) == 1
    step = one(told(tale(red("2026-12-02"), red()), standing))
    assert step.body.replace("2026-12-02", "2026-12-01") == standing.body


def test_the_next_one_brings_it_up_to_date_and_its_title_stays() -> None:
    standing = replace(opened(tale(red())), body=f"{opened(tale(red())).body}\n\nI look at it.")
    step = one(told(tale(red("2026-12-02"), red()), standing))
    assert (step.do, step.number, step.title) == ("edit-issue", 7, None)
    assert "2026-12-02" in step.body and step.body.endswith("\n\nI look at it.")


def test_another_stage_is_another_fault() -> None:
    standing = opened(tale(red()))
    step = one(told(tale(night("2026-12-02", "asks"), red()), standing))
    assert (step.do, step.title) == ("edit-issue", "Nightly: since 2026-12-02")


@pytest.mark.parametrize("state", ["green", "quiet"])
def test_a_good_night_closes_it_with_a_word(state: str) -> None:
    good = tale(night("2026-12-02", state), red())
    assert one(told(good, issue())) == Step("close-issue", 7, comment="by 2026-12-02")
    assert told(good) == told(good, issue(open=False)) == Plan()


def test_a_night_that_reached_nothing_says_nothing() -> None:
    assert told(tale(night(state="incomplete")), issue()) == Plan()


def test_closed_by_a_person_it_is_not_opened_for_the_same_fault() -> None:
    closed = replace(opened(tale(red())), open=False)
    before = red(told=Told(issue=7))
    found = told(tale(red("2026-12-02"), before), closed)
    assert found == Plan(
        says=("issue #7 tells of this very fault, and was closed: none is opened again",)
    )
    other = red("2026-12-02", lock="2" * 64)
    assert one(told(tale(other, before), closed)).do == "open-issue"


def test_closed_by_a_good_night_it_is_opened_anew() -> None:
    closed = replace(opened(tale(red())), open=False)
    before = (red(told=Told(issue=7)), night("2026-12-02"))
    assert one(told(tale(red("2026-12-03"), *before), closed)).do == "open-issue"


def test_a_marker_that_somebody_took_out_comes_back() -> None:
    step = one(told(tale(red()), issue(body="It spins.")))
    assert step.body.startswith(f"{MARKER}\nIt spins.\n\n{BEGIN}\n")


# Its parts


def test_since_when() -> None:
    nights = [red("2026-11-28"), night("2026-11-29"), red("2026-11-30")]
    assert since(red("2026-12-02"), [*nights, night("2026-12-01", "incomplete")]) == "2026-11-30"
    assert since(red("2026-12-02"), [*nights, night("2026-12-01", "asks")]) == "2026-12-02"


def test_what_is_the_same_fault() -> None:
    assert key(red()) == key(red("2026-12-02", commit=OTHER))
    assert key(red()) != key(red(lock="2" * 64))
    asks = night(state="asks")
    assert key(asks) == key(night("2026-12-02", "asks"))
    assert key(asks) != key(replace(asks, base=("0.32.0", "0.34.0")))
    assert key(asks) != key(replace(asks, fault=replace(SPINS, stage="sync", culprits=())))
