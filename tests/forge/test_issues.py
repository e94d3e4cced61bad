"""Issues at the forge: one for a marker, whatever happens on the way, and nobody else's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from werkzeug.wrappers import Response

from patchq.forge import issues, threads
from patchq.forge.client import Client
from patchq.forge.errors import ForgeError
from patchq.forge.writing import Writer
from tests.forge.conftest import QUICK, Said
from tests.support.forge.accidents import Accident
from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge

REPO = "acme/runner"
LABEL = "patchq-nightly"
MARK = "<!-- patchq:nightly vllm -->"
BODY = f"{MARK}\nsmoke fails.\n"
BUSY = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes."}


@pytest.fixture
def repo(forge: Forge) -> Repo:
    return forge.repo(REPO)


@pytest.fixture
def writer(forge: Forge, said: Said) -> Iterator[Writer]:
    with Writer(forge.api, forge.token, progress=said, patience=QUICK) as made:
        yield made


def opened(writer: Writer, body: str = BODY, title: str = "Nightly: smoke fails") -> issues.Issue:
    return issues.open_issue(writer, REPO, title, body, [LABEL])


def writes(forge: Forge) -> list[str]:
    return [each.method for each in forge.asked if each.method != "GET"]


def test_an_issue_from_open_to_closed(forge: Forge, repo: Repo, writer: Writer) -> None:
    made = opened(writer)
    assert (made.number, made.open, made.labels) == (1, True, (LABEL,))
    assert (made.author, made.body) == ("patchq-bot", BODY)
    assert made.page == "https://github.com/acme/runner/issues/1"
    assert LABEL in repo.labels, "it is made with the issue"
    edited = issues.edit_issue(writer, REPO, 1, title="Nightly: bench fails")
    assert (edited.title, edited.body) == ("Nightly: bench fails", BODY), "the rest stays"
    assert issues.labelled(writer, REPO, LABEL) == (edited,)
    issues.comment(writer, REPO, 1, "Green again.")
    closed = issues.edit_issue(writer, REPO, 1, open=False)
    assert not closed.open and issues.issue(writer, REPO, 1) == closed
    assert issues.labelled(writer, REPO, LABEL) == ()
    assert issues.labelled(writer, REPO, LABEL, open_only=False) == (closed,)
    assert [each.body for each in repo.issues[1].comments] == ["Green again."]
    assert issues.edit_issue(writer, REPO, 1, open=True).open


def test_pull_requests_are_no_issues(repo: Repo, writer: Writer) -> None:
    repo.pull("Knob", labels=[LABEL], body=BODY)
    repo.issue("Other", labels=["bug"])
    mine = repo.issue("Mine", labels=["bug", LABEL.upper()], author="mona")
    (found,) = issues.labelled(writer, REPO, LABEL)
    assert (found.number, found.author) == (mine.number, "mona"), "labels know no case"
    assert issues.issue(writer, REPO, 1) is None
    assert issues.issue(writer, REPO, 2) is not None
    assert issues.issue(writer, REPO, 99) is None


def test_many_pages(forge: Forge, repo: Repo, writer: Writer) -> None:
    for number in range(1, 103):
        repo.issue(str(number), labels=[LABEL])
    found = [each.number for each in issues.labelled(writer, REPO, LABEL)]
    assert found == list(range(102, 0, -1))
    assert all(f"labels={LABEL}&" in each.path for each in forge.asked), "others do not come"


@pytest.mark.parametrize("ends", ["502", "cut"])
@pytest.mark.parametrize("after", [False, True], ids=["not done", "done"])
def test_opened_once(forge: Forge, repo: Repo, writer: Writer, ends: str, after: bool) -> None:
    """The second request is the POST. Its answer is lost: what became of it is looked for."""
    forge.accident = Accident(2, ends, after)
    made = opened(writer)
    assert forge.accident.met == [f"POST /api/v3/repos/{REPO}/issues"]
    assert [each.number for each in repo.issues.values()] == [made.number] == [1]
    answered = (ends == "502") + (not after)
    assert writes(forge) == ["POST"] * answered


def test_opened_once_without_labels(forge: Forge, repo: Repo) -> None:
    """Who may not set labels is told by the words of the issue alone."""
    forge.others.add("ghp_visitor")
    repo.issue("Nightly: smoke fails", body=f"{MARK}\nAnother's.\n")
    with Writer(forge.api, "ghp_visitor", patience=QUICK) as visitor:
        forge.accident = Accident(2, "502", after=True)
        made = opened(visitor)
    assert (made.number, made.labels) == (2, ()), "and the result says so"
    assert len(repo.issues) == 2


def test_lost_twice(forge: Forge, repo: Repo, writer: Writer) -> None:
    """Then it is for another night; nothing is sent a third time."""
    forge.fails("rest", 200, [])
    forge.fails("rest", 502, b"<html>")
    forge.fails("rest", 200, [])
    forge.fails("rest", 200, [])
    forge.fails("rest", 502, b"<html>")
    with pytest.raises(ForgeError) as caught:
        opened(writer)
    assert caught.value.kind == "server" and writes(forge) == ["POST", "POST"]
    assert not repo.issues and not any(each.times for each in forge.faults)


def test_what_became_of_it_is_not_to_be_learned(forge: Forge, repo: Repo, writer: Writer) -> None:
    def then_down(_: Response) -> Response:
        forge.fails("rest", 500, b"<html>", times=9)
        return Response("<html>", 502)

    forge.fails("rest", 200, [])
    forge.fails("rest", spoils=then_down)
    with pytest.raises(ForgeError) as caught:
        opened(writer)
    assert caught.value.kind == "server" and writes(forge) == ["POST"] and len(repo.issues) == 1
    forge.faults.clear()
    assert opened(writer).number == 1 and len(repo.issues) == 1, "the next call finds it"


def test_it_is_there_already(forge: Forge, repo: Repo, writer: Writer) -> None:
    """It gets the words that it would have been opened with."""
    opened(writer)
    again = opened(writer, f"{MARK}\nbench fails.\n", "Nightly: bench fails")
    assert (again.number, again.title) == (1, "Nightly: bench fails")
    assert repo.issues[1].body == f"{MARK}\nbench fails.\n"
    assert writes(forge) == ["POST", "PATCH"]
    repo.issues[1].says(f"{MARK}\r\nbench fails.\r\n")
    opened(writer, f"{MARK}\nbench fails.\n", "Nightly: bench fails")
    assert writes(forge) == ["POST", "PATCH"], "nothing is written that stands there"


def test_a_marker_alone_is_anybodys(forge: Forge, repo: Repo, writer: Writer) -> None:
    """The label is not: only those may set it who may sort issues."""
    trap = repo.issue("Nightly: smoke fails", body=BODY, author="mallory")
    repo.issue("Nightly of another", body="<!-- patchq:nightly sglang -->\n", labels=[LABEL])
    repo.issue("Closed", body=BODY, labels=[LABEL]).closes()
    made = opened(writer)
    assert made.number == 4
    assert (trap.body, trap.state, trap.author) == (BODY, "open", "mallory")


def test_two_at_once(forge: Forge, repo: Repo, writer: Writer) -> None:
    """Both look before either opens: the older one stays, and both say so."""
    looked = threading.Barrier(2, timeout=10)

    def together(response: Response) -> Response:
        looked.wait()
        return response

    forge.fails("rest", times=2, spoils=together)

    def one(word: str) -> issues.Issue:
        with Writer(forge.api, forge.token, patience=QUICK) as mine:
            return opened(mine, f"{MARK}\n{word}\n")

    with ThreadPoolExecutor(2) as both:
        made = list(both.map(one, ["mine", "yours"]))
    assert [each.number for each in made] == [1, 1] and len(repo.issues) == 2
    assert [each.state for each in repo.issues.values()] == ["open", "closed"]


def test_without_a_marker_each_is_its_own(repo: Repo, writer: Writer) -> None:
    for _ in range(2):
        issues.open_issue(writer, REPO, "Hello", "Hello.\n", [LABEL])
        issues.open_issue(writer, REPO, "Hello", BODY)
    assert len(repo.issues) == 4


@pytest.mark.parametrize("status", [403, 429])
def test_limits_are_waited_for(forge: Forge, repo: Repo, writer: Writer, status: int) -> None:
    forge.fails("rest", 200, [])
    forge.fails("rest", status, BUSY)
    assert opened(writer).number == 1 and writes(forge) == ["POST", "POST"]


def test_a_limit_for_too_long(forge: Forge, repo: Repo, writer: Writer) -> None:
    forge.fails("rest", 200, [])
    forge.fails("rest", 429, BUSY, headers={"Retry-After": "1000"})
    with pytest.raises(ForgeError) as caught:
        opened(writer)
    assert caught.value.kind == "limit" and writes(forge) == ["POST"]


# Changes


@pytest.mark.parametrize("after", [False, True], ids=["not done", "done"])
def test_an_edit_is_repeated(forge: Forge, repo: Repo, writer: Writer, after: bool) -> None:
    opened(writer)
    forge.accident = Accident(1, "502", after)
    assert issues.edit_issue(writer, REPO, 1, body="New").body == "New"
    assert writes(forge) == ["POST", "PATCH", "PATCH"]


@pytest.mark.parametrize("ends", ["502", "cut"])
@pytest.mark.parametrize("after", [False, True], ids=["not done", "done"])
def test_one_comment(forge: Forge, repo: Repo, writer: Writer, ends: str, after: bool) -> None:
    """The same words may stand there from an earlier time."""
    made = repo.issue("Nightly", labels=[LABEL])
    repo.comment(made, "Green again.", "patchq-bot")
    forge.accident = Accident(2, ends, after)
    issues.comment(writer, REPO, 1, "Green again.")
    assert forge.accident.met == [f"POST /api/v3/repos/{REPO}/issues/1/comments"]
    assert [each.body for each in made.comments] == ["Green again."] * 2


def test_a_pull_request_may_be_commented(repo: Repo, writer: Writer) -> None:
    pull = repo.pull("Knob")
    issues.comment(writer, REPO, 1, "Hello.")
    assert [each.body for each in pull.comments] == ["Hello."]


# Rights


def test_without_the_permission(forge: Forge, repo: Repo) -> None:
    forge.rights["ghp_reader"] = {"contents"}
    repo.issue("Nightly")
    with Writer(forge.api, "ghp_reader", variable="GH_TOKEN", patience=QUICK) as reader:
        for act in (
            lambda: opened(reader),
            lambda: issues.edit_issue(reader, REPO, 1, body="New"),
            lambda: issues.comment(reader, REPO, 1, "Hello."),
        ):
            with pytest.raises(ForgeError, match="Resource not accessible") as caught:
                act()
            assert caught.value.kind == "token"
            assert "the token in GH_TOKEN needs the permission `issues: write`" in caught.value.hint
            assert "ghp_" not in caught.value.sentence


def test_not_for_these_eyes(forge: Forge, repo: Repo) -> None:
    forge.others.add("ghp_visitor")
    repo.issue("Nightly")
    with Writer(forge.api, "ghp_visitor", patience=QUICK) as visitor:
        with pytest.raises(ForgeError, match="has no issue 1 of acme/runner, or not for this"):
            issues.edit_issue(visitor, REPO, 1, body="New")
        repo.private = True
        with pytest.raises(ForgeError) as caught:
            issues.open_issue(visitor, REPO, "Hello", "Hello.")
    assert caught.value.kind == "absent" and "`issues: write`" in caught.value.hint


def test_a_bad_token(forge: Forge, repo: Repo) -> None:
    with (
        Writer(forge.api, "ghp_old", patience=QUICK) as old,
        pytest.raises(ForgeError, match="wrong or has expired") as caught,
    ):
        opened(old)
    assert caught.value.hint == "make a new one, or unset the variable"


# What comes, and what goes


ODD: tuple[Any, ...] = ([1], {}, {"number": "1"}, {"number": True}, {"number": -1}, "text", None)


@pytest.mark.parametrize("body", ODD, ids=str)
def test_answers_of_another_kind(forge: Forge, repo: Repo, writer: Writer, body: Any) -> None:
    forge.fails("rest", 200, body, times=2)
    with pytest.raises(ForgeError) as caught:
        issues.edit_issue(writer, REPO, 1, open=False)
    assert caught.value.kind == "answer"


def test_lists_of_another_kind(forge: Forge, repo: Repo, writer: Writer) -> None:
    acts: tuple[Callable[[], object], ...] = (
        lambda: issues.labelled(writer, REPO, LABEL),
        lambda: issues.comment(writer, REPO, 1, "Hello."),
        lambda: issues.issue(writer, REPO, 1),
    )
    for act in acts:
        forge.fails("rest", 200, {"total": 0})
        with pytest.raises(ForgeError) as caught:
            act()
        assert caught.value.kind == "answer"
    forge.fails("rest", 200, [{"body": "Hello."}])
    with pytest.raises(ForgeError, match="does not answer as GitHub does"):
        issues.comment(writer, REPO, 1, "Hello.")
    forge.faults.clear()
    forge.fails("rest", 502, b"<html>", times=9)
    with pytest.raises(ForgeError, match="fails again and again"):
        issues.issue(writer, REPO, 1)
    assert not writes(forge)


def test_a_list_that_is_none_after_a_lost_answer(forge: Forge, repo: Repo, writer: Writer) -> None:
    forge.fails("rest", 502, b"<html>")
    forge.fails("rest", 200, {"total": 0})
    with pytest.raises(ForgeError) as caught:
        issues.open_issue(writer, REPO, "Hello", "Hello.")
    assert caught.value.kind == "server" and writes(forge) == ["POST"]


def test_a_repository_of_another_name(forge: Forge, repo: Repo, writer: Writer) -> None:
    """Reads are led there; a change is answered 307, which nobody follows."""
    moved = {"message": "Moved Permanently", "url": f"{forge.api}/repositories/1/issues/1"}
    forge.fails("rest", 307, moved)
    with pytest.raises(ForgeError, match="has it elsewhere now") as caught:
        issues.edit_issue(writer, REPO, 1, open=False)
    assert caught.value.kind == "refused"


def test_facts_of_another_kind(forge: Forge, repo: Repo, anyone: Client) -> None:
    odd = {"number": 3, "title": "\ud800", "labels": ["x", {"name": None}, 7], "html_url": "x y"}
    forge.fails("rest", 200, [odd, {"number": 4, "labels": None}, 5])
    (found,) = issues.labelled(anyone, REPO, "X")
    assert found == issues.Issue(3, "?", "", False, "", ("x",), "")


def test_longer_than_github_takes(repo: Repo, writer: Writer) -> None:
    log = "line of a log\n" * 6000
    made = opened(
        writer, f"{MARK}\n<details>\n\n```\n{log}```\n</details>\n<!-- end -->", "x" * 300
    )
    assert len(made.title) == 256 and made.title.endswith("x…")
    assert 60_000 < len(made.body) <= 65_536
    assert made.body.startswith(f"{MARK}\n<details>")
    # The note can be seen: neither within the log nor in the folded part.
    assert made.body.endswith(
        f"line of a log\n```\n\n</details>\n\n{threads.NOTE}\n\n<!-- end -->\n"
    )
    again = opened(writer, made.body, made.title)
    assert again == made, "what fits is left as it is"


@pytest.mark.parametrize(
    ("start", "closed"),
    [
        ("~~~~text\n```\n", "\n~~~~"),
        ("```\n~~~\n```\n", ""),
        ("text <!-- \n", "\n-->"),
        ("<!-- a -->\n", ""),
        ("<details>\n<details open>\n</details>\n", "\n\n</details>"),
        ("`" * 900 + "\n", "\n" + "`" * 100),
        ("", ""),
    ],
)
def test_what_is_open_is_closed(start: str, closed: str) -> None:
    body = threads.fit_body(start + "w" * 100_000)
    assert body.endswith(f"w{closed}\n\n{threads.NOTE}\n\n")
    assert len(body) <= threads.LONGEST_BODY


def test_titles_stand_in_one_line() -> None:
    assert threads.fit_title("Series\n for \t vLLM \ud800") == "Series for vLLM ?"
