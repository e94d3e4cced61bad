"""What the runner is made of: read from a file that people write."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.upstream.components import (
    HUB,
    Component,
    Hardware,
    Model,
    Pins,
    Relaxed,
    Template,
    pinned,
    read,
)

ROOT = Path(__file__).resolve().parents[2]
WHOLE = '[[component]]\nname = "a"\nversion = "1"\nwhy = "it is"\n'


def test_the_projects_own_file_is_sound() -> None:
    found = {each.name: each for each in read(ROOT / "upstream")}
    assert found["flashinfer"].modules == ("flashinfer",)
    assert all(each.why for each in found.values())


def test_a_component(tmp_path: Path) -> None:
    (tmp_path / "dependencies.toml").write_text(
        WHOLE
        + 'import = ["b"]\n[[model]]\nname = "m"\nrepository = "o/m"\nrevision = "1"\nwhy = "it is"\n'
    )
    assert read(tmp_path) == (Component("a", "it is", version="1", modules=("b",)),)


EVERYTHING = """
hub = "https://hub.example.org/"

[hardware]
machine = "aarch64"
python = "3.12"
glibc = "2.39"
cuda = "13.0"
requires = ["cuda-toolkit<13.1"]

[[component]]
name = "a"
index = "a-python"
version = "1"
requires = ["b>=2"]
why = "it is"

[[model]]
name = "m"
repository = "o/m"
revision = "12ab"
why = "small"

[[draft]]
name = "d"
repository = "o/d"
revision = "34cd"
block_size = 8
why = "fast"

[[template]]
name = "t"
repository = "o/m"
revision = "12ab"
why = "corrected"

[[relaxed]]
of = "a"
requirement = "b>=2"
why = "measured"
"""


def test_everything(tmp_path: Path) -> None:
    (tmp_path / "dependencies.toml").write_text(EVERYTHING)
    found = pinned(tmp_path)
    assert found == Pins(
        components=(Component("a", "it is", "a-python", version="1", requires=("b>=2",)),),
        models=(Model("m", "small", "o/m", "12ab"),),
        drafts=(Model("d", "fast", "o/d", "34cd", block_size=8),),
        templates=(Template("t", "corrected", "o/m", "12ab", file="chat_template.jinja"),),
        relaxed=(Relaxed("a", "b>=2", "measured"),),
        hardware=Hardware("aarch64", "3.12", "2.39", "13.0", requires=("cuda-toolkit<13.1",)),
        hub="https://hub.example.org",
    )
    assert [(kind, each.pin) for kind, each in found.all] == [
        ("component", "1"),
        ("model", "12ab"),
        ("draft", "34cd"),
        ("template", "12ab"),
    ]
    assert found.find("d")[0] == "draft"
    with pytest.raises(PatchqError, match="has no 'dd'"):
        found.find("dd")


def test_no_file_is_no_pin(tmp_path: Path) -> None:
    assert pinned(tmp_path) == Pins(hub=HUB)


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
        (WHOLE.replace("version", "git"), "not pinned"),
        (WHOLE + WHOLE, "names 'a' twice"),
        (WHOLE.replace('"a"', '"../a"'), "cannot be the name of a component"),
        (WHOLE.replace('"a"', '"retired"'), "cannot be the name of a component"),
        (WHOLE + 'sha256 = "12"\n', "a sha256 that is none"),
        (WHOLE + 'requires = ["b >"]\n', "is no requirement"),
        (WHOLE + "requires = [1]\n", "a value that is no text"),
        ("hub = 3\n", "hub is no address"),
        ("hardware = 3\n", "a hardware without a name"),
        ('[hardware]\nmachine = "x"\npython = "three"\n', "does not say what it is"),
        ('[[relaxed]]\nof = "a"\nwhy = "b"\n', "names no requirement"),
        ('[[model]]\nname = "m"\nwhy = "b"\nrevision = "1"\n', "has no repository"),
        (
            '[[draft]]\nname = "d"\nwhy = "b"\nrepository = "o/d"\nrevision = "1"\nblock_size = "8"\n',
            "a value that is no text",
        ),
        (
            WHOLE + '[[model]]\nname = "a"\nwhy = "b"\nrepository = "o"\nrevision = "1"\n',
            "names 'a' twice",
        ),
    ],
)
def test_a_malformed_file(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "dependencies.toml").write_text(text)
    with pytest.raises(PatchqError, match=says):
        read(tmp_path)
