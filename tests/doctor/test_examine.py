"""`patchq doctor` as a user types it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from patchq.exl3.families import load
from patchq.exl3.slice import run
from tests.doctor.test_template import EFFORTS, GLM, pin
from tests.support.diagnosis import capabilities, runner, write_drafter
from tests.support.exl3 import encode_checkpoint
from tests.support.inside import Small, call
from tests.support.slices import CONFIG, edit

PINS = """
[[draft]]
name = "drafter"
repository = "maker/draft"
revision = "713226ab"
block_size = 8
why = "it drafts"

[[template]]
name = "glm"
repository = "maker/model"
revision = "690b7052"
sha256 = "{sha256}"
why = "it is the maker's"
"""


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    encode_checkpoint(folder / "src", shards=2)
    edit(
        folder / "src",
        CONFIG,
        lambda config: config.update(vocab_size=1024, num_hidden_layers=2),
    )
    run(folder / "src", folder / "tp2", 2, load())
    write_drafter(folder / "draft", 256, layers=2, target_layer_ids=[0, 1])
    return folder


@pytest.fixture
def made(_made: Path, tmp_path: Path) -> Path:
    """`src`, `tp2` (cut for two ranks) and `draft`, and a folder in which a runner is installed."""
    shutil.copytree(_made, tmp_path / "made")
    runner(tmp_path / "made" / "site")
    return tmp_path / "made"


@pytest.fixture
def small(tmp_path: Path) -> Small:
    """A project whose series brings the loader, with what it pins."""
    made = Small(tmp_path / "project")
    topic = made.upstream.branch("loader", at="v1").commit("Loader")
    topic.write("patchq-capabilities.json", capabilities(layouts=["shared"]))
    made.upstream.save()
    made.made().call("import", "--git", str(made.upstream.path), "v1..loader")
    pins = PINS.format(sha256=pin().sha256)
    (made.root / "upstream" / "dependencies.toml").write_text(pins)
    return made


def flat(text: str) -> str:
    """Without the line breaks of the terminal."""
    return " ".join(text.split())


def test_a_sound_setup_is_told_in_four_lines(small: Small, made: Path) -> None:
    small.call("doctor", "--template", str(GLM), "--write-goldens")
    said = small.call(
        *("doctor", "--model", str(made / "tp2"), "--tp", "2"),
        *("--draft", str(made / "draft"), "--draft-tokens", "7", "--template", str(GLM)),
    )
    assert (said.code, said.err) == (0, "")
    assert [line.split()[:2] for line in said.out.splitlines()] == [
        ["ok", "checkpoint"],
        ["ok", "loader"],
        ["ok", "drafter"],
        ["ok", "template"],
    ]
    assert "the runner tree" in said.out


def test_the_failure_of_the_fork(small: Small, made: Path) -> None:
    """The checkpoint was not cut, and the loader of the series wanted slices."""
    said = small.call("doctor", "--model", str(made / "src"), "--tp", "2", code=5)
    assert "the checkpoint is not cut (rank-sliced)" in flat(said.out)
    command = f"-> patchq slice run {made}/src {made}/src-tp2 --tp 2"
    assert "".join(command.split()) in "".join(said.out.split())


def test_an_artifact_is_asked_before_the_series(small: Small, made: Path) -> None:
    said = small.call(
        *("doctor", "--model", str(made / "src"), "--tp", "1", "--artifact", str(made / "site")),
        "--json",
        code=None,
    )
    (loader,) = [each for each in said.json["checks"] if each["name"] == "loader"]
    assert loader["says"] == "site reads it, with tensor parallel 1"


def test_json(small: Small, made: Path) -> None:
    said = small.call("doctor", "--model", str(made / "src"), "--tp", "2", "--json", code=5)
    assert (said.json["schema"], said.json["ok"]) == ("patchq.doctor/1", False)
    told, found = said.json["checks"]
    assert told["state"] == "ok" and set(found) == {"name", "state", "says", "reason", "remedy"}


def test_outside_of_a_project_the_loader_is_unknown(made: Path) -> None:
    said = call(made, "doctor", "--model", "tp2", code=6)
    assert "whether the runner reads it is not known" in flat(said.out)


def test_a_repository_without_a_queue(made: Path, tmp_path: Path) -> None:
    small = Small(tmp_path / "bare").repository()
    said = small.call("doctor", "--model", str(made / "tp2"), code=6)
    assert "no runner was named, and none is here" in flat(said.out)
    said = small.call("doctor", "--template", str(GLM))
    assert "pins no such template" in flat(said.out)


def test_fatal_is_told_beside_unknown(made: Path) -> None:
    said = call(made, "doctor", "--model", "tp2", "--draft", "draft", "--draft-tokens", "9", code=5)
    assert "unknown" in said.out and "it was trained for 7" in flat(said.out)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "nothing was named to look at"),
        (("--draft-tokens", "7"), "--draft-tokens of which drafter?"),
        (("--tp", "2", "--draft", "draft"), "--tp of which checkpoint?"),
        (("--write-goldens",), "--write-goldens of which template?"),
    ],
)
def test_usage(made: Path, words: tuple[str, ...], why: str) -> None:
    said = call(made, "doctor", *words, code=2)
    assert why in said.err and not said.out


@pytest.mark.parametrize("option", ["--model", "--draft", "--template", "--artifact"])
def test_what_is_not_there_is_the_users_error(made: Path, option: str) -> None:
    said = call(made, "doctor", option, "none", code=1)
    assert "none" in said.err and not said.out


def test_a_cluster_needs_a_project(made: Path) -> None:
    assert "no project here" in call(made, "doctor", "--cluster", "sparks", code=1).err


TWO = """
target = "cpu"
port = {port}
master_port = {master}

[[node]]
name = "one"
rank = 0
address = "127.0.0.1"
device = "lo"

[[node]]
name = "two"
rank = 1
address = "127.0.0.2"
device = "lo"
"""


def test_a_cluster_says_for_how_many_ranks(small: Small, made: Path) -> None:
    clusters = small.root / "ci" / "clusters"
    clusters.mkdir(parents=True)
    (clusters / "two.toml").write_text(TWO.format(port=18888, master=18889))
    said = small.call("doctor", "--cluster", "two", "--model", str(made / "src"), "--json", code=5)
    fatal = [each for each in said.json["checks"] if each["state"] == "fatal"]
    assert any(each["remedy"].endswith("--tp 2") for each in fatal)
    assert {"one", "two"} <= {each["name"].split()[0] for each in said.json["checks"]}


def test_what_is_on_the_nodes_alone_is_not_missed_here(small: Small) -> None:
    clusters = small.root / "ci" / "clusters"
    clusters.mkdir(parents=True)
    (clusters / "two.toml").write_text(TWO.format(port=18888, master=18889))
    said = small.call("doctor", "--cluster", "two", "--model", "elsewhere", "--json", code=None)
    assert said.code != 1 and not said.err
    assert not any(each["name"] == "checkpoint" for each in said.json["checks"])


# Golden texts.


def test_goldens_are_written_once_and_compared_ever_after(small: Small, tmp_path: Path) -> None:
    said = small.call("doctor", "--template", str(GLM), "--write-goldens")
    assert "upstream/goldens/glm.json is written; read it before you commit it" in flat(said.err)
    path = small.root / "upstream" / "goldens" / "glm.json"
    texts = json.loads(path.read_text())["conversations"]
    assert texts["plain"]["text"].startswith("[gMASK]<sop><|user|>\nWhich is larger")
    assert texts["thinking-off"]["text"].endswith("<think></think>")
    path.write_text(path.read_text().replace("<|user|>", "<|human|>"))
    said = small.call("doctor", "--template", str(GLM), code=5)
    assert "is rendered otherwise than expected: line 1 is" in flat(said.out)


def test_goldens_are_undone(small: Small) -> None:
    small.call("doctor", "--template", str(GLM), "--write-goldens")
    small.call("undo")
    assert not (small.root / "upstream" / "goldens" / "glm.json").exists()


def test_goldens_of_another_template_are_not_written(small: Small, tmp_path: Path) -> None:
    said = small.call("doctor", "--template", str(EFFORTS), "--write-goldens", code=1)
    assert "efforts.jinja is not glm at 690b7052" in said.err
    broken = tmp_path / "glm.jinja"
    broken.write_text("{% if %}")
    pins = small.root / "upstream" / "dependencies.toml"
    pins.write_text(pins.read_text().replace(f'sha256 = "{pin().sha256}"', ""))
    said = small.call("doctor", "--template", str(broken), "--write-goldens", code=1)
    assert "cannot be rendered" in said.err
    assert not (small.root / "upstream" / "goldens").exists()
