"""Text that repeats itself character for character, with any period up to a window's length.

Every STRIDE characters the next GRAM are remembered; a GRAM that stood somewhere before gives a
period, and from then on the text is held against itself that far back, a block at a time. So the
cost of a character does not grow with the window, and what is found does not depend on how the
text was cut on its way here: blocks lie at fixed places.
"""

from __future__ import annotations

from dataclasses import dataclass

BLOCK = 64
GRAM = 24
WINDOW = 1 << 17
"""Characters that are kept, and so the longest period."""
_COPIED = 1.75
"""How often a period has come again: nearly twice, so that the third copy is not waited for."""
_SHORT = 1024
"""A period that may be a multiple of a shorter one; looking costs time."""


@dataclass(frozen=True)
class Echo:
    """`text` is one period; `begins` counts characters from the start; it lasts `length`."""

    begins: int
    text: str
    length: int


class Exact:
    """Takes blocks of BLOCK characters (the last one of a stream may be shorter)."""

    def __init__(self) -> None:
        self._text = ""
        self._dropped = 0
        self._anchors: dict[str, int] = {}
        self._indexed = 0
        self._period = 0
        self._since = 0
        self._cycle = 0

    def take(self, block: str) -> Echo | None:
        """What the text repeats, or repeated until just now: nearly three copies or more."""
        self._forget()
        place = self._dropped + len(self._text)
        self._text += block
        end = place + len(block)
        echo = None
        while place < end:
            if not self._period:
                place = self._look(place, end)
            else:
                until = self._agrees(place, end)
                echo = self._echo(until) or echo
                place = until
                if until < end:
                    self._period = 0
                    place += 1
        self._remember(end)
        return echo

    def _look(self, place: int, end: int) -> int:
        """Where to go on: behind the first place whose last characters stood somewhere before."""
        text, dropped, anchors = self._text, self._dropped, self._anchors
        for at in range(max(place - dropped, GRAM) + 1, end - dropped + 1):
            seen = anchors.get(text[at - GRAM : at])
            if seen is not None:
                self._period = at - GRAM - (seen - dropped)
                self._since = dropped + self._agreed_since(at)
                self._cycle = 0
                return dropped + at
        return end

    def _agreed_since(self, end: int) -> int:
        """The first index from which the text up to `end` equals what stands a period before."""
        text, period = self._text, self._period
        start, step = end, GRAM
        while step:
            first = start - step
            if first >= period and text[first:start] == text[first - period : start - period]:
                start, step = first, step * 2
            else:
                step //= 2
        return start

    def _agrees(self, place: int, end: int) -> int:
        """Up to where the text from `place` equals what stands a period before."""
        text, period = self._text, self._period
        low, high = place - self._dropped, end - self._dropped
        if text[low:high] == text[low - period : high - period]:
            return end
        while text[low] == text[low - period]:
            low += 1
        return self._dropped + low

    def _echo(self, until: int) -> Echo | None:
        run = until - self._since
        if not self._cycle:
            if run < _COPIED * self._period and self._period > _SHORT:
                return None
            self._cycle = self._primitive(until)
        begins, period = self._since - self._period, self._cycle
        if until - begins < (1 + _COPIED) * period:
            return None
        stop = until - self._dropped
        cycle, turn = self._text[stop - period : stop], (begins - until) % period
        return Echo(begins, cycle[turn:] + cycle[:turn], until - begins)

    def _primitive(self, until: int) -> int:
        """The shortest period of what was found with a multiple of it; alike for every copy."""
        stop = until - self._dropped
        cycle = self._text[stop - self._period : stop]
        return (cycle + cycle).find(cycle, 1)

    def _remember(self, end: int) -> None:
        text, dropped = self._text, self._dropped
        while self._indexed + GRAM <= end:
            start = self._indexed - dropped
            self._anchors[text[start : start + GRAM]] = self._indexed
            self._indexed += GRAM

    def _forget(self) -> None:
        if len(self._text) < WINDOW + WINDOW // 8:
            return
        surplus = len(self._text) - WINDOW
        self._text = self._text[surplus:]
        self._dropped += surplus
        self._anchors = {gram: at for gram, at in self._anchors.items() if at >= self._dropped}
        if self._period > WINDOW - BLOCK:
            self._period = 0
