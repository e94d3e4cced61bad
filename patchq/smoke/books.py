"""Text to measure with: books, since random text defeats speculation and cannot be continued.

`books.txt.gz` is Alice's Adventures in Wonderland (Lewis Carroll, 1865) and Paradise Lost (John
Milton, 1667), both in the public domain, without what their transcribers put around them: 600,000
characters, some 160,000 tokens. A longer prompt has the same paragraphs again, in another order.
"""

from __future__ import annotations

import gzip
import random
from functools import lru_cache
from importlib.resources import files
from itertools import chain, repeat

_LISTED = 60


@lru_cache(maxsize=1)
def paragraphs() -> tuple[tuple[str, ...], ...]:
    """The paragraphs of each book, in its order."""
    raw = gzip.decompress((files("patchq.smoke") / "books.txt.gz").read_bytes()).decode("ascii")
    return tuple(tuple(book.strip("\n").split("\n\n")) for book in raw.split("\f"))


def prose(mark: str, place: int, characters: int) -> str:
    """`mark` on a line, then `characters` characters of books from the place that `place` gives.

    The mark comes first, so that nothing of a prompt lies in a cache unless it was asked before.
    """
    chance = random.Random(place)  # noqa: S311 - the same text again is what is wanted
    books = paragraphs()
    book = chance.choice(books)
    start = chance.randrange(len(book))
    parts = [f"[{mark}]"]
    length = 0
    for paragraph in chain(book[start:], chain.from_iterable(map(_shuffled, repeat(chance)))):
        parts.append(paragraph)
        length += len(paragraph) + 2
        if length >= characters:
            break
    return "\n\n".join(parts)[: len(parts[0]) + characters]


def _shuffled(chance: random.Random) -> list[str]:
    """All paragraphs, in runs of some length, so that it reads as a book where it is cut."""
    runs = [book[at : at + _LISTED] for book in paragraphs() for at in range(0, len(book), _LISTED)]
    chance.shuffle(runs)
    return [paragraph for run in runs for paragraph in run]


def counting(mark: str) -> str:
    """A list of numbers to go on with: text that a drafter can foretell."""
    numbers = "\n".join(str(number) for number in range(1, _LISTED + 1))
    return f"[{mark}]\n\nCounting to a thousand, one number a line:\n\n{numbers}\n"
