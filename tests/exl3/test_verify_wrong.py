"""Verification of what is wrong: a bit, a value, a tensor, a file, a cut."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from patchq.exl3.verify import verify
from tests.support.shards import Array, read_safetensors, write_safetensors
from tests.support.slices import (
    EXPERT,
    INDEX,
    LAST,
    failed,
    flip,
    problems,
    put,
    rewrite,
)

# A bit.


@pytest.mark.parametrize(
    "name",
    [
        f"{EXPERT}.gate_proj.rank0.trellis",
        f"{EXPERT}.down_proj.rank1.trellis",
        f"{EXPERT}.up_proj.rank1.svh",
        f"{EXPERT}.down_proj.rank0.suh",
        f"{EXPERT}.up_proj.rank1.suh",
        "model.layers.1.mlp.shared_experts.down_proj.rank1.svh",
        "model.layers.0.self_attn.o_proj.rank0.bias",
        "lm_head.rank1.trellis",
        "model.embed_tokens.weight",
    ],
)
def test_one_bit(made: Path, copy: Path, name: str) -> None:
    flip(copy, name, 2)
    found = verify(copy, made / "src")
    assert "bytes" in failed(found)
    assert any(problem.startswith(f"{name} (") for problem in problems(found))
    assert not verify(copy, made / "src", full=True).ok


@pytest.mark.parametrize("name", ["gate_proj.rank1.suh", "down_proj.rank1.svh"])
def test_one_bit_of_a_copy_shows_without_the_source(copy: Path, name: str) -> None:
    flip(copy, f"{EXPERT}.{name}", 0)
    found = verify(copy)
    assert failed(found) == ["copies"]
    assert problems(found) == [f"{EXPERT}.{name} is not what rank 0 has"]


def test_values_that_are_no_numbers(made: Path, copy: Path) -> None:
    put(copy, f"{EXPERT}.gate_proj.rank0.svh", 6, b"\x00\x7e")
    put(copy, f"{EXPERT}.gate_proj.rank1.mcg", 0, b"\x00")
    for found in (verify(copy), verify(copy, made / "src")):
        assert "values" in failed(found)
        assert f"{EXPERT}.gate_proj.rank0.svh: its value 3 is nan" in problems(found)
        said = f"{EXPERT}.gate_proj.rank1.mcg: its value is 0xcbac1f00, not 0xcbac1fed"
        assert said in problems(found)


# Tensors and files.


def without(name: str) -> Callable[[dict[str, Array]], None]:
    return lambda tensors: tensors.__delitem__(name)


def changed(name: str, how: Callable[[Array], Array]) -> Callable[[dict[str, Array]], None]:
    return lambda tensors: tensors.__setitem__(name, how(tensors[name]))


SPOILED: list[tuple[Callable[[dict[str, Array]], None], str]] = [
    (without(f"{LAST}.rank1.svh"), f"rank 1: {LAST}.svh: it is missing"),
    (
        without(f"{LAST}.rank1.trellis"),
        f"rank 1: {LAST}.trellis: it is missing, but other parts of the layer are there",
    ),
    (
        without(f"{LAST}.rank1.mcg"),
        f"rank 1: {LAST} has codebook 3inst, rank_sliced_modules says mcg",
    ),
    (
        changed(f"{LAST}.rank0.trellis", lambda x: np.ascontiguousarray(x[:, :, :48])),
        f"rank 0: {LAST} has bits 3, rank_sliced_modules says 4",
    ),
    (
        changed(f"{LAST}.rank0.svh", lambda x: x.astype("<f4")),
        f"rank 0: {LAST}.svh: it is F32, not F16",
    ),
    (
        lambda tensors: tensors.update({f"{LAST}.rank0.mul1": tensors[f"{LAST}.rank0.mcg"]}),
        f"rank 0: {LAST}.mul1: it stands beside the marker of another codebook, mcg",
    ),
    (
        lambda tensors: tensors.update({"extra.weight": np.zeros(4, "<f4")}),
        "extra.weight is left over: the source has no such tensor",
    ),
]


@pytest.mark.parametrize(("change", "says"), SPOILED)
def test_tensors_that_should_be_others(
    made: Path, copy: Path, change: Callable[[dict[str, Array]], None], says: str
) -> None:
    rewrite(copy, change)
    found = verify(copy, made / "src")
    assert not found.ok and says in problems(found), problems(found)
    assert found.digests == {}


def test_a_tensor_of_all_that_is_missing(made: Path, copy: Path) -> None:
    """A rank's layer cannot tell; the source and the manifest do."""
    rewrite(copy, without("model.norm.weight"), file=1)
    assert any("is not the file that" in problem for problem in problems(verify(copy)))
    said = "model.norm.weight is missing; the source has model.norm.weight"
    assert said in problems(verify(copy, made / "src"))


def test_a_shard_that_is_cut_short(copy: Path) -> None:
    path = copy / "model-00002-of-00002.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    found = verify(copy)
    assert "headers" in failed(found)
    assert any("is truncated" in problem for problem in problems(found))


def test_a_shard_that_is_left_over(copy: Path) -> None:
    write_safetensors(copy / "old.safetensors", {"old": np.zeros(1, "<f4")})
    assert f"old.safetensors is not in {INDEX}" in problems(verify(copy))


def test_ranks_that_changed_places(made: Path, tmp_path: Path) -> None:
    """All bytes are there, in tensors of the right size: under the wrong ranks' names."""
    shutil.copytree(made / "shared", tmp_path / "dst")

    def swap(tensors: dict[str, Array]) -> None:
        one, two = (f"{LAST}.rank{rank}.trellis" for rank in (0, 1))
        tensors[one], tensors[two] = tensors[two], tensors[one]

    rewrite(tmp_path / "dst", swap)
    found = verify(tmp_path / "dst", made / "src")
    assert failed(found) == ["bytes", "decode"]
    assert f"rows 0 to 127 of {LAST}.rank0 decode to other weights" in problems(found)[-2]


def test_a_rank_that_nothing_is_for(copy: Path) -> None:
    def move(tensors: dict[str, Array]) -> None:
        tensors[f"{LAST}.rank3.svh"] = tensors.pop(f"{LAST}.rank1.svh")

    rewrite(copy, move)
    assert "no tensor is for rank 2 of 4" in problems(verify(copy))


def test_a_tensor_in_two_shards_and_in_another_than_the_index_says(copy: Path) -> None:
    first, second = (copy / f"model-0000{file}-of-00002.safetensors" for file in (1, 2))
    tensors = read_safetensors(second) | {"model.norm.weight": np.zeros(4, "<f4")}
    write_safetensors(second, tensors)
    said = f"model.norm.weight stands in {first.name} and in {second.name}"
    assert said in problems(verify(copy))
    tensors = read_safetensors(first)
    tensors.pop("model.norm.weight")
    write_safetensors(first, tensors)
    said = f"{INDEX} places model.norm.weight in {first.name}, but it is in {second.name}"
    assert said in problems(verify(copy))


def test_a_tensor_in_the_file_of_another_rank(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "dst"
    shutil.copytree(made / "per-rank", folder)
    mine, other = (folder / f"model-00002-of-00002.rank{rank}.safetensors" for rank in (0, 1))
    shutil.copyfile(other, mine)
    said = f"{mine.name} holds {LAST}.rank1.trellis, which is not of its rank"
    assert said in problems(verify(folder))
