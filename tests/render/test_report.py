"""The gate on a terminal, as JSON, and as a page that asks nobody for anything."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from patchq.render import gate as shown
from patchq.render.report_html import page
from patchq.render.report_html_plots import BOTTOM, LEFT, RIGHT, TOP, Plot, plots
from patchq.smoke import identity, kept
from patchq.smoke.gate import Examined, examine
from patchq.smoke.load import Cell
from tests.smoke import runner_evidence as making
from tests.smoke.runner_evidence import NOW, Runner
from tests.support.cli import program

EVIL = "<img src=http://x/ onerror=alert(1)>\"'&{{ 7 * 7 }}\x1b[2J\u202e\udcff\nnext"
VOID = {"meta", "br"}


class Page(HTMLParser):
    """Its tags, balanced, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"{self.open} are not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def has(self, words: str) -> bool:
        return words in " ".join(" ".join(self.text).split())


def seen(runner: Runner) -> Examined:
    return examine(runner.project, now=NOW)


def drawn(examined: Examined) -> str:
    console = Console(width=120, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(shown.drawn(examined))
    return captured.get()


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return making.runner(tmp_path)


def slower(cell: Cell, number: int) -> float:
    return making.steady(cell, number) * 0.8


def test_a_gate_that_is_passed(runner: Runner) -> None:
    runner.keep_all()
    examined = seen(runner)
    text = drawn(examined)
    assert text.splitlines()[0] == f"runner {runner.lock.digest[:16]}: p on pair"
    assert re.search(r"(?m)^ok +smoke\.probes +\d+ probes passed", text)
    assert text.splitlines()[-1] == "the gate is passed"
    value = shown.as_json(examined)
    assert json.loads(json.dumps(value)) == value and value["ok"] is True
    assert value["runner"] == identity.as_json(runner.identity)
    assert [each["kind"] for each in value["evidence"]] == ["smoke", "bench"]
    assert all(each["ok"] and each["state"] == "ok" for each in value["findings"])


def test_the_page_shows_what_was_found(runner: Runner) -> None:
    before = runner.release(1, {"tree": "c" * 40})
    runner.keep("bench", kept.as_json(making.bench(runner, slower)))
    runner.keep("compare", making.against(runner, slower, before))
    value = making.smoke(runner, {"recall": ("failed", "it says lock")})
    recall = next(each for each in value["probes"] if each["name"] == "recall")
    recall["exchanges"] = [{"asked": "Say amber.", "content": "lock", "seconds": 1.5}]
    logs = next(each for each in value["probes"] if each["name"] == "logs")
    logs["evidence"] = {"lines": {"ns-b": ["falling back to TRITON_MLA"]}}
    runner.keep("smoke", value)
    found = Page(page(seen(runner)))
    for words in (
        "the gate failed",
        "recall failed: it says lock",
        "worse than release 1",
        "Say amber.",
        "logs, ns-b falling back to TRITON_MLA",
        "-20.0% (",
        "24.1",  # tokens a second of this runner at 1k, and of the release:
        "30.1",
    ):
        assert found.has(words), words
    lines = [attrs["class"] for tag, attrs in found.tags if tag == "polyline"]
    assert {"line this cold", "line this warm", "line last cold", "line last warm"} == set(lines)
    opened = [attrs for tag, attrs in found.tags if tag == "details" and "open" in attrs]
    assert len(opened) == 2, "the failed probe, and the comparison"


def test_it_asks_nobody_for_anything(runner: Runner) -> None:
    runner.keep_all()
    text = page(seen(runner))
    found = Page(text)
    names = {tag for tag, _ in found.tags}
    assert not names & {"script", "img", "link", "iframe", "object", "embed", "form", "a", "base"}
    assert not {key for _, attrs in found.tags for key in attrs} & {"src", "href", "srcset", "on"}
    assert (
        "url(" not in text
        and "@import" not in text
        and "http" not in text.replace("http-equiv", "").replace("http://10.77.0.1:8000", "")
    )
    assert ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'") in [
        (attrs.get("http-equiv"), attrs.get("content")) for _, attrs in found.tags
    ]


def hostile(value: Any, kept_keys: frozenset[str]) -> Any:
    """Every text but those that have to be what they are, and every key of free tables."""
    if isinstance(value, dict):
        return {
            key: each if key in kept_keys else hostile(each, kept_keys)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [hostile(each, kept_keys) for each in value]
    return EVIL if isinstance(value, str) else value


def test_hostile_text_stays_text(runner: Runner) -> None:
    before = runner.release(1, {"tree": "c" * 40})
    keys = frozenset({"schema", "runner", "name", "state", "version", "verdict", "baseline"})
    smoke = making.smoke(runner, {"recall": ("failed", "x")})
    for probe in smoke["probes"]:
        probe["evidence"] = {EVIL: EVIL, "lines": {EVIL: [EVIL]}, "deep": [{EVIL: [EVIL, 1]}]}
        probe["exchanges"] = [{"content": EVIL, "calls": [{"name": EVIL}], EVIL: EVIL, "spin": {}}]
    runner.keep("smoke", hostile(smoke, keys))
    bench = hostile(kept.as_json(making.bench(runner)), keys | {"visits", "plan"})
    runner.keep("bench", bench)
    compare = making.against(runner, making.steady, before)
    compare["findings"] = [{**each, "says": EVIL} for each in compare["findings"]]
    runner.keep("compare", compare)
    examined = seen(runner)
    for text in (page(examined), drawn(examined)):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text)
        assert "{{ 7 * 7 }}" in text or "7 * 7" in text
    found = Page(page(examined))
    assert "img" not in {tag for tag, _ in found.tags}
    assert found.has("<img src=http://x/ onerror=alert(1)>\"'&{{ 7 * 7 }}\\x1b[2J\\u202e\\udcff")
    page(examined).encode("utf-8")


def test_a_page_without_evidence(runner: Runner) -> None:
    found = Page(page(seen(runner)))
    assert found.has("the gate was not asked in full")
    assert found.has("Nothing here is bound to this runner.")
    assert "svg" not in {tag for tag, _ in found.tags}


def test_figures_that_were_refused_are_shown_as_such(runner: Runner) -> None:
    runner.keep("smoke", making.smoke(runner))
    runner.keep("bench", kept.as_json(making.bench(runner)), lock="f" * 64)
    assert Page(page(seen(runner))).has("These figures were refused: see the rules above.")


def test_the_same_evidence_gives_the_same_page(runner: Runner) -> None:
    runner.keep_all()
    assert page(seen(runner)) == page(seen(runner))


figures = st.dictionaries(
    st.builds(
        Cell,
        st.just("prose"),
        st.integers(0, 1 << 20),
        st.sampled_from([1, 4]),
        st.booleans(),
    ),
    st.fixed_dictionaries(
        {}, optional={key: st.floats(0, 1e12) for key in ("decode", "ttft", "wall")}
    ),
    max_size=8,
)


@given(figures, figures)
def test_every_point_lies_within_the_plot(this: Any, last: Any) -> None:
    for plot in plots(this, last):
        for line in plot.lines:
            for point in line.points:
                assert LEFT <= point.x <= RIGHT and TOP - 0.01 <= point.y <= BOTTOM + 0.01
        for mark in (*plot.upward, *plot.across):
            assert TOP - 0.01 <= mark.at <= RIGHT
        assert 1 <= len(plot.upward) <= 8


def plot_of(values: Mapping[int, float]) -> Plot:
    this = {Cell("prose", context, 1): {"decode": value} for context, value in values.items()}
    (plot,) = plots(this, {})  # type: ignore[arg-type]
    return plot


def test_places_are_true_to_the_figures() -> None:
    plot = plot_of({1024: 30.0, 8192: 15.0, 65536: 0.0})
    (line,) = plot.lines
    xs, ys = zip(*((point.x, point.y) for point in line.points), strict=True)
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1]), "a power of two is as wide as another"
    assert ys[2] == BOTTOM and ys[2] - ys[1] == pytest.approx(ys[1] - ys[0])
    assert [mark.label for mark in plot.upward] == ["0", "5", "10", "15", "20", "25", "30"]
    assert line.points[0].says == "this, cold, 1k: 30 tok/s"


def test_what_lies_far_apart_is_drawn_logarithmically() -> None:
    plot = plot_of({1024: 1.0, 8192: 100.0})
    assert plot.logarithmic
    assert [mark.label for mark in plot.upward] == ["1", "3", "10", "30", "100"]


@pytest.mark.parametrize(
    ("args", "code"), [((), 0), (("--json",), 0), (("--html", "report.html"), 0), (("7777",), 1)]
)
def test_the_command(runner: Runner, args: tuple[str, ...], code: int) -> None:
    runner.rules('cluster = "pair"\nprofile = "p"\n[smoke]\n')
    runner.keep("smoke", making.smoke(runner))
    done = subprocess.run(
        [program(), "gate", *args], cwd=runner.root, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == code, done.stderr
    if "--json" in args:
        assert json.loads(done.stdout)["schema"] == "patchq.gate/1"
    elif "--html" in args:
        written = runner.root / "report.html"
        assert written.read_text("utf-8") == page(examine(runner.project))
        assert done.stderr == "report.html is written\n"
    elif code:
        assert "no lock has a digest that starts with 7777" in done.stderr


def test_its_exit_status_says_what_is_amiss(runner: Runner) -> None:
    call = [program(), "gate", "--json"]
    done = subprocess.run(call, cwd=runner.root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 6 and json.loads(done.stdout)["ok"] is False
    runner.keep("smoke", making.smoke(runner, {"up": ("failed", "503")}))
    done = subprocess.run(call, cwd=runner.root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 5
    assert replace(runner.identity) == identity.read(json.loads(done.stdout)["runner"])


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -1, 2**63, float("inf"), float("nan"), 1e308]),
    st.floats(),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just([[]]),
    st.just({"": {}}),
)


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to everything within."""
    found = [way] if way else []
    pairs: Any = value.items() if isinstance(value, dict) else ()
    pairs = enumerate(value[:2]) if isinstance(value, list) else pairs
    for key, each in pairs:
        found += places(each, (*way, key))
    return found


@pytest.fixture(scope="module")
def kept_all(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    runner = making.runner(tmp_path_factory.mktemp("project"))
    before = runner.release(1, {"tree": "c" * 40})
    smoke = making.smoke(runner, {"recall": ("failed", "x")})
    for probe in smoke["probes"][:2]:
        probe["evidence"] = {"lines": {"ns-a": ["x"]}}
        probe["exchanges"] = [{"asked": "x", "content": "y", "calls": [{"name": "z"}]}]
    runner.keep("smoke", smoke)
    runner.keep("bench", kept.as_json(making.bench(runner, rounds=3)))
    runner.keep("compare", making.against(runner, making.steady, before))
    return runner


@settings(max_examples=50)
@given(st.data(), st.sampled_from(["smoke", "bench", "compare"]), LEAVES)
def test_whatever_stands_in_evidence_is_judged(
    kept_all: Runner, data: st.DataObject, kind: str, leaf: Any
) -> None:
    """One value anywhere in a file is another: the gate decides, and the page is whole."""
    path = kept_all.folder / f"{kind}.json"
    whole = path.read_bytes()
    value = json.loads(whole)
    *way, last = data.draw(st.sampled_from(places(value)))
    inside = value
    for key in way:
        inside = inside[key]
    inside[last] = leaf
    path.write_text(json.dumps(value), encoding="utf-8")
    try:
        examined = seen(kept_all)
        assert examined.gate.exit_code in (0, 5, 6)
        Page(page(examined))
        drawn(examined)
    finally:
        path.write_bytes(whole)
