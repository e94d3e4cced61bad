"""The page of `patchq report --html`: one file that asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from patchq.nightly.model import NAMES
from patchq.render import html, page_plots
from patchq.render import page_words as words
from patchq.render.html import cut

if TYPE_CHECKING:
    from patchq.nightly.model import Night
    from patchq.nightly.page import Page

TEMPLATE = "page.html.jinja"
INDEX = "index.html"
TITLE, TEXT = 160, 600
"""Characters of a title, and of a text, that the page shows."""
SIGNALS = 4
"""Of a verdict; `--json` has more."""
LATEST = 60
"""Nights that it shows."""
_OPTIONAL = re.compile("</(?:td|th|tr|tbody|thead|li|dt|dd)>")
"""End tags that HTML does not ask for: a tenth of the page. Text cannot hold one: it is escaped."""


def files(page: Page) -> dict[str, bytes]:
    """The site: its files' contents by name. The same page gives the same bytes."""
    return {INDEX: _html(page).encode("utf-8", "replace")}


def _html(page: Page) -> str:
    from markupsafe import Markup

    style, script = (
        "\n" + "".join((html.HERE / name).read_text("utf-8") for name in names)
        for names in (("looks.css", "page.css"), ("page.js",))
    )
    environment = html.environment()
    environment.filters.update(
        title=lambda value: cut(value, TITLE),
        text=lambda value: cut(value, TEXT),
        span=words.span,
        day=lambda value: value[:10],
        address=address,
        fact=words.fact,
        word=words.word,
        tone=words.tone,
    )
    text = environment.get_template(TEMPLATE).render(
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        policy=f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)};"
        " base-uri 'none'; form-action 'none'",
        **_shown(page),
    )
    return _OPTIONAL.sub("", text)


def _shown(page: Page) -> dict[str, Any]:
    """What the template asks for."""
    tone, sentence = words.says(page)
    nights = page.nights[:LATEST]
    return {
        "page": page,
        "tone": tone,
        "sentence": sentence,
        "behind": words.behind(page),
        "stamp": _stamp(page.now),
        "pulls": sorted(page.pulls, key=lambda each: not each.moved),
        "states": {each.key: each.state for each in page.pulls},
        "pages": {each.key: each.page for each in page.pulls},
        "moved": sum(each.moved for each in page.pulls),
        "moved_says": words.moved(page),
        "words": sorted({words.word(each) for each in page.patches}),
        "signals": SIGNALS,
        "nights": nights,
        "stages": _stages(nights),
        "took": {each.name: sum(stage.seconds for stage in each.stages) for each in nights},
        "groups": page_plots.groups(page.releases),
        "plotting": page_plots,
        "total": sum(page.downloads.counts.values()),
    }


def _stages(nights: tuple[Night, ...]) -> list[str]:
    """The stages that any of the nights had, in order; those of another version behind."""
    found = {stage.name for night in nights for stage in night.stages}
    return [*(name for name in NAMES if name in found), *sorted(found - set(NAMES))]


def address(value: str | None) -> str:
    """`value` where it is an address of the web that a reader may be sent to, else ""."""
    try:
        parts = urlsplit(value or "")
    except ValueError:
        return ""
    return value or "" if parts.scheme in ("http", "https") and parts.netloc else ""


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _stamp(when: datetime) -> str:
    return when.strftime("%Y-%m-%d %H:%M UTC")
