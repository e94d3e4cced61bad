"""`releases/N.toml` and SHA256SUMS: what was written is read, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from patchq.errors import PatchqError
from patchq.release import manifest, sums
from patchq.release.manifest import (
    Asset,
    Base,
    Dropped,
    EvidenceIs,
    Figure,
    GateIs,
    Manifest,
    ModelIs,
    Part,
    PatchIs,
    Rule,
    TargetIs,
)

SHA, TREE = "a" * 64, "b" * 40


def release(**changed: object) -> Manifest:
    made = Manifest(
        number=5,
        date="2026-11-30T12:00:00Z",
        queue="vllm",
        base=Base("0.32.0", TREE, "c" * 40),
        tree=TREE,
        lock=SHA,
        patches=(
            PatchIs(3, "cap", SHA, 'A "title" é', "new", (f"o/r#1 @ {TREE}", "o/r#2"), "spin"),
        ),
        assets=(
            Asset(
                "big.whl",
                5,
                SHA,
                (Part("big.whl.part-01", 3, SHA), Part("big.whl.part-02", 2, SHA)),
            ),
            Asset("requirements.spark.lock", 0, SHA),
        ),
        targets=(TargetIs("spark", "requirements.spark.lock", SHA, ("big.whl",), "3.12"),),
        models=(ModelIs("model", "m", "someone/m", "0123abc", SHA),),
        previous=4,
        evidence=(EvidenceIs("smoke", SHA, "2026-11-30T11:00:00+00:00"),),
        gate=GateIs(True, (Rule("smoke", True, "28 probes passed"),)),
        dropped=(Dropped(2, "old", "landed in 0.32.0, o/r#9"),),
        bench=(Figure("prose", 1024, 1, False, decode=22.65),),
        tested=(manifest.Tested(0, "aarch64", "NVIDIA GB10", "580.95"),),
        limits=("None.",),
        facts={"base/release": "0.32.0", "patch/cap": SHA},
    )
    return replace(made, **changed)  # type: ignore[arg-type]


def test_it_is_read_as_it_was_written() -> None:
    found = manifest.read(manifest.write(release()))
    assert found == release()
    assert manifest.write(found) == manifest.write(release())


LINE = some.text(
    some.characters(exclude_categories=("Cs",), exclude_characters="\x7f", min_codepoint=32),
    max_size=40,
)


@settings(max_examples=40)
@given(LINE, LINE, some.dictionaries(LINE, LINE, max_size=4))
def test_any_line_of_text_comes_back(title: str, why: str, facts: dict[str, str]) -> None:
    patch = replace(release().patches[0], title=title)
    made = release(patches=(patch,), why=why, facts=facts)
    assert manifest.read(manifest.write(made)) == made


def test_one_of_a_newer_patchq_says_so() -> None:
    data = manifest.write(release()).replace(b"patchq.release/1", b"patchq.release/2")
    with pytest.raises(PatchqError, match=r"of a newer patchq: it is patchq\.release/2") as caught:
        manifest.read(data)
    assert "install the patchq" in caught.value.hint


def swapped(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda _: "", "does not say that it is a release"),
        (lambda _: "\x00", "no TOML"),
        (lambda text: text[: len(text) // 2] + "\n= 3", "no TOML"),
        (swapped("number = 5", "number = 0"), "number is 0, not 1 to 999999"),
        (swapped("number = 5", 'number = "5"'), "number is no int"),
        (swapped("number = 5", "number = true"), "number is no int"),
        (swapped("number = 5\n", ""), "number is missing"),
        (swapped("number = 5", "number = 5\nnumbers = 5"), "'numbers' is unknown here"),
        (swapped("previous = 4", "previous = 5"), "release 5 cannot come before 5"),
        (swapped('name = "big.whl"', 'name = "../big.whl"'), "not of the form"),
        (swapped('name = "big.whl"', 'name = ".big.whl"'), "not of the form"),
        (swapped('name = "big.whl"', 'name = "SHA256SUMS"'), "SHA256SUMS"),
        (swapped('"requirements.spark.lock"', '"big.whl.part-02"'), "stands twice"),
        (swapped("big.whl.part-02", "big.whl.part-03"), "the parts of big.whl do not make it up"),
        (swapped("size = 5", "size = 6"), "the parts of big.whl do not make it up"),
        (swapped("size = 5", "size = -5"), "not 0 to"),
        (
            swapped('wheels = ["big.whl"]', 'wheels = ["other.whl"]'),
            "other.whl, of the target spark",
        ),
        (swapped('state = "new"', 'state = "odd"'), "not of the form"),
        (swapped("o/r#2", "o/r#2) [x](evil"), "not of the form"),
        (swapped('lock = "a', 'lock = "A'), "not of the form"),
        (swapped("T12:00:00Z", "T12:00:00+01:00"), "not of the form"),
        (swapped("limits = [", 'limits = ["\\u001b[31m", '), "not of the form"),
        (swapped("[facts]", "[facts]\nx = 3"), "facts is no table of texts"),
    ],
)
def test_what_is_no_manifest_is_refused(change: Callable[[str], str], says: str) -> None:
    text = change(manifest.write(release()).decode())
    with pytest.raises(PatchqError) as caught:
        manifest.read(text.encode(), "releases/5.toml")
    assert says in caught.value.message.replace("\n", " ")
    assert caught.value.message.startswith("releases/5.toml is")


def test_its_name_and_its_number_are_the_same(tmp_path: Path) -> None:
    place = tmp_path / "releases"
    place.mkdir()
    assert manifest.read_at(tmp_path, 6) is None
    (place / "6.toml").write_bytes(manifest.write(release()))
    (place / "publish.toml").write_text("")
    assert manifest.numbers(tmp_path) == [6]
    with pytest.raises(PatchqError, match="says that it is release 5"):
        manifest.read_at(tmp_path, 6)


def test_sums_are_read_as_they_were_written() -> None:
    told = {"b.whl": SHA, "a-1+g.whl": "0" * 64}
    assert sums.write(told).decode().split("\n")[0] == f"{'0' * 64}  a-1+g.whl"
    assert sums.read(sums.write(told)) == told


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        f"{SHA}  a",
        f"{SHA} a\n",
        f"{SHA}  ../a\n",
        f"{SHA}  a/b\n",
        f"{SHA}  b\n{SHA}  a\n",
        f"{SHA}  a\n{SHA}  a\n",
        f"{SHA}  a\r\n",
        f"{SHA[1:]}  a\n",
        f"\\{SHA}  a\n",
        f"{SHA}  é\n",
    ],
)
def test_what_are_no_sums_are_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the sentence is the caller's
        sums.read(text.encode())
