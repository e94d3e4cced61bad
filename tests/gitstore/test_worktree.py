"""A tree as files: switched without touching what stays, repaired after a kill, edits kept."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.gitstore.store import Store
from patchq.gitstore.worktree import EMPTY_TREE, Blocked, Edit, Worktree, is_litter, markers
from tests.support import crash
from tests.support.appliers import read_tree, without_submodules
from tests.support.history import History, Tree, clean_env, git, lines, link, script, submodule

TEXT = lines(range(1, 40))


@dataclass
class Bench:
    """Two releases, v1 and v2, and a working tree."""

    folder: Path
    history: History
    store: Store
    worktree: Worktree

    def commit(self, ref: str) -> str:
        found = self.store.resolve(ref)
        assert found
        return found

    def tree(self, ref: str) -> str:
        return self.store.objects.tree_of(self.commit(ref))

    def switch(self, old: str, new: str) -> None:
        self.worktree.switch(
            self.tree(old) if old else EMPTY_TREE, self.tree(new), self.commit(new)
        )

    def repair(self, old: str, new: str) -> None:
        self.worktree.repair(
            self.tree(old) if old else EMPTY_TREE, self.tree(new), self.commit(new)
        )

    def files(self) -> Tree:
        found = read_tree(self.worktree.folder)
        return {path: entry for path, entry in found.items() if path != b".git"}

    def stands(self, ref: str) -> bool:
        return self.files() == without_submodules(self.history.tree(ref))

    def path(self, name: str) -> Path:
        return self.worktree.folder / name


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    history = History(tmp_path / "upstream.git")
    start = history.commit().write("a.txt", TEXT).write("stays.txt", TEXT).write("gone/x", b"x\n")
    start.write("run", script(b"#!/bin/sh\n")).write("to", link(b"a.txt"))
    start.write("sub", submodule("1" * 40))
    start.write("crlf.txt", b"one\r\ntwo\r\n").write(".gitattributes", b"* text=auto eol=lf\n")
    start.write("turns", b"a file\n").tag("v1")
    change = history.commit().edit("a.txt", b"line 3\n", b"three\n").delete("gone/x")
    change.chmod("run", 0o100644).link("to", b"stays.txt").write("deep/new/y", b"y\n")
    change.delete("turns").write("turns/inner", b"a folder now\n").tag("v2")
    history.save()
    with Store(tmp_path / "store.git", alternates=[history.path / "objects"]) as store:
        for ref in ("v1", "v2"):
            commit = git(history.path, "rev-parse", ref).decode().strip()
            store.git(["update-ref", f"refs/tags/{ref}", commit])
        yield Bench(tmp_path, history, store, Worktree(store, tmp_path / "tree", tmp_path / "git"))


def users_git(bench: Bench, *args: str) -> str:
    """What the user sees with a git of their own in the tree."""
    done = subprocess.run(
        ["git", *args],
        cwd=bench.worktree.folder,
        env=clean_env(bench.folder),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


# Switching


def test_a_tree_is_made_and_switched_there_and_back(bench: Bench) -> None:
    bench.switch("", "v1")
    assert bench.stands("v1")
    for old, new in (("v1", "v2"), ("v2", "v1")):
        bench.switch(old, new)
        assert bench.stands(new)
        assert bench.worktree.edits() == ()
        assert users_git(bench, "status", "--porcelain", "--ignored") == ""
        assert users_git(bench, "rev-parse", "HEAD").strip() == bench.commit(new)
    assert not bench.path("deep").exists(), "folders that a switch empties go too"


def test_what_does_not_differ_keeps_its_time(bench: Bench) -> None:
    bench.switch("", "v1")
    for name in ("a.txt", "stays.txt", "crlf.txt"):
        os.utime(bench.path(name), ns=(10**18, 10**18))
    bench.switch("v1", "v2")
    times = [bench.path(name).stat().st_mtime_ns for name in ("stays.txt", "crlf.txt", "a.txt")]
    assert times[:2] == [10**18, 10**18]
    assert times[2] != 10**18


def test_edits_elsewhere_stay(bench: Bench) -> None:
    bench.switch("", "v1")
    bench.path("stays.txt").write_text("mine\n")
    bench.path("own.txt").write_text("mine\n")
    bench.path("crlf.txt").unlink()
    bench.switch("v1", "v2")
    assert bench.path("stays.txt").read_text() == bench.path("own.txt").read_text() == "mine\n"
    assert bench.worktree.edits() == (
        Edit(b"crlf.txt", "deleted"),
        Edit(b"own.txt", "added"),
        Edit(b"stays.txt", "modified"),
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.txt", "mine\n"), ("gone/x", None), ("deep/new/y", "mine\n"), ("deep", "a file\n")],
)
def test_edits_in_the_way_stop_it_before_anything_is_touched(
    bench: Bench, name: str, content: str | None
) -> None:
    bench.switch("", "v1")
    if content is None:
        bench.path(name).write_text("changed, then to be removed\n")
    else:
        bench.path(name).parent.mkdir(parents=True, exist_ok=True)
        bench.path(name).write_text(content)
    before = bench.files()
    with pytest.raises(Blocked, match=name) as caught:
        bench.switch("v1", "v2")
    assert caught.value.paths == (name.encode(),)
    assert bench.files() == before


def test_files_in_a_folder_that_becomes_a_file_stop_it(bench: Bench) -> None:
    bench.switch("", "v2")
    bench.path("turns/mine.txt").write_text("mine\n")
    with pytest.raises(Blocked, match=r"turns/mine\.txt"):
        bench.switch("v2", "v1")


def test_a_link_in_place_of_a_folder_is_an_edit_and_nothing_is_written_through_it(
    bench: Bench,
) -> None:
    bench.switch("", "v2")
    outside = bench.folder / "outside"
    outside.mkdir()
    (outside / "inner").write_text("a folder now\n")
    shutil.rmtree(bench.path("turns"))
    bench.path("turns").symlink_to(outside)
    with pytest.raises(Blocked):
        bench.switch("v2", "v1")
    assert (outside / "inner").exists()


def test_an_edit_that_is_the_new_content_already_is_none(bench: Bench) -> None:
    bench.switch("", "v1")
    bench.path("a.txt").write_bytes(bench.history.tree("v2")[b"a.txt"].data)
    bench.path("gone/x").unlink()
    bench.switch("v1", "v2")
    assert bench.worktree.edits() == ()


def test_a_file_that_was_only_touched_is_no_edit(bench: Bench) -> None:
    bench.switch("", "v1")
    os.utime(bench.path("a.txt"), ns=(10**18, 10**18))
    assert bench.worktree.edits() == ()
    bench.switch("v1", "v2")
    assert bench.stands("v2")


# Nothing of the user's acts


def test_settings_hooks_and_attributes_do_not_act(bench: Bench, sealed: Path) -> None:
    (sealed / "filter").write_text("#!/bin/sh\necho filtered\n")
    (sealed / "filter").chmod(0o755)
    settings = f"""[core]
        autocrlf = true
        hooksPath = {sealed}
        excludesFile = {sealed}/ignored
        attributesFile = {sealed}/attributes
        fsmonitor = {sealed}/filter
    [filter "f"]
        clean = {sealed}/filter
        smudge = {sealed}/filter
        required = true
    """
    (sealed / ".gitconfig").write_text(settings)
    (sealed / "attributes").write_text("* filter=f\n")
    (sealed / "ignored").write_text("*\n")
    bench.switch("", "v1")
    with (bench.worktree.git_dir / "config").open("a") as file:
        file.write(settings)
    (bench.worktree.git_dir / "info/attributes").write_text("* filter=f\n")
    assert bench.stands("v1")
    bench.path("crlf.txt").write_bytes(b"one\r\n")
    bench.path("own.txt").write_text("mine\n")
    tree = bench.worktree.write_tree(bench.worktree.edits())
    for path, data in ((b"crlf.txt", b"one\r\n"), (b"own.txt", b"mine\n")):
        entry = bench.store.objects.lookup(tree, path)
        assert entry
        assert bench.store.objects.blob(entry.oid) == data


def test_what_the_user_does_with_git_does_not_confuse_it(bench: Bench) -> None:
    bench.switch("", "v1")
    bench.path("stays.txt").write_text("mine\n")
    git(bench.worktree.folder, "add", "-A")
    git(bench.worktree.folder, "commit", "-q", "-m", "mine")
    (bench.worktree.git_dir / "index.lock").touch()
    assert bench.worktree.edits() == (Edit(b"stays.txt", "modified"),)
    bench.switch("v1", "v2")
    assert bench.path("stays.txt").read_text() == "mine\n"
    assert bench.worktree.edits() == (Edit(b"stays.txt", "modified"),)


# Trees of what stands there


def test_edits_become_a_tree(bench: Bench) -> None:
    bench.switch("", "v1")
    bench.path("a.txt").unlink()
    bench.path("run").chmod(0o644)
    bench.path("turns").unlink()
    bench.path("turns").mkdir()
    bench.path("turns/in").write_text("in\n")
    bench.path("to").unlink()
    bench.path("to").symlink_to("run")
    tree = bench.worktree.write_tree(bench.worktree.edits())
    changes = {
        c.path: (c.old_mode, c.new_mode) for c in bench.store.changes(bench.tree("v1"), tree)
    }
    assert changes == {
        b"a.txt": ("100644", "000000"),
        b"run": ("100755", "100644"),
        b"turns": ("100644", "000000"),
        b"turns/in": ("000000", "100644"),
        b"to": ("120000", "120000"),
    }
    some = bench.worktree.write_tree([Edit(b"run", "modified")])
    assert [change.path for change in bench.store.changes(bench.tree("v1"), some)] == [b"run"]


def test_ignored_files_are_edits_and_a_repository_inside_is_refused(bench: Bench) -> None:
    bench.switch("", "v1")
    bench.path(".gitignore").write_text("*\n")
    bench.path("own.txt").touch()
    git(bench.worktree.folder, "init", "-q", "inner")
    (bench.path("inner") / "file").touch()
    git(bench.path("inner"), "add", ".")
    git(bench.path("inner"), "commit", "-q", "-m", "x")
    edits = bench.worktree.edits()
    assert [edit.path for edit in edits] == [b".gitignore", b"inner/", b"own.txt"]
    with pytest.raises(PatchqError, match="inner/ is a git repository inside the tree"):
        bench.worktree.write_tree(edits)


# Bad days


@pytest.mark.parametrize("gone", ["tree", "tree/.git", "git", "git/patchq.index", "git/index"])
def test_what_was_deleted_is_made_anew(bench: Bench, gone: str) -> None:
    bench.switch("", "v1")
    path = bench.folder / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    bench.switch("v1" if bench.worktree.exists else "", "v2")
    assert bench.stands("v2")
    assert users_git(bench, "status", "--porcelain") == ""


@pytest.mark.parametrize(("old", "new"), [("", "v1"), ("v2", "v1")])
def test_a_switch_killed_anywhere_is_repaired(bench: Bench, old: str, new: str) -> None:
    """Before each effect of ours; git's own are cut short below."""
    if old:
        bench.switch("", old)
        bench.path("stays.txt").write_text("mine\n")
    kept = bench.folder / "kept"
    places = [bench.worktree.folder, bench.worktree.git_dir]
    for place in places:
        place.mkdir(exist_ok=True)
        shutil.copytree(place, kept / place.name, symlinks=True)

    def prepare() -> None:
        for place in places:
            shutil.rmtree(place)
            shutil.copytree(kept / place.name, place, symlinks=True)

    def switch() -> None:
        with Store(bench.store.path) as store:
            worktree = Worktree(store, bench.worktree.folder, bench.worktree.git_dir)
            bench_ = Bench(bench.folder, bench.history, store, worktree)
            bench_.switch(old, new)

    def check(_: crash.Run) -> None:
        bench.repair(old, new)
        wanted = without_submodules(bench.history.tree(new))
        found = bench.files()
        if old:
            assert found.pop(b"stays.txt").data == b"mine\n"
            del wanted[b"stays.txt"]
        assert found == wanted
        assert [edit.path for edit in bench.worktree.edits()] == ([b"stays.txt"] if old else [])

    assert crash.every_step(lambda step: crash.forked(switch, step), check, prepare=prepare) > 5


def test_a_torn_file_is_repaired_and_a_later_edit_is_kept(bench: Bench) -> None:
    """As a git that was killed leaves it: some files old, one half, one gone, the lock there."""
    bench.switch("", "v1")
    new = bench.history.tree("v2")
    bench.path("a.txt").write_bytes(new[b"a.txt"].data[:50])
    bench.path("to").unlink()
    bench.path("deep/new").mkdir(parents=True)
    bench.path("deep/new/y").write_text("edited since\n")
    (bench.worktree.git_dir / "patchq.index.lock").touch()
    bench.repair("v1", "v2")
    assert bench.worktree.edits() == (Edit(b"deep/new/y", "modified"),)
    bench.path("deep/new/y").write_bytes(new[b"deep/new/y"].data)
    assert bench.stands("v2")


def test_a_damaged_index_is_made_anew(bench: Bench) -> None:
    bench.switch("", "v1")
    (bench.worktree.git_dir / "patchq.index").write_bytes(b"torn")
    bench.repair("v1", "v2")
    assert bench.stands("v2")


# Words


def test_litter() -> None:
    for name in (b"a.orig", b"x/a.py.rej", b"m/__pycache__/a.cpython-311.pyc", b".a.swp", b"a~"):
        assert is_litter(name), name
    for name in (b"original", b"a.py", b"pyc", b"m/rej/a", b"#notes"):
        assert not is_litter(name), name


def test_markers() -> None:
    text = b"a\n<<<<<<< x\nb\n||||||| y\nc\n=======\r\nd\n>>>>>>> z\n========\n<<<<<<<<\n"
    assert markers(text) == [2, 4, 6, 8]
