"""The answering model's tokens and its template."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from patchq.smoke import questions as ask

END, THINK, THINK_END = "<|endoftext|>", "<think>", "</think>"
ASSISTANT = "<|assistant|>"
SPECIAL = (END, "[gMASK]", "<sop>", "<|system|>", "<|user|>", ASSISTANT, "<|observation|>")
MARKERS = (
    *(THINK, THINK_END, "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
    *("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
)
PIECES = r" ?[A-Za-z]+| ?[0-9]{1,2}| ?[^\sA-Za-z0-9]+(?: [^\sA-Za-z0-9]+)*|\s+"
"""What a token is: a word or a number of two digits with the blank before it, signs, blanks."""

# GLM's, shortened: the same markers at the same places, fewer words about tools.
TEMPLATE = """\
[gMASK]<sop>
{%- if tools -%}
<|system|># Tools
<tools>
{%- for tool in tools %}
{{ tool | tojson(ensure_ascii=False) }}
{%- endfor %}
</tools>
{%- endif -%}
{%- for m in messages -%}
{%- if m.role == 'tool' -%}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}<|observation|>{%- endif -%}
<tool_response>{{ m.content }}</tool_response>
{%- elif m.role == 'assistant' -%}
<|assistant|><think></think>{{ m.content or '' }}
{%- for call in m.tool_calls or [] -%}
<tool_call>{{ call.function.name }}
{%- for key, value in call.function.arguments.items() -%}
<arg_key>{{ key }}</arg_key><arg_value>
{{- value if value is string else value | tojson(ensure_ascii=False) }}</arg_value>
{%- endfor -%}
</tool_call>
{%- endfor -%}
{%- else -%}
<|{{ m.role }}|>{{ m.content }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|assistant|><think>
{%- if enable_thinking is defined and not enable_thinking -%}</think>{%- endif -%}
{%- endif -%}
"""


def tokenizer(texts: Sequence[str]) -> Any:
    """Whose tokens are the pieces of `texts`, with a blank and without; anything else is bytes."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    marks = re.compile("|".join(re.escape(mark) for mark in (*SPECIAL, *MARKERS)))
    words = {
        piece
        for text in texts
        for part in marks.split(text)
        for piece in re.findall(PIECES, part)
        if len(piece) > 1
    }
    words |= {f"{blank}{number}" for blank in ("", " ") for number in range(100)}
    words |= {f"{blank}{word}" for blank in ("", " ") for word in ask.WORDS}
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    spelled = (word.replace(" ", "Ġ").replace("\n", "Ċ") for word in sorted(words))
    order = dict.fromkeys([*alphabet, *spelled])
    vocabulary = {piece: number for number, piece in enumerate(order)}
    model = models.BPE(vocab=vocabulary, merges=[], ignore_merges=True)
    made = Tokenizer(model)
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(name, special=True) for name in SPECIAL])
    # GLM's own: markers are tokens, yet not special, so that the text keeps them.
    made.add_tokens([AddedToken(name, special=False, normalized=False) for name in MARKERS])
    fast = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END, pad_token=END)
    fast.chat_template = TEMPLATE
    return fast
