"""CMake files as commands and blocks."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.build.native.cmake import Argument, blocks, commands
from patchq.errors import PatchqError


def read(text: str) -> list[tuple[str, list[str]]]:
    found = commands(text.encode(), "CMakeLists.txt")
    return [(each.name, [argument.text for argument in each.arguments]) for each in found]


def test_arguments_of_every_kind() -> None:
    text = """# first
    SET(A one "two three" [[raw ${x}]] # aside
      #[[ a
      block ]] four)
    message("a \\"quoted\\" ${B}" a\\;b)
    if(A AND (B OR NOT C))
    endif()"""
    assert read(text) == [
        ("set", ["A", "one", "two three", "raw ${x}", "four"]),
        ("message", ['a "quoted" ${B}', "a;b"]),
        ("if", ["A", "AND", "(", "B", "OR", "NOT", "C", ")"]),
        ("endif", []),
    ]
    (set_,) = commands(b'set(A b "c" [[d]])', "x")
    assert set_.arguments[1:] == (
        Argument("b"),
        Argument("c", quoted=True),
        Argument("d", quoted=True, raw=True),
    )


def test_lines_are_counted() -> None:
    assert [each.line for each in commands(b"a()\n\n# c\nb(\n1)\nc()", "x")] == [1, 4, 6]


def test_branches() -> None:
    text = b"if(A)\nx()\nelseif(B)\nelse()\ny()\nforeach(i 1 2)\nz()\nendforeach()\nendif()"
    (block,) = blocks(text, "x")
    assert [head.name for head, _ in block.branches] == ["if", "elseif", "else"]
    assert [len(body) for _, body in block.branches] == [1, 0, 2]
    loop = block.branches[2][1][1]
    assert loop.command.name == "foreach" and len(loop.branches) == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("if(A)\nx()", "line 1: if() is not closed"),
        ("\nendif()", "line 2: endif() closes nothing"),
        ("if(A)\nendforeach()", "line 1: if() is not closed"),
        ("set(A", "line 1: its parenthesis is not closed"),
        ("set(A))", "')' is no command"),
        ("set A", "set has no arguments"),
        ('set("a)', "is no argument"),
        ("// no", "'// no' is no command"),
        ("if(A)\n" * 200 + "endif()\n" * 200, "nested too deep"),
    ],
)
def test_what_is_no_cmake(text: str, says: str) -> None:
    with pytest.raises(PatchqError) as caught:
        blocks(text.encode(), "cmake/a.cmake")
    assert caught.value.message.startswith("cmake/a.cmake, line ") and says in caught.value.message


@given(st.binary(max_size=80) | st.text('if()set elnd"#[]\\\n$', max_size=80).map(str.encode))
def test_anything_is_read_or_refused(data: bytes) -> None:
    with suppress(PatchqError):
        blocks(data, "x")
