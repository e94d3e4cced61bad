"""Whether the runner's parts fit at once; where not, what people need to know about it."""

from __future__ import annotations

from tests.carry.deps.conftest import TOML
from tests.support.history import git
from tests.support.kit import bare_repository
from tests.support.parts import Parts

SPARK = """
[[component]]
name = "spark"
git = "{git}"
commit = "{commit}"
requires = ["dsl==4.6.0"]
why = "the trellis kernels"
"""


def test_parts_that_fit(parts: Parts) -> None:
    told = parts.json("check")
    assert told["schema"] == "patchq.deps-check/1"
    assert told["ok"] is True
    assert told["versions"] == {"engine": "1.0", "kernels-python": "1.7", "dsl": "4.6.0"}
    assert told["conflicts"] == told["missing"] == told["by_hand"] == []
    said = parts.call("deps", "check").out
    assert said == "3 packages fit engine 1.0 on aarch64, Python 3.12, CUDA 13.0, all at once.\n"


def test_a_contradiction_names_who_asks_for_what_and_what_would_fit(parts: Parts) -> None:
    parts.list(TOML.replace('"1.7"', '"1.8"'))
    told = parts.json("check", code=5)
    (conflict,) = told["conflicts"]
    assert conflict["package"] == "dsl"
    assert [need["of"] for need in conflict["needs"]] == [
        "upstream/dependencies.toml",
        "kernels 1.8",
    ]
    assert told["would_fit"] == {"kernels": "1.8", "dsl": "4.7.0"}
    said = parts.call("deps", "check", code=5).out
    assert "dsl: upstream/dependencies.toml pins 4.6.0; kernels 1.8 needs >=4.7.0" in said
    assert "All would fit with kernels 1.8, dsl 4.7.0." in said


def spark(parts: Parts) -> str:
    """A component in git alone, whose file says what it asks for: an older dsl."""
    source = bare_repository(parts.folder / "spark")
    (source / "trellis.py").write_text("WIDTH = 4\n")
    git(source, "add", "-A")
    git(source, "commit", "-q", "--no-verify", "-m", "spark")
    commit = git(source, "rev-parse", "HEAD").decode().strip()
    newer = TOML.replace('"1.7"', '"1.8"').replace('"4.6.0"', '"4.7.0"')
    parts.list(newer + SPARK.format(git=source, commit=commit))
    parts.call("init", "spark", "--git", str(source), "--base", commit)
    parts.commit()
    return commit


def test_a_carried_patch_relaxes_a_pin(parts: Parts) -> None:
    commit = spark(parts)
    said = parts.call("deps", "check", code=5).out
    assert f"spark {commit[:12]} pins 4.6.0" in said
    assert f"Known from dependencies.toml alone: what spark {commit[:12]} asks for." in said

    field = "Patchq-Relaxes: spark: dsl == 4.6.0"
    parts.patch("spark", "spark-dsl", "trellis.py", "4", "5", field)
    told = parts.json("check")
    (relaxed,) = told["relaxed"]
    assert relaxed == {
        "of": f"spark {commit[:12]}",
        "requirement": "dsl==4.6.0",
        "by": "carried patch spark-dsl",
        "needed": True,
    }
    said = parts.call("deps", "check").out
    assert "asks for dsl==4.6.0: carried patch spark-dsl relaxes it" in said
    part = next(each for each in parts.json("list")["parts"] if each["name"] == "spark")
    assert part["patches"] == ["spark-dsl"]


def test_a_patch_that_asks_for_something_else_instead(parts: Parts) -> None:
    spark(parts)
    field = "Patchq-Relaxes: spark: dsl==4.6.0 -> dsl>=4.8"
    parts.patch("spark", "spark-dsl", "trellis.py", "4", "5", field)
    (conflict,) = parts.json("check", code=5)["conflicts"]
    assert "with carried patch spark-dsl" in conflict["needs"][-1]["of"]


def test_a_patch_that_relaxes_nothing_is_said(parts: Parts) -> None:
    field = "Patchq-Relaxes: kernels: dsl>=9"
    parts.patch("engine", "easy", "engine/run.py", "return", "# more\n    return", field)
    told = parts.json("check")
    assert told["idle"] == [{"of": "kernels", "requirement": "dsl>=9", "by": "carried patch easy"}]
    (file,) = parts.root.glob("series/0001-easy.patch")
    file.write_bytes(file.read_bytes().replace(b"kernels: dsl>=9", b"nonsense"))
    assert "is no requirement" in parts.call("deps", "check", code=1).err
