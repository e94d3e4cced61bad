"""The `series` file: quilt's own form, comments and held patches kept, numbers given once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.errors import PatchqError
from patchq.queue import header as headers
from patchq.queue import patch as patches
from patchq.queue import series as queues
from patchq.queue.patch import Patch
from patchq.queue.series import Line, Series, held_line


def patch(number: int, name: str) -> Patch:
    return patches.make(number, name, headers.make([("Subject", name)], ""), b"")


def written(folder: Path, series: Series) -> Path:
    folder.mkdir(exist_ok=True)
    for name, data in series.files().items():
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three patches, the second held, the third with quilt's -p1; one retired."""
    made = tmp_path / "series"
    made.mkdir()
    for each in (patch(1, "one"), patch(3, "two"), patch(12, "three")):
        (made / each.file).write_bytes(each.text)
    (made / "series").write_text(
        "# ours\n  # indented\n0001-one.patch\n# held 0003-two.patch: waits for: a tag\n"
        "0012-three.patch -p1 # last\n"
    )
    (made / "retired").mkdir()
    (made / "retired/0020-gone.patch").write_bytes(patch(20, "gone").text)
    (made / "retired/README").touch()
    return made


def test_a_series_is_read(folder: Path) -> None:
    series = queues.read(folder)
    assert [each.name for each in series.applied] == ["one", "three"]
    assert [each.name for each in series.all] == ["one", "two", "three"]
    assert series.held == {"two": "waits for: a tag"}
    assert [line.kind for line in series.lines] == ["comment", "comment", "patch", "held", "patch"]
    assert series.retired == ("0020-gone.patch",)
    assert series.names == {"one", "two", "three", "gone"}
    assert series.next_number == 21


def test_what_is_read_is_written(folder: Path) -> None:
    kept = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert queues.read(folder).files() == kept


def test_what_is_appended(folder: Path) -> None:
    series = queues.read(folder)
    longer = series.append([patch(21, "new"), patch(22, "newer")])
    assert (
        longer.files()["series"] == series.files()["series"] + b"0021-new.patch\n0022-newer.patch\n"
    )
    assert longer.digest != series.digest == queues.read(folder).digest
    assert longer.next_number == 23


def test_no_folder_is_an_empty_series(tmp_path: Path) -> None:
    series = queues.read(tmp_path / "series")
    assert series == Series()
    assert (series.next_number, series.files()) == (1, {"series": b""})


def test_an_empty_folder(tmp_path: Path) -> None:
    assert queues.read(tmp_path) == Series()
    (tmp_path / "series").touch()
    assert queues.read(tmp_path) == Series()


COMMENT = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=20)


@st.composite
def any_series(draw: st.DrawFn) -> Series:
    numbers = draw(st.lists(st.integers(1, 20000), max_size=6, unique=True))
    lines = []
    for number in numbers:
        each = patch(number, f"p{number}")
        if draw(st.booleans()):
            why = draw(COMMENT)
            lines.append(held_line(each, why))
        else:
            lines.append(Line("patch", each.file, each))
        if draw(st.booleans()):
            text = f"# {draw(COMMENT)}".rstrip()
            lines.append(Line("comment", draw(st.sampled_from(["", text]))))
    return Series(tuple(lines))


@settings(max_examples=60)
@given(any_series())
def test_any_series_comes_back(tmp_path_factory: pytest.TempPathFactory, series: Series) -> None:
    """Comments and reasons may hold what other programs take for a line's end."""
    folder = written(tmp_path_factory.mktemp("series"), series)
    found = queues.read(folder)
    assert [line.kind for line in found.lines] == [line.kind for line in series.lines]
    assert found.files() == series.files()
    assert (found.held, found.digest) == (series.held, series.digest)


def test_a_reason_of_two_lines_is_no_line_of_the_series() -> None:
    line = held_line(patch(1, "one"), "waits\n0009-evil.patch\n")
    assert (line.text, line.why) == (
        "# held 0001-one.patch: waits 0009-evil.patch",
        "waits 0009-evil.patch",
    )


def test_a_patch_is_found_by_name_number_or_file(folder: Path) -> None:
    series = queues.read(folder)
    for wanted in ("three", "12", "0012", "0012-three.patch"):
        assert series.find(wanted).name == "three"
    assert series.find("two").number == 3, "held patches are found as well"


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ("thre", "did you mean three?"),
        ("9", "see `patchq series`"),
        ("²", "see `patchq"),
        ("", "see `patchq"),
    ],
)
def test_a_patch_that_is_not_there(folder: Path, wanted: str, hint: str) -> None:
    with pytest.raises(PatchqError, match=f"there is no patch '{wanted}' in the series") as caught:
        queues.read(folder).find(wanted)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("line", "says", "hint"),
    [
        ("0001-one.patch", r"series:6 names 0001-one\.patch a second time", "remove one"),
        ("0003-two.patch", r"series:6 names 0003-two\.patch a second time", "remove one"),
        ("0002-one.patch", r"0002-one\.patch and 0001-one\.patch are both called 'one'", "rename"),
        ("0009-lost.patch", r"series:6 names 0009-lost\.patch, which is not there", "restore"),
        ("# held 0009-lost.patch: x", r"series:6 names 0009-lost\.patch, which is not", "restore"),
        ("fix.diff", r"series:6 names 'fix\.diff', which is not NNNN-name", "patchq import"),
        ("../0001-one.patch", r"names '\.\./0001-one\.patch', which is not", "patchq import"),
        ("retired/0020-gone.patch", "names 'retired/0020-gone.patch', which is not", "import"),
        ("0012-three.patch -p0", "series:6: -p0 is not supported here", "import --quilt"),
        ("0012-three.patch -p1 -R", "series:6: -p1 -R is not supported here", "import --quilt"),
        ("0030-folder.patch", r"series:6: 0030-folder\.patch is a folder", "remove the line"),
        ("0031-bad.patch", r"0031-bad\.patch:1 is not a header field", "import"),
        ("0032-other.patch", r"0032-other\.patch calls itself 'x'", "agree"),
    ],
)
def test_a_line_that_is_wrong_is_said(folder: Path, line: str, says: str, hint: str) -> None:
    (folder / "0002-one.patch").write_bytes(patch(2, "one").text)
    (folder / "0030-folder.patch").mkdir()
    (folder / "0031-bad.patch").write_bytes(b"diff --git a/f b/f\n")
    (folder / "0032-other.patch").write_bytes(b"Patchq-Name: x\n---\n")
    with (folder / "series").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(PatchqError, match=says) as caught:
        queues.read(folder)
    assert hint in caught.value.hint


def test_a_series_file_with_other_line_ends(folder: Path) -> None:
    text = (folder / "series").read_bytes()
    (folder / "series").write_bytes(text.replace(b"\n", b"\r\n"))
    assert queues.read(folder).files()["series"] == text
    (folder / "series").write_bytes(text.rstrip(b"\n"))
    assert queues.read(folder).files()["series"] == text
