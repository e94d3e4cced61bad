"""The runner's other components: found, verified, taken as they are or patched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from patchq.build.components import Grow, Part, parts
from patchq.build.components_plan import place
from patchq.build.plan import Changed
from patchq.build.target import find
from patchq.errors import PatchqError, ProofFailed
from patchq.gitstore.store import Store
from patchq.queue.patch import Patch
from patchq.upstream.components import Component
from tests.build.wheels import contents, plain, recorded
from tests.support.kit import Kit
from tests.upstream.conftest import Site, Tar, entry

SPARK, CPU = find("spark"), find("cpu")
FLASH = Component("flash", "kernels", index="flash-py", version="1.0", modules=("flash",))
WHEEL = {
    "flash/a.py": b"1\n",
    "flash/b.py": b"old\n",
    "flash/data/csrc/topk.cu": b"__global__ void topk() {}\n",
}
SOURCE = {
    "src/flash/a.py": b"1\n",
    "src/flash/b.py": b"old\n",
    "csrc/topk.cu": b"__global__ void topk() {}\n",
    "tests/t.py": b"assert 1\n",
}


@dataclass(frozen=True)
class Trees:
    store: Store
    base: str
    tree: str
    patches: tuple[Patch, ...]


@pytest.fixture
def kit(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kit]:
    made = Kit(tmp_path / "kit")
    commit = made.history.commit()
    for path, data in SOURCE.items():
        commit.write(path, data)
    commit.tag("v1")
    publish(site, tmp_path, WHEEL)
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple")
    yield made
    made.close()


def publish(site: Site, folder: Path, files: Mapping[str, bytes]) -> None:
    wheel = plain(folder / "published", "flash-py", "1.0", files, "torch")
    site.add(f"/files/{wheel.name}", wheel.read_bytes())
    site.add_package("flash-py", entry(wheel.name, wheel.read_bytes()))


def patched(kit: Kit, **files: bytes | None) -> Grow:
    """A series that changes `files` (`__` for `/`, None removes)."""
    commit = kit.history.branch("ours", at="v1").commit()
    for name, data in files.items():
        path = (
            name.replace("__", "/")
            .replace("_py", ".py")
            .replace("_cu", ".cu")
            .replace("_toml", ".toml")
        )
        if data is None:
            commit.delete(path)
        else:
            commit.write(path, data)

    @contextmanager
    def grow(_component: Component) -> Iterator[Trees]:
        yield Trees(kit.store, kit.tree("v1"), kit.tree("ours"), kit.series("v1", "ours"))

    return grow


@contextmanager
def unpatched(_component: Component) -> Iterator[None]:
    yield None


def run(tmp_path: Path, grow: Grow, component: Component = FLASH, **more: Any) -> Part:
    (part,) = parts(SPARK, [component], grow, tmp_path / "out", tmp_path / "cache", **more)
    return part


def test_one_without_patches_is_taken_as_published(kit: Kit, tmp_path: Path, site: Site) -> None:
    part = run(tmp_path, unpatched)
    assert part.kind == "published"
    assert part.source is not None and part.source.filename == "flash_py-1.0-py3-none-any.whl"
    assert not (tmp_path / "out").exists()
    assert run(tmp_path, unpatched, offline=True) == part, "it is kept"
    assert site.asked("/files/flash_py-1.0-py3-none-any.whl") == 1


def test_its_own_patches_are_laid_over_its_wheel(kit: Kit, tmp_path: Path) -> None:
    grow = patched(
        kit,
        src__flash__a_py=b"2\n",
        src__flash__b_py=None,
        src__flash__new_py=b"3\n",
        csrc__topk_cu=b"__global__ void topk() { /* stable */ }\n",
        tests__t_py=b"assert 2\n",
    )
    wheel = run(tmp_path, grow).wheel
    assert wheel is not None
    version = f"1.0+patchq.0.g{kit.tree('ours')[:12]}"
    assert wheel.path.name == f"flash_py-{version}-py3-none-any.whl"
    found = contents(wheel.path)
    assert found["flash/a.py"] == b"2\n"
    assert found["flash/new.py"] == b"3\n"
    assert "flash/b.py" not in found
    assert b"stable" in found["flash/data/csrc/topk.cu"], "sources that it carries as data, too"
    metadata = found[f"flash_py-{version}.dist-info/METADATA"].decode()
    assert f"Name: flash-py\nVersion: {version}\nRequires-Dist: torch\n" in metadata
    assert set(recorded(wheel.path)) == set(found), "the record names every member"
    assert wheel.laid == ("flash/a.py", "flash/data/csrc/topk.cu", "flash/new.py")
    assert wheel.removed == ("flash/b.py",)


def test_the_same_inputs_give_the_same_bytes(kit: Kit, tmp_path: Path) -> None:
    grow = patched(kit, src__flash__a_py=b"2\n")
    one, other = (run(tmp_path / name, grow).wheel for name in ("one", "two"))
    assert one is not None and other is not None
    assert one.path.read_bytes() == other.path.read_bytes()


def test_a_wheel_that_is_not_of_that_source(kit: Kit, tmp_path: Path, site: Site) -> None:
    publish(site, tmp_path, {**WHEEL, "flash/a.py": b"else\n"})
    with pytest.raises(ProofFailed, match=r"flash/a\.py differs"):
        run(tmp_path, patched(kit, src__flash__a_py=b"2\n"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["topk", "new"])
def test_what_needs_a_compiler_is_refused(kit: Kit, tmp_path: Path, site: Site, name: str) -> None:
    publish(site, tmp_path, {"flash/a.py": b"1\n"})
    with pytest.raises(PatchqError, match=rf"does not hold as it is: csrc/{name}\.cu"):
        run(tmp_path, patched(kit, **{f"csrc__{name}_cu": b"changed\n"}))


def test_a_patch_that_relaxes_a_requirement(kit: Kit, tmp_path: Path) -> None:
    """It changes the packaging, which no wheel holds: what it comes to stands in METADATA."""
    plain_ones = patched(kit, pyproject_toml=b"dependencies = []\n")
    with pytest.raises(PatchqError, match="does not hold as it is: pyproject"):
        run(tmp_path, plain_ones)

    @contextmanager
    def grow(_component: Component) -> Iterator[Trees]:
        patch = kit.patch("v1", "ours", relaxes="flash: torch -> torch>=2")
        yield Trees(kit.store, kit.tree("v1"), kit.tree("ours"), (patch,))

    wheel = run(tmp_path, grow).wheel
    assert wheel is not None
    (text,) = (data for name, data in contents(wheel.path).items() if name.endswith("/METADATA"))
    assert b"Requires-Dist: torch>=2\n" in text and b"Requires-Dist: torch\n" not in text


def test_patches_that_reach_nothing_of_the_wheel(kit: Kit, tmp_path: Path) -> None:
    with pytest.raises(PatchqError, match="changes nothing that flash-py's wheel holds"):
        run(tmp_path, patched(kit, tests__t_py=b"assert 2\n"))


def test_a_release_that_is_not_the_pinned_one(kit: Kit, tmp_path: Path) -> None:
    other = replace(FLASH, sha256="0" * 64)
    with pytest.raises(PatchqError, match="has the pinned sha256 000000"):
        run(tmp_path, unpatched, other)
    with pytest.raises(PatchqError, match=r"no file of flash-py 9\.0 for spark"):
        run(tmp_path, unpatched, replace(FLASH, version="9.0"))


def test_one_with_a_source_alone_is_brought_to_be_built(
    kit: Kit, tmp_path: Path, site: Site
) -> None:
    source = Tar().tree(setup=b"").bytes()
    site.add("/files/exl-2.0.tar.gz", source)
    site.add_package("exl", entry("exl-2.0.tar.gz", source))
    exl = Component("exl", "it is", index="exl", version="2.0")
    part = run(tmp_path, unpatched, exl)
    assert part.kind == "source"
    assert part.brought is not None and part.brought.read_bytes() == source
    with pytest.raises(PatchqError, match="no wheel for spark to lay them over"):
        run(tmp_path, patched(kit, src__flash__a_py=b"2\n"), exl)


def test_one_on_no_index_is_named(kit: Kit, tmp_path: Path) -> None:
    git = Component("sparkinfer", "it is", git="https://example.org/s", commit="d4438d49")
    assert run(tmp_path, unpatched, git).kind == "commit"


def test_a_target_without_a_gpu_has_none(kit: Kit, tmp_path: Path, site: Site) -> None:
    assert parts(CPU, [FLASH], unpatched, tmp_path / "out", tmp_path / "cache") == ()
    assert not site.log


def test_offline_without_the_file(kit: Kit, tmp_path: Path) -> None:
    with pytest.raises(PatchqError):
        run(tmp_path, unpatched, offline=True)


@pytest.mark.parametrize("prefix", ["", "src/", "python/"])
def test_a_package_at_the_top_or_below(prefix: str) -> None:
    blobs = {"old": b"1\n", "new": b"2\n"}
    placed = place(
        [
            Changed(f"{prefix}pkg/a.py".encode(), "old", "new"),
            Changed(b"README.md", "old", "new"),
            Changed(b"setup.py", "old", "new"),
        ],
        ["pkg"],
        ["pkg/a.py"],
        {"pkg/a.py": b"1\n"}.__getitem__,
        blobs.__getitem__,
        "it",
    )
    assert placed.laid == {"pkg/a.py": "new"}
    assert placed.apart == (b"README.md",)
    assert placed.homeless == (b"setup.py",), "packaging is not laid"
