"""What Python asks of compiled extensions, told from its text."""

from __future__ import annotations

import pytest

from patchq.doctor.asked import Op, imports, is_own, ops, registers, unguarded, unregistered

WHERE = "vllm/layers/norm.py"


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        (
            "vllm/platforms/cuda.py",
            "import vllm._C_stable_libtorch  # noqa",
            ["vllm._C_stable_libtorch"],
        ),
        ("vllm/fa/x.py", "from . import _vllm_fa2_C", ["vllm.fa._vllm_fa2_C"]),
        ("vllm/fa/x.py", "from ..deep import _C", ["vllm.deep._C"]),
        ("vllm/x.py", "from vllm._moe_C import topk", ["vllm._moe_C"]),
        ("vllm/x.py", "try:\n    import vllm._C\nexcept ImportError:\n    pass", []),
        ("vllm/x.py", "def late():\n    import vllm._C", []),
        ("vllm/platforms/rocm.py", "import vllm._rocm_C", []),
        ("vllm/x.py", "import other._C\nfrom vllm import envs", []),
        ("vllm/x.py", "import vllm._C\ndef (", []),
    ],
)
def test_what_a_module_cannot_be_loaded_without(name: str, text: str, found: list[str]) -> None:
    assert list(imports(name, text.encode(), gpu=True)) == found


def test_what_is_for_cuda_is_nothing_to_a_cpu() -> None:
    text = b"import vllm._C_stable_libtorch\n"
    assert list(imports("vllm/platforms/cuda.py", text, gpu=False)) == []


def test_an_op_is_registered_where_its_name_stands_as_a_string() -> None:
    text = b"torch.ops._C.rms_norm(x)\ntorch.ops._C.norm.default\ntorch.ops._C.gone(x)\n"
    asked = sorted(ops(WHERE, text), key=lambda op: op.name)
    # The linker lets `norm(` begin inside `rms_norm(`.
    data = b"\0_C\0rms_norm(Tensor! out) -> ()\0a_gone_by\0"
    assert unregistered(asked, [data]) == (Op("_C", "gone", WHERE),)
    assert registers("_C", [data]) and not registers("_moe_C", [data])
    assert [is_own(each) for each in ("_C", "_moe_C", "_vllm_fa2_C")] == [True] * 3
    assert [is_own(each) for each in ("aten", "vllm", "_rocm_C", "_xpu_C")] == [False] * 4


@pytest.mark.parametrize(
    ("around", "found"),
    [
        ("OP", True),
        ("def forward(x):\n    OP", True),
        ("if x.is_contiguous():\n    OP", True),
        ('if hasattr(torch.ops._C, "fast"):\n    OP', False),
        ("if current_platform.is_rocm():\n    OP", False),
        ("y = OP if current_platform.is_cpu() else x", False),
        ("def norm_cpu(x):\n    OP", False),
        ("class XPUNorm:\n    def forward(self, x):\n        OP", False),
        ("try:\n    OP\nexcept AttributeError:\n    pass", False),
    ],
)
def test_what_stands_behind_a_guard_is_left_out(around: str, found: bool) -> None:
    text = around.replace("OP", "torch.ops._C.fast(x)").encode()
    missing = sorted(ops(WHERE, text), key=lambda op: op.name)
    missing = [op for op in missing if op.name == "fast"]
    assert bool(unguarded(missing, WHERE, text)) == found
    assert not unguarded(missing, "vllm/_custom_ops.py", text)
    assert not unguarded(missing, "vllm/ops/cpu_norm.py", text)


def test_a_long_expression_is_no_bug() -> None:
    text = b"torch.ops._C.fast(" + b"+".join([b"x"] * 5000) + b")\n"
    assert unguarded([Op("_C", "fast", WHERE)], WHERE, text) in ((), (Op("_C", "fast", WHERE),))
