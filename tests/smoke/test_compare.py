"""Comparisons of servers over real HTTP, of saved files, and of a real server's recorded times."""

from __future__ import annotations

import io
import json
import math
import random
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from patchq.cluster.profile import Profile
from patchq.errors import Incomplete, PatchqError, UsageError
from patchq.render.bench import compared
from patchq.smoke import kept
from patchq.smoke.bench import Bench, Plan, Side, Visit, order
from patchq.smoke.compare import compare
from patchq.smoke.load import Cell, Taken
from patchq.smoke.model import About
from patchq.smoke.sides import Asked, gathered, margins_of
from tests.bench.compare import BUSY, World, verdicts
from tests.smoke.fake import serving
from tests.smoke.paced import Paced
from tests.support.cli import program

CELLS = (Cell("structured", 64, 1), Cell("prose", 64, 1))


def made(rounds: int = 12, slower: float = 1.0, drift: float = 0.0, run: str = "r") -> Bench:
    """Two sides in turns on a machine whose times grow by `drift` a turn; B takes `slower` times."""
    visits = []
    now = 0
    for number in range(rounds):
        for cell in CELLS:
            for side, turn in order(2, number):
                now += 1
                wall = (1 + drift * now) * (slower if side else 1.0) * (1 + 0.01 * math.sin(now))
                taken = Taken(float(now), 10 / wall, 0.1 * wall, wall, 64, 4, 0)
                visits.append(Visit(side, number, turn, cell, (taken,)))
    sides = tuple(Side(label, About("http://u", "tiny", 4096)) for label in "AB")
    return Bench(run, Plan((64,), (1,), 4, rounds), sides, tuple(visits))


def alone(bench: Bench, side: int, run: str) -> Bench:
    """One side of it, as if measured on a day of its own."""
    visits = tuple(replace(v, side=0) for v in bench.visits if v.side == side)
    return replace(bench, run=run, sides=(bench.sides[side],), visits=visits)


@pytest.mark.parametrize(
    ("slower", "verdict", "code"), [(1.0, "same", 0), (1.08, "worse", 5), (0.9, "better", 0)]
)
def test_the_verdict_of_all_metrics(slower: float, verdict: str, code: int) -> None:
    bench = made(slower=slower)
    found = compare((bench, 0), (bench, 1))
    assert {(each.cell, each.metric) for each in found.findings} == {
        (cell, metric) for cell in CELLS for metric in ("decode", "ttft", "wall")
    }
    assert {each.verdict for each in found.findings} == {verdict}
    assert (found.verdict, found.exit_code, found.interleaved) == (verdict, code, True)


def test_turns_take_a_drift_out_that_two_days_do_not() -> None:
    bench = made(drift=0.02)
    assert compare((bench, 0), (bench, 1)).verdict == "same"
    two = compare((alone(bench, 0, "one"), 0), (alone(bench, 1, "two"), 0))
    assert (two.verdict, two.interleaved) == ("inconclusive", False)
    assert two.exit_code == Incomplete.exit_code


def test_what_is_too_small_for_one_cell_is_found_in_all_together() -> None:
    """Cells whose noise is their own: together they are quieter than each alone."""
    chance = random.Random(4)
    bench = made(rounds=12)
    cells = [Cell("prose", size, 1) for size in range(64, 84)]
    visits = [
        replace(visit, cell=cell, taken=(shaken(visit.taken[0], visit.side * 0.035, chance),))
        for cell in cells
        for visit in bench.visits
        if visit.cell.kind == "prose"
    ]
    many = replace(bench, visits=tuple(visits))
    found = compare((many, 0), (many, 1))
    assert "worse" not in {each.verdict for each in found.findings if each.metric == "wall"}
    (wall,) = (each for each in found.totals if each.metric == "wall")
    assert (wall.verdict, found.verdict) == ("worse", "worse")
    assert wall.effect.ratio == pytest.approx(1 / 1.035, abs=0.01)


def with_walls(noise: float, *slower: float) -> Bench:
    """A cell for each of `slower`: B's wall time by that much longer, beside noise of its own."""
    chance = random.Random(4)
    visits = []
    for number, by in enumerate(slower):
        for visit in made(rounds=24).visits:
            if visit.cell.kind == "prose":
                (taken,) = visit.taken
                assert taken.wall
                walls = taken.wall * (1 + by * visit.side) * math.exp(chance.gauss(0, noise))
                cell = Cell("prose", 64 + number, 1)
                visits.append(replace(visit, cell=cell, taken=(replace(taken, wall=walls),)))
    return replace(made(rounds=24), visits=tuple(visits))


def test_the_wall_time_of_all_together_says_the_same_for_cells_that_are_too_noisy() -> None:
    bench = with_walls(0.08, *[0.0] * 16)
    found = compare((bench, 0), (bench, 1))
    walls = [each for each in found.findings if each.metric == "wall"]
    assert "inconclusive" in {each.verdict for each in walls}
    assert (found.verdict, found.doubts, found.exit_code) == ("same", (), 0)
    (total,) = (each for each in found.totals if each.metric == "wall")
    assert (total.verdict, total.margin) == ("same", pytest.approx(0.95))


def test_the_margin_of_all_together_is_the_mean_of_the_cells() -> None:
    bench = made()
    totals = compare((bench, 0), (bench, 1)).totals
    assert [each.margin for each in totals] == [pytest.approx(math.sqrt(0.97 * 0.95))] * 3


def test_one_cell_that_seems_slower_by_twice_the_margin_keeps_all_from_being_the_same() -> None:
    bench = with_walls(0.2, 0.2, *[0.0] * 40)
    found = compare((bench, 0), (bench, 1))
    first = next(each for each in found.findings if each.metric == "wall")
    assert first.verdict == "inconclusive" and first.effect.ratio < 0.95**2
    (doubt,) = found.doubts
    assert doubt.startswith("prose 64 x1 cold wall seems slower by 1")
    assert found.verdict == "inconclusive"


def test_where_all_together_is_too_noisy_it_says_so() -> None:
    bench = with_walls(0.3, 0.0, 0.0)
    found = compare((bench, 0), (bench, 1))
    assert found.verdict == "inconclusive"
    assert found.doubts[0].startswith("all together wall: ")


def test_a_cell_alone_is_all_there_is() -> None:
    bench = made()
    prose = replace(bench, visits=tuple(v for v in bench.visits if v.cell.kind == "prose"))
    found = compare((prose, 0), (prose, 1))
    assert (found.totals, found.verdict) == ((), "same")
    few = compare((bench := made(rounds=2), 0), (bench, 1))
    assert few.doubts == ("all together wall: 2 rounds are too few, 9 are needed",)


def shaken(taken: Taken, slower: float, chance: random.Random) -> Taken:
    by = (1 + slower) * math.exp(chance.uniform(-0.1, 0.1))
    assert taken.decode and taken.ttft and taken.wall
    return replace(taken, decode=taken.decode / by, ttft=taken.ttft * by, wall=taken.wall * by)


def test_saved_days_without_drift_can_be_compared() -> None:
    bench = made(slower=1.1)
    found = compare((alone(bench, 0, "one"), 0), (alone(bench, 1, "two"), 0))
    assert found.verdict == "worse"


def test_what_one_side_lacks_is_named_and_never_the_same() -> None:
    bench = made()
    less = tuple(v for v in bench.visits if not (v.side == 1 and v.cell.kind == "prose"))
    found = compare((replace(bench, visits=less), 0), (replace(bench, visits=less), 1))
    assert found.missing == (
        "prose 64 x1 cold decode",
        "prose 64 x1 cold ttft",
        "prose 64 x1 cold wall",
    )
    assert found.verdict == "inconclusive"
    assert found.doubts == (f"not measured on both sides: {', '.join(found.missing)}",)


def test_a_run_that_was_stopped_is_never_the_same() -> None:
    bench = replace(made(), stopped="the server went away")
    found = compare((bench, 0), (bench, 1))
    assert (found.whole, found.verdict) == (False, "inconclusive")
    assert found.doubts == ("not all was measured",)
    with pytest.raises(Incomplete):
        compare((replace(bench, visits=()), 0), (bench, 1))


def test_nothing_alike_is_a_mistake() -> None:
    bench = made()
    other = tuple(replace(v, cell=replace(v.cell, context=999)) for v in bench.visits)
    with pytest.raises(PatchqError, match="nothing was measured on both sides"):
        compare((bench, 0), (replace(bench, run="s", visits=other), 1))


def test_margins_come_from_the_profile() -> None:
    assert margins_of(None) == {"structured": 0.97, "prose": 0.95}
    profile = Profile("p", "m", "m", bench={"prose": 0.9})
    assert margins_of(profile) == {"structured": 0.97, "prose": 0.9}
    bench = made(slower=1.04)
    strict, lax = (
        compare((bench, 0), (bench, 1), {"structured": each, "prose": each}).verdict
        for each in (0.95, 0.85)
    )
    assert (strict, lax) == ("worse", "same")


@pytest.mark.parametrize("table", [{"prose": 2.0}, {"prose": 1}, {"prose": "x"}, {"poems": 0.9}])
def test_margins_that_are_none(table: dict[str, Any]) -> None:
    with pytest.raises(PatchqError, match=r"ci/profiles/p\.toml, bench"):
        margins_of(Profile("p", "m", "m", bench=table))


def test_a_side_of_a_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "both.json"
    file.write_text(json.dumps(kept.as_json(made(slower=1.1))), encoding="utf-8")
    sides, measured = gathered(f"{file}#A", f"{file}#B", Asked(), None, cache=tmp_path)
    assert (compare(*sides).verdict, measured) == ("worse", [])
    for wrong in (str(file), f"{file}#C"):
        with pytest.raises(UsageError, match="which side of") as told:
            gathered(wrong, f"{file}#B", Asked(), None, cache=tmp_path)
        assert told.value.hint == f"name it: {file}#A, {file}#B"
    with pytest.raises(PatchqError, match="cannot be read"):
        gathered(str(tmp_path / "none"), f"{file}#B", Asked(), None, cache=tmp_path)


def test_an_address_beside_a_file_is_measured_as_the_file_was(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(kept.as_json(alone(made(rounds=1), 0, "a"))), encoding="utf-8")
    with serving(Paced()) as server:
        sides, (fresh,) = gathered(str(file), server.url, Asked(rounds=9), None, cache=tmp_path)
    assert fresh.plan == kept.read(file).plan
    assert [bench.run for bench, _ in sides] == ["a", fresh.run]


def test_the_command_measures_in_turns_and_keeps_what_it_measured(tmp_path: Path) -> None:
    out = tmp_path / "both.json"
    with serving(Paced()) as server:
        words = ["compare", server.url, server.url, "--context", "64", "--concurrency", "1"]
        words += ["--tokens", "4", "--rounds", "2", "--warmup", "0", "--json"]
        words += ["--measured", str(out), "--out", str(tmp_path / "compare.json")]
        done = subprocess.run([program(), *words], capture_output=True, text=True, check=False)
    assert done.returncode == Incomplete.exit_code, done.stderr  # two rounds are too few
    told = json.loads(done.stdout)
    assert (told["schema"], told["verdict"]) == ("patchq.compare/1", "inconclusive")
    assert [side["tree"] for side in (told["a"], told["b"])] == ["1" * 40] * 2
    assert len(kept.read(out).sides) == 2
    written = json.loads((tmp_path / "compare.json").read_text(encoding="utf-8"))
    assert written.pop("when") and written == told and written["runner"] is None
    again = subprocess.run(
        [program(), "compare", f"{out}#A", f"{out}#B"], capture_output=True, text=True, check=False
    )
    assert again.returncode == Incomplete.exit_code
    assert "B is not judged" in again.stdout


@pytest.mark.parametrize(
    "world",
    [World(), World(drift=0.1), World(BUSY), World(BUSY, noise=0.1)],
    ids=["quiet", "drifting", "busy", "less busy"],
)
def test_a_recorded_machine_against_itself_raises_no_alarm(world: World) -> None:
    """`tests.bench.compare` does this many times; docs/performance.md has the figures."""
    found = verdicts(world, 32, 0.0, 20, seed=1)
    assert found["worse"] + found["better"] <= 2, found


@pytest.mark.parametrize("drift", [0.0, 0.1])
def test_a_slowdown_of_a_twentieth_is_found_in_thirty_two_rounds(drift: float) -> None:
    found = verdicts(World(drift=drift), 32, 0.05, 20, seed=1)
    assert found["worse"] >= 17, found


@pytest.mark.parametrize("world", [World(), World(drift=0.1)], ids=["quiet", "drifting"])
def test_a_recorded_machine_is_the_same_as_itself(world: World) -> None:
    found = verdicts(world, 32, 0.0, 100, seed=1)
    assert found["same"] >= 90 and found["worse"] <= 5, found


def test_a_machine_that_is_slower_by_as_much_as_the_margin_is_not_the_same() -> None:
    """Half of the cells may be slower by 3 %, the others by 5 %; and so all together."""
    margin = math.sqrt(0.97 * 0.95)
    assert verdicts(World(), 32, 1 / margin - 1, 40, seed=1)["same"] <= 4


def test_where_the_machine_is_too_busy_nothing_is_claimed() -> None:
    assert set(verdicts(World(BUSY), 8, 0.05, 10, seed=1)) == {"inconclusive"}


def test_what_is_not_judged_by_itself_is_named_beside_the_same() -> None:
    noisy = with_walls(0.08, *[0.0] * 16)
    lines = shown(noisy)
    at = lines.index("B is the same as A")
    assert lines[at + 1].startswith(
        "by the wall time of all together; by itself not judged: prose "
    )
    assert shown(made())[-1] == "B is the same as A"
    alone = with_walls(0.0, 0.0)
    shaky = replace(
        alone,
        visits=tuple(
            replace(each, taken=(replace(each.taken[0], ttft=0.1 * 2 ** (number % 3)),))
            for number, each in enumerate(alone.visits)
        ),
    )
    assert shown(shaky)[-1] == (
        "by the wall time of what was asked; by itself not judged: prose 64 x1 cold ttft"
    )


def test_why_it_is_not_judged_is_said() -> None:
    lines = shown(made(rounds=2))
    assert lines[-2:] == [
        "B is not judged",
        "all together wall: 2 rounds are too few, 9 are needed",
    ]


def test_what_was_not_measured_is_said_once() -> None:
    bench = made()
    less = tuple(v for v in bench.visits if not (v.side == 1 and v.cell.kind == "prose"))
    lines = shown(replace(bench, visits=less, stopped="the server went away"))
    assert lines[-1] == "B is not judged"
    cells = ", ".join(f"prose 64 x1 cold {metric}" for metric in ("decode", "ttft", "wall"))
    assert [line for line in lines if "measured" in line] == [
        "not all was measured",
        f"not measured on both sides: {cells}",
    ]


def shown(bench: Bench) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=200, color_system=None).print(compared(compare((bench, 0), (bench, 1))))
    return [line.rstrip() for line in out.getvalue().splitlines()]
