"""A patch that applies cleanly may still use what upstream took away: that is said."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from patchq.carry import contracts
from patchq.carry.canonical import applied, exported
from patchq.carry.components import Components
from patchq.carry.fold import Carry, fold
from patchq.carry.surfaces import Surfaces
from patchq.progress import SILENT
from patchq.upstream.releases import Release
from tests.support.history import lines
from tests.support.kit import Kit
from tests.upstream.conftest import Site, Tar, entry

CACHE = b"""\
class Cache:
    def blocks(self, tokens): ...

def make_cache(size) -> Cache:
    return Cache()
"""
RUNNER = b"""\
from pkg.cache import make_cache


def run():
    cache = make_cache(16)
""" + lines(range(1, 30), word="# step")
OURS = RUNNER.replace(b"(16)\n", b"(16)\n    print(cache.blocks(100))\n").replace(
    b"make_cache\n", b"make_cache\nfrom pkg.util import clamp\n"
)


def upstream(kit: Kit) -> None:
    start = kit.history.commit().write("pkg/__init__.py", b"").write("pkg/cache.py", CACHE)
    start.write("pkg/util.py", b"def clamp(n): ...\n").write("pkg/run.py", RUNNER).tag("v1")
    kit.history.branch("p1", at="v1").commit().write("pkg/run.py", OURS)


def carried(kit: Kit) -> Carry:
    return fold(kit.store, kit.release("v1"), kit.release("v2"), kit.series("v1", "p1"))


def told(
    kit: Kit, folder: Path, blame: Callable[[bytes, str, str], str] | None = None
) -> list[str]:
    carry = carried(kit)
    old = kit.release("v1")
    found = contracts.check(
        kit.store,
        carry,
        exported(kit.store, carry),
        lambda: applied(
            kit.store, Release(old.name, old.commit, old.tree), kit.series("v1", "p1"), SILENT
        ),
        folder,
        blame=blame,
    )
    assert set(found) <= {"p1"}
    return [f"{each.path.decode()} {each.says}" for each in found.get("p1", ())]


def test_a_patch_whose_names_still_stand_has_no_finding(kit: Kit, tmp_path: Path) -> None:
    upstream(kit)
    kit.history.branch("main").commit().write("pkg/other.py", b"x = 1\n").tag("v2")
    assert told(kit, tmp_path) == []


def test_a_function_that_moved_is_found_where_it_stands_now(kit: Kit, tmp_path: Path) -> None:
    upstream(kit)
    move = kit.history.branch("main", at="v1").commit().write("pkg/util.py", b"")
    move.write("pkg/maths.py", b"def clamp(n): ...\n").tag("v2")
    assert told(kit, tmp_path) == [
        "pkg/run.py line 2: pkg.util has no 'clamp'; 'clamp' stands in pkg/maths.py now"
    ]


def test_a_signature_that_the_call_no_longer_fits(kit: Kit, tmp_path: Path) -> None:
    upstream(kit)
    change = kit.history.branch("main", at="v1").commit()
    change.edit("pkg/cache.py", b"self, tokens", b"self, tokens, spare").tag("v2")
    (found,) = told(kit, tmp_path, lambda path, name, says: f"1a2b3c4 ({path.decode()}, {name})")
    what, _, since = found.partition("; ")
    assert what == (
        "pkg/run.py line 7: pkg.cache.Cache.blocks needs 'spare', which the call does not give"
    )
    assert since == "since 1a2b3c4 (pkg/cache.py, Cache.blocks)"


def test_a_method_that_was_renamed(kit: Kit, tmp_path: Path) -> None:
    upstream(kit)
    change = kit.history.branch("main", at="v1").commit()
    change.edit("pkg/cache.py", b"def blocks", b"def pages").tag("v2")
    assert told(kit, tmp_path) == ["pkg/run.py line 7: pkg.cache.Cache has no 'blocks'"]


def test_where_the_type_cannot_be_seen_nothing_is_said(kit: Kit, tmp_path: Path) -> None:
    upstream(kit)
    change = kit.history.branch("main", at="v1").commit().edit("pkg/cache.py", b" -> Cache", b"")
    change.edit("pkg/cache.py", b"def blocks", b"def pages").tag("v2")
    assert told(kit, tmp_path) == []


def test_what_never_resolved_is_nobodys_finding(kit: Kit, tmp_path: Path) -> None:
    start = kit.history.commit().write("pkg/__init__.py", b"").write("pkg/run.py", RUNNER)
    start.tag("v1")
    kit.history.branch("p1", at="v1").commit().write("pkg/run.py", OURS)
    kit.history.branch("main", at="v1").commit().write("pkg/more.py", b"").tag("v2")
    assert told(kit, tmp_path) == []


def test_a_second_look_reads_from_the_cache(kit: Kit, tmp_path: Path) -> None:
    upstream(kit)
    kit.history.branch("main", at="v1").commit().write("pkg/util.py", b"").tag("v2")
    first = told(kit, tmp_path)
    kept = sorted(path for path in tmp_path.rglob("*.json"))
    assert kept
    for path in kept:
        path.write_bytes(b"torn")
    assert told(kit, tmp_path) == first
    assert all(path.read_bytes() != b"torn" for path in kept)


def test_a_module_is_found_in_a_src_layout_and_in_a_package(kit: Kit, tmp_path: Path) -> None:
    start = kit.history.commit().write("src/a/__init__.py", b"x = 1\n")
    start.write("src/a/b/c.py", b"y = 1\n").tag("v1")
    surfaces = Surfaces(kit.store, tmp_path)
    tree = kit.release("v1").tree
    look = surfaces.of(tree)
    a, c = look("a"), look("a.b.c")
    assert a is not None and c is not None
    assert set(a.names) == {"x"} and set(c.names) == {"y"}
    assert look("a.b") is not None and look("a.gone") is None and look("zzz") is None
    assert surfaces.place(tree, "a.b.c") == b"src/a/b/c.py"


def test_a_component_that_lacks_what_a_touched_file_uses(
    kit: Kit, tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple")
    archive = Tar()
    archive.add("kernels-1.0/kernels/__init__.py", b"def attend(q, k): ...\n")
    data = gzip.compress(archive.bytes())
    site.add_package("kernels", entry("kernels-1.0.tar.gz", data))
    site.add("/files/kernels-1.0.tar.gz", data)
    code = RUNNER + b"import kernels\nkernels.attend(1, 2)\nkernels.attend(1, scale=2)\n"
    start = kit.history.commit().write("pkg/__init__.py", b"").write("pkg/run.py", code)
    start.write("pkg/cache.py", CACHE).tag("v1")
    kit.history.branch("p1", at="v1").commit().edit("pkg/run.py", b"(16)", b"(32)")
    kit.history.branch("main", at="v1").commit().write("pkg/more.py", b"").tag("v2")
    pins = tmp_path / "upstream"
    pins.mkdir()
    (pins / "dependencies.toml").write_text(
        '[[component]]\nname = "kernels"\nindex = "kernels"\nversion = "1.0"\n'
        'import = ["kernels"]\nwhy = "attention"\n'
    )

    def told_with(components: Components) -> list[str]:
        carry = carried(kit)
        texts = exported(kit.store, carry)
        found = contracts.check(
            kit.store, carry, texts, lambda: carry, tmp_path / "cache", components=components
        )
        components.close()
        return [each.says for each in found.get("p1", ())]

    line = code.count(b"\n")
    assert told_with(Components(pins, tmp_path / "cache")) == [
        f"line {line}: kernels.attend has no parameter 'scale'; kernels 1.0 is pinned"
    ]
    lost = Components(pins, tmp_path / "elsewhere", offline=True)
    assert told_with(lost) == []
    (why,) = lost.missing
    assert why.startswith("kernels 1.0 was not looked through: ")
