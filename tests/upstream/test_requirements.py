"""What a source tree says that it needs."""

from __future__ import annotations

from pathlib import Path

from patchq.upstream.requirements import of_tree
from tests.support.kit import Kit


def needs(folder: Path, **files: bytes) -> tuple[str, ...]:
    kit = Kit(folder)
    commit = kit.history.commit()
    for name, data in files.items():
        commit.write(name.replace("__", "/"), data)
    commit.tag("v1")
    try:
        return of_tree(kit.store, kit.tree("v1"))
    finally:
        kit.close()


def test_requirement_files_and_what_they_include(tmp_path: Path) -> None:
    files = {
        "requirements__cuda.txt": b"-r common.txt\n\ntorch==2.13.0  # pinned\n--extra-index-url x\n",
        "requirements__common.txt": b"regex # a comment\nsix>=1.16; python_version > '3.11'\nregex\n",
    }
    assert needs(tmp_path, **files) == (
        "regex",
        "six>=1.16; python_version > '3.11'",
        "torch==2.13.0",
    )


def test_a_file_that_includes_itself_ends(tmp_path: Path) -> None:
    files = {"requirements__cuda.txt": b"-r cuda.txt\na>=1\nhttps://example.org/x.whl\n"}
    assert needs(tmp_path, **files) == ("a>=1",)


def test_pyproject(tmp_path: Path) -> None:
    text = b'[project]\ndependencies = ["a>=1", "not a requirement!"]\n'
    assert needs(tmp_path, **{"pyproject.toml": text}) == ("a>=1",)


def test_a_tree_that_says_nothing(tmp_path: Path) -> None:
    assert needs(tmp_path, **{"pyproject.toml": b"[project"}) == ()
