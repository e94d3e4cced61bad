"""The series' scheduler over a model runner that is only played, for what a CPU does not run.

On a CPU vLLM schedules one step after the other and always takes the V1 runner. Here the real
scheduler works as on a GPU: it plans a step before it has the output of the one before, and hands
its requests over as the V1 or the V2 runner takes them. The played runner knows of a request what
the real one would, and answers with the tiny model's next token. Run by a runner environment's
Python, `simulated.py MODEL`: prints the tokens that the client gets, for every combination.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from typing import Any

import torch
from vllm import SamplingParams
from vllm.config import set_current_vllm_config
from vllm.config.reasoning import ReasoningConfig
from vllm.engine.arg_utils import EngineArgs
from vllm.sampling_params import RepetitionDetectionParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.reasoning_guard import with_reasoning_guard
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.core.single_type_kv_cache_manager import register_all_kvcache_specs
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import DraftTokenIds, ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

BLOCK = 16
CAP = 23
THINK, THINK_END, END = 900, 901, 902
WANDER, LOOP, ANSWER = range(100, 160), range(200, 205), range(300, 305)


def following(token: int) -> int:
    """The tiny model in short: two thoughts without an end, one answer."""
    if token == THINK_END:
        return ANSWER[0]
    if token == ANSWER[-1]:
        return END
    for words in (WANDER, LOOP):
        if token in words:
            return words[(token - words[0] + 1) % len(words)]
    return token + 1


class PlayedRunner:
    """What a runner remembers of its requests, and how it is told of them."""

    def __init__(self, v2: bool) -> None:
        self.v2 = v2
        self.prompts: dict[str, list[int]] = {}
        self.tokens: dict[str, list[int]] = {}

    def execute(self, plan: Any) -> ModelRunnerOutput:
        gone = set(plan.finished_req_ids)
        if self.v2:
            gone |= plan.preempted_req_ids or set()
        for name in gone:
            self.tokens.pop(name, None)
        for new in plan.scheduled_new_reqs:
            self.prompts[new.req_id] = list(new.prompt_token_ids)
            known = new.prefill_token_ids if self.v2 else new.prompt_token_ids
            self.tokens[new.req_id] = list(known)
        cached = plan.scheduled_cached_reqs
        computed = {new.req_id: new.num_computed_tokens for new in plan.scheduled_new_reqs}
        computed |= dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
        for name, outputs in zip(cached.req_ids, cached.num_output_tokens, strict=True):
            if name in cached.resumed_req_ids and outputs:
                assert not self.v2, "the V2 runner takes a resumed request for a new one"
                resumed = cached.all_token_ids[name][-outputs:]
                self.tokens[name] = self.prompts[name] + resumed
        names = list(plan.num_scheduled_tokens)
        sampled = []
        for name in names:
            tokens = self.tokens[name]
            drafts = len(plan.scheduled_spec_decode_tokens.get(name, ()))
            end = computed[name] + plan.num_scheduled_tokens[name] - drafts
            if end < len(tokens):
                sampled.append([])  # a part of a prompt
                continue
            new = [following(tokens[-1])]
            for _ in range(drafts):
                new.append(following(new[-1]))
            tokens += new
            sampled.append(new)
        numbers = {name: number for number, name in enumerate(names)}
        return ModelRunnerOutput(
            req_ids=names, req_id_to_index=numbers, sampled_token_ids=sampled, pooler_output=[]
        )

    def drafts(self, names: list[str], count: int) -> DraftTokenIds:
        rows = []
        for name in names:
            row = [self.tokens[name][-1]]
            for _ in range(count):
                row.append(following(row[-1]))
            rows.append(row[1:])
        return DraftTokenIds(names, rows)


def scheduler_for(model: str, v2: bool, ahead: bool, drafts: int) -> tuple[Scheduler, Any]:
    speculative = {"method": "ngram", "num_speculative_tokens": drafts, "prompt_lookup_max": 4}
    config = EngineArgs(
        model=model,
        max_model_len=1024,
        block_size=BLOCK,
        enforce_eager=True,
        reasoning_parser="glm45",
        reasoning_config=ReasoningConfig(max_reasoning_tokens=CAP, end_reasoning_loops=True),
        speculative_config=speculative if drafts else None,
    ).create_engine_config()
    config.scheduler_config.async_scheduling = ahead
    config.cache_config.num_gpu_blocks = 100
    config.reasoning_config._reasoning_start_token_ids = [THINK]
    config.reasoning_config._reasoning_end_token_ids = [THINK_END]
    config.reasoning_config._natural_reasoning_end_token_ids = [THINK_END]
    spec = FullAttentionSpec(block_size=BLOCK, num_kv_heads=1, head_size=1, dtype=torch.float32)
    register_all_kvcache_specs(config)
    chosen = with_reasoning_guard(AsyncScheduler if ahead else Scheduler, config)
    assert chosen.__name__.startswith("Guarded")
    scheduler = chosen(
        vllm_config=config,
        kv_cache_config=KVCacheConfig(100, [], [KVCacheGroupSpec(["layer"], spec)]),
        structured_output_manager=StructuredOutputManager(config),
        block_size=BLOCK,
        log_stats=True,
    )
    scheduler.use_v2_model_runner = v2
    return scheduler, config


def request(name: str, first: int) -> Request:
    params = SamplingParams(
        max_tokens=500, repetition_detection=RepetitionDetectionParams(8, 0, 4), temperature=0
    )
    params.update_from_generation_config({}, END)
    return Request(
        request_id=name,
        # A prompt of several blocks, so that some are found again.
        prompt_token_ids=[*range(400, 440), THINK, first],
        sampling_params=params,
        pooling_params=None,
        block_hasher=get_request_block_hasher(BLOCK, sha256),
    )


def play(model: str, v2: bool, ahead: bool, drafts: int) -> dict[str, Any]:
    scheduler, config = scheduler_for(model, v2, ahead, drafts)
    init_none_hash(sha256)
    runner = PlayedRunner(v2)
    with set_current_vllm_config(config):
        for name, first in (("wander", WANDER[0]), ("loop", LOOP[0])):
            scheduler.add_request(request(name, first))
        given: dict[str, list[int]] = {"wander": [], "loop": []}
        marks: dict[str, str] = {}
        under_way: deque[Any] = deque()
        for _ in range(400):
            plan = scheduler.schedule()
            if plan.total_num_scheduled_tokens:
                under_way.append((plan, runner.execute(plan)))
            if not under_way:
                break
            if len(under_way) > ahead or not plan.total_num_scheduled_tokens:
                done, result = under_way.popleft()
                told = scheduler.update_from_output(done, result)
                for output in told.get(0).outputs if told else ():
                    given[output.request_id] += output.new_token_ids
                    if output.finish_reason is None and output.stop_reason:
                        marks[output.request_id] = output.stop_reason
                if drafts and not ahead:
                    names = [name for name in runner.tokens if name in scheduler.requests]
                    scheduler.update_draft_token_ids(runner.drafts(names, drafts))
    return {"given": given, "marks": marks, "left": scheduler.get_num_unfinished_requests()}


def every_way(model: str) -> dict[str, Any]:
    """By "runner-scheduling-drafts"."""
    return {
        f"{runner}-{scheduling}-{drafts}": play(
            model, runner == "V2", scheduling == "ahead", drafts
        )
        for runner in ("V1", "V2")
        for scheduling in ("steps", "ahead")
        for drafts in (0, 3)
    }


if __name__ == "__main__":
    print("RESULT " + json.dumps(every_way(sys.argv[1])))
