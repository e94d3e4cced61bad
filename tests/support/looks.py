"""What a page in the browser is asked: does it fit, can it be read, what does it let in."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path

from tests.support.browser import Browser

OVER = """
[...document.querySelectorAll("body *")].filter(each => {
  const box = each.getBoundingClientRect();
  return box.right > document.documentElement.clientWidth + 1 && box.width && !each.closest(".wide");
}).map(each => each.tagName + "." + each.className + ": " + each.textContent.slice(0, 60))
"""
CONTRAST = """
(() => {
  const parts = text => text.match(/[0-9.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(each => each / 255).map(each =>
    each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4
  ).reduce((sum, each, at) => sum + each * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = each => {
    for (; each; each = each.parentElement) {
      const found = parts(getComputedStyle(each).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
  };
  const found = [];
  for (const each of document.querySelectorAll("body *:not(title)")) {
    if (![...each.childNodes].some(node => node.nodeType == 3 && node.data.trim())) continue;
    const style = getComputedStyle(each);
    const ink = each.closest("svg") ? style.fill : style.color;
    const [low, high] = [light(parts(ink)), light(behind(each))].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) found.push(each.tagName + "." + each.className + " " + ratio.toFixed(2));
  }
  return [...new Set(found)];
})()
"""

SCRIPT = """
(() => {
  const script = document.createElement("script");
  script.textContent = "window.ran = 'ran'";
  document.body.append(script);
  return window.ran || "refused";
})()
"""
IMAGE = """
new Promise(done => {
  const image = new Image();
  image.onload = () => done("shown");
  image.onerror = () => done("refused");
  image.src = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=";
})
"""


@lru_cache
def _axe() -> str:
    """axe-core, out of a package that has it; nothing of the package itself is run."""
    found = importlib.util.find_spec("axe_playwright_python")
    assert found is not None and found.submodule_search_locations, (
        "axe-playwright-python is missing"
    )
    return Path(found.submodule_search_locations[0], "axe.min.js").read_text(encoding="utf-8")


def axe(tab: Browser, *rules: str) -> list[str]:
    """What axe-core finds wrong on the page that is shown (by some rules; left out, by all): the
    rule, and where first."""
    only = f"{{runOnly: {list(rules)}}}" if rules else "{}"
    tab.value(f"(() => {{ {_axe()}\n; return typeof axe; }})()")
    found: list[str] = tab.value(
        f"axe.run(document, {only}).then(done =>"
        " done.violations.map(each => each.id + ': ' + each.help + ': '"
        " + each.nodes.slice(0, 3).map(node => node.target + ' ' + node.html.slice(0, 160)).join(' | ')))"
    )
    return found
