"""A history for a queue that lives on archives: what is added, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.carry.addgit import add_git
from patchq.carry.workspace import Queue, read_queue
from patchq.config import find_project, load_queue
from patchq.errors import PatchqError
from tests.support.inside import Small

SETTINGS = """# by hand
name = "demo"
series = "series"

[[sources]]
index = "demo"  # the archives
"""


@pytest.fixture
def small(tmp_path: Path) -> Small:
    """A queue that says that it lives on archives; its base is what v1 of the repository holds."""
    made = Small(tmp_path).made()
    (made.root / "upstream/demo.toml").write_text(SETTINGS)
    made.commit()
    return made


def queue(small: Small) -> Queue:
    return read_queue(find_project(small.root), "demo")


def test_comments_stay_and_undo_takes_it_back(small: Small) -> None:
    report = add_git(queue(small), "../upstream.git", small.root)

    assert report.url == str(small.upstream.path)
    assert [name for name, commit in report.releases if commit] == ["v1"]
    text = (small.root / "upstream/demo.toml").read_text()
    assert text.startswith(SETTINGS)
    assert text.endswith(f'[[sources]]\ngit = "{small.upstream.path}"\n')
    sources = load_queue(find_project(small.root)).sources
    assert [each.kind for each in sources] == ["index", "git"]
    small.call("undo")
    assert (small.root / "upstream/demo.toml").read_text() == SETTINGS


def test_an_inline_list_of_sources(small: Small) -> None:
    path = small.root / "upstream/demo.toml"
    path.write_text('name = "demo"\nsources = [{index = "demo"}] # where from\n')

    add_git(queue(small), str(small.upstream.path), small.root)

    assert "# where from" in path.read_text()
    sources = load_queue(find_project(small.root)).sources
    assert [each.kind for each in sources] == ["index", "git"]


def test_a_release_that_is_not_there_is_named(small: Small) -> None:
    state = small.root / "upstream/state.json"
    text = state.read_text()
    old = '"releases": {'
    assert text.count(old) == 1
    state.write_text(
        text.replace(old, old + '"v0": {"commit": "' + "0" * 40 + '", "tree": "' + "1" * 40 + '"},')
    )

    said = small.call("upstream", "add-git", "../upstream.git")

    assert "It has no tag with the files of v0: no history there." in said.out


def test_json(small: Small) -> None:
    found = small.call("upstream", "add-git", "../upstream.git", "--json").json
    assert found["schema"] == "patchq.upstream-add-git/1"
    assert [each["release"] for each in found["releases"]] == ["v1"]


def test_what_is_refused(small: Small, tmp_path: Path) -> None:
    other = Small(tmp_path / "other")
    other.upstream.branch("main").commit().write("a.txt", b"another\n").tag("v1")
    other.upstream.save()
    before = small.files()
    for url, why in (
        (str(tmp_path), "is not a git repository"),
        (str(other.upstream.path), "has no tag with the files of v1"),
        ("https://me:secret@127.0.0.1/x", "the address holds a password"),
        ("-x", "-x is not a git repository"),
        ("http://127.0.0.1:9/x.git", "cannot be fetched"),
    ):
        with pytest.raises(PatchqError, match=why):
            add_git(queue(small), url, small.root)
    assert small.files() == before
    add_git(queue(small), str(small.upstream.path), small.root)
    with pytest.raises(PatchqError, match="demo has a git source already"):
        add_git(queue(small), str(small.upstream.path), small.root)
