"""The page of a queue in a real browser: it can be read, used, and lets nothing in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from patchq.render import page as render
from tests.render import pages
from tests.support.browser import Browser, browser, chromium
from tests.support.looks import CONTRAST, IMAGE, OVER, SCRIPT, axe

pytestmark = pytest.mark.skipif(
    chromium() is None, reason="needs Chromium (Debian: apt-get install chromium)"
)

OPEN = 'document.querySelectorAll("details").forEach(each => each.open = true)'
SHOWN = '[...document.querySelectorAll("#patches > :not([hidden]) .name")].map(each => each.textContent)'
COUNT = 'document.querySelector("[data-of=patches] output").textContent'
UNNAMED = """
[...document.querySelectorAll("[role=region], [role=group], section, svg")]
  .filter(each => !(each.ariaLabel || document.getElementById(each.getAttribute("aria-labelledby"))?.innerText))
  .map(each => each.outerHTML.slice(0, 80))
"""
WIDTHS = [1280, 360, 320]


def choose(where: str, value: str, of: str = "patches") -> str:
    """A person's choice in one of the fields above a list."""
    return f"""
    (() => {{
      const field = document.querySelector('[data-of={of}] {where}');
      field.value = {value!r};
      field.dispatchEvent(new Event("input", {{ bubbles: true }}));
    }})()
    """


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for name, made in {
        "whole": pages.page(),
        "hostile": pages.page(21, 21, 11, 9, hostile=True),
        "small": pages.page(7, 7, 3, 7, hostile=True),
        "empty": pages.empty(),
    }.items():
        (folder / f"{name}.html").write_bytes(render.files(made)["index.html"])
    return folder


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["hostile", "empty"])
def test_all_of_it_can_be_read(tab: Browser, site: Path, name: str, width: int, dark: bool) -> None:
    tab.asked.clear()
    shown = site / f"{name}.html"
    tab.open(shown, width, dark=dark)
    tab.value(OPEN)
    assert tab.value("matchMedia('(prefers-color-scheme: dark)').matches") is dark
    assert tab.value("document.documentElement.scrollWidth") <= width
    assert tab.value(OVER) == []
    assert tab.value(CONTRAST) == []
    assert tab.asked == [shown.as_uri()]


@pytest.mark.parametrize(("name", "width"), [("small", 1280), ("small", 360), ("empty", 360)])
def test_axe_finds_nothing(tab: Browser, site: Path, name: str, width: int) -> None:
    tab.open(site / f"{name}.html", width)
    tab.value(OPEN)
    assert axe(tab) == []
    assert tab.value(UNNAMED) == []
    tab.open(site / f"{name}.html", width, dark=True)
    assert axe(tab, "color-contrast") == []


def test_axe_would_find_it(tab: Browser, site: Path) -> None:
    tab.open(site / "empty.html", 360)
    tab.value("document.querySelector('h1').outerHTML = '<img src=x><a href=#></a>'")
    rules = ("image-alt", "link-name")
    assert [each.split(":")[0] for each in axe(tab, *rules)] == [*rules]


def test_what_strangers_wrote_stays_text(tab: Browser, site: Path) -> None:
    tab.open(site / "hostile.html", 1280)
    tab.value(OPEN)
    assert tab.value("window.ran === undefined")
    assert tab.value("document.querySelectorAll('script, style').length") == 2
    assert (
        tab.value("document.querySelectorAll('img, iframe, object, svg:not([role=img])').length")
        == 0
    )
    assert tab.value("[...document.links].every(each => /^(https:|file:)/.test(each.href))")
    said = tab.value("document.body.innerText")
    for raw in ("<script>window.ran = 1</script>", "{{ 7 * 7 }}", "&lt;b&gt;", "\\u202e", "\\x1b"):
        assert raw in said, raw
    assert not {"\u202e", "\u2066", "\u200f", "\x1b", "\x00"} & set(said)
    assert "x" * 601 not in said, "a text without end is cut"


def test_its_policy_lets_nothing_in(tab: Browser, site: Path) -> None:
    tab.open(site / "whole.html", 1280)
    assert tab.value(SCRIPT) == "refused"
    assert tab.value(IMAGE) == "refused"
    bare = site / "bare.html"
    text = (site / "whole.html").read_text("utf-8")
    bare.write_text(text.replace("Content-Security-Policy", "x-policy"), encoding="utf-8")
    tab.open(bare, 1280)
    assert (tab.value(SCRIPT), tab.value(IMAGE)) == ("ran", "shown"), "these would come in"


def test_without_script_all_is_there(tab: Browser, site: Path) -> None:
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(site / "whole.html", 360)
        # The protocol's own expressions run all the same.
        assert tab.value("document.querySelectorAll('.tools:not([hidden])').length") == 0
        assert tab.value("document.querySelectorAll('th button').length") == 0
        assert tab.value("document.querySelectorAll('#patches > details').length") == 100
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)


def test_words_and_states_choose_patches(tab: Browser, site: Path) -> None:
    tab.open(site / "whole.html", 1280)
    assert tab.value(COUNT) == "100 of 100"
    tab.value(choose("input", "GLM  thinking"))
    assert tab.value(COUNT) == "20 of 100"
    tab.value(choose(".pick", "landed"))
    assert tab.value(SHOWN) == ["patch-28", "patch-58", "patch-88"]
    tab.value(choose("input", "no such word"))
    assert (tab.value(SHOWN), tab.value(COUNT)) == ([], "0 of 100")
    tab.value(choose("input", "") + ";" + choose(".pick", ""))
    assert len(tab.value(SHOWN)) == 100


def test_patches_take_another_order(tab: Browser, site: Path) -> None:
    tab.open(site / "whole.html", 1280)
    tab.value(choose(".order", "name"))
    assert tab.value(SHOWN)[:3] == ["patch-1", "patch-2", "patch-3"], "numbers count as numbers"
    tab.value(choose(".order", "age"))
    ages = tab.value(
        '[...document.querySelectorAll("#patches > *")].map(each => +each.dataset.age)'
    )
    assert ages == sorted(ages, reverse=True) and ages[0] > 300
    tab.value(choose(".order", ""))
    assert tab.value(SHOWN) == [f"patch-{number + 1}" for number in range(100)]


def test_a_table_is_sorted_by_its_heads(tab: Browser, site: Path) -> None:
    tab.open(site / "whole.html", 1280)
    column = (
        '[...document.querySelectorAll("table.sort tbody tr")].map(row => row.cells[{}].innerText)'
    )
    press = 'document.querySelectorAll("table.sort th button")[{}].click()'
    assert tab.value(column.format(0))[:2] == ["50", "49"]
    tab.value(press.format(0))
    assert tab.value(column.format(0)) == [str(number + 1) for number in range(50)]
    tab.value(press.format(5))
    downloads = [int(each) for each in tab.value(column.format(5))]
    assert downloads == sorted(downloads)
    tab.value(press.format(5))
    assert [int(each) for each in tab.value(column.format(5))] == downloads[::-1]
    heads = 'document.querySelectorAll("table.sort th[aria-sort]")'
    assert tab.value(f"[...{heads}].map(each => each.innerText + each.ariaSort)") == [
        "downloadsdescending"
    ]


def test_the_keyboard_reaches_everything(tab: Browser, site: Path) -> None:
    tab.open(site / "hostile.html", 360)
    tab.value("document.body.focus()")
    seen = []
    for _ in range(400):
        for kind in ("keyDown", "keyUp"):
            tab.call(
                "Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9
            )
        now = tab.value("document.activeElement.tagName + (document.activeElement.className || '')")
        if now == "BODY":
            break
        seen.append(now)
    counts = {each: seen.count(each) for each in ("SUMMARY", "INPUT", "BUTTON", "DIVwide")}
    wanted = 'document.querySelectorAll("#patches > *, #requests > *").length'
    assert counts["SUMMARY"] >= tab.value(wanted)
    assert counts["INPUT"] == 2 and counts["BUTTON"] == 7 and counts["DIVwide"] >= 2
    assert seen[0] == "Askip", "the first step skips what stands before the patches"


def test_a_summary_opens_by_the_keyboard(tab: Browser, site: Path) -> None:
    tab.open(site / "hostile.html", 360)
    first = 'document.querySelector("#patches summary")'
    tab.value(f"{first}.focus()")
    for kind in ("keyDown", "keyUp"):
        tab.call(
            "Input.dispatchKeyEvent",
            type=kind,
            key="Enter",
            code="Enter",
            text="\r",
            windowsVirtualKeyCode=13,
        )
    assert tab.value(f"{first}.parentElement.open") is True


def test_a_click_is_answered_at_once(tab: Browser, site: Path) -> None:
    """100 patches, 50 releases: until all is drawn anew, in less than 100 ms (on CI's slow cores)."""
    tab.open(site / "whole.html", 1280)
    wait = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
    for act in (
        choose("input", "exl3"),
        choose(".pick", "needed"),
        choose(".order", "age"),
        choose("input", "glm", "requests"),
        'document.querySelectorAll("table.sort th button")[1].click()',
        'document.querySelector("#patches summary").click()',
    ):
        times = [
            tab.value(
                f"(async () => {{ await {wait}; const from = performance.now(); {act};"
                f" document.body.offsetHeight; return performance.now() - from; }})()"
            )
            for _ in range(3)
        ]
        assert min(times) < 100, (act, times)
