"""The kit itself: what a test of the series stands on."""

from __future__ import annotations

import pytest

from tests.support.runner_server import Server


@pytest.mark.serves("stock")
def test_the_tiny_model_spins_on_the_stock_server(server: Server) -> None:
    (choice,) = server.chat("please loop", max_tokens=200)["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"] is None
    assert "patchq" not in server.get("/version").json()


@pytest.mark.serves("plain")
def test_the_series_alone_changes_nothing(server: Server) -> None:
    (choice,) = server.chat("please loop", max_tokens=200)["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"] is None
    assert server.get("/version").json()["patchq"]["series"] == "vllm"
    assert server.metric("vllm:patchq_info", series="vllm") == 1


@pytest.mark.serves("stock", "plain")
def test_the_model_does_what_the_message_says(server: Server) -> None:
    (choice,) = server.chat("be short", temperature=1.0)["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"] == " The answer is yes."
    assert choice["message"]["reasoning"] == " Brief thought"
