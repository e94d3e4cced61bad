"""One connection to a forge: how long it waits, what it says, and that no token gets out."""

from __future__ import annotations

import logging
import socket
import time
from typing import Any

import pytest
from werkzeug.wrappers import Response

from patchq.errors import PatchqError
from patchq.forge import client as module
from patchq.forge.client import Client
from patchq.forge.errors import ForgeError
from tests.forge.conftest import QUICK, Said
from tests.support.forge.server import Forge

QUERY = "query { rateLimit { cost } }"
PULLS = "/repos/acme/engine/pulls"


@pytest.fixture(autouse=True)
def engine(forge: Forge) -> None:
    forge.repo("acme/engine")


def test_the_token_comes_from_two_variables_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module.token() is None
    monkeypatch.setenv("GH_TOKEN", " b\n")
    assert module.token() == ("b", "GH_TOKEN")
    monkeypatch.setenv("GITHUB_TOKEN", "a")
    assert module.token() == ("a", "GITHUB_TOKEN")
    monkeypatch.setenv("GITHUB_TOKEN", "")
    assert module.token() == ("b", "GH_TOKEN"), "empty is unset"


def test_partial_answers_come_through(client: Client) -> None:
    answer = client.query(
        'query { a: repository(owner: "acme", name: "engine") { nameWithOwner }'
        ' b: repository(owner: "no", name: "where") { nameWithOwner } }'
    )
    assert answer.data == {"a": {"nameWithOwner": "acme/engine"}, "b": None}
    assert [error["type"] for error in answer.errors] == ["NOT_FOUND"]


LIMIT = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes."}
LIMITS: dict[str, dict[str, Any]] = {
    "403 secondary": {"status": 403, "body": LIMIT},
    "403 with Retry-After": {"status": 403, "body": LIMIT, "headers": {"Retry-After": "1"}},
    "429 with Retry-After": {"status": 429, "body": LIMIT, "headers": {"Retry-After": "1"}},
    "429 alone": {"status": 429, "body": {"message": "slow down"}},
    "502": {"status": 502, "body": b"<html>"},
    "503 with Retry-After": {"status": 503, "body": b"", "headers": {"Retry-After": "1"}},
}


@pytest.mark.parametrize("kind", ["rest", "graphql"])
@pytest.mark.parametrize("fault", LIMITS.values(), ids=LIMITS.keys())
def test_what_passes_is_waited_for(
    forge: Forge, client: Client, said: Said, kind: str, fault: dict[str, Any]
) -> None:
    forge.fails(kind, **fault)
    if kind == "rest":
        assert client.get(PULLS) == []
    else:
        assert client.query(QUERY).data
    assert forge.count() == 2 and client.requests == 1
    waited = "Retry-After" in fault.get("headers", {})
    assert len(said.lines) == waited
    for line in said.lines:
        assert line.startswith(f"waiting 1 s for {client.host}: it ")
        assert line.endswith(f"(status {fault['status']})")


def test_the_hours_limit_is_waited_for_where_it_ends_soon(
    forge: Forge, client: Client, said: Said
) -> None:
    reset = {"X-RateLimit-Reset": str(int(time.time()) + 1)}
    forge.fails("rest", 403, {"message": "API rate limit exceeded for user 1."}, headers=reset)
    assert client.get(PULLS) == []
    (line,) = said.lines
    assert line.endswith(f" s for {client.host}: it limits requests (status 403)")


def test_a_spent_limit_within_an_answer(forge: Forge, client: Client, said: Said) -> None:
    """Status 200 with an error: nothing but the body says that the hour's points are spent."""
    body = {"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]}
    forge.fails("graphql", 200, body)
    assert client.query(QUERY).data
    assert said.lines == [f"waiting 1 s for {client.host}: it limits requests"]
    forge.fails("graphql", 200, body, times=2)
    with pytest.raises(ForgeError, match="limits requests for 60 min more") as caught:
        client.query(QUERY)
    assert caught.value.kind == "limit"


LONG: dict[str, dict[str, Any]] = {
    "an hour": {"status": 429, "body": {}, "headers": {"Retry-After": "3600"}},
    "403, an hour": {"status": 403, "body": LIMIT, "headers": {"Retry-After": "3600"}},
}


@pytest.mark.parametrize("fault", LONG.values(), ids=LONG.keys())
def test_no_wait_is_endless(forge: Forge, client: Client, fault: dict[str, Any]) -> None:
    forge.fails("rest", **fault)
    with pytest.raises(ForgeError) as caught:
        client.get(PULLS)
    assert caught.value.kind == "limit" and forge.count() == 1
    assert (
        caught.value.sentence == f"{client.host} limits requests for 60 min more: try again later"
    )


def test_the_hour_without_a_token_is_spent(forge: Forge, anyone: Client) -> None:
    forge.limits[None] = 1
    assert anyone.get(PULLS) == [] and anyone.remaining == 0
    with pytest.raises(ForgeError) as caught:
        anyone.get(PULLS)
    assert caught.value.kind == "limit"
    assert caught.value.sentence.endswith("min more: set GITHUB_TOKEN, which raises the limit")


def test_a_bad_token(forge: Forge) -> None:
    with Client(forge.api, "ghp_expired", "GH_TOKEN", patience=QUICK) as client:
        for ask in (lambda: client.get(PULLS), lambda: client.query(QUERY)):
            with pytest.raises(ForgeError) as caught:
                ask()
            assert caught.value.kind == "token" and "ghp_" not in caught.value.sentence
            says = "refuses the token in GH_TOKEN: it is wrong or has expired"
            assert says in caught.value.sentence
    assert forge.count() == 2, "asked once each"


FINAL: dict[str, tuple[dict[str, Any], str, str]] = {
    "404": ({"status": 404, "body": {"message": "Not Found"}}, "absent", "does not have it"),
    "403": ({"status": 403, "body": {"message": "SAML \x1b[1m"}}, "token", "SAML \\x1b[1m"),
    "5xx again and again": ({"status": 500, "body": b"", "times": 9}, "server", "(500)"),
    "429 again and again": ({"status": 429, "body": b"", "times": 9}, "limit", "limits requests"),
    "418": ({"status": 418, "body": {"message": "x"}}, "server", "status 418"),
    "an error in a list": ({"status": 404, "body": ["x"]}, "answer", "as GitHub does"),
    "nothing": ({"status": 200, "body": b""}, "answer", "as GitHub does"),
    "a web page": ({"status": 200, "body": b"<html>Sign in</html>"}, "answer", "as GitHub does"),
    "elsewhere": (
        {"status": 301, "body": b"", "headers": {"Location": "http://192.0.2.1/x"}},
        "answer",
        "leads to another address",
    ),
    "half an answer": (
        {"status": 200, "body": b'[{"number": 1', "times": 2},
        "answer",
        "break off",
    ),
}


@pytest.mark.parametrize(("fault", "kind", "says"), FINAL.values(), ids=FINAL.keys())
def test_what_does_not_pass(
    forge: Forge, client: Client, fault: dict[str, Any], kind: str, says: str
) -> None:
    forge.fails("rest", **fault)
    with pytest.raises(ForgeError) as caught:
        client.get(PULLS)
    assert caught.value.kind == kind and says in caught.value.sentence
    assert caught.value.sentence.startswith(client.host) and caught.value.exit_code == 6


def broken_off(response: Response) -> Response:
    response.headers["Content-Length"] = str(len(response.get_data()) + 100)
    response.headers["Connection"] = "close"
    return response


def test_an_answer_that_breaks_off_is_asked_again(forge: Forge, client: Client) -> None:
    forge.fails("rest", spoils=broken_off)
    assert client.get(PULLS) == [] and forge.count() == 2


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        api = f"http://127.0.0.1:{taken.getsockname()[1]}/api/v3"
        with Client(api, patience=QUICK) as client, pytest.raises(ForgeError) as caught:
            client.get(PULLS)
    assert caught.value.kind == "network"
    assert caught.value.sentence.endswith(
        "it cannot be reached: check the network, or use --offline"
    )


@pytest.mark.parametrize(
    "api", ["api.github.com", "ftp://x", "https://", "https://me:secret@host", "file:///x"]
)
def test_an_address_that_is_none(api: str) -> None:
    with pytest.raises(PatchqError, match="github_api is not the address of an API") as caught:
        Client(api)
    assert "secret" not in str(caught.value)


def test_a_token_never_goes_in_the_clear() -> None:
    for host in ("ghe.example.org", "127.example.org", "192.0.2.1"):
        with pytest.raises(PatchqError, match="GH_TOKEN would be readable on the way") as caught:
            Client(f"http://{host}/api/v3", "secret", "GH_TOKEN")
        assert "secret" not in str(caught.value)
    Client("http://localhost:1/api/v3", "secret")
    Client("http://ghe.example.org/api/v3")
    Client("https://ghe.example.org/api/v3", "secret")


def test_no_token_gets_out(
    forge: Forge,
    client: Client,
    said: Said,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    client.query(QUERY)
    forge.fails("rest", 403, LIMIT, headers={"Retry-After": "3600"})
    with pytest.raises(ForgeError) as caught:
        client.get(PULLS)
    assert forge.asked[0].token == forge.token, "it was sent"
    assert capfd.readouterr() == ("", ""), "PyGithub prints unless it is kept from it"
    everything = [caplog.text, repr(client), *said.lines, repr(caught.value), caught.value.sentence]
    assert not any(forge.token in text for text in everything)
