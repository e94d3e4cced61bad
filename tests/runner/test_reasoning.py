"""Reasoning that does not stop, on real servers: what stock vLLM does, and what the series does.

The client knows nothing of the flags. The tiny model does what the message says
(tests/support/tinymodel.py). Greedy, for a stock server on the CPU loses its way where it samples
and drafts at once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.runner.profiles import REASONING_CAP
from tests.support import runner
from tests.support.runner_server import Server, refused

ANSWER = " The answer is yes."
LOOP = " Round and round it goes"
NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}
NO_SWITCH = """\
[gMASK]<sop>{% for message in messages %}<|{{ message.role }}|>
{{ message.content }}{% endfor %}<|assistant|><think>"""
"""A template as GLM-5.3's, which opens a thought whatever `enable_thinking` says."""


def ask(server: Server, message: str, **fields: Any) -> dict[str, Any]:
    (choice,) = server.chat(message, **{"temperature": 0, **fields})["choices"]
    result: dict[str, Any] = choice
    return result


def closed(server: Server, reason: str) -> float:
    return server.metric("vllm:reasoning_closed_total", reason=reason)


def streamed(server: Server, message: str, **fields: Any) -> tuple[str, str, dict[str, Any]]:
    """Reasoning, content and the last choice of a stream."""
    chunks = [chunk["choices"][0] for chunk in server.stream(message, temperature=0, **fields)]
    deltas = [chunk["delta"] for chunk in chunks]
    reasoning = "".join(delta.get("reasoning") or "" for delta in deltas)
    return reasoning, "".join(delta.get("content") or "" for delta in deltas), chunks[-1]


# --- A cap on reasoning ---------------------------------------------------------------------


@pytest.mark.serves("stock", "plain")
def test_without_the_flag_it_thinks_until_the_length_limit(server: Server) -> None:
    choice = ask(server, "please wander")
    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"] is None
    assert "reasoning_closed" not in choice
    assert "vllm:reasoning_closed" not in server.get("/metrics").text


@pytest.mark.serves("guards", "speculative")
def test_reasoning_is_ended_at_the_cap_and_the_answer_begins(server: Server) -> None:
    before = closed(server, "cap")
    choice = ask(server, "please wander")
    assert choice["message"]["content"] == ANSWER
    assert choice["message"]["reasoning"].split() == [f"w{n}" for n in range(REASONING_CAP)]
    assert (choice["finish_reason"], choice["reasoning_closed"]) == ("stop", "cap")
    assert closed(server, "cap") == before + 1
    assert "closed after 40 tokens (cap)" in server.log


@pytest.mark.serves("guards", "speculative")
def test_a_stream_says_it_in_the_last_chunk(server: Server) -> None:
    reasoning, content, last = streamed(server, "please wander")
    assert len(reasoning.split()) == REASONING_CAP
    assert content == ANSWER
    assert (last["finish_reason"], last["reasoning_closed"]) == ("stop", "cap")


@pytest.mark.serves("guards", "speculative")
def test_many_at_once_keep_apart(server: Server) -> None:
    keep_apart(server)


@pytest.mark.serves("guards")
def test_many_at_once_keep_apart_where_they_are_sampled(server: Server) -> None:
    """Not with drafts: there stock itself gives wrong tokens on the CPU."""
    keep_apart(server, temperature=1.0, seed=3)


def keep_apart(server: Server, **fields: Any) -> None:
    messages = ["wander", "short", "loop", "stopper"] * 4
    with ThreadPoolExecutor(len(messages)) as pool:
        choices = list(pool.map(lambda text: ask(server, text, **fields), messages))
    told = [(choice["message"]["content"], choice.get("reasoning_closed")) for choice in choices]
    assert (
        told
        == [
            (ANSWER, "cap"),
            (ANSWER, None),
            (ANSWER, "loop"),
            (" Now STOP here please.", None),
        ]
        * 4
    )
    assert server.metric("vllm:num_preemptions_total") == 0


@pytest.mark.serves("guards", "speculative")
def test_what_was_put_in_has_log_probabilities(server: Server) -> None:
    choice = ask(server, "please wander", logprobs=True, top_logprobs=2, max_tokens=60)
    tokens = [entry["token"] for entry in choice["logprobs"]["content"]]
    assert tokens[REASONING_CAP - 1 : REASONING_CAP + 2] == [" w39", "</think>", " The"]
    assert choice["message"]["content"] == ANSWER


@pytest.mark.serves("guards", "speculative")
def test_a_grammar_begins_with_the_answer(server: Server) -> None:
    grammar = {"structured_outputs": {"choice": [" The answer is yes.", " no"]}}
    choice = ask(server, "please wander", **grammar)
    assert choice["message"]["content"] == ANSWER
    assert choice["reasoning_closed"] == "cap"


@pytest.mark.serves("guards")
def test_a_budget_of_the_request_is_its_own(server: Server) -> None:
    choice = ask(server, "please wander", thinking_token_budget=50)
    assert len(choice["message"]["reasoning"].split()) == 50
    assert "reasoning_closed" not in choice


@pytest.mark.serves("guards", "speculative")
def test_the_length_of_the_request_is_kept(server: Server) -> None:
    for length in range(REASONING_CAP - 1, REASONING_CAP + 4):
        answer = server.chat("please wander", max_tokens=length, temperature=0)
        assert answer["usage"]["completion_tokens"] == length
        assert answer["choices"][0]["finish_reason"] == "length"


@pytest.mark.serves("guards", "speculative")
def test_nothing_is_put_into_a_prompt_without_reasoning(server: Server) -> None:
    # The likeliest: of what stands in no template the model is not sure.
    body = {"model": "tiny", "prompt": "wander", "max_tokens": 60, "temperature": 0}
    body["repetition_detection"] = {}
    (choice,) = server.post("/v1/completions", body).json()["choices"]
    assert "</think>" not in choice["text"]
    assert choice["finish_reason"] == "length"


def test_a_cap_without_markers_is_refused(release: str, tmp_path: Path) -> None:
    said = refused(
        runner.patched(release), tmp_path, "--reasoning-config.max_reasoning_tokens", "10"
    )
    assert "Set --reasoning-parser" in said


# --- Reasoning that loops -------------------------------------------------------------------


@pytest.mark.serves("stock", "plain")
def test_without_the_flag_a_loop_in_reasoning_ends_the_request(server: Server) -> None:
    detection = {"max_pattern_size": 10, "min_count": 4}
    choice = ask(server, "please loop", repetition_detection=detection)
    assert choice["finish_reason"] == "repetition"
    assert choice["message"]["content"] is None


@pytest.mark.serves("guards", "speculative")
def test_a_loop_ends_the_reasoning_and_the_answer_begins(server: Server) -> None:
    before = closed(server, "loop")
    choice = ask(server, "please loop")
    assert choice["message"]["content"] == ANSWER
    assert choice["message"]["reasoning"] == LOOP * 4
    assert (choice["finish_reason"], choice["reasoning_closed"]) == ("stop", "loop")
    assert choice["stop_reason"] is None
    assert closed(server, "loop") == before + 1


@pytest.mark.serves("guards", "speculative")
def test_an_answer_that_loops_is_still_ended(server: Server) -> None:
    choice = ask(server, "please chatter")
    assert choice["message"]["reasoning"] == " Quick idea"
    assert (choice["finish_reason"], choice["stop_reason"]) == ("repetition", "repetition_detected")


@pytest.mark.serves("guards", "speculative")
def test_a_tool_call_inside_a_thought_is_not_cut_in_two(server: Server) -> None:
    choice = ask(server, "caller", max_tokens=80, repetition_detection={})
    assert "reasoning_closed" not in choice
    assert choice["finish_reason"] == "length"


# --- Stop strings ---------------------------------------------------------------------------


@pytest.mark.serves("stock", "plain")
def test_without_the_flag_a_stop_string_ends_the_thought(server: Server) -> None:
    choice = ask(server, "stopper", stop=["STOP"])
    assert choice["stop_reason"] == "STOP"
    assert choice["message"]["content"] is None


@pytest.mark.serves("guards", "speculative")
def test_stop_strings_fire_in_the_answer_alone(server: Server) -> None:
    choice = ask(server, "stopper", stop=["STOP"])
    assert choice["message"]["reasoning"] == " Must I STOP thinking"
    assert choice["message"]["content"] == " Now "
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", "STOP")

    reasoning, content, last = streamed(server, "stopper", stop=["STOP"])
    assert (reasoning, content) == (" Must I STOP thinking", " Now ")
    assert last["stop_reason"] == "STOP"


@pytest.mark.serves("guards")
def test_stop_strings_work_without_thinking(server: Server) -> None:
    choice = ask(server, "stopper", stop=["STOP"], **NO_THINKING)
    assert choice["message"]["content"] == " Now "


# --- Thinking switched off ------------------------------------------------------------------


@pytest.fixture(params=["whole", "streamed"])
def said(request: pytest.FixtureRequest, server: Server) -> Any:
    def say(message: str, **fields: Any) -> tuple[str, str]:
        if request.param == "streamed":
            return streamed(server, message, **fields)[:2]
        message_ = ask(server, message, **fields)["message"]
        return message_["reasoning"] or "", message_["content"] or ""

    return say


@pytest.mark.serves("stock", "plain")
def test_without_the_flag_a_thought_is_content(said: Any) -> None:
    _, content = said("short", chat_template=NO_SWITCH, **NO_THINKING)
    assert content.startswith(" Brief thought")
    assert content.endswith(ANSWER)


@pytest.mark.serves("guards", "speculative")
def test_no_thought_in_the_content(said: Any) -> None:
    switched = said("short", chat_template=NO_SWITCH, **NO_THINKING)
    assert switched == (" Brief thought", ANSWER)


@pytest.mark.serves("guards")
def test_a_model_that_does_not_think_answers(said: Any) -> None:
    assert said("short", **NO_THINKING) == ("", ANSWER)


@pytest.mark.serves("guards")
def test_a_thought_after_the_template_closed_it(server: Server) -> None:
    """Known once the whole text is there; a stream has sent its words before."""
    message = ask(server, "stubborn", **NO_THINKING)["message"]
    assert (message["reasoning"], message["content"]) == (" Still at work short", ANSWER)
