"""The tiny models are what they are for: one answers every probe, one spins. On real vLLM.

The one that answers does so as EXL3 as well, whole on one rank and cut for two.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from patchq.exl3 import decode
from patchq.smoke.asking import Setting
from patchq.smoke.client import Client
from patchq.smoke.questions import DOOR, WEATHER, WORDS, Values, recall, repeat, story, weather
from patchq.smoke.report import Report
from patchq.smoke.run import chosen, run
from tests.runner.profiles import PROFILES
from tests.support import answering, answering_exl3, runner
from tests.support.answering_rules import (
    FOUND,
    NOTHING,
    NUMBER,
    SPACED,
    WORD,
    Rule,
    learn,
    seen,
)
from tests.support.runner_nodes import serving_on_two
from tests.support.runner_server import Server, serving

FLAGS = (
    *PROFILES["plain"].flags,
    "--enable-prompt-tokens-details",
    # The thought says the stop string: without this the stock behaviour fails `stop-in-thought`.
    *("--reasoning-config", json.dumps({"no_stop_in_reasoning": True})),
)
SURE = 15
"""By how many nats the right token leads, so that another processor or 8 bits change no answer."""
OUGHT = {
    *("recall", "turns", "long-form", "stop", "four-at-once", "thinking-on", "thinking-off"),
    *("stop-in-thought", "spin", "structured", "tool-auto", "tool-forced", "markup", "tool-loop"),
    *("cache", "blocks", "prefixes", "progress"),
}


def made_with(release: str, model: Path) -> runner.Runner:
    return replace(runner.patched(release), model=model)


def smoke(server: Server, seed: int) -> Report:
    client = Client(server.url)
    return run(Setting(client, client.about(), Values(seed)), chosen(()))


def test_a_rule_holds_for_every_value_and_looks_no_further_than_it_must() -> None:
    lessons = [
        seen(["Say", word], 1, found, token, piece)
        for word, found, token, piece in (
            ("Ġamber", "birch", 7, "Ġbirch"),
            ("Ġraven", "42", 8, "Ġ42"),
            ("Ġopal", NOTHING, 3, "."),
        )
    ]
    assert learn(lessons) == [
        Rule({0: frozenset({WORD}), FOUND: frozenset({NUMBER})}, SPACED),
        Rule({0: frozenset({WORD}), FOUND: frozenset({WORD})}, SPACED),
        Rule({0: frozenset({WORD}), FOUND: frozenset({NOTHING})}, 3),
    ]


def test_lessons_that_contradict_each_other_teach_nothing() -> None:
    lessons = [seen(["Say", "it"], 1, NOTHING, token, "so") for token in (3, 4)]
    with pytest.raises(ValueError, match="do not decide what comes after 'it'"):
        learn(lessons)


def test_they_know_every_kind_of_question_and_are_sure(release: str, newest_alone: None) -> None:
    made = answering.models(runner.environment(release))
    weak = {
        f"{model}: {kind}": known
        for model, learnt in made.report.items()
        for kind, known in learnt.items()
        if known["right"] < 1 or known["margin"] < SURE
    }
    assert set(made.report) == {"answers", "spins"}
    assert weak == {}


def test_the_answering_model_passes_the_probes(
    release: str, newest_alone: None, tmp_path: Path
) -> None:
    made = answering.models(runner.environment(release))
    with serving(made_with(release, made.answers), tmp_path, *FLAGS) as server:
        passes(server, seeds=3)


def passes(server: Server, seeds: int) -> None:
    for seed in range(seeds):
        report = smoke(server, seed)
        told = {each.probe.name: (each.state, each.says) for each in report.outcomes}
        assert {name: said for name, said in told.items() if said[0] == "failed"} == {}
        assert {name for name in OUGHT if told[name][0] != "passed"} == set(), told


def test_what_is_quantized_decodes_to_near_it() -> None:
    rng = np.random.default_rng(5)
    weight = rng.normal(0, 0.05, (256, 256))
    weight[:8, 3] = 1.2  # stands out of everything else
    weight[128:, 128:] = 0
    fields = answering_exl3.encoded(weight, rng)
    found = decode.weight(decode.linear("it", fields, answering_exl3.CODEBOOK))
    assert np.abs(found - weight).max() < 0.02
    assert np.sqrt(((found - weight) ** 2).mean() / (weight**2).mean()) < 0.02


def test_as_exl3_it_passes_the_probes(release: str, newest_alone: None, tmp_path: Path) -> None:
    made = answering_exl3.quantized(answering.models(runner.environment(release)).answers)
    with serving(made_with(release, made.plain), tmp_path, *FLAGS) as server:
        assert server.get("/version").json()["exl3"]["bits"] == {"8": 15}
        passes(server, seeds=3)


@pytest.mark.root
def test_as_exl3_cut_for_two_ranks_it_passes_the_probes(
    release: str, newest_alone: None, tmp_path: Path
) -> None:
    made = answering_exl3.quantized(answering.models(runner.environment(release)).answers)
    with serving_on_two(runner.patched(release), [made.cut] * 2, tmp_path, *FLAGS) as server:
        told = server.get("/version").json()["exl3"]
        assert (told["layout"], told["ranks"]) == ("shared", 2)
        assert server.node
        with server.node.entered():
            passes(server, seeds=1)


def test_the_spinning_model_spins_while_it_thinks_and_only_then(
    release: str, newest_alone: None, tmp_path: Path
) -> None:
    made = answering.models(runner.environment(release))
    rounds = {
        story(WORDS[0]): "Let me check that once more. Let me check that once more.",
        recall(f"{WORDS[1]} 42"): "But wait, perhaps not. So this is the one.",
        weather(WORDS[2], 5): "!" * 100,
        repeat(WORDS[:4]): "Step 21. Step 22. Step 23. Step 24.",
    }
    with serving(made_with(release, made.spins), tmp_path, *FLAGS) as server:
        for question, piece in rounds.items():
            tools = {"tools": [WEATHER, DOOR]} if "tool" in question else {}
            (choice,) = server.chat(question, temperature=0, max_tokens=400, **tools)["choices"]
            assert piece in choice["message"]["reasoning"]
            assert not choice["message"]["content"]
            assert choice["finish_reason"] == "length"
        off = {"temperature": 0, "chat_template_kwargs": {"enable_thinking": False}}
        (choice,) = server.chat(recall(f"{WORDS[1]} 42"), **off)["choices"]
        assert choice["message"]["content"] == f"{WORDS[1]} 42"
