"""The page of a queue as text: how large it is, what it says, and what it never says."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.nightly.model import Fault
from patchq.nightly.page import Downloads, Page
from patchq.nightly.page_pulls import Change
from patchq.render import page as render
from patchq.render import page_json, page_plots, page_words
from patchq.render.report_html_plots import BOTTOM, TOP
from patchq.upstream.drift import Drift, Newer
from tests.render import pages


def text(page: Page) -> str:
    (data,) = render.files(page).values()
    return data.decode("utf-8")


class Balanced(HTMLParser):
    """Every element is closed, but for those that need not be; `asks`: what a browser would fetch."""

    FREE = frozenset({"td", "th", "tr", "tbody", "thead", "li", "dt", "dd"})
    EMPTY = frozenset({"meta", "input", "line", "polyline", "path"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.asks: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.FREE | self.EMPTY:
            self.open.append(tag)
        names = {name for name, _ in attrs}
        assert not {name for name in names if name.startswith("on") or name == "style"}
        if tag != "a":
            self.asks += [f"{tag} {name}" for name in names & {"src", "href", "data", "srcset"}]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.EMPTY, tag

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("hostile", [False, True], ids=["usual", "hostile"])
def test_a_large_queue_is_a_small_page(hostile: bool) -> None:
    """100 patches, 100 pull requests, 50 releases, 60 nights; of titles without end a little counts."""
    whole = render.files(pages.page(hostile=hostile))
    assert sum(map(len, whole.values())) < (400_000 if hostile else 300_000)
    assert list(whole) == ["index.html"]


@pytest.mark.parametrize("page", [pages.page(), pages.page(hostile=True), pages.empty()])
def test_it_is_sound_and_fetches_nothing(page: Page) -> None:
    found = Balanced()
    found.feed(text(page))
    found.close()
    assert (found.open, found.asks) == ([], [])
    assert "url(" not in text(page) and "@import" not in text(page)


def test_the_same_page_is_the_same_byte_for_byte() -> None:
    assert render.files(pages.page()) == render.files(pages.page())
    assert page_json.as_json(pages.page()) == page_json.as_json(pages.page())


def test_what_is_not_known_is_said() -> None:
    said = text(pages.empty())
    for sentence in (
        "No night is known here.",
        "How many releases came after 0.32.0 is not known.",
        "the package index was not reached",
        "Downloads are not known: nobody is asked with --offline.",
        "No release was cut yet.",
        "The series is empty.",
        "The queue knows no pull request.",
    ):
        assert sentence in said, sentence
    assert "None" not in said and "null" not in re.sub(
        r"<script>.*?</script>", "", said, flags=re.S
    )
    assert said.count("<b>?</b>") == 5, "no number stands for what nobody knows"
    alone = text(pages.page(1, 1, 1, 0))
    assert "What moved is not known: no night is known here: nothing to compare with." in alone


@pytest.mark.parametrize(
    ("state", "hours", "tone", "told"),
    [
        ("green", 0, "good", "The last night, 2026-12-01, was green; it ended 3 h 30 min ago."),
        ("quiet", 0, "good", "The last night, 2026-12-01, found nothing new; it ended 3 h 30 min ago."),
        ("red", 0, "bad", "The last night, 2026-12-01, is red at smoke; it ended 3 h 30 min ago."),
        ("asks", 0, "open", "The last night, 2026-12-01, waits for an answer at smoke; it ended 3 h 30 min ago."),
        ("green", 40, "bad", "The last night, 2026-12-01, was green, and is 43 h old, more than 36 hours. See why none came since."),
    ],
)  # fmt: skip
def test_the_last_night(state: str, hours: int, tone: str, told: str) -> None:
    page = pages.page(1, 1, 1, 3, last=state)  # type: ignore[arg-type]
    page = replace(page, now=page.now + timedelta(hours=hours))
    assert page_words.says(page) == (tone, told)
    assert f'<header class="card top {tone}">' in text(page) and told in text(page)


def test_nights_that_say_little() -> None:
    night = replace(pages.night(0), state="running", ended=None)
    page = replace(pages.page(1, 1, 1, 0), nights=(night,))
    assert page_words.says(page) == ("open", "The night 2026-12-01 is under way since 8 h 30 min.")
    odd = replace(page, nights=(replace(night, state="red", ended="once", fault=None),))
    assert page_words.says(odd) == (
        "bad",
        "The last night, 2026-12-01, is red; when it ended cannot be read.",
    )


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.4, "0 s"), (59, "59 s"), (61, "1 min"), (3599, "1 h"), (3900, "1 h 5 min"),
        (11 * 3600 + 1800, "11 h"), (47 * 3600, "47 h"), (48 * 3600, "2 days"), (1e7, "115 days"),
    ],
)  # fmt: skip
def test_times_for_people(seconds: float, told: str) -> None:
    assert page_words.span(seconds) == told


def test_how_far_it_is_behind() -> None:
    page = pages.page(1, 1, 1, 1)
    assert page_words.behind(page) == "2 releases are newer than 0.32.0."
    one = replace(page, drift=Drift("0.32.0", newer=(Newer("0.33.0"),)))
    assert page_words.behind(one) == "1 release is newer than 0.32.0."
    none = replace(page, drift=Drift("0.32.0", newer=()))
    assert page_words.behind(none) == "0.32.0 is the newest release."


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (Change("state", "open", "merged"), "state: open → merged"),
        (Change("head_sha", "", "0123456789"), "head: 0123456789"),
        (Change("closed_by", "#7", ""), "closed by: no longer #7"),
        (Change("title", "a" * 90, "b"), f"title: {'a' * 80} ... → b"),
    ],
)
def test_what_moved_in_words(change: Change, told: str) -> None:
    assert page_words.fact(change) == told


@pytest.mark.parametrize(
    "bad",
    ["javascript:alert(1)", "data:text/html,x", "//host/x", "https:", "\x01javascript:alert(1)", "ftp://h/x", "", None, "https://[x"],
)  # fmt: skip
def test_addresses_lead_to_the_web_only(bad: str | None) -> None:
    assert render.address(bad) == ""
    assert render.address("https://github.com/acme/vllm/pull/7") != ""


def test_a_culprit_is_never_surer_than_it_is() -> None:
    page = pages.page(1, 1, 1, 1)
    assert "99 % sure" in text(page) and "100 % sure" not in text(page)
    (night,) = page.nights
    assert night.fault is not None
    told = replace(night.fault.culprits[0], confidence=None)
    fault: Fault = replace(night.fault, culprits=(told,))
    assert "% sure" not in text(replace(page, nights=(replace(night, fault=fault),)))


def test_figures_stand_in_a_plot_and_in_a_table() -> None:
    first, *_ = found = page_plots.groups(pages.page(1, 1, 4, 1).releases)
    assert [each.name for each in found] == [
        "prose, one request, cold",
        "prose, one request, warm",
        "prose, 4 requests at once, cold",
        "prose, 4 requests at once, warm",
    ]
    assert first.contexts == ("1k", "8k", "32k")
    assert [row.number for row in first.rows] == [4, 3, 2, 1]
    assert first.rows[-1].cells == ("18.3", "19.9", "15.8", "28.9", "13.3", "37.9")
    decode, wall = first.plots
    assert [line.name for line in decode.lines] == ["1k", "8k", "32k"]
    assert decode.says.startswith("1k: 18.3 tok/s in release 1, 19.2 in release 4; 8k: ")
    assert wall.head == "Wall time, seconds"
    heights = [y for line in decode.lines for _, y in line.points]
    assert all(TOP <= y <= BOTTOM for y in heights)
    # More is higher.
    assert decode.lines[0].points[-1][1] < decode.lines[0].points[0][1]


def test_a_gap_is_a_gap_and_one_release_is_a_point() -> None:
    three, two, one = pages.page(1, 1, 3, 1).releases
    some = replace(two, figures=tuple(each for each in two.figures if each.context != 8192))
    (first, *_) = page_plots.groups([three, some, one])
    assert first.rows[1].cells[2:4] == ("", "")
    assert [len(line.points) for line in first.plots[0].lines] == [3, 2, 3]
    (only, *_) = page_plots.groups([one])
    assert only.plots[0].says.endswith("32k: 13.3 tok/s in release 1")
    assert page_plots.groups([]) == [] and page_plots.groups([replace(one, figures=())]) == []


@given(st.lists(st.floats(TOP, BOTTOM), min_size=1, max_size=12))
def test_names_of_lines_have_room(wanted: list[float]) -> None:
    found = page_plots.names(wanted)
    assert all(TOP - 1e-6 <= each <= BOTTOM + 1e-6 for each in found)
    placed = sorted(found)
    assert all(b - a >= page_plots.ROOM - 1e-6 for a, b in pairwise(placed))
    order = sorted(range(len(wanted)), key=lambda at: wanted[at])
    assert [found[at] for at in order] == placed


def test_its_json() -> None:
    found = json.loads(
        json.dumps(page_json.as_json(pages.page(2, 7, 2, 2), {"site/index.html": 9}))
    )
    assert found["schema"] == "patchq.report/1" and found["as_of"] == "2026-12-01T09:30:00+00:00"
    assert found["patches"][1]["pulls"] == [{"pr": "acme/vllm#2", "role": "carries"}]
    assert found["patches"][0]["verdict"]["evidence"][0]["signal"] == "merge"
    assert found["pulls"][2]["changes"][0] == {"fact": "state", "was": "open", "now": "merged"}
    assert found["pulls"][6]["decision"]["answer"] == "hold"
    assert found["last"] == {"hours": 3.5, "late": False, "stale_hours": 36}
    assert found["drift"]["days"] == 34 and found["drift"]["commits"][1] == {
        "to": "main",
        "commits": 530,
    }
    assert found["downloads"] == {
        "total": 39,
        "as_of": "2026-12-01T09:30:00+00:00",
        "missing": None,
    }
    assert found["nights"][0]["schema"] == "patchq.night/1"
    assert found["files"] == [{"path": "site/index.html", "bytes": 9}]
    unknown = page_json.as_json(replace(pages.empty(), downloads=Downloads({}, {}, missing="why")))
    assert unknown["downloads"] == {"total": None, "as_of": None, "missing": "why"}
