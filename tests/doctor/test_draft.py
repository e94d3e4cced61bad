"""A drafter beside its target: what makes a start fail, or acceptance fall without a word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from patchq.doctor.draft import check
from patchq.doctor.drafter import parse
from patchq.errors import PatchqError
from patchq.upstream.components import Model
from tests.support.diagnosis import DFLASH2, only, states, write_drafter
from tests.support.exl3 import Layer, encode_checkpoint, moe_layers
from tests.support.shards import write_safetensors


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


def write_model(folder: Path, **config: Any) -> Path:
    said = {"hidden_size": 64, "vocab_size": 1024, "num_hidden_layers": 4}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(said | config))
    write_safetensors(folder / "model.safetensors", {"lm_head.weight": np.zeros(8, "<f2")})
    return folder


def pin(block_size: int | None) -> Model:
    return Model("draft", "it drafts", "a/b", "1234", block_size=block_size)


def test_a_sound_one_is_one_line(tmp_path: Path, model: Path) -> None:
    drafter = write_drafter(tmp_path / "draft")
    (found,) = check(drafter, model, 7, [pin(8)])
    assert found.state == "ok"
    assert found.says == "DFlash2, trained for 7 draft tokens; it fits the model"


def test_more_tokens_than_it_was_trained_for(tmp_path: Path, model: Path) -> None:
    found = only(check(write_drafter(tmp_path / "draft"), model, 8))
    assert found.says == "8 draft tokens are asked for, it was trained for 7"
    assert found.remedy == "num_speculative_tokens 7 or fewer"


def test_fewer_are_allowed_and_said(tmp_path: Path, model: Path) -> None:
    found = only(check(write_drafter(tmp_path / "draft"), model, 5), "note")
    assert found.says == "5 of the 7 that it was trained for"


def test_the_anchor_counts_where_it_is_sampled_from(tmp_path: Path) -> None:
    drafter = write_drafter(tmp_path / "draft", sample_from_anchor=True)
    assert states(check(drafter, None, 8)) == {"drafter": "ok"}


def test_dflash_1_is_warned_about(tmp_path: Path) -> None:
    config = {"architectures": ["DFlashDraftModel"]}
    found = only(check(write_drafter(tmp_path / "draft", config=config), None, 9), "warning")
    assert "it was trained for 7" in found.says


def test_a_drafter_that_does_not_say_its_block_is_unknown(tmp_path: Path) -> None:
    drafter = write_drafter(tmp_path / "draft", block_size=None)
    assert "is not known" in only(check(drafter, None, 7), "unknown").says
    assert states(check(drafter)) == {"drafter": "ok"}, "nobody asked for a number"


def test_another_block_than_the_pinned_one(tmp_path: Path) -> None:
    drafter = write_drafter(tmp_path / "draft")
    assert "dependencies.toml says 16" in only(check(drafter, pins=[pin(16)]), "warning").says
    assert states(check(drafter, pins=[pin(16), pin(8)])) == {"drafter": "ok"}, "which one is it?"


def test_another_vocabulary(tmp_path: Path, model: Path) -> None:
    found = only(check(write_drafter(tmp_path / "draft", vocabulary=1000), model))
    assert found.says == "its vocabulary is 1000, the model's 1024"


def test_a_vocabulary_of_its_own_needs_a_map(tmp_path: Path, model: Path) -> None:
    config = {"draft_vocab_size": 512}
    found = only(check(write_drafter(tmp_path / "draft", config=config), model))
    assert "drafts from 512 tokens of its own and has no map to the model's 1024" in found.says
    mapped = write_drafter(tmp_path / "mapped", config=config, tensors={"d2t": (512,)})
    assert states(check(mapped, model)) == {"drafter": "ok"}


def test_another_hidden_size(tmp_path: Path, model: Path) -> None:
    found = only(check(write_drafter(tmp_path / "draft", hidden=128), model))
    assert found.says == "its hidden size is 128, the model's 64"


def test_a_size_of_its_own_needs_an_embedding_of_its_own(tmp_path: Path, model: Path) -> None:
    config = {"target_hidden_size": 64}
    fc = {"fc.weight": (128, 128)}
    found = only(check(write_drafter(tmp_path / "draft", 128, config=config, tensors=fc), model))
    assert "its own hidden size is 128, the model's embedding, which it uses, has 64" in found.says
    own = fc | {"embed_tokens.weight": (1024, 128)}
    drafter = write_drafter(tmp_path / "own", 128, config=config, tensors=own)
    assert states(check(drafter, model)) == {"drafter": "ok"}


def test_a_model_with_another_number_of_layers(tmp_path: Path, model: Path) -> None:
    found = only(check(write_drafter(tmp_path / "draft", layers=6), model))
    assert found.says == "its number of target layers is 6, the model's 4"


def test_a_target_layer_that_the_model_does_not_have(tmp_path: Path, model: Path) -> None:
    found = only(check(write_drafter(tmp_path / "draft", target_layer_ids=[0, 4]), model))
    assert found.says == "it reads layer 4 of the model, which has layers 0 to 3"


def test_features_that_do_not_fit_the_target_layers(tmp_path: Path) -> None:
    """vLLM would stop with "mat1 and mat2 shapes cannot be multiplied"."""
    found = only(check(write_drafter(tmp_path / "draft", target_layer_ids=[0, 1, 2])))
    assert found.says == "fc.weight takes 128 features, 3 target layers of 64 give 192"


def test_a_quantized_head_gives_dflash2_no_candidates(tmp_path: Path) -> None:
    layers = [*moe_layers(), Layer("lm_head", 256, 1024)]
    encode_checkpoint(tmp_path / "model", layers, shards=2)
    drafter = write_drafter(tmp_path / "draft", 256)
    assert "lm_head is quantized" in only(check(drafter, tmp_path / "model")).says
    encode_checkpoint(tmp_path / "single", layers)
    assert "lm_head is quantized" in only(check(drafter, tmp_path / "single")).says
    first = write_drafter(tmp_path / "d1", 256, config={"architectures": ["DFlashDraftModel"]})
    assert states(check(first, tmp_path / "model")) == {"drafter": "ok"}


def test_dflash2_without_the_sizes_that_it_needs(tmp_path: Path) -> None:
    found = only(check(write_drafter(tmp_path / "draft", selector_rank=None)))
    assert found.says == "its config.json does not say selector_rank"


def test_groups_that_do_not_divide_the_hidden_size(tmp_path: Path) -> None:
    found = only(check(write_drafter(tmp_path / "draft", conv_group_size=48)))
    assert found.says == "its conv_group_size 48 does not divide its hidden_size 64"


def test_a_mask_that_is_no_token(tmp_path: Path) -> None:
    found = only(check(write_drafter(tmp_path / "draft", mask_token_id=1024)))
    assert found.says == "its mask token 1024 is not in its vocabulary of 1024"


def test_what_is_no_dflash_drafter(tmp_path: Path, model: Path) -> None:
    config = {"architectures": ["EagleLlamaForCausalLM"]}
    drafter = write_drafter(tmp_path / "draft", vocabulary=9, layers=4, config=config)
    found = check(drafter, model, 99)
    assert [each.state for each in found] == ["note", "fatal"]


def test_the_form_of_speculators() -> None:
    """As `speculators` writes it: the layers' sizes inside, the rest at the top."""
    found = parse(
        {
            "speculators_model_type": "dflash2",
            "transformer_layer_config": {"hidden_size": 64, "vocab_size": 1024},
            "aux_hidden_state_layer_ids": [1, 3],
            "draft_vocab_size": 512,
            **{key: value for key, value in DFLASH2.items() if key != "target_layer_ids"},
        }
    )
    assert (found.kind, found.trained, found.hidden_size, found.lacking) == ("DFlash2", 7, 64, ())
    assert (found.target_layers, found.draft_vocab_size) == ((1, 3), 512)


def test_layers_as_eagle_counts_them() -> None:
    """What the layer before gives: one more than a layer's own number."""
    found = parse({"speculators_model_type": "dflash", "eagle_aux_hidden_state_layer_ids": [1, 3]})
    assert (found.kind, found.target_layers) == ("DFlash", (0, 2))


@pytest.mark.parametrize("value", [None, "8", 8.0, True, [], {}])
def test_a_number_that_is_none_is_not_said(value: Any) -> None:
    found = parse({"dflash_config": value, "block_size": value, "hidden_size": value})
    assert (found.block_size, found.hidden_size, found.kind) == (None, None, "")


def test_a_config_that_is_no_json(tmp_path: Path, model: Path) -> None:
    drafter = write_drafter(tmp_path / "draft")
    (drafter / "config.json").write_text("{")
    assert "config.json is no JSON" in only(check(drafter, model)).says


def test_weights_that_are_cut_short(tmp_path: Path, model: Path) -> None:
    drafter = write_drafter(tmp_path / "draft")
    weights = drafter / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-2])
    assert "model.safetensors is truncated" in only(check(drafter, model)).says


def test_no_drafter_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(PatchqError, match="is no folder"):
        check(tmp_path / "none")


def test_a_model_that_is_damaged_is_not_said_to_fit(tmp_path: Path, model: Path) -> None:
    (model / "config.json").write_text("{")
    (found,) = check(write_drafter(tmp_path / "draft"), model)
    assert found.says == "DFlash2, trained for 7 draft tokens"


def test_a_model_that_is_named_by_its_one_file(tmp_path: Path, model: Path) -> None:
    drafter = write_drafter(tmp_path / "draft", vocabulary=1000)
    assert only(check(drafter, model / "model.safetensors")).says.startswith("its vocabulary is")
