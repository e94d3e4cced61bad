"""What commits say of themselves."""

from __future__ import annotations

import pytest

from patchq.gitstore.log import Commit
from patchq.judge.commits import Told, mainline, numbers, title

OLD = "a" * 40


def told(subject: str, body: str = "", oid: str = "1" * 40, *parents: str) -> Told:
    return Told(Commit(oid, parents or (OLD,), "Ada", "2026-10-01", subject, body, ()))


@pytest.mark.parametrize(
    ("subject", "body", "own", "others"),
    [
        ("[Core] Read the knobs (#57477)", "", 57477, ()),
        ("[Core] Read the knobs (#57477) (#58001)", "", 58001, (57477,)),
        ("Merge pull request #12 from somebody/fix", "", 12, ()),
        ("Read the knobs", "Pull Request resolved: https://github.com/a/b/pull/7", 7, ()),
        ("Read the knobs", "See https://github.com/a/b/pull/7", None, ()),
        ("Follow-up to #9: more", "", None, (9,)),
        ("Issue&#39;s quote", "", None, ()),
        ("Colour abc#9", "", None, ()),
    ],
)
def test_numbers_of_a_commit(
    subject: str, body: str, own: int | None, others: tuple[int, ...]
) -> None:
    found = told(subject, body)
    assert (found.own, found.others) == (own, others)


@pytest.mark.parametrize(
    ("subject", "body", "taken"),
    [
        ('Revert "Read the knobs (#1)" (#2)', "", {1}),
        ("Revert PR 4122 (#4171)", "", {4122}),
        ("revert: #3975 and #4129 (mamba, doc)", "", {3975, 4129}),
        ("revert(moe): revert #3738 (+ dependents #4025, #4080) (#4411)", "", {3738, 4025, 4080}),
        ("Back out the knobs", "Reverts acme/engine#5", {5}),
        ("Knobs: off again", "This reverts #6.", {6}),
        ('Revert "Revert "Read the knobs (#1)" (#2)" (#3)', "", {2}),
        ("Revert the docs (#8)", "", set()),
        ("Reverting is hard: a guide (#8)", "Reverts are hard, as #5 shows", set()),
    ],
)
def test_what_it_takes_back(subject: str, body: str, taken: set[int]) -> None:
    assert told(subject, body).reverted == taken


@pytest.mark.parametrize(
    ("subject", "again"),
    [
        ('Reapply "Read the knobs (#1)" (#4)', {1}),
        ("Reland #1: read the knobs (#4)", {1}),
        ('Revert "Revert "Read the knobs (#1)" (#2)" (#3)', {1}),
        ("SM 107 Reland + Merge Back (#4280)", set()),
        ("Read the knobs (#1)", set()),
    ],
)
def test_what_it_brings_again(subject: str, again: set[int]) -> None:
    assert told(subject).again == again


def test_a_revert_of_a_revert_is_none() -> None:
    assert told('Revert "Read (#1)" (#2)').is_revert
    assert not told('Revert "Revert "Read (#1)" (#2)" (#3)').is_revert
    assert told('Revert "Read the knobs (#1)" (#2)').reverted_title == "read the knobs"


def test_commits_that_are_named() -> None:
    sha = "0123456789abcdef0123456789abcdef01234567"
    assert told("Pick", f"(cherry picked from commit {sha})").picked == (sha,)
    assert told("Back", f"This reverts commit {sha[:12]}.").reverted_ids == (sha[:12],)


@pytest.mark.parametrize(
    ("subject", "wanted"),
    [
        ("Read the knobs (#1)", (1,)),
        ("Read the knobs (#1) (#2)", (1, 2)),
        ("Fix #5 in the knobs", ()),
        ('Revert "Read the knobs (#1)"', ()),
        ('Revert "Read the knobs (#1)" (#2)', (2,)),
    ],
)
def test_numbers_of_a_patch(subject: str, wanted: tuple[int, ...]) -> None:
    """A patch that takes a pull request back is not that pull request."""
    assert numbers(subject) == wanted


def test_titles_are_compared_without_kinds_and_numbers() -> None:
    assert title("[Core]  Read the Knobs (#1) (#2)") == "read the knobs"
    assert title("fix(core)!: Read the knobs") == "read the knobs"
    assert title("Knobs: read and write") == "read and write"


def test_the_line_without_merges() -> None:
    """A pull request's merge stands for its commits; the merge of a branch gives way to them."""
    fix = told("Fix", "", "f" * 40, OLD)
    pull = told("Merge pull request #1 from x/y", "", "e" * 40, OLD, "f" * 40)
    work = told("Work", "", "d" * 40, "e" * 40)
    branch = told("Merge branch 'dev'", "", "c" * 40, "e" * 40, "d" * 40)
    assert mainline([fix, pull, work, branch]) == [pull, work]
