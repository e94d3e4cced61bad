"""Times of single requests: the clock is the test's, the server and its streams are real."""

from __future__ import annotations

import itertools
import threading

import pytest

from patchq.smoke.books import counting, paragraphs, prose
from patchq.smoke.client import Client
from patchq.smoke.load import Cell, Request, Taken, ask, together, value
from tests.smoke.fake import serving
from tests.smoke.paced import Paced


def request(prompt: str = "x" * 400, tokens: int = 5) -> Request:
    return Request("tiny", prompt, tokens, {"min_p": 0})


def test_decode_rate_first_token_and_wall_time() -> None:
    ticks = itertools.count(start=10)  # a look at the clock is a second
    with serving(Paced()) as server:
        taken = ask(Client(server.url), request(), lambda: float(next(ticks)))
    # Begun at 10, tokens at 11, 12, 13, 14, 15.
    assert taken == Taken(
        began=10.0,
        decode=1.0,
        ttft=1.0,
        wall=5.0,
        prompt_tokens=100,
        completion_tokens=5,
        cached_tokens=0,
    )
    (asked,) = server.asked
    assert asked["ignore_eos"] and asked["temperature"] == 0 and asked["min_p"] == 0


def test_tokens_out_of_a_buffer_give_no_rate() -> None:
    ticks = itertools.count()  # a look at the clock is a microsecond
    with serving(Paced()) as server:
        taken = ask(Client(server.url), request(), lambda: next(ticks) / 1e6)
    assert (taken.broke, taken.decode, taken.wall) == (None, None, 5e-6)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("cut", "the stream was cut"),
        ("500", "answers 500: CUDA error"),
        ("no usage", "does not tell its token counts"),
        ("short", "ended after 2 of 5 tokens (length)"),
        ("garbage", "what is no answer"),
        ("silent", "no answer within 0.2 s"),
    ],
)
def test_a_fault_is_told_and_never_a_figure(fault: str, says: str) -> None:
    with serving(Paced(frozenset({fault}))) as server:
        taken = ask(Client(server.url, patience=0.2 if fault == "silent" else 20), request())
    assert taken.broke is not None and says in taken.broke
    assert (taken.decode, taken.ttft, taken.wall) == (None, None, None)
    assert value([taken], "wall") is None


def test_requests_are_under_way_at_the_same_time() -> None:
    paced = Paced(meeting=threading.Barrier(3))
    with serving(paced) as server:
        client = Client(server.url)
        ask(client, request())
        found = together(client, [request(str(number) * 400) for number in range(3)])
    assert [each.broke for each in found] == [None] * 3
    assert paced.most_at_once == 3


def test_one_that_broke_leaves_a_burst_without_a_figure() -> None:
    good = Taken(0.0, decode=10.0, ttft=0.1, wall=1.0)
    slow = Taken(0.0, decode=20.0, ttft=0.3, wall=2.0)
    assert value([good, slow], "ttft") == pytest.approx(0.2)
    assert value([good, slow, Taken(0.0, broke="cut")], "ttft") is None


def test_prompts_are_books_that_no_cache_has_seen() -> None:
    text = prose("a mark", 7, 9000)
    assert text.startswith("[a mark]\n\n")
    assert len(text) == 9000 + len("[a mark]")
    assert text == prose("a mark", 7, 9000)
    assert text[20:] != prose("a mark", 8, 9000)[20:]
    pieces = {paragraph for book in paragraphs() for paragraph in book}
    assert all(piece in pieces for piece in text.split("\n\n")[1:-1])


def test_a_prompt_may_be_longer_than_the_books() -> None:
    whole = sum(len(paragraph) for book in paragraphs() for paragraph in book)
    assert len(prose("m", 1, 3 * whole)) == 3 * whole + 3


def test_structured_text_goes_on_as_it_began() -> None:
    assert counting("m").endswith("\n58\n59\n60\n")


def test_a_cell_says_what_it_is() -> None:
    assert Cell("prose", 8192, 4).name == "prose 8k x4 cold"
    assert Cell("structured", 1000, 1, warm=True).name == "structured 1000 x1 warm"
