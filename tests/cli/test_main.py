"""The entry point: exit codes, errors for people and machines, help, completion."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchq import __version__
from patchq.cli import main as module
from patchq.errors import DecisionNeeded, Incomplete, PatchqError, ProofFailed, UsageError
from tests.support.history import clean_env
from tests.support.inside import Said, Small, call

RUN = "import sys; from patchq.cli.main import main; sys.exit(main())"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    """For tests that change nothing. Made outside the seal: its cache goes with the module."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("filled")
        patch.setenv("PATCHQ_CACHE", str(folder / "cache"))
        yield Small(folder).filled()


@pytest.fixture
def small(filled: Small, monkeypatch: pytest.MonkeyPatch) -> Small:
    monkeypatch.setenv("PATCHQ_CACHE", str(filled.folder / "cache"))
    return filled


def raising(
    small: Small, monkeypatch: pytest.MonkeyPatch, error: BaseException, *more: str
) -> Said:
    """`patchq status`, with `error` from inside."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("patchq.carry.inspect.status", fail)
    return small.call("status", *more, code=None)


# Exit codes


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PatchqError("what is wrong", "what to do"), 1),
        (PatchqError("what is wrong", "what to do", exit_code=6), 6),
        (UsageError("what is wrong", "what to do"), 2),
        (DecisionNeeded("what is wrong", "what to do"), 4),
        (ProofFailed("what is wrong", "what to do"), 5),
        (Incomplete("what is wrong", "what to do"), 6),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error(
    small: Small, monkeypatch: pytest.MonkeyPatch, error: PatchqError, code: int
) -> None:
    said = raising(small, monkeypatch, error)
    assert (said.code, said.out) == (code, "")
    assert said.err == "patchq: what is wrong\n        what to do\n"
    said = raising(small, monkeypatch, error, "--json")
    assert (said.code, said.err) == (code, "")
    assert said.json == {
        "schema": "patchq.error/1",
        "message": "what is wrong",
        "hint": "what to do",
        "log": None,
    }


def test_an_error_without_a_hint_and_with_a_hostile_text(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = raising(small, monkeypatch, PatchqError("no \x1b[2J\u202e\udcff"))
    assert said.err == "patchq: no \\x1b[2J\\u202e\\udcff\n"


def test_our_bug(small: Small, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A log that can be pasted, named in one sentence."""
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "cache"))
    log = tmp_path / "cache/last-crash.log"
    said = raising(small, monkeypatch, ValueError("oh \x1b"))
    assert (said.code, said.out) == (3, "")
    assert said.err == (
        f"patchq: patchq has a bug: ValueError: oh \\x1b\n        please report it with {log}\n"
    )
    text = log.read_text()
    assert text.startswith(f"patchq {__version__}, Python {sys.version.split()[0]}, ")
    assert "arguments: ['status']" in text
    assert text.rstrip().endswith("ValueError: oh \x1b")
    said = raising(small, monkeypatch, ValueError("oh"), "--json")
    assert said.code == 3
    assert said.json["log"] == str(log)


def test_our_bug_where_nothing_can_be_written(
    small: Small, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "file"))
    said = raising(small, monkeypatch, ValueError("oh"))
    assert said.code == 3
    assert "Traceback" in said.err
    assert said.err.endswith("please report it with the text above\n")


def test_the_system_refuses(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    said = raising(small, monkeypatch, OSError(28, "No space left on device", "/some/file"))
    assert said.code == 1
    assert said.err.startswith("patchq: the system refused: No space left on device (/some/file)\n")


@pytest.mark.parametrize("error", [KeyboardInterrupt()])
def test_interrupted(small: Small, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    said = raising(small, monkeypatch, error)
    assert (said.code, said.out) == (130, "")
    assert said.err == "interrupted; nothing is half done\n"


@pytest.mark.parametrize(
    "args",
    [
        ["no-such-command"],
        ["sync", "--no-such-option"],
        ["show"],
        ["init", "x"],
        ["init", "x", "--base", "1"],
        ["init", "x", "--base", "1", "--git", "a", "--index", "b"],
        ["import"],
        ["import", "--git", "."],
        ["import", "--git", ".", "a", "b"],
        ["import", "--quilt", ".", "a"],
        ["import", "--quilt", ".", "--git", "."],
        ["decide", "stays", "perhaps", "--why", "x"],
        ["decide", "stays", "drop"],
        ["undo", "first"],
        ["export", "--git", "."],
    ],
    ids=" ".join,
)
def test_usage(small: Small, args: list[str]) -> None:
    said = small.call(*args, code=2)
    assert said.out == ""
    assert said.err.strip()
    assert "Traceback" not in said.err


def test_done_decision_and_proof(small: Small) -> None:
    assert small.call("sync", "--onto", "v2", "--dry-run", "--json").json["dry_run"] is True
    asked = small.call("sync", "--onto", "v3", "--json", code=4)
    assert asked.json["patches"][1]["action"] == "ask"
    assert asked.err == ""
    said = small.call("sync", "--onto", "v3", code=4)
    assert "1 patch needs your decision" in said.out
    assert "patchq decide stays drop" in said.out


def test_incomplete(tmp_path: Path) -> None:
    """A git URL that cannot be reached any more: what was fetched is used, and it is said."""
    small = Small(tmp_path)
    small.repository()
    url = small.upstream.path.as_uri()
    small.call("init", "demo", "--git", url, "--base", "v1")
    small.upstream.path.rename(tmp_path / "gone")
    said = small.call("sync", "--onto", "v2", "--json", code=6)
    assert said.json["upstream"]["complete"] is False
    assert said.json["recorded"] is True
    said = small.call("sync", "--onto", "v2", "--offline", code=None)
    assert said.code in (0, 6)


# Help


def test_help_lists_every_command(tmp_path: Path) -> None:
    said = call(tmp_path, "--help")
    for name, what in module.COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(what[:30])}", said.out, re.MULTILINE), name
    assert call(tmp_path, "-h").out == said.out
    assert call(tmp_path, code=2).err == said.out


@pytest.mark.parametrize("name", module.COMMANDS)
def test_every_command_has_an_example(tmp_path: Path, name: str) -> None:
    said = call(tmp_path, name, "--help")
    examples = re.findall(rf"^ +patchq {name}\b.*$", said.out, re.MULTILINE)
    assert examples
    assert f"Usage: patchq {name} [OPTIONS]" in said.out
    modules = Path(module.__file__).parent
    assert (modules / f"{module.MODULES.get(name, name)}.py").is_file()


def test_every_module_of_a_command_is_in_the_table() -> None:
    helpers = {
        "__init__",
        "complete",
        "evidence",
        "main",
        "options",
        "out",
        "peers",
        "pr_options",
        "rearrange",
        "release_publish",
        "worktree",
    }
    found = {path.stem for path in Path(module.__file__).parent.glob("*.py")} - helpers
    assert found == {module.MODULES.get(name, name) for name in module.COMMANDS}


def test_version(tmp_path: Path) -> None:
    assert call(tmp_path, "--version").out == f"patchq {__version__}\n"


# As a process


def run(small: Small, command: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    home = {"PATCHQ_CACHE": os.environ["PATCHQ_CACHE"], **env}
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}", "bash", sys.executable, RUN],
        cwd=small.root,
        env=clean_env(small.folder, **home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("what", ["series", "series --json", "show stays", "--help", "history"])
def test_a_reader_that_has_enough(small: Small, what: str) -> None:
    done = run(small, f'"$1" -c "$2" {what} | head -c 1')
    assert len(done.stdout) == 1
    assert done.stderr == b""


def test_a_closed_stdout(small: Small) -> None:
    done = run(small, '"$1" -c "$2" series > /dev/full')
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert b"No space left on device" in done.stderr


def test_no_color_in_a_pipe(small: Small) -> None:
    for env in ({}, {"NO_COLOR": "1", "FORCE_COLOR": "1", "TERM": "xterm"}):
        done = run(small, '"$1" -c "$2" show stays', **env)
        assert done.returncode == 0
        assert not re.search(rb"\x1b\[[0-9;]*3[0-7]", done.stdout)


def test_subjects_that_are_no_utf8(tmp_path: Path) -> None:
    """The terminal is strict: what it cannot show is escaped."""
    small = Small(tmp_path).filled()
    (path,) = small.root.glob("series/*-stays.patch")
    path.write_bytes(path.read_bytes().replace(b"Subject: Stays", b"Subject: St\xe4ys \xf0"))
    for what in ("series", "show stays", "sync --onto v2 --dry-run"):
        done = run(small, f'"$1" -c "$2" {what}', PYTHONIOENCODING="utf-8:strict")
        assert done.returncode == 0, done.stderr
    assert rb"St\udce4ys" in run(small, '"$1" -c "$2" series').stdout


def test_foreign_git_variables_point_nowhere(
    small: Small, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in module.FOREIGN:
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    small.call("status")
    assert not set(module.FOREIGN) & set(os.environ)


# Completion


def complete(small: Small, words: str, **env: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'patchq'; " + RUN],
        cwd=small.root,
        env=clean_env(
            small.folder,
            _PATCHQ_COMPLETE="complete_bash",
            COMP_WORDS=words,
            COMP_CWORD=str(len(words.split(" ")) - 1),
            **env,
        ),
        capture_output=True,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr
    return done.stdout.decode().split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("patchq show ", ["lands", "stays"]),
        ("patchq show st", ["stays"]),
        ("patchq show x", []),
        ("patchq history l", ["lands"]),
        ("patchq decide s", ["stays"]),
        ("patchq sync --queue ", ["demo"]),
        ("patchq st", ["status"]),
        ("patchq sync --on", ["--onto"]),
        ("patchq decide stays ", ["keep", "drop"]),
        ("patchq build --target c", ["cuda-x86_64", "cpu"]),
    ],
)
def test_completion(small: Small, words: str, offered: list[str]) -> None:
    assert complete(small, words) == offered


def test_completion_outside_of_a_queue(tmp_path: Path) -> None:
    small = Small(tmp_path)
    small.root.mkdir()
    assert complete(small, "patchq show ") == []
    assert complete(small, "patchq sync --queue ") == []


def test_completion_of_a_broken_queue(tmp_path: Path) -> None:
    small = Small(tmp_path).filled()
    (small.root / "series/series").write_text("no-such.patch\n")
    assert complete(small, "patchq show ") == []
    (small.root / "upstream/demo.toml").write_bytes(b"\xff")
    assert complete(small, "patchq show ") == []


def test_the_error_object_is_one_line_of_json_for_any_text(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = raising(small, monkeypatch, PatchqError("\x1b\udcff", "x"), "--json")
    assert json.loads(said.out)["message"] == "\x1b\udcff"
