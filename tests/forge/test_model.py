"""How pull requests are named by people."""

from __future__ import annotations

import pytest

from patchq.errors import PatchqError
from patchq.forge.model import parse_key, require_repo

NAMES = {
    "acme/engine#12": ("acme/engine", 12),
    "https://github.com/acme/engine/pull/12": ("acme/engine", 12),
    "https://github.example.com/acme/engine.js/pull/12/files#diff-1": ("acme/engine.js", 12),
    "#12": ("own/repo", 12),
    "12": ("own/repo", 12),
}


@pytest.mark.parametrize(("text", "means"), NAMES.items(), ids=NAMES.keys())
def test_names(text: str, means: tuple[str, int]) -> None:
    assert parse_key(text, "own/repo") == means


@pytest.mark.parametrize(
    "text",
    [
        "", "12", "#12", "engine#12", "acme/engine", "acme/engine#0", "acme/engine#-1", "a/b#1x",
        "acme/../x#1", "../x#1", "-a/b#1", "a/b/c#1", "acme/engine#12\n", "a/..#1", "a/b#１２",
        "https://github.com/acme/engine/issues/12", "a/b#1234567890",
    ],
)  # fmt: skip
def test_no_names(text: str) -> None:
    with pytest.raises(PatchqError, match="names no pull request"):
        parse_key(text)


@pytest.mark.parametrize("text", ['a/b", name: "c', "a", "a/b/c", "a/..", "a/.", "", "a/b\n"])
def test_no_repositories(text: str) -> None:
    with pytest.raises(PatchqError, match="is no repository of a forge"):
        require_repo(text)
