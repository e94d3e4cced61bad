"""What the runner is made of: read from a file that people write."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.upstream.components import Component, read

ROOT = Path(__file__).resolve().parents[2]
WHOLE = '[[component]]\nname = "a"\nversion = "1"\nwhy = "it is"\n'


def test_the_projects_own_file_is_sound() -> None:
    found = {each.name: each for each in read(ROOT / "upstream")}
    assert found["flashinfer"].modules == ("flashinfer",)
    assert all(each.why for each in found.values())


def test_a_component(tmp_path: Path) -> None:
    (tmp_path / "dependencies.toml").write_text(WHOLE + 'import = ["b"]\n[[model]]\nname = "m"\n')
    assert read(tmp_path) == (Component("a", "it is", version="1", modules=("b",)),)


def test_no_file_is_no_component(tmp_path: Path) -> None:
    assert read(tmp_path) == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[component", "not valid TOML"),
        ("[[thing]]\n", "unknown tables: thing"),
        ("component = 3\n", "not a list"),
        ("component = [3]\n", "without a name"),
        ('[[component]]\nversion = "1"\n', "without a name"),
        (WHOLE + "size = 3\n", "unknown keys: size"),
        (WHOLE.replace('"1"', "1"), "a value that is no text"),
        (WHOLE + "import = [1]\n", "a value that is no text"),
        (WHOLE.replace("it is", ""), "says not why"),
        (WHOLE.replace("version", "sha256"), "not pinned"),
        (WHOLE + WHOLE, "names 'a' twice"),
    ],
)
def test_a_malformed_file(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "dependencies.toml").write_text(text)
    with pytest.raises(PatchqError, match=says):
        read(tmp_path)
