"""`patchq slice` for people: what is long is counted, what comes from strangers is harmless."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

from rich.console import Console, RenderableType

from patchq.exl3.model import Cut, Refusal
from patchq.exl3.slice import SliceReport
from patchq.exl3.summary import Group, Summary
from patchq.exl3.verify import Check, Verified
from patchq.render import slices, slices_json

GROUP = Group(
    "model.layers.*.mlp.experts.*.gate_proj",
    12384,
    4096,
    2048,
    4,
    "mcg",
    Cut("column", (((0, 1024),), ((1024, 2048),))),
    "first half of an MLP",
    51_943_309_312,
)
SUMMARY = Summary(
    root="/models/x",
    tp=2,
    uneven=False,
    shards=92,
    tensors=150_080,
    single_file=False,
    symlinks=True,
    layers=46,
    moe_layers=tuple(range(3, 46)),
    experts=(288,),
    codebooks=(("mcg", 37152),),
    bits=((4, 37152),),
    average_bits=4.0,
    dense=0,
    routed=37152,
    fused=0,
    packed_signs=0,
    biases=0,
    shared_vectors=0,
    unquantized=1472,
    unquantized_bytes=9_646_899_200,
    groups=(GROUP,),
    bytes_source=165_930_353_792,
    bytes_common=9_646_899_200,
    bytes_rank=(78_293_976_192, 78_293_976_192),
    refused=(),
    warnings=(),
)


def drawn(value: RenderableType) -> str:
    out = StringIO()
    Console(file=out, width=200, highlight=False, markup=False).print(value)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def test_plan() -> None:
    text = drawn(slices.plan(SUMMARY))
    assert "92 shards (symlinks: a Hugging Face snapshot), 150,080 tensors, 165.9 GB" in text
    assert "43 layers with 288 experts, 37152 modules" in text
    assert "column, 2 x 1024" in text
    assert "rank 0 reads 87.9 GB, rank 1 reads 87.9 GB; 9.6 GB of that are the same" in text


def test_plan_of_something_mixed() -> None:
    mixed = replace(
        SUMMARY,
        single_file=True,
        symlinks=False,
        bits=((3, 10), (4, 20)),
        average_bits=3.667,
        codebooks=(("3inst", 10), ("mul1", 20)),
        shared_vectors=6,
        packed_signs=1,
        dense=7,
        warnings=("x: 3 heads",),
    )
    text = drawn(slices.plan(mixed))
    assert "a single file, 150,080" in text
    assert "mixed, 3.67 on average: 10 with 3, 20 with 4" in text
    assert "3inst (10), mul1 (20)" in text
    assert "6 shared Hadamard vectors, 1 layers with packed signs" in text
    assert "Note: x: 3 heads" in text and "7 quantized modules outside" in text


def test_refusals_that_are_alike_are_counted() -> None:
    refused = [Refusal(f"t{number}", "it is odd", "make it even") for number in range(5000)]
    refused += [Refusal(f"u{number}", f"it is {number}") for number in range(30)]
    group = replace(GROUP, cut=None)
    text = drawn(slices.plan(replace(SUMMARY, refused=tuple(refused), groups=(group,))))
    assert "t0: it is odd [and 4,999 like it]" in text and "make it even" in text
    assert "and 11 other reasons" in text and "rank 0 reads" not in text
    assert len(text.splitlines()) < 50


def test_names_of_strangers_are_escaped() -> None:
    evil = replace(SUMMARY, refused=(Refusal("a\x1b[31m", "b\u202e"),), root="c\x07")
    text = drawn(slices.plan(evil))
    assert "\x1b" not in text and "\u202e" not in text and "\x07" not in text


def test_cuts() -> None:
    assert slices.cut(None) == "refused"
    assert slices.cut(Cut("whole")) == "whole"
    assert slices.cut(Cut("row", (((0, 256),), ((256, 384),)))) == "row, 256 + 128"


def test_run() -> None:
    report = SliceReport(Path("/models/y"), "per-rank", SUMMARY, (), 4_000_000_000, 3, 2.0)
    text = drawn(slices.run(report))
    assert "0 shards for 2 ranks, 4.0 GB in 2.0 s (2.0 GB/s). 3 shards were there" in text
    assert "patchq slice verify /models/y --against /models/x" in text
    assert "*.rankR.safetensors" in text
    assert slices_json.run(report)["resumed"] == 3


def test_verify() -> None:
    checks = (Check("bytes", "alike"), Check("config", "2 differ", ("a", "b")))
    found = Verified(Path("/y"), Path("/x"), False, 2, (0, 1), checks, {0: "ab", 1: "cd"})
    text = drawn(slices.verify(found))
    assert "FAILED" in text and "/y is not sound" in text and "rank 1  sha256:cd" in text
    sound = drawn(slices.verify(replace(found, checks=checks[:1])))
    assert "/y is sound and is /x, bit for bit: rank 0, 1 of 2" in sound
    assert slices_json.verify(found)["checks"][1]["problems"] == ["a", "b"]
    many = replace(found, checks=(Check("x", "y", tuple(map(str, range(40)))),))
    assert "and 20 more" in drawn(slices.verify(many))


def test_sizes() -> None:
    assert [slices.size(n) for n in (0, 999, 1500, 2.5e6, 3e9)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "2.5 MB",
        "3.0 GB",
    ]
