"""A bisection as it runs: what statuses mean, what is kept, what is built, and how it goes on."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from patchq.bisect import session as sessions
from patchq.bisect import trial
from patchq.bisect.assemble import Unbuildable
from patchq.bisect.bench import Local, Ready, Skipped
from patchq.bisect.model import Move
from patchq.bisect.moves import between
from patchq.bisect.run import Report, attempt, search, words_of
from patchq.bisect.session import Asked, Session, Trial
from patchq.bisect.trial import Outcome, bounded, outcome, words
from patchq.config import find_project
from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress
from tests.bisect.toys import Toy
from tests.support.cli import program

MOVES = tuple(Move(name, "patch", f"{name} is new") for name in "abcdefgh")
ASKED = Asked("show it", "1" * 40, "2" * 40, known=True)


@dataclass
class Stage:
    """A bench of the imagination: `shows` says how a run ends."""

    shows: Callable[[frozenset[str], int], Outcome]
    breaks: Callable[[frozenset[str]], bool] = lambda _: False
    log: list[str] = field(default_factory=list)
    left: int = 0

    def clear(self) -> None:
        return None

    @contextmanager
    def ready(self, moves: frozenset[str], progress: Progress = SILENT) -> Iterator[Ready]:
        name = "".join(sorted(moves))
        if self.breaks(moves):
            raise Skipped("it does not start", built=True)
        runs = 0

        def once() -> Outcome:
            nonlocal runs
            runs += 1
            self.log.append(name)
            return self.shows(moves, runs)

        try:
            yield Ready(f"tree {name}", f"lock {name}", once)
        finally:
            self.left += 1


def bad_with(name: str) -> Callable[[frozenset[str], int], Outcome]:
    return lambda moves, _: "bad" if name in moves else "good"


def ran(folder: Path, stage: Stage, asked: Asked = ASKED) -> Report:
    folder.mkdir(exist_ok=True)
    return search(folder, sessions.load(folder) or Session(asked, MOVES), stage)


# The loop


def test_it_is_found_and_all_is_told(tmp_path: Path) -> None:
    report = ran(tmp_path, stage := Stage(bad_with("f")))
    assert report.culprit == MOVES[5] and report.confidence == 1
    assert (report.builds, report.runs, report.skipped, report.session.rounds) == (3, 3, 0, 3)
    assert stage.left == 3, "each was put away"
    assert sessions.load(tmp_path) == report.session
    assert report.exit_code == 0


def test_the_ends_are_checked_and_counted_apart(tmp_path: Path) -> None:
    report = ran(tmp_path, stage := Stage(bad_with("f")), replace(ASKED, known=False))
    assert stage.log[:2] == ["abcdefgh", ""]
    assert (report.builds, report.runs) == (3, 3)


def test_what_does_not_start_is_skipped_and_counts_as_built(tmp_path: Path) -> None:
    """Without d, neither e nor f starts; nobody has said so."""
    breaks = lambda moves: bool(moves & {"e", "f"}) and "d" not in moves  # noqa: E731
    report = ran(tmp_path, Stage(bad_with("e"), breaks))
    assert report.culprit == MOVES[4]


def test_cannot_tell(tmp_path: Path) -> None:
    """c and d start only together."""
    breaks = lambda moves: ("c" in moves) != ("d" in moves)  # noqa: E731
    report = ran(tmp_path, Stage(bad_with("c"), breaks))
    assert report.culprit is None and report.exit_code == 4
    assert {move.name for move, _ in report.suspects} == {"c", "d"}
    assert report.skipped > 0 and report.confidence == pytest.approx(0.5)


def test_the_command_that_cannot_say_is_asked_no_more(tmp_path: Path) -> None:
    def shows(moves: frozenset[str], _: int) -> Outcome:
        return "skip" if len(moves) == 4 else bad_with("f")(moves, 0)

    report = ran(tmp_path, stage := Stage(shows), replace(ASKED, repeat=20))
    assert report.culprit == MOVES[5]
    assert all(stage.log.count(each) == 1 for each in stage.log if len(each) == 4)


def test_runs_that_do_not_end_say_nothing(tmp_path: Path) -> None:
    """One in a subset is run again; three, and the subset is skipped."""

    def shows(moves: frozenset[str], runs: int) -> Outcome:
        return "late" if len(moves) == 4 or runs == 1 else bad_with("f")(moves, 0)

    report = ran(tmp_path, Stage(shows), replace(ASKED, minutes=0.5))
    assert report.culprit == MOVES[5]
    late = [each for each in report.session.trials if each.late == 3]
    assert late and {each.skipped for each in late} == {"3 runs did not end within 0.5 minutes"}
    assert {each.late for each in report.session.trials if each.skipped is None} == {1}


def test_a_run_that_breaks_off_keeps_all_before(tmp_path: Path) -> None:
    calls = 0

    def shows(moves: frozenset[str], runs: int) -> Outcome:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise KeyboardInterrupt
        return bad_with("f")(moves, runs)

    asked = replace(ASKED, repeat=20)
    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path, stage := Stage(shows), asked)
    assert stage.left == 1, "what ran was put away"
    kept = sessions.load(tmp_path)
    assert kept is not None and [each.good for each in kept.trials] == [5]
    report = ran(tmp_path, stage, asked)
    assert report.culprit == MOVES[5]
    assert report.runs == len(stage.log) - 1, "no run is lost, but the one that was cut"


def test_a_run_ends_when_it_is_clear(tmp_path: Path) -> None:
    session = Session(replace(ASKED, repeat=50), MOVES)
    moves = frozenset("abcd")
    done = attempt(session, moves, Stage(bad_with("a")), lambda _: None)
    assert (done.bad, done.good, done.tree, done.built) == (1, 0, "tree abcd", True)
    done = attempt(session, moves, Stage(bad_with("f")), lambda _: None)
    assert done.bad == 0 and 8 <= done.good < 50


def test_the_options_that_ask_the_same() -> None:
    asked = Asked("a 'b c'", "1" * 40, "2" * 40, "q", 5, skip_codes=(3, 4), known=True, minutes=1.5)
    assert shlex.join(words_of(asked)) == (
        f"--between {'1' * 12} {'2' * 12} --run 'a '\"'\"'b c'\"'\"'' --queue q --repeat 5"
        " --minutes 1.5 --skip-code 3 --skip-code 4 --known"
    )


# What a status means


@pytest.mark.parametrize(
    ("code", "means"),
    [(0, "good"), (1, "bad"), (124, "bad"), (125, "skip"), (127, "bad"), (None, "late")],
)
def test_statuses(code: int | None, means: Outcome) -> None:
    assert outcome(code, ASKED) == means


def test_statuses_that_were_chosen() -> None:
    asked = replace(ASKED, skip_codes=(6, 77), hang_is_bad=True)
    assert [outcome(code, asked) for code in (6, 77, 125, None)] == ["skip", "skip", "bad", "bad"]


@pytest.mark.parametrize(
    ("code", "says"), [(128, "gave status 128"), (255, "gave status 255"), (-11, "by signal 11")]
)
def test_statuses_that_stop_it(code: int, says: str) -> None:
    with pytest.raises(PatchqError, match=says):
        outcome(code, ASKED)


@pytest.mark.parametrize(
    ("command", "says"),
    [("'", "cannot be read"), (" ", "is empty"), ("no-such-program-here x", "there is no program")],
)
def test_commands_that_are_none(command: str, says: str) -> None:
    with pytest.raises(PatchqError, match=says):
        words(command)


def test_no_shell_but_our_own_names() -> None:
    env = {"PATCHQ_URL": "http://a:1/;x"}
    told = [trial.filled(word, env) for word in words("echo $PATCHQ_URL --url=$PATCHQ_URL '$HOME'")]
    assert told == ["echo", env["PATCHQ_URL"], f"--url={env['PATCHQ_URL']}", "$HOME"]
    script = "curl $PATCHQ_URL; echo $$"
    assert trial.filled(script, env) == script, "a shell's text is the shell's"
    assert trial.filled("${PATCHQ_URL}", env) == env["PATCHQ_URL"]
    assert trial.filled("$PATCHQ_NONE", env) == ""


def test_patchq_is_this_one(tmp_path: Path) -> None:
    """A project may hold a package of that name: it is not what runs."""
    for name in ("patchq", "patchq/cli"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit(9)")
    log = tmp_path / "log"
    assert bounded(words("patchq --version"), tmp_path, os.environ, log, 60) == 0
    assert log.read_text().startswith("patchq ")


# Programs


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_streams_and_status(tmp_path: Path) -> None:
    text = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    log, out = tmp_path / "log", tmp_path / "out"
    assert bounded(python(text), tmp_path, os.environ, log, 60, out=out) == 3
    assert (log.read_text(), out.read_text()) == ("err\n", "out\n")
    assert bounded(python(text), tmp_path, os.environ, log, 60) == 3
    assert sorted(log.read_text().split()) == ["err", "out"]


def test_what_does_not_end_is_ended_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "GRACE", 0.3)
    child = "import signal, time; signal.signal(2, signal.SIG_IGN); time.sleep(60)"
    text = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)"
    )
    log = tmp_path / "log"
    assert bounded(python(text), tmp_path, os.environ, log, 1.5) is None
    pid = int(log.read_text().split()[0])
    until = time.monotonic() + 5
    while running(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not running(pid)


def running(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def test_a_program_that_cannot_be_run(tmp_path: Path) -> None:
    with pytest.raises(PatchqError, match="cannot be run"):
        bounded([str(tmp_path)], tmp_path, os.environ, tmp_path / "log", 5)


# What patchq's own commands say of a subset


@pytest.mark.parametrize(
    ("name", "code", "said", "why"),
    [
        ("build", 1, {"message": "nvcc says no"}, "`patchq build`: nvcc says no"),
        ("build", 5, {"message": "no proof"}, "`patchq build`: no proof"),
        (
            "start",
            6,
            {"failure": {"says": "rank 1 ended", "lines": ["KeyError: 'w1'"]}},
            "it does not start: rank 1 ended",
        ),
    ],
    ids=["build", "proof", "start"],
)
def test_a_subset_at_fault_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int, said: object, why: str
) -> None:
    local = Local(None, None, ASKED, tmp_path)  # type: ignore[arg-type]
    monkeypatch.setattr(Local, "_patchq", lambda *_: (code, said))
    with pytest.raises(Skipped, match=why) as caught:
        local._command("step", tmp_path, name, [name], built=name != "build")
    assert caught.value.built == (name == "start")


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("build", 6, {"message": "no network"}),
        ("deploy", 1, {"message": "in use"}),
        ("deploy", 6, {"message": "not reached"}),
        ("start", 6, {"failure": {"says": "node two does not answer", "lines": []}}),
        ("start", 3, {}),
    ],
    ids=str,
)
def test_what_is_not_its_fault_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int, said: object
) -> None:
    local = Local(None, None, ASKED, tmp_path)  # type: ignore[arg-type]
    monkeypatch.setattr(Local, "_patchq", lambda *_: (code, said))
    with pytest.raises(PatchqError, match="of step s failed") as caught:
        local._command("s", tmp_path, name, [name])
    assert caught.value.exit_code == (1 if code == 1 else 6)


# What is made for the command


@dataclass
class Commands:
    """In the place of patchq's own commands: what was asked, and what they say."""

    says: dict[str, tuple[int, dict[str, object]]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def __call__(
        self, _local: object, _step: str, folder: Path, name: str, args: list[str]
    ) -> tuple[int, dict[str, object]]:
        assert (folder / "series").is_dir()
        self.log.append(" ".join(args))
        return self.says.get(name, (0, {"url": "http://10.0.0.1:8888"}))


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    found = Commands()

    def said(*args: Any) -> tuple[int, dict[str, object]]:
        return found(*args)

    monkeypatch.setattr(Local, "_patchq", said)
    return found


def served(toy: Toy, run: str) -> tuple[Local, Path]:
    """A bench that serves each subset on the cluster `two`; where what is run writes."""
    (toy.root / "ci/clusters").mkdir(parents=True)
    (toy.root / "ci/clusters/two.toml").write_text("# where it runs\n")
    found = between(toy.root, "before", "after")
    asked = Asked(run, found.a.commit, found.b.commit, cluster="two", profile="small", target="cpu")
    return Local(find_project(toy.root), found, asked, toy.folder / "state"), toy.log


TELLS = """
import os, pathlib, sys
pathlib.Path(sys.argv[1]).write_text("\\n".join([sys.argv[2], os.environ["PATCHQ_BUILD"], os.getcwd()]))
assert pathlib.Path("ci/clusters/two.toml").is_file()
"""


def test_built_deployed_started_run_and_stopped(tmp_path: Path, commands: Commands) -> None:
    toy = Toy(tmp_path, 2)
    run = shlex.join([sys.executable, "-c", TELLS, str(toy.log)]) + " --url=$PATCHQ_URL"
    local, log = served(toy, run)
    with local.ready(frozenset({"change-0"})) as ready:
        assert ready.once() == "good"
    assert commands.log == [
        "build --target cpu",
        "cluster deploy two",
        "cluster start two --profile small",
        "cluster stop two",
    ]
    url, build, folder = log.read_text().splitlines()
    assert url == "--url=http://10.0.0.1:8888"
    assert build == f"{folder}/build/cpu"


def test_a_start_that_fails_is_stopped_too(tmp_path: Path, commands: Commands) -> None:
    toy = Toy(tmp_path, 2)
    commands.says["start"] = (6, {"failure": {"says": "rank 0 ended", "lines": ["KeyError"]}})
    local, _ = served(toy, "true")
    with pytest.raises(Skipped, match="rank 0 ended"), local.ready(frozenset({"change-0"})):
        pass
    assert commands.log[-1] == "cluster stop two"
    commands.says["deploy"] = (6, {"message": "two is not reached"})
    with pytest.raises(PatchqError, match="not reached"), local.ready(frozenset({"change-0"})):
        pass
    assert commands.log[-2:] == ["cluster deploy two", "cluster stop two"]


def test_what_was_left_running_is_stopped_first(tmp_path: Path, commands: Commands) -> None:
    """A stop that did not reach its nodes, or a kill: the next step begins with one."""
    local, _ = served(Toy(tmp_path, 2), "true")
    commands.says["stop"] = (6, {})
    with local.ready(frozenset({"change-0"})):
        pass
    del commands.says["stop"]
    for first in ("cluster stop two", "cluster deploy two"):
        commands.log.clear()
        with local.ready(frozenset({"change-0"})):
            pass
        assert commands.log[1] == first


def test_what_cannot_be_put_together_costs_no_build(
    tmp_path: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    def assemble(*_args: object, **_more: object) -> None:
        raise Unbuildable("change-1 does not go on v1")

    monkeypatch.setattr("patchq.bisect.bench.assemble", assemble)
    local, _ = served(Toy(tmp_path, 2), "true")
    session = Session(local.asked, local.between.moves)
    done = attempt(session, frozenset({"change-0"}), local, lambda _: None)
    assert (done.skipped, done.built) == ("change-1 does not go on v1", False)
    assert commands.log == []


# A real queue


def test_a_real_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight patches, 3 needs 1: the third brings it. Each runner is another one, with its source."""
    toy = Toy(tmp_path, 8, {3: 1})
    monkeypatch.setenv("GITHUB_TOKEN", "not for the command")
    found = toy.bisect(*toy.asks(1, 2), "--json").json
    assert found["culprit"]["name"] == "change-2", found
    assert found["ends"] == {"builds": 2, "runs": 2} and found["builds"] <= 4
    trees = {line.split()[1] for line in toy.log.read_text().splitlines()}
    assert len(trees) == len(toy.runs) == found["runs"] + 2
    assert (Path(found["folder"]) / "logs").is_dir()
    assert not list((toy.root / "build/bisect").iterdir()), "what was made is gone"


def test_killed_it_goes_on(tmp_path: Path) -> None:
    """SIGKILL while the second run is under way: nothing that was seen is run again."""
    toy = Toy(tmp_path, 8)
    script = tmp_path / "slow.py"
    script.write_text(
        "import pathlib, runpy, sys, time\n"
        f"log = pathlib.Path({str(toy.log)!r})\n"
        "first = not log.exists() or len(log.read_text().splitlines()) != 1\n"
        f"gate = pathlib.Path({str(tmp_path / 'gate')!r})\n"
        "if not first and not gate.exists():\n"
        "    gate.touch()\n"
        "    time.sleep(60)\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    shows = shlex.split(toy.shows(5))
    command = shlex.join([shows[0], str(script), *shows[1:]])
    asks = ["--run", command, "--between", "before", "after", "--source", "--known"]
    process = toy.start(*asks)
    until = time.monotonic() + 60
    while not (tmp_path / "gate").exists() and time.monotonic() < until:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert len(toy.runs) == 1
    found = toy.bisect(*asks, "--json").json
    assert found["culprit"]["name"] == "change-5"
    assert (found["builds"], found["runs"]) == (3, 3)
    assert len(toy.runs) == len(set(toy.runs)) == 3
    assert toy.bisect("--json").json["culprit"] == found["culprit"], (
        "what is known is not run again"
    )
    assert len(toy.runs) == 3


def test_patchq_works_on_the_subset(tmp_path: Path) -> None:
    """Not on the project around it, wherever the session is kept."""
    toy = Toy(tmp_path, 3)
    run = f"sh -c '! {program()} series | grep change-1'"
    ends = ("--between", "before", "after")
    for more in (("--known",), ("--known", "--state", str(tmp_path / "state"))):
        said = toy.bisect("--run", run, *ends, *more, "--json").json
        assert said["culprit"]["name"] == "change-1"


def test_partners_of_a_real_queue(tmp_path: Path) -> None:
    toy = Toy(tmp_path, 5)
    said = toy.bisect(*toy.asks(1, 3), "--known", "--minimal")
    assert said.out.startswith("it is change-3 (patch): ")
    assert "only together with change-1 (patch): " in said.out


def test_trials_of_the_same_runner_are_made_once(tmp_path: Path) -> None:
    """`made` knows what is there by its lock."""
    toy = Toy(tmp_path, 4)
    named = toy.bisect(*toy.asks(2), "--known", "--next", "1", "--json").json
    (step,) = named["steps"]
    first = toy.bisect("--try", step["step"], "--json").json
    work = toy.root / "build/bisect" / Path(named["folder"]).name
    made = work / "made" / f"{step['step']}.json"
    before = made.stat().st_mtime_ns
    second = toy.bisect("--try", step["step"], "--json").json
    assert made.stat().st_mtime_ns == before
    assert first["after"] == second["after"] and len(toy.runs) == 2


def test_a_trial_is_what_the_file_says(tmp_path: Path) -> None:
    toy = Toy(tmp_path, 4)
    named = toy.bisect(*toy.asks(2), "--known", "--next", "1", "--json").json
    step = named["steps"][0]["step"]
    told = toy.bisect("--try", step, "--json").json
    folder = Path(named["folder"])
    session = sessions.load(folder)
    assert session is not None and session.trial(session.subset(step)) == Trial(
        session.subset(step)
    )
    taken = sessions.take(Path(told["file"]), session)
    assert (taken.after.bad, taken.after.good) == (told["after"]["bad"], told["after"]["good"])
