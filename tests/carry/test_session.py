"""The session on disk: written at once, read back as it was, removed whatever it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from patchq.carry import session
from patchq.carry.answers import Decision, Said
from patchq.carry.resolutions import parse
from patchq.carry.session import Session, Shown, Switch
from patchq.config import Project
from patchq.errors import PatchqError

TEXT = (
    b'Patchq-Resolution: 1\nPatch: p\nPath: "latin\\374"\nConflict: content\nReleases: v1 to v2\n'
    + b"".join(b"%b: absent\n" % name for name in (b"Base", b"Ours", b"Theirs"))
    + b"Result: absent\n---\n\xff\r\n"
)
SAID = Said(
    {"p": Decision("drop", "why\udcff", "0123")}, {"q": "later"}, (parse("p/x.diff", TEXT),)
)
NOW = Session(
    *("demo", "..", "2026-01-02T03:04:05+00:00", "v1", "v2", "c" * 40, "d" * 40, "e" * 64),
    SAID,
    Shown("p", "f" * 40, "0" * 40),
    Switch("1" * 40, "2" * 40, "3" * 40),
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / ".git").mkdir()
    return Project(tmp_path, tmp_path / ".git")


@pytest.mark.parametrize("now", [NOW, replace(NOW, said=Said(), shown=None, switch=None)])
def test_it_comes_back_as_it_was(project: Project, now: Session) -> None:
    assert session.find(project, "demo") is None
    session.save(project, now)
    assert session.find(project, "demo") == now
    session.save(project, replace(now, series="x"))
    assert session.needed(project, "demo").series == "x"
    assert session.open_names(project) == ["demo"]


def test_no_session(project: Project) -> None:
    with pytest.raises(PatchqError, match="no session of demo is open"):
        session.needed(project, "demo")
    for queue in (None, "demo", "../../x"):
        with pytest.raises(PatchqError, match="no session of"):
            session.abort(project, queue)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"{}", b'{"schema": "patchq.session/9"}', b"\xff"],
)
def test_a_damaged_one_can_only_be_removed(project: Project, text: bytes) -> None:
    session.save(project, NOW)
    (session.folder_of(project, "demo") / "session.json").write_bytes(text)
    with pytest.raises(PatchqError, match="is damaged") as error:
        session.find(project, "demo")
    assert "--abort" in error.value.hint
    assert session.abort(project, None) == "demo"
    assert session.open_names(project) == []


def test_one_of_another_worktree(project: Project) -> None:
    session.save(project, replace(NOW, root="../other"))
    with pytest.raises(PatchqError, match="is open in"):
        session.find(project, "demo")


def test_leftovers_of_a_kill_are_nobodys_session(project: Project) -> None:
    top = project.private / "sessions"
    for name in (".new-demo", ".gone-demo"):
        (top / name / "tree").mkdir(parents=True)
    assert session.open_names(project) == []
    session.save(project, NOW)
    assert json.loads((top / "demo/session.json").read_bytes())["queue"] == "demo"
    session.abort(project, "demo")
    assert not top.exists()


def test_a_link_in_its_place_is_removed_not_followed(project: Project, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").touch()
    session.folder_of(project, "demo").parent.mkdir(parents=True)
    session.folder_of(project, "demo").symlink_to(mine)
    session.abort(project, "demo")
    assert (mine / "file").exists()
    assert session.open_names(project) == []
