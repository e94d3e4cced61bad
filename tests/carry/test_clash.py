"""What conflicted, as values: keys, places in a marked text, how a tree shows it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from patchq.carry.clash import ABSENT, Clash, Key, Side, beside, digest, shown, version
from patchq.carry.merge import Blob

A, B = Blob("100644", b"a\n"), Blob("100755", b"b\n")
MARKED = (
    b"1\n<<<<<<< v2\nours\n||||||| before\n=======\ntheirs\n>>>>>>> p\n2\n"
    b"<<<<<<< v2\n||||||| before\nbase\n=======\n3\n>>>>>>> p"
)


def clash(path: bytes = b"d/f", marked: bytes = b"", **sides: Blob | None) -> Clash:
    given = {"base": A, "ours": A, "theirs": B} | sides
    return Clash(path, path, "content", given["base"], given["ours"], given["theirs"], marked)


def test_every_place_of_a_marked_text() -> None:
    assert clash(marked=MARKED).sides == (
        Side(2, b"ours\n", b"", b"theirs\n"),
        Side(9, b"", b"base\n", b"3\n"),
    )
    assert clash(marked=MARKED[:-12]).sides == (Side(2, b"ours\n", b"", b"theirs\n"),)
    assert clash().sides == ()


@given(st.binary())
def test_any_text_is_read(text: bytes) -> None:
    clash(marked=b"<<<<<<< a\n" + text).sides  # noqa: B018 - must come to an end


def test_versions_and_digests_tell_apart() -> None:
    assert version(None) == ABSENT
    assert version(A) != version(Blob("100755", A.data))
    keys = [
        Key(b"a", version(A), version(A), version(B)),
        Key(b"a", version(A), version(B), version(B)),
        Key(b"b", version(A), version(A), version(B)),
        Key(b"a", ABSENT, version(A), version(B)),
    ]
    assert len({key.digest for key in keys}) == 4
    assert digest(keys) == digest(reversed(keys)) != digest(keys[:2])


def test_where_the_patch_side_is_shown() -> None:
    def at(*there: bytes) -> bytes:
        return beside(clash(), "fix", lambda path: path in there)

    assert at() == b"d/f.fix"
    assert at(b"d/f") == b"d/f.fix"
    assert at(b"d/f", b"d/f.fix", b"d/f.fix-") == b"d/f.fix--"
    assert at(b"d") == b"d.fix/f", "upstream has a file where the folder would be"


def test_what_a_tree_shows() -> None:
    def none(_: bytes) -> bool:
        return False

    (marked,) = shown([clash(marked=b"x")], "fix", none)
    assert (marked.path, marked.mode, marked.data) == (b"d/f", "100755", b"x")
    (other,) = shown([clash()], "fix", none)
    assert (other.path, other.mode, other.data) == (b"d/f.fix", "100755", b"b\n")
    (note,) = shown([clash(theirs=None)], "fix", none)
    assert note.data == b"fix deletes the file beside this note.\n"
    (kept,) = shown([clash(theirs=None, marked=b"x")], "fix", none)
    assert (kept.path, kept.mode) == (b"d/f", "100644")
