"""What evidence is bound to, as JSON and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.smoke.identity import Identity, NodeIs, as_json, read

SHA256 = "0123456789abcdef" * 4
SPARKS = Identity(
    lock=SHA256,
    tree="a" * 40,
    profile="glm-5.3-flash",
    profile_sha256=SHA256,
    model=SHA256,
    draft=None,
    template=SHA256,
    artifacts=(("flashinfer.whl", SHA256), ("vllm.whl", SHA256)),
    cluster="sparks",
    nodes=(
        NodeIs("spark-a", 0, "aarch64", "NVIDIA GB10", "580.95.05"),
        NodeIs("spark-b", 1, "aarch64", None, None),
    ),
)

digests = st.text("0123456789abcdef", min_size=64, max_size=64)
words = st.text(st.characters(min_codepoint=32, exclude_characters="\x7f"), min_size=1, max_size=30)
identities = st.builds(
    Identity,
    lock=digests,
    tree=st.text("0123456789abcdef", min_size=40, max_size=40),
    profile=words,
    profile_sha256=digests,
    model=st.none() | words,
    draft=st.none() | words,
    template=st.none() | words,
    artifacts=st.sets(st.tuples(words, digests), max_size=3).map(lambda each: tuple(sorted(each))),
    cluster=words,
    nodes=st.lists(
        st.builds(NodeIs, words, st.just(0), words, st.none() | words, st.none() | words),
        max_size=1,
    ).map(tuple),
)


@given(identities)
def test_it_comes_back_from_json(identity: Identity) -> None:
    assert read(json.loads(json.dumps(as_json(identity)))) == identity


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lock", SHA256[:63]),
        ("lock", SHA256.upper()),
        ("tree", "HEAD"),
        ("profile", ""),
        ("profile", "two\nlines"),
        ("profile_sha256", None),
        ("model", 7),
        ("artifacts", {"vllm.whl": SHA256}),
        ("artifacts", [{"name": "vllm.whl"}]),
        ("artifacts", [{"name": "b", "sha256": SHA256}, {"name": "a", "sha256": SHA256}]),
        ("artifacts", [{"name": "a", "sha256": SHA256}, {"name": "a", "sha256": SHA256}]),
        ("nodes", [{"name": "spark-a"}]),
        ("nodes", [as_json(SPARKS)["nodes"][1]]),
        ("nodes", [{**as_json(SPARKS)["nodes"][0], "rank": True}]),
        ("cluster", ["sparks"]),
    ],
)
def test_anything_else_is_refused(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"is|are"):
        read({**as_json(SPARKS), key: value})


@pytest.mark.parametrize("entry", [None, [], "x", {}, {**as_json(SPARKS), "more": 1}])
def test_what_is_no_identity_is_refused(entry: Any) -> None:
    with pytest.raises(ValueError, match="is no table"):
        read(entry)
