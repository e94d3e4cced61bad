"""Search for pull requests, with and without a token."""

from __future__ import annotations

import pytest

from patchq.forge.client import Client
from patchq.forge.search import search
from tests.support.forge.server import Forge


@pytest.fixture
def filled(forge: Forge) -> Forge:
    repo = forge.repo("acme/engine")
    repo.pull("Faster gear", body="About the GLM model").write("gear.py", b"1\n")
    repo.pull("Slower gear").closes()
    repo.pull("[GLM] Add it").lands_by_squash()
    forge.repo("acme/other").pull("GLM elsewhere")
    return forge


@pytest.mark.parametrize("who", ["client", "anyone"])
def test_any_of_the_terms(filled: Forge, who: str, request: pytest.FixtureRequest) -> None:
    client: Client = request.getfixturevalue(who)
    seen = search(client, "acme/engine", ["glm", "gear", "glm", "nothing"])
    assert [pull.number for pull in seen.pulls.values()] == [3, 2, 1], "the newest first"
    assert [pull.state for pull in seen.pulls.values()] == ["merged", "closed", "open"]
    assert not seen.missing and seen.bodies["acme/engine#1"] == "About the GLM model"
    assert filled.count() == (1 if who == "client" else 3)
    assert bool(seen.pulls["acme/engine#1"].head_sha) == (who == "client")


def test_a_term_is_words_and_nothing_else(filled: Forge, client: Client) -> None:
    """No term reaches another repository, or ends the query's text."""
    for term in (
        "glm repo:acme/other",
        'glm" repo:acme/other "',
        "-gear",
        'x") { viewer',
        "OR glm",
    ):
        seen = search(client, "acme/engine", [term])
        assert not seen.missing
        assert all(pull.repo == "acme/engine" for pull in seen.pulls.values())
    assert [pull.number for pull in seen.pulls.values()] == [3, 1]
    assert search(client, "acme/engine", ['"', "--", ""]).pulls == {}


def test_the_rest_stays(filled: Forge, anyone: Client) -> None:
    filled.limits[None] = 1
    seen = search(anyone, "acme/engine", ["glm", "gear", "knob"])
    assert [pull.number for pull in seen.pulls.values()] == [3, 1]
    (says,) = seen.missing
    assert says.endswith("(2 terms not searched for)") and "limits requests" in says
