"""The table that says which layer is cut how, and a user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.exl3.families import load, number, parse, product


@pytest.mark.parametrize(
    ("module", "split"),
    [
        ("model.layers.*.mlp.experts.*.gate_proj", "column"),
        ("model.layers.*.mlp.experts.*.down_proj", "row"),
        ("model.layers.*.block_sparse_moe.experts.*.w1", "column"),
        ("model.layers.*.block_sparse_moe.experts.*.w2", "row"),
        ("layers.*.ffn.experts.*.w3", "column"),
        ("model.layers.*.mlp.shared_experts.up_proj", "column"),
        ("model.layers.*.mlp.gate_up_proj", "column"),
        ("model.layers.*.self_attn.q_proj", "column"),
        ("model.layers.*.self_attn.q_a_proj", "whole"),
        ("model.layers.*.self_attn.q_b_proj", "column"),
        ("model.layers.*.self_attn.kv_a_proj_with_mqa", "whole"),
        ("model.layers.*.self_attn.kv_b_proj", "column"),
        ("model.layers.*.self_attn.indexer.wq_b", "whole"),
        ("model.layers.*.self_attn.indexer.wk", "whole"),
        ("model.layers.*.self_attn.o_proj", "row"),
        ("model.layers.*.linear_attn.out_proj", "row"),
        ("model.layers.*.mlp.gate", "whole"),
        ("lm_head", "column"),
    ],
)
def test_shipped_table(module: str, split: str) -> None:
    rule = load().find(module)
    assert rule is not None and rule.split == split and rule.why


def test_unknown_layers_have_no_rule() -> None:
    assert load().find("model.layers.*.mixer.frobnicate") is None
    assert load().find("gate_proj_extra") is None


def test_every_end_stands_once() -> None:
    (table,) = load().tables
    ends = [end for rule in table for end in rule.modules]
    assert len(ends) == len(set(ends))


def test_a_users_table_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[[rule]]\nmodules = ["frobnicate", "mlp.down_proj"]\nsplit = "whole"\n')
    families = load([path])
    found = families.find("model.layers.*.mixer.frobnicate")
    assert found is not None and found.split == "whole"
    changed = families.find("model.layers.*.mlp.down_proj")
    assert changed is not None and changed.split == "whole"
    kept = families.find("model.layers.*.mlp.experts.*.down_proj")
    assert kept is not None and kept.split == "row"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[[rule", "no TOML"),
        ("", "no table of [[rule]]"),
        ("rule = 7", "no table of [[rule]]"),
        ('x = 1\n[[rule]]\nmodules = ["a"]\nsplit = "row"', "no table of [[rule]]"),
        ('[[rule]]\nmodules = ["a"]\nsplit = "diagonal"', "split is one of"),
        ('[[rule]]\nmodules = []\nsplit = "row"', "modules is no list"),
        ('[[rule]]\nmodules = ["a..b"]\nsplit = "row"', "modules is no list"),
        ('[[rule]]\nmodules = ["a"]\nsplit = "row"\nparts = 0', "parts is a number"),
        ('[[rule]]\nmodules = ["a"]\nsplit = "row"\nparts = ["1+1"]', "parts lists products"),
        ('[[rule]]\nmodules = ["a"]\nsplit = "row"\nheads = 3', "heads is no str"),
        ('[[rule]]\nmodules = ["a"]\nsplit = "row"\nmlp = "up"', "mlp is"),
        ('[[rule]]\nmodules = ["a"]\nsplit = "row"\ncolour = "red"', "it may have"),
    ],
)
def test_bad_tables(content: str, says: str) -> None:
    with pytest.raises(PatchqError, match=r".") as caught:
        parse(content, "mine.toml")
    assert says in caught.value.message and caught.value.message.startswith("mine.toml")


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PatchqError, match="cannot be read"):
        load([tmp_path / "none.toml"])


def test_numbers_of_the_config() -> None:
    config = {"hidden_size": 4096, "num_attention_heads": 32, "flag": True, "zero": 0}
    assert number(config, "hidden_size") == 4096
    assert number(config, "head_dim") == 128
    assert number(config, "num_key_value_heads") == 32
    assert number({"text_config": config}, "hidden_size") == 4096
    assert number(config, "flag") is None and number(config, "zero") is None
    assert product(config, "num_attention_heads*head_dim") == 4096
    assert product(config, "num_attention_heads*nothing") is None
