"""Cutting: every form, both layouts, compared with a cut by numpy that shares no code with it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from patchq.errors import PatchqError
from patchq.exl3 import copying, cutting
from patchq.exl3.checkpoint import INDEX, read
from patchq.exl3.families import load
from patchq.exl3.headers import BadFile
from patchq.exl3.layout import LAYOUTS, Layout
from patchq.exl3.manifest import MANIFEST
from patchq.exl3.manifest import read as read_manifest
from patchq.exl3.partial import Partial
from patchq.exl3.slice import SliceReport, run
from tests.support.exl3 import (
    Array,
    Layer,
    dense_layers,
    encode_checkpoint,
    fused_layers,
    moe_layers,
    varied,
)
from tests.support.shards import read_folder, read_safetensors


def cut(
    source: Path, target: Path, tp: int = 2, layout: Layout = "shared", **options: Any
) -> SliceReport:
    return run(source, target, tp, load(), layout=layout, **options)


FORMS: dict[str, tuple[list[Layer], int]] = {
    "moe": (moe_layers((1, 2), experts=3, intermediate=512, shared_experts=True), 2),
    "four": (moe_layers(hidden=512, intermediate=512), 4),
    "eight": (moe_layers(hidden=256, intermediate=1024), 8),
    "bits": (varied(moe_layers(experts=8, intermediate=256), bits=range(1, 9)), 2),
    "codebooks": (varied(dense_layers(head=512), codebook=["mcg", "mul1", "3inst"]), 2),
    "packed signs": (varied(moe_layers(), legacy=[True]), 2),
    "biases": (varied(dense_layers(), bias=[True]), 2),
    "shared vectors": (moe_layers((1, 2), experts=3, shared_hadamard=True), 2),
    "fused": (fused_layers(experts=3), 2),
    "mixtral": (moe_layers(names=("w1", "w3", "w2"), prefix="layers.{layer}.ffn.experts"), 2),
}  # fmt: skip


def expected(tensors: dict[str, Array], tp: int) -> dict[str, Array]:
    """The slices, from the rules in the format's description."""
    found: dict[str, Array] = {}
    layers = {name.rpartition(".")[0] for name in tensors if name.endswith(".trellis")}
    layers |= {name.rpartition(".")[0] for name in tensors if ".shared_h." in name}
    for name, array in tensors.items():
        module, _, field = name.rpartition(".")
        if module not in layers:
            found[name] = array
            continue
        last = module.rpartition(".")[2]
        row = last in ("down_proj", "o_proj", "w2")
        front = 1 if last == "gate_up_proj" or (row and ".experts.down_proj" in module) else 0
        axes = {"trellis": 0, "suh": 0, "su": 0} if row else {
            "trellis": 1, "svh": 0, "sv": 0, "bias": 0,
        }  # fmt: skip
        for rank in range(tp):
            part = array
            if field in axes:
                axis = axes[field] + front
                halves = np.split(array, 2, axis) if last == "gate_up_proj" else [array]
                part = np.concatenate([np.split(each, tp, axis)[rank] for each in halves], axis)
            if row and field == "bias" and rank:
                continue
            found[f"{module}.rank{rank}.{field}"] = part
    return found


def same(found: dict[str, Array], wanted: dict[str, Array]) -> None:
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype, name
        assert found[name].shape == array.shape, name
        assert found[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form(tmp_path: Path, form: str, layout: Layout) -> None:
    layers, tp = FORMS[form]
    tensors = encode_checkpoint(tmp_path / "src", layers, shards=3)
    before = {path: path.read_bytes() for path in (tmp_path / "src").iterdir()}
    report = cut(tmp_path / "src", tmp_path / "dst", tp, layout)
    wanted = expected(tensors, tp)
    same(read_folder(tmp_path / "dst"), wanted)
    assert {path: path.read_bytes() for path in (tmp_path / "src").iterdir()} == before

    found = read(tmp_path / "dst")
    assert {name: tensor.file for name, tensor in found.tensors.items()} == json.loads(
        (tmp_path / "dst" / INDEX).read_text()
    )["weight_map"]
    manifest = read_manifest(tmp_path / "dst")
    assert {(each.file, each.size, each.header_sha256) for each in manifest.files} == {
        (each.file, each.size, each.header_sha256) for each in found.shards
    }
    assert (manifest.tp, manifest.layout) == (tp, layout)
    assert report.summary.bytes_result == sum(array.nbytes for array in wanted.values())
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("tp", [3, 5])
def test_uneven(tmp_path: Path, tp: int) -> None:
    tensors = encode_checkpoint(tmp_path / "src", moe_layers(intermediate=896))
    cut(tmp_path / "src", tmp_path / "dst", tp, uneven=True)
    found = read_folder(tmp_path / "dst")
    for name in ("gate_proj.svh", "down_proj.suh"):
        module, _, field = name.partition(".")
        parts = [found[f"model.layers.1.mlp.experts.0.{module}.rank{r}.{field}"] for r in range(tp)]
        assert max(map(len, parts)) - min(map(len, parts)) == 128
        whole = tensors[f"model.layers.1.mlp.experts.0.{name}"]
        assert np.concatenate(parts).tobytes() == whole.tobytes()


def test_heads_that_several_ranks_hold(tmp_path: Path) -> None:
    tensors = encode_checkpoint(
        tmp_path / "src", dense_layers(hidden=512, key_value=256, mlp=False)
    )
    path = tmp_path / "src" / "config.json"
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 128}
    path.write_text(json.dumps(json.loads(path.read_text()) | heads))
    cut(tmp_path / "src", tmp_path / "dst", 4)
    found = read_folder(tmp_path / "dst")
    for rank in range(4):
        name = f"model.layers.0.self_attn.k_proj.rank{rank}.svh"
        low = rank // 2 * 128
        whole = tensors["model.layers.0.self_attn.k_proj.svh"]
        assert found[name].tobytes() == whole[low : low + 128].tobytes()


def test_the_files_of_a_rank(tmp_path: Path) -> None:
    encode_checkpoint(tmp_path / "src", moe_layers(), shards=2)
    cut(tmp_path / "src", tmp_path / "dst", 2, "per-rank")
    for path in (tmp_path / "dst").glob("*.safetensors"):
        for name in read_safetensors(path):
            rank = name.split(".rank")[1][0] if ".rank" in name else None
            assert (f".rank{rank}." in path.name) == (rank is not None)
    names = sorted(path.name for path in (tmp_path / "dst").glob("*.safetensors"))
    assert "model-00001-of-00002.rank0.safetensors" in names
    assert "model-00002-of-00002.rank1.safetensors" in names


def test_what_the_existing_loader_reads(tmp_path: Path) -> None:
    encode_checkpoint(tmp_path / "src", moe_layers((3, 4, 5), experts=4))
    cut(tmp_path / "src", tmp_path / "dst")
    config = json.loads((tmp_path / "dst" / "config.json").read_text())
    tail = config["hybrid_tr3_tail"]
    wanted = {
        "format": "exl3-trellis",
        "bits": 4,
        "codebook": "mcg",
        "experts_per_layer": 4,
        "moe_layers": [3, 5],
        "tensor_schema": "model.layers.{L}.mlp.experts.{E}.{proj}.rank{r}.{trellis|suh|svh|mcg}",
        "tp": 2,
        "trellis_bits_by_layer": {"3": 4, "4": 4, "5": 4},
    }
    assert tail.items() >= wanted.items()
    quantization = json.loads((tmp_path / "dst" / "quantization_config.json").read_text())
    assert quantization["rank_sliced"] == tail and "tensor_storage" not in quantization
    assert config["quantization_config"]["rank_sliced"] == tail
    assert config["quantization_config"]["quant_method"] == "exl3"
    manifest = json.loads((tmp_path / "dst" / MANIFEST).read_text())
    assert manifest.items() >= wanted.items()


def test_bits_mixed_by_expert_and_shared_vectors(tmp_path: Path) -> None:
    layers = varied(
        moe_layers((1, 2), experts=4, shared_hadamard=True),
        bits=lambda each: 3 + int(each.name.split(".")[5]) % 2,
    )
    encode_checkpoint(tmp_path / "src", layers)
    cut(tmp_path / "src", tmp_path / "dst")
    tail = json.loads((tmp_path / "dst" / "config.json").read_text())["hybrid_tr3_tail"]
    assert (tail["bits"], tail["k_values"]) == ("mixed", [3, 4])
    file, _, field = tail["bits_per_expert"].partition(":")
    bits = json.loads((tmp_path / "dst" / file).read_text())
    assert bits == {"1": {field: [3, 4, 3, 4]}, "2": {field: [3, 4, 3, 4]}}
    assert tail["rotation_layout"] == "shared_h_v1"
    assert "shared_h.{proj}.rank{r}" in tail["shared_h_tensor_schema"]


def test_bits_mixed_by_layer(tmp_path: Path) -> None:
    layers = varied(moe_layers((1, 2)), bits=lambda each: 2 + int(each.name.split(".")[2]))
    encode_checkpoint(tmp_path / "src", layers)
    cut(tmp_path / "src", tmp_path / "dst")
    tail = json.loads((tmp_path / "dst" / "config.json").read_text())["hybrid_tr3_tail"]
    assert (tail["bits"], tail["trellis_bits_by_layer"]) == (3.5, {"1": 3, "2": 4})


def test_the_same_bytes_from_any_place_and_with_any_threads(tmp_path: Path) -> None:
    for name, jobs in (("a", 1), ("b", 4)):
        encode_checkpoint(tmp_path / name / "src", moe_layers(experts=4), shards=4)
        cut(tmp_path / name / "src", tmp_path / name / "dst", jobs=jobs)
    for path in (tmp_path / "a" / "dst").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / "dst" / path.name).read_bytes(), path.name


def test_small_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows longer than a chunk, windows that move, and vectors that do not fit in one call."""
    tensors = encode_checkpoint(tmp_path / "src", dense_layers(head=2048), shards=2)
    for chunk, window, vectors in ((3000, 4096, 3), (100, 8192, 1), (1 << 20, 1 << 16, 7)):
        monkeypatch.setattr(copying, "CHUNK", chunk)
        monkeypatch.setattr(copying, "WINDOW", window)
        monkeypatch.setattr(copying, "VECTORS", vectors)
        for layout in LAYOUTS:
            target = tmp_path / f"{chunk}-{layout}"
            cut(tmp_path / "src", target, 2, layout)
            same(read_folder(target), expected(tensors, 2))


def test_writes_that_come_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = encode_checkpoint(tmp_path / "src")
    real = os.pwritev

    def short(descriptor: int, views: list[Any], place: int) -> int:
        whole = b"".join(views)
        return real(descriptor, [whole[: max(1, len(whole) * 2 // 3)]], place)

    monkeypatch.setattr(os, "pwritev", short)
    cut(tmp_path / "src", tmp_path / "dst")
    same(read_folder(tmp_path / "dst"), expected(tensors, 2))


def test_symlinks_and_other_files(tmp_path: Path) -> None:
    tensors = encode_checkpoint(tmp_path / "blobs", shards=2)
    (tmp_path / "src" / "assets").mkdir(parents=True)
    for path in (tmp_path / "blobs").iterdir():
        (tmp_path / "src" / path.name).symlink_to(path)
    (tmp_path / "src" / "assets" / "x.jinja").write_text("template")
    cut(tmp_path / "src", tmp_path / "dst")
    same(read_folder(tmp_path / "dst"), expected(tensors, 2))
    assert (tmp_path / "dst" / "assets" / "x.jinja").read_text() == "template"
    assert not [path for path in (tmp_path / "dst").rglob("*") if path.is_symlink()]
    assert (tmp_path / "dst" / "tokenizer.json").is_file()


# What is refused before anything is written.


@pytest.fixture
def source(tmp_path: Path) -> Path:
    encode_checkpoint(tmp_path / "src", moe_layers(experts=4), shards=4)
    return tmp_path / "src"


def refused(source: Path, target: Path, **options: Any) -> PatchqError:
    before = sorted(target.parent.rglob("*")) if target.parent.is_dir() else []
    with pytest.raises(PatchqError) as caught:
        cut(source, target, **options)
    assert "\n" not in caught.value.message and caught.value.hint
    assert before == (sorted(target.parent.rglob("*")) if target.parent.is_dir() else [])
    return caught.value


def test_targets_that_will_not_do(source: Path, tmp_path: Path) -> None:
    assert "lies inside" in refused(source, source / "dst").message
    (source / "deep").mkdir()
    assert "lies inside" in refused(source, source / "deep" / "dst").message
    assert "lies inside" in refused(source, tmp_path / "x" / ".." / "src" / "dst").message
    (tmp_path / "there").mkdir()
    assert "exists" in refused(source, tmp_path / "there").message
    (tmp_path / "dangling").symlink_to("nowhere")
    assert "exists" in refused(source, tmp_path / "dangling").message
    assert "is no folder" in refused(source, tmp_path / "none" / "dst").message
    (tmp_path / "way").symlink_to(source)
    assert "lies inside" in refused(source, tmp_path / "way" / "dst").message


def test_damaged_values_are_found_first(tmp_path: Path) -> None:
    def change(tensors: dict[str, Array]) -> None:
        tensors["model.layers.1.mlp.experts.1.up_proj.suh"].view("<u2")[3] = 0x7E00

    encode_checkpoint(tmp_path / "src", spoil=change)
    message = refused(tmp_path / "src", tmp_path / "dst").message
    assert message == "model.layers.1.mlp.experts.1.up_proj.suh: its value 3 is NaN (0x7e00)"


def test_what_the_plan_refuses(source: Path, tmp_path: Path) -> None:
    problem = refused(source, tmp_path / "dst", tp=3)
    assert "256 in_features give 85.3333" in problem.message or "out_features" in problem.message
    assert "(and 11 more; `patchq slice plan` lists them)" in problem.message


def test_a_full_disk_is_seen_first(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Partial, "free", lambda self: 1000)
    with pytest.raises(PatchqError, match=r"has 0\.0 MB free, 6\d\.\d MB are needed"):
        cut(source, tmp_path / "dst")
    assert not (tmp_path / "dst").exists()


def test_names_that_slices_would_have(tmp_path: Path) -> None:
    def change(tensors: dict[str, Array]) -> None:
        name = "model.layers.0.self_attn.o_proj"
        tensors[f"{name}.rank0.bias"] = tensors[f"{name}.bias"]

    encode_checkpoint(tmp_path / "src", varied(dense_layers(), bias=[True]), spoil=change)
    assert "would hold a tensor of a name" in refused(tmp_path / "src", tmp_path / "dst").message


# What happens in the middle.


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A disk that is full after so many bytes; [-1] is no limit."""
    room = [-1]
    real = os.pwritev

    def pwritev(descriptor: int, views: list[Any], place: int) -> int:
        whole = b"".join(views)
        if room[0] >= 0:
            if not room[0]:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            whole = whole[: room[0]]
            room[0] -= len(whole)
        return real(descriptor, [whole], place)

    monkeypatch.setattr(os, "pwritev", pwritev)
    return room


def test_the_disk_fills_up_in_the_middle(source: Path, tmp_path: Path, disk: list[int]) -> None:
    cut(source, tmp_path / "whole")
    size = sum(path.stat().st_size for path in (tmp_path / "whole").glob("*.safetensors"))
    disk[0] = size * 5 // 8
    with pytest.raises(PatchqError, match="the disk is full after") as caught:
        cut(source, tmp_path / "dst", jobs=1)
    assert "it goes on there" in caught.value.hint
    assert not (tmp_path / "dst").exists()
    disk[0] = -1
    report = cut(source, tmp_path / "dst", jobs=1)
    assert report.resumed == 2
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "dst" / path.name).read_bytes(), path.name


@pytest.mark.root
def test_a_real_disk_that_is_full(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The room is taken by somebody else after it was checked."""
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "patchq", mount], check=True)
    try:
        monkeypatch.setattr(Partial, "free", lambda self: 1 << 40)
        with pytest.raises(PatchqError, match="the disk is full after"):
            cut(source, mount / "dst")
        assert not (mount / "dst").exists()
        subprocess.run(["mount", "-o", "remount,size=8m", mount], check=True)
        cut(source, mount / "dst")
        same(read_folder(mount / "dst"), expected(read_folder(source), 2))
    finally:
        subprocess.run(["umount", mount], check=True)


def test_other_errors_of_the_system(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(PatchqError, match="the system refused: Input/output error"):
        cut(source, tmp_path / "dst")
    assert not (tmp_path / "dst").exists()


def test_a_source_that_changes_meanwhile(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = cutting.copy
    last = sorted(source.glob("*.safetensors"))[-1]

    def shrink(job: Any, *rest: Any, **options: Any) -> None:
        os.truncate(last, last.stat().st_size - 1)
        real(job, *rest, **options)

    monkeypatch.setattr(cutting, "copy", shrink)
    with pytest.raises(BadFile, match="changed while it was read"):
        cut(source, tmp_path / "dst", jobs=1)
    assert not (tmp_path / "dst").exists()


def test_a_source_that_is_cut_short_while_it_is_mapped(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel cannot read a page that is gone: an error, not a signal."""
    last = sorted(source.glob("*.safetensors"))[-1]
    real = copying._Window

    def shrink(descriptor: int, size: int, sinks: Any) -> Any:
        window = real(descriptor, size, sinks)
        if os.fstat(descriptor).st_ino == last.stat().st_ino:
            os.truncate(last, 10)
        return window

    monkeypatch.setattr(copying, "_Window", shrink)
    with pytest.raises(BadFile, match="changed while it was read"):
        cut(source, tmp_path / "dst", jobs=1)
    assert not (tmp_path / "dst").exists()


def test_only_one_at_a_time(source: Path, tmp_path: Path) -> None:
    with (
        Partial(tmp_path / "dst", "x"),
        pytest.raises(PatchqError, match="another run is writing"),
    ):
        cut(source, tmp_path / "dst")


def test_what_was_begun_for_another_plan_is_not_used(
    source: Path, tmp_path: Path, disk: list[int]
) -> None:
    disk[0] = 200_000
    with pytest.raises(PatchqError, match="the disk is full"):
        cut(source, tmp_path / "dst", jobs=1)
    disk[0] = -1
    assert cut(source, tmp_path / "dst", 2, "per-rank").resumed == 0
    shutil.rmtree(tmp_path / "dst")


def test_a_finished_shard_that_is_damaged_is_made_anew(
    source: Path, tmp_path: Path, disk: list[int]
) -> None:
    disk[0] = 200_000
    with pytest.raises(PatchqError, match="the disk is full"):
        cut(source, tmp_path / "dst", jobs=1)
    disk[0] = -1
    first = tmp_path / ".dst.partial" / "data" / "model-00001-of-00004.safetensors"
    os.truncate(first, first.stat().st_size - 1)
    tensors = read_folder(source)
    cut(source, tmp_path / "dst")
    same(read_folder(tmp_path / "dst"), expected(tensors, 2))
    assert not (tmp_path / ".dst.partial").exists()


def test_the_progress_says_rate_and_time(source: Path, tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None, str]] = []

    class Listener:
        def step(self, what: str, done: int = 0, total: int | None = None, unit: str = "") -> None:
            told.append((what, done, total, unit))

    report = cut(source, tmp_path / "dst", progress=Listener())
    copying_ = [each for each in told if each[0].startswith("cutting, ")]
    assert copying_ and "MB/s" in copying_[0][0] and copying_[0][0].endswith(" left")
    assert copying_[0][2] == report.nbytes and copying_[0][3] == "B"
