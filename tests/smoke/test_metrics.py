"""What /metrics says, in the forms that servers write."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from patchq.smoke.metrics import parse

TEXT = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a \\"b\\", {c}"} 2.0
vllm:num_requests_running{engine="1",model_name="x"} 1.0
vllm:prompt_tokens_total 17 1395066363000
vllm:cache_config_info{block_size="128",enable_prefix_caching="True",engine="0"} 1.0
vllm:per_pos_total{position="0"} 3.0
vllm:per_pos_total{position="1"} 1.5e+01
vllm:latency_bucket{le="+Inf"} +Inf
vllm:broken{ 1
"""


def test_totals_labels_and_values() -> None:
    found = parse(TEXT)
    assert found.total("vllm:num_requests_running") == 3
    assert found.total("vllm:prompt_tokens_total") == 17
    assert found.label("vllm:cache_config_info", "block_size") == "128"
    assert found.by("vllm:per_pos_total", "position") == {"0": 3, "1": 15}


def test_what_is_not_there_is_none() -> None:
    found = parse(TEXT)
    assert found.total("vllm:generation_tokens_total") is None
    assert found.total("vllm:latency_bucket") is None
    assert found.label("vllm:cache_config_info", "size") is None
    assert found.by("vllm:nothing", "position") == {}


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    parse(text)
