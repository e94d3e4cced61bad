"""Profiles' files: those that are shipped, and everything that one may have wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.cluster.profile import Limits, Profile, load, names, parse
from patchq.errors import PatchqError
from patchq.upstream.components import pinned

ROOT = Path(__file__).resolve().parents[2]
SOUND = """
model = "tiny"
served_name = "tiny"
{more}
[flags]
max-model-len = 1024
"""


def written(tmp_path: Path, more: str = "", was: str = "", becomes: str = "") -> Profile:
    folder = tmp_path / "ci" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    text = SOUND.format(more=more)
    assert was in text
    (folder / "tiny-1.0.toml").write_text(text.replace(was, becomes, 1), encoding="utf-8")
    return load(tmp_path, "tiny-1.0")


@pytest.mark.parametrize("name", names(ROOT))
def test_shipped_profiles_name_what_is_pinned(name: str) -> None:
    profile, pins = load(ROOT, name), pinned(ROOT / "upstream")
    assert profile.model in [each.name for each in pins.models]
    assert profile.draft in [None, *(each.name for each in pins.drafts)]
    assert profile.template in [None, *(each.name for each in pins.templates)]


def test_glm_drafts_what_its_drafter_was_trained_for() -> None:
    profile, pins = load(ROOT, "glm-5.3-flash"), pinned(ROOT / "upstream")
    (draft,) = (each for each in pins.drafts if each.name == profile.draft)
    assert profile.speculation["num_speculative_tokens"] == 7
    assert profile.speculation["draft_tensor_parallel_size"] == profile.tensor_parallel == 2
    assert "trained for 7 draft tokens" in draft.why


def test_what_is_left_out_is_little(tmp_path: Path) -> None:
    profile = written(tmp_path)
    assert profile == Profile("tiny-1.0", "tiny", "tiny", flags={"max-model-len": 1024})
    assert profile.limits == Limits(3600, 0)


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        ('model = "tiny"', "", "model is missing or no text"),
        ('model = "tiny"', 'model = "/data/tiny"', "model = '/data/tiny' is no name"),
        ('model = "tiny"', 'model = "tiny"\nmodels = "x"', "unknown keys: models"),
        ('served_name = "tiny"', "served_name = 1", "served_name is missing or no text"),
        ('model = "tiny"', 'model = "tiny"\ntensor_parallel = 0', "no number from 1 to 1024"),
        ('model = "tiny"', 'model = "tiny"\ndraft = "d"', "it has a draft, but no speculation"),
        ("max-model-len = 1024", "port = 1", "port is set at every start"),
        ("max-model-len = 1024", "no-headless = true", "no-headless is set at every start"),
        ("max-model-len = 1024", "max_model_len = 1", "'max_model_len' is no flag"),
        ("max-model-len = 1024", '"--seed" = 1', "'--seed' is no flag"),
        ("max-model-len = 1024", 'dtype = ""', "dtype is empty or a date"),
        ("max-model-len = 1024", "dtype = 2026-01-01", "dtype is empty or a date"),
        ("max-model-len = 1024", "sizes = [[1]]", "sizes is a list of lists"),
        ("max-model-len = 1024", "[limits]\nready = true", "ready = True is no number"),
        ("max-model-len = 1024", "[limits]\nwall = 1", "unknown keys: wall"),
        ("max-model-len = 1024", '[environment]\nVLLM_HOST_IP = "x"', "differs from node to node"),
        ("max-model-len = 1024", '[speculation]\nmodel = "x"', "speculation names a model"),
        ("[flags]", "[flags", "is not valid TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(tmp_path: Path, was: str, becomes: str, message: str) -> None:
    with pytest.raises(PatchqError, match=message) as told:
        written(tmp_path, was=was, becomes=becomes)
    assert "ci/profiles/tiny-1.0.toml" in told.value.message
    assert told.value.hint


@pytest.mark.parametrize("name", ["none", "../tiny-1.0", ""])
def test_profiles_that_are_not_there(tmp_path: Path, name: str) -> None:
    written(tmp_path)
    with pytest.raises(PatchqError, match="there is no profile") as told:
        load(tmp_path, name)
    assert told.value.hint == "in ci/profiles there is: tiny-1.0"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["model", "draft", "served_name", "flags", "speculation", "limits", "environment"]
)


@given(st.dictionaries(KEYS, VALUES))
def test_any_table_is_read_or_refused_in_a_sentence(data: dict[str, Any]) -> None:
    told = "any.toml: nothing wrong"
    try:
        parse(data, "any", "any.toml")
    except PatchqError as problem:
        told = problem.message
    assert told.startswith("any.toml")
