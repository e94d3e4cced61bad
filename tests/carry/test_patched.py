"""A component's source with its own patches, from the package index."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from patchq.carry.patched import patched
from patchq.errors import PatchqError
from patchq.upstream.components import Component
from tests.support.kit import made
from tests.upstream.conftest import Site, Tar, entry
from tests.upstream.conftest import site as site

FLASH = Component("flash", "kernels", index="pkg", version="1.0")
DIFF = b"""diff --git a/flash/a.py b/flash/a.py
index d00491fd7e5bb6fa28c517a0bb32b8b506539d4d..0cfbf08886fca9a91cb753ec8734c84fcbe52c9f 100644
--- a/flash/a.py
+++ b/flash/a.py
@@ -1 +1 @@
-1
+2
"""


@pytest.fixture
def root(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> Path:
    tar = Tar().add("pkg-1.0/flash/a.py", b"1\n").add("pkg-1.0/PKG-INFO", b"x")
    archive = gzip.compress(tar.bytes(), mtime=0)
    site.add("/files/pkg-1.0.tar.gz", archive)
    site.add_package("pkg", entry("pkg-1.0.tar.gz", archive))
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple")
    series(tmp_path, DIFF)
    return tmp_path


def series(root: Path, diff: bytes) -> None:
    folder = root / "series/flash"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "0001-fix.patch").write_bytes(made(1, "fix", diff).text)
    (folder / "series").write_text("0001-fix.patch\n")


def test_the_trees_before_and_after(root: Path) -> None:
    with patched(root, FLASH, root / "cache") as grown:
        assert grown is not None
        read = grown.store.objects
        for tree, content in ((grown.base, b"1\n"), (grown.tree, b"2\n")):
            found = read.lookup(tree, b"flash/a.py")
            assert found is not None and read.blob(found.oid) == content
        assert [each.name for each in grown.patches] == ["fix"]


def test_without_patches_nothing_is_asked(root: Path, site: Site) -> None:
    with patched(root, replace(FLASH, name="other"), root / "cache") as grown:
        assert grown is None
    assert not site.log


def test_a_source_that_is_not_the_pinned_one(root: Path) -> None:
    with (
        pytest.raises(PatchqError, match="pinned is 000000"),
        patched(root, replace(FLASH, sha256="0" * 64), root / "cache"),
    ):
        pass


def test_a_patch_that_does_not_apply(root: Path) -> None:
    series(root, DIFF.replace(b"-1\n", b"-7\n"))
    with pytest.raises(PatchqError), patched(root, FLASH, root / "cache"):
        pass


def test_patches_of_what_is_on_no_index(root: Path) -> None:
    git = replace(FLASH, index="", version="", commit="d4438d49")
    with (
        pytest.raises(PatchqError, match="no release on the index"),
        patched(root, git, root / "cache"),
    ):
        pass
