"""quilt as an oracle."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchq.carry.quilt import by_quilt
from patchq.carry.report import Check
from patchq.errors import PatchqError
from tests.support.history import lines
from tests.support.kit import Kit, made

TEXT = lines(range(1, 31))


def tell(kit: Kit) -> None:
    start = kit.history.commit().write("a.txt", TEXT).write("d/é b.txt", TEXT).link("l", b"a.txt")
    start.write("run", b"#!/bin/sh\n", 0o100755).tag("v1")
    kit.history.branch("one", at="v1").commit().edit("a.txt", b"line 9\n", b"9\n").chmod(
        "run", 0o100644
    )
    two = kit.history.branch("two", at="one").commit().edit("d/é b.txt", b"line 9\n", b"9")
    two.write("new", b"new\n", 0o100755).link("l", b"run").delete("a.txt")


def test_the_same_files(kit: Kit) -> None:
    tell(kit)
    found = by_quilt(kit.store, kit.tree("v1"), kit.series("v1", "one", "two"))
    assert found == Check("quilt", True, f"2 patches give {kit.tree('two')}")


def test_no_patches(kit: Kit) -> None:
    tell(kit)
    found = by_quilt(kit.store, kit.tree("v1"), ())
    assert found == Check("quilt", True, f"0 patches give {kit.tree('v1')}")


def test_a_patch_that_quilt_does_not_take(kit: Kit) -> None:
    tell(kit)
    one, two = kit.series("v1", "one", "two")
    bad = made(2, "two", two.diff.replace(b" line 8\n", b" another\n"))
    found = by_quilt(kit.store, kit.tree("v1"), [one, bad])
    assert not found.ok
    assert "0002-two.patch" in found.detail


def test_files_that_differ(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(kit)
    monkeypatch.setattr("patchq.carry.quilt._tree_after", lambda *_: kit.tree("one"))
    found = by_quilt(kit.store, kit.tree("v1"), kit.series("v1", "one", "two"))
    assert found == Check("quilt", False, "4 files differ, a.txt first")


@pytest.mark.parametrize(
    ("path", "content", "mode", "why"),
    [
        ("bin", b"\0", 0o100644, "0002-odd.patch holds binary content (bin)"),
        ("an empty", b"", 0o100644, "0002-odd.patch: a bare mode change or empty file"),
        ("d/é b.txt", TEXT, 0o100755, "0002-odd.patch: a bare mode change or empty file"),
    ],
)
def test_what_quilt_cannot_take_ends_the_comparison(
    kit: Kit, path: str, content: bytes, mode: int, why: str
) -> None:
    tell(kit)
    kit.history.branch("odd", at="one").commit().write(path, content, mode)
    kit.history.branch("more", at="odd").commit().write("x", b"x\n")
    found = by_quilt(kit.store, kit.tree("v1"), kit.series("v1", "one", "odd", "more"))
    assert found.ok
    wanted = f"1 patches give {kit.tree('one')}; not compared from there: {why}"
    assert found.detail.startswith(wanted)


def test_no_quilt(kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(kit)
    tree = kit.tree("v1")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PatchqError, match="quilt is not installed"):
        by_quilt(kit.store, tree, ())


def test_the_users_quilt_settings_do_not_matter(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(kit)
    Path(os.environ["HOME"], ".quiltrc").write_text("QUILT_PATCHES=elsewhere\nexit 1\n")
    monkeypatch.setenv("QUILT_PATCHES_PREFIX", "yes")
    assert by_quilt(kit.store, kit.tree("v1"), kit.series("v1", "one")).ok
