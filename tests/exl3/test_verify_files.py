"""Verification of index, config and manifest: each lie in them is told."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.exl3.verify import verify
from tests.support.slices import (
    CONFIG,
    EXPERT,
    INDEX,
    LAST,
    MANIFEST,
    QUANTIZATION,
    edit,
    problems,
)


def listing(document: Any) -> Any:
    """The entry of quantization_config.json that lists the last layer."""
    groups = document["rank_sliced_modules"]
    return next(group for group in groups if LAST in group["modules"])


FILES: list[tuple[str, Callable[[Any], None], str]] = [
    (
        INDEX,
        lambda document: document["weight_map"].update(
            {"x.weight": "model-00001-of-00002.safetensors"}
        ),
        f"{INDEX} places x.weight in model-00001-of-00002.safetensors, which does not hold it",
    ),
    (
        INDEX,
        lambda document: document["weight_map"].pop("model.norm.weight"),
        f"model-00001-of-00002.safetensors holds model.norm.weight, which {INDEX} does not know",
    ),
    (
        INDEX,
        lambda document: document["weight_map"].update({"model.norm.weight": "../x.safetensors"}),
        f"{INDEX} places model.norm.weight in '../x.safetensors', which is no shard in the folder",
    ),
    (
        QUANTIZATION,
        lambda document: document["rank_sliced"].update(tp=4),
        "quantization_config.json says 4 ranks, there are 2",
    ),
    (
        CONFIG,
        lambda document: document["quantization_config"]["rank_sliced"].update(bits=9),
        "config.json and quantization_config.json differ in rank_sliced",
    ),
    (
        CONFIG,
        lambda document: document["hybrid_tr3_tail"].update(experts_per_layer=9),
        "hybrid_tr3_tail in config.json is not rank_sliced",
    ),
    (
        MANIFEST,
        lambda document: document.update(tp=3),
        f"{MANIFEST} says tp 3, not 2",
    ),
    (
        MANIFEST,
        lambda document: document["files"].pop("model-00002-of-00002.safetensors"),
        f"model-00002-of-00002.safetensors is not in {MANIFEST}",
    ),
    (
        QUANTIZATION,
        lambda document: document["rank_sliced_modules"][0].pop("split"),
        f"{QUANTIZATION}: rank_sliced_modules has an entry that is none",
    ),
    (
        QUANTIZATION,
        lambda document: document.pop("rank_sliced_modules"),
        f"{QUANTIZATION} has no rank_sliced_modules",
    ),
    (QUANTIZATION, lambda document: document.clear(), f"{QUANTIZATION} has no rank_sliced"),
    (
        QUANTIZATION,
        lambda document: listing(document)["modules"].remove(LAST),
        f"{LAST} is not listed in rank_sliced_modules",
    ),
    (
        QUANTIZATION,
        lambda document: listing(document)["modules"].append("x.q_proj"),
        "rank 0 has nothing of x.q_proj",
    ),
    (
        QUANTIZATION,
        lambda document: listing(document)["ranges"].append([[0, 128]]),
        f"{LAST} is listed with 3 ranks, there are 2",
    ),
    (
        QUANTIZATION,
        lambda document: listing(document).update(out_features=128),
        f"{QUANTIZATION}: rank_sliced_modules, {EXPERT}.up_proj: a rank has 128 to 256 of its 128 features",
    ),
    (
        CONFIG,
        lambda document: document["quantization_config"].pop("rank_sliced"),
        f"{CONFIG} has no rank_sliced in its quantization_config",
    ),
    (INDEX, lambda document: document.clear(), f"{INDEX} has no weight_map"),
]


@pytest.mark.parametrize(("file", "change", "says"), FILES)
def test_files_that_disagree(
    copy: Path, file: str, change: Callable[[Any], None], says: str
) -> None:
    edit(copy, file, change)
    assert says in problems(verify(copy)), problems(verify(copy))


def test_metadata_that_all_files_agree_in_but_not_the_tensors(copy: Path) -> None:
    def lie(document: Any) -> None:
        for part in (document, document.get("quantization_config", {})):
            for key in ("rank_sliced", "hybrid_tr3_tail"):
                if key in part:
                    part[key]["experts_per_layer"] = 7
        if "files" in document:
            document["experts_per_layer"] = 7

    for file in (CONFIG, QUANTIZATION, MANIFEST):
        edit(copy, file, lie)
    said = "rank_sliced says experts_per_layer 7, the tensors say 3"
    assert problems(verify(copy)) == [said]


@pytest.mark.parametrize("file", [MANIFEST, "tokenizer.json"])
def test_files_that_are_missing(made: Path, copy: Path, file: str) -> None:
    (copy / file).unlink()
    assert any(problem.startswith(file) for problem in problems(verify(copy, made / "src")))


def test_a_file_that_is_no_json(copy: Path) -> None:
    (copy / CONFIG).write_text("{")
    assert any(said.startswith(f"{CONFIG} is no JSON") for said in problems(verify(copy)))


def leaves(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of each value in a JSON document, those of objects and lists as well."""
    inside: list[tuple[Any, Any]] = []
    if isinstance(document, dict):
        inside = list(document.items())
    elif isinstance(document, list):
        inside = list(enumerate(document))
    return [path, *(each for key, value in inside for each in leaves(value, (*path, key)))]


JUNK = st.sampled_from([None, True, -1, 0, 1, 3, 10**30, 0.5, "", "x", [], [[]], [[[0, 1]]], {}])


@settings(max_examples=60)
@given(data=st.data())
def test_no_value_in_a_file_breaks_it(
    made: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Anything in the place of anything is told, or makes no difference; it is no bug of ours."""
    folder = tmp_path_factory.mktemp("junk") / "dst"
    shutil.copytree(made / "shared", folder)
    file = data.draw(st.sampled_from([CONFIG, QUANTIZATION, INDEX, MANIFEST]))
    document = json.loads((folder / file).read_text())
    path = data.draw(st.sampled_from(leaves(document)))
    junk = data.draw(JUNK)
    place = document
    for key in path[:-1]:
        place = place[key]
    if path:
        place[path[-1]] = junk
    (folder / file).write_text(json.dumps(document if path else junk))
    for against in (None, made / "src"):
        found = verify(folder, against)
        assert found.digests or problems(found)
