"""From a GitHub page: the release of a number, without a token; and one that was withdrawn there."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.forge import releases
from patchq.forge.client import Patience
from patchq.forge.writing import Writer
from patchq.release import withdraw
from patchq.release.withdraw import Mark
from tests.support.forge.fixtures import forge, forge_server  # noqa: F401
from tests.support.forge.server import Forge
from tests.support.history import git
from tests.support.inside import call
from tests.support.press import Press

REPO = "acme/runner"
QUICK = Patience(tries=0, backoff=0, secondary=0.1, longest=2, timeout=5)


def publish(forge: Forge, press: Press, number: int) -> None:  # noqa: F811
    repo = forge.repos[REPO]
    (commit,) = git(repo.path, "rev-list", "-1", "--all").decode().split() or ("",)
    git(repo.path, "tag", "-f", f"release-{number}", commit)
    with Writer(forge.api, forge.token, patience=QUICK) as client:
        made = releases.create(client, REPO, f"release-{number}", f"Release {number}", "notes")
        for path in sorted(press.place(number).iterdir()):
            releases.upload(client, made, path)
        releases.publish(client, REPO, made, newest=True)


def test_a_number_and_a_repository(
    sealed: Path,
    forge: Forge,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    press = Press(tmp_path / "press")
    (sealed / "models/tiny").mkdir(parents=True)
    forge.repo(REPO)
    for number in (1, 2):
        press.cut(number)
        publish(forge, press, number)
    monkeypatch.setenv("GITHUB_API_URL", forge.api)
    given = ("--cluster", str(press.cluster()), "--signers", str(press.signers))
    said = call(sealed, "install", "1", "--from", REPO, *given)
    assert f"from release 1 of {REPO}" in said.out
    said = call(sealed, "install", "3", code=6)
    assert f"no release 3 of {REPO}" in said.err
    said = call(sealed, "install", "2", "--offline", code=1)
    assert "--offline forbids to ask for it" in said.err
    press.withdraw(2, "it spins", 1)
    mark = press.place(2) / withdraw.MARKER
    signed = Mark(mark.read_bytes(), mark.with_name(withdraw.SIGNATURE).read_bytes())
    with Writer(forge.api, forge.token, patience=QUICK) as client:
        found = releases.find(client, REPO, 2)
        assert found is not None
        notes = withdraw.into_notes(found.notes, "withdrawn", signed)
        releases.edit(client, REPO, found, found.title, notes)
    said = call(sealed, "install", "2", code=1)
    assert "release 2 was withdrawn: it spins" in said.err
    assert "install release 1, the last good one" in said.err
