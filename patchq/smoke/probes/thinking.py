"""Thought and answer: each in its place, and the thought ends."""

from __future__ import annotations

import re

from patchq.smoke import questions as q
from patchq.smoke.asking import Asking, excerpt
from patchq.smoke.model import Wrong
from patchq.smoke.report import Probe

_MARK = re.compile(r"</?think>|\[/?THINK\]")


def _on(asking: Asking) -> str:
    (code,) = asking.values.codes("thinking on", 1)
    reply = asking.user(q.recall(code), thinking=True)
    if not reply.reasoning.strip():
        raise Wrong("no thought came, though thinking is on")
    if not reply.content.strip():
        raise Wrong("a thought came, and no answer")
    asking.expect(reply, code)
    return f"{len(reply.reasoning)} characters of thought, then {code}"


def _off(asking: Asking) -> str:
    (code,) = asking.values.codes("thinking off", 1)
    reply = asking.user(q.recall(code))
    if mark := _MARK.search(reply.content):
        raise Wrong(f"the content has a thought, up to {mark[0]}: {excerpt(reply.content)}")
    if reply.content.strip() != code:
        raise Wrong(f"the content is {excerpt(reply.content)}, not {excerpt(code)}")
    beside = ", with a thought beside it" if reply.reasoning.strip() else ""
    return f"the content is {code}{beside}"


def _stop(asking: Asking) -> str:
    words = asking.values.words("stop in thought", 4)
    reply = asking.user(q.repeat(words), thinking=True, stop=[words[2]])
    if not reply.content.strip():
        raise Wrong(f"the stop string {words[2]!r} ended the thought, so that no answer came")
    asking.expect(reply, " ".join(words[:2]))
    return f"{words[2]} stops the answer, not the thought"


def _spin(asking: Asking) -> str:
    (word,) = asking.values.words("spin", 1)
    reply = asking.user(q.story(word), thinking=True)
    if not reply.content.strip():
        raise Wrong("a thought came, and no answer")
    asking.evidence["reasoning_characters"] = len(reply.reasoning)
    return f"{reply.completion_tokens or '?'} tokens, ended by itself"


PROBES = (
    Probe(
        "thinking-on",
        "a code, with thinking on",
        "there is a thought, and the answer is the code",
        "60,000 tokens of thought and an empty answer (ds4 #898)",
        _on,
    ),
    Probe(
        "thinking-off",
        "a code, with thinking off",
        "the content is the code, with no thought in it",
        "a template that always opens <think> (ENT FINDINGS s9, SFX h4)",
        _off,
    ),
    Probe(
        "stop-in-thought",
        "to repeat four words with thinking on, the third as stop string",
        "there is an answer, and it is the first two",
        "a stop string hit in reasoning (MIA PR #2, vLLM #52393, #52486)",
        _stop,
    ),
    Probe(
        "spin",
        "to think freely, then to write one sentence",
        "thought and sentence end by themselves; nothing repeats or grows for ever",
        "“!!!!”, constant tokens, the same sentences (sglang #36669, wtdcode #96)",
        _spin,
    ),
)
