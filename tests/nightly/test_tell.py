"""Telling, against the forge: once, in place, whatever is lost on the way, never over people."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from patchq.cli import main
from patchq.nightly import shared
from patchq.nightly.model import Told
from patchq.nightly.ours import BEGIN, END
from patchq.nightly.tell import missed, tell, united
from patchq.render.night_words import WORDS
from tests.nightly.booth import REPO, SETTINGS, Booth
from tests.nightly.conftest import CLUSTER, GATE, PROFILE
from tests.nightly.tales import night
from tests.support.forge.accidents import Accident
from tests.support.forge.fixtures import forge, forge_server  # noqa: F401
from tests.support.forge.server import Forge
from tests.support.history import git
from tests.support.inside import Small, call

BRANCH = "patchq/nightly"


@pytest.fixture
def booth(forge: Forge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Booth:  # noqa: F811
    return Booth(forge, tmp_path, monkeypatch)


def test_three_nights_and_the_fourth_repairs(booth: Booth) -> None:
    told = booth.tell(booth.night("2026-12-01", "quiet"))
    assert told == Told() and booth.writes() == ["push"], "a quiet night is noted, and told nobody"
    assert not booth.repo.pulls and not booth.repo.issues

    second = booth.night("2026-12-02", "green", "new")
    told = booth.tell(second)
    assert told == Told(
        1,
        second.commit,
        None,
        (f"{(second.commit or '')[:12]} was pushed to {BRANCH}", "pull request #1 was opened"),
    )
    assert booth.writes() == ["push", "POST /pulls", "push"]
    assert booth.pull.title == "Series for vllm 0.33.0: 1 dropped, 2 refreshed"
    assert booth.on(BRANCH, "series/series") == b"new\n"
    assert booth.pull.sha == second.commit

    third = booth.night("2026-12-03", "red", "spins")
    told = booth.tell(third)
    assert booth.writes() == ["push", "PATCH /pulls/1", "POST /issues", "push"]
    assert (told.pull, told.pushed, told.issue) == (1, third.commit, 2)
    assert booth.pull.sha == third.commit and "**Not yet: smoke fails.**" in booth.pull.body
    assert booth.issue.title == "Nightly: smoke fails since 2026-12-03"
    assert booth.issue.labels == ["patchq-nightly"]
    assert booth.issue.body.endswith(f"Its series is in #1.\n{END}")

    fourth = booth.night("2026-12-04", "red", "spins")
    told = booth.tell(fourth)
    assert fourth.commit != third.commit and told.pushed == third.commit, "no file differs"
    assert booth.writes() == ["PATCH /pulls/1", "PATCH /issues/2", "push"]
    assert booth.issue.title == "Nightly: smoke fails since 2026-12-03"
    assert "### 2 nights since 2026-12-03" in booth.issue.body

    told = booth.tell(booth.night("2026-12-05", "incomplete"))
    assert booth.writes() == ["push"] and (told.pull, told.issue) == (1, 2)

    fifth = booth.night("2026-12-06", "green", "mended")
    told = booth.tell(fifth)
    assert booth.writes() == [
        *("push", "PATCH /pulls/1", "PATCH /issues/2", "POST /issues/2/comments", "push")
    ]
    assert (told.pull, told.issue) == (1, None)
    assert booth.issue.state == "closed"
    assert [each.body for each in booth.issue.comments] == [
        "Repaired: night `2026-12-06` is green on 0.33.0."
    ]
    assert "**Good:" in booth.pull.body and "Not yet" not in booth.pull.body

    names = [each.name for each in shared.read(booth.root).nights]
    assert names == [f"2026-12-0{day}" for day in range(1, 7)]
    assert shared.read(booth.root).nights[-1].told == told


@pytest.mark.parametrize("state", ["green", "red", "asks", "quiet", "incomplete"])
def test_twice_the_same_night_is_once(booth: Booth, state: str) -> None:
    of = booth.night("2026-12-01", state, "new" if state in ("green", "red") else "")
    first = booth.tell(of)
    booth.writes()
    assert booth.tell(of) == first
    assert booth.writes() == []


def test_a_quiet_night_closes_what_it_repairs(booth: Booth) -> None:
    booth.tell(booth.night("2026-12-01", "red"))
    told = booth.tell(booth.night("2026-12-02", "quiet"))
    assert (booth.issue.state, told.issue, len(booth.issue.comments)) == ("closed", None, 1)
    booth.writes()
    booth.tell(booth.night("2026-12-03", "quiet"))
    assert booth.writes() == ["push"]
    booth.tell(booth.night("2026-12-04", "red"))
    assert [each.state for each in booth.repo.issues.values()] == ["closed", "open"]


def test_a_pull_request_that_is_over_is_closed(booth: Booth) -> None:
    booth.tell(booth.night("2026-12-01", "red", "spins"))
    booth.writes()
    over = replace(booth.night("2026-12-02", "quiet"), commit=None)
    told = booth.tell(over)
    assert (booth.pull.state, told.pull, told.issue) == ("closed", None, None)
    assert [each.body for each in booth.pull.comments] == [
        "Over: night `2026-12-02` stands on `main` as it is, and has nothing else to propose."
    ]
    booth.writes()
    booth.tell(replace(booth.night("2026-12-03", "quiet"), commit=None))
    assert booth.writes() == ["push"]


def test_from_nothing_but_the_night_and_the_forge(booth: Booth) -> None:
    """Another machine tells: no record is there but the branch of nights."""
    booth.tell(booth.night("2026-12-01", "red", "spins"))
    booth.nights = []
    fresh = booth.clone("fresh")
    of = booth.night("2026-12-02", "red", "worse")
    booth.commit("worse", "2026-12-02", fresh)
    told = booth.tell(of, fresh)
    assert (told.pull, told.issue, booth.pull.sha) == (1, 2, of.commit)
    assert "### 2 nights since 2026-12-01" in booth.issue.body


def test_what_the_night_says_of_itself_is_not_believed(booth: Booth) -> None:
    """It was made where strangers' code runs."""
    theirs = booth.repo.branch(BRANCH).commit("By Ada", branch=BRANCH).sha
    other = booth.repo.issue("Somebody's", body="mine").number
    lies = replace(booth.night("2026-12-01", "red", "new"), told=Told(1, theirs, other))
    told = booth.tell(lies)
    assert booth.repo.bare.sha(f"refs/heads/{BRANCH}") == theirs
    assert booth.repo.issues[other].body == "mine"
    assert told.pushed is None and told.issue == other + 1


# What people do


def test_a_commit_of_a_person_stays(booth: Booth) -> None:
    booth.tell(booth.night("2026-12-01", "green", "new"))
    theirs = booth.repo.commit("Mend it by hand", branch=BRANCH).sha
    told = booth.tell(booth.night("2026-12-02", "green", "newer"))
    assert booth.repo.bare.sha(f"refs/heads/{BRANCH}") == theirs
    assert f"commits that patchq did not make (`{theirs[:12]}`)" in booth.pull.body
    assert told.says[0].endswith(f"({theirs[:12]}): nothing was pushed") and not missed(told)
    booth.pull.lands_by_merge()
    booth.repo.deletes(BRANCH)
    booth.tell(booth.night("2026-12-03", "green", "newest"))
    assert [each.state for each in booth.repo.pulls.values()] == ["merged", "open"]


def test_a_person_who_is_faster_than_the_push(
    booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    from patchq.gitstore import push

    booth.tell(booth.night("2026-12-01", "green", "new"))
    real, theirs = push.push, ""

    def late(*args: object, **options: object) -> None:
        nonlocal theirs
        theirs = theirs or booth.repo.commit("Mend it", branch=BRANCH).sha
        real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(push, "push", late)
    told = booth.tell(booth.night("2026-12-02", "green", "newer"))
    assert booth.repo.bare.sha(f"refs/heads/{BRANCH}") == theirs
    assert told.says[0].startswith("patchq/nightly has commits that patchq did not make")
    assert not missed(told) and f"`{theirs[:12]}`" in booth.pull.body


def test_words_beside_ours_stay(booth: Booth) -> None:
    booth.tell(booth.night("2026-12-01", "red", "new"))
    booth.pull.body = f"Ada:\r\nlook!\r\n\r\n{booth.pull.body}\r\nBob: I did."
    booth.issue.says(f"{booth.issue.body}\n\nIt is the cable.")
    booth.tell(booth.night("2026-12-02", "red", "newer"))
    assert booth.pull.body.startswith(f"Ada:\nlook!\n\n{BEGIN}\n")
    assert booth.pull.body.endswith(f"{END}\nBob: I did.")
    assert booth.issue.body.endswith(f"{END}\n\nIt is the cable.")
    assert "### 2 nights" in booth.issue.body


def test_closed_by_a_person(booth: Booth) -> None:
    booth.tell(booth.night("2026-12-01", "red", "new"))
    booth.pull.closes()
    booth.issue.closes()
    booth.writes()
    told = booth.tell(booth.night("2026-12-02", "red", "new"))
    assert booth.writes() == ["push"] and len(told.says) == 2
    assert (booth.pull.state, booth.issue.state, told.issue) == ("closed", "closed", 2)
    booth.tell(booth.night("2026-12-03", "incomplete"))
    booth.tell(booth.night("2026-12-04", "red", "new"))
    assert len(booth.repo.pulls) == len(booth.repo.issues) == 1
    other = booth.night("2026-12-05", "red", "newer", lock="2" * 64)
    told = booth.tell(other)
    assert (told.pull, told.issue) == (3, 4), "another series, and another runner"


def test_a_marker_of_a_stranger_is_not_trusted(booth: Booth) -> None:
    first = "<!-- patchq:nightly vllm -->\nGotcha."
    theirs = booth.repo.issue("Nightly: mine", body=first)
    told = booth.tell(booth.night("2026-12-01", "red"))
    assert told.issue == 2 and theirs.body == first


# What can go wrong


def test_without_a_token_or_a_repository(booth: Booth, monkeypatch: pytest.MonkeyPatch) -> None:
    of = booth.night("2026-12-02", "red")
    earlier = (night(told=Told(4, "c" * 40, 9)),)
    monkeypatch.delenv("GITHUB_TOKEN")
    told = booth.tell(of, earlier=earlier)
    says = "nobody was told: no token is set (GITHUB_TOKEN or GH_TOKEN)"
    assert told == Told(4, "c" * 40, 9, (says,)), "what stood before still does"
    assert missed(told) and booth.writes() == []
    monkeypatch.setenv("GITHUB_TOKEN", booth.forge.token)
    git(booth.root, "remote", "remove", "origin")
    assert booth.tell(of).says == ("nobody was told: the repository has no remote origin",)
    told = tell(booth.root, replace(SETTINGS, repository=None), of, booth.folder, (), WORDS)
    assert told.says == ("nobody was told: nothing says where releases are published",)


def test_a_forge_that_is_not_reached_is_told_the_next_night(booth: Booth) -> None:
    first = booth.night("2026-12-01", "red", "new")
    booth.forge.fails("rest", 503, {"message": "no"}, times=99)
    booth.forge.fails("git", 503, b"no", times=99)
    told = booth.tell(first)
    assert missed(told) and not booth.repo.pulls and not booth.repo.issues
    assert [each.split(" was not ")[0] for each in told.says if " was not " in each] == [
        *("the pull request", "the issue", "patchq/nights")
    ]
    booth.forge.faults.clear()
    told = booth.tell(booth.night("2026-12-02", "red", "new"))
    assert not missed(told)
    assert (told.pull, told.issue) == (1, 2)
    assert "### 2 nights since 2026-12-01" in booth.issue.body
    assert [each.name for each in shared.read(booth.root).nights] == ["2026-12-02"]


@pytest.mark.parametrize("ends", ["502", "cut"])
@pytest.mark.parametrize("after", [False, True], ids=["nothing done", "and yet it is done"])
def test_a_lost_answer_makes_no_second(booth: Booth, ends: str, after: bool) -> None:
    """What one telling cannot, the next one does."""
    of = booth.night("2026-12-01", "red", "new")
    for at in booth.posts(of):
        booth.forget()
        booth.forge.accident = Accident(at, ends, after=after)
        booth.tell(of)
        (met,), booth.forge.accident = booth.forge.accident.met, None
        assert met.startswith("POST ")
        if missed(booth.nights[-1].told):
            booth.tell(of)
        assert (booth.pull.state, booth.issue.state) == ("open", "open"), met
        assert booth.pull.sha == of.commit and not missed(booth.nights[-1].told)


def test_few_rights(booth: Booth, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part that may be told is told; what may not is said."""
    booth.forge.rights["ghp_few"] = {"issues"}
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_few")
    told = booth.tell(booth.night("2026-12-01", "red", "new"))
    assert booth.issue.state == "open" and not booth.repo.pulls
    assert missed(told) and "contents: write" in told.says[0]
    assert "ghp_few" not in " ".join(told.says)


def test_a_token_that_may_set_no_label(booth: Booth, monkeypatch: pytest.MonkeyPatch) -> None:
    """The issue is found again by its number."""
    booth.forge.others.add("ghp_visitor")
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_visitor")
    told = booth.tell(booth.night("2026-12-01", "red"))
    assert booth.issue.labels == [] and "without the label patchq-nightly" in told.says[0]
    told = booth.tell(booth.night("2026-12-02", "red"))
    assert told.issue == booth.issue.number and "### 2 nights" in booth.issue.body


def test_nothing_of_the_token_is_kept(booth: Booth) -> None:
    booth.tell(booth.night("2026-12-01", "red", "new"))
    second = booth.night("2026-12-02", "red", "newer")
    booth.forge.fails("git", 401, b"no", times=99)
    told = booth.tell(second)
    assert missed(told)
    texts = json.dumps([told.says, booth.pull.body, booth.issue.body])
    assert booth.forge.token not in texts
    found = git(booth.root, "config", "--list").decode() + str(list(booth.root.rglob("*")))
    assert booth.forge.token not in found


# Nights of two places


def test_what_was_told_is_known_where_it_was_told() -> None:
    here, there = night("2026-12-01"), night("2026-12-01", told=Told(5))
    other, late = night("2026-12-02"), night("2026-12-10")
    assert united((here, late), (there, other)) == (there, other, late)
    newer = night("2026-12-01", told=Told(6))
    assert united((newer,), (there,)) == (newer,)


# The whole way: the command, a real sync, the forge


def test_a_conflict_is_an_issue_with_the_commit_that_made_it(
    forge: Forge,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = Small(tmp_path / "story").filled()
    for name, words in {
        "ci/clusters/pair.toml": CLUSTER,
        "ci/profiles/tiny.toml": PROFILE,
        "ci/gate.toml": GATE,
        "ci/nightly.toml": f'onto = "v3"\ntarget = "cpu"\ncluster = "pair"\nprofile = "tiny"\n'
        f'[github]\nrepository = "{REPO}"\n',
        ".gitignore": "/build/\n",
    }.items():
        (small.root / name).parent.mkdir(parents=True, exist_ok=True)
        (small.root / name).write_text(words)
    small.commit()
    repo = forge.repo(REPO)
    git(small.root, "remote", "add", "origin", forge.git(repo))
    git(small.root, "push", "-q", "--force", str(repo.path), "HEAD:main")
    monkeypatch.setenv("GITHUB_API_URL", forge.api)
    monkeypatch.setenv("GITHUB_TOKEN", forge.token)

    def nightly() -> dict[str, object]:
        with mock.patch.dict(main.COMMANDS, {"nightly": "A night."}):
            said: dict[str, object] = call(
                small.root, "nightly", "--until", "sync", "--json", code=None
            ).json
        return said

    said = nightly()
    assert said["state"] == "asks"
    (issue,) = repo.issues.values()
    assert issue.title.startswith("Nightly: sync needs a decision since 20")
    guilty = git(small.upstream.path, "rev-parse", "v3").decode().strip()
    first = issue.body.split("\n")[3]
    assert first.startswith(
        f"**sync** needs a decision: stays: conflicts in a.txt (content), since {guilty[:10]}"
    )
    assert f"- upstream's commit `{guilty[:12]}`" in issue.body
    assert "- patch `stays`: asks for a decision" in issue.body
    assert "patchq sync --onto v3\n```" in issue.body

    before = forge.count()
    assert nightly()["state"] == "asks"
    assert [each.method for each in forge.asked[before:] if each.kind == "rest"][-1] == "PATCH"
    assert "### 2 nights since" in issue.body and len(repo.issues) == 1
