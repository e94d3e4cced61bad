"""Faults in a vLLM that runs, a few at a time: a plugin that vLLM loads in each of its processes.

`plugin` lays it into a folder for PYTHONPATH, as the entry point `vllm.general_plugins` that
vLLM's own documentation has for such things. The file that PATCHQ_FAULT names says which faults are
on, a line each: it may change while the server runs. Every function that is replaced does what it did where
its fault is not on. This module is run by the server's Python, so it imports nothing of ours.
"""

from __future__ import annotations

import copy
import mmap
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

SWITCH = "PATCHQ_FAULT"
FLOOR = "PATCHQ_FAULT_FLOOR"
"""GiB of memory that `memory` leaves less of."""
LONG = 1500
"""Tokens of a prompt from which on it is long."""
PACES = {"paced": 0.040, "paced, slow by 10 %": 0.044}
"""Seconds that a step takes."""
_HELD = 4.0
"""Seconds for which memory is taken: the probe looks every three."""
_EVERY = 25
"""Steps from one preemption to the next."""
_GIB = 1 << 30
NEXT = str.maketrans("0123456789", "1234567890")


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
    return fault in switched()


def switched() -> list[str]:
    try:
        return Path(os.environ[SWITCH]).read_text("utf-8").splitlines()
    except OSError:
        return []


def install() -> None:
    """Called in every process of the server, perhaps more than once.

    Workers are left alone: vLLM 0.32 looks through all that is imported there, and stumbles.
    """
    import multiprocessing

    import vllm

    if not hasattr(vllm, "faults_installed"):
        vllm.faults_installed = True  # type: ignore[attr-defined]
        name = multiprocessing.current_process().name
        of = {
            "MainProcess": (template, health, requests, answers),
            "EngineCore": (cache, speculation, arrivals, preemption, pace),
        }
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


def health() -> None:
    """`ill`: the engine says that it is dead, and goes on."""
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.engine.exceptions import EngineDeadError

    check = AsyncLLM.check_health

    async def checked(self: Any) -> None:
        if on("ill"):
            raise EngineDeadError
        await check(self)

    AsyncLLM.check_health = checked


def requests() -> None:
    """`forgets`: of a conversation the last message alone is read. `no stop`: stop strings are not
    looked at. `too short`: an answer ends at its sixtieth token. `no form`: nothing holds an answer
    to its schema, and it is cut. `mixed`: who asks while another waits gets that one's answer."""
    from vllm.entrypoints.openai.chat_completion.serving import OpenAIServingChat

    before, waiting = OpenAIServingChat.create_chat_completion, []  # type: ignore[var-annotated]

    async def after(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        said = (request.chat_template_kwargs or {}).get("enable_thinking") is False
        if said and not request.tools:
            if on("no stop"):
                request.stop = []
            if on("too short"):
                request.max_tokens = 60
            if on("no form") and request.response_format:
                request.response_format, request.max_tokens = None, 5
            if on("mixed") and alike(request.messages):
                request.messages = waiting[0] if waiting else request.messages
                waiting.append(request.messages)
                return leaving(await before(self, request, *args, **kwargs), request.messages)
            if on("forgets"):
                request.messages = request.messages[-1:]
        return await before(self, request, *args, **kwargs)

    def alike(messages: Any) -> bool:
        text = messages[0]["content"]
        return len(messages) == 1 and str(text).endswith("Reply with the code alone.")

    async def leaving(events: AsyncIterator[str], messages: Any) -> AsyncIterator[str]:
        try:
            async for event in events:
                yield event
        finally:
            waiting.remove(messages)

    OpenAIServingChat.create_chat_completion = after


def answers() -> None:
    """`wrong digits`: each is the next one. `leaks`: with thinking off a thought stands in the content, as a parser leaves it there that
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
                yield spoiled(event) if '"tool_calls":[{' in event else counted(event)

    def counted(event: str) -> str:
        front, delta, rest = event.partition(content)
        if not (delta and on("wrong digits")):
            return event
        word, quote, end = rest.partition('"')
        return front + delta + word.translate(NEXT) + quote + end

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
    """`no drafts`: what the drafter finds is thrown away, so that each step gives one token; when it
    is paced, too. `pinned`: the first draft is counted as accepted."""
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.spec_decode.metrics import SpecDecodingStats

    update, observe = Scheduler.update_draft_token_ids, SpecDecodingStats.observe_draft

    def updated(self: Any, drafts: Any) -> None:
        if {"no drafts", *PACES}.intersection(switched()):
            drafts.draft_token_ids = [[] for _ in drafts.draft_token_ids]
        update(self, drafts)

    def counted(self: Any, num_draft_tokens: int, num_accepted_tokens: int) -> Any:
        least = 1 if on("pinned") else 0
        return observe(self, num_draft_tokens, max(num_accepted_tokens, least))

    Scheduler.update_draft_token_ids = updated
    SpecDecodingStats.observe_draft = counted


def arrivals() -> None:
    """Of long prompts. `long`: what stands at the front is lost. `memory`: reading them takes what
    memory the machine has, for some seconds. Of pictures. `wrong eyes`: red is taken for blue, as by
    an encoder whose weights are in another order. And of any: `logs`: a line that says of a
    fallback."""
    from vllm.logger import init_logger
    from vllm.v1.core.sched.scheduler import Scheduler

    add, log = Scheduler.add_request, init_logger("vllm.faults")

    def added(self: Any, request: Any) -> None:
        if request.num_prompt_tokens > LONG:
            if on("long"):
                for ids in (request.prompt_token_ids, request._all_token_ids):
                    ids[:128] = ids[128:256]
            if on("memory"):
                squeeze(float(os.environ[FLOOR]))
        if on("wrong eyes"):
            for picture in request.mm_features:
                # A cache keeps the picture itself.
                picture.data = copy.deepcopy(picture.data)
                pixels = picture.data["pixel_values"]
                pixels.data = pixels.data.flip(-3)
        if on("logs"):
            log.warning("The fast kernel is not there, falling back to the slow one")
        add(self, request)

    Scheduler.add_request = added


def squeeze(floor: float) -> None:
    """For some seconds the machine has less than `floor` GiB to spare, whatever others give back."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    taken, until = [], float("inf")
    while time.monotonic() < until:
        if available() > floor - 0.1:
            taken.append(mmap.mmap(-1, _GIB // 16, flags=flags))
        else:
            until = min(until, time.monotonic() + _HELD)
            time.sleep(0.05)
    for each in taken:
        each.close()


def available() -> float:
    """GiB that the machine has to spare."""
    lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) / 2**20


def preemption() -> None:
    """`preempts`: now and then a request that runs has to begin anew, from what the cache has."""
    from vllm.v1.core.sched.scheduler import Scheduler

    schedule, steps = Scheduler.schedule, [0]

    def scheduled(self: Any, *args: Any, **kwargs: Any) -> Any:
        steps[0] += 1
        if on("preempts") and self.running and steps[0] % _EVERY == 0:
            request = self.running.pop()
            self._preempt_request(request, time.monotonic(), drop_stale_output=True)
            # As where vLLM itself begins a request anew in the same step (reset_prefix_cache).
            self.prev_step_scheduled_req_ids.discard(request.request_id)
        return schedule(self, *args, **kwargs)

    Scheduler.schedule = scheduled


def pace() -> None:
    """`paced`: each step takes just so long, whatever else the machine has to do."""
    from vllm.v1.engine.core import EngineCore

    step, due = EngineCore.step, [0.0]

    def stepped(self: Any) -> Any:
        period = next((PACES[each] for each in switched() if each in PACES), None)
        if period is None:
            return step(self)
        # Within an answer the steps end at equal distances, and one that was late is made up for.
        now = time.monotonic()
        due[0] = (max(due[0], now - period) if self.scheduler.running else now) + period
        outputs, computed = step(self)
        if computed:  # and not only told that an answer is done
            time.sleep(max(0.0, due[0] - time.monotonic()))
        return outputs, computed

    EngineCore.step = stepped
