"""Downloads are counted by release and file, without a token."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import requests

from patchq.errors import PatchqError
from patchq.forge.client import Client, Patience
from patchq.forge.errors import ForgeError
from patchq.forge.writing import Writer
from patchq.release import publish
from patchq.release.stats import stats
from patchq.release.where import Where, where
from tests.support.cli import program
from tests.support.forge.server import Forge
from tests.support.history import git
from tests.support.released import Released

REPO = "acme/runner"
QUICK = Patience(tries=0, backoff=0, secondary=0.1, longest=2, timeout=5)


@pytest.fixture
def released(forge: Forge, tmp_path: Path) -> Released:
    """Releases 1 and 2 are published, 3 is a draft."""
    made = Released(tmp_path, forge.repo(REPO))
    with Writer(forge.api, forge.token, patience=QUICK) as client:
        for number in (1, 2, 3):
            made.release(number)
            if number < 3:
                publish.publish(client, publish.wanted(made.project, number, REPO))
        client.write("POST", f"/repos/{REPO}/releases", {"tag_name": "release-3", "draft": True})
    return made


def take(forge: Forge, number: int, name: str) -> None:
    url = f"{forge.url}/{REPO}/releases/download/release-{number}/{name}"
    assert requests.get(url, timeout=10).status_code == 200


def test_counted(forge: Forge, released: Released) -> None:
    take(forge, 1, "notes.md")
    take(forge, 2, "notes.md")
    take(forge, 2, "notes.md")
    take(forge, 2, "SHA256SUMS")
    with Client(forge.api, patience=QUICK) as client:
        report = stats(client, REPO)
        (one,) = stats(client, REPO, 2).releases
        assert [(each.number, each.downloads) for each in report.releases] == [(2, 3), (1, 1)]
        assert {file.name: file.downloads for file in one.files if file.downloads} == {
            "notes.md": 2,
            "SHA256SUMS": 1,
        }
        for number in (3, 9):
            with pytest.raises(ForgeError, match=f"has no release {number} of acme/runner"):
                stats(client, REPO, number)


def test_the_command(forge: Forge, released: Released) -> None:
    take(forge, 2, "notes.md")

    def patchq(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program(), "release", "stats", *args, "--repo", REPO],
            cwd=released.root,
            env=os.environ | {"GITHUB_API_URL": forge.api},
            capture_output=True,
            text=True,
            timeout=60,
        )

    told = patchq()
    assert told.returncode == 0, told.stderr
    assert [line.split()[0] for line in told.stdout.splitlines()[:3]] == ["release", "2", "1"]
    value = json.loads(patchq("2", "--json").stdout)
    assert value["schema"] == "patchq.release-stats/1"
    assert value["releases"][0]["downloads"] == 1


# Where releases are


@pytest.fixture
def root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", ".")
    (tmp_path / "releases").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/acme/runner",
        "https://github.com/acme/runner.git",
        "https://x-access-token:secret@github.com/acme/runner.git",
        "git@github.com:acme/runner.git",
        "ssh://git@github.com/acme/runner/",
    ],
)
def test_where_origin_is(root: Path, url: str) -> None:
    git(root, "remote", "add", "origin", url)
    assert where(root) == Where(REPO, "https://api.github.com")


def test_what_is_said_comes_first(root: Path) -> None:
    git(root, "remote", "add", "origin", "https://github.com/acme/runner")
    (root / "releases/publish.toml").write_text(
        'github = "other/one"\ngithub_api = "https://ghe.example/api/v3"\n'
    )
    assert where(root) == Where("other/one", "https://ghe.example/api/v3")
    assert where(root, "third/one").repo == "third/one"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("github = 3\n", "releases/publish.toml has 'github', which means nothing there"),
        ("token = 'x'\n", "releases/publish.toml has 'token', which means nothing there"),
        ("github\n", "releases/publish.toml is no TOML"),
        ("github = 'x'\n", "'x' is no repository of a forge"),
        ("", "nothing says where releases are published"),
    ],
)
def test_where_nobody_knows(root: Path, text: str, says: str) -> None:
    git(root, "remote", "add", "origin", "https://elsewhere.example/acme/runner")
    (root / "releases/publish.toml").write_text(text)
    with pytest.raises(PatchqError) as caught:
        where(root)
    assert caught.value.message.startswith(says)
