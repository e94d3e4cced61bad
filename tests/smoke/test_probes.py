"""Every probe passes where the server is good, and fails where its fault is built in, only there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from patchq.smoke.asking import Setting
from patchq.smoke.bounds import Bounds
from patchq.smoke.catalog import PROBES
from patchq.smoke.client import Client
from patchq.smoke.model import Golden
from patchq.smoke.probes import long
from patchq.smoke.questions import Values
from patchq.smoke.report import Report
from patchq.smoke.run import rounds, run
from patchq.smoke.spin import Limits
from tests.smoke.fake import Fake, serving

SEED = 7
HELLO = {"role": "user", "content": "Which is larger?"}
OFF = {"enable_thinking": False}
GOLDENS = (
    Golden("plain", (HELLO,), (), {}, "<|user|>\nWhich is larger?<|assistant|>\n<think>"),
    Golden("off", (HELLO,), (), OFF, "<|user|>\nWhich is larger?<|assistant|>\n<think></think>"),
)
BOUNDS = Bounds(standstill=0.4, acceptance=((0.5, 0.95), (0.1, 0.9)))
ALL = frozenset(probe.name for probe in PROBES)
OF_A_CLUSTER = dict.fromkeys(
    ("ranks", "memory", "backends", "logs"), "left out: no cluster is named"
)
"""What cannot be asked by an address alone; tests/smoke/test_nodes.py has them."""
BLIND = {
    "image": "left out: it takes no images: /v1/chat/completions answers 400: At most 0 image(s)"
}


def smoke(fake: Fake, *, bounds: Bounds = BOUNDS, only: frozenset[str] = ALL) -> Report:
    client = Client(fake.url, patience=20)
    setting = Setting(
        client,
        client.about(),
        Values(SEED),
        bounds=bounds,
        profile="p",
        drafts=True,
        goldens=GOLDENS,
    )
    return run(setting, [probe for probe in PROBES if probe.name in only])


def states(report: Report, *but: str) -> Mapping[str, str]:
    """The probes that are not in these states, with what they are and say.

    Those of a cluster, and of images where the server takes none, are left out as they ought to be.
    """
    found = {
        each.probe.name: f"{each.state}: {each.says}"
        for each in report.outcomes
        if each.state not in (but or ("passed",))
    }
    ought = {**OF_A_CLUSTER, **BLIND}
    return {
        name: told
        for name, told in found.items()
        if name not in ought or not told.startswith(ought[name])
    }


def test_a_good_server_passes_all() -> None:
    with serving(Fake()) as fake:
        report = smoke(fake)
    assert states(report) == {}
    assert report.exit_code == 0
    assert [each.probe for each in report.outcomes] == list(PROBES)


FAULTS = {
    "ill": {"up": "answers 500"},
    "template": {"template": "conversation off: from character"},
    "thought leaked": {"thinking-off": "the content has a thought, up to </think>"},
    "no answer": {"thinking-on": "a thought came, and no answer"},
    "stops thoughts": {"stop-in-thought": "ended the thought, so that no answer came"},
    "markup": {"markup": "</arg_value> stands in what the user sees"},
    "texts": {"tool-auto": '"days": "3"'},
    "not forced": {"tool-forced": "0 calls came, not one; the text is 'It is sunny.'"},
    "round and round": {"tool-loop": "for the third time"},
    "forgets": {"turns": "it answers 'Paris'"},
    "locked": {"long-form": "it spins"},
    "spinning": {"spin": "it spins"},
    "wrong form": {"structured": "the answer is no JSON"},
    "mixed": {"four-at-once": "two of 4 requests got one answer"},
    "drafting off": {"speculation": "no drafting"},
    "counts no drafts": {"speculation": "counts no drafts"},
    "pinned": {"speculation": "position 0 is accepted in 100.0%"},
    "cache off": {"cache": "0 of ", "prefixes": "0 of "},
    "cached alone": {"prefixes": "0 of "},
    "corrupt": {"cache": "'!!!!'", "prefixes": "'!!!!'", "blocks": "'!!!!'"},
    "short-sighted": {"long": "at 3,584 tokens: it answers 'amber 10'"},
    "errors": {"counters": "requests ended badly: error "},
    "preempts": {"counters": "requests ended badly: preempted "},
    "corrupt at the end": {"blocks": "tokens, with blocks of 16: with a warm cache"},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_its_probe_alone(fault: str) -> None:
    with serving(Fake(frozenset({fault}), values=Values(SEED))) as fake:
        report = smoke(fake)
    wrong = states(report)
    assert set(wrong) == set(FAULTS[fault])
    for name, says in FAULTS[fault].items():
        assert wrong[name].startswith("failed: ") and says in wrong[name], wrong
    assert report.exit_code == 5


BAD_DAYS = {
    "cut": {"turns": "the stream was cut"},
    "not UTF-8": {"structured": "the stream is not UTF-8"},
    "no metrics": dict.fromkeys(
        ("progress", "speculation", "cache", "blocks", "prefixes", "counters"),
        "/metrics answers 404",
    ),
    "no tokens": {"template": "/tokenize answers 404", "blocks": "/tokenize answers 404"},
}


@pytest.mark.parametrize("fault", BAD_DAYS)
def test_what_could_not_be_asked_is_not_run(fault: str) -> None:
    with serving(Fake(frozenset({fault}))) as fake:
        report = smoke(fake)
    wrong = states(report)
    assert set(wrong) == set(BAD_DAYS[fault])
    for name, says in BAD_DAYS[fault].items():
        assert wrong[name].startswith("not run: ") and says in wrong[name], wrong
    assert report.exit_code == 6


def test_a_wedge_is_found_though_health_is_good() -> None:
    with serving(Fake(frozenset({"wedged"}))) as fake:
        Client(fake.url).healthy()
        report = smoke(fake)
    wrong = dict(states(report))
    assert wrong.pop("progress").startswith("failed: a wedge: ")
    wrong.pop("template", None)  # it asks nothing that waits, and may have been quicker
    assert set(wrong) == ALL - {"up", "progress", "template", "ranks", "memory", "image"}
    assert set(wrong.values()) == {"not run: the server stands still, see progress"}
    assert report.exit_code == 5


def test_a_server_that_sees_and_one_that_does_not_see_well() -> None:
    for faults, told in (
        ({"sees"}, "passed: it tells red from blue"),
        ({"sees", "colour-blind"}, "failed: a red square is 'Green.'"),
    ):
        with serving(Fake(frozenset(faults))) as fake:
            (outcome,) = smoke(fake, only=frozenset({"image"})).outcomes
        assert f"{outcome.state}: {outcome.says}" == told


def test_no_run_shows_the_pictures_of_another() -> None:
    """Or a cache answers, and not the encoder."""
    (probe,) = (each for each in PROBES if each.name == "image")
    with serving(Fake(frozenset({"sees"}))) as fake:
        client = Client(fake.url)
        report = rounds(Setting(client, client.about(), Values(SEED)), [probe], 20)
    assert report.exit_code == 0
    assert len({str(body["messages"]) for body in fake.asked}) == len(fake.asked) == 40


def test_the_tokens_of_a_thought_are_bounded_by_the_profile() -> None:
    """The thought of the fake has some twenty pieces, and repeats nothing."""
    with serving(Fake()) as fake:
        client = Client(fake.url, limits=Limits(reasoning=4))
        setting = Setting(client, client.about(), Values(SEED), BOUNDS)
        report = run(setting, [each for each in PROBES if each.name in ("spin", "recall")])
    (wrong,) = states(report).items()
    assert wrong[0] == "spin" and "a thought of 5 tokens" in wrong[1]


def test_rounds_are_told_as_one_with_the_seed_of_the_worst() -> None:
    probes = [each for each in PROBES if each.name in ("recall", "four-at-once")]
    with serving(Fake(frozenset({"mixed"}), values=Values(SEED + 1))) as fake:
        client = Client(fake.url)
        report = rounds(Setting(client, client.about(), Values(SEED)), probes, 3)
    assert (report.rounds, report.exit_code) == (3, 5)
    assert report.outcomes[0].says.startswith("in 3 rounds; it says ")
    assert report.outcomes[1].says.startswith(
        f"1 of 3 rounds; round 2 of 3 (--seed {SEED + 1}): two of 4 requests got one answer"
    )


def test_a_server_that_refuses_tools_fails_the_tool_probes() -> None:
    with serving(Fake(frozenset({"no tools"}))) as fake:
        wrong = states(smoke(fake))
    assert set(wrong) == {"tool-auto", "tool-forced", "markup", "tool-loop"}
    assert "answers 400" in wrong["tool-auto"] and "--enable-auto-tool-choice" in wrong["tool-auto"]


def test_what_nothing_demands_is_left_out() -> None:
    with serving(Fake(frozenset({"counts no drafts"}))) as fake:
        client = Client(fake.url)
        report = run(Setting(client, client.about(), Values(SEED), Bounds(standstill=2)), PROBES)
    assert {name: each.partition(":")[0] for name, each in states(report).items()} == {
        "template": "left out",
        "speculation": "left out",
    }
    assert report.exit_code == 0


def test_cached_tokens_are_the_counters_where_usage_does_not_tell() -> None:
    with serving(Fake(frozenset({"tells no cache"}))) as fake:
        report = smoke(fake, only=frozenset({"cache", "prefixes"}))
    assert states(report) == {}
    assert "tokens from the cache" in report.outcomes[0].says


def test_acceptance_outside_the_bounds_of_the_profile_fails() -> None:
    bounds = Bounds(standstill=2, acceptance=((0.9, 1.0),))
    with serving(Fake()) as fake:
        wrong = states(smoke(fake, bounds=bounds, only=frozenset({"long-form", "speculation"})))
    assert "position 0 is accepted in 8" in wrong["speculation"]
    assert "the profile wants 90% to 100%" in wrong["speculation"]


def test_a_short_context_is_enough() -> None:
    with serving(Fake(context=1200)) as fake:
        assert states(smoke(fake)) == {}
    assert all(body["max_tokens"] <= 600 for body in fake.asked)


def test_the_same_seed_asks_the_same() -> None:
    with serving(Fake()) as first, serving(Fake()) as second:
        for fake in (first, second):
            smoke(fake, only=frozenset({"turns", "cache"}))
    assert sorted(map(str, first.asked)) == sorted(map(str, second.asked))


def test_every_probe_is_explained() -> None:
    """Its row in docs/smoke.md says what the probe itself says."""
    text = (Path(__file__).parents[2] / "docs" / "smoke.md").read_text(encoding="utf-8")
    for probe in PROBES:
        row = f"| `{probe.name}` | {probe.asks} | {probe.rule} | {probe.stands_for} |"
        assert row in text.replace("`<think>`", "<think>"), row


def test_a_long_prompt_goes_as_far_as_the_context_does() -> None:
    assert long.lengths(850_000) == (1_000, 32_000, 128_000, 512_000, 841_808)
    assert long.lengths(38_000) == (1_000, 33_250), "32,000 is nearly all that there is"
    assert long.lengths(1_024) == (896,)
