"""Where things are, and what a queue's own file says, or says wrongly."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from patchq import config
from patchq.config import Project, QueueConfig, Source
from patchq.errors import PatchqError
from tests.support.history import git


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    (root / "upstream").mkdir(parents=True)
    (root / ".git").mkdir()
    return config.find_project(root)


def queue(project: Project, name: str, text: str = '[[sources]]\ngit = "up"\n') -> None:
    (project.upstream / f"{name}.toml").write_text(text, encoding="utf-8")


def test_the_project_around_a_folder(project: Project) -> None:
    deep = project.root / "a" / "b"
    deep.mkdir(parents=True)
    assert config.find_project(deep) == project == Project(project.root, project.root / ".git")
    assert project.private == project.root / ".git/patchq"
    assert project.state_file == project.root / "upstream/state.json"


def test_no_project(tmp_path: Path) -> None:
    with pytest.raises(PatchqError, match="is not inside a git repository") as caught:
        config.find_project(tmp_path)
    assert "git init" in caught.value.hint


def test_worktrees_share_what_is_private(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "main")
    git(tmp_path / "main", "commit", "-q", "--allow-empty", "-m", "x")
    git(tmp_path / "main", "worktree", "add", "-q", "../other")
    found = config.find_project(tmp_path / "other")
    assert found == Project(tmp_path / "other", tmp_path / "main/.git")


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "up")
    git(tmp_path / "up", "commit", "-q", "--allow-empty", "-m", "x")
    git(tmp_path, "init", "-q", "main")
    add = ("submodule", "add", "-q", str(tmp_path / "up"), "sub")
    git(tmp_path / "main", "-c", "protocol.file.allow=always", *add)
    found = config.find_project(tmp_path / "main/sub")
    assert found == Project(tmp_path / "main/sub", tmp_path / "main/.git/modules/sub")


def test_a_git_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / ".git").write_bytes(b"\xff\n")
    with pytest.raises(PatchqError, match=r"\.git is not a git directory"):
        config.find_project(tmp_path)


def test_all_that_a_queue_may_say(project: Project) -> None:
    queue(
        project,
        "vllm",
        'name = "vllm"\nseries = "series"\ngithub = "example/up"\ntopics = ["a", "b"]\n'
        'github_api = "https://ghe.example"\ngit = "https://ghe.example/up.git"\n'
        '[[sources]]\nindex = "pkg"\n[[sources]]\ngit = "../up"\n',
    )
    assert config.load_queue(project) == QueueConfig(
        "vllm",
        "series",
        (Source("index", "pkg"), Source("git", "../up")),
        "example/up",
        ("a", "b"),
        github_api="https://ghe.example",
        git="https://ghe.example/up.git",
    )


def test_the_least_that_it_must_say(project: Project) -> None:
    queue(project, "kernel")
    assert config.load_queue(project) == QueueConfig("kernel", "series", (Source("git", "up"),))


def test_which_queue_is_meant(project: Project) -> None:
    """The only one, the one that is named, the one in series/ itself, the default."""
    source = '[[sources]]\ngit = "up"\n'
    queue(project, "kernel", f'series = "series/kernel"\n{source}')
    (project.upstream / "dependencies.toml").write_text("not a queue")
    (project.upstream / "decisions.toml").write_text("not a queue")
    assert config.load_queue(project).name == "kernel"
    queue(project, "other", f'series = "series/other"\n{source}')
    assert config.queue_names(project) == ["kernel", "other"]
    with pytest.raises(PatchqError, match="which queue") as caught:
        config.load_queue(project)
    assert caught.value.hint == "name one with --queue: kernel, other"
    assert config.load_queue(project, "other").series == "series/other"
    queue(project, "vllm", f'series = "series/vllm"\n{source}')
    assert config.load_queue(project).name == "vllm"
    queue(project, "other", source)
    assert config.load_queue(project).name == "other"


def test_no_queue(project: Project, tmp_path: Path) -> None:
    for where in (project, Project(tmp_path, tmp_path / ".git")):
        assert config.queue_names(where) == []
        with pytest.raises(PatchqError, match="there is no queue in") as caught:
            config.load_queue(where)
        assert "patchq init NAME" in caught.value.hint


def test_a_queue_that_is_not_there(project: Project) -> None:
    queue(project, "vllm")
    for name in ("other", "../vllm", "dependencies", ""):
        with pytest.raises(PatchqError, match="there is no queue") as caught:
            config.load_queue(project, name)
        assert caught.value.hint == "the queues are: vllm"


SOURCE = '[[sources]]\ngit = "up"\n'
BAD = {
    "no TOML": ("name = \n", "upstream/vllm.toml is not valid TOML"),
    "not UTF-8": ("\udcff", "upstream/vllm.toml is not valid TOML"),
    "unknown keys": (f"b = 1\na = 2\n{SOURCE}", "has unknown keys: a, b"),
    "no source": ("", "names no source"),
    "empty sources": ("sources = []\n", "names no source"),
    "sources are one text": ('sources = "pkg"\n', "'pkg' is not a source"),
    "sources are a number": ("sources = 5\n", "5 is not a source"),
    "sources are a table": ('[sources]\nindex = "pkg"\n', "{'index': 'pkg'} is not a source"),
    "another kind of source": ('[[sources]]\nsvn = "x"\n', "{'svn': 'x'} is not a source"),
    "two kinds at once": ('[[sources]]\ngit = "x"\nindex = "y"\n', "is not a source"),
    "a source without text": ("[[sources]]\ngit = 1\n", "{'git': 1} is not a source"),
    "series outside": (f'series = "../series"\n{SOURCE}', "is not in the series folder"),
    "series up and down": (f'series = "series/../x"\n{SOURCE}', "is not in the series folder"),
    "series absolute": (f'series = "/series"\n{SOURCE}', "is not in the series folder"),
    "series empty": (f'series = ""\n{SOURCE}', "is not in the series folder"),
    "series no text": (f"series = 1\n{SOURCE}", "series is not a text"),
    "name no text": (f"name = []\n{SOURCE}", "name is not a text"),
    "github no text": (f"github = true\n{SOURCE}", "github is not a text"),
    "topics no list": (f'topics = "a"\n{SOURCE}', "topics is not a list of texts"),
    "topics no texts": (f'topics = ["a", 1]\n{SOURCE}', "topics is not a list of texts"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "says"), BAD.values(), ids=BAD.keys())
def test_what_a_queue_says_wrongly(project: Project, text: str, says: str) -> None:
    (project.upstream / "vllm.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(PatchqError) as caught:
        config.load_queue(project)
    assert says in caught.value.message and "upstream/vllm.toml" in caught.value.message
    assert caught.value.hint


def test_the_cache(monkeypatch: pytest.MonkeyPatch, sealed: Path) -> None:
    assert config.cache_dir() == sealed / "patchq-cache"
    monkeypatch.delenv("PATCHQ_CACHE")
    assert config.cache_dir() == sealed / ".cache" / "patchq"
    monkeypatch.setenv("PATCHQ_CACHE", "")
    assert config.cache_dir() == sealed / ".cache" / "patchq", "empty is unset"


def test_git_finds_the_same_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", ".")
    asked = ["git", "-C", os.fspath(tmp_path), "rev-parse", "--absolute-git-dir"]
    assert subprocess.check_output(asked, text=True).strip() == str(
        config.find_project(tmp_path).git_dir
    )
