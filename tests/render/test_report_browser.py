"""The page of the gate in a real browser: nothing runs over, all can be read, nobody is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from patchq.render.report_html import page
from patchq.smoke import kept
from patchq.smoke.gate import examine
from tests.smoke import runner_evidence as making
from tests.smoke.runner_evidence import NOW
from tests.support.browser import Browser, browser, chromium
from tests.support.looks import CONTRAST, IMAGE, OVER, SCRIPT, axe

pytestmark = pytest.mark.skipif(
    chromium() is None, reason="needs Chromium (Debian: apt-get install chromium)"
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with everything in it, and words that are longer than a telephone is wide."""
    runner = making.runner(tmp_path_factory.mktemp("project"))
    before = runner.release(1, {"tree": "c" * 40})
    long = "x" * 400
    value = making.smoke(
        runner, {"recall": ("failed", long), "long": ("not run", "late"), "image": ("left out", "")}
    )
    for probe in value["probes"]:
        probe["evidence"] = {"measured": [long], "lines": {"ns-a": [long, "second"]}}
        probe["exchanges"] = [{"asked": long, "content": long, "calls": [{"name": long}]}]
    runner.keep("smoke", value)
    runner.keep("bench", kept.as_json(making.bench(runner)))
    runner.keep("compare", making.against(runner, making.steady, before))
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page(examine(runner.project, now=NOW)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_all_of_it_can_be_read(tab: Browser, shown: Path, width: int, dark: bool) -> None:
    tab.asked.clear()
    tab.open(shown, width, dark=dark)
    tab.value('document.querySelectorAll("details").forEach(each => each.open = true)')
    assert tab.value("matchMedia('(prefers-color-scheme: dark)').matches") is dark
    assert tab.value("document.documentElement.scrollWidth") <= width
    assert tab.value(OVER) == []
    assert tab.value(CONTRAST) == []
    assert tab.value("document.querySelectorAll('svg[role=img]').length") == 6
    assert tab.asked == [shown.as_uri()]


def test_its_policy_lets_nothing_in(tab: Browser, shown: Path) -> None:
    tab.open(shown, 1200)
    assert tab.value(SCRIPT) == "refused"
    assert tab.value(IMAGE) == "refused"
    bare = shown.with_name("bare.html")
    bare.write_text(shown.read_text("utf-8").replace("default-src", "x-src"), encoding="utf-8")
    tab.open(bare, 1200)
    assert (tab.value(SCRIPT), tab.value(IMAGE)) == ("ran", "shown"), "these would come in"


@pytest.mark.parametrize("width", [1200, 390])
def test_axe_finds_nothing(tab: Browser, shown: Path, width: int) -> None:
    tab.open(shown, width)
    tab.value('document.querySelectorAll("details").forEach(each => each.open = true)')
    assert axe(tab) == []
