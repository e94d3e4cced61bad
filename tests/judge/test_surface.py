"""A module's surface keeps what callers can rely on, and survives its JSON form."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.judge import surface_form as form
from patchq.judge.surface import Name, Parameter, Surface, only_class, read

SOURCE = b"""
from . import near
from .other import *
import torch.nn as nn
LIMIT: int = 3
if LIMIT:
    made = 1
class A(Base):
    a: int
    @property
    def p(self) -> "B | None": ...
    @staticmethod
    def s(x, /, y, *, z=1, **kw): ...
    @classmethod
    def c(cls, n): ...
def f(a, b=1, *args, c) -> A: ...
"""


def test_names_signatures_and_annotations() -> None:
    seen = read("pkg.mod", SOURCE, package=False)
    assert seen is not None
    assert seen.stars == ("pkg.other",)
    names = seen.names
    assert names["near"].target == "pkg.near"
    assert names["nn"].target == "torch.nn"
    assert names["made"].kind == "attribute"
    members = names["A"].members
    assert (names["A"].bases, members["p"].type, members["p"].is_property) == (
        ("Base",),
        "B | None",
        True,
    )
    assert (members["s"].bound, members["c"].bound) == ("", "class")
    assert members["s"].parameters == (
        Parameter("x", "positional", True),
        Parameter("y", "either", True),
        Parameter("z", "keyword", False),
        Parameter("kw", "kwargs", False),
    )
    assert names["f"].type == "A"


def test_a_relative_import_counts_from_the_package() -> None:
    seen = read("pkg.sub", b"from . import x\nfrom .. import y\n", package=True)
    assert seen is not None
    assert (seen.names["x"].target, seen.names["y"].target) == ("pkg.sub.x", "pkg.y")


def test_a_module_that_answers_by_itself_is_dynamic() -> None:
    for source in (b"def __getattr__(name): ...\n", b"globals()['x'] = 1\n"):
        seen = read("m", source, package=False)
        assert seen is not None and seen.dynamic


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        ("Config", "Config"),
        ("'Config'", "Config"),
        ("Config | None", "Config"),
        ("Optional[config.Config]", "config.Config"),
        ("Annotated[Config, 1]", "Config"),
        ("list[Config]", "list"),
        ("A | B", ""),
        ("not an annotation", ""),
    ],
)
def test_the_one_class_of_an_annotation(annotation: str, wanted: str) -> None:
    assert only_class(annotation) == wanted


def test_the_json_form_gives_the_surface_back() -> None:
    seen = read("pkg.mod", SOURCE, package=False)
    assert seen is not None
    assert form.from_json(json.loads(json.dumps(form.to_json(seen)))) == seen


words = st.text("abc._", max_size=6)
parameters = st.builds(
    Parameter, words, st.sampled_from(["positional", "either", "args"]), st.booleans()
)
leaves = st.builds(
    Name,
    st.sampled_from(["function", "attribute", "import"]),
    st.integers(0, 99),
    words,
    words,
    st.tuples(parameters),
    st.sampled_from(["", "class", "instance"]),
    st.booleans(),
)
classes = st.builds(
    lambda bases, generated, members: Name(
        "class", 1, bases=bases, generated=generated, members=members
    ),
    st.tuples(words),
    st.booleans(),
    st.dictionaries(words, leaves, max_size=3),
)
surfaces = st.builds(
    Surface, st.dictionaries(words, leaves | classes, max_size=4), st.tuples(words), st.booleans()
)


@given(surfaces)
def test_every_surface_survives_its_json_form(surface: Surface) -> None:
    assert form.from_json(json.loads(json.dumps(form.to_json(surface)))) == surface
