"""Streams as they come: cut anywhere, damaged, with fields of other servers."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.smoke.model import NotRun
from patchq.smoke.stream import MAX_EVENT, Gatherer, Reply, events

WHOLE = (
    b': a comment\r\n\r\ndata: {"a": 1}\n\nevent: x\ndata:{"b": "\xc3\xbc"}\r\n\r\ndata: [DONE]\n\n'
)


@given(st.lists(st.integers(0, len(WHOLE))))
def test_where_the_pieces_end_does_not_matter(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(WHOLE)]
    pieces = [WHOLE[begin:end] for begin, end in pairwise(places)]
    assert list(events(pieces)) == ['{"a": 1}', '{"b": "ü"}']


@given(st.integers(0, len(WHOLE) - len(b"\n\n") - 1))
def test_a_stream_that_ends_before_its_end_was_cut(length: int) -> None:
    with pytest.raises(NotRun, match="the stream was cut"):
        list(events([WHOLE[:length]]))


def test_bytes_that_are_no_text_are_said() -> None:
    with pytest.raises(NotRun, match="not UTF-8"):
        list(events([b'data: "\xff"\n\n']))


def test_a_line_without_end_is_not_kept_for_ever() -> None:
    with pytest.raises(NotRun, match="no end"):
        list(events(b"data: " + b"x" * 65536 for _ in range(2 * MAX_EVENT // 65536)))


def gathered(*given: Any) -> Reply:
    gatherer = Gatherer()
    for event in given:
        gatherer.take(json.dumps(event))
    return gatherer.end()


def choice(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def test_a_reply_is_put_together() -> None:
    reply = gathered(
        choice(role="assistant", content=""),
        choice(reasoning="I "),
        choice(reasoning_content="see."),
        choice(content=" Yes"),
        choice(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]),
        choice(tool_calls=[{"index": 0, "function": {"arguments": '{"x":'}}]),
        choice(tool_calls=[{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}]),
        choice(tool_calls=[{"index": 0, "function": {"arguments": " 1}"}}]),
        {"choices": [{"delta": {}, "finish_reason": "tool_calls", "reasoning_closed": "cap"}]},
        {
            "choices": [],
            "usage": {
                "prompt_tokens": 5,
                "completion_tokens": 6,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
        },
    )
    assert (reply.reasoning, reply.answer) == ("I see.", "Yes")
    assert [(call.name, call.arguments) for call in reply.calls] == [("f", '{"x": 1}'), ("g", "{}")]
    assert (reply.finish, reply.closed) == ("tool_calls", "cap")
    assert (reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens) == (5, 6, 4)


def test_a_thought_that_leaked_is_not_the_answer() -> None:
    assert Reply(content="hm</think>\n amber 42 ").answer == "amber 42"


def test_what_spins_ends_the_request() -> None:
    gatherer = Gatherer()
    went_on = [gatherer.take(json.dumps(choice(content="lock"))) for _ in range(500)]
    assert not went_on[-1]
    reply = gatherer.end()
    assert reply.spin is not None and "lock" in reply.spin.what


@pytest.mark.parametrize(
    "data",
    [
        "no JSON",
        "[]",
        "null",
        '{"choices": [1]}',
        '{"choices": [{"delta": {"content": 5}}]}',
        '{"choices": [{"delta": {"tool_calls": [{"index": 7}]}}]}',
        '{"choices": [{"delta": {"tool_calls": [{"index": -1, "id": "x"}]}}]}',
        '{"choices": [{"delta": {"tool_calls": [{"index": 1e999}]}}]}',
        '{"usage": "many", "choices": []}',
        '{"usage": {"prompt_tokens": "7"}, "choices": []}',
        "[" * 100_000,
    ],
)
def test_an_event_that_is_no_answer_is_said(data: str) -> None:
    with pytest.raises(NotRun, match="what is no answer"):
        Gatherer().take(data)


def test_an_error_in_the_stream_is_told() -> None:
    with pytest.raises(NotRun, match="the server broke off: out of memory"):
        Gatherer().take('{"error": {"message": "out of memory"}}')


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ("choices", "delta", "content", "tool_calls", "index", "usage", "error")
                ),
                inner,
            )
        ),
    )
)
def test_no_event_breaks_the_client(event: Any) -> None:
    try:
        Gatherer().take(json.dumps(event))
    except NotRun:
        return
