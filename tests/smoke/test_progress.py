"""When a server stands still."""

from __future__ import annotations

import pytest

from patchq.smoke.metrics import parse
from patchq.smoke.model import NotRun
from patchq.smoke.probes.progress import Look, look, still_since


def test_it_stands_still_from_the_first_look_without_a_token() -> None:
    first, second = Look(1, 2, 100), Look(2, 3, 100)
    assert still_since(None, first) == first
    assert still_since(first, second) == first


def test_a_token_or_idleness_begins_anew() -> None:
    first = Look(1, 2, 100)
    assert still_since(first, moved := Look(2, 2, 101)) == moved
    assert still_since(first, Look(2, 0, 100)) is None


def test_requests_that_wait_count() -> None:
    text = "".join(
        f"vllm:{name} {value}\n"
        for name, value in {
            "num_requests_running": 0,
            "num_requests_waiting": 3,
            "prompt_tokens_total": 40,
            "generation_tokens_total": 2,
        }.items()
    )
    assert look(parse(text), 1.5) == Look(1.5, 3, 42)
    assert look(parse(text), 1.5, ours=5) == Look(1.5, 5, 42), "a stopped engine counts no new ones"


def test_counters_that_another_version_does_not_have_are_named() -> None:
    with pytest.raises(NotRun, match="/metrics has no vllm:num_requests_waiting, vllm:generation"):
        look(parse("vllm:num_requests_running 1\nvllm:prompt_tokens_total 1\n"), 0)
