"""What an environment is locked to hold: which pins win, and the lock as a file."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.build import requirements
from patchq.build.requirements import (
    Locked,
    Rewritten,
    aside,
    concerning,
    inputs,
    needed,
    parse,
    relaxed_by,
    rewritten,
    told,
    without,
    write,
)
from patchq.build.target import find
from patchq.errors import PatchqError
from patchq.upstream.components import Component, Hardware, Pins, Relaxed
from tests.support.kit import made

FLASH = Component("flashinfer", "the kernels", index="FlashInfer_Python", version="0.6.18")
DSL = Component("cutlass-dsl", "what they need", index="nvidia-cutlass-dsl", version="4.8.0")
GIT = Component("sparkinfer", "it is", git="https://example.org/s", commit="d4438d49")
SPARK, CPU = find("spark"), find("cpu")


def test_a_pin_that_a_component_contradicts_is_rewritten_and_said() -> None:
    requires = ["flashinfer-python==0.7.0.post1", "nvidia-cutlass-dsl[cu13]==4.8.0", "regex"]
    assert rewritten(requires, [FLASH, DSL]) == (
        Rewritten(
            "flashinfer-python==0.7.0.post1",
            "flashinfer-python==0.6.18",
            "flashinfer",
            "the kernels",
        ),
    ), "the others are met, or nobody's"


def test_extras_and_markers_stay() -> None:
    (change,) = rewritten(['nvidia-cutlass-dsl[cu13,x] >= 5 ; platform_system == "Linux"'], [DSL])
    assert change.now == 'nvidia-cutlass-dsl[cu13,x]==4.8.0; platform_system == "Linux"'


def test_the_reason_is_the_one_that_was_given() -> None:
    relaxed = [
        Relaxed("vllm", "flashinfer-python == 0.7.0.post1", "0.7 deadlocks on GB10"),
        Relaxed("b12x", "flashinfer-python==0.7.0.post1", "another's"),
    ]
    (change,) = rewritten(["flashinfer-python==0.7.0.post1"], [FLASH], relaxed)
    assert change.why == "0.7 deadlocks on GB10"


def test_what_was_set_aside_and_is_no_component_is_taken_out() -> None:
    relaxed = [Relaxed("vllm", "torchcodec>=0.14", "no video here")]
    requires = ["torchcodec >= 0.14", "regex"]
    changes = rewritten(requires, [FLASH], relaxed)
    assert changes == (Rewritten("torchcodec >= 0.14", "", "", "no video here"),)
    assert inputs(requires, changes, []) == ("regex",)
    assert rewritten(["torchcodec>=0.15"], [FLASH], relaxed) == (), "another requirement is"


def test_what_is_no_requirement_is_told() -> None:
    with pytest.raises(PatchqError, match="is no requirement"):
        rewritten(["a b c"], [FLASH])


def test_what_is_resolved() -> None:
    requires = ["flashinfer-python==0.7", "regex", 'pandas; extra == "bench"']
    changes = rewritten(requires, [FLASH])
    assert inputs(requires, changes, [FLASH], ["cuda-toolkit<14"]) == (
        "flashinfer-python==0.6.18",
        "regex",
        "cuda-toolkit<14",
        "flashinfer-python==0.6.18",
    )


def test_components_belong_to_targets_with_a_gpu() -> None:
    assert concerning(SPARK, [FLASH, GIT, DSL]) == (FLASH, DSL)
    assert concerning(CPU, [FLASH, DSL]) == ()


def test_what_the_machine_needs_is_the_targets_where_it_is_that_machine() -> None:
    hardware = Hardware("aarch64", "3.12", "2.39", requires=("cuda-toolkit<14",))
    assert needed(SPARK, hardware) == ("cuda-toolkit<14",)
    assert needed(find("cuda-x86_64"), hardware) == ()
    assert needed(CPU, hardware) == needed(SPARK, None) == ()


def test_what_was_set_aside_is_taken_off_its_owner() -> None:
    relaxed = [Relaxed("flashinfer", "torch >= 3", "x"), Relaxed("other", "numpy<2", "x")]
    gone = aside(FLASH, relaxed)
    assert gone == (relaxed[0],)
    assert without(["torch>=3", "torch>=2", "numpy<2"], gone) == ("torch>=2", "numpy<2")


def test_a_carried_patch_sets_aside_as_well() -> None:
    patch = made(1, "dsl", b"", relaxes="flashinfer: torch>=3 -> torch>=2")
    (found,) = relaxed_by([patch, made(2, "other", b"")])
    assert found == Relaxed("flashinfer", "torch>=3", "carried patch dsl", "torch>=2")
    assert without(["torch>=3", "regex"], aside(FLASH, [found])) == ("torch>=2", "regex")
    for bad in ("flashinfer", "flashinfer: a b", "flashinfer: a -> b c"):
        with pytest.raises(PatchqError, match=r"0001-dsl\.patch: Patchq-Relaxes"):
            relaxed_by([made(1, "dsl", b"", relaxes=bad)])


def test_the_lock_as_a_file() -> None:
    lines = told(SPARK, "0.32.0", Pins(components=(FLASH,)))
    packages = [Locked("b", "2+x", ("f" * 64, "0" * 64)), Locked("a", "1", ("1" * 64,))]
    data = write(
        lines, [*packages, Locked("flashinfer-python", "1", ("2" * 64,))], ["flashinfer-python"]
    )
    assert data.decode() == (
        "# for vllm 0.32.0\n"
        "# on aarch64, glibc 2.39, Python 3.12\n"
        "# pin flashinfer-python==0.6.18\n"
        f"a==1 \\\n    --hash=sha256:{'1' * 64}\n"
        f"b==2+x \\\n    --hash=sha256:{'0' * 64} \\\n    --hash=sha256:{'f' * 64}\n"
    )
    found = parse(data, "it")
    assert found.told == lines
    assert [each.name for each in found.packages] == ["a", "b"]


@given(
    st.dictionaries(
        st.from_regex(r"[a-z0-9]([a-z0-9-]{0,6}[a-z0-9])?", fullmatch=True),
        st.tuples(
            st.from_regex(r"[0-9][0-9.]{0,5}", fullmatch=True),
            st.sets(st.binary(min_size=32, max_size=32).map(bytes.hex), min_size=1, max_size=3),
        ),
        max_size=6,
    )
)
def test_what_is_written_is_read(packages: dict[str, tuple[str, set[str]]]) -> None:
    locked = [Locked(name, each[0], tuple(sorted(each[1]))) for name, each in packages.items()]
    assert list(parse(write(["for x"], locked), "it").packages) == sorted(
        locked, key=lambda each: each.name
    )


@pytest.mark.parametrize(
    "text",
    [
        "a==1\n",
        "a>=1 \\\n    --hash=sha256:" + "0" * 64 + "\n",
        "a @ https://example.org/a.whl\n",
        "--index-url https://example.org\n",
        "    --hash=sha256:" + "0" * 64 + "\n",
        "a==1 \\\n    --hash=md5:00\n",
        "a==1 \\\n    --hash=sha256:"
        + "0" * 64
        + "\n"
        + "a==2 \\\n    --hash=sha256:"
        + "0" * 64
        + "\n",
        "a==1 \\\n    --hash=sha256:" + "0" * 64 + "\n# late\n",
    ],
)
def test_another_text_is_no_lock(text: str) -> None:
    with pytest.raises(PatchqError, match=r"no line of a lock|is damaged"):
        parse(text.encode(), "it")


@given(st.binary(max_size=80) | st.text("ab-=1 \\\n#", max_size=80).map(str.encode))
def test_anything_is_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(PatchqError):
        assert all(each.hashes for each in parse(data, "it").packages)


def test_the_file_is_called_after_the_target() -> None:
    assert requirements.file_name("spark") == "requirements.spark.lock"
