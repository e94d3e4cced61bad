"""What the index knows of releases, and what is said where it does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from patchq.upstream.catalog import Catalog
from patchq.upstream.components import Hardware
from tests.support.parts import Index
from tests.upstream.conftest import Site

SPARK = Hardware("aarch64", "3.12", "2.39", "13.0")


@pytest.fixture
def index(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    return Index(site)


def test_a_release(index: Index, cache: Path) -> None:
    index.release("kernels", "1.0", ["dsl>=4", "old thing"], date="2026-08-01")
    catalog = Catalog(cache, SPARK)
    found = catalog.release("kernels", "1.0.0")
    assert found is not None
    assert (found.version, found.date, found.unfit) == ("1.0", "2026-08-01", "")
    assert found.requires == ("python>=3.9", "dsl>=4"), "what is no requirement is passed over"
    assert catalog.dates("kernels") == {"1.0": "2026-08-01"}
    assert catalog.missing == ()


def test_versions_are_final_fit_and_not_yanked(index: Index, cache: Path) -> None:
    index.release("kernels", "1.0")
    index.release("kernels", "1.1rc1")
    index.release("kernels", "1.1", yanked="broken")
    index.release("kernels", "1.2", tag="cp312-cp312-win_amd64", sdist=False)
    index.release("kernels", "1.3", tag="cp312-cp312-manylinux_2_28_aarch64", sdist=False)
    catalog = Catalog(cache, SPARK)
    assert catalog.versions("kernels") == ("1.0", "1.3")
    odd = catalog.release("kernels", "1.2")
    assert odd is not None
    assert odd.unfit.startswith("none of its files fits aarch64")
    yanked = catalog.release("kernels", "1.1")
    assert yanked is not None
    assert yanked.yanked


def test_a_release_that_came_after_the_list_was_kept(index: Index, cache: Path) -> None:
    index.release("kernels", "1.0")
    Catalog(cache, SPARK).versions("kernels")
    index.release("kernels", "1.1", ["dsl"])
    catalog = Catalog(cache, SPARK)
    assert catalog.versions("kernels") == ("1.0",)
    assert catalog.release("kernels", "1.1") is not None
    assert catalog.missing == ()


def test_what_is_not_there_is_said(index: Index, cache: Path) -> None:
    index.release("kernels", "1.0")
    catalog = Catalog(cache, SPARK)
    assert catalog.release("kernels", "2.0") is None
    assert catalog.release("nothing", "1.0") is None
    assert catalog.release("kernels", "main") is None
    said = "\n".join(catalog.missing)
    assert "the index has no release 2.0 of kernels" in said
    assert "no configured package index has a package 'nothing'" in said


def test_offline_what_was_learned_before_counts(index: Index, cache: Path) -> None:
    index.release("kernels", "1.0", ["dsl>=4"], sdist=False)
    Catalog(cache, SPARK).release("kernels", "1.0")
    index.site.stop()
    catalog = Catalog(cache, SPARK, offline=True)
    found = catalog.release("kernels", "1.0")
    assert found is not None
    assert found.requires == ("python>=3.9", "dsl>=4")
    assert catalog.release("dsl", "4.0") is None
    assert "the releases of dsl are not known" in catalog.missing[0]


def test_a_source_without_a_wheel_is_built_and_asks_for_what_nobody_knows(
    index: Index, cache: Path
) -> None:
    index.release("kernels", "1.0", ["dsl>=4"], tag="cp312-cp312-win_amd64")
    catalog = Catalog(cache, SPARK)
    found = catalog.release("kernels", "1.0")
    assert found is not None
    assert (found.source_only, found.requires) == (True, ("python>=3.9", "dsl>=4"))
