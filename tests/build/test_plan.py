"""What a changed path means for a wheel."""

from __future__ import annotations

import pytest

from patchq.build.plan import Changed, kind_of, overlay, package_data

DATA = ("py.typed", "configs/*.json", "third/**/*.h", "libs/*.so*")
SETUP = b"""
import os
package_data = {
    "vllm": [
        "py.typed",
        "configs/*.json",
    ]
}
setup(package_data=package_data)
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (b"vllm/engine.py", "package"),
        (b"vllm/deep/er/without_init.py", "package"),
        (b"vllm/py.typed", "package"),
        (b"vllm/configs/a.json", "package"),
        (b"vllm/configs/deeper/a.json", "unlisted"),
        (b"vllm/third/a.h", "package"),
        (b"vllm/third/x/y/a.h", "package"),
        (b"vllm/libs/a.so.1", "package"),
        (b"vllm/README.md", "unlisted"),
        (b"vllm/kernels/a.cu", "native"),
        (b"csrc/ops.h", "native"),
        (b"csrc/generate.py", "native"),
        (b"cmake/utils.cmake", "native"),
        (b"CMakeLists.txt", "native"),
        (b"rust/src/main.rs", "native"),
        (b"setup.py", "packaging"),
        (b"requirements/cuda.txt", "packaging"),
        (b"tests/test_a.py", "apart"),
        (b"docs/index.md", "apart"),
        (b"vllmish/a.py", "apart"),
    ],
)
def test_kind(path: bytes, kind: str) -> None:
    assert kind_of(path, DATA) == kind


def test_changes_are_sorted_into_what_they_come_to() -> None:
    plan = overlay(
        [
            Changed(b"vllm/b.py", None, "2" * 40),
            Changed(b"vllm/a.py", "1" * 40, "3" * 40),
            Changed(b"vllm/gone.py", "1" * 40, None),
            Changed(b"csrc/gone.cu", "1" * 40, None),
            Changed(b"tests/t.py", None, "4" * 40),
        ],
        DATA,
    )
    assert plan.laid == {b"vllm/a.py": "3" * 40, b"vllm/b.py": "2" * 40}
    assert plan.removed == (b"vllm/gone.py",)
    assert (plan.native, plan.apart) == ((b"csrc/gone.cu",), (b"tests/t.py",))


def test_package_data_is_read_without_running_setup() -> None:
    assert package_data(SETUP) == ("py.typed", "configs/*.json")
    for strange in (b"", b"def (", b"package_data = {}", b"package_data = {'vllm': [x()]}"):
        assert package_data(strange) == ()
