"""The proof: by git's own applier, and by reading what Python would."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from patchq.carry.prove import apply_check, compiles, prove, sound
from patchq.carry.report import Check, Proof
from patchq.gitstore.store import Store
from patchq.queue.patch import Patch
from tests.support.history import lines
from tests.support.kit import Kit, made

TEXT = lines(range(1, 31))


@pytest.fixture
def told(kit: Kit) -> Kit:
    kit.history.commit().write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
    kit.history.branch("one", at="v1").commit().edit("a.txt", b"line 9\n", b"9\n")
    kit.history.branch("two", at="one").commit().edit("a.txt", b"line 20\n", b"20\n")
    kit.history.branch("three", at="two").commit().edit("b.txt", b"line 9\n", b"9\n")
    return kit


def test_the_series_gives_the_tree(told: Kit) -> None:
    series = told.series("v1", "one", "two", "three")
    tree = told.tree("three")
    assert apply_check(told.store, told.tree("v1"), series, tree) == Check(
        "git apply", True, f"3 patches give {tree}"
    )


def test_another_tree(told: Kit) -> None:
    series = told.series("v1", "one", "two")
    found = apply_check(told.store, told.tree("v1"), series, told.tree("three"))
    assert not found.ok
    assert found.detail == f"2 patches give {told.tree('two')}, not {told.tree('three')}"


def test_the_culprit_is_named(told: Kit) -> None:
    one, two, three = told.series("v1", "one", "two", "three")
    bad = made(2, "two", two.diff.replace(b" line 19\n", b" another line\n"))
    found = apply_check(told.store, told.tree("v1"), [one, bad, three], told.tree("three"))
    assert not found.ok
    assert found.detail.startswith("0002-two.patch: ")
    assert "a.txt" in found.detail


def test_no_fuzz(told: Kit) -> None:
    """One line of context that differs is enough, were the place clear as it may be."""
    one, _, _ = told.series("v1", "one", "two", "three")
    bad = made(1, "one", one.diff.replace(b" line 6\n", b" line 6 \n"))
    assert not apply_check(told.store, told.tree("v1"), [bad], told.tree("one")).ok


def test_no_patches(told: Kit) -> None:
    tree = told.tree("v1")
    assert apply_check(told.store, tree, [], tree) == Check("git apply", True, "no patches")
    assert not apply_check(told.store, tree, [], told.tree("one")).ok


def checks_of(kit: Kit, before: str | None = None) -> dict[str, Check]:
    def read(path: bytes) -> bytes | None:
        assert before is not None
        return kit.content(kit.tree(before), path.decode())

    found = sound(kit.store, kit.tree("v2"), kit.tree("carried"), read if before else None)
    return {check.name: check for check in found}


def carried(kit: Kit, upstream: bytes | None, text: bytes, path: str = "m.py") -> Kit:
    start = kit.history.commit().write("z", b"z\n")
    if upstream is not None:
        start.write(path, upstream)
    start.tag("v2")
    kit.history.branch("carried", at="v2").commit().write(path, text)
    return kit


COMPILES, ONCE = "python compiles", "no definition twice"


def test_what_does_not_compile_is_named(kit: Kit) -> None:
    found = checks_of(carried(kit, b"x = 1\n", b"x = 1\ndef f(:\n"))
    assert not found[COMPILES].ok
    assert found[COMPILES].detail.startswith("m.py: line 2: ")
    assert found[ONCE].ok


@pytest.mark.parametrize(
    "text",
    [
        b"def f(x):\n    await x\n",
        b"return 1\n",
        b"def f():\n    nonlocal x\n",
        b"x = '\xff'\n",
        b"x = 1\0\n",
        b"while x:\n\ty = 1\n        z = 2\n",
    ],
    ids=["await", "return", "nonlocal", "encoding", "nul", "tabs"],
)
def test_what_only_the_compiler_sees(kit: Kit, text: bytes) -> None:
    assert not checks_of(carried(kit, b"x = 1\n", text))[COMPILES].ok


def test_a_new_file_must_compile(kit: Kit) -> None:
    assert not checks_of(carried(kit, None, b"def f(:\n"))[COMPILES].ok


def test_upstreams_own_broken_file_is_not_ours(kit: Kit) -> None:
    found = checks_of(carried(kit, b"print 'two'\n", b"print 'two'\nprint 'three'\n"))
    assert found[COMPILES] == Check(COMPILES, True, "1 files")


def test_other_files_and_links_are_not_read(kit: Kit) -> None:
    kit.history.commit().write("m.txt", b"def f(:\n").write("gone.py", b"def f(:\n").tag("v2")
    carried = kit.history.branch("carried", at="v2").commit().write("m.txt", b"def g(:\n")
    carried.delete("gone.py").link("link.py", b"def f(:").write("ok.py", b"x = 1\n")
    assert checks_of(kit)[COMPILES] == Check(COMPILES, True, "1 files")


F = b"def f():\n    pass\n"
G = b"def g():\n    pass\n"


def test_a_definition_that_stands_twice_now(kit: Kit) -> None:
    found = checks_of(carried(kit, F + G, F + G + F))
    assert found[ONCE] == Check(ONCE, False, "m.py: f")
    assert found[COMPILES].ok


def test_a_definition_that_upstream_has_twice(kit: Kit) -> None:
    assert checks_of(carried(kit, F + F, F + F + G))[ONCE].ok


def test_a_definition_that_the_patch_had_twice(kit: Kit) -> None:
    carried(kit, G, G + F + F)
    assert not checks_of(kit)[ONCE].ok
    assert checks_of(kit, before="carried")[ONCE].ok
    assert not checks_of(kit, before="v2")[ONCE].ok


def test_a_file_that_the_base_before_did_not_have(kit: Kit) -> None:
    carried(kit, None, F + F)
    assert not checks_of(kit, before="v2")[ONCE].ok


def test_compiles() -> None:
    assert compiles(b"x = 1\n", "m.py") is None
    assert compiles(b"x = '\\d' is 1\n", "m.py") is None
    assert (compiles(b"x =\n", "m.py") or "").startswith("line 1: ")
    assert compiles(b"x = " + b"-" * 100_000 + b"1\n", "m.py") is not None


# Everything together


def test_prove(told: Kit) -> None:
    series = told.series("v1", "one", "two", "three")
    asked: list[tuple[str, Sequence[Patch]]] = []

    def run(store: Store, tree: str, patches: Sequence[Patch]) -> list[Check]:
        assert store is told.store
        asked.append((tree, patches))
        return [Check("check of one", False, "no")]

    tree = told.tree("three")
    assert prove(told.store, told.tree("v1"), series, tree).ok
    found = prove(told.store, told.tree("v1"), series, tree, run_checks=run)
    assert not found.ok
    assert [check.name for check in found.checks] == ["git apply", COMPILES, ONCE, "check of one"]
    assert asked == [(tree, series)]


def test_checks_do_not_run_in_a_tree_that_is_not_proved(told: Kit) -> None:
    def run(*_: object) -> list[Check]:
        raise AssertionError("it runs")

    series = told.series("v1", "one")
    found = prove(told.store, told.tree("v1"), series, told.tree("two"), run_checks=run)
    assert not found.ok


def test_an_empty_proof_is_none() -> None:
    assert not Proof().ok
    assert Proof((Check("a", True),)).ok
    assert not Proof((Check("a", True), Check("b", False))).ok
