"""Plans: which layer is cut where, and what is refused with which numbers."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.errors import UsageError
from patchq.exl3.checkpoint import read
from patchq.exl3.cuts import NoCut, cut
from patchq.exl3.families import Rule, load
from patchq.exl3.model import Plan
from patchq.exl3.plan import plan
from patchq.exl3.summary import Summary, summarize
from patchq.exl3.values import check
from tests.support.exl3 import (
    Layer,
    dense_layers,
    encode_checkpoint,
    fused_layers,
    moe_layers,
    varied,
)

COLUMN = Rule(("x",), "column")
HEADS = Rule(("x",), "column", heads="num_key_value_heads")
SHARED = Rule(("x",), "column", heads="num_key_value_heads", shared=True)
QKV = Rule(
    ("x",),
    "column",
    parts=("num_attention_heads*head_dim", "num_key_value_heads*head_dim"),
    heads="num_key_value_heads",
    shared=True,
)


def planned(folder: Path, tp: int = 2, uneven: bool = False, **config: Any) -> Plan:
    if config:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | config))
    return plan(read(folder), tp, load(), uneven=uneven)


def refusals(made: Plan) -> list[str]:
    assert not made.pieces
    return [f"{refusal.tensor}: {refusal.why}" for refusal in made.refused]


# Cuts.


def test_equal_shares() -> None:
    assert cut(COLUMN, 256, 512, 2, {}, uneven=False).ranges == (((0, 256),), ((256, 512),))
    assert cut(Rule(("x",), "row"), 1024, 256, 8, {}, uneven=False).width(7) == 128
    assert cut(Rule(("x",), "whole"), 256, 256, 3, {}, uneven=False).ranges == ()


@pytest.mark.parametrize("tp", [3, 4, 5])
def test_a_torn_block_is_refused_with_the_numbers(tp: int) -> None:
    with pytest.raises(NoCut) as caught:
        cut(COLUMN, 256, 384, 2, {}, uneven=False)
    assert str(caught.value) == (
        "its 384 out_features give 192 for each of 2 ranks, no multiple of 128"
    )
    assert caught.value.hint == "--tp 3 would fit; --uneven cuts at multiples of 128"
    with pytest.raises(NoCut):
        cut(COLUMN, 256, 256, tp, {}, uneven=tp == 5)


def test_uneven_shares() -> None:
    found = cut(COLUMN, 256, 896, 3, {}, uneven=True)
    assert found.ranges == (((0, 384),), ((384, 640),), ((640, 896),))


def test_fused_parts_are_cut_alone() -> None:
    found = cut(Rule(("x",), "column", parts=2), 256, 1024, 2, {}, uneven=False)
    assert found.ranges == (((0, 256), (512, 768)), ((256, 512), (768, 1024)))


def test_fewer_heads_than_ranks_are_shared() -> None:
    config = {"num_key_value_heads": 2, "num_attention_heads": 8, "head_dim": 128}
    found = cut(SHARED, 256, 256, 4, config, uneven=False)
    assert found.ranges == (((0, 128),), ((0, 128),), ((128, 256),), ((128, 256),))
    both = cut(QKV, 256, 1024 + 256, 4, config, uneven=False)
    assert both.ranges[1] == ((256, 512), (1024, 1152))


def test_parts_that_the_config_contradicts() -> None:
    config = {"num_key_value_heads": 2, "num_attention_heads": 8, "head_dim": 128}
    with pytest.raises(NoCut, match=r"it has 1408 out_features, config.json says 1024 \+ 256"):
        cut(QKV, 256, 1408, 2, config, uneven=False)
    with pytest.raises(NoCut, match=r"config\.json does not say num_attention_heads"):
        cut(QKV, 256, 1280, 2, {}, uneven=False)


def test_uneven_shares_keep_heads_and_their_queries_together() -> None:
    config = {"num_key_value_heads": 8, "num_attention_heads": 48, "head_dim": 128}
    query = cut(HEADS, 256, 6144, 3, config, uneven=True)
    key = cut(SHARED, 256, 1024, 3, config, uneven=True)
    assert [query.width(rank) for rank in range(3)] == [3 * 768, 3 * 768, 2 * 768]
    assert [key.width(rank) for rank in range(3)] == [384, 384, 256]
    with pytest.raises(NoCut, match=r"config\.json does not say num_key_value_heads"):
        cut(HEADS, 256, 1280, 3, {}, uneven=True)
    with pytest.raises(NoCut, match="heads of 64 tear"):
        cut(HEADS, 256, 1280, 3, config | {"num_key_value_heads": 20}, uneven=True)


@given(st.integers(1, 40), st.integers(2, 16), st.booleans(), st.integers(1, 3))
def test_every_feature_is_held_once(blocks: int, tp: int, uneven: bool, parts: int) -> None:
    size = blocks * 128 * parts
    try:
        found = cut(Rule(("x",), "column", parts=parts), 256, size, tp, {}, uneven=uneven)
    except NoCut:
        assert blocks < tp or (not uneven and blocks % tp)
        return
    ranges = sorted(each for rank in found.ranges for each in rank)
    assert ranges[0][0] == 0 and ranges[-1][1] == size
    assert all(before[1] == after[0] for before, after in pairwise(ranges))
    assert all(low % 128 == 0 and low < high for low, high in ranges)
    widths = [found.width(rank) for rank in range(tp)]
    assert max(widths) - min(widths) <= (128 * parts if uneven else 0)


# Plans.


def test_what_a_checkpoint_is(tmp_path: Path) -> None:
    layers = [
        *varied(moe_layers((1, 2), experts=3, shared_experts=True), bits=[3, 4]),
        *dense_layers((0,), head=512),
    ]
    encode_checkpoint(tmp_path, varied(layers, bias=lambda each: "q_proj" in each.name), shards=2)
    found: Summary = summarize(planned(tmp_path))
    assert not found.refused
    assert (found.shards, found.single_file, found.layers) == (2, False, 3)
    assert (found.moe_layers, found.experts) == ((1, 2), (3,))
    assert (found.routed, found.dense, found.biases) == (18, 6 + 8, 1)
    assert found.bits == ((3, 12), (4, 20)) and found.codebooks == (("mcg", 32),)
    assert 3 < found.average_bits < 4
    assert found.bytes_rank[0] - found.bytes_rank[1] == 0
    assert found.bytes_result > found.bytes_source


def test_names_of_other_families(tmp_path: Path) -> None:
    layers = moe_layers(names=("w1", "w3", "w2"), prefix="layers.{layer}.ffn.experts")
    encode_checkpoint(tmp_path, layers)
    made = planned(tmp_path)
    assert not made.refused and {each.split for each in made.cuts.values()} == {"column", "row"}


def test_layers_of_no_family_are_refused_with_the_remedy(tmp_path: Path) -> None:
    encode_checkpoint(tmp_path, [Layer("model.layers.0.mixer.frobnicate", 256, 256)])
    made = planned(tmp_path)
    (found,) = refusals(made)
    assert found == (
        "model.layers.0.mixer.frobnicate.trellis:"
        " no family says how model.layers.*.mixer.frobnicate (256 x 256) is cut"
    )
    assert 'modules = ["frobnicate"]' in made.refused[0].hint


def test_nothing_to_cut(tmp_path: Path) -> None:
    encode_checkpoint(tmp_path, [Layer("model.layers.0.self_attn.q_a_proj", 256, 256)])
    assert "none of its layers is cut" in refusals(planned(tmp_path))[0]


def test_ranks_that_make_no_sense(tmp_path: Path) -> None:
    encode_checkpoint(tmp_path)
    for tp in (-1, 0, 1, 65):
        with pytest.raises(UsageError):
            planned(tmp_path, tp)


def test_three_ranks_are_refused_or_uneven(tmp_path: Path) -> None:
    encode_checkpoint(tmp_path, moe_layers(intermediate=512))
    assert len(refusals(planned(tmp_path, 3))) == 6
    made = planned(tmp_path, 3, uneven=True)
    widths = {tuple(each.width(rank) for rank in range(3)) for each in made.cuts.values()}
    assert widths == {(256, 128, 128)}


def test_torn_heads_are_noted(tmp_path: Path) -> None:
    encode_checkpoint(tmp_path, dense_layers(hidden=768, key_value=768, mlp=False))
    made = planned(tmp_path, 2, num_attention_heads=3, num_key_value_heads=3)
    assert made.warnings and "3 heads (num_key_value_heads)" in made.warnings[0]


# What is damaged.

EXPERT = "model.layers.1.mlp.experts.0.gate_proj"


def spoiled(folder: Path, change: Any, layers: Any = None, **config: Any) -> list[str]:
    encode_checkpoint(folder, layers, spoil=change, manifest=False)
    return refusals(planned(folder, **config))


def retype(name: str, dtype: str) -> Any:
    return lambda tensors: tensors.update({name: tensors[name].view(dtype)})


def test_wrong_dtypes(tmp_path: Path) -> None:
    for number, (field, dtype, says) in enumerate(
        [
            ("trellis", "<f2", "it is F16, not I16"),
            ("suh", "<i2", "it is I16, not F16"),
            ("mcg", "<f4", "it is F32, not I32"),
        ]
    ):
        found = spoiled(tmp_path / str(number), retype(f"{EXPERT}.{field}", dtype))
        assert found == [f"{EXPERT}.{field}: {says}"]


def test_two_markers(tmp_path: Path) -> None:
    def change(tensors: dict[str, Any]) -> None:
        tensors[f"{EXPERT}.mul1"] = tensors[f"{EXPERT}.mcg"]

    assert spoiled(tmp_path, change) == [
        f"{EXPERT}.mul1: it stands beside the marker of another codebook, mcg"
    ]


@pytest.mark.parametrize(
    ("field", "shape", "says"),
    [
        ("trellis", (16, 256, 4), "its last axis is 4, not 16 times 1 to 8 bits"),
        ("trellis", (4, 16, 256), "its last axis is 256, not 16 times 1 to 8 bits"),
        ("trellis", (64, 4, 64), "it is 1024 x 64: not multiples of 128"),
        ("trellis", (16384,), "its shape is [16384], not [K/16, N/16, 16*bits]"),
        ("suh", (2, 128), f"its shape is [2, 128], the layer {EXPERT} needs [256]"),
        ("mcg", (1, 1), "its shape is [1, 1], a marker is one number"),
    ],
)
def test_wrong_shapes(tmp_path: Path, field: str, shape: tuple[int, ...], says: str) -> None:
    def change(tensors: dict[str, Any]) -> None:
        tensors[f"{EXPERT}.{field}"] = tensors[f"{EXPERT}.{field}"].reshape(shape)

    assert f"{EXPERT}.{field}: {says}" in spoiled(tmp_path, change)


@pytest.mark.parametrize("field", ["trellis", "suh", "svh"])
def test_missing_parts(tmp_path: Path, field: str) -> None:
    found = spoiled(tmp_path, lambda tensors: tensors.pop(f"{EXPERT}.{field}"))
    assert found[0].startswith(f"{EXPERT}.{field}: it is missing")


def test_experts_that_do_not_fit_each_other(tmp_path: Path) -> None:
    layers = moe_layers(experts=1)
    wide = [Layer(each.name, 512, each.n) if "down_proj" in each.name else each for each in layers]
    assert spoiled(tmp_path, None, wide)[0] == (
        "model.layers.1.mlp.experts.0.down_proj.trellis:"
        " its 512 x 256 does not fit model.layers.1.mlp.experts.0.up_proj, 256 x 256, in one MLP"
    )


def test_missing_experts(tmp_path: Path) -> None:
    def change(tensors: dict[str, Any]) -> None:
        for name in list(tensors):
            if ".experts.1." in name:
                del tensors[name]

    found = spoiled(tmp_path / "a", change, moe_layers(experts=3))
    assert found == ["model.layers.1.mlp.experts: it has 2 experts, the last is 2; missing: 1"]
    found = spoiled(tmp_path / "b", None, moe_layers(experts=3), n_routed_experts=5)
    assert found == [
        "model.layers.1.mlp.experts: it has 3 experts, config.json says 5; missing: 3, 4"
    ]


def test_experts_in_any_order_and_number_are_fine_if_complete(tmp_path: Path) -> None:
    layers = sorted(moe_layers(experts=4), key=lambda each: hash(each.name[::-1]))
    encode_checkpoint(tmp_path / "a", layers, shards=4)
    assert not planned(tmp_path / "a", n_routed_experts=4).refused
    gaps = [each for each in moe_layers(experts=4) if ".experts.1." not in each.name]
    encode_checkpoint(tmp_path / "b", gaps)
    assert not planned(tmp_path / "b", n_routed_experts=3).refused


def test_zero_experts(tmp_path: Path) -> None:
    encode_checkpoint(tmp_path, dense_layers())
    assert refusals(planned(tmp_path, num_experts=8)) == [
        ": config.json says 8 experts, it holds none"
    ]
    assert not planned(tmp_path, num_experts=0).refused
    encode_checkpoint(tmp_path / "b")
    assert refusals(planned(tmp_path / "b", num_experts=0)) == [
        "model.layers.1.mlp.experts: it has experts, config.json says 0"
    ]


def test_fused_experts_of_the_wrong_number(tmp_path: Path) -> None:
    encode_checkpoint(tmp_path, fused_layers(experts=3))
    assert not planned(tmp_path).refused
    assert all("it has 3 experts" in each for each in refusals(planned(tmp_path, num_experts=4)))


def test_nothing_quantized(tmp_path: Path) -> None:
    def change(tensors: dict[str, Any]) -> None:
        for name in list(tensors):
            if ".experts." in name:
                del tensors[name]

    assert spoiled(tmp_path, change) == [": it holds no EXL3 layer (no tensor NAME.trellis)"]


def test_already_cut(tmp_path: Path) -> None:
    def change(tensors: dict[str, Any]) -> None:
        for name in list(tensors):
            module, _, field = name.rpartition(".")
            if ".experts." in name:
                tensors[f"{module}.rank1.{field}"] = tensors.pop(name)

    found = spoiled(tmp_path, change)
    assert len(found) == 1 and found[0].endswith("it is already cut, for 2 ranks")


def test_shared_vectors_that_nobody_needs(tmp_path: Path) -> None:
    def change(tensors: dict[str, Any]) -> None:
        name = "model.layers.1.mlp.experts.shared_h.gate_proj"
        tensors[f"{name}.suh"] = tensors[f"{EXPERT}.suh"]
        tensors[f"{name}.mcg"] = tensors[f"{EXPERT}.mcg"]

    assert [each.split(": ")[1] for each in spoiled(tmp_path, change)] == [
        "no expert needs this shared vector",
        "it is no Hadamard vector that can be shared",
    ]


def test_bits_that_the_manifest_contradicts(tmp_path: Path) -> None:
    encode_checkpoint(tmp_path)
    path = tmp_path / "quantization_config.json"
    path.write_text(path.read_text().replace('"bits_per_weight": 4', '"bits_per_weight": 5', 1))
    (found,) = refusals(planned(tmp_path))
    assert found.endswith("it has 4 bits, quantization_config.json says 5")


# Values.


def values(folder: Path, change: Any, layers: Any = None) -> list[str]:
    encode_checkpoint(folder, layers, spoil=change)
    return [f"{each.tensor}: {each.why}" for each in check(planned(folder))]


def test_sound_values(tmp_path: Path) -> None:
    assert values(tmp_path, None) == []


@pytest.mark.parametrize(
    ("number", "says"), [(0x7E00, "NaN"), (0xFC00, "infinite"), (0x7C01, "NaN"), (0xFFFF, "NaN")]
)
@pytest.mark.parametrize("field", ["suh", "svh"])
def test_scales_that_are_no_numbers(tmp_path: Path, field: str, number: int, says: str) -> None:
    def change(tensors: dict[str, Any]) -> None:
        tensors[f"{EXPERT}.{field}"].view("<u2")[17] = number

    assert values(tmp_path, change) == [f"{EXPERT}.{field}: its value 17 is {says} ({number:#06x})"]


def test_markers_of_another_value(tmp_path: Path) -> None:
    def change(tensors: dict[str, Any]) -> None:
        tensors[f"{EXPERT}.mcg"] = tensors[f"{EXPERT}.mcg"] + 1

    assert values(tmp_path, change) == [
        f"{EXPERT}.mcg: its value is 0xcbac1fee, its codebook's is 0xcbac1fed"
    ]
