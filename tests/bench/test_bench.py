"""The instrument itself, in short: edits, measuring, tables. No release is needed."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from tests.bench import table
from tests.bench.__main__ import _shown
from tests.bench.edits import compiles, edit
from tests.bench.measure import cost, hermetic, median
from tests.bench.series import export

SOURCE = b"".join(
    b"def f%d(values):\n    # a comment\n    total = len(values)\n    return total\n\n\n" % number
    for number in range(9)
)


def test_an_edit_compiles_and_is_seeded() -> None:
    for seed in range(50):
        made = edit(SOURCE, random.Random(seed), f"t{seed}")
        assert made is not None
        assert made != SOURCE
        assert compiles(made)
        assert made == edit(SOURCE, random.Random(seed), f"t{seed}")


def test_what_is_no_python_is_not_edited() -> None:
    assert edit(b"def f(:\n", random.Random(1), "t") is None
    assert edit(b"x = 1\n", random.Random(1), "t") is None


def test_a_run_is_measured(tmp_path: Path) -> None:
    env = hermetic(tmp_path / "home")
    work = tmp_path / "work"
    work.mkdir()
    code = "x = b'x' * 50_000_000; import os; print(os.environ['HOME'])"
    got = cost([sys.executable, "-c", code], cwd=work, env=env)
    assert got.out.decode().strip() == str(tmp_path / "home")
    assert 45 < got.largest < 150
    assert 0 < got.wall < 60
    assert median([got, got]).largest == got.largest


def test_export_writes_a_quilt_folder(tmp_path: Path) -> None:
    from tests.bench.measure import git

    env = hermetic(tmp_path / "home")
    repo = tmp_path / "repo"
    repo.mkdir()
    git("init", "-q", "-b", "main", ".", cwd=repo, env=env)
    for text in ("one\n", "two\n"):
        (repo / "file").write_text(text)
        git("add", "file", cwd=repo, env=env)
        git("commit", "-q", "-m", f"[Tag] Say {text}", cwd=repo, env=env)
    export(repo, "HEAD~1..HEAD", tmp_path / "patches", env)
    assert (tmp_path / "patches" / "series").read_text() == "0001-Tag-Say-two.patch\n"
    assert b"[Tag] Say two" in (tmp_path / "patches" / "0001-Tag-Say-two.patch").read_bytes()


def test_tables() -> None:
    way = {"title": "w", "wall": 2.0, "cpu": 1.0, "largest_mb": 9.0, "whole_mb": 0.0, "same": True}
    ours = {**way, "wall": 0.5, "whole_mb": 301.0, "same": False, "note": "odd"}
    one = {"kind": "random", "about": "any", "old": "1", "new": "2", "patches": 3}
    found = {"repeat": 1, "cases": [{**one, "ways": {"git": {**way, "note": ""}, "carry": ours}}]}
    text = table.carry(found)
    assert "| w | 0.50 (1.00) ! |" in text
    assert "**4.0 (1.0)**" in text
    assert "**9, 301**" in text
    assert "- w; random, 1 to 2: odd" in text


def test_no_folder_of_the_machine_is_shown() -> None:
    words = ["--repeat", "5", "--work", "/a/b", "--archives=/c", "--json", "/d", "--kinds=moved"]
    assert _shown(words) == ["--repeat", "5", "--kinds=moved"]
