"""Text that repeats itself with changes: other words here and there, or numbers that move on.

A reader goes through the units with a finger on the place that they repeat. Where a unit differs
the finger goes on by one; where several do it looks around for the next place that fits; where
none does it is lifted, until four units in a row stand somewhere before. What counts is how long
the finger follows at about one distance, and how much of it was the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from patchq.smoke.spin_units import NUMBER, Unit

WINDOW = 1 << 14
"""Units that are kept."""
_GRAM = 4
_LOST = 12
_AROUND = 12
_DRIFT = 0.1
"""Of the period at the beginning, as a share: what differs by more began by chance."""
_LESS = 0.97
"""What a unit that differs leaves of the quality."""
_SIGNS = frozenset('<>{}[]()=/|\\`$&+*_@"')


@dataclass
class Likeness:
    """How the text repeats what stands `period` units before.

    `begins`: its first copy, in characters. In units: `first`, the period at the beginning;
    `length` of what follows the first copy, of these `same`; its `words` and the `signs` of markup
    and code; its numbers that moved by a step equal to the last one (`steps`), or by another.
    `anew`: it had begun by chance, at another distance.
    """

    begins: int
    first: int
    period: int
    finger: int
    length: int = 0
    same: int = 0
    words: int = 0
    signs: int = 0
    steps: int = 0
    otherwise: int = 0
    lost: int = 0
    quality: float = 1.0
    anew: bool = False

    @property
    def copied(self) -> float:
        """How often the first copy has to come again: nearly twice; once more where the distance
        was not right at first, as it is in texts that say several things in one form."""
        return 2.6 if self.anew else 1.6


class Nearly:
    """Takes units, one by one."""

    def __init__(self) -> None:
        self._units: list[Unit] = []
        self._dropped = 0
        self._moves: list[int | None] = []
        self._grams: dict[tuple[str, ...], int] = {}
        self._likeness: Likeness | None = None

    def take(self, unit: Unit) -> Likeness | None:
        """What the text now repeats, if anything."""
        units = self._units
        here = self._dropped + len(units)
        text = unit.text
        units.append(unit)
        self._moves.append(None)
        likeness = self._likeness
        if likeness is not None:
            self._follow(likeness, unit, here)
        if len(units) >= _GRAM:
            gram = (units[-4].text, units[-3].text, units[-2].text, text)
            if self._likeness is None:
                before = self._grams.get(gram)
                if before is not None:
                    self._start(before, here)
            self._grams[gram] = here
        if len(units) > WINDOW + WINDOW // 4:
            self._forget()
        return self._likeness

    def _start(self, before: int, here: int) -> None:
        first = before - _GRAM + 1 - self._dropped
        likeness = Likeness(
            begins=self._units[first].begins,
            first=here - before,
            period=here - before,
            finger=before + 1,
            length=_GRAM,
            same=_GRAM,
        )
        for place in range(first, first + _GRAM):
            unit = self._units[place]
            likeness.words += unit.is_word
            likeness.signs += unit.text in _SIGNS
            if unit.text == NUMBER:
                self._number(likeness, place + likeness.period, place)
        self._likeness = likeness

    def _follow(self, likeness: Likeness, unit: Unit, here: int) -> None:
        finger = likeness.finger - self._dropped
        likeness.length += 1
        likeness.words += unit.is_word
        likeness.signs += unit.text in _SIGNS
        likeness.finger += 1
        if self._units[finger].text == unit.text:
            likeness.same += 1
            likeness.lost = 0
            likeness.quality += 0.03 * (1 - likeness.quality)
            if unit.text == NUMBER:
                self._number(likeness, here - self._dropped, finger)
            return
        likeness.lost += 1
        likeness.quality *= _LESS
        if likeness.lost >= 3 and self._look_around(likeness, here):
            return
        if likeness.lost > _LOST or likeness.quality < 0.65 or likeness.finger > here:
            self._likeness = None

    def _look_around(self, likeness: Likeness, here: int) -> bool:
        """Whether it begins anew: it had begun by chance, at another distance."""
        units, end = self._units, here - self._dropped
        wanted = [units[end - back].text for back in (2, 1, 0)]
        finger = likeness.finger - self._dropped
        reach = min(_AROUND, likeness.period // 3)
        for shift in range(1, reach + 1):
            for at in (finger + shift, finger - shift):
                if (
                    _GRAM <= at < end - 2
                    and [units[at - back].text for back in (3, 2, 1)] == wanted
                ):
                    likeness.finger = at + self._dropped
                    likeness.period = here + 1 - likeness.finger
                    likeness.same += 2
                    likeness.lost = 0
                    # Lists and tables with numbers are left alone: what is alike there is so by
                    # its form, and periods come and go.
                    if likeness.steps or likeness.otherwise:
                        return False
                    likeness.quality /= _LESS**2  # those two were the same after all
                    return self._anew(likeness, here)
        return False

    def _anew(self, likeness: Likeness, here: int) -> bool:
        """Once, and early: the copies of a song grow again and again."""
        off = abs(likeness.period - likeness.first) > max(2, _DRIFT * likeness.first)
        if not off or likeness.anew or likeness.length > likeness.period:
            return False
        self._start(likeness.finger - 1, here)
        if self._likeness is not None:
            self._likeness.anew = True
        return True

    def _number(self, likeness: Likeness, place: int, before: int) -> None:
        move = self._units[place].value - self._units[before].value
        self._moves[place] = move
        if move and self._moves[before] is not None:
            if move == self._moves[before]:
                likeness.steps += 1
            else:
                likeness.otherwise += 1

    def _forget(self) -> None:
        surplus = len(self._units) - WINDOW
        del self._units[:surplus], self._moves[:surplus]
        self._dropped += surplus
        first = self._dropped
        self._grams = {gram: at for gram, at in self._grams.items() if at >= first + _GRAM}
        if self._likeness is not None and self._likeness.finger - first < 16:
            self._likeness = None
