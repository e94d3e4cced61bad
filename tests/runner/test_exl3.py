"""EXL3 through real vLLM, on one rank and on two, whole and rank-sliced.

Every answer is the one that stock vLLM gives with the same weights dense: the twin of
tests/support/tinyexl3.py.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import runner
from tests.support.runner_nodes import serving_on_two
from tests.support.runner_server import Server, refused, serving
from tests.support.tinyexl3 import KINDS, RANKS, TinyExl3, tiny_exl3

PROMPTS = (
    [*range(300, 316)],
    [329, 340, 373, 428, 505, 604],
    [(7 * number * number + 3 * number) % 1000 for number in range(64)],
)
"""Token numbers: the random models have no words. No answer to them hangs by less than 0.1."""
TOKENS = 16
WITHIN = 0.025
"""Of a logit: three units in the last place of a float16 between 8 and 16."""
DECODE_ON_USE = {"VLLM_EXL3_DECODED_GIB": "0"}

Models = dict[str, TinyExl3]


@dataclass(frozen=True)
class Answer:
    """The greedy tokens; log probabilities of what was likely at each, and of the prompt."""

    tokens: list[str]
    likely: list[dict[str, float]]
    prompt: list[float]


Twins = dict[str, list[Answer]]


def ask(server: Server) -> list[Answer]:
    return [_answer(server, prompt) for prompt in PROMPTS]


def _answer(server: Server, prompt: list[int]) -> Answer:
    body: dict[str, Any] = {"model": "tiny", "prompt": prompt, "max_tokens": TOKENS}
    body |= {"temperature": 0, "ignore_eos": True, "return_tokens_as_token_ids": True}
    body |= {"logprobs": 5, "prompt_logprobs": 0}
    answer = server.post("/v1/completions", body)
    assert answer.status_code == 200, answer.text
    (choice,) = answer.json()["choices"]
    told: list[dict[str, Any]] = choice["prompt_logprobs"][1:]
    own = [each[str(token)]["logprob"] for each, token in zip(told, prompt[1:], strict=True)]
    said = choice["logprobs"]
    return Answer(said["tokens"], said["top_logprobs"], own)


def same(found: list[Answer], wanted: list[Answer]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.prompt == pytest.approx(other.prompt, abs=WITHIN)
        assert one.tokens == other.tokens and len(one.tokens) == TOKENS
        for here, there in zip(one.likely, other.likely, strict=True):
            both = here.keys() & there.keys()
            assert len(both) >= 4, "more than the fifth and the sixth changed places"
            assert [here[token] for token in both] == pytest.approx(
                [there[token] for token in both], abs=WITHIN
            )


def says(server: Server, plain: Path, layout: str, ranks: int) -> None:
    """What /version says of the checkpoint, by the record of the one it was cut from."""
    storage = json.loads((plain / "quantization_config.json").read_bytes())["tensor_storage"]
    bits = Counter(str(each["bits_per_weight"]) for each in storage.values())
    markers = {key for each in storage.values() for key in each if key.endswith("_multiplier")}
    told = server.get("/version").json()["exl3"]
    digests = told.pop("digest")
    assert told == {
        "path": "reference",
        "bits": bits,
        "codebooks": sorted(marker.removesuffix("_multiplier") for marker in markers),
        "layout": layout,
        "ranks": ranks,
    }
    assert set(digests) == {str(rank) for rank in range(ranks)}
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests.values())


@pytest.fixture(scope="session")
def models(release: str) -> Models:
    return tiny_exl3(runner.stock(release).model)


@pytest.fixture(scope="session")
def twins(release: str, models: Models, tmp_path_factory: pytest.TempPathFactory) -> Twins:
    """What stock vLLM answers with the same weights, dense."""
    found = {}
    for kind in KINDS:
        engine = replace(runner.stock(release), model=models[kind].twin)
        with serving(engine, tmp_path_factory.mktemp(f"twin-{kind}")) as server:
            found[kind] = ask(server)
    return found


def test_a_stock_server_knows_no_exl3(release: str, models: Models, tmp_path: Path) -> None:
    engine = replace(runner.stock(release), model=models["dense"].plain)
    assert "exl3" in refused(engine, tmp_path)


def test_a_dense_model_on_one_rank(
    release: str, models: Models, twins: Twins, tmp_path: Path
) -> None:
    engine = replace(runner.patched(release), model=models["dense"].plain)
    with serving(engine, tmp_path) as server:
        same(ask(server), twins["dense"])
        says(server, models["dense"].plain, "plain", 1)
        assert kept(server) > 0


def test_experts_on_one_rank_decoded_on_use(
    release: str, models: Models, twins: Twins, tmp_path: Path
) -> None:
    engine = replace(runner.patched(release), model=models["moe"].plain)
    with serving(engine, tmp_path, env=DECODE_ON_USE) as server:
        same(ask(server), twins["moe"])
        says(server, models["moe"].plain, "plain", 1)
        assert kept(server) == 0


@pytest.mark.root
def test_experts_on_two_ranks_by_files_for_each(
    release: str, models: Models, twins: Twins, tmp_path: Path
) -> None:
    """A node has what docs/rank-slicing.md copies to it: what it is not to read is not there."""
    made = models["moe"]
    folders = [made.of_rank(rank) for rank in range(RANKS)]
    with serving_on_two(runner.patched(release), folders, tmp_path) as server:
        same(ask(server), twins["moe"])
        says(server, made.plain, "per-rank", RANKS)
        assert kept(server) > 0
    for rank, folder in enumerate(folders):
        own = sorted(path.name for path in folder.glob("*.safetensors"))
        listed = len(list(made.sliced("per-rank").glob("*.safetensors")))
        assert len(own) < listed
        said = f"EXL3: rank {rank} opens {len(own)} of {listed} files: {', '.join(own)}"
        assert said in (tmp_path / str(rank) / "server.log").read_text(encoding="utf-8")


@pytest.mark.root
@pytest.mark.usefixtures("newest_alone")
def test_a_dense_model_on_two_ranks_by_one_folder_decoded_on_use(
    release: str, models: Models, twins: Twins, tmp_path: Path
) -> None:
    made = models["dense"]
    folders = [made.sliced("shared")] * RANKS
    engine = runner.patched(release)
    with serving_on_two(engine, folders, tmp_path, env=DECODE_ON_USE) as server:
        same(ask(server), twins["dense"])
        says(server, made.plain, "shared", RANKS)
        assert kept(server) == 0


def kept(server: Server) -> int:
    """Bytes of decoded weights, of all ranks."""
    return sum(map(int, re.findall(r"(\d+) bytes of decoded weights are kept", server.log)))


def test_a_whole_checkpoint_is_refused_on_two_ranks(
    release: str, models: Models, tmp_path: Path
) -> None:
    whole = models["dense"].plain
    engine = replace(runner.patched(release), model=whole)
    said = refused(engine, tmp_path, "--tensor-parallel-size", "2")
    assert f"Cut it with `patchq slice run {whole} {whole}-tp2 --tp 2`" in said
    assert "EngineCore" not in said, "the engine was started"


def test_a_cut_checkpoint_is_refused_on_other_ranks(
    release: str, models: Models, tmp_path: Path
) -> None:
    """Both layouts; on one rank, and on four, for which it can be cut anew."""
    for layout, ranks, advice in (
        ("shared", "1", "--tensor-parallel-size 2, or serve the source"),
        ("per-rank", "4", "patchq slice run SOURCE NEW --tp 4"),
    ):
        engine = replace(runner.patched(release), model=models["moe"].sliced(layout))
        said = refused(engine, tmp_path / layout, "--tensor-parallel-size", ranks)
        assert f"is cut for 2 ranks (`patchq slice run ... --tp 2`), and {ranks} are to" in said
        assert advice in said
        assert "EngineCore" not in said, "the engine was started"
