"""ci/nightly.toml: what may stand in it, and the file that is shipped."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from patchq.errors import PatchqError
from patchq.nightly.settings import FILE, MINUTES, Settings, load, parse

SHIPPED = Path(__file__).parents[2] / FILE


def test_the_shipped_file_says_the_defaults() -> None:
    data = tomllib.loads(SHIPPED.read_text())
    assert parse(data) == Settings()
    assert data["minutes"] == dict(MINUTES)


def test_without_a_file_there_are_defaults(tmp_path: Path) -> None:
    assert load(tmp_path) == Settings()
    assert Settings().folder(tmp_path) == tmp_path / "build/nights"


def test_what_it_says_holds(tmp_path: Path) -> None:
    (tmp_path / "ci").mkdir()
    (tmp_path / FILE).write_text(
        'onto = "main"\ntarget = "cuda-x86_64"\nnights = "/srv/nights"\nkeep = 3\n'
        'publish = true\nkey = "~/.ssh/release"\n[minutes]\nsmoke = 0.5\nculprit = 0\n'
        '[github]\nrepository = "acme/runner"\nlabel = "night watch"\n'
    )
    found = load(tmp_path)
    assert (found.onto, found.target, found.keep, found.publish) == ("main", "cuda-x86_64", 3, True)
    assert found.folder(tmp_path) == Path("/srv/nights")
    assert (found.minutes["smoke"], found.minutes["culprit"], found.minutes["sync"]) == (0.5, 0, 20)
    assert (found.repository, found.label) == ("acme/runner", "night watch")


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ({"ont": "latest"}, "ont"),
        ({"minutes": {"lunch": 30}}, "lunch"),
        ({"minutes": {"smoke": 0}}, "smoke"),
        ({"minutes": {"smoke": True}}, "smoke"),
        ({"minutes": 3}, "table"),
        ({"keep": 2.5}, "keep"),
        ({"keep": 0}, "keep"),
        ({"stale_hours": "36"}, "stale_hours"),
        ({"publish": "yes"}, "publish"),
        ({"publish": True}, "key"),
        ({"onto": "--abort"}, "onto"),
        ({"branch": "a..b"}, "branch"),
        ({"branch": "a.lock"}, "branch"),
        ({"branch": "-f"}, "branch"),
        ({"branch": "main"}, "branch and into"),
        ({"cluster": "../etc"}, "cluster"),
        ({"nights": ""}, "nights"),
        ({"github": {"repository": "no slash"}}, "repositor"),
        ({"github": {"label": "a,b"}}, "label"),
    ],
)
def test_what_it_may_not_say_is_named(data: dict[str, Any], word: str) -> None:
    with pytest.raises(PatchqError) as caught:
        parse(data)
    assert word in caught.value.message
    assert caught.value.hint


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "ci").mkdir()
    (tmp_path / FILE).write_bytes(b"onto = \xff")
    with pytest.raises(PatchqError, match=r"ci/nightly\.toml is not valid TOML"):
        load(tmp_path)
