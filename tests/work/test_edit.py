"""`edit` and `rename`: headers and names; whatever goes wrong, what was typed is there."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.errors import PatchqError
from patchq.queue import header as headers
from patchq.queue.header import Header
from patchq.work import edit
from tests.support.stack import FIVE, FOUR, ONE, THREE, Stack


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(tmp_path)


def editor(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str) -> None:
    """An editor that runs `body` with the file's path as `path`, its text as `text`."""
    script = folder / "editor.py"
    script.write_text(
        "import os, pathlib, signal, sys\n"
        "path = pathlib.Path(sys.argv[1])\ntext = path.read_text()\n" + body
    )
    monkeypatch.setenv("EDITOR", shlex.join([sys.executable, str(script)]))


def drafts(stack: Stack) -> list[str]:
    return sorted(path.name for path in (stack.root / ".git/patchq/edit").glob("*"))


# Without an editor


def test_options(stack: Stack) -> None:
    diff = (stack.root / "series/0002-two.patch").read_bytes().partition(b"\n---\n")[2]
    stack.call(
        *("edit", "two", "--subject", "[x] Twelve\nwords", "--message", "Why.\r\n\n---\ndiff -x"),
        *("--set", "upstream-status=Submitted", "--set", "Patchq-Check=true"),
        *("--set", "Patchq-Check=true 2", "--set", "Bug=1"),
    )
    text = (stack.root / "series/0002-two.patch").read_bytes()
    assert text == (
        b"From: Ada Tester <ada@example.org>\n"
        b"Date: Mon, 16 Jun 2025 00:06:40 +0200\n"
        b"Subject: [x] Twelve words\n"
        b"Upstream-Status: Submitted\n"
        b"Patchq-Name: two\n"
        b"Patchq-Check: true\n"
        b"Patchq-Check: true 2\n"
        b"Bug: 1\n\n"
        b"Why.\n\n~---\n~diff -x\n---\n" + diff
    )
    stack.call("edit", "two", "--unset", "Patchq-Check", "--unset", "Bug")
    assert b"Check" not in (stack.root / "series/0002-two.patch").read_bytes()
    stack.judge(ONE | THREE | FIVE, FOUR)


def test_only_its_file_changes(stack: Stack) -> None:
    done = stack.call("edit", "two", "--subject", "Zwei", "--json").json
    assert (done["schema"], done["files"]) == ("patchq.edit/1", ["series/0002-two.patch"])
    again = stack.call("edit", "two", "--subject", "Zwei", "--json").json
    assert (again["recorded"], again["files"]) == (False, [])


@pytest.mark.parametrize(
    ("options", "code", "why"),
    [
        (("--subject", " "), 1, "the subject is empty"),
        (("--unset", "Subject"), 1, "the subject is empty"),
        (("--unset", "Nothing"), 1, "there is no field Nothing"),
        (("--set", "Patchq-Name=x"), 1, "`patchq rename` changes a name"),
        (("--set", "Date=yesterday"), 1, "'yesterday' is not a date"),
        (("--set", "no value"), 2, "is not KEY=VALUE"),
        (("--set", "a b=c"), 2, "is not KEY=VALUE"),
        (("--file", "x", "--subject", "y"), 2, "--file stands alone"),
        (("--file", "nowhere"), 1, "cannot be read"),
    ],
)
def test_what_cannot_be(stack: Stack, options: tuple[str, ...], code: int, why: str) -> None:
    before = stack.files()
    assert why in stack.call("edit", "two", *options, code=code).err
    assert stack.files() == before


# In an editor


def test_in_an_editor(stack: Stack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    editor(
        monkeypatch,
        tmp_path,
        "assert text.endswith('\\n\\nIts text.\\n'), text\n"
        "path.write_text(text.replace('Two', 'Zwei').replace('Its', 'Sein') + '\\n---\\n')\n",
    )
    stack.call("edit", "two")
    shown = stack.call("show", "two", "--json").json
    assert (shown["subject"], shown["body"]) == ("Zwei", "Sein text.\n\n---")
    assert drafts(stack) == []
    stack.judge(ONE | THREE | FIVE, FOUR)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("path.write_text('typed'); os.kill(os.getpid(), signal.SIGKILL)", "was killed (signal 9)"),
        ("path.write_text('typed'); sys.exit(3)", "ended with 3"),
        ("path.write_text('typed')", "is not a header field"),
        ("path.write_text(' \\n')", "is empty"),
        ("path.write_text(text.replace('Subject: Two', 'Subject:'))", "the subject is empty"),
        ("path.write_text(text.replace('Patchq-Name: two', ''))", "Patchq-Name is not changed"),
    ],
)
def test_what_was_typed_is_kept(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str, why: str
) -> None:
    before = stack.files()
    editor(monkeypatch, tmp_path, body)
    said = stack.call("edit", "two", code=1).err
    assert why in said
    path = stack.root / ".git/patchq/edit/two.txt"
    assert f"what you typed is in {path}" in said and path.is_file()
    assert stack.files() == before
    stack.call("edit", "two", code=1)
    assert drafts(stack) == ["two.2.txt", "two.txt"], "the first one is not written over"
    path.write_text("From: x <x@y>\nSubject: Mended\nPatchq-Name: two\n\nText.\n")
    stack.call("edit", "two", "--file", str(path))
    assert stack.call("show", "two", "--json").json["subject"] == "Mended"


def test_an_editor_that_leaves_nothing_new(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    editor(monkeypatch, tmp_path, "sys.exit(1)")
    assert "what you typed" not in stack.call("edit", "two", code=1).err
    editor(monkeypatch, tmp_path, "pass")
    assert "nothing was changed" in stack.call("edit", "two").out
    monkeypatch.setenv("EDITOR", "/nowhere/editor")
    assert "does not start" in stack.call("edit", "two", code=1).err
    assert drafts(stack) == []


def test_a_patch_that_changed_meanwhile(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = stack.root / "series/0002-two.patch"
    editor(
        monkeypatch,
        tmp_path,
        f"path.write_text(text.replace('Two', 'Zwei'))\nother = pathlib.Path({str(file)!r})\n"
        "other.write_text(other.read_text().replace('Two', 'Deux'))\n",
    )
    said = stack.call("edit", "two", code=1).err
    assert "0002-two.patch was changed meanwhile" in said and "two.txt" in said
    assert b"Subject: Deux" in file.read_bytes()


def test_another_patchq_works_while_the_editor_is_open(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing is locked by a person who thinks."""
    run = "import sys; from patchq.cli.main import main; sys.exit(main())"
    editor(
        monkeypatch,
        tmp_path,
        "import subprocess\npath.write_text(text.replace('Two', 'Zwei'))\n"
        f"subprocess.run([sys.executable, '-c', {run!r}, 'hold', 'four', '--why', 'x'],"
        f" cwd={str(stack.root)!r}, check=True, stdout=subprocess.DEVNULL)\n",
    )
    stack.call("edit", "two")
    assert stack.lines()[3] == "# held 0004-four.patch: x"
    assert stack.call("show", "two", "--json").json["subject"] == "Zwei"


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=40)


@given(texts, texts)
def test_what_is_shown_reads_back(subject: str, body: str) -> None:
    header = headers.make([("From", "A <a@b>"), ("Subject", subject)], body)
    assert edit.from_text(edit.as_text(header), "it") == header


def test_an_edit_of_nothing_is_the_header() -> None:
    header = Header((("Subject", "x"), ("Odd", "y")), "z")
    assert edit.edited(header, edit.Edits()) == header
    with pytest.raises(PatchqError, match="no field"):
        edit.edited(header, edit.Edits(unset=("Body",)))


# Renaming


def test_rename(stack: Stack) -> None:
    stack.call("rename", "two", "twelve")
    assert stack.lines()[1] == "0002-twelve.patch"
    assert not (stack.root / "series/0002-two.patch").exists()
    assert b"Patchq-Name: twelve\n" in (stack.root / "series/0002-twelve.patch").read_bytes()
    stack.judge(ONE | THREE | FIVE, FOUR)
    told = [event["what"] for event in stack.call("history", "twelve", "--json").json["events"]]
    assert told == ["import", "rename"], "the history goes on under its new name"
    stack.call("delete", "three", "--why", "x")
    stack.call("delete", "twelve", "--why", "x")
    told = [event["what"] for event in stack.call("history", "twelve", "--json").json["events"]]
    assert told[-2:] == ["delete", "dropped: deleted on v1"]


@pytest.mark.parametrize(
    ("new", "why"),
    [
        ("two", "it is called two already"),
        ("one", "there is or was a patch 'one'"),
        ("five", "there is or was a patch 'five'"),
        ("A B", "use lower-case letters, digits and dashes: a-b"),
        ("../x", "cannot be a patch's name"),
        ("", "cannot be a patch's name"),
    ],
)
def test_no_name(stack: Stack, new: str, why: str) -> None:
    stack.call("delete", "five", "--why", "its name stays taken")
    assert why in stack.call("rename", "two", new, code=1).err


# Numbers


def test_renumber(stack: Stack) -> None:
    """As after a merge of two branches that both made a second patch, and one that was dropped."""
    stack.call("delete", "five", "--why", "x")
    for old, new in (("0003-three", "0002-three"), ("0004-four", "0005-four")):
        (stack.root / f"series/{old}.patch").rename(stack.root / f"series/{new}.patch")
        series = stack.root / "series/series"
        series.write_text(series.read_text().replace(old, new))
    checks = stack.call("check", "--json", code=5).json["proof"]["checks"]
    (numbers,) = (check for check in checks if check["name"] == "numbers")
    assert numbers["detail"].startswith(
        "0002-three.patch and 0002-two.patch; 0005-four.patch and 0005-five.patch"
    )
    before = stack.files()
    done = stack.call("check", "--renumber", "--json").json
    assert done["renumbered"] == [
        ["0002-three.patch", "0006-three.patch"],
        ["0005-four.patch", "0007-four.patch"],
    ]
    assert stack.lines() == [
        f"{name}.patch" for name in ("0001-one", "0002-two", "0006-three", "0007-four")
    ]
    stack.judge(ONE | THREE, FOUR)
    assert stack.call("check", "--renumber", "--json").json["renumbered"] == []
    stack.call("undo")
    assert stack.files() == before
