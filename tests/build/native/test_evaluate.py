"""What CMake files build, under facts and without any."""

from __future__ import annotations

import pytest

from patchq.build.native.evaluate import evaluate
from patchq.build.native.model import Built, Facts
from patchq.errors import PatchqError
from tests.build.native.sources import CMAKE, VLLM, Files

SPARK = Facts("cuda", "12.1a", "13.0")


def built(facts: Facts, **changed: str) -> Built:
    names = {key.replace("__", "/"): value for key, value in changed.items()}
    return evaluate(Files({**VLLM, **names}), facts)


def paths(made: Built, name: str) -> list[str]:
    return [each.path for each in made.extensions[name].sources]


def test_what_is_built_for_one_architecture() -> None:
    made = built(SPARK)
    assert list(made.extensions) == ["_C_stable", "_moe_C"]
    own = made.extensions["_C_stable"]
    assert paths(made, "_C_stable") == [
        "csrc/bindings.cpp",
        "csrc/a.cu",
        "csrc/sm120.cu",
        "csrc/gen/kernel_*.cu",
    ]
    assert [each.archs for each in own.sources] == [("12.0",), ("12.0",), ("12.0f",), ()]
    assert own.sources[3].generated and own.generators == ("csrc/gen/make.py",)
    assert own.options == ("-DENABLE_FP8", "--expt-relaxed-constexpr", "-DENABLE_SM120=1")
    assert own.definitions == ("USE_CUDA",)
    assert own.includes == ("csrc", "${CUTLASS_INCLUDE_DIR}")
    assert (own.language, own.destination, own.abi) == ("CUDA", "vllm", "3")
    assert made.standard == "20"
    assert [(each.name, each.revision) for each in made.fetched] == [("cutlass", "v1")]
    assert made.files == ("CMakeLists.txt", "cmake/utils.cmake", "cmake/other.cmake")


def test_what_is_built_for_another_device() -> None:
    made = built(Facts("cpu"))
    assert list(made.extensions) == ["_C"] and paths(made, "_C") == ["csrc/cpu/a.cpp"]
    assert "csrc/sm120.cu" not in paths(built(Facts("rocm")), "_C_stable")


def test_without_facts_everything_may_be_built() -> None:
    made = built(Facts())
    assert list(made.extensions) == ["_C", "_C_stable", "_moe_C"]
    own = made.extensions["_C_stable"]
    assert own.source("csrc/a.cu") and own.source("csrc/gen/kernel_*.cu")
    archs = [each.archs for each in own.sources if each.path == "csrc/a.cu"]
    assert archs == [None], "not known, and said so"


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ("TRUE", True),
        ("NOT 0", True),
        ("A STREQUAL b", True),
        ("A STREQUAL c OR NOT (A STREQUAL c)", True),
        ("V VERSION_GREATER_EQUAL 12.8 AND V VERSION_LESS 13.1", True),
        ("V VERSION_LESS_EQUAL 12.10", False),
        ("A IN_LIST L", True),
        ('"c" IN_LIST L AND UNKNOWN', False),
        ('"${L}" MATCHES "^a;b$"', True),
        ("EMPTY", False),
        ("DEFINED A", True),
        ("UNKNOWN", None),
        ("UNKNOWN OR A STREQUAL c", None),
        ("EXISTS /x", None),
        ('"${UNKNOWN}" STREQUAL ""', None),
    ],
)
def test_conditions(condition: str, taken: bool | None) -> None:
    text = f"""set(A b)\nset(V "13.0")\nset(L a b)\nset(EMPTY)
    add_library(x OBJECT a.c)
    if({condition})
      target_sources(x PRIVATE yes.c)
    else()
      target_sources(x PRIVATE no.c)
    endif()"""
    found = [
        each.path
        for each in evaluate(Files({"CMakeLists.txt": text}), Facts()).extensions["x"].sources
    ]
    assert (("yes.c" in found), ("no.c" in found)) == {
        True: (True, False),
        False: (False, True),
        None: (True, True),
    }[taken]


def test_lists_strings_loops_and_functions() -> None:
    text = r"""
    function(add OUT)
      set(_all)
      foreach(_each ${ARGN})
        if(_each STREQUAL "stop")
          break()
        endif()
        string(REPLACE "." "-" _each "${_each}")
        list(APPEND _all "${_each}.c")
      endforeach()
      list(REMOVE_DUPLICATES _all)
      list(LENGTH _all COUNT)
      set(${OUT} ${_all} PARENT_SCOPE)
    endfunction()
    add(FOUND a.b a.b c stop d)
    list(REMOVE_ITEM FOUND c.c)
    list(GET FOUND 0 FIRST)
    set(NAME FOUND)
    set(SELF "${SELF} x")
    set(SELF "${SELF} y")
    add_library(x OBJECT ${${NAME}} first-${FIRST})
    if(COUNT)
      target_sources(x PRIVATE leaked.c)
    endif()
    """
    made = evaluate(Files({"CMakeLists.txt": text}), Facts())
    assert paths(made, "x") == ["a-b.c", "first-a-b.c", "leaked.c"], "COUNT is not known outside"


@pytest.mark.parametrize(
    "text",
    [
        "function(f)\nf()\nendfunction()\nf()",
        "set(L a b c d e f g h)\n" + "foreach(i ${L})\n" * 7 + "set(x 1)\n" + "endforeach()\n" * 7,
    ],
)
def test_what_never_ends_is_refused(text: str) -> None:
    with pytest.raises(PatchqError, match="on and on"):
        evaluate(Files({"CMakeLists.txt": text}), Facts())


def test_a_file_that_includes_itself() -> None:
    made = built(SPARK, CMakeLists__txt="", **{"cmake__other.cmake": "include(cmake/other.cmake)"})
    assert list(made.extensions) == ["_C_stable", "_moe_C"]


def test_no_cmake_builds_nothing() -> None:
    assert evaluate(Files({"setup.py": ""}), SPARK) == Built()
    assert CMAKE
