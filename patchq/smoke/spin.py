"""Does it spin? A watch over a streamed answer: loops, near loops, runs, counters, endless thought.

What counts as a loop is decided here, on what spin_exact.py and spin_near.py see; the thresholds
were set on one half of a labelled set and held against the other (tests/bench/spin.py,
docs/performance.md). The watch reads blocks of 64 characters, so that what it finds does not
depend on how the text was cut on its way; its memory is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from patchq.paths import show
from patchq.smoke.spin_exact import BLOCK, Echo, Exact
from patchq.smoke.spin_near import Likeness, Nearly
from patchq.smoke.spin_units import Units

Kind = Literal["repetition", "near-repetition", "run", "counter", "endless"]
_SHOWN = 60


@dataclass(frozen=True)
class Limits:
    """`reasoning`: most tokens of a thought.

    `repeated`, `drawn`: characters that a repetition fills at least, with letters in it, and
    without (separators, drawings, zeros). `nearly`: those that a near repetition fills. Of its
    units (words, numbers, signs) the share `alike` are the same, `loosely` where there are five
    copies, and `wordy` are words (tables, records and code have fewer); its copies differ in
    length by the share `drift` at most (a cumulative song's grow). Units that a counter fills:
    `counted` in prose, and `bare` without words or in markup and code.
    """

    reasoning: int = 32_768
    repeated: int = 256
    drawn: int = 384
    alike: float = 0.87
    loosely: float = 0.8
    wordy: float = 0.75
    nearly: int = 450
    drift: float = 0.1
    counted: int = 90
    bare: int = 3000


@dataclass(frozen=True)
class Spin:
    """`begins` (from the start of the stream) and `period` in characters, `period` 0 for `endless`.

    `what`: the beginning of a copy, blanks joined, control characters escaped. `says`: a sentence
    without a full stop.
    """

    kind: Kind
    begins: int
    period: int
    copies: int
    what: str
    says: str


class Watch:
    """Takes a stream piece by piece. What it has found it says again whenever it is asked."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._exact, self._near, self._units = Exact(), Nearly(), Units()
        self._pending = ""
        self._recent = ""
        self._read = 0
        self._pieces = 0
        self._bytes = 0
        self._thought: int | None = None
        self._found: Spin | None = None

    def feed(self, piece: str, *, reasoning: bool = False) -> Spin | None:
        """Whether the stream spins, `piece` included; `reasoning`: it belongs to a thought."""
        if self._found is None and piece:
            if reasoning:
                self._found = self._endless(piece)
            self._read += len(piece)
            text, place = self._pending + piece, 0
            while self._found is None and place + BLOCK <= len(text):
                self._found = self._judge(text[place : place + BLOCK])
                place += BLOCK
            self._pending = text[place:]
        return self._found

    def end(self) -> Spin | None:
        """Whether it spins, now that nothing more comes."""
        if self._found is None and self._pending:
            rest, self._pending = self._pending, ""
            self._found = self._judge(rest)
        return self._found

    def _judge(self, block: str) -> Spin | None:
        echo = self._exact.take(block)
        if echo is not None and (spin := repeated(echo, self._limits)):
            return spin
        self._recent = (self._recent + block)[-8 * BLOCK :]
        for unit in self._units.take(block):
            likeness = self._near.take(unit)
            if likeness is not None and likeness.length >= likeness.copied * likeness.period:
                kind = likened(likeness, unit.begins - likeness.begins, self._limits)
                if kind is not None:
                    return self._nearly(kind, likeness, unit.begins)
        return None

    def _nearly(self, kind: Kind, likeness: Likeness, here: int) -> Spin:
        copies = round(1 + likeness.length / likeness.period)
        period = max(1, round((here - likeness.begins) / copies))
        return _spin(kind, likeness.begins, period, copies, self._recent[-max(period, _SHOWN) :])

    def _endless(self, piece: str) -> Spin | None:
        """A piece is a token or several; four bytes a token is a common mean."""
        if self._thought is None:
            self._thought = self._read
        self._pieces += 1
        self._bytes += len(piece) if piece.isascii() else len(piece.encode("utf-8", "replace"))
        tokens = max(self._pieces, self._bytes // 4)
        if tokens <= self._limits.reasoning:
            return None
        return _spin("endless", self._thought, 0, 1, piece, f"a thought of {tokens:,} tokens")


def repeated(echo: Echo, limits: Limits) -> Spin | None:
    """Whether a repetition is long enough to be none on purpose."""
    lettered = any(character.isalpha() for character in echo.text)
    if echo.length < (limits.repeated if lettered else limits.drawn):
        return None
    period = len(echo.text)
    run = period == 1 or (period <= 16 and echo.text.strip().isalpha())
    return _spin(
        "run" if run else "repetition", echo.begins, period, round(echo.length / period), echo.text
    )


def likened(likeness: Likeness, characters: int, limits: Limits) -> Kind | None:
    """What a likeness of nearly three copies is: a counter, a near repetition, or nothing.

    `characters`: what it fills, its first copy included.
    """
    length, period = likeness.length, likeness.period
    span = length + period
    alike = likeness.same / length
    if likeness.steps and alike >= 0.97 and likeness.otherwise * 10 <= likeness.steps:
        worded = likeness.words >= 0.2 * length and likeness.signs <= 0.1 * length
        return "counter" if span >= (limits.counted if worded else limits.bare) else None
    changed = likeness.same - likeness.otherwise
    if (
        changed == length
        or characters < limits.nearly
        or likeness.words < limits.wordy * length
        or abs(period - likeness.first) > max(2, limits.drift * likeness.first)
    ):
        return None
    least = limits.loosely if span >= 5 * period else limits.alike
    return "near-repetition" if changed >= least * length else None


_SAYS = {
    "repetition": "it repeats itself",
    "near-repetition": "it repeats itself with small changes",
    "run": "it says the same thing over and over",
    "counter": "it counts on and changes nothing else",
    "endless": "its thought does not end",
}


def _spin(
    kind: Kind, begins: int, period: int, copies: int, text: str, much: str | None = None
) -> Spin:
    what = show(" ".join(text[: 4 * _SHOWN].split())) or "blanks"
    what = what if len(what) <= _SHOWN else f"{what[: _SHOWN - 3]}..."
    much = much or f"{copies} copies of {period} characters"
    says = f"{_SAYS[kind]} from character {begins} on: {much}, {what!r}"
    return Spin(kind, begins, period, copies, what, says)
