"""Which objects a change of native code has compiled anew, and why."""

from __future__ import annotations

from patchq.build.native.model import Facts
from patchq.build.native.plan import NativePlan, plan
from patchq.render import native as render
from tests.build.native.sources import CMAKE, VLLM, Files

SPARK = Facts("cuda", "12.1a", "13.0")


def changed(facts: Facts = SPARK, **files: str | None) -> NativePlan:
    """The plan where `files` (`__` for a slash, None: removed) are changed."""
    names = {key.replace("__", "/"): text for key, text in files.items()}
    new = {path: text for path, text in {**VLLM, **names}.items() if text is not None}
    return plan(Files(VLLM), Files(new), sorted(names), facts)


def touched(path: str, **more: str | None) -> NativePlan:
    ending = "\n# x\n" if path.endswith((".txt", ".cmake", ".py")) else "\n// x\n"
    return changed(**{path.replace("/", "__"): VLLM[path] + ending}, **more)


def objects(made: NativePlan) -> dict[str, list[str]]:
    return {work.extension.name: [each.source.path for each in work.objects] for work in made.works}


def test_a_source_is_found_in_its_extension() -> None:
    made = touched("csrc/a.cu")
    assert objects(made) == {"_C_stable": ["csrc/a.cu"]}
    (work,) = made.works
    assert work.total == 4 and not work.whole
    (found,) = work.objects
    assert found.reasons == ("it is changed",) and found.source.archs == ("12.0",)
    assert objects(touched("csrc/moe/moe.cu")) == {"_moe_C": ["csrc/moe/moe.cu"]}


def test_a_header_is_followed_to_the_sources() -> None:
    made = touched("csrc/util/b.cuh")
    assert objects(made) == {"_C_stable": ["csrc/a.cu"]}, "csrc/sm90.cu is not for this target"
    assert made.works[0].objects[0].reasons == (
        "it takes in csrc/util/b.cuh by way of csrc/util/a.cuh",
    )
    assert objects(touched("csrc/ops.h")) == {"_C_stable": ["csrc/bindings.cpp", "csrc/a.cu"]}


def test_what_a_script_writes() -> None:
    for path in ("csrc/gen/make.py", "csrc/gen/kernel.h"):
        made = touched(path)
        assert objects(made) == {"_C_stable": ["csrc/gen/kernel_*.cu"]}


def test_what_is_for_other_targets_compiles_nothing() -> None:
    made = touched("csrc/sm90.cu")
    assert not made.compiles and not made.unknown
    assert made.apart[0].says == "belongs to _C_stable, but is not compiled for this target"
    assert touched("csrc/cpu/a.cpp").apart[0].says.startswith("belongs to _C,")
    assert touched("csrc/README.md").apart[0].says == "documentation"


def test_what_is_not_known_takes_the_extensions_beside_it() -> None:
    made = touched("csrc/table.inc")
    assert [each.extension.name for each in made.works] == ["_C_stable", "_moe_C"]
    assert all(each.whole for each in made.works)
    assert made.unknown[0].path == "csrc/table.inc"
    assert [each.extension.name for each in touched("cmake/other.cmake").works] == [
        "_C_stable",
        "_moe_C",
    ], "it defines no extension: all of them"


def test_cmake_files_are_compared_by_what_they_say() -> None:
    other = CMAKE.replace("USE_CUDA)", "USE_CUDA FAST=1)")
    (work,) = changed(**{"CMakeLists.txt": other}).works
    assert work.extension.name == "_C_stable" and "with FAST=1" in work.whole
    added = CMAKE.replace('"csrc/a.cu")', '"csrc/a.cu" "csrc/new.cu")')
    made = changed(**{"CMakeLists.txt": added, "csrc__new.cu": ""})
    assert objects(made) == {"_C_stable": ["csrc/new.cu"]} and not made.unknown
    removed = CMAKE.replace('"csrc/a.cu")', ")")
    (work,) = changed(**{"CMakeLists.txt": removed, "csrc__a.cu": None}).works
    assert work.removed == ("csrc/a.cu",) and not work.objects
    archs = CMAKE.replace("foreach(WANTED 9.0a 12.0f)", "foreach(WANTED 9.0a 12.0a)")
    archs = archs.replace("ENABLE_SM${DIGITS}", "ENABLE_SM120")
    (work,) = changed(**{"CMakeLists.txt": archs}).works
    assert "12.0f before, 12.0a now" in work.objects[0].reasons[0]


def test_an_extension_that_is_new() -> None:
    more = CMAKE + "define_extension_target(_new SOURCES csrc/new.cu)\n"
    made = changed(**{"CMakeLists.txt": more, "csrc__new.cu": "", "csrc__moe__moe.cu": ""})
    assert {each.extension.name: each.whole for each in made.works} == {
        "_moe_C": "",
        "_new": "the extension is new",
    }


def test_rust_is_left_to_cargo() -> None:
    made = touched("rust/lib.rs")
    assert made.rust == ("rust/lib.rs",) and not made.works and made.compiles


def test_headers_of_fetched_projects_are_told() -> None:
    (work,) = touched("csrc/sm120.cu").works
    assert work.objects[0].needs == ("cutlass",)


def test_content_changes_with_what_is_taken_in() -> None:
    one, other = touched("csrc/a.cu"), touched("csrc/a.cu", **{"csrc__ops.h": ""})
    digests = {made.works[0].objects[-1].content for made in (one, other)}
    assert len(digests) == 2


def test_the_plan_for_people_and_machines() -> None:
    made = touched("csrc/util/b.cuh", **{"csrc__sm90.cu": "x", "csrc__table.inc": "x"})
    text = "\n".join(render.lines(made))
    assert "for cuda 12.1a" in text
    assert "not compiled here: csrc/sm90.cu" in text and "unknown: csrc/table.inc" in text
    told = render.as_json(touched("csrc/util/b.cuh"))
    assert told["schema"] == "patchq.build-plan/1"
    assert told["extensions"][0]["objects"][0]["archs"] == ["12.0"]
    assert render.lines(NativePlan(SPARK)) == [
        "The series changes no native code: nothing is compiled."
    ]
