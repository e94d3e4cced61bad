"""The replay itself, on a mirror of a few pull requests: what is true, and who sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import judged, replay_truth
from tests.bench.measure import hermetic
from tests.bench.replay import odd, table
from tests.bench.replay_build import Builder, Item, Replay
from tests.bench.replay_ways import WAYS, Found, score
from tests.support.history import History, git, lines

TEXT = lines(range(1, 81))


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Replay:
    """#1 lands as it is, #2 with a tweak, #3 not, #4 later, #5 is reverted, #6 lands as #7."""
    folder = tmp_path_factory.mktemp("replay")
    up = History(folder / "mirror.git")
    up.commit("Start").write("a.py", TEXT).write("b.py", TEXT).write("c.py", TEXT).tag("v1")
    for number, (name, at) in enumerate(
        [("a.py", 5), ("a.py", 40), ("b.py", 5), ("b.py", 40), ("c.py", 5), ("c.py", 40)], 1
    ):
        up.branch(f"pr{number}", at="v1").commit(f"Change {number}").edit(name, *new(at, number))
    main = up.branch("main", at="v1")
    main.commit("Change 1 (#1)").edit("a.py", *new(5, 1))
    main.commit("Change 2 (#2)").edit("a.py", *new(40, 2, tweak=True))
    main.commit("Change 5 (#5)").edit("c.py", *new(5, 5))
    main.commit('Revert "Change 5 (#5)" (#8)').edit("c.py", *reversed(new(5, 5)))
    main.commit("Change 6, by another (#7)").edit("c.py", *new(40, 6)).tag("v2")
    main.commit("Change 4 (#4)").edit("b.py", *new(40, 4))
    up.save()
    for number in range(1, 7):
        git(up.path, "update-ref", f"refs/pull/{number}/head", f"refs/heads/pr{number}")
    return Builder(up.path, "v1", "v2", folder / "work", hermetic(folder / "home")).build(60)


def new(at: int, number: int, *, tweak: bool = False) -> tuple[bytes, bytes]:
    """An edit of line `at`: the old text and the new one."""
    added = b"".join(b"    step_%d_of_%d()\n" % (n, number) for n in range(8))
    return b"line %d\n" % at, b"line %d\n" % at + (
        added.replace(b"step_4", b"leap_4") if tweak else added
    )


def test_the_truth(replay: Replay) -> None:
    assert {item.name: item.kind for item in replay.items} == {
        "p2": "changed in review",
        "p1-p3": "bundled",
        "p4": "landed later",
        "p5": "reverted",
        "p6": "other number",
    }


def test_what_no_number_tells(tmp_path: Path) -> None:
    """By its lines #1 landed, #2 was taken out again, #3 came in half; v1 has #4 already."""
    up = History(tmp_path / "mirror.git")
    up.commit("Start").write("a.py", TEXT).write("b.py", TEXT).tag("v0")
    up.commit("Change 4, picked").edit("b.py", *new(40, 4))
    up.commit("Move it").edit("b.py", *reversed(new(40, 4))).edit("b.py", *new(70, 4)).tag("v1")
    for number, (name, at) in enumerate([("a.py", 5), ("a.py", 40), ("b.py", 5)], 1):
        up.branch(f"pr{number}", at="v1").commit("Change").edit(name, *new(at, number))
    up.branch("pr4", at="v0").commit("Change").edit("b.py", *new(40, 4))
    main = up.branch("main", at="v1")
    whole = main.commit("Many things").edit("a.py", *new(5, 1)).edit("a.py", b"line 4\n", b"4\n")
    whole.edit("b.py", b"line 5\n", new(5, 3)[1][:90])
    main.commit("Change 2, by another").edit("a.py", *new(40, 2))
    gone = main.commit("Tidy").edit("a.py", *reversed(new(40, 2)))
    gone.edit("b.py", b"line 9\n", b"9\n").tag("v2")
    up.save()
    for number in range(1, 5):
        git(up.path, "update-ref", f"refs/pull/{number}/head", f"refs/heads/pr{number}")

    found = Builder(up.path, "v1", "v2", tmp_path / "work", hermetic(tmp_path / "home")).build(60)

    assert {item.name: item.kind for item in found.items} == {
        "p1": "other number",
        "p2": "reverted",
        "p3": "never landed",
    }


MINE = b"diff --git a/x b/x\n@@ -1 +1 @@\n-was here\n+is here  \n"
BACK = b"diff --git a/x b/x\n@@ -1,2 +1,3 @@\n-is here\n-other\n+was here\n"


@pytest.mark.parametrize(
    ("log", "truth"),
    [
        ([], None),
        ([MINE], True),
        ([MINE.replace(b"-was", b"-less\n-was")], True),
        ([MINE, BACK], False),
        ([MINE, BACK, MINE], True),
        ([MINE.replace(b"x", b"y")], None),
        ([MINE.replace(b"is", b"was")], None),
        ([MINE.replace(b"-was here", b"")], None),
    ],
    ids=["no", "made", "and more", "back", "again", "elsewhere", "otherwise", "in half"],
)
def test_what_lines_tell(log: list[bytes], truth: bool | None) -> None:
    assert replay_truth.stands(replay_truth.lines(MINE), log) is truth


def test_a_note_that_goes_is_not_taken_back() -> None:
    come = b"diff --git a/x b/x\nnew file mode 100644\n@@ -0,0 +1 @@\n+It is here.\n"
    went = b"diff --git a/x b/x\ndeleted file mode 100644\n@@ -1 +0,0 @@\n-It is here.\n"
    assert replay_truth.stands(replay_truth.lines(come), [come, went]) is True


@pytest.mark.parametrize("diff", [b"", MINE.replace(b" here", b""), MINE.partition(b"@@")[0]])
def test_what_lines_do_not_tell(diff: bytes) -> None:
    assert replay_truth.stands(replay_truth.lines(diff), [diff]) is None


@pytest.mark.parametrize("name", ["carry", "judged", "replay", "scale", "work"])
def test_run_as_a_file(name: str) -> None:
    """By its path, as the documentation has it: the folder it lies in is not searched."""
    done = subprocess.run([sys.executable, Path(__file__).with_name(f"{name}.py"), "--help"])
    assert done.returncode == 0


@pytest.mark.parametrize("way", ["numbers", "plain"])
def test_ours(replay: Replay, way: str, tmp_path: Path) -> None:
    found = WAYS[way][1](replay, tmp_path, hermetic(tmp_path / "home"))

    assert (found.dropped, found.stopped, found.shrunk) == ({"p2", "p6"}, set(), {"p1-p3"})


def test_what_the_judgement_costs(
    replay: Replay,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    WAYS["plain"][1](replay, tmp_path, hermetic(tmp_path / "home"))
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "cache-series"))
    project = str(tmp_path / "queue-series")
    monkeypatch.setattr("sys.argv", ["judged.py", project, "v2", "--most", "4", "--rounds", "1"])

    assert judged.main() == 0

    said = capsys.readouterr().out
    assert said.startswith("4 patches, 5 commits, 0 stops;")
    assert all(f"| {step} | " in said for step in judged.STEPS)


def test_a_peer(replay: Replay, tmp_path: Path) -> None:
    found = WAYS["rebase"][1](replay, tmp_path, hermetic(tmp_path / "home"))

    # The patch id of a commit that was reverted drops the patch, the tweak stops it.
    assert found.dropped == {"p5", "p6"}
    assert found.stopped == {"p2"}


def test_the_table() -> None:
    items = [
        Item("p1", "as carried", (1,), ("a",), "1"),
        Item("p2", "changed in review", (2,), ("b",), "2"),
        Item("p3", "reverted", (3,), ("c",), "3"),
        Item("p4", "never landed", (4,), ("d",), "4"),
    ]
    found = Found(dropped={"p1", "p3"}, stopped={"p4"})
    told = score(items, found)
    assert (told.landed, told.recognised, told.stale, told.lost) == (2, 1, ("p2",), ())
    assert (told.reverted_lost, told.stops, told.stops_on_landed) == (1, 1, 0)
    text = table([items], [{"plain": found}])
    assert "| 1/2 | 1/1 | 0/1 | 0 | 1/1 | 1 | 0 | 1 | 0.0 |" in text
    replay = Replay(Path(), Path(), "v1", "v2", items)
    assert odd([(replay, {"plain": found})]) == "v1..v2 plain: stale: p2 ()"
