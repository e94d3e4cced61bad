"""A tiny model whose every word is known beforehand, for real servers on a machine without a GPU.

A Llama in shape, but its weights are written, not trained: the embedding gives each token a
dimension of its own, and the output layer is a table "after this token comes that one". Where the
table leaves the choice open (how a thought or an answer begins), attention decides: it looks for
the *mode word* of the prompt. So the user's message says what the model will do, and its text is
the same everywhere, at any temperature. Template and markers are GLM's: the prompt ends in
`<think>`, or in `<think></think>` with `enable_thinking` false. `MODES` has the words.

Tests import `make_tiny_model`; the runner environment's Python runs this file as a program
(torch and transformers are there, not here).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

# The CPU's attention wants heads of 64. One dimension for each token, and one for each mode.
HEAD, HEADS, VOCABULARY = 64, 16, 1000
HIDDEN = HEAD * HEADS
CIRCLE = 60

END, THINK, THINK_END = "<|endoftext|>", "<think>", "</think>"
SPECIAL = (END, "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>")
MARKERS = (THINK, THINK_END, "<tool_call>", "</tool_call>")
MARKERS += ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")

_YES = (" The", " answer", " is", " yes", ".", END)
_WANDER = tuple(f" w{number}" for number in range(CIRCLE))
_LOOP = (" Round", " and", " round", " it", " goes")
MODES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # A mode's thought and its answer, token by token. What ends in neither END nor
    # THINK_END begins anew, or repeats its last token where that stands twice.
    "loop": (_LOOP, _YES),
    "wander": (_WANDER, _YES),
    "short": ((" Brief", " thought", THINK_END), _YES),
    # Says STOP in the thought and in the answer (in other tokens: a token has one successor).
    "stopper": (
        (" Must", " I", " STOP", " thinking", THINK_END),
        (" Now", " ST", "OP", " here", " please", ".", END),
    ),
    # The thought is fine, the answer loops.
    "chatter": ((" Quick", " idea", THINK_END), (" blah", " bleh", " bluh")),
    # Thinks after </think> once more, then answers as `short` does.
    "stubborn": (
        (" Stubborn", " start", THINK_END),
        (" Still", " at", " work", " ", "short", THINK_END),
    ),
    # Opens a tool call inside the thought and fills its argument for ever.
    "caller": (
        (" Calling", "<tool_call>", "f", "<arg_key>", "x", "</arg_key>", "<arg_value>", "7", "7"),
        _YES,
    ),
}
DEFAULT = "loop"
STRONGEST = "short"
"""Wins over another mode word of the same text."""

TEMPLATE = """\
[gMASK]<sop>
{%- for message in messages -%}
<|{{ message.role }}|>
{{ message.content }}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|assistant|><think>
{%- if enable_thinking is defined and not enable_thinking -%}</think>{%- endif -%}
{%- endif -%}
"""


def make_tiny_model(python: Path, folder: Path) -> Path:
    """Writes the model into `folder` with the interpreter of a runner environment."""
    done = subprocess.run(
        [python, "-I", __file__, folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return folder


def successors() -> dict[str, str]:
    """What comes after each token, branches left out."""
    table: dict[str, str] = {}
    for mode in MODES.values():
        for chain in mode:
            again = chain[-1] if chain[-1] == chain[-2] else chain[0]
            following = [*chain[1:], again]
            for token, after in zip(chain, following, strict=True):
                if token in (END, THINK_END):
                    continue
                assert table.setdefault(token, after) == after, f"{token!r} has two successors"
    return table


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _write_tokenizer(folder)
    _write_model(folder, tokenizer)


def _write_tokenizer(folder: Path) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {character: number for number, character in enumerate(alphabet)}
    merges = []
    words = {token for mode in MODES.values() for chain in mode for token in chain}
    for word in sorted(words - set(SPECIAL) - set(MARKERS) - set(MODES)):
        # Prefix by prefix, so that exactly the words of the chains are tokens.
        spelled = word.replace(" ", "Ġ")
        for end in range(2, len(spelled) + 1):
            if spelled[:end] not in vocabulary:
                vocabulary[spelled[:end]] = len(vocabulary)
                merges.append((spelled[: end - 1], spelled[end - 1]))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in SPECIAL])
    # GLM's own: markers are tokens, yet not special, so that the text keeps them.
    tokenizer.add_tokens([AddedToken(name, special=False, normalized=False) for name in MARKERS])
    tokenizer.add_tokens([AddedToken(name, single_word=True, normalized=False) for name in MODES])
    assert tokenizer.get_vocab_size() <= VOCABULARY
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=END)
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    return tokenizer


def _write_model(folder: Path, tokenizer: Any) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        head_dim=HEAD,
        max_position_embeddings=8192,
        # So slow that the last pair of a head's dimensions does not turn at all.
        rope_parameters={"rope_type": "default", "rope_theta": 1e12},
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.token_to_id(END),
        pad_token_id=tokenizer.token_to_id(END),
        dtype="bfloat16",
    )
    model = LlamaForCausalLM(config).to(torch.bfloat16)

    def number(token: str) -> int:
        spelled = token if token in (*SPECIAL, *MARKERS, *MODES) else token.replace(" ", "Ġ")
        found = tokenizer.token_to_id(spelled)
        assert found is not None, token
        return int(found)

    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(1.0 if parameter.dim() == 1 else 0.0)  # norms: 1
        model.model.embed_tokens.weight[:, :VOCABULARY] = torch.eye(VOCABULARY)
        attention = model.model.layers[0].self_attn
        turnless = HEAD // 2 - 1
        attention.q_proj.weight[turnless, :] = 1.0
        table = model.lm_head.weight
        for place, mode in enumerate(MODES):
            attention.k_proj.weight[turnless, number(mode)] = 1.0 if mode == STRONGEST else 0.5
            attention.v_proj.weight[place, number(mode)] = HIDDEN**-0.5
            attention.o_proj.weight[VOCABULARY + place, place] = 1.0
            for before, chain in zip((THINK, THINK_END), MODES[mode], strict=True):
                # Equal but for the default; the mode's own dimension then decides.
                cell = table[number(chain[0]), number(before)]
                cell.fill_(max(cell.item(), 4.5 if mode == DEFAULT else 4.0))
                table[number(chain[0]), VOCABULARY + place] = 1.5
        after = successors()
        ids = {number(token): number(following) for token, following in after.items()}
        for token in set(range(VOCABULARY)) - {number(THINK), number(THINK_END)}:
            table[ids.get(token, number(MODES[DEFAULT][0][0])), token] = 4.0
    model.generation_config.do_sample = False
    model.save_pretrained(folder)
    (folder / "generation_config.json").write_text(
        json.dumps({"eos_token_id": config.eos_token_id}), encoding="utf-8"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
