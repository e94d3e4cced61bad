"""Does it answer what was asked? Recall, turns, a long answer, stop strings, four at once."""

from __future__ import annotations

from patchq.smoke import questions as q
from patchq.smoke.asking import Asking, excerpt
from patchq.smoke.model import Wrong
from patchq.smoke.report import Probe

FOUR = 4
_SPELLINGS = {"alpha": "alfa", "juliet": "juliett", "whisky": "whiskey", "xray": "x-ray"}


def _recall(asking: Asking) -> str:
    (code,) = asking.values.codes("recall", 1)
    asking.expect(asking.user(q.recall(code)), code)
    return f"it says {code}"


def _turns(asking: Asking) -> str:
    (code,), (town,) = asking.values.codes("turns", 1), asking.values.words("turns town", 1)
    messages = []
    for said, wanted in q.turns(code, town):
        messages.append({"role": "user", "content": said})
        reply = asking.chat(messages)
        asking.expect(reply, wanted)
        messages.append({"role": "assistant", "content": reply.answer})
    return f"after {len(messages) // 2} turns it still knows {code} and {town}"


def _recite(asking: Asking) -> str:
    said = [_spelled(line) for line in asking.user(q.RECITE).answer.split("\n") if line.strip()]
    for number, wanted in enumerate(q.RECITED):
        if number >= len(said) or said[number] != wanted.lower():
            found = excerpt(said[number]) if number < len(said) else "the end"
            raise Wrong(f"line {number + 1} is {found}, not {wanted}")
    if len(said) > len(q.RECITED):
        raise Wrong(f"it goes on after {q.DONE}: {excerpt(said[len(q.RECITED)])}")
    return f"{len(said)} lines in order, with {q.DONE} at the end"


def _spelled(line: str) -> str:
    word = line.strip().lower().strip(".,*")
    return _SPELLINGS.get(word, word)


def _stop(asking: Asking) -> str:
    words = asking.values.words("stop", 4)
    reply = asking.user(q.repeat(words), stop=[words[2]])
    asking.expect(reply, " ".join(words[:2]))
    return f"it stops before {words[2]}"


def _four(asking: Asking) -> str:
    codes = asking.values.codes("four", FOUR)
    replies = asking.together(lambda code: asking.user(q.recall(code)), codes)
    said = [reply.answer for reply in replies]
    if len(set(said)) < len(said):
        raise Wrong(f"two of {FOUR} requests got one answer: {', '.join(map(excerpt, said))}")
    for reply, code in zip(replies, codes, strict=True):
        asking.expect(reply, code)
    return f"{FOUR} requests at once, each with its own answer"


PROBES = (
    Probe(
        "recall",
        "a code, and to say it",
        "the answer is the code and nothing else",
        "a cold prefix must return exactly its mark; “locklock” (ollama #18069)",
        _recall,
    ),
    Probe(
        "turns",
        "four turns: a code, a town, then each of them again",
        "each answer is exact",
        "what was said turns ago is lost or mixed up",
        _turns,
    ),
    Probe(
        "long-form",
        "a list of 42 words, one a line, with DONE at the end",
        "every line in its place, DONE last, ended by itself",
        "an answer that does not end (gitcommit90/glm-5.3-one-spark #1)",
        _recite,
    ),
    Probe(
        "stop",
        "to repeat four words, with the third as stop string",
        "the answer is the first two",
        "stop strings that do not stop",
        _stop,
    ),
    Probe(
        "four-at-once",
        "four codes at the same time",
        "four different answers, each its own",
        "answers mixed up between requests of one batch",
        _four,
    ),
)
