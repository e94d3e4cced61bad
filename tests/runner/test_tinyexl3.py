"""The tiny EXL3 models: sound by patchq's own verification, and the same on every machine."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from patchq.exl3.layout import LAYOUTS
from patchq.exl3.verify import verify
from tests.support.shards import read_folder
from tests.support.tinyexl3 import KINDS, RANKS, TinyExl3, make


def tiny(folder: Path) -> Path:
    """What is taken of the tiny model: its tokenizer's files and where its answers end."""
    folder.mkdir()
    (folder / "config.json").write_text('{"eos_token_id": 7}')
    (folder / "tokenizer.json").write_text("{}")
    return folder


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> TinyExl3:
    return make(tmp_path / "model", request.param, tiny(tmp_path / "tiny"))


def test_every_cut_is_sound(model: TinyExl3) -> None:
    digests = {}
    for layout in LAYOUTS:
        found = verify(model.sliced(layout), model.plain, full=True)
        assert found.ok, found.checks
        digests[layout] = found.digests
    assert digests["shared"] == digests["per-rank"]
    for rank in range(RANKS):
        alone = verify(model.of_rank(rank))
        assert alone.ok and alone.ranks == (rank,)
        assert alone.digests == {rank: digests["shared"][rank]}


def test_parts_that_are_fused_differ_in_their_bits(model: TinyExl3) -> None:
    storage = json.loads((model.plain / "quantization_config.json").read_bytes())["tensor_storage"]
    bits = {name: each["bits_per_weight"] for name, each in storage.items()}
    for name, width in bits.items():
        for part, other in (("q_proj", "k_proj"), ("gate_proj", "up_proj")):
            if name.endswith(part):
                assert bits[name.removesuffix(part) + other] != width, name


def test_the_twin_has_every_weight_and_is_not_quantized(model: TinyExl3) -> None:
    whole, twin = read_folder(model.plain), read_folder(model.twin)
    layers = {name.removesuffix(".trellis") for name in whole if name.endswith(".trellis")}
    assert {f"{layer}.weight" for layer in layers} <= twin.keys()
    for name in twin.keys() & whole.keys():
        assert twin[name].tobytes() == whole[name].tobytes()
    config = json.loads((model.twin / "config.json").read_bytes())
    assert "quantization_config" not in config and config["eos_token_id"] == 7


def test_it_is_the_same_each_time(model: TinyExl3, tmp_path: Path) -> None:
    kind = "moe" if "experts" in " ".join(read_folder(model.plain)) else "dense"
    again = make(tmp_path / "again", kind, tmp_path / "tiny")
    assert content(again.root) == content(model.root)


def content(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
