"""Pull requests by number: what GitHub says of what happened to them, and what it does not say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from patchq.forge.client import Client
from patchq.forge.model import PullRequest
from patchq.forge.pulls import by_graphql, by_rest
from tests.forge.conftest import Said
from tests.support.forge.pull import Pull
from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge


@pytest.fixture
def repo(forge: Forge) -> Repo:
    return forge.repo("acme/engine", {"engine.py": b"speed = 1\ngear = 1\n", "README": b"read\n"})


def look(client: Client, *pulls: Pull) -> list[PullRequest]:
    seen, unseen = by_graphql(client, [(pull.repo.name, pull.number) for pull in pulls])
    assert not unseen and not seen.missing
    return [seen.pulls[pull.key] for pull in pulls]


def one(client: Client, pull: Pull) -> PullRequest:
    return look(client, pull)[0]


def test_an_open_one(client: Client, repo: Repo) -> None:
    pull = repo.pull("Add a knob", body="Why not", author="ada", labels=["bug", "area"])
    pull.write("knob.py", b"KNOB = 1\n").push("More").write("more.py", b"\n")
    seen = one(client, pull)
    assert (seen.title, seen.author, seen.state) == ("Add a knob", "ada", "open")
    assert (seen.base, seen.head_sha, seen.commits) == ("main", pull.sha, 2)
    assert seen.labels == ("area", "bug")
    assert seen.merge_sha is None and seen.merged_at is None and seen.closed_at is None
    assert seen.created_at == "2026-01-05T11:00:00Z" and seen.key == "acme/engine#1"
    assert seen.means == "graphql"


def test_ways_to_land(client: Client, repo: Repo) -> None:
    def opened(title: str) -> Pull:
        return repo.pull(title).write(f"{title}.py", b"x = 1\n")

    squash, merge, rebase = opened("squash"), opened("merge"), opened("rebase")
    rebase.push("second").write("second.py", b"y = 2\n")
    for landed, how in ((squash, "squash"), (merge, "merge"), (rebase, "rebase")):
        sha = getattr(landed, f"lands_by_{how}")().sha
        seen = one(client, landed)
        assert (seen.state, seen.merge_sha) == ("merged", sha), how
        assert seen.merged_at == seen.closed_at is not None
    assert repo.bare.show("main", "second.py") == b"y = 2\n"

    hand, bot = opened("hand"), opened("bot")
    by_hand = hand.lands_by_hand().sha
    seen = one(client, hand)
    assert (seen.state, seen.merge_sha, seen.closed_by) == ("closed", None, by_hand)
    bot.lands_by_bot()
    seen = one(client, bot)
    assert (seen.state, seen.merge_sha, seen.closed_by) == ("closed", None, None)
    assert seen.labels == ("Merged",)


def test_a_review_tweak_changes_what_landed(client: Client, repo: Repo) -> None:
    pull = repo.pull("Faster").edit("engine.py", b"speed = 1", b"speed = 2")
    landing = pull.lands_by_squash().edit("engine.py", b"speed = 2", b"speed = 3")
    assert one(client, pull).merge_sha == landing.sha == repo.bare.sha("refs/heads/main")
    assert repo.bare.show("main", "engine.py") == b"speed = 3\ngear = 1\n"


def test_what_happened_on_the_way(client: Client, repo: Repo) -> None:
    repo.branch("dev")
    pull = repo.pull("Knob").write("knob.py", b"1\n")
    pull.force_push("Knob, again").write("knob.py", b"2\n")
    forced = pull.events[-1].at.strftime("%Y-%m-%dT%H:%M:%SZ")
    pull.changes_base("dev")
    pull.closes().reopens()
    seen = one(client, pull)
    assert (seen.head_sha, seen.forced_at) == (pull.sha, forced)
    assert (seen.base, seen.former_bases) == ("dev", ("main",))
    assert (seen.state, seen.closed_by) == ("open", None)


def test_taken_back_and_landed_again(client: Client, repo: Repo) -> None:
    pull = repo.pull("Faster").edit("engine.py", b"speed = 1", b"speed = 2")
    pull.lands_by_squash()
    revert = pull.reverted()
    again = pull.relands(number=40)
    first, second, third = look(client, pull, revert, again)
    assert first.reverted_by == (revert.number,) and first.state == "merged"
    assert second.reverts == (pull.number,)
    assert first.mentioned_by == (revert.number, 40)
    assert third.reverts == third.reverted_by == ()
    assert repo.bare.show("main", "engine.py") == b"speed = 2\ngear = 1\n"


def test_replaced(client: Client, repo: Repo) -> None:
    old = repo.pull("Knob").write("knob.py", b"1\n")
    new = repo.pull("Better knob").write("knob.py", b"2\n")
    old.superseded_by(new)
    double = repo.pull("Knob!").write("knob.py", b"3\n").duplicate_of(new)
    was, now, other = look(client, old, new, double)
    assert was.replaced_by == (new.number,) and was.state == "closed"
    assert now.replaces == (old.number,)
    assert other.replaced_by == (new.number,)


def test_landed_on_a_release_branch(client: Client, repo: Repo) -> None:
    repo.branch("releases/v1")
    pull = repo.pull("Fix").edit("engine.py", b"gear = 1", b"gear = 2")
    pull.lands_by_squash()
    pick = pull.picked_to("releases/v1", number=77, names_it=True)
    seen, picked = look(client, pull, pick)
    assert seen.mentioned_by == (77,) and seen.reverted_by == ()
    assert (picked.base, picked.state, picked.merge_sha) == ("releases/v1", "merged", pick.landed)
    assert repo.bare.show("releases/v1", "engine.py") == b"speed = 1\ngear = 2\n"


def test_a_hundred_take_four_queries(forge: Forge, client: Client, repo: Repo) -> None:
    for n in range(70):
        repo.pull(f"P{n}")
    other = forge.repo("acme/other")
    for n in range(30):
        other.pull(f"Q{n}")
    numbers = [(where.name, n) for where in (repo, other) for n in where.pulls]
    seen, unseen = by_graphql(client, numbers)
    assert len(seen.pulls) == 100 and not unseen and not seen.missing
    assert forge.count() == 4


def test_what_is_not_there_does_not_stop_the_rest(forge: Forge, client: Client, repo: Repo) -> None:
    pull = repo.pull("Knob")
    hidden = forge.repo("acme/secret")
    hidden.pull("Hush")
    hidden.private = True
    forge.others.add("other")
    with Client(forge.api, "other") as stranger:
        asked = [("acme/engine", 1), ("acme/engine", 99), ("acme/secret", 1), ("no/where", 3)]
        seen, unseen = by_graphql(stranger, asked)
    assert seen.pulls.keys() == {pull.key} and not unseen
    host = forge.url.removeprefix("http://")
    assert seen.missing == (
        f"acme/engine#99 is not on {host}, or the token may not see it",
        f"acme/secret is not on {host}, or the token may not see it",
        f"no/where is not on {host}, or the token may not see it",
    )
    assert by_graphql(client, [("acme/secret", 1)])[0].pulls, "the right token sees it"


def test_texts_come_in_harmless(client: Client, repo: Repo) -> None:
    title = "Red \x1b[31malert\x07 \u202e../../etc \ud800"
    pull = repo.pull(title, author="mal\x9bory", body="--- a/x\n+++ b/x\n", labels=["\x1b]0;x"])
    seen, _ = by_graphql(client, [(repo.name, pull.number)])
    found = seen.pulls[pull.key]
    for text in (found.title, found.author, *found.labels):
        assert text.isprintable(), ascii(text)
    assert found.title == "Red \\x1b[31malert\\x07 \\u202e../../etc \\ud800"
    assert seen.bodies[pull.key] == "--- a/x\n+++ b/x\n"


TOO_MUCH = {"data": None, "errors": [{"message": "Resource limits for this query exceeded."}]}


@pytest.mark.parametrize(
    "fault",
    [{"status": 502, "body": b"<html>", "times": 3}, {"status": 200, "body": TOO_MUCH}],
    ids=["502, and its repetitions", "resource limits"],
)
def test_a_large_query_is_halved(
    forge: Forge, client: Client, repo: Repo, fault: dict[str, Any]
) -> None:
    for n in range(20):
        repo.pull(f"P{n}")
    forge.fails("graphql", **fault)
    seen, unseen = by_graphql(client, [(repo.name, n) for n in repo.pulls])
    assert len(seen.pulls) == 20 and not unseen and not seen.missing
    assert client.requests == 3


def test_one_that_is_not_answered_may_be_asked_elsewhere(
    forge: Forge, client: Client, repo: Repo
) -> None:
    error = {"message": "Something went \x1b[1m wrong", "path": ["r0", "p2"]}
    body = {"data": {"r0": {"p1": {"number": 1, "title": "One"}, "p2": None}}, "errors": [error]}
    forge.fails("graphql", 200, body)
    seen, unseen = by_graphql(client, [(repo.name, 1), (repo.name, 2)])
    assert list(seen.pulls) == ["acme/engine#1"] and unseen == [("acme/engine", 2)]
    (says,) = seen.missing
    assert (
        says == f"{client.host} does not answer about acme/engine#2 (Something went \\x1b[1m wrong)"
    )


def test_a_storm_ends(forge: Forge, client: Client, repo: Repo) -> None:
    for n in range(60):
        repo.pull(f"P{n}")
    forge.fails("graphql", 502, b"", times=1000)
    seen, unseen = by_graphql(client, [(repo.name, n) for n in repo.pulls])
    assert not seen.pulls and len(unseen) == 60
    (says,) = seen.missing
    assert says.endswith("fails again and again (502): try again later")
    assert forge.count() <= 9


LISTS = {
    "nothing at all": {},
    "a list for a text": {"title": ["x"], "author": "x", "labels": {"nodes": [None, {"name": 3}]}},
    "no id": {"headRefOid": "HEAD", "mergeCommit": {"oid": "../x"}, "createdAt": "yesterday"},
    "no state": {"state": "HOVERING", "timelineItems": {"nodes": [None, {"source": []}]}},
}


@pytest.mark.parametrize("node", LISTS.values(), ids=LISTS.keys())
def test_an_odd_answer_is_not_known(
    forge: Forge, client: Client, repo: Repo, node: dict[str, Any]
) -> None:
    body = {"data": {"r0": {"p1": {"number": 1, **node}}}}
    forge.fails("graphql", 200, body)
    seen, _ = by_graphql(client, [("acme/engine", 1)])
    assert seen.pulls == {"acme/engine#1": PullRequest("acme/engine", 1)}


# Without a token


def test_lists_tell_the_most_of_it(anyone: Client, repo: Repo) -> None:
    open_ = repo.pull("Knob", labels=["bug"], draft=True).write("knob.py", b"1\n")
    closed = repo.pull("No").closes()
    landed = repo.pull("Fix", body="Replaces #2").write("fix.py", b"1\n")
    sha = landed.lands_by_squash().sha
    seen, unseen = by_rest(anyone, repo.name, [1, 2, 3], known={}, since=None)
    assert not unseen and not seen.missing and seen.means == "rest"
    first, second, third = (seen.pulls[pull.key] for pull in (open_, closed, landed))
    assert (first.state, first.draft, first.labels) == ("open", True, ("bug",))
    assert (first.head_sha, first.base, first.merge_sha) == (open_.sha, "main", None)
    assert (second.state, second.merge_sha) == ("closed", None), "no test merge for a merge"
    assert (third.state, third.merge_sha, third.replaces) == ("merged", sha, (2,))


def test_few_changes_take_one_request(forge: Forge, anyone: Client, repo: Repo) -> None:
    pulls = [repo.pull(f"P{n}") for n in range(100)]
    for n in range(60):
        repo.pull(f"of no interest {n}")
    known = {pull.key: PullRequest(repo.name, pull.number, state="open") for pull in pulls}
    since = forge.clock.now.replace(tzinfo=UTC)
    pulls[3].closes()
    repo.pull("new")
    seen, unseen = by_rest(anyone, repo.name, range(1, 101), known=known, since=since)
    assert forge.count() == 1 and not unseen and not seen.missing
    assert len(seen.pulls) == 100
    states = {key: pull.state for key, pull in seen.pulls.items()}
    assert [key for key, state in states.items() if state != "open"] == [pulls[3].key]
    assert seen.pulls[pulls[0].key] is known[pulls[0].key], "what is not in the list did not change"


def test_what_lists_do_not_reach_is_asked_one_by_one(
    forge: Forge, anyone: Client, repo: Repo
) -> None:
    old = repo.pull("Old")
    for n in range(110):
        repo.pull(f"P{n}")
    seen, unseen = by_rest(anyone, repo.name, [1, 999], known={}, since=None)
    assert seen.pulls.keys() == {old.key} and not unseen
    assert seen.missing == (f"acme/engine#999 is not on {anyone.host}, or needs a token",)


def test_the_hour_has_sixty_requests(forge: Forge, anyone: Client, repo: Repo) -> None:
    for n in range(5):
        repo.pull(f"P{n}")
    forge.limits[None] = 8
    since = datetime(2030, 1, 1, tzinfo=UTC)  # the list ends before the first of them
    seen, unseen = by_rest(anyone, repo.name, [101, 102, 103, 104], known={}, since=since)
    assert forge.count() == 3 and len(unseen) == 2
    assert seen.missing[-1].endswith("grants few requests without a token: set GITHUB_TOKEN")


def test_no_such_repository(anyone: Client, said: Said) -> None:
    seen, unseen = by_rest(anyone, "no/where", [1, 2], known={}, since=None)
    assert not unseen and seen.missing == (f"no/where is not on {anyone.host}, or needs a token",)
