"""git's binary patches give git's bytes, literal or delta; damage is said, never written."""

from __future__ import annotations

import base64
import random
import zlib
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.errors import PatchqError
from patchq.gitstore.fastimport import Ident, Write
from patchq.gitstore.store import Store
from patchq.queue import binary

WHO = Ident(b"Ada", b"ada@example.org", 0)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("store") / "s.git") as store:
        yield store


def git_diffs(store: Store, pairs: list[tuple[bytes, bytes]]) -> list[bytes]:
    with store.fast_import() as importer:
        for pair in pairs:
            for data in pair:
                importer.commit(b"x", WHO, None, [Write(b"f", data=data)])
        trees = [store.objects.tree_of(commit) for commit in importer.finish()]
    return store.diff_texts(list(zip(trees[::2], trees[1::2], strict=True)))


def noise(seed: int, size: int) -> bytes:
    return b"\0" + random.Random(seed).randbytes(size)


def test_literal(store: Store) -> None:
    old, new = noise(1, 100), noise(2, 100)
    (text,) = git_diffs(store, [(old, new)])
    assert b"\nliteral 101\n" in text and b"\ndelta" not in text
    assert binary.new_content(text, old, "it") == new


@pytest.mark.parametrize("size", [300, 5_000, 70_000, 200_000])
def test_delta(store: Store, size: int) -> None:
    """Copies of more than 64 KiB and offsets of three bytes come with the size."""
    old = noise(3, size)
    half = len(old) // 2
    new = old[half:] + b"in between" + old[:half] + old[10:90]
    (text,) = git_diffs(store, [(old, new)])
    assert b"\ndelta " in text.partition(b"\n\n")[0]
    assert binary.new_content(text, old, "it") == new


CHANGE = st.tuples(st.integers(0, 4000), st.integers(0, 600), st.binary(max_size=60))


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4000), st.lists(CHANGE, max_size=4)),
                min_size=1, max_size=8))  # fmt: skip
def test_any_change(
    store: Store, cases: list[tuple[int, int, list[tuple[int, int, bytes]]]]
) -> None:
    pairs = []
    for seed, size, changes in cases:
        old = new = noise(seed, size)
        for at, length, data in changes:
            new = new[:at] + data + new[at + length :]
        pairs.append((old, b"\0" + new))
    for text, (old, new) in zip(git_diffs(store, pairs), pairs, strict=True):
        assert binary.new_content(text, old, "it") == new


def packed(kind: bytes, data: bytes, size: int | None = None) -> bytes:
    """A binary section as git writes it."""
    deflated = zlib.compress(data)
    lines = []
    for at in range(0, len(deflated), 52):
        piece = deflated[at : at + 52]
        count = bytes([64 + len(piece) if len(piece) <= 26 else 70 + len(piece)])
        lines.append(count + base64.b85encode(piece, pad=True))
    announced = len(data) if size is None else size
    return b"GIT binary patch\n%s %d\n" % (kind, announced) + b"\n".join(lines) + b"\n\n"


def test_our_own_packing_is_read() -> None:
    data = noise(4, 500)
    assert binary.new_content(packed(b"literal", data), b"", "it") == data
    assert binary.new_content(packed(b"delta", b"\x03\x05\x90\x03\x02xy"), b"abc", "it") == b"abcxy"


OLD = b"abc"
DAMAGED = {
    "no section": b"diff --git a/f b/f\n",
    "no size": b"GIT binary patch\nliteral\nAx\n\n",
    "no number": b"GIT binary patch\nliteral x\nAx\n\n",
    "no base85": b"GIT binary patch\nliteral 3\nC{ ;\n\n",
    "no zlib": b"GIT binary patch\nliteral 3\n" + b"D" + base64.b85encode(b"abcd") + b"\n\n",
    "no data": b"GIT binary patch\nliteral 3\n\n",
    "cut off": packed(b"literal", b"x" * 99)[:-9] + b"\n\n",
    "too short": packed(b"literal", b"abc", 4),
    "too long": packed(b"literal", b"abc", 2),
    "less than nothing": packed(b"literal", b"abc", -1),
    "too big": packed(b"literal", b"abc", binary.LIMIT + 1),
    "for another file": packed(b"delta", b"\x04\x01\x90\x01"),
    "copy from behind the end": packed(b"delta", b"\x03\x05\x91\x02\x05"),
    "insert cut off": packed(b"delta", b"\x03\x05\x05ab"),
    "copy cut off": packed(b"delta", b"\x03\x05\x91"),
    "makes less": packed(b"delta", b"\x03\x05\x90\x03"),
    "makes more": packed(b"delta", b"\x03\x02\x90\x03"),
    "size without end": packed(b"delta", b"\x83\x80"),
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED.keys())
def test_damage(text: bytes) -> None:
    with pytest.raises(PatchqError, match=r"0001-x\.patch: its binary part is damaged") as caught:
        binary.new_content(text, OLD, "0001-x.patch")
    assert "restore the file from git" in caught.value.hint


def test_a_bomb_makes_no_more_than_it_announces() -> None:
    """A delta of a thousand copies announces five bytes: it stops behind the first copy."""
    old = bytes(10_000)
    size = b"\x90\x4e"
    bomb = packed(b"delta", size + b"\x05" + b"\xb0\x10\x27" * 1000)
    with pytest.raises(PatchqError, match="5 bytes announced, 10000 made"):
        binary.new_content(bomb, old, "it")
    for size_ in (-1, 3):
        with pytest.raises(PatchqError, match="damaged"):
            binary.new_content(packed(b"literal", bytes(10**7), size_), b"", "it")


@given(st.binary(max_size=30), st.binary(max_size=10))
def test_any_delta_is_applied_or_refused(delta: bytes, old: bytes) -> None:
    with suppress(PatchqError):
        binary.new_content(packed(b"delta", bytes([len(old)]) + delta), old, "it")
