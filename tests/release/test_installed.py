"""Whose clusters are meant, which machines an install is told, what a node's record says."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.errors import PatchqError, UsageError
from patchq.release import installed

CLUSTER = """\
target = "cpu"
port = 8888
master_port = 8889
{more}
[[node]]
name = "a"
rank = 0
address = "127.0.0.1"
device = "lo"
"""


def written(folder: Path, name: str = "two.toml", more: str = "") -> Path:
    path = folder / name
    path.write_text(CLUSTER.format(more=more))
    return path


def test_the_project_first_then_what_is_installed(sealed: Path, tmp_path: Path) -> None:
    with pytest.raises(PatchqError, match="not inside a git repository"):
        installed.root(tmp_path)
    installed.keep(installed.given(written(tmp_path)))
    assert installed.root(tmp_path) == installed.home() == sealed / ".local/share/patchq"
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    assert installed.root(other) == installed.home(), "a repository that has no clusters"
    (other / "ci").mkdir()
    assert installed.root(other) == other


def test_the_only_cluster_or_the_one_that_is_named(tmp_path: Path) -> None:
    with pytest.raises(PatchqError, match="no release is installed here"):
        installed.cluster()
    installed.keep(installed.given(written(tmp_path)))
    assert installed.cluster().name == installed.cluster("two").name == "two"
    installed.keep(installed.this_machine("cpu"))
    assert installed.cluster("here").nodes[0].ssh is None
    with pytest.raises(UsageError, match="which cluster"):
        installed.cluster()


def test_the_way_to_the_machines_is_kept_with_them(tmp_path: Path) -> None:
    (tmp_path / "ways").write_text("Host a\n")
    installed.keep(installed.given(written(tmp_path, more='ssh_config = "ways"')))
    (tmp_path / "ways").unlink()
    found = installed.cluster().ssh_config
    assert found is not None and found.read_text() == "Host a\n"


@pytest.mark.parametrize(
    ("name", "more", "says"),
    [
        ("two.toml", 'ssh_config = "../../evil"', "is no file beside it"),
        ("two.toml", 'ssh_config = "missing"', "is no file beside it"),
        ("two.toml", "port = ", "is not valid TOML"),
        ("two.toml", "colour = 1", "unknown keys: colour"),
        ("Two Machines.toml", "", "is no name"),
    ],
)
def test_a_file_that_says_something_else(tmp_path: Path, name: str, more: str, says: str) -> None:
    with pytest.raises(PatchqError, match=says):
        installed.given(written(tmp_path, name, more))
    with pytest.raises(PatchqError, match="cannot be read"):
        installed.given(tmp_path / "nothing.toml")
    assert not installed.home().exists()


def test_a_record_says_which_release_and_how_it_is_served() -> None:
    text = 'model = "m"\ntemplate = "t"\nserved_name = "s"\n'
    labels = installed.labels(5, "p", text, {"model": "m-0123456", "template": "t-0123456"})
    found = installed.release({"digest": "d", "labels": labels})
    assert found is not None
    assert (found.number, found.profile.model) == (5, "m-0123456")
    assert found.about["template"] == "t-0123456" and found.about["served_name"] == "s"
    assert installed.release({"digest": "d", "labels": {"target": "cpu"}}) is None
    assert installed.release(None) is None
    for damage in ({"number": "five"}, {"profile_toml": "["}, {"profile_toml": 'model = "m"'}):
        with pytest.raises(PatchqError):
            installed.release({"digest": "d", "labels": labels | damage})


def test_one_at_a_time() -> None:
    refused = pytest.raises(PatchqError, match="another patchq")
    with installed.alone(), refused, installed.alone():
        pass
