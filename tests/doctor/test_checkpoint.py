"""A checkpoint before it is served: one test for each thing that made, or would make, a start fail."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from patchq.doctor.capabilities import Capabilities
from patchq.doctor.checkpoint import check
from patchq.doctor.model import Check
from patchq.errors import PatchqError
from patchq.exl3.families import load
from patchq.exl3.slice import run
from tests.support.diagnosis import loader, only, states
from tests.support.exl3 import encode_checkpoint, fused_layers, moe_layers, plain_tensors, varied
from tests.support.shards import write_safetensors
from tests.support.slices import edit

READS_ALL = loader()
CONFIG, QUANTIZATION = "config.json", "quantization_config.json"


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    encode_checkpoint(tmp_path / "src", shards=2)
    return tmp_path / "src"


@pytest.fixture(scope="module")
def _cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cut")
    encode_checkpoint(folder / "src", shards=2)
    run(folder / "src", folder / "shared", 2, load())
    run(folder / "src", folder / "per-rank", 2, load(), layout="per-rank")
    return folder


@pytest.fixture
def cut(_cut: Path, tmp_path: Path) -> Path:
    """`shared` and `per-rank`, cut for two ranks, to be spoiled."""
    return Path(shutil.copytree(_cut, tmp_path / "cut"))


def looked(root: Path, reads: Capabilities = READS_ALL, tp: int | None = None) -> tuple[Check, ...]:
    return check(root, lambda: reads, tp)


def shard(root: Path, number: int = 0) -> Path:
    return sorted(root.glob("*.safetensors"))[number]


def test_a_sound_one_is_two_lines(cut: Path) -> None:
    for layout in ("shared", "per-rank"):
        told, read = looked(cut / layout, tp=2)
        assert (told.name, told.state) == ("checkpoint", "ok")
        assert told.says.startswith(f"EXL3, mcg, 4 bits, cut for 2 ranks ({layout}); ")
        assert read == Check("loader", "ok", "the runner reads it, with tensor parallel 2")


def test_a_sound_one_for_one_rank(plain: Path) -> None:
    told, read = looked(plain, tp=1)
    assert told.says.startswith("EXL3, mcg, 4 bits, not cut; 2 shards, ")
    assert read.says == "the runner reads it, with tensor parallel 1"


# The failure of the fork: two days of building, then the loader wanted slices.


def test_not_cut_for_a_loader_that_wants_slices(plain: Path) -> None:
    found = only(looked(plain, loader(layouts=["shared"])))
    assert found.name == "loader"
    assert "not cut (rank-sliced), and the loader of the runner reads only" in found.says
    assert found.remedy == f"patchq slice run {plain} {plain}-tp2 --tp 2"


def test_not_cut_for_two_ranks(plain: Path) -> None:
    found = only(looked(plain, loader(layouts=["plain", "per-rank"]), tp=2))
    assert "with tensor parallel 2 the loader of the runner reads only what is cut" in found.says
    assert found.remedy.endswith("--tp 2 --layout per-rank")


def test_the_remedy_is_a_command_whatever_the_folder_is_called(tmp_path: Path) -> None:
    encode_checkpoint(tmp_path / "my model")
    found = only(looked(tmp_path / "my model", tp=2))
    assert f"'{tmp_path}/my model' '{tmp_path}/my model-tp2'" in found.remedy
    run(tmp_path / "my model", tmp_path / "my cut", 2, load())
    (tmp_path / "my cut" / "rank-slice-manifest.json").write_text("{}")
    found = only(looked(tmp_path / "my cut", tp=2))
    assert f"`patchq slice verify '{tmp_path}/my cut'`" in found.remedy


def test_not_cut_and_no_ranks_said(plain: Path) -> None:
    """It may be meant for one: not a fault, but not passed over either."""
    found = only(looked(plain), "note")
    assert "with one rank only" in found.says and "--tp N" in found.remedy


# The other ways in which loader and checkpoint do not meet.


def test_a_codebook_that_the_loader_does_not_read(tmp_path: Path) -> None:
    encode_checkpoint(tmp_path / "src", codebook="mul1")
    found = only(looked(tmp_path / "src", loader(codebooks=["mcg"]), tp=1))
    assert "does not read codebook mul1, which 6 layers have" in found.says
    assert "experts.0.gate_proj is one; it reads mcg" in found.reason


def test_bits_that_the_loader_does_not_read(tmp_path: Path) -> None:
    layers = varied(moe_layers(), bits=lambda layer: 5 if "down_proj" in layer.name else 4)
    encode_checkpoint(tmp_path / "src", layers)
    found = only(looked(tmp_path / "src", loader(bits=[3, 4]), tp=1))
    assert "does not read 5 bits, which 2 layers have" in found.says
    assert "down_proj is one; it reads 3, 4" in found.reason


def test_a_layout_that_the_loader_does_not_read(cut: Path) -> None:
    found = only(looked(cut / "per-rank", loader(layouts=["shared"]), tp=2))
    assert "does not read the layout per-rank" in found.says
    assert found.remedy == "patchq slice run SRC DST --tp 2"


def test_ranks_that_the_loader_does_not_serve(cut: Path) -> None:
    found = only(looked(cut / "shared", loader(ranks=[4])))
    assert "does not serve 2 ranks" in found.says and found.reason == "it serves 4"
    found = only(looked(cut / "src", loader(ranks=[4]), tp=2))
    assert "does not serve 2 ranks" in found.says


SPECIAL = {
    "signs": varied(moe_layers(), legacy=[True]),
    "stacked": fused_layers(),
    "uneven": moe_layers(intermediate=384),
}


@pytest.mark.parametrize("kind", SPECIAL)
def test_a_form_that_the_loader_does_not_read(tmp_path: Path, kind: str) -> None:
    root, tp = tmp_path / "src", 1
    encode_checkpoint(root, SPECIAL[kind])
    if kind == "uneven":
        run(root, tmp_path / "tp2", 2, load(), uneven=True)
        root, tp = tmp_path / "tp2", 2
    assert "does not read" in only(looked(root, loader(forms=[]), tp)).says
    assert "has no forms" in only(looked(root, loader(), tp), "unknown").reason
    found = looked(root, loader(forms=[kind]), tp)
    assert states(found) == {"checkpoint": "ok", "loader": "ok"}


@pytest.mark.parametrize("tp", [1, 4])
def test_cut_for_another_number_of_ranks(cut: Path, tp: int) -> None:
    found = only(looked(cut / "shared", tp=tp))
    assert (found.name, found.says) == (
        "tensor parallel",
        f"it is cut for 2 ranks, tensor parallel is {tp}",
    )
    assert "serve with tensor parallel 2, or cut" in found.remedy


def test_ranks_that_tear_a_block_of_128(plain: Path) -> None:
    reads = loader(ranks=[1, 2, 3])
    torn, read = (each for each in looked(plain, reads, tp=3) if each.state == "fatal")
    assert torn.name == "tensor parallel"
    assert "cannot be cut for 3 ranks" in torn.says and "no multiple of 128" in torn.says
    assert torn.remedy.startswith("--tp 2 would fit")
    assert "slice run" not in read.remedy, "what cannot be done is no remedy"


def test_a_loader_that_says_nothing_is_unknown(plain: Path) -> None:
    found = only(check(plain), "unknown")
    assert (found.name, found.says) == ("loader", "whether the runner reads it is not known")
    assert found.reason == "no runner was named, and none is here" and "--artifact" in found.remedy


def test_what_is_not_exl3_asks_no_loader(tmp_path: Path) -> None:
    def never() -> Capabilities:
        raise AssertionError

    tensors = plain_tensors((0,), 256, np.random.default_rng(0))
    write_safetensors(tmp_path / "model.safetensors", tensors)
    (tmp_path / CONFIG).write_text('{"model_type": "llama"}')
    (found,) = check(tmp_path, never)
    assert found.state == "note" and "not EXL3" in found.says


# A checkpoint that is not what it says.


def test_a_shard_is_missing(plain: Path) -> None:
    shard(plain, 1).unlink()
    found = only(looked(plain))
    assert found.says == "1 of 2 shards are not there: model-00002-of-00002.safetensors"
    assert found.remedy == "finish the download"


def test_a_shard_is_cut_short(plain: Path) -> None:
    os.truncate(shard(plain), shard(plain).stat().st_size - 10)
    assert "model-00001-of-00002.safetensors is truncated" in only(looked(plain)).says


def test_a_header_that_lies_about_offsets(plain: Path) -> None:
    raw = shard(plain).read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    name = list(header)[2]
    header[name]["data_offsets"][0] -= 2
    text = json.dumps(header).encode()
    shard(plain).write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + length :])
    assert name in only(looked(plain)).says


def test_a_dtype_that_is_none_of_exl3(tmp_path: Path) -> None:
    def spoil(tensors: dict[str, Any]) -> None:
        name = next(name for name in tensors if name.endswith(".suh"))
        tensors[name] = tensors[name].astype("<f4")

    encode_checkpoint(tmp_path / "src", spoil=spoil)
    found = only(looked(tmp_path / "src", tp=1))
    assert (found.name, "is F32, not F16" in found.says) == ("checkpoint", True)


def test_a_size_that_does_not_fit(tmp_path: Path) -> None:
    def spoil(tensors: dict[str, Any]) -> None:
        name = next(name for name in tensors if name.endswith(".svh"))
        tensors[name] = tensors[name][:-16]

    encode_checkpoint(tmp_path / "src", spoil=spoil)
    assert "its shape is [240], the layer" in only(looked(tmp_path / "src", tp=1)).says


def test_experts_that_are_missing(plain: Path) -> None:
    edit(plain, CONFIG, lambda config: config.update(n_routed_experts=3))
    assert "it has 2 experts, config.json says 3; missing: 2" in only(looked(plain)).says


def test_bits_that_the_quantization_config_lists_otherwise(plain: Path) -> None:
    path = plain / QUANTIZATION
    path.write_text(path.read_text().replace('"bits_per_weight": 4', '"bits_per_weight": 5', 1))
    assert "it has 4 bits, quantization_config.json says 5" in only(looked(plain, tp=1)).says


def test_the_two_configurations_disagree(plain: Path) -> None:
    edit(plain, CONFIG, lambda config: config["quantization_config"].update(bits=3))
    found = only(looked(plain, tp=1))
    assert found.name == "configuration"
    assert found.says == "config.json says bits 3, quantization_config.json 4"


def test_a_config_that_does_not_choose_the_loader(plain: Path) -> None:
    edit(plain, CONFIG, lambda config: config.pop("quantization_config"))
    found = only(looked(plain, tp=1))
    assert "has no quant_method, and the layers are EXL3" in found.says
    edit(plain, CONFIG, lambda config: config.update(quantization_config={"quant_method": "awq"}))
    assert any("says quant_method 'awq'" in each.says for each in looked(plain, tp=1))


def test_a_codebook_that_the_tensors_do_not_have(plain: Path) -> None:
    for name in (CONFIG, QUANTIZATION):
        text = (plain / name).read_text().replace('"codebook": "mcg"', '"codebook": "mul1"')
        (plain / name).write_text(text)
    found = only(looked(plain, tp=1), "warning")
    assert found.says == "the configuration says codebook 'mul1', the tensors mcg"


def test_no_config(plain: Path) -> None:
    (plain / CONFIG).unlink()
    assert only(looked(plain, tp=1)).says == "there is no config.json"


@pytest.mark.parametrize("file", [CONFIG, QUANTIZATION, "model.safetensors.index.json"])
@pytest.mark.parametrize("layout", ["src", "shared"])
def test_json_that_is_none(cut: Path, layout: str, file: str) -> None:
    (cut / layout / file).write_text("{")
    found = looked(cut / layout, tp=2 if layout == "shared" else 1)
    assert any(each.state == "fatal" and file in each.says for each in found)


def test_the_index_is_of_another_checkpoint(plain: Path) -> None:
    def swap(index: Any) -> None:
        name = next(iter(index["weight_map"]))
        index["weight_map"][name] = "model-00002-of-00002.safetensors"

    edit(plain, "model.safetensors.index.json", swap)
    assert "but it is in model-00001-of-00002.safetensors" in only(looked(plain)).says


# What is cut, and is not whole.


def test_a_rank_is_missing_from_a_cut_one(cut: Path) -> None:
    for path in (cut / "per-rank").glob("*.rank1.safetensors"):
        path.unlink()
    told, read = looked(cut / "per-rank", tp=2)
    assert "cut for 2 ranks (per-rank, rank 0 here)" in told.says and read.state == "ok"
    shard(cut / "per-rank").unlink()
    found = only(looked(cut / "per-rank", tp=2))
    assert "model-00001-of-00002.rank0.safetensors is missing" in found.says
    assert f"patchq slice verify {cut / 'per-rank'}" in found.remedy


def test_a_shard_that_the_manifest_does_not_know(cut: Path) -> None:
    edit(
        cut / "shared",
        "rank-slice-manifest.json",
        lambda manifest: next(iter(manifest["files"].values())).update(size=1),
    )
    assert "size or header differ" in only(looked(cut / "shared", tp=2)).says


def test_a_cut_one_whose_configuration_says_other_ranks(cut: Path) -> None:
    edit(cut / "shared", QUANTIZATION, lambda said: said["rank_sliced"].update(tp=4))
    assert "says 4 ranks, there are 2" in only(looked(cut / "shared", tp=2)).says


# Files that are odd.


def test_a_snapshot_of_the_hugging_face_cache(plain: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "models--a--b" / "snapshots" / "1234"
    blobs = tmp_path / "models--a--b" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, path in enumerate(sorted(plain.iterdir())):
        shutil.copy(path, blobs / f"{number:064x}")
        (snapshot / path.name).symlink_to(Path("../../blobs") / f"{number:064x}")
    assert states(looked(snapshot, tp=1)) == {"checkpoint": "ok", "loader": "ok"}


@pytest.mark.parametrize("file", ["model-00001-of-00002.safetensors", CONFIG])
def test_a_loop_of_symlinks(plain: Path, file: str) -> None:
    (plain / file).unlink()
    (plain / file).symlink_to(file)
    found = only(looked(plain))
    assert found.says == f"{file}: Too many levels of symbolic links"


@pytest.mark.parametrize("file", ["model-00001-of-00002.safetensors", CONFIG])
def test_a_pipe_is_not_waited_for(plain: Path, file: str) -> None:
    (plain / file).unlink()
    os.mkfifo(plain / file)
    assert only(looked(plain)).says == f"{file} is no file"


def test_a_single_file(tmp_path: Path) -> None:
    encode_checkpoint(tmp_path / "src")
    for root in (tmp_path / "src", tmp_path / "src" / "model.safetensors"):
        assert states(looked(root, tp=1)) == {"checkpoint": "ok", "loader": "ok"}


def test_nothing_there_is_the_users_error(tmp_path: Path) -> None:
    for root in (tmp_path / "none", tmp_path):
        with pytest.raises(PatchqError) as caught:
            looked(root)
        assert caught.value.exit_code == 1 and caught.value.hint


@pytest.mark.parametrize("layout", ["shared", "per-rank"])
def test_a_cut_one_of_which_no_rank_is_here(cut: Path, layout: str) -> None:
    for each in (cut / layout).glob("*.safetensors"):
        if layout == "shared" or ".rank" in each.name:
            each.unlink()
    found = only(looked(cut / layout, tp=2))
    assert found.name == "checkpoint" and found.remedy
    says = "is missing" if layout == "shared" else "of the 2 ranks that"
    assert says in found.says
