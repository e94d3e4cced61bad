"""Faults in a vLLM that runs, one at a time: a plugin that vLLM loads in each of its processes.

`plugin` lays it into a folder for PYTHONPATH, as the entry point `vllm.general_plugins` that
vLLM's own documentation has for such things. The file that PATCHQ_FAULT names says which fault is
on: it may change while the server runs. Every function that is replaced does what it did where
its fault is not on. This module is run by the server's Python, so it imports nothing of ours.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

SWITCH = "PATCHQ_FAULT"


def plugin(folder: Path) -> Path:
    """The folder for PYTHONPATH, made."""
    (folder / "vllm_faults.py").write_bytes(Path(__file__).read_bytes())
    info = folder / "vllm_faults-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: vllm-faults\nVersion: 1\n", "utf-8"
    )
    entry = "[vllm.general_plugins]\nfaults = vllm_faults:install\n"
    (info / "entry_points.txt").write_text(entry, "utf-8")
    return folder


def on(fault: str) -> bool:
    try:
        return Path(os.environ[SWITCH]).read_text("utf-8") == fault
    except OSError:
        return False


def install() -> None:
    """Called in every process of the server, perhaps more than once.

    Workers are left alone: vLLM 0.32 looks through all that is imported there, and stumbles.
    """
    import multiprocessing

    import vllm

    if not hasattr(vllm, "faults_installed"):
        vllm.faults_installed = True  # type: ignore[attr-defined]
        name = multiprocessing.current_process().name
        of = {"MainProcess": (template, answers), "EngineCore": (cache, speculation)}
        for each in of.get(name, ()):
            each()


def template() -> None:
    """`wrong template`: a blank more before a system message."""
    from vllm.renderers import hf

    resolve = hf.resolve_chat_template

    def resolved(*args: Any, **kwargs: Any) -> Any:
        text = resolve(*args, **kwargs)
        if on("wrong template"):
            return text.replace(
                "{%- else -%}\n<|", "{%- else -%}\n{{ ' ' if m.role == 'system' }}<|"
            )
        return text

    hf.resolve_chat_template = resolved


def answers() -> None:
    """`leaks`: with thinking off a thought stands in the content, as a parser leaves it there that
    was told of none. `markup`: a piece of a call stands in what the user sees, beside the call.
    `no calls`: the calls are told as text, as a parser for another model does."""
    import json

    from vllm.entrypoints.openai.chat_completion.serving import OpenAIServingChat

    before = OpenAIServingChat.chat_completion_stream_generator
    content = '"delta":{"content":"'

    async def after(self: Any, request: Any, *args: Any, **kwargs: Any) -> AsyncIterator[str]:
        leaks = (request.chat_template_kwargs or {}).get("enable_thinking") is False and on("leaks")
        async for event in before(self, request, *args, **kwargs):
            if leaks and content in event and f'{content}"' not in event:
                leaks = False
                yield event.replace(content, f"{content}Let me see.</think>", 1)
            else:
                yield spoiled(event) if '"tool_calls":[{' in event else event

    def spoiled(event: str) -> str:
        if on("markup"):
            return event.replace('"delta":{', '"delta":{"content":"</arg_value>",', 1)
        if not on("no calls"):
            return event
        value = json.loads(event.removeprefix("data: "))
        for choice in value["choices"]:
            calls = choice["delta"].pop("tool_calls", [])
            said = [(call["function"].get("arguments") or "") for call in calls]
            choice["delta"]["content"] = "".join(said)
        return f"data: {json.dumps(value)}\n\n"

    OpenAIServingChat.chat_completion_stream_generator = after


def cache() -> None:
    """`cache off`: nothing is looked up. `cache corrupt`: the first two blocks of what is found are
    others."""
    from vllm.v1.core.kv_cache_manager import KVCacheManager

    enabled, computed = (
        KVCacheManager.prefix_cache_lookup_enabled,
        KVCacheManager.get_computed_blocks,
    )

    def lookup(self: Any, request: Any) -> bool:
        return not on("cache off") and bool(enabled(self, request))

    def blocks(self: Any, request: Any) -> Any:
        found, *rest = computed(self, request)
        if on("cache corrupt") and found.blocks and len(found.blocks[0]) > 2:
            wrong = tuple([group[-1]] * 2 + list(group[2:]) for group in found.blocks)
            found = type(found)(wrong)
        return (found, *rest)

    KVCacheManager.prefix_cache_lookup_enabled = lookup
    KVCacheManager.get_computed_blocks = blocks


def speculation() -> None:
    """`no drafts`: what the drafter finds is thrown away. `pinned`: the first draft is counted as
    accepted."""
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.spec_decode.metrics import SpecDecodingStats

    update, observe = Scheduler.update_draft_token_ids, SpecDecodingStats.observe_draft

    def updated(self: Any, drafts: Any) -> None:
        if on("no drafts"):
            drafts.draft_token_ids = [[] for _ in drafts.draft_token_ids]
        update(self, drafts)

    def counted(self: Any, num_draft_tokens: int, num_accepted_tokens: int) -> Any:
        least = 1 if on("pinned") else 0
        return observe(self, num_draft_tokens, max(num_accepted_tokens, least))

    Scheduler.update_draft_token_ids = updated
    SpecDecodingStats.observe_draft = counted
