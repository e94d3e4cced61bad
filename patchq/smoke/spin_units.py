"""Text as units: words, numbers, signs. What is compared where text repeats itself nearly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# Scripts that write no blanks between words give a unit for each character.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0003ffff"
_UNIT = re.compile(
    rf"([^\W\d_{_UNSPACED}]{{1,32}})|(\d{{1,18}})|(\n(?:[^\S\n]{{0,64}}\n){{0,8}})|[^\S\n]{{1,64}}|([^\w\s])\4{{0,255}}|."
)
NUMBER = "#"


class Unit(NamedTuple):
    """`text`: a word as it stands, NUMBER, a sign (once, however often it stands), or a newline.

    `begins` in characters from the start; `value`: of a number, else -1.
    """

    text: str
    begins: int
    value: int
    is_word: bool


class Units:
    """Cuts a stream into units; blanks are left out."""

    def __init__(self) -> None:
        self._rest = ""
        self._begins = 0

    def take(self, block: str) -> Iterator[Unit]:
        """All units but the last, which may go on."""
        text = self._rest + block
        start, last = self._begins, None
        for found in _UNIT.finditer(text):
            if last is not None:
                yield from _unit(last, start)
            last = found
        kept = last.start() if last is not None else len(text)
        self._rest = text[kept:]
        self._begins = start + kept


def _unit(found: re.Match[str], start: int) -> Iterator[Unit]:
    kind = found.lastindex
    begins = start + found.start()
    text = found.group()
    if kind == 1:
        yield Unit(text, begins, -1, True)
    elif kind == 2:
        yield Unit(NUMBER, begins, int(text) if text.isdecimal() else -1, False)
    elif kind == 3:
        yield Unit("\n", begins, -1, False)
    elif not text.isspace():
        yield Unit(text[0], begins, -1, text[0].isalpha())
