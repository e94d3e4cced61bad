"""A sound runner is passed in a few words, and each fault that was put into one is found."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from patchq.build.target import find
from patchq.build.wheelfile import digest
from patchq.doctor.artifact import Around, around, check
from patchq.doctor.model import Check
from tests.build.elves import X86_64, fatbin, shared
from tests.build.wheels import NAME, make

CORE = "vllm/_C_stable_libtorch.abi3.so"
MOE = "vllm/_moe_C_stable_libtorch.abi3.so"
EXLLAMA = "exllamav3_ext.cpython-312-aarch64-linux-gnu.so"
NOTHING = Around()
HOPPER = "vllm/_vllm_fa3_C.abi3.so"


def core(*fatbins: bytes, machine: int = 183, ops: tuple[str, ...] = ("rms_norm", "silu")) -> bytes:
    strings = ["_C", *(f"{op}(Tensor! out, Tensor x) -> ()" for op in ops)]
    code = fatbins or (fatbin("sm_90a"), fatbin("sm_80", "sm_120"), fatbin("sm_120f", "ptx sm_90"))
    init = ["PyInit__C_stable_libtorch"]
    # As large as to make the reader unpack it twice.
    return shared(machine, defines=init, strings=strings, fatbins=code, fill=3 << 20)


SOUND: dict[str, bytes] = {
    CORE: core(),
    MOE: shared(strings=["_moe_C", "topk_softmax(Tensor x) -> ()"], fatbins=[fatbin("sm_120f")]),
    HOPPER: shared(defines=["PyInit__vllm_fa3_C"], fatbins=[fatbin("sm_90a")]),
    "vllm/vllm-rs": shared(),
    "vllm/__init__.py": b"",
    "vllm/platforms/cuda.py": b"import torch\nimport vllm._C_stable_libtorch\n",
    "vllm/platforms/rocm.py": b"import vllm._rocm_C\n",
    "vllm/layers/norm.py": b"""
import torch
def forward(x, out):
    torch.ops._C.rms_norm(out, x)
    torch.ops._moe_C.topk_softmax(x)
    torch.ops.aten.add(x, out)
    if hasattr(torch.ops._C, "fast_norm"):
        torch.ops._C.fast_norm(x)
    if current_platform.is_rocm():
        torch.ops._C.gcn_norm(x)
def norm_cpu(x):
    torch.ops._C.norm_avx(x)
""",
    "vllm/_custom_ops.py": b"import torch\ndef qr(x):\n    torch.ops._C.qr_max_size(x)\n",
}


def wheel(tmp_path: Path, changes: Mapping[str, bytes | None] = {}, name: str = NAME) -> Path:
    files = {**SOUND, **changes}
    tmp_path.mkdir(exist_ok=True)
    return make(tmp_path / name, {key: data for key, data in files.items() if data is not None})


def found(path: Path, beside: Around = NOTHING) -> list[Check]:
    """What is said beside that all is well."""
    return [each for each in check(path, beside=beside) if each.state != "ok"]


def only(path: Path, beside: Around = NOTHING) -> Check:
    (one,) = found(path, beside)
    return one


def test_a_sound_wheel_takes_two_lines(tmp_path: Path) -> None:
    whole, gpu = check(wheel(tmp_path), beside=NOTHING)
    assert (whole.state, gpu.state) == ("ok", "ok")
    assert whole.says == "12 files as recorded, 4 native ones for aarch64"
    assert gpu.says == (
        "_C_stable_libtorch, _moe_C_stable_libtorch: code for sm_121; for other GPUs: _vllm_fa3_C"
    )


def test_code_that_the_driver_compiles_is_said(tmp_path: Path) -> None:
    path = wheel(tmp_path, {CORE: core(fatbin("sm_80", "ptx sm_80"))})
    assert not found(path)
    assert "compiled at the first load: _C_stable_libtorch" in check(path, beside=NOTHING)[1].says


@pytest.mark.parametrize(
    ("codes", "says"),
    [
        (["sm_120a"], "no code that runs on sm_121: sm_120a (1 of its 1 fat binaries)"),
        (["sm_90a", "sm_100f"], "no code that runs on sm_121: sm_90a, sm_100f"),
    ],
)
def test_the_wrong_architecture(tmp_path: Path, codes: list[str], says: str) -> None:
    """The reports behind it: 12.1f left out, and a cubin for 120a alone."""
    one = only(wheel(tmp_path, {CORE: core(fatbin(*codes))}))
    assert (one.state, one.says) == ("fatal", f"{CORE} has {says}")
    assert "TORCH_CUDA_ARCH_LIST=12.1a" in one.remedy


def test_one_source_file_with_the_wrong_architecture(tmp_path: Path) -> None:
    """The rest of the extension is right, and only that kernel would fail."""
    code = fatbin("sm_80", "sm_120a"), fatbin("sm_120f"), fatbin("sm_120f")
    one = only(wheel(tmp_path, {CORE: core(*code)}))
    assert one.state == "fatal"
    assert "(1 of its 3 fat binaries)" in one.says


def test_an_extension_of_another_machine(tmp_path: Path) -> None:
    one = only(wheel(tmp_path, {CORE: core(machine=X86_64)}))
    assert (one.name, one.state) == ("machine", "fatal")
    assert one.says == "_C_stable_libtorch: for x86_64, and spark is aarch64"


def test_the_target_can_be_given(tmp_path: Path) -> None:
    (machine,) = [
        each
        for each in check(wheel(tmp_path), find("cuda-x86_64"), beside=NOTHING)
        if each.name == "machine"
    ]
    assert machine.state == "fatal"


def test_a_wheel_of_no_target(tmp_path: Path) -> None:
    one = only(wheel(tmp_path, name=NAME.replace("aarch64", "riscv64")))
    assert "is for none of the targets spark, cuda-x86_64, cpu" in one.says


def test_a_stale_duplicate(tmp_path: Path) -> None:
    old = "vllm/_C_stable_libtorch.cpython-312-aarch64-linux-gnu.so"
    one = only(wheel(tmp_path, {old: core()}))
    assert (one.name, one.state) == ("extensions", "fatal")
    assert one.says.startswith("vllm._C_stable_libtorch is there 2 times")


def test_one_file_for_each_python_is_none(tmp_path: Path) -> None:
    """As deep_gemm's in upstream's wheel of 0.29.0."""
    each = {f"vllm/deep/_C.cpython-{n}-aarch64-linux-gnu.so": shared() for n in (311, 312, 313)}
    assert not found(wheel(tmp_path, each))


def test_an_extension_that_is_imported_and_not_there(tmp_path: Path) -> None:
    says = [each.says for each in found(wheel(tmp_path, {CORE: None})) if each.name == "imports"]
    assert says == [
        "vllm/platforms/cuda.py imports vllm._C_stable_libtorch, and there is no such extension"
    ]


def test_an_extension_under_the_name_of_another(tmp_path: Path) -> None:
    other = shared(defines=["PyInit__C"], strings=["_C", "rms_norm("], fatbins=[fatbin("sm_120")])
    one = only(wheel(tmp_path, {CORE: other}))
    assert one.says == f"{CORE} cannot be imported: it does not define PyInit__C_stable_libtorch"


def test_ops_of_an_extension_that_is_not_there(tmp_path: Path) -> None:
    one = only(wheel(tmp_path, {MOE: None}))
    assert (one.name, one.state) == ("ops", "fatal")
    assert "no shared object registers torch.ops._moe_C" in one.says


def test_an_op_that_a_stale_extension_lacks(tmp_path: Path) -> None:
    one = only(wheel(tmp_path, {CORE: core(ops=("silu",))}))
    assert (one.name, one.state) == ("ops", "warning")
    assert "_C.rms_norm (vllm/layers/norm.py)" in one.says


def test_an_op_that_the_series_asks_for_and_no_one_compiled(tmp_path: Path) -> None:
    """Wherever it stands: upstream's Python does not ask for it."""
    upstream = wheel(tmp_path / "up", name="vllm-1.0-cp38-abi3-manylinux_2_28_aarch64.whl")
    asks = SOUND["vllm/_custom_ops.py"] + b"def new(x):\n    torch.ops._C.exl3_gemm(x)\n"
    ours = wheel(tmp_path, {"vllm/_custom_ops.py": asks})
    assert not found(ours), "one wrapper more is nothing by itself"
    one = only(ours, Around(upstream=upstream))
    assert (one.name, one.state) == ("ops", "fatal")
    assert "_C.exl3_gemm (vllm/_custom_ops.py)" in one.says
    assert not found(upstream, Around(upstream=upstream))


def test_upstreams_wheel_is_known_from_the_record_of_the_build(tmp_path: Path) -> None:
    ours, cache = wheel(tmp_path), tmp_path / "cache"
    assert around(ours, cache).upstream is None
    inputs = [{"name": "vllm-1.0-x.whl"}, {"name": "../../secret.whl"}, {"name": None}]
    record = {"inputs": inputs, "outputs": [{"name": ours.name}]}
    (tmp_path / "build.json").write_text(json.dumps(record), encoding="utf-8")
    assert around(ours, cache).upstream is None, "it is not in the cache"
    (cache / "wheels").mkdir(parents=True)
    (cache / "wheels/vllm-1.0-x.whl").touch()
    assert around(ours, cache).upstream == cache / "wheels/vllm-1.0-x.whl"


def test_a_file_that_was_changed_after_the_build(tmp_path: Path) -> None:
    path = wheel(tmp_path)
    other = make(tmp_path / "other.whl", {**SOUND, "vllm/__init__.py": b"#"})
    # The other one's files with the first one's RECORD.
    data = other.read_bytes()
    old = digest(b"#").encode() + b",1"
    assert not found(path)
    (tmp_path / "bad").mkdir()
    bad = tmp_path / "bad" / NAME
    bad.write_bytes(_recorded_as(data, old, digest(b"").encode() + b",0"))
    assert "vllm/__init__.py is said to have 1 bytes, and 0 by RECORD" in only(bad).says
    bad.write_bytes(_recorded_as(data, old, digest(b"!").encode() + b",1"))
    assert only(bad).says == "vllm/__init__.py not as RECORD says"


def _recorded_as(data: bytes, old: bytes, new: bytes) -> bytes:
    """A wheel whose RECORD says `new` for `old`."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w") as target:
        for info in source.infolist():
            content = source.read(info)
            target.writestr(
                info, content.replace(old, new) if info.filename.endswith("RECORD") else content
            )
    return out.getvalue()


def test_a_wheel_that_was_cut_off(tmp_path: Path) -> None:
    path = wheel(tmp_path)
    path.write_bytes(path.read_bytes()[:-2000])
    assert "is not a whole wheel" in only(path).says


def test_a_wheel_whose_content_was_hit(tmp_path: Path) -> None:
    path = wheel(tmp_path)
    data = bytearray(path.read_bytes())
    data[300] ^= 0xFF
    path.write_bytes(data)
    first = found(path)[0]
    assert (first.state, "is damaged" in first.says) == ("fatal", True)


def test_a_wheel_that_leaves_its_folder(tmp_path: Path) -> None:
    one = only(wheel(tmp_path, {"vllm/../../etc/cron.d/x": b""}))
    assert "leaves its folder" in one.says


@pytest.mark.parametrize("data", [b"", b"not one\x1b[31m", shared()[:500]])
def test_a_shared_object_that_is_none(tmp_path: Path, data: bytes) -> None:
    name = "vllm/_vllm_fa3_C.abi3.so"
    one = only(wheel(tmp_path, {name: data}))
    assert one.state == "fatal"
    assert one.says.startswith(f"{name} is not a whole shared object")


def test_a_damaged_extension_is_said_once(tmp_path: Path) -> None:
    """Neither that it is not there, nor that it lacks what it would have to register."""
    one = only(wheel(tmp_path, {CORE: core()[:2000]}))
    assert one.says.startswith(f"{CORE} is not a whole shared object")


def test_no_wheel_at_all(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"PK")
    assert only(tmp_path / NAME).state == "fatal"


# What is installed beside it.


def installed(tmp_path: Path, changes: Mapping[str, bytes | None] = {}) -> Path:
    """A site-packages folder with the sound runner, FlashInfer and exllamav3."""
    root = tmp_path / "site-packages"
    rows = "".join(f"{name},{digest(data)},{len(data)}\n" for name, data in SOUND.items())
    files: dict[str, bytes | None] = {
        **SOUND,
        "vllm-1.0.dist-info/METADATA": b"Name: vllm\nVersion: 1.0\n",
        "vllm-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: cp38-abi3-manylinux_2_28_aarch64\n",
        "vllm-1.0.dist-info/RECORD": f"{rows}../../../bin/vllm,sha256=x,9\n".encode(),
        "flashinfer_python-0.6.18.dist-info/METADATA": b"",
        "flashinfer_cubin-0.6.18.dist-info/METADATA": b"",
        "flashinfer/__init__.py": b"",
        "exllamav3-0.0.43.dist-info/METADATA": b"",
        EXLLAMA: shared(defines=["PyInit_exllamav3_ext"], fatbins=[fatbin("sm_121a")]),
        **changes,
    }
    for name, data in files.items():
        if data is not None:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
    return root


def compiled(tmp_path: Path, data: bytes, version: str = "0.6.18", *, age: int = 0) -> Around:
    """FlashInfer's cache with one compiled kernel, `age` seconds old."""
    path = tmp_path / f"jit/.cache/flashinfer/{version}/121a/cached_ops/topk/topk.so"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    stamp = path.stat().st_mtime - age
    os.utime(path, (stamp, stamp))
    return Around(workspace=tmp_path / "jit")


def test_a_sound_installation_takes_two_lines(tmp_path: Path) -> None:
    root = installed(tmp_path)
    beside = compiled(tmp_path, shared(fatbins=[fatbin("sm_121a")]))
    assert [each.state for each in check(root, beside=beside)] == ["ok", "ok"]


def test_files_that_were_changed_where_they_are_installed(tmp_path: Path) -> None:
    root = installed(tmp_path)
    (root / "vllm/layers/norm.py").write_bytes(b"import torch\n")
    assert only(root).says == "vllm/layers/norm.py not as RECORD says"


def test_two_versions_over_one_another(tmp_path: Path) -> None:
    root = installed(
        tmp_path, {"vllm-0.9.dist-info/METADATA": b"", "vllm-0.9.dist-info/RECORD": b""}
    )
    one = only(root)
    assert (one.state, one.says) == ("fatal", "vllm is installed 2 times: 0.9, 1.0")


def test_flashinfers_cubins_of_another_version(tmp_path: Path) -> None:
    other = {
        "flashinfer_cubin-0.6.18.dist-info/METADATA": None,
        "flashinfer_cubin-0.7.0.dist-info/METADATA": b"",
    }
    one = only(installed(tmp_path, other))
    assert (one.name, one.state) == ("FlashInfer", "fatal")
    assert one.says == "flashinfer-cubin is 0.7.0, FlashInfer is 0.6.18"


@pytest.mark.parametrize(
    ("codes", "says"),
    [(["sm_120a"], "sm_120a (1 of its 1 fat binaries)"), (["sm_90"], "sm_90")],
)
def test_exllamav3_for_another_gpu(tmp_path: Path, codes: list[str], says: str) -> None:
    other = shared(defines=["PyInit_exllamav3_ext"], fatbins=[fatbin(*codes)])
    one = only(installed(tmp_path, {EXLLAMA: other}))
    assert (one.name, one.state) == ("exllamav3", "fatal")
    assert one.says == f"{EXLLAMA} has no code that runs on sm_121: {says}"


def test_exllamav3_that_is_not_compiled(tmp_path: Path) -> None:
    one = only(installed(tmp_path, {EXLLAMA: None}))
    assert (one.state, one.says) == ("warning", "exllamav3_ext is not compiled")


def test_exllamav3_that_is_compiled_for_another_python(tmp_path: Path) -> None:
    sound = installed(tmp_path)
    there = tmp_path / "lib/python3.13/site-packages"
    there.parent.mkdir(parents=True)
    sound.rename(there)
    one = only(there)
    assert one.says == f"exllamav3_ext is not compiled for Python 3.13, only {EXLLAMA}"


@pytest.mark.parametrize(
    ("data", "age", "says"),
    [
        (
            shared(fatbins=[fatbin("sm_121a")]),
            3600,
            "compiled before FlashInfer 0.6.18 was installed",
        ),
        (shared(fatbins=[fatbin("sm_90a")]), 0, "no code that runs on sm_121: sm_90a"),
        (shared(X86_64, fatbins=[fatbin("sm_121a")]), 0, "for x86_64, spark is aarch64"),
        (shared()[:100], 0, "cannot be read"),
    ],
)
def test_a_stale_cache_of_compiled_kernels(
    tmp_path: Path, data: bytes, age: int, says: str
) -> None:
    root = installed(tmp_path)
    one = only(root, compiled(tmp_path, data, age=age))
    assert (one.name, one.state) == ("FlashInfer", "warning")
    assert one.says == f"topk.so in FlashInfer's cache: {says}"


def test_a_cache_of_another_version_is_not_used(tmp_path: Path) -> None:
    root = installed(tmp_path)
    assert not found(root, compiled(tmp_path, b"", version="0.6.17"))


def test_a_folder_without_a_runner(tmp_path: Path) -> None:
    assert "nothing is installed in" in only(tmp_path).says
    (tmp_path / "torch-2.13.0.dist-info").mkdir()
    (tmp_path / "torch-2.13.0.dist-info/METADATA").touch()
    assert "no vllm is installed in" in only(tmp_path).says


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("vllm-1.0.dist-info/WHEEL", None, "vllm-1.0.dist-info has no WHEEL"),
        ("vllm-1.0.dist-info/WHEEL", b"Tag: py3-none-any\n", "is for none of the targets"),
        ("vllm-1.0.dist-info/RECORD", None, "RECORD of vllm 1.0 cannot be read"),
        ("vllm-1.0.dist-info/RECORD", b"a,b," + b"9" * 5000, "RECORD of vllm 1.0 cannot be read"),
        (EXLLAMA, b"\x7fELF", "is not a whole shared object"),
    ],
)
def test_an_installation_that_is_damaged(
    tmp_path: Path, name: str, data: bytes | None, says: str
) -> None:
    one = only(installed(tmp_path, {name: data}))
    assert (one.state, says in one.says) == ("fatal", True)
