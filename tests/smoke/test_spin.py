"""What spins is found, with its beginning and period; what only looks like it is not."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.smoke.spin import Limits, Spin, Watch

BEFORE = "The user asks for the reason of a failure. I read the log from its end to its beginning. "
PASSAGE = (
    "Let me look at the parser again, since the tokens at the end of a line are dropped there "
    "and nothing else explains what comes out. But wait, the reader may have cut the line before. "
)
WORDS = [
    "amber",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "haven",
    "inlet",
    "jetty",
    "knoll",
    "larch",
    "mesa",
    "nylon",
    "opal",
]


def watched(text: str, *, reasoning: bool = False, limits: Limits | None = None) -> Spin | None:
    watch = Watch(limits)
    for start in range(0, len(text), 4):
        if spin := watch.feed(text[start : start + 4], reasoning=reasoning):
            return spin
    return watch.end()


@pytest.mark.parametrize("period", [2, 7, 40, 333, 2000, 30_000])
def test_a_repetition_of_any_period(period: int) -> None:
    pick = random.Random(period)
    cycle = "".join(chr(pick.randrange(97, 123)) for _ in range(period - 1)) + "."
    spin = watched(BEFORE + cycle * max(4, 400 // period))
    assert spin is not None and spin.kind == "repetition"
    assert (spin.begins, spin.period) == (len(BEFORE), period)
    assert spin.copies >= 3 and cycle.startswith(spin.what.removesuffix("..."))


def test_it_is_found_before_the_third_copy_of_a_long_loop_is_over() -> None:
    cycle = " ".join(random.Random(1).choices(WORDS, k=300)) + ". "
    assert watched(BEFORE + cycle * 3) is not None
    assert watched(BEFORE + cycle * 2) is None


@pytest.mark.parametrize("token", ["!", "lock", " the", "\n", "0", "哈"])
def test_a_run_of_one_token(token: str) -> None:
    spin = watched(BEFORE + token * 500)
    assert spin is not None and spin.kind == "run"
    assert spin.begins in (len(BEFORE), len(BEFORE) - 1) and spin.period == len(token)


def near(changes: int) -> Iterator[str]:
    pick = random.Random(changes)
    for _ in range(12):
        words = PASSAGE.split()
        for _ in range(changes):
            place = pick.randrange(len(words))
            words[place : place + 1] = pick.choice([[], [pick.choice(WORDS)], ["so", words[place]]])
        yield " ".join(words) + " "


@pytest.mark.parametrize("changes", [1, 2])
def test_a_near_repetition(changes: int) -> None:
    spin = watched(BEFORE + "".join(near(changes)))
    assert spin is not None and spin.kind == "near-repetition"
    assert len(BEFORE) - 20 < spin.begins < len(BEFORE) + len(PASSAGE)
    passages = spin.period / len(PASSAGE)
    assert round(passages) in (1, 2) and abs(passages - round(passages)) < 0.3, "one copy or two"


def test_a_near_repetition_that_is_first_seen_at_another_distance() -> None:
    """A phrase stands twice in the passage: the second copy begins as the middle of the first."""
    passage = (
        "look at the parser look at the parser again since the tokens of a line are dropped there "
        "and nothing explains what comes out of it now"
    )
    pick, text = random.Random(0), ""
    for _ in range(25):
        words = passage.split()
        words[pick.randrange(len(words))] = pick.choice(WORDS)
        text += " ".join(words) + " "
    spin = watched(BEFORE + text)
    assert spin is not None and spin.kind == "near-repetition"
    assert abs(spin.period - len(passage)) < 15 and spin.copies <= 5


@pytest.mark.parametrize(
    "template",
    ["Step {n}. ", "Attempt {n}: I check the result once more.\n", "{n}. Anaconda... "],
)
def test_a_counter(template: str) -> None:
    spin = watched(BEFORE + "".join(template.format(n=n) for n in range(7, 100)))
    assert spin is not None and spin.kind == "counter"
    assert spin.copies >= 3 and "repeat" not in spin.says


def test_a_thought_without_end() -> None:
    pick = random.Random(3)
    thought = " ".join("".join(pick.choices("abcdefgh", k=5)) for _ in range(2000))
    limits = Limits(reasoning=1000)
    spin = watched(thought, reasoning=True, limits=limits)
    assert spin is not None and (spin.kind, spin.begins) == ("endless", 0)
    assert "1,00" in spin.says
    assert watched(thought, limits=limits) is None, "what is not a thought has no such limit"


def tables(pick: random.Random) -> str:
    return "".join(f"| {pick.choice(WORDS)} | {pick.randrange(99)} | yes |\n" for _ in range(200))


def numbered(pick: random.Random) -> str:
    return "\n".join(f"{n}. {' '.join(pick.sample(WORDS, 5))}" for n in range(1, 200))


def records(pick: random.Random) -> str:
    rows = [{"id": n, "name": pick.choice(WORDS), "ok": True} for n in range(200)]
    return json.dumps(rows, indent=1)


def poem(pick: random.Random) -> str:
    refrain = "O larch, o grove, o silent fjord,\nthe ember glows alone.\n"
    return "\n".join(
        "".join(" ".join(pick.sample(WORDS, 6)) + "\n" for _ in range(4)) + refrain
        for _ in range(12)
    )


def counted(pick: random.Random) -> str:
    return "\n".join(str(n) for n in range(1, 201))


def separated(pick: random.Random) -> str:
    return f"\n{'-' * 160}\n".join(" ".join(pick.choices(WORDS, k=20)) for _ in range(40))


def encoded(pick: random.Random) -> str:
    return base64.encodebytes(pick.randbytes(4000)).decode()


def constants(pick: random.Random) -> str:
    return "\n".join(f"    case {n}: return handler_{n}(event);" for n in range(60))


@pytest.mark.parametrize(
    "write", [tables, numbered, records, poem, counted, separated, encoded, constants]
)
def test_long_and_legitimate(write: object) -> None:
    assert callable(write)
    for seed in range(5):
        assert watched(write(random.Random(seed))) is None


@given(st.lists(st.integers(0, 1500)), st.sampled_from(["near", "lock", "count"]))
def test_where_the_pieces_end_does_not_matter(cuts: list[int], kind: str) -> None:
    loops = {
        "near": "".join(near(1)),
        "lock": "lock" * 300,
        "count": "".join(f"Step {n}. " for n in range(150)),
    }
    text = (BEFORE + loops[kind])[:1500]
    watch, found = Watch(), None
    for begin, end in pairwise([0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]):
        found = found or watch.feed(text[begin:end])
    assert (found or watch.end()) == watched(text)


@given(st.text(max_size=400), st.integers(1, 9), st.booleans())
def test_no_text_breaks_it(text: str, times: int, reasoning: bool) -> None:
    watch = Watch(Limits(reasoning=50))
    for _ in range(times):
        watch.feed(text, reasoning=reasoning)
    spin = watch.end()
    assert spin is None or (spin.says.isprintable() and len(spin.what) < 500)


def test_lone_surrogates_and_escapes_are_shown_harmlessly() -> None:
    spin = watched(BEFORE + "\x1b[31m\ud800 no " * 100, reasoning=True)
    assert spin is not None and "\x1b" not in spin.says and "\ud800" not in spin.says


def test_memory_is_bounded() -> None:
    pick, watch = random.Random(4), Watch()
    for _ in range(60_000):
        assert watch.feed("".join(pick.choices("abcdefghij \n", k=8))) is None
    sizes = [len(watch._exact._text), len(watch._exact._anchors), len(watch._near._units)]
    assert sizes[0] < 160_000 and sizes[1] < 8_000 and sizes[2] <= 21_000
    assert len(watch._near._grams) <= 21_000
