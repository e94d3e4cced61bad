"""The forge that the tests talk to is no kinder than GitHub."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests

from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge


@pytest.fixture
def repo(forge: Forge) -> Repo:
    return forge.repo("acme/engine", {"engine.py": b"speed = 1\ngear = 1\nlast = 1\n"})


def get(forge: Forge, path: str, **headers: str) -> requests.Response:
    return requests.get(f"{forge.api}{path}", headers=headers, timeout=10)


def query(forge: Forge, text: str, token: str | None = None) -> requests.Response:
    headers = {"Authorization": f"token {token or forge.token}"}
    url = f"{forge.url}/api/graphql"
    return requests.post(url, json={"query": text}, headers=headers, timeout=10)


def broken(forge: Forge) -> list[str]:
    """What broke GitHub's descriptions so far; the fixture shall not see it again."""
    found, forge.checks.broken[:] = list(forge.checks.broken), []
    return found


def test_requests_are_held_to_the_description(forge: Forge, repo: Repo) -> None:
    for path in ("?state=hovering", "?per_page=many", "/x"):
        assert get(forge, f"/repos/acme/engine/pulls{path}").status_code == 422
    assert len(broken(forge)) == 3
    assert get(forge, "/repos/acme/engine/pulls?state=all").status_code == 200
    assert not broken(forge)


def test_answers_are_held_to_the_description(forge: Forge, repo: Repo) -> None:
    pull = repo.pull("Knob")
    pull.title = 3  # type: ignore[assignment]
    get(forge, "/repos/acme/engine/pulls/1")
    (says,) = broken(forge)
    assert "answer 200 GET" in says and "$.title: 3 is not of type 'string'" in says


@pytest.mark.parametrize(
    "text",
    ["query { viewr { login } }", "query { viewer { mood } }", "query {", "query { viewer }"],
)
def test_queries_are_held_to_the_schema(forge: Forge, text: str) -> None:
    body = query(forge, text).json()
    assert body["errors"] and "data" not in body
    assert broken(forge)


def test_graphql_answers_are_coerced(forge: Forge, repo: Repo) -> None:
    repo.pull("Knob").merge_sha = "HEAD"
    text = 'query { repository(owner: "acme", name: "engine") { pullRequest(number: 1) {'
    body = query(forge, text + " mergeCommit { oid } } } }").json()
    assert "'HEAD' is no GitObjectID" in body["errors"][0]["message"]


def test_a_merge_sha_without_a_merge(forge: Forge, repo: Repo) -> None:
    repo.pull("Open")
    repo.pull("Closed").closes()
    for number in (1, 2):
        body = get(forge, f"/repos/acme/engine/pulls/{number}").json()
        assert len(body["merge_commit_sha"]) == 40 and body["merged"] is False


def test_etags_are_per_token(forge: Forge, repo: Repo) -> None:
    repo.pull("Knob")
    path, mine = "/repos/acme/engine/pulls/1", {"Authorization": f"token {forge.token}"}
    etag = get(forge, path, **mine).headers["ETag"]
    assert get(forge, path, **mine, **{"If-None-Match": etag}).status_code == 304
    assert get(forge, path, **{"If-None-Match": etag}).status_code == 200


def test_large_queries_die(forge: Forge, repo: Repo) -> None:
    repo.pull("Knob")

    def ask(count: int) -> int:
        aliases = " ".join(f"p{n}: pullRequest(number: 1) {{ title }}" for n in range(count))
        text = f'query {{ repository(owner: "acme", name: "engine") {{ {aliases} }} }}'
        return query(forge, text).status_code

    assert (ask(25), ask(26)) == (200, 502)


def test_tokens(forge: Forge, repo: Repo) -> None:
    assert query(forge, "query { __typename }", "bad").status_code == 401
    bad = get(forge, "/rate_limit", Authorization="Bearer bad")
    assert (bad.status_code, bad.json()["message"]) == (401, "Bad credentials")
    forge.limits[None] = 0
    spent = get(forge, "/rate_limit")
    assert spent.status_code == 403 and spent.headers["X-RateLimit-Remaining"] == "0"


def test_private_is_not_there(forge: Forge, repo: Repo) -> None:
    repo.private = True
    assert get(forge, "/repos/acme/engine/pulls").status_code == 404
    mine = {"Authorization": f"token {forge.token}"}
    assert get(forge, "/repos/acme/engine/pulls", **mine).status_code == 200


def history(repo: Repo, branch: str = "main") -> list[str]:
    return repo.bare.git("log", "--first-parent", "--format=%s", branch).splitlines()


def test_landings_are_real(repo: Repo) -> None:
    squash = repo.pull("Squash").write("a", b"1\n").push("more").write("a", b"2\n")
    rebase = repo.pull("Rebase").write("b", b"1\n").push("Rebase 2").write("b", b"2\n")
    merge = repo.pull("Merge").write("c", b"1\n")
    squash.lands_by_squash()
    rebase.lands_by_rebase()
    merge.lands_by_merge()
    assert history(repo) == [
        "Merge pull request #3 from ada/topic", "Rebase 2", "Rebase", "Squash (#1)", "Start",
    ]  # fmt: skip
    parents = repo.bare.git("show", "-s", "--format=%P", merge.landed).split()
    assert len(parents) == 2 and parents[1] == merge.sha
    assert merge.sha == repo.bare.sha("refs/pull/3/head"), "heads stay"
    assert not (repo.path / "refs/pull/3/merge").exists()
    repo.pull("Open")
    assert (repo.path / "refs/pull/4/merge").exists()


def test_what_others_make_of_a_landing(repo: Repo) -> None:
    repo.branch("releases/v1")
    pull = repo.pull("Faster").edit("engine.py", b"speed = 1", b"speed = 2")
    pull.lands_by_squash(as_number=70)
    pick = pull.picked_to("releases/v1", number=9, trailer=True)
    pull.reverted()
    assert repo.bare.show("main", "engine.py") == b"speed = 1\ngear = 1\nlast = 1\n"
    pull.relands()
    assert history(repo) == [
        "[Reland] Faster (#11)", 'Revert "Faster (#1)" (#10)', "Faster (#70)", "Start",
    ]  # fmt: skip
    assert history(repo, "releases/v1") == ["Faster (#9)", "Start"]
    assert f"(cherry picked from commit {pull.landed})" in repo.bare.git(
        "show", "-s", "--format=%B", pick.landed
    )
    for where in ("main", "releases/v1"):
        assert repo.bare.show(where, "engine.py").startswith(b"speed = 2\n")


def test_the_same_story_gives_the_same_commits(forge: Forge) -> None:
    def tell(name: str) -> Any:
        from tests.support.forge.commits import Clock

        forge.clock = Clock()
        repo = forge.repo(name, {"a": b"1\n"})
        repo.pull("Knob").write("b", b"1\n").lands_by_squash()
        repo.commit("More").edit("a", b"1", b"2")
        return json.dumps([repo.bare.sha("main"), repo.pulls[1].sha])

    assert tell("a/one") == tell("b/two")


def test_what_releases_must_not_do(forge: Forge, repo: Repo) -> None:
    mine = {"Authorization": f"token {forge.token}"}
    at = f"{forge.api}/repos/acme/engine/releases"

    def ask(verb: str, url: str, **more: Any) -> requests.Response:
        return requests.request(verb, url, headers=mine, timeout=10, **more)

    made = ask("POST", at, json={"tag_name": "release-1", "draft": True}).json()
    assert made["draft"] and made["html_url"].endswith(f"untagged-{made['id']}")
    assert ask("GET", f"{at}/tags/release-1").status_code == 404, "a draft has no tag yet"
    files = made["upload_url"].partition("{")[0]
    raw = {**mine, "Content-Type": "application/octet-stream"}
    for data, status in ((b"", 400), (b"x", 201), (b"x", 422)):
        url = f"{files}?name=a%20b"
        sent = requests.post(url, data=data, headers=raw, timeout=10)
        assert sent.status_code == status, sent.text
    (asset,) = ask("GET", f"{at}/{made['id']}/assets").json()
    assert asset["name"] == "a.b", "it gives odd names another form"
    assert ask("PATCH", f"{at}/{made['id']}", json={"draft": False}).json()["published_at"]
    assert repo.bare.git("tag", "--list") == "release-1", "it makes a tag where there is none"
    again = ask("POST", at, json={"tag_name": "release-1", "draft": False})
    assert again.json()["errors"][0]["code"] == "already_exists"
    assert ask("POST", at, json={"draft": 1}).status_code == 422
    assert "'tag_name' is a required property" in broken(forge)[0]
    assert requests.delete(f"{at}/{made['id']}", timeout=10).status_code == 404, "not for anybody"
