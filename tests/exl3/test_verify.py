"""Verification of what is sound: every form, every layout, on its own and against the source."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patchq.errors import PatchqError
from patchq.exl3 import proof, reading
from patchq.exl3.compare import Reader, Stored
from patchq.exl3.families import load
from patchq.exl3.model import Cut, Module, Tensor
from patchq.exl3.slice import run
from patchq.exl3.sliced import read
from patchq.exl3.verify import verify
from tests.support.exl3 import (
    REFERENCE,
    Layer,
    dense_layers,
    encode_checkpoint,
    fused_layers,
    moe_layers,
    needs_reference,
    varied,
)
from tests.support.shards import read_safetensors
from tests.support.slices import CONFIG, EXPERT, flip, make_both, problems, various


def sliced(folder: Path, layout: Any = "shared", tp: int = 2, **source: Any) -> Path:
    """`folder`/src, and `folder`/dst cut from it."""
    encode_checkpoint(folder / "src", **source)
    run(folder / "src", folder / "dst", tp, load(), layout=layout)
    return folder / "dst"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_both(tmp_path_factory.mktemp("made"))


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    """The layout `shared`, to be spoiled."""
    shutil.copytree(made / "shared", tmp_path / "shared")
    return tmp_path / "shared"


# What is sound.

FORMS: dict[str, list[Layer]] = {
    "moe": moe_layers(layers=(1, 2), experts=3, intermediate=512, shared_experts=True),
    "mul1": varied(moe_layers(), codebook=["mul1"]),
    "3inst": varied(moe_layers(), codebook=["3inst"]),
    "codebooks": varied(dense_layers(), codebook=["mcg", "mul1", "3inst"]),
    "bits": varied(moe_layers(experts=8), bits=list(range(1, 9))),
    "shared vectors": varied(moe_layers(shared_hadamard=True), bits=[3, 4]),
    "fused": fused_layers(intermediate=512),
    "dense": dense_layers(head=512),
    "legacy": varied(dense_layers(), legacy=[True]),
    "bias": varied(dense_layers(), bias=[True]),
    "other names": moe_layers(
        names=("w1", "w3", "w2"), prefix="model.layers.{layer}.block_sparse_moe.experts"
    ),
}


@pytest.mark.parametrize("layout", ["shared", "per-rank"])
@pytest.mark.parametrize("form", FORMS)
def test_sound(tmp_path: Path, form: str, layout: str) -> None:
    result = sliced(tmp_path, layout, layers=FORMS[form], shards=2)
    for found in (
        verify(result),
        verify(result, tmp_path / "src"),
        verify(result, tmp_path / "src", full=True, threads=1),
    ):
        assert problems(found) == [] and found.ok
        assert found.ranks == (0, 1) and found.tp == 2
        assert found.weights_decoded > 0 and found.bytes_read > 0


def test_full_decodes_every_weight(made: Path) -> None:
    found = verify(made / "shared", made / "src", full=True)
    shapes = [
        array.shape
        for path in (made / "src").glob("*.safetensors")
        for name, array in read_safetensors(path).items()
        if name.endswith(".trellis")
    ]
    assert found.ok
    assert found.weights_decoded == sum(rows * columns * 256 for rows, columns, _ in shapes)


@pytest.mark.parametrize("tp", [4, 8])
def test_more_ranks(tmp_path: Path, tp: int) -> None:
    layers = moe_layers(hidden=128 * tp, intermediate=128 * tp, experts=1)
    found = verify(sliced(tmp_path, tp=tp, layers=layers), tmp_path / "src", full=True)
    assert found.ok and len(set(found.digests.values())) == tp


def test_uneven(tmp_path: Path) -> None:
    encode_checkpoint(tmp_path / "src", moe_layers(intermediate=512))
    run(tmp_path / "src", tmp_path / "dst", 3, load(), uneven=True)
    found = verify(tmp_path / "dst", tmp_path / "src", full=True)
    assert problems(found) == [] and found.ranks == (0, 1, 2)


@needs_reference
@pytest.mark.parametrize("name", ["default-2bpw", "mcg-4bpw", "mcg-6bpw", "mul1-3bpw"])
def test_real_layers(tmp_path: Path, name: str) -> None:
    """exllamav3's own tensors in every byte, decoded on each rank."""
    (tmp_path / "src").mkdir()
    shutil.copyfile(REFERENCE / f"{name}.safetensors", tmp_path / "src" / "model.safetensors")
    (tmp_path / "src" / CONFIG).write_text('{"quantization_config": {"quant_method": "exl3"}}')
    run(tmp_path / "src", tmp_path / "dst", 2, load())
    found = verify(tmp_path / "dst", tmp_path / "src", full=True)
    assert problems(found) == []


class Steps:
    """A progress that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, int | None, str]] = []

    def step(self, what: str, done: int = 0, total: int | None = None, unit: str = "") -> None:
        self.told.append((what, done, total, unit))


def test_progress_is_told_to_its_end(made: Path) -> None:
    steps = Steps()
    verify(made / "shared", made / "src", progress=steps)
    last = {what: (done, total, unit) for what, done, total, unit in steps.told}
    assert list(last) == ["reading headers", "comparing", "decoding"]
    for what in ("comparing", "decoding"):
        done, total, _ = last[what]
        assert done == total
    compared = [done for what, done, *_ in steps.told if what == "comparing"]
    assert compared == sorted(compared)


def test_small_batches_give_the_same(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = verify(made / "shared", made / "src")
    monkeypatch.setattr(reading, "BATCH", 10_000)
    assert verify(made / "shared", made / "src") == wanted


# Digests.


def test_digests_do_not_depend_on_where_tensors_are(made: Path, tmp_path: Path) -> None:
    other = sliced(tmp_path, layers=various())
    wanted = verify(made / "shared").digests
    assert wanted == verify(made / "per-rank").digests == verify(other, threads=1).digests
    assert wanted == verify(made / "shared", made / "src").digests
    assert sorted(wanted) == [0, 1] and wanted[0] != wanted[1]


def test_a_digest_is_of_what_its_rank_reads(copy: Path) -> None:
    before = verify(copy).digests
    flip(copy, f"{EXPERT}.gate_proj.rank1.trellis", 40)
    after = verify(copy).digests
    assert before[0] == after[0] and before[1] != after[1]
    flip(copy, "model.norm.weight", 0)
    both = verify(copy).digests
    assert both[0] != after[0] and both[1] != after[1]


def test_a_node_that_copied_its_part(made: Path, tmp_path: Path) -> None:
    """Only its own files: as sound as they were, and the same digest."""
    node = tmp_path / "node"
    shutil.copytree(made / "per-rank", node, ignore=shutil.ignore_patterns("*.rank0.safetensors"))
    for found in (verify(node), verify(node, made / "src", full=True)):
        assert problems(found) == [] and found.ranks == (1,) and found.tp == 2
        assert found.digests == {1: verify(made / "per-rank").digests[1]}
    next(node.glob("*-00001-of-*.rank1.safetensors")).unlink()
    assert "model-00001-of-00002.rank1.safetensors is missing" in problems(verify(node))


# Decoding.


def stored_layer(reader: Reader, name: str, tensors: Iterable[Tensor]) -> proof.Layer:
    return proof.Layer(
        name, {each.name.rpartition(".")[2]: Stored(reader, each) for each in tensors}
    )


def test_decoding_alone_tells_a_wrong_slice(made: Path) -> None:
    """The proof does not lean on the comparison of bytes: it sees a wrong scale and a shift."""
    view, whole = read(made / "shared").views[1], read(made / "shared").checkpoint
    name = "lm_head"
    with Reader(made / "shared") as reader:
        own = [view.tensors[f"{name}.{field}"] for field in ("trellis", "suh", "svh", "mcg")]
        mine = stored_layer(reader, f"{name}.rank1", own)
        assert whole.tensors[f"{name}.rank1.trellis"].start == own[0].start
        place = proof.Place(1, 0, 0, 0, 128, 0, 0)
        assert proof.problem(mine, mine, place) == ""
        shifted = replace(place, source_row=128)
        assert "decode to other weights" in proof.problem(mine, mine, shifted)
        other = [
            own[0],
            own[1],
            own[2]._replace(start=own[2].start - 2, end=own[2].end - 2),
            own[3],
        ]
        wrong = stored_layer(reader, f"{name}.rank1", other)
        assert "decode to other weights" in proof.problem(wrong, mine, place)


@pytest.mark.parametrize(
    ("markers", "says"), [(["mcg"], "is 0x00000005, not 0xcbac1fed"), (["mcg", "mul1"], "of two")]
)
def test_decoding_alone_tells_a_wrong_marker(tmp_path: Path, markers: list[str], says: str) -> None:
    (tmp_path / "f").write_bytes(bytes([5, 0, 0, 0]))
    tensors = [Tensor(f"x.{name}", "I32", (), "f", 0, 4) for name in markers]
    with Reader(tmp_path) as reader, pytest.raises(PatchqError, match=says):
        stored_layer(reader, "x", tensors).codebook()


def test_places_follow_the_ranges() -> None:
    tensor = Tensor("x.trellis", "I16", (16, 64, 64), "f", 0, 0)
    module = Module("x", 256, 1024, 4, "mcg", {"trellis": tensor})
    cut = Cut("column", (((0, 128), (512, 640)), ((128, 512), (640, 1024))))
    found = [(p.row, p.first, p.width, p.source_first) for p in proof.every(module, cut, 1)]
    assert found == [
        (0, 0, 384, 128),
        (0, 384, 384, 640),
        (128, 0, 384, 128),
        (128, 384, 384, 640),
    ]


# What cannot be verified at all.


def test_what_is_not_sliced(made: Path, tmp_path: Path) -> None:
    with pytest.raises(PatchqError, match="it is not sliced"):
        verify(made / "src")
    with pytest.raises(PatchqError, match="is no folder"):
        verify(tmp_path / "nothing")
    with pytest.raises(PatchqError, match="is no folder"):
        verify(made / "shared", tmp_path / "nothing")
