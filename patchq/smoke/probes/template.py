"""Is the prompt what the pinned template makes of a conversation?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from patchq.smoke.asking import Asking, excerpt
from patchq.smoke.model import Golden, LeftOut, Wrong
from patchq.smoke.report import Probe


def _template(asking: Asking) -> str:
    goldens = asking.setting.goldens
    if goldens is None:
        raise LeftOut("no profile with a template is named, or nothing says what it renders to")
    asking.evidence["conversations"] = [golden.name for golden in goldens]
    for golden in goldens:
        try:
            prompt = rendered(asking, golden.messages, golden.tools, golden.values)
        except Wrong as refusal:
            if golden.refused:
                continue
            raise Wrong(f"the conversation {golden.name}: {refusal}") from None
        if golden.refused:
            raise Wrong(f"it renders {golden.name}, which the pinned template refuses")
        if prompt != golden.text:
            raise Wrong(f"the conversation {golden.name}: {_parted(golden, prompt)}")
    return f"{len(goldens)} conversations are rendered as pinned"


def rendered(
    asking: Asking,
    messages: tuple[Mapping[str, Any], ...],
    tools: tuple[Mapping[str, Any], ...] = (),
    values: Mapping[str, Any] | None = None,
) -> str:
    """The prompt as the server makes it."""
    model = asking.setting.about.model
    body = {
        "model": model,
        "messages": [_sent(message) for message in messages],
        "add_generation_prompt": True,
        **({"tools": list(tools)} if tools else {}),
        **({"chat_template_kwargs": dict(values)} if values else {}),
    }
    tokens = tokenized(asking, body)
    answer = asking.client.post("/detokenize", {"model": model, "tokens": tokens})
    if not isinstance(answer, dict) or not isinstance(answer.get("prompt"), str):
        raise Wrong("/detokenize does not answer with a prompt")
    return str(answer["prompt"])


def tokenized(asking: Asking, body: Mapping[str, Any]) -> list[int]:
    """The tokens that /tokenize makes of a request."""
    answer = asking.client.post("/tokenize", body)
    if not isinstance(answer, dict) or not isinstance(answer.get("tokens"), list):
        raise Wrong("/tokenize does not answer with tokens")
    return list(answer["tokens"])


def _sent(message: Mapping[str, Any]) -> dict[str, Any]:
    """As a client sends it: arguments are JSON text, and a thought has vLLM's name as well."""
    sent = dict(message)
    if "reasoning_content" in sent:
        sent["reasoning"] = sent["reasoning_content"]
    if calls := sent.get("tool_calls"):
        sent["tool_calls"] = [
            {
                **call,
                "function": {
                    **call["function"],
                    "arguments": json.dumps(call["function"]["arguments"], ensure_ascii=False),
                },
            }
            for call in calls
        ]
    return sent


def _parted(golden: Golden, prompt: str) -> str:
    """Where the texts part."""
    same = 0
    while same < min(len(prompt), len(golden.text)) and prompt[same] == golden.text[same]:
        same += 1
    begin = max(0, same - 15)
    return (
        f"from character {same} on the prompt is {excerpt(prompt[begin:])},"
        f" not {excerpt(golden.text[begin:])}"
    )


PROBES = (
    Probe(
        "template",
        "the golden conversations, by /tokenize and /detokenize",
        "each prompt is what the pinned template renders",
        "a template that opens <think>, or asks for the highest effort (ENT FINDINGS s9)",
        _template,
    ),
)
