"""What /metrics says (the Prometheus text format, 0.0.4), by vLLM's names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
PROMPT = "vllm:prompt_tokens_total"
GENERATED = "vllm:generation_tokens_total"
CACHE_HITS = "vllm:prefix_cache_hits_total"
CACHE_CONFIG = "vllm:cache_config_info"
FINISHED = "vllm:request_success_total"
"""By `finished_reason`: stop, length, abort, error, repetition."""
PREEMPTED = "vllm:num_preemptions_total"
DRAFTS = "vllm:spec_decode_num_drafts_total"
DRAFTED = "vllm:spec_decode_num_draft_tokens_total"
ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"
ACCEPTED_AT = "vllm:spec_decode_num_accepted_tokens_per_pos_total"

_LABEL = re.compile(r'([A-Za-z_]\w*)="((?:\\.|[^"\\])*)"')
_SAMPLE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*")


@dataclass(frozen=True)
class Sample:
    """A labelled value."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True)
class Metrics:
    """The samples by name."""

    samples: Mapping[str, tuple[Sample, ...]]

    def total(self, name: str) -> float | None:
        """Over all engines; None where the server does not have it."""
        found = self.samples.get(name)
        return sum(each.value for each in found) if found else None

    def by(self, name: str, label: str) -> dict[str, float]:
        """The totals by the value of a label."""
        found: dict[str, float] = {}
        for each in self.samples.get(name, ()):
            key = each.labels.get(label, "")
            found[key] = found.get(key, 0.0) + each.value
        return found

    def label(self, name: str, label: str) -> str | None:
        """The value of a label, of the first sample that has it."""
        told = (each.labels.get(label) for each in self.samples.get(name, ()))
        return next((value for value in told if value is not None), None)


def parse(text: str) -> Metrics:
    """Lines that are none are passed over: others write more than the format has."""
    found: dict[str, list[Sample]] = {}
    for line in text.splitlines():
        match = _SAMPLE.fullmatch(line)
        if match is None:
            continue
        name, labels, value = match.groups()
        try:
            number = float(value)
        except ValueError:
            continue
        if math.isfinite(number):
            found.setdefault(name, []).append(Sample(dict(_LABEL.findall(labels or "")), number))
    return Metrics({name: tuple(samples) for name, samples in found.items()})
