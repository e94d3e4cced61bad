"""Folders with checkpoints: plain, single files, snapshots with symlinks; and what disagrees."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from patchq.errors import PatchqError
from patchq.exl3.checkpoint import INDEX, is_plain, read
from tests.support.exl3 import encode_checkpoint
from tests.support.shards import read_safetensors, write_safetensors


@pytest.fixture
def source(tmp_path: Path) -> Path:
    encode_checkpoint(tmp_path / "src", shards=3)
    return tmp_path / "src"


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def change_index(folder: Path, change: Any) -> None:
    index = json.loads((folder / INDEX).read_text())
    change(index["weight_map"])
    (folder / INDEX).write_text(json.dumps(index))


def refused(folder: Path) -> str:
    with pytest.raises(PatchqError) as caught:
        read(folder)
    assert "\n" not in caught.value.message and caught.value.hint
    return caught.value.message


def test_reads_a_folder(source: Path) -> None:
    found = read(source)
    assert len(found.shards) == 3 and found.index
    assert found.tensors.keys() == {
        name for path in shards(source) for name in read_safetensors(path)
    }
    assert found.others == ("tokenizer.json",)
    assert found.quantization["quant_method"] == "exl3"


def test_leaves_out_the_storage_that_agrees(source: Path) -> None:
    assert "tensor_storage" not in read(source).quantization
    path = source / "quantization_config.json"
    path.write_text(path.read_text().replace('"bits_per_weight": 4', '"bits_per_weight": 5', 1))
    assert "tensor_storage" in read(source).quantization


def test_keeps_what_follows_the_storage(source: Path) -> None:
    path = source / "quantization_config.json"
    document = json.loads(path.read_text()) | {"later": 1}
    path.write_text(json.dumps(document, indent=4))
    assert read(source).quantization["later"] == 1
    path.write_text(json.dumps(document))
    assert read(source).quantization["later"] == 1


def test_single_file(tmp_path: Path) -> None:
    encode_checkpoint(tmp_path / "src")
    assert not read(tmp_path / "src").index
    assert read(tmp_path / "src" / "model.safetensors").tensors == read(tmp_path / "src").tensors


def test_a_snapshot_of_symlinks(source: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "models--a--b" / "snapshots" / "1234"
    blobs = tmp_path / "models--a--b" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, path in enumerate(sorted(source.iterdir())):
        shutil.copy(path, blobs / f"{number:064x}")
        (snapshot / path.name).symlink_to(Path("../../blobs") / f"{number:064x}")
    found = read(snapshot)
    assert found.tensors == read(source).tensors and found.others == ("tokenizer.json",)
    (blobs / f"{3:064x}").unlink()
    assert "points to nothing" in refused(snapshot)


def test_missing_shard(source: Path) -> None:
    shards(source)[1].unlink()
    assert refused(source) == "1 of 3 shards are not there: model-00002-of-00003.safetensors"


def test_no_folder_and_nothing_in_it(tmp_path: Path) -> None:
    assert "is no folder" in refused(tmp_path / "nothing")
    assert "no .safetensors" in refused(tmp_path)


def test_shards_without_an_index(source: Path) -> None:
    (source / INDEX).unlink()
    assert "3 .safetensors files but no model.safetensors.index.json" in refused(source)


def test_index_and_shards_disagree(source: Path) -> None:
    name = next(iter(read_safetensors(shards(source)[0])))
    change_index(source, lambda weights: weights.update({"x.weight": shards(source)[0].name}))
    assert "places x.weight in model-00001-of-00003.safetensors, which does not" in refused(source)
    change_index(source, lambda weights: weights.pop("x.weight"))
    change_index(source, lambda weights: weights.update({name: shards(source)[1].name}))
    assert f"{name} in model-00002-of-00003.safetensors, but it is in" in refused(source)
    change_index(source, lambda weights: weights.pop(name))
    assert f"holds {name}, which model.safetensors.index.json does not know" in refused(source)


def test_a_tensor_in_two_shards(source: Path) -> None:
    first, second, _ = shards(source)
    name, array = next(iter(read_safetensors(first).items()))
    write_safetensors(second, read_safetensors(second) | {name: array})
    assert f"{name} stands in model-00002-of-00003.safetensors and in another" in refused(source)


@pytest.mark.parametrize("name", ["../x.safetensors", "a/b.safetensors", "/etc/x.safetensors",
                                  ".x.safetensors", "x.bin", "", 7, ["x"], "a\\b.safetensors"])  # fmt: skip
def test_an_index_that_leaves_the_folder(source: Path, name: Any) -> None:
    change_index(source, lambda weights: weights.update({"x.weight": name}))
    assert "which is no shard in this folder" in refused(source)


@pytest.mark.parametrize("name", ["a/b.weight", "../b.weight", "a..b", "", "a\nb", "a\\b", "a\x1b"])
def test_tensors_with_names_that_mean_trouble(tmp_path: Path, name: str) -> None:
    def spoil(tensors: dict[str, Any]) -> None:
        tensors[name] = tensors["model.norm.weight"]

    encode_checkpoint(tmp_path / "src", spoil=spoil)
    assert refused(tmp_path / "src") == f"model.safetensors: a tensor is named {name!r}"


@pytest.mark.parametrize("file", [INDEX, "config.json", "quantization_config.json"])
@pytest.mark.parametrize("content", ["{", "[]", "\udcff", "[" * 100_000])
def test_json_that_is_none(source: Path, file: str, content: str) -> None:
    (source / file).write_bytes(content.encode("utf-8", "surrogateescape"))
    assert file in refused(source)


def test_an_index_without_a_map(source: Path) -> None:
    (source / INDEX).write_text("{}")
    assert "has no weight_map" in refused(source)


def test_others_are_found_but_nothing_hidden(source: Path, tmp_path: Path) -> None:
    (source / "assets").mkdir()
    (source / "assets" / "chat.jinja").write_text("x")
    (source / ".cache").mkdir()
    (source / ".cache" / "x").write_text("x")
    (source / "link").symlink_to(tmp_path)
    (source / "old.safetensors").write_bytes(b"")
    assert read(source).others == ("tokenizer.json", "assets/chat.jinja")


def test_plain_names() -> None:
    assert is_plain("model-00001.safetensors")
    assert not any(map(is_plain, ("", ".", "..", "a/b", "\0", "a\nb", "x" * 300)))
