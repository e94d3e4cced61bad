"""Names that stand twice: counted per scope, compared with what stood twice before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.judge.definitions import definitions, doubles, may_repeat, named, parse

OVERLOADS = b"""
@overload
def f(x: int) -> int: ...
@overload
def f(x: str) -> str: ...
def f(x): return x
"""


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (b"def f():\n    pass\n", {b"f"}),
        (b"async def f(): pass\nclass C: pass\n", {b"f", b"C"}),
        (b"class C:\n\tasync  def\tf(self): pass\n", {b"C", b"f"}),
        (b"undef f\n# a def g in words\nx = 'class'\n", set()),
        (b"x = 1\n", set()),
        (b"", set()),
        (b"\xff def \xff\n", set()),
    ],
)
def test_named(source: bytes, names: set[bytes]) -> None:
    assert named(source) == names


def test_definitions_are_counted_per_scope() -> None:
    source = b"""
x: int = 1
y = 1
y = 2
def f():
    a: int = 1
    def inner(): pass
class C:
    a = 1
    b: int
    a = 2
    def f(self):
        a = 1
if x:
    def g(): pass
else:
    def g(): pass
try:
    def h(): pass
except A:
    def h(): pass
finally:
    def h(): pass
for _ in ():
    def loop(): pass
with x:
    class W: pass
"""
    found = definitions(source)
    assert found is not None
    assert dict(found) == {
        ((), "x"): 1,
        ((), "f"): 1,
        (("f",), "inner"): 1,
        ((), "C"): 1,
        (("C",), "a"): 2,
        (("C",), "b"): 1,
        (("C",), "f"): 1,
        ((), "g"): 2,
        ((), "h"): 3,
        ((), "loop"): 1,
        ((), "W"): 1,
    }


@pytest.mark.parametrize(
    "source", [b"def f(:\n", b"print 1\n", b"x = '\xff'\n", b"a\0b\n", b"(" * 10_000]
)
def test_what_does_not_parse_says_nothing(source: bytes) -> None:
    assert parse(source) is None
    assert definitions(source) is None
    assert doubles(source, b"") == ()
    assert doubles(b"def f(): pass\ndef f(): pass\n", source) == ()


def test_a_warning_of_the_parser_is_not_ours() -> None:
    assert parse(b"x = '\\d'\nassert (1, 'always true')\n") is not None


@pytest.mark.parametrize(
    ("result", "sides", "names"),
    [
        # Upstream added f elsewhere, and the patch adds it.
        (
            b"def f(): 1\ndef g(): 1\ndef f(): 2\n",
            (b"def f(): 1\ndef g(): 1\n", b"def g(): 1\ndef f(): 2\n"),
            ("f",),
        ),
        # One side defines it as often.
        (OVERLOADS, (OVERLOADS, b""), ()),
        (OVERLOADS, (b"", OVERLOADS), ()),
        # Overloads, and one more.
        (OVERLOADS + b"def f(): 2\n", (OVERLOADS, OVERLOADS), ("f",)),
        # The same name in two classes is two names.
        (b"class A:\n def f(s): 1\nclass B:\n def f(s): 1\n", (b"", b""), ()),
        (
            b"class A:\n def f(s): 1\n x = 1\n def f(s): 2\n",
            (b"class A:\n def f(s): 1\n", b"class A:\n x = 1\n def f(s): 2\n"),
            ("A.f",),
        ),
        # A field of a class that both sides brought.
        (b"class A:\n a: int\n a: int = 1\n", (b"class A:\n a: int\n",) * 2, ("A.a",)),
        # Plain variables are assigned again and again.
        (b"a = 1\na = 2\n", (b"a = 1\n", b"a = 2\n"), ()),
        # Without sides what stands twice is new.
        (b"def f(): 1\ndef f(): 1\n", (), ("f",)),
    ],
)
def test_doubles(result: bytes, sides: tuple[bytes, ...], names: tuple[str, ...]) -> None:
    assert doubles(result, *sides) == names


@pytest.mark.parametrize(
    ("source", "added", "may"),
    [
        (OVERLOADS, None, True),
        (b"def f(): 1\nclass A:\n    b: int\n", None, False),
        # The same name in two scopes: only parsing tells, so a closer look is taken.
        (b"def f(): 1\nclass A:\n    def f(s): 1\n", None, True),
        # What the patch does not define does not count.
        (OVERLOADS, b"    return 1\n", False),
        (OVERLOADS, b"def f(): 2\n", True),
        (b"class A:\n    a: int\n    a = 1\n", b"    a = 1\n", True),
    ],
)
def test_a_first_look_misses_no_double(source: bytes, added: bytes | None, may: bool) -> None:
    assert may_repeat(source, added) == may


@given(st.lists(st.sampled_from("fgh"), max_size=8))
def test_a_text_never_doubles_itself(names: list[str]) -> None:
    source = "".join(f"def {name}(): pass\n" for name in names).encode()
    assert doubles(source, source) == ()
    assert may_repeat(source) == (len(set(names)) < len(names))
    assert doubles(source + source, source) == tuple(sorted(set(names)))
