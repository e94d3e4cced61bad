"""Benches of servers over real HTTP: what is asked in which turn, and what bad days leave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from patchq.errors import Incomplete, PatchqError, UsageError
from patchq.smoke import kept
from patchq.smoke.bench import Bench, Plan, contexts_of, labelled, measure, order
from patchq.smoke.client import Client
from patchq.smoke.model import About
from patchq.smoke.quiet import alone
from tests.smoke.fake import serving
from tests.smoke.paced import Paced
from tests.support.cli import program
from tests.support.inside import call

PLAN = Plan((64, 256), (1, 2), tokens=4, rounds=2, warmup=1)


@contextmanager
def served(*servers: Paced) -> Iterator[list[tuple[str, Client]]]:
    with ExitStack() as stack:
        for server in servers:
            stack.enter_context(serving(server))
        names = "ABC"
        yield [
            (names[number], Client(server.url, patience=20))
            for number, server in enumerate(servers)
        ]


def run(tmp_path: Path, *servers: Paced, plan: Plan = PLAN, **options: Any) -> Bench:
    with served(*servers) as sides:
        abouts = [client.about() for _, client in sides]
        return measure(sides, abouts, plan, cache=tmp_path, **options)


def test_every_cell_cold_then_warm_in_every_round(tmp_path: Path) -> None:
    server = Paced()
    bench = run(tmp_path, server)
    assert (bench.exit_code, bench.stopped, bench.broken) == (0, None, 0)
    names = [visit.cell.name for visit in bench.visits if (visit.round, visit.turn) == (0, 0)]
    assert names == [
        f"{what} {heat}"
        for what in (
            "structured 64 x1",
            *("prose 64 x1", "prose 64 x2", "prose 256 x1", "prose 256 x2"),
        )
        for heat in ("cold", "warm")
    ]
    for visit in bench.visits:
        for taken in visit.taken:
            assert taken.cached_tokens == (taken.prompt_tokens if visit.cell.warm else 0)
            if visit.cell.kind == "prose":
                assert abs(taken.prompt_tokens - visit.cell.context) <= 8
    # The first answer, and three rounds (one to warm up) of two turns with 7 prompts, asked twice.
    assert len(server.asked) == 1 + 3 * 2 * 7 * 2


def test_sides_are_asked_in_turns_and_get_the_same_texts(tmp_path: Path) -> None:
    assert order(2, 0) == [(0, 0), (1, 0), (1, 1), (0, 1)]
    assert order(2, 1) == [(1, 0), (0, 0), (0, 1), (1, 1)]
    first, second = Paced(), Paced()
    bench = run(tmp_path, first, second)
    cold = [
        (visit.side, visit.turn)
        for visit in bench.visits
        if visit.round == 0 and visit.cell.name == "prose 64 x1 cold"
    ]
    assert cold == order(2, 0)

    def texts(server: Paced) -> list[str]:
        return sorted(body["prompt"].partition("]")[2] for body in server.asked)

    assert texts(first) == texts(second)
    assert not {b["prompt"] for b in first.asked[1:]} & {b["prompt"] for b in second.asked[1:]}


def test_a_side_is_bound_to_what_it_says_of_itself(tmp_path: Path) -> None:
    (side,) = run(tmp_path, Paced()).sides
    assert (side.tree, side.template) == ("1" * 40, "2" * 64)
    assert (side.draft_tokens, side.acceptance) == (7.0, 0.4)


def test_without_metrics_the_figures_are_there(tmp_path: Path) -> None:
    bench = run(tmp_path, Paced(frozenset({"no metrics"})))
    assert bench.exit_code == 0
    assert bench.sides[0].draft_tokens is None


def test_a_runner_of_ours_does_not_end_what_repeats_itself(tmp_path: Path) -> None:
    server = Paced()
    run(tmp_path, server)
    assert all(b["repetition_detection"] == {"max_pattern_size": 0} for b in server.asked)


@pytest.mark.parametrize("fault", ["500", "cut", "silent"])
def test_a_server_that_goes_away_leaves_what_was_measured(tmp_path: Path, fault: str) -> None:
    plan = Plan((64,), (1,), tokens=4, rounds=3, warmup=0)
    server = Paced(frozenset({fault}), after=9)
    with serving(server):
        client = Client(server.url, patience=0.3)
        bench = measure([("A", client)], [client.about()], plan, cache=tmp_path)
    assert bench.stopped is not None
    assert bench.exit_code == Incomplete.exit_code
    assert len([v for v in bench.visits if v.taken[0].broke is None]) == 8


def test_one_that_never_answers_stops_it_at_once(tmp_path: Path) -> None:
    with serving(Paced(frozenset({"silent"}))) as server:
        client = Client(server.url, patience=0.2)
        with pytest.raises(Incomplete, match=r"no answer within 0\.2 s"):
            measure([("A", client)], [client.about()], PLAN, cache=tmp_path)
    assert len(server.asked) == 1


def test_a_server_that_others_use_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(Incomplete, match="is answering 2 other requests"):
        run(tmp_path, Paced(frozenset({"busy"})))


def test_two_at_once_are_held_apart(tmp_path: Path) -> None:
    with served(Paced()) as sides:
        abouts = [sides[0][1].about()]
        with (
            alone(sides[0][1].url, tmp_path),
            pytest.raises(Incomplete, match="another bench is measuring"),
        ):
            measure(sides, abouts, PLAN, cache=tmp_path)
        assert measure(sides, abouts, PLAN, cache=tmp_path).exit_code == 0


def test_interrupted_it_keeps_what_was_measured(tmp_path: Path) -> None:
    class Impatient:
        def step(self, what: str, done: int = 0, total: int | None = None, unit: str = "") -> None:
            if done == 12:
                raise KeyboardInterrupt

    bench = run(tmp_path, Paced(), progress=Impatient())
    assert (bench.interrupted, bench.exit_code) == (True, 130)
    # 10 visits to warm up are not kept; each visit is one cold and one warm.
    assert len(bench.visits) == 2 * 2
    assert kept.as_json(bench)["interrupted"] is True


def test_a_saved_bench_is_read_back_as_it_was(tmp_path: Path) -> None:
    bench = run(tmp_path, Paced(), Paced())
    file = tmp_path / "bench.json"
    file.write_text(json.dumps(kept.as_json(bench)), encoding="utf-8")
    assert kept.read(file) == bench


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "patchq.smoke/1"},
        {"sides": []},
        {"sides": [7]},
        {"visits": [{"side": 5}]},
        {"plan": None},
        {"run": 3},
        {"visits": None},
    ],
    ids=str,
)
def test_what_is_no_bench_is_told_in_a_sentence(tmp_path: Path, change: dict[str, Any]) -> None:
    file = tmp_path / "bench.json"
    plan = Plan((64,), (1,), tokens=4, rounds=1, warmup=0)
    good = kept.as_json(run(tmp_path, Paced(), plan=plan))
    file.write_text(json.dumps(good | change), encoding="utf-8")
    with pytest.raises(PatchqError, match=r"bench\.json"):
        kept.read(file)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]", "\xff"])
def test_hostile_files(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bench.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(PatchqError, match=r"bench\.json"):
        kept.read(file)


def test_contexts_go_as_far_as_model_and_profile() -> None:
    servers = [About("u", "m", 40960), About("v", "m", 36000)]
    assert contexts_of(servers, 128) == (1024, 8192, 33712)
    assert contexts_of(servers, 128, limit=4096) == (1024, 3722)
    assert contexts_of([About("u", "m")], 128) == (1024, 8192, 32768)
    with pytest.raises(PatchqError, match="leave no room"):
        contexts_of([About("u", "m", 150)], 128)


def test_labels() -> None:
    assert labelled(["u", "v"], []) == ["A", "B"]
    for wrong in (["one"], ["one", "one"], ["a#b", "c"], ["", "b"]):
        with pytest.raises(UsageError):
            labelled(["u", "v"], wrong)


def test_the_command_keeps_its_evidence(tmp_path: Path) -> None:
    import subprocess

    out = tmp_path / "kept.json"
    with serving(Paced()) as server:
        words = ["bench", "--url", server.url, "--context", "64", "--concurrency", "1"]
        words += ["--tokens", "4", "--rounds", "1", "--out", str(out), "--json"]
        done = subprocess.run([program(), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    written = json.loads(out.read_text(encoding="utf-8"))
    assert datetime.fromisoformat(written.pop("when")).tzinfo is not None
    assert json.loads(done.stdout) == written
    assert (written["sides"][0]["tree"], written["runner"]) == ("1" * 40, None)


def test_people_see_what_broke_and_what_was_measured(tmp_path: Path) -> None:
    import subprocess

    with serving(Paced(frozenset({"cut"}), after=9)) as server:
        words = ["bench", "--url", server.url, "--context", "64", "--concurrency", "1"]
        words += ["--tokens", "4", "--rounds", "3", "--warmup", "0", "--label", "old"]
        done = subprocess.run([program(), *words], capture_output=True, text=True, check=False)
    assert done.returncode == Incomplete.exit_code
    first, *_, last = done.stdout.splitlines()
    assert first.startswith(f"old: {server.url} serves tiny, tree 111111111111, template 2222")
    assert "prose 64 x1 warm" in done.stdout
    assert last.startswith("not all was measured:") and last.endswith("it ended before [DONE]")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("bench", "bench of which server?"),
        ("bench --url http://a:1 --cluster local", "bench of which server?"),
        ("bench --cluster local --label x", "--label is for addresses"),
        ("bench --url http://a:1 --sweep draft_tokens=5,7", "--sweep starts a cluster's runner"),
        ("compare a.json", "which is B?"),
        ("compare a.json b.json --cluster local", "which is B?"),
        ("compare http://a:1 --cluster local", "an address and a cluster are not measured"),
    ],
)
def test_what_does_not_go_together(tmp_path: Path, words: str, says: str) -> None:
    assert says in call(tmp_path, *words.split(), code=UsageError.exit_code).err
