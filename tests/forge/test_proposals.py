"""Pull requests that are opened once, are led in place, and stay closed where a person closed them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from werkzeug.wrappers import Response

from patchq.forge import proposals
from patchq.forge.client import Client
from patchq.forge.errors import ForgeError
from patchq.forge.writing import Writer
from tests.forge.conftest import QUICK, Said
from tests.support.forge.accidents import Accident
from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge

REPO = "acme/runner"
BRANCH = "patchq/nightly"
BUSY = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes."}


@pytest.fixture
def repo(forge: Forge) -> Repo:
    """With a branch that has a commit of its own."""
    made = forge.repo(REPO, {"series": b"knob\n"}).branch(BRANCH)
    made.commit("Series for 0.33.0", branch=BRANCH).write("series", b"knob 2\n")
    return made


@pytest.fixture
def writer(forge: Forge, said: Said) -> Iterator[Writer]:
    with Writer(forge.api, forge.token, progress=said, patience=QUICK) as made:
        yield made


def proposed(writer: Writer, title: str = "Series", **more: Any) -> proposals.Proposal:
    asked = {"branch": BRANCH, "base": "main", "title": title, "body": "One dropped.\n", **more}
    return proposals.propose(writer, REPO, **asked)


def writes(forge: Forge) -> list[str]:
    return [each.method for each in forge.asked if each.method != "GET" and each.kind == "rest"]


def test_a_pull_request_from_open_to_merged(forge: Forge, repo: Repo, writer: Writer) -> None:
    made = proposed(writer)
    assert (made.number, made.open, made.merged, made.draft) == (1, True, False, False)
    assert (made.head_branch, made.head_sha, made.base) == (BRANCH, repo.head(BRANCH), "main")
    assert (made.title, made.body, made.author) == ("Series", "One dropped.\n", "patchq-bot")
    assert made.page == "https://github.com/acme/runner/pull/1"
    assert proposals.of_branch(writer, REPO, BRANCH) == (made,)
    repo.commit("More", branch=BRANCH).write("more", b"1\n")
    edited = proposals.edit_proposal(writer, REPO, 1, body="Two dropped.\n")
    assert (edited.title, edited.body) == ("Series", "Two dropped.\n"), "the rest stays"
    assert edited.head_sha == repo.head(BRANCH) != made.head_sha, "its head follows its branch"
    repo.pulls[1].lands_by_squash()
    (now,) = proposals.of_branch(writer, REPO, BRANCH)
    assert (now.open, now.merged) == (False, True)
    assert repo.bare.show("main", "more") == b"1\n"


def test_there_is_one_already(forge: Forge, repo: Repo, writer: Writer) -> None:
    proposed(writer)
    assert proposed(writer, "Another title").title == "Series", "its words stay"
    assert len(repo.pulls) == 1
    repo.branch("stable")
    other = proposed(writer, base="stable")
    assert (other.number, other.base) == (2, "stable"), "one for each base"
    assert proposed(writer).number == 1


def test_closed_by_a_person(forge: Forge, repo: Repo, writer: Writer) -> None:
    """It is told as closed, and whoever asks decides: another may be opened."""
    proposed(writer)
    repo.pulls[1].closes()
    (closed,) = proposals.of_branch(writer, REPO, BRANCH)
    assert (closed.open, closed.merged, closed.head_sha) == (False, False, repo.head(BRANCH))
    made = proposed(writer, "Anew")
    assert [each.number for each in proposals.of_branch(writer, REPO, BRANCH)] == [2, 1]
    assert made.number == 2
    repo.deletes(BRANCH)
    first = proposals.of_branch(writer, REPO, BRANCH)[0]
    assert not first.open, "GitHub closes it when its branch goes"


def test_a_closed_one_is_opened_again(repo: Repo, writer: Writer) -> None:
    proposed(writer)
    assert not proposals.edit_proposal(writer, REPO, 1, open=False).open
    assert proposals.edit_proposal(writer, REPO, 1, open=True).open
    repo.pulls[1].lands_by_merge()
    with pytest.raises(ForgeError, match="state cannot be changed"):
        proposals.edit_proposal(writer, REPO, 1, open=True)


def test_a_persons_commit(repo: Repo, writer: Writer) -> None:
    """It stands on the branch, and so in the pull request."""
    before = proposed(writer).head_sha
    pull = repo.pulls[1].push("By hand").write("by hand", b"x\n")
    (now,) = proposals.of_branch(writer, REPO, BRANCH)
    assert now.head_sha == pull.sha == repo.head(BRANCH) != before
    assert repo.bare.show(BRANCH, "by hand") == b"x\n" and len(pull.commits) == 2


def test_pushed_into_its_base_it_is_merged(repo: Repo, writer: Writer) -> None:
    proposed(writer)
    repo.bare.set("refs/heads/main", repo.bare.sha(f"refs/heads/{BRANCH}"))
    repo.follow()
    assert proposals.of_branch(writer, REPO, BRANCH)[0].merged


def test_a_fork_is_not_ours(repo: Repo, writer: Writer) -> None:
    """A fork of the same owner may have a branch of the same name."""
    repo.pull("Series", author="acme")
    mine = proposed(writer)
    assert proposals.of_branch(writer, REPO, "topic") == ()
    assert [each.number for each in proposals.of_branch(writer, REPO, BRANCH)] == [mine.number]
    assert proposals.of_branch(writer, REPO, "patchq") == ()


@pytest.mark.parametrize("ends", ["502", "cut"])
@pytest.mark.parametrize("after", [False, True], ids=["not done", "done"])
def test_opened_once(forge: Forge, repo: Repo, writer: Writer, ends: str, after: bool) -> None:
    forge.accident = Accident(1, ends, after)
    made = proposed(writer)
    assert forge.accident.met == [f"POST /api/v3/repos/{REPO}/pulls"]
    assert list(repo.pulls) == [made.number] == [1]
    assert writes(forge) == ["POST"] * ((ends == "502") + (not after))


def test_two_at_once(forge: Forge, repo: Repo) -> None:
    start = threading.Barrier(2, timeout=10)

    def one(_: int) -> proposals.Proposal:
        with Writer(forge.api, forge.token, patience=QUICK) as mine:
            start.wait()
            return proposed(mine)

    with ThreadPoolExecutor(2) as both:
        assert [each.number for each in both.map(one, range(2))] == [1, 1]
    assert len(repo.pulls) == 1


@pytest.mark.parametrize("status", [403, 429])
def test_limits_are_waited_for(forge: Forge, repo: Repo, writer: Writer, status: int) -> None:
    forge.fails("rest", status, BUSY)
    assert proposed(writer).number == 1 and writes(forge) == ["POST", "POST"]


@pytest.mark.parametrize("after", [False, True], ids=["not done", "done"])
def test_an_edit_is_repeated(forge: Forge, repo: Repo, writer: Writer, after: bool) -> None:
    proposed(writer)
    forge.accident = Accident(1, "cut", after)
    assert proposals.edit_proposal(writer, REPO, 1, title="New").title == "New"


# What GitHub refuses


def test_nothing_to_propose(repo: Repo, writer: Writer) -> None:
    repo.branch("same")
    with pytest.raises(ForgeError, match="same has no commit that main does not have") as caught:
        proposed(writer, branch="same")
    assert caught.value.kind == "refused" and "nothing to propose" in caught.value.hint


@pytest.mark.parametrize("gone", ["branch", "base"])
def test_a_branch_that_is_not_there(repo: Repo, writer: Writer, gone: str) -> None:
    with pytest.raises(ForgeError, match="Validation Failed; invalid") as caught:
        proposed(writer, **{gone: "gone"})
    assert "see that the branches" in caught.value.hint and "gone" in caught.value.hint


def test_longer_than_github_takes(repo: Repo, writer: Writer) -> None:
    made = proposed(writer, "x" * 300, body="line\n" * 20_000)
    assert len(made.title) == 256 and len(made.body) <= 65_536
    assert len(proposals.edit_proposal(writer, REPO, 1, body="line\n" * 20_000).body) <= 65_536


# Drafts


def test_a_draft_and_back(repo: Repo, writer: Writer) -> None:
    assert proposed(writer, draft=True).draft
    assert not proposals.edit_proposal(writer, REPO, 1, draft=False).draft
    assert not repo.pulls[1].draft
    again = proposals.edit_proposal(writer, REPO, 1, title="Again", draft=True)
    assert (again.title, again.draft) == ("Again", True) and repo.pulls[1].draft
    asked = proposals.edit_proposal(writer, REPO, 1, draft=True)
    assert asked == again


def test_where_drafts_are_not_to_be_had(repo: Repo, writer: Writer) -> None:
    repo.drafts = False
    made = proposed(writer, draft=True)
    assert (made.number, made.draft) == (1, False)
    assert not proposals.edit_proposal(writer, REPO, 1, draft=True).draft


def test_a_draft_without_the_permission(forge: Forge, repo: Repo, writer: Writer) -> None:
    proposed(writer)
    forge.rights["ghp_reader"] = {"issues"}
    with (
        Writer(forge.api, "ghp_reader", patience=QUICK) as reader,
        pytest.raises(ForgeError, match="Resource not accessible") as caught,
    ):
        proposals.edit_proposal(reader, REPO, 1, draft=True)
    assert "`pull-requests: write`" in caught.value.hint


@pytest.mark.parametrize(
    "data", [{}, {"convertPullRequestToDraft": {"pullRequest": {"isDraft": 1}}}], ids=str
)
def test_drafts_of_another_kind(forge: Forge, repo: Repo, writer: Writer, data: Any) -> None:
    proposed(writer)
    forge.fails("graphql", 200, {"data": data})
    with pytest.raises(ForgeError) as caught:
        proposals.edit_proposal(writer, REPO, 1, draft=True)
    assert caught.value.kind == "answer"


def test_a_name_for_graphql_is_no_query(forge: Forge, repo: Repo, writer: Writer) -> None:
    proposed(writer)

    def spoilt(response: Response) -> Response:
        body = response.get_data().replace(b'"PR_', b'"\\"}) { x } #')
        return Response(body, content_type="application/json")

    forge.fails("rest", spoils=spoilt)
    with pytest.raises(ForgeError) as caught:
        proposals.edit_proposal(writer, REPO, 1, draft=True)
    assert caught.value.kind == "answer" and forge.count("graphql") == 0


# Rights


def test_without_the_permission(forge: Forge, repo: Repo) -> None:
    forge.rights["ghp_reader"] = {"issues"}
    with Writer(forge.api, "ghp_reader", patience=QUICK) as reader:
        with pytest.raises(ForgeError, match="Resource not accessible") as caught:
            proposed(reader)
        assert caught.value.kind == "token" and "ghp_" not in caught.value.sentence
        assert "the permission `pull-requests: write` on acme/runner" in caught.value.hint
        repo.propose(BRANCH, "By hand")
        with pytest.raises(ForgeError) as caught:
            proposals.edit_proposal(reader, REPO, 1, body="New")
        assert "`pull-requests: write`" in caught.value.hint


def test_a_workflow_that_may_not(forge: Forge, repo: Repo, writer: Writer) -> None:
    words = "GitHub Actions is not permitted to create or approve pull requests."
    forge.fails("rest", 403, {"message": words})
    with pytest.raises(ForgeError, match="not permitted to create") as caught:
        proposed(writer)
    assert "allow GitHub Actions to create pull requests" in caught.value.hint


def test_not_for_these_eyes(forge: Forge, repo: Repo) -> None:
    forge.others.add("ghp_visitor")
    with (
        Writer(forge.api, "ghp_visitor", patience=QUICK) as visitor,
        pytest.raises(ForgeError, match="has no pull requests of acme/runner, or not for this"),
    ):
        proposed(visitor)


# What comes


ODD: tuple[Any, ...] = ([1], {}, {"number": 1}, {"number": 1, "head": {}}, "text", None)


@pytest.mark.parametrize("body", ODD, ids=str)
def test_answers_of_another_kind(forge: Forge, repo: Repo, writer: Writer, body: Any) -> None:
    forge.fails("rest", 200, body, times=2)
    with pytest.raises(ForgeError) as caught:
        proposals.edit_proposal(writer, REPO, 1, open=False)
    assert caught.value.kind == "answer"


def test_facts_of_another_kind(forge: Forge, repo: Repo, anyone: Client) -> None:
    """What does not say that it is of this repository, and open, is not."""
    there = {"ref": BRANCH, "repo": {"full_name": "Acme/Runner"}}
    odd = {"number": 3, "head": there, "base": {"repo": {"full_name": "acme/runner"}}, "user": 1}
    other = {**odd, "number": 2, "head": {**there, "ref": "main"}}
    gone = {"number": 4, "head": {"ref": BRANCH, "repo": None}, "base": there}
    forge.fails("rest", 200, [other, odd, gone, 5])
    (found,) = proposals.of_branch(anyone, REPO, BRANCH)
    assert found == proposals.Proposal(3, "", "", False, False, False, BRANCH, "", "", "", "")


@pytest.mark.parametrize(
    ("api", "host"),
    [
        ("https://api.github.com", "github.com"),
        ("https://api.acme.ghe.com", "acme.ghe.com"),
        ("https://ghe.example/api/v3", "ghe.example"),
        ("http://127.0.0.1:8080/api/v3", "127.0.0.1:8080"),
    ],
)
def test_where_git_is(api: str, host: str) -> None:
    assert proposals.git_host(api) == host
