"""Headers of strangers: what is sound is read, what lies is refused in one sentence."""

from __future__ import annotations

import json
import os
import struct
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.exl3.headers import BITS, MAX_HEADER, BadFile, parse, read_shard, render

Header = dict[str, Any]


def entry(dtype: str, shape: list[int], begin: int, end: int) -> Header:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


SOUND: Header = {
    "a": entry("F16", [4], 0, 8),
    "b": entry("I16", [2, 2, 16], 8, 136),
    "c": entry("I32", [], 136, 140),
}


def write(path: Path, header: Header | str, data: int = 140) -> Path:
    text = header if isinstance(header, str) else json.dumps(header)
    path.write_bytes(struct.pack("<Q", len(text.encode())) + text.encode() + bytes(data))
    return path


def refused(path: Path) -> str:
    with pytest.raises(BadFile) as caught:
        read_shard(path.parent, path.name)
    message = caught.value.message
    assert "\n" not in message and len(message) < 400 and caught.value.hint
    return message


def test_reads_what_is_sound(tmp_path: Path) -> None:
    path = write(tmp_path / "x.safetensors", {"__metadata__": {"format": "pt"}, **SOUND})
    shard = read_shard(tmp_path, path.name)
    assert [tensor.name for tensor in shard.tensors] == ["a", "b", "c"]
    assert shard.tensors[1].shape == (2, 2, 16) and shard.tensors[1].nbytes == 128
    assert shard.tensors[0].start == shard.data and shard.tensors[-1].end == shard.size
    assert shard.metadata == {"format": "pt"}


def test_order_in_the_header_does_not_matter(tmp_path: Path) -> None:
    path = write(tmp_path / "x.safetensors", dict(reversed(SOUND.items())))
    assert [tensor.name for tensor in read_shard(tmp_path, path.name).tensors] == ["a", "b", "c"]


def test_empty_tensors_are_sound(tmp_path: Path) -> None:
    header = {"z": entry("F16", [0, 4], 0, 0), **SOUND, "e": entry("F32", [0], 140, 140)}
    assert len(read_shard(tmp_path, write(tmp_path / "x.safetensors", header).name).tensors) == 5


def test_names_with_colons_are_sound(tmp_path: Path) -> None:
    header = {"a:b": entry("F16", [4], 0, 8)}
    assert read_shard(tmp_path, write(tmp_path / "x.safetensors", header, 8).name).tensors


ENTRY = '{"dtype":"F16","shape":[4],"data_offsets":[0,8]}'
BAD: dict[str, tuple[Header | str, int, str]] = {
    "truncated": (SOUND, 139, "truncated: c ends at byte"),
    "longer": (SOUND, 141, "1 bytes after its last tensor belong to nothing"),
    "overlap": (
        {"a": entry("F16", [4], 0, 8), "b": entry("F16", [4], 4, 12)},
        12,
        "b overlaps a",
    ),
    "same place": ({"a": entry("F16", [4], 0, 8), "b": entry("F16", [4], 0, 8)}, 8, "overlaps"),
    "gap": (
        {"a": entry("F16", [4], 0, 8), "b": entry("F16", [4], 16, 24)},
        24,
        "belong to nothing",
    ),
    "late": ({"a": entry("F16", [4], 8, 16)}, 16, "before a belong to nothing"),
    "size": ({"a": entry("F16", [4], 0, 10)}, 10, "does not fill its 10 bytes"),
    "backwards": ({"a": entry("F16", [4], 8, 0)}, 8, "a has the data_offsets [8, 0]"),
    "negative": ({"a": entry("F16", [-4], 0, 8)}, 8, "shape [-4]"),
    "twice negative": ({"a": entry("F16", [-2, -2], 0, 8)}, 8, "shape [-2, -2]"),
    "negative offset": ({"a": entry("F16", [4], -8, 0)}, 8, "data_offsets [-8, 0]"),
    "float": ({"a": {"dtype": "F16", "shape": [4.0], "data_offsets": [0, 8]}}, 8, "number 4.0"),
    "true": (
        {"a": {"dtype": "F16", "shape": [True, 4], "data_offsets": [0, 8]}},
        8,
        "true or false",
    ),
    "NaN": ('{"a":{"dtype":"F16","shape":[NaN],"data_offsets":[0,8]}}', 8, "number NaN"),
    "text": ({"a": {"dtype": "F16", "shape": ["4"], "data_offsets": [0, 8]}}, 8, "shape ['4']"),
    "text that fills the memory": (
        {"a": {"dtype": "F16", "shape": [2**40, "x"], "data_offsets": [0, 8]}},
        8,
        "a has the shape",
    ),
    "list that fills the memory": (
        {"a": {"dtype": "F16", "shape": [2**40, [1]], "data_offsets": [0, 8]}},
        8,
        "a has the shape",
    ),
    "null": ({"a": {"dtype": "F16", "shape": None, "data_offsets": [0, 8]}}, 8, "shape None"),
    "dtype": ({"a": entry("F13", [4], 0, 8)}, 8, "unknown dtype 'F13'"),
    "dtype list": ({"a": {**entry("F16", [4], 0, 8), "dtype": ["F16"]}}, 8, "unknown dtype"),
    "three offsets": ({"a": {**entry("F16", [4], 0, 8), "data_offsets": [0, 8, 8]}}, 8, "offsets"),
    "more keys": ({"a": {**entry("F16", [4], 0, 8), "x": 1}}, 8, "or more than these"),
    "no object": ({"a": 7}, 8, "has no dtype"),
    "twice": (
        f'{{"a":{ENTRY},"a":{ENTRY}}}',
        8,
        "names a twice",
    ),
    "twice, escaped": (
        f'{{"a":{ENTRY},"\\u0061":{ENTRY}}}',
        8,
        "names a twice",
    ),
    "twice, the first is no object": (
        '{"a":7,"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}}',
        8,
        "names a twice",
    ),
    "key twice": (
        '{"a":{"dtype":"F16","shape":[9],"shape":[4],"data_offsets":[0,8]}}',
        8,
        "names shape twice",
    ),
    "no JSON": ("{", 8, "no JSON"),
    "list": ("[]", 0, "no JSON object"),
    "deep": ("[" * 100_000, 0, "no JSON"),
    "huge number": ('{"a":{"dtype":"F16","shape":[1' + "0" * 5000 + "]}}", 8, "no JSON"),
    "metadata": ({"__metadata__": {"a": 1}, **SOUND}, 140, "__metadata__"),
    "metadata list": ({"__metadata__": [], **SOUND}, 140, "__metadata__"),
}


@pytest.mark.parametrize("name", BAD)
def test_refuses(tmp_path: Path, name: str) -> None:
    header, data, says = BAD[name]
    assert says in refused(write(tmp_path / "x.safetensors", header, data))


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "0 bytes"),
        (b"1234567", "7 bytes"),
        (struct.pack("<Q", 100) + b"{}", "a header of 100 bytes but has only 10"),
        (struct.pack("<Q", MAX_HEADER + 1), "more than any may have"),
        (struct.pack("<Q", 2**63), "more than any may have"),
        (struct.pack("<Q", 2) + b"\xff\xfe", "no JSON"),
    ],
)
def test_refuses_bytes(tmp_path: Path, raw: bytes, says: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(raw)
    assert says in refused(path)


def test_a_symlink_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").symlink_to(tmp_path / "blob")
    assert "points to nothing" in refused(tmp_path / "x.safetensors")


def test_follows_symlinks(tmp_path: Path) -> None:
    write(tmp_path / "blob", SOUND)
    (tmp_path / "x.safetensors").symlink_to("blob")
    assert read_shard(tmp_path, "x.safetensors").path == tmp_path.resolve() / "blob"


def sound(raw: bytes, size: int) -> None:
    """`parse` refuses in one sentence, or what it returns covers the data once."""
    data = 8 + len(raw)
    try:
        _, tensors = parse(raw, "x", data, size)
    except BadFile:
        return
    place = data
    for tensor in tensors:
        assert tensor.start == place and tensor.end >= place
        assert all(type(extent) is int and extent >= 0 for extent in tensor.shape)
        assert prod(tensor.shape) * BITS[tensor.dtype] == 8 * tensor.nbytes
        place = tensor.end
    assert place == size
    assert len({tensor.name for tensor in tensors}) == len(tensors)


BASE = render(
    {"format": "pt"},
    [
        ("m.mcg", "I32", (), 4),
        ("m.suh", "F16", (128,), 256),
        ("m.trellis", "I16", (8, 8, 16), 2048),
    ],
)[8:]


@settings(max_examples=400)
@given(st.data())
def test_fuzz_bytes(data: st.DataObject) -> None:
    raw = bytearray(BASE)
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(raw) - 1))
        kind = data.draw(st.integers(0, 2))
        if kind == 0:
            raw[place] = data.draw(st.sampled_from(b'0123456789-,:[]{}"eE.tfn\x00\xff\\'))
        elif kind == 1:
            del raw[place : place + data.draw(st.integers(1, 20))]
        else:
            start = data.draw(st.integers(0, len(raw) - 1))
            raw[place:place] = raw[start : start + data.draw(st.integers(1, 80))]
        if not raw:
            return
    sound(bytes(raw), 8 + len(raw) + data.draw(st.sampled_from([2308, 0, 4, 2307, 4356])))


NUMBERS = st.integers(-2, 40) | st.sampled_from([True, 2**31, 2**63, 2**64, 1.5, None, "1"])


@settings(max_examples=400)
@given(
    st.dictionaries(
        st.text(max_size=6),
        st.fixed_dictionaries(
            {
                "dtype": st.sampled_from([*BITS, "F17", ""]),
                "shape": st.lists(NUMBERS, max_size=4),
                "data_offsets": st.lists(NUMBERS, min_size=1, max_size=3),
            }
        ),
        max_size=5,
    ),
    st.integers(0, 64),
)
def test_fuzz_structure(header: Header, size: int) -> None:
    raw = json.dumps(header).encode()
    sound(raw, 8 + len(raw) + size)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["F16", "I16", "I32", "BF16", "U8"]),
            st.lists(st.integers(0, 5), max_size=3),
        ),
        max_size=6,
    ),
    st.none() | st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
)
def test_what_is_written_is_read(
    kinds: list[tuple[str, list[int]]], metadata: dict[str, str] | None
) -> None:
    entries = [
        (f"t{number}", dtype, tuple(shape), prod(shape) * BITS[dtype] // 8)
        for number, (dtype, shape) in enumerate(kinds)
    ]
    raw = render(metadata, entries)
    assert len(raw) % 8 == 0
    size = len(raw) + sum(nbytes for *_, nbytes in entries)
    found, tensors = parse(raw[8:], "x", len(raw), size)
    assert found == (metadata or {})
    assert [(t.name, t.dtype, t.shape, t.nbytes) for t in tensors] == entries


def test_a_file_that_shrinks_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "x.safetensors", SOUND)
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, at: real(fd, n, at) if at == 0 else b"")
    assert "became shorter" in refused(path)
