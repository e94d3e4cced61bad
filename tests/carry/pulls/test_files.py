"""[[track]] in a queue's own file."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.carry.pulls import files
from patchq.config import Project, Track, find_project, load_queue
from patchq.errors import PatchqError

START = """# By hand.
name = "engine"  # ours
topics = []

[[sources]]
git = "../up"
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "upstream").mkdir()
    (tmp_path / "upstream/queue.toml").write_text(START)
    return Project(tmp_path, tmp_path / ".git")


def apply(project: Project, changes: dict[str, bytes | None]) -> str:
    for path, data in changes.items():
        assert data is not None
        (project.root / path).write_bytes(data)
    return (project.root / "upstream/queue.toml").read_text()


def test_in_and_out_again(project: Project) -> None:
    """The rest of the file stays as it was, to the byte; the queue is called otherwise."""
    text = apply(project, files.tracked(project, "engine", "a/b#1", 'why "so"\nand\tthus'))
    assert text.startswith(START)
    apply(project, files.tracked(project, "engine", "a/b#2", ""))
    assert load_queue(project).track == (Track("a/b#1", 'why "so"\nand\tthus'), Track("a/b#2"))

    apply(project, files.tracked(project, "engine", "a/b#1", "better"))
    assert load_queue(project).track == (Track("a/b#1", "better"), Track("a/b#2"))

    apply(project, files.untracked(project, "engine", "a/b#1"))
    assert load_queue(project).track == (Track("a/b#2"),)
    assert apply(project, files.untracked(project, "engine", "a/b#2")) == START
    assert files.untracked(project, "engine", "a/b#2") == {}


@pytest.mark.parametrize(
    "entry",
    [
        '[[track]]\npr = "57477"',
        '[[track]]\npr = "../x/y#1"',
        '[[track]]\npr = "x/..#1"',
        '[[track]]\npr = "a/b#1"\nwho = "me"',
        '[[track]]\npr = "a/b#1"\nwhy = 3',
        'track = "a/b#1"',
    ],
)
def test_what_is_no_entry(project: Project, entry: str) -> None:
    path = project.root / "upstream/queue.toml"
    path.write_text(entry + "\n\n" + START if entry.startswith("track") else START + entry + "\n")
    with pytest.raises(PatchqError):
        load_queue(project)


def test_the_shipped_queue_tracks_with_reasons() -> None:
    track = load_queue(find_project(Path(__file__).parent), "vllm").track
    keys = [each.pr for each in track]
    assert {"vllm-project/vllm#53906", "vllm-project/vllm#57605"} <= set(keys)
    assert len(keys) == len(set(keys))
    assert not [each.pr for each in track if len(each.why) < 20]
