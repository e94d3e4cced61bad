"""A change happens wholly or not at all, whatever cuts it short, and can be taken back."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from patchq.carry import exchange, journal, transaction
from patchq.config import Project
from patchq.errors import PatchqError
from tests.support import crash

Files = dict[str, bytes]

exchange_once = exchange.swap

OLD: Files = {
    "series/series": b"0001-a.patch\n0002-b.patch\n",
    "series/0001-a.patch": b"a\n",
    "series/0002-b.patch": b"b\n",
    "series/untouched": b"stays\n",
    "series/vllm/series": b"deep\n",
    "series/old/only": b"its folder goes with it\n",
    "upstream/vllm.toml": b"by hand\n",
    "upstream/state.json": b"{}\n",
    "upstream/gone.json": b"gone\n",
}
CHANGES: dict[str, bytes | None] = {
    "series/series": b"0001-a.patch\n",
    "series/0001-a.patch": b"a, carried\r\n\xff",
    "series/0002-b.patch": None,
    "series/retired/0002-b.patch": b"b\n",
    "series/old/only": None,
    "upstream/state.json": b'{"base": 2}\n',
    "upstream/gone.json": None,
    "releases/1.toml": b"new in a new folder\n",
}
NEW: Files = {k: v for k, v in (OLD | CHANGES).items() if v is not None}


def write(root: Path, files: Files) -> None:
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


def read(root: Path) -> Files:
    """Everything in the project, empty folders (as `path/`) included, but for `.git`."""
    found: Files = {}
    for path, entry in exchange.walk(root):
        if path != ".git" and not path.startswith(".git/"):
            if not entry.is_dir():
                found[path] = Path(entry.path).read_bytes()
            elif not os.listdir(entry.path):
                found[path + "/"] = b""
    return found


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    return fresh(tmp_path / "project")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill loses nothing that a system call has taken: no need to wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _handle: None)


def fresh(root: Path, files: Files = OLD) -> Project:
    if root.exists():
        shutil.rmtree(root)
    (root / ".git").mkdir(parents=True)
    write(root, files)
    return Project(root, root / ".git")


def change(project: Project, changes: Mapping[str, bytes | None] = CHANGES) -> journal.Entry:
    entry = journal.record(project, "sync", "to 0.33.0", changes)
    assert entry is not None
    return entry


def private(project: Project) -> list[str]:
    return sorted(os.listdir(project.private / "journal"))


# What a record does


def test_record_writes_everything_and_keeps_the_rest(project: Project) -> None:
    (project.root / "series/0001-a.patch").chmod(0o640)
    (project.root / "series/untouched").chmod(0o600)
    before = (project.root / "series/untouched").stat()
    entry = journal.record(project, "sync", "to 0.33.0", CHANGES, details=b"the report")
    assert entry is not None
    assert read(project.root) == NEW
    after = (project.root / "series/untouched").stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_mode) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_mode,
    )
    assert (project.root / "series/0001-a.patch").stat().st_mode & 0o777 == 0o640
    assert (project.root / "series/retired/0002-b.patch").stat().st_mode & 0o777 == 0o644
    assert private(project) == ["000001"]
    assert entry.at == datetime.fromtimestamp(1800000000, UTC)
    assert journal.entries(project) == (entry,)
    assert journal.details(project, entry) == b"the report"
    for path, new in CHANGES.items():
        assert journal.old_bytes(project, entry, path) == OLD.get(path)
        assert journal.new_bytes(project, entry, path) == new
    with pytest.raises(PatchqError, match="does not change series/untouched"):
        journal.old_bytes(project, entry, "series/untouched")


def test_the_clock_is_the_real_one_without_an_epoch(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert abs((change(project).at - datetime.now(UTC)).total_seconds()) < 60


def test_what_is_so_already_is_no_change(project: Project) -> None:
    stats = {path: (project.root / path).stat() for path in OLD}
    same = OLD | {"series/never": None}
    assert journal.record(project, "sync", "nothing", same) is None
    assert {path: (project.root / path).stat() for path in OLD} == stats
    assert not project.private.exists()
    entry = change(project, same | {"upstream/state.json": b"news"})
    assert [c.path for c in entry.changes] == ["upstream/state.json"]


def test_the_first_series_and_its_undo(tmp_path: Path) -> None:
    project = fresh(tmp_path / "p", {})
    change(project, dict(NEW))
    assert read(project.root) == NEW
    journal.undo(project)
    assert read(project.root) == {}


@pytest.mark.parametrize(
    "path",
    ["series", "README", "../x", "series/../x", "/series/x", "series//x", "series/.", "series/a\0"],
)
def test_a_path_that_is_not_ours_is_refused(project: Project, path: str) -> None:
    with pytest.raises(PatchqError, match="is not the name of a file below series, upstream"):
        change(project, {path: b""})
    assert not project.private.exists()


def test_folders_and_links_are_not_followed(project: Project, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (project.root / "upstream/out").symlink_to(tmp_path / "out")
    (project.root / "upstream/loose").symlink_to("nowhere")
    for path in ("upstream/out/x", "upstream/loose", "series/vllm", "series/series/x"):
        with pytest.raises(PatchqError, match="is not a "):
            change(project, {path: b""})
    assert not project.private.exists()
    assert not os.listdir(tmp_path / "out")


def test_names_that_are_not_utf8(project: Project) -> None:
    path = os.fsdecode(b"series/0003-\xff \n.patch")
    change(project, {path: b"odd"})
    journal.undo(project)
    assert read(project.root) == OLD


def test_leftovers_that_no_journal_knows_are_not_touched(project: Project) -> None:
    (project.root / ".series.patchq-old").mkdir()
    with pytest.raises(PatchqError, match=r"\.series\.patchq-old was left by an interrupted"):
        change(project)
    assert private(project) == []


def test_an_edit_while_patchq_works_is_not_overwritten(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = transaction.stage

    def edit_after(tx: Any) -> None:
        real(tx)
        (project.root / "upstream/state.json").write_bytes(b"by an editor")

    monkeypatch.setattr(journal, "stage", edit_after)
    with pytest.raises(PatchqError, match=r"upstream/state\.json was changed while patchq worked"):
        change(project)
    assert read(project.root) == OLD | {"upstream/state.json": b"by an editor"}


def test_what_an_editor_saves_at_the_last_moment_is_kept(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = transaction.finish
    series = project.root / "series"

    def edit_before(tx: Any, *, staged: bool) -> None:
        swap = exchange.swap

        def late(a: Path, b: Path) -> None:
            for name in ("untouched", "added", "0001-a.patch"):
                (series / "~").write_bytes(b"by an editor")
                (series / "~").rename(series / name)
            swap(a, b)

        monkeypatch.setattr(exchange, "swap", late)
        real(tx, staged=staged)

    monkeypatch.setattr(journal, "finish", edit_before)
    with pytest.raises(PatchqError, match="was edited at the moment it was replaced") as caught:
        change(project)
    assert read(project.root) == NEW | dict.fromkeys(
        ("series/untouched", "series/added"), b"by an editor"
    )
    kept = project.private / "journal/000001/kept"
    assert str(kept) in caught.value.hint
    assert (kept / "series/0001-a.patch").read_bytes() == b"by an editor"


# Undo


def test_undo_and_redo(project: Project) -> None:
    first = change(project)
    (project.root / "upstream/vllm.toml").write_bytes(b"another file, edited")
    would = journal.undo(project, dry_run=True)
    assert read(project.root) == NEW | {"upstream/vllm.toml": b"another file, edited"}
    undone = journal.undo(project)
    assert undone == would
    assert (undone.id, undone.undoes, undone.command) == (2, 1, "undo")
    assert read(project.root) == OLD | {"upstream/vllm.toml": b"another file, edited"}
    assert [e.undone_by for e in journal.entries(project)] == [2, None]
    with pytest.raises(PatchqError, match="there is nothing to undo"):
        journal.undo(project)
    with pytest.raises(PatchqError, match="entry 1 was taken back already, by entry 2"):
        journal.undo(project, first.id)
    redone = journal.undo(project, undone.id)
    assert read(project.root) == NEW | {"upstream/vllm.toml": b"another file, edited"}
    assert [e.undone_by for e in journal.entries(project)] == [None, 3, None]
    assert redone.undoes == 2
    journal.undo(project)
    assert read(project.root) == OLD | {"upstream/vllm.toml": b"another file, edited"}
    assert [(e.undoes, e.undone_by) for e in journal.entries(project)][-1] == (1, None)


def test_undo_goes_back_one_by_one(project: Project) -> None:
    states = [read(project.root)]
    for number in range(3):
        change(project, {"upstream/state.json": str(number).encode()})
        states.append(read(project.root))
    for state in reversed(states[:-1]):
        journal.undo(project)
        assert read(project.root) == state


def test_undo_brings_back_modes_and_a_deleted_file(project: Project) -> None:
    (project.root / "series/0002-b.patch").chmod(0o640)
    change(project)
    journal.undo(project)
    assert (project.root / "series/0002-b.patch").stat().st_mode & 0o777 == 0o640


def test_undo_is_refused_after_an_edit_by_hand(project: Project) -> None:
    change(project)
    (project.root / "series/0001-a.patch").write_bytes(b"by hand")
    (project.root / "releases/1.toml").unlink()
    before = read(project.root)
    for dry_run in (True, False):
        with pytest.raises(PatchqError) as caught:
            journal.undo(project, dry_run=dry_run)
        assert "releases/1.toml, series/0001-a.patch changed since" in caught.value.message
    assert read(project.root) == before


def test_undo_of_what_is_not_there(project: Project) -> None:
    assert journal.entries(project) == ()
    with pytest.raises(PatchqError, match="has no entry 7"):
        journal.undo(project, 7)
    change(project)
    with pytest.raises(PatchqError) as caught:
        journal.undo(project, 7)
    assert caught.value.hint == "it has 1 to 1"


def test_a_linked_worktree_shares_the_journal_but_not_the_entries(
    project: Project, tmp_path: Path
) -> None:
    linked = Project(tmp_path / "linked", project.git_dir)
    write(linked.root, OLD)
    change(project)
    change(linked, {"upstream/state.json": b"the other's"})
    assert [e.id for e in journal.entries(project)] == [1]
    assert [e.id for e in journal.entries(linked)] == [2]
    interrupt(linked, "patchq.exchange")
    assert "completed" in (journal.recover(project) or "")
    assert read(linked.root) == NEW
    assert read(project.root) == NEW
    closing = f"os.rename {linked.private / 'journal/unfinished'} "
    interrupt(linked, closing, {"upstream/state.json": b"1"})
    shutil.rmtree(linked.root)
    assert "which is gone" in (journal.recover(project) or "")


def test_a_project_that_moved_keeps_its_journal(project: Project, tmp_path: Path) -> None:
    change(project)
    interrupt(project, "patchq.exchange", {"series/series": b"next\n"})
    project.root.rename(tmp_path / "moved")
    moved = Project(tmp_path / "moved", tmp_path / "moved/.git")
    journal.recover(moved)
    assert read(moved.root) == NEW | {"series/series": b"next\n"}
    journal.undo(moved)
    journal.undo(moved)
    assert read(moved.root) == OLD


def test_old_entries_go(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "KEEP", 3)
    for number in range(5):
        change(project, {"upstream/state.json": str(number).encode()})
    assert private(project) == ["000003", "000004", "000005"]
    assert [e.id for e in journal.entries(project)] == [3, 4, 5]


def test_a_damaged_entry_is_named(project: Project) -> None:
    change(project)
    path = project.private / "journal/000001/entry.json"
    for text in ("{", '{"schema": "patchq.journal/9"}', "[]"):
        path.write_text(text)
        with pytest.raises(PatchqError, match=r"000001/entry\.json is damaged or of another"):
            journal.entries(project)


# Kills, at every step


def interrupt(project: Project, effect: str, changes: Mapping[str, bytes | None] = CHANGES) -> None:
    """Kill a record right before the first effect whose name starts with `effect`."""
    done = crash.forked(lambda: change(project, changes), effect)
    assert done.killed, done


def kill_everywhere(root: Path, old: Files, changes: Mapping[str, bytes | None]) -> list[int]:
    """Kill a record at every step, recover in a fresh process; how many ended old, new."""
    new = {k: v for k, v in (old | dict(changes)).items() if v is not None}
    seen = [0, 0]

    def only_series(files: Files) -> Files:
        return {p: data for p, data in files.items() if p.startswith("series/") and p != "series/"}

    def check(run: crash.Run) -> None:
        project = Project(root, root / ".git")
        if exchange.swap is exchange_once:
            assert only_series(read(root)) in (only_series(old), only_series(new))
        assert journal.unfinished(project) or read(root) in (old, new)
        journal.recover(project)
        found = read(root)
        assert found in (old, new)
        assert len(journal.entries(project)) == (found == new)
        if (project.private / "journal").exists():
            assert private(project) == ["000001"] * (found == new)
        assert journal.recover(project) is None
        seen[found == new] += 1
        if found == new and (not run.killed or len(run.effects) % 10 == 0):
            journal.undo(project)
            assert read(root) == old

    def run(step: crash.Step) -> crash.Run:
        return crash.forked(lambda: change(Project(root, root / ".git"), changes), step, under=root)

    first = 1
    if exchange.swap is not exchange_once:  # until it is committed, nothing differs
        fresh(root, old)
        first = len(run(f"open {root / '.git/patchq/journal/unfinished/committed'}").effects)
    crash.every_step(run, check, prepare=lambda: fresh(root, old), steps=itertools.count(first))
    return seen


def refuse_swap(_a: Path, _b: Path) -> None:
    raise exchange.ExchangeUnsupported("not here")


def refuse_any_rename(a: Path, _b: Path) -> None:
    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(a))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("swap", [exchange_once, refuse_swap, refuse_any_rename])
def test_a_kill_at_any_step_leaves_the_old_or_the_new(
    swap: Callable[[Path, Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "swap", swap)
    old, new = kill_everywhere(tmp_path / "p", OLD, CHANGES)
    assert (old, new) > ((20, 20) if swap is exchange_once else (1, 20))


@pytest.mark.usefixtures("quick")
def test_a_kill_at_any_step_of_the_first_series(tmp_path: Path) -> None:
    old, new = kill_everywhere(tmp_path / "p", {}, dict(NEW))
    assert min(old, new) > 5


@pytest.mark.usefixtures("quick")
def test_a_kill_at_any_step_of_the_last_undo(tmp_path: Path) -> None:
    old, new = kill_everywhere(tmp_path / "p", OLD, dict.fromkeys(OLD))
    assert min(old, new) > 5


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("swap", [exchange_once, refuse_swap])
def test_a_kill_at_any_step_of_the_recovery_itself(
    swap: Callable[[Path, Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record is killed once in each of its states, and each recovery from there everywhere."""
    monkeypatch.setattr(exchange, "swap", swap)
    root, kept = tmp_path / "p", tmp_path / "kept"
    project = Project(root, root / ".git")
    folder = project.private / "journal/unfinished"
    series, new, old = root / "series", root / ".series.patchq-new", root / ".series.patchq-old"
    places = [
        f"open {folder / 'bytes'}",
        f"os.link {series / 'untouched'}",
        f"open {folder / 'committed'}",
        "patchq.exchange",
        f"os.rename {new} {old}",
        f"os.remove {root / 'upstream/gone.json'}",
        f"open {folder / 'switched'}",
        f"os.remove {old}/series",
        f"os.rename {folder} ",
    ]
    if swap is refuse_swap:
        places = [f"os.rename {series} {old}", f"os.rename {new} {series}"]
    kills = 0
    kills = 0
    for place in places:
        fresh(root)
        interrupt(project, place)
        shutil.rmtree(kept, ignore_errors=True)
        root.rename(kept)

        def prepare() -> None:
            shutil.rmtree(root, ignore_errors=True)
            # Nothing of ours writes into a file that is there, so links are as good as copies.
            shutil.copytree(kept, root, symlinks=True, copy_function=os.link)

        def check(run: crash.Run) -> None:
            journal.recover(project)
            assert read(root) in (OLD, NEW)
            assert private(project) in ([], ["000001"])

        kills += crash.every_step(
            lambda n: crash.forked(lambda: journal.recover(project), n, under=root),
            check,
            prepare=prepare,
        )
    assert kills > 20 * len(places)


def test_a_fresh_interpreter_killed_at_some_steps(tmp_path: Path) -> None:
    """The other way to run, as whole commands will be: an entry point and its arguments."""
    root = tmp_path / "p"
    project = Project(root, root / ".git")
    (tmp_path / "entry.py").write_text(
        "import sys\nfrom pathlib import Path\nfrom patchq.carry import journal\n"
        "from patchq.config import Project\n"
        "def main():\n"
        "    root = Path(sys.argv[1])\n"
        "    journal.record(Project(root, root / '.git'), 'sync', 'x', {'series/series': b'1'})\n"
        "    print('done')\n    return 0\n"
    )

    def check(run: crash.Run) -> None:
        journal.recover(project)
        assert read(root) in (OLD, OLD | {"series/series": b"1"})
        assert run.killed or (run.code, run.output) == (0, "done\n")

    def run(step: int) -> crash.Run:
        return crash.started("entry:main", [str(root)], step, cwd=tmp_path, under=root)

    fresh(root)
    count = len(run(crash.NEVER).effects)
    killed = crash.every_step(
        run, check, prepare=lambda: fresh(root), steps=[*range(1, count, 12), count + 1]
    )
    assert killed == len(range(1, count, 12))


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_in_the_middle(
    project: Project, monkeypatch: pytest.MonkeyPatch, presses: int
) -> None:
    """The first waits until the change is whole; after a second the next command completes it."""

    def interrupted(a: Path, b: Path) -> None:
        exchange_once(a, b)
        for _ in range(presses):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(exchange, "swap", interrupted)
    with pytest.raises(KeyboardInterrupt):
        change(project)
    assert journal.unfinished(project) == (presses == 2)
    journal.recover(project)
    assert read(project.root) == NEW


# Edits between the crash and the recovery


@pytest.mark.parametrize(
    "path", ["series/0001-a.patch", "upstream/state.json", "upstream/gone.json", "releases/1.toml"]
)
def test_an_edit_after_the_crash_is_kept_and_named(project: Project, path: str) -> None:
    interrupt(project, "patchq.exchange")
    write(project.root, {path: b"mine"})
    before = read(project.root)
    with pytest.raises(PatchqError):
        journal.recover(project)
    with pytest.raises(PatchqError) as caught:
        journal.recover(project)
    assert f"{path} was edited since" in caught.value.message
    assert read(project.root) == before
    folder = project.private / "journal/unfinished"
    for name, files in (("before", OLD), ("after", NEW)):
        kept = folder / name / path
        if path in files:
            assert kept.read_bytes() == files[path]
            assert f"{path} {name}: {kept}" in caught.value.hint
        else:
            assert f"{path} {name}: no such file" in caught.value.hint
    if path in NEW:
        shutil.copy(folder / "after" / path, project.root / path)
    else:
        (project.root / path).unlink()
    assert "was completed: to 0.33.0" in (journal.recover(project) or "")
    assert read(project.root) == NEW
    assert sorted(os.listdir(project.private / "journal/000001")) == [
        *("bytes", "committed", "details", "entry.json", "switched"),
    ]


def test_other_edits_after_the_crash_do_not_matter(project: Project) -> None:
    interrupt(project, "patchq.exchange")
    mine = {"series/untouched": b"mine", "series/new": b"mine", "upstream/vllm.toml": b"mine"}
    for path in mine:
        (project.root / "~").write_bytes(b"mine")
        (project.root / "~").rename(project.root / path)
    journal.recover(project)
    assert read(project.root) == NEW | mine


def test_an_edit_of_the_new_series_is_no_conflict(project: Project) -> None:
    """Once the folder is exchanged, an edit in it is one of the new state."""
    interrupt(project, "os.rename " + str(project.root / ".series.patchq-new"))
    mine = {"series/0001-a.patch": b"mine", "series/untouched": b"mine"}
    write(project.root, mine)
    journal.recover(project)
    assert read(project.root) == NEW | mine


def test_a_clean_after_the_crash(project: Project) -> None:
    """`git clean -fdx` takes the copies; the journal has everything."""
    interrupt(project, "patchq.exchange")
    shutil.rmtree(project.root / ".series.patchq-new")
    (project.root / "upstream/.state.json.patchq-new").unlink()
    journal.recover(project)
    assert read(project.root) == NEW


def test_a_series_made_anew_after_the_crash(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "swap", refuse_swap)
    series, new = project.root / "series", project.root / ".series.patchq-new"
    interrupt(project, f"os.rename {new} {series}")
    assert not series.exists()
    write(project.root, {"series/mine": b"mine"})
    with pytest.raises(PatchqError, match="was made while a change of it was unfinished"):
        journal.recover(project)
    series.rename(project.root / "aside")
    journal.recover(project)
    assert read(project.root) == NEW | {"aside/mine": b"mine"}


def test_no_record_on_top_of_an_unfinished_one(project: Project) -> None:
    interrupt(project, "patchq.exchange")
    with pytest.raises(PatchqError, match="an earlier change is unfinished"):
        change(project, {"upstream/state.json": b"other"})
    journal.recover(project)
    assert read(project.root) == NEW


# A disk that refuses


CALLS = ("open", "write", "fsync", "mkdir", "link", "rename", "replace", "unlink", "rmdir", "chmod")


class Refusing:
    """Lets file-system calls of this process fail, from the n-th on or only there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, code: int, *, for_good: bool) -> None:
        self.count, self.at = 0, 0
        for name in CALLS:
            real = getattr(os, name)

            def call(*args: Any, _real: Any = real, _name: str = name, **options: Any) -> Any:
                reading = _name == "open" and not args[1] & (os.O_WRONLY | os.O_RDWR)
                if self.at and not reading:
                    self.count += 1
                    if self.count == self.at or (for_good and self.count > self.at):
                        where = args[0] if isinstance(args[0], str | os.PathLike) else None
                        raise OSError(code, os.strerror(code), where)
                return _real(*args, **options)

            monkeypatch.setattr(os, name, call)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "for good"])
def test_a_disk_that_refuses_at_any_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, for_good: bool
) -> None:
    disk = Refusing(monkeypatch, errno.ENOSPC, for_good=for_good)
    outcomes = {"old": 0, "new": 0, "later": 0}
    for step in range(1, 1000):
        project = fresh(tmp_path / "p")
        disk.count, disk.at = 0, step
        failed: PatchqError | None = None
        try:
            change(project)
        except PatchqError as error:
            failed = error
        disk.at = 0
        if failed is None:
            assert read(project.root) == NEW
            if disk.count < step:
                break
            outcomes["new"] += 1  # a folder that cannot be removed or synced: no harm
            continue
        assert "cannot be written: " in failed.message
        assert failed.hint
        if "nothing was changed" in failed.hint:
            if not for_good:
                assert not journal.unfinished(project)
                assert read(project.root) == OLD
            journal.recover(project)
            assert read(project.root) == OLD
            outcomes["old"] += 1
        else:
            assert "the next patchq command completes it" in failed.hint
            journal.recover(project)
            assert read(project.root) == NEW
            outcomes["later"] += 1
    else:
        pytest.fail("no end")
    assert outcomes["old"] > 20
    assert outcomes["later"] > 10


def test_a_disk_that_refuses_the_recovery(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(project, "patchq.exchange")
    with monkeypatch.context() as patch:
        disk = Refusing(patch, errno.ENOSPC, for_good=True)
        disk.at = 1
        with pytest.raises(PatchqError) as caught:
            journal.recover(project)
    assert "no space left on device" in caught.value.message
    assert "the next patchq command tries again" in caught.value.hint
    journal.recover(project)
    assert read(project.root) == NEW


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "tiny"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k,nr_inodes=60", "tmpfs", str(place)]
    subprocess.run(mount, check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.root
def test_a_disk_that_is_really_full(tiny_disk: Path) -> None:
    project = fresh(tiny_disk / "p")
    with pytest.raises(PatchqError, match="no space left on device") as caught:
        change(project, {"series/big": os.urandom(100_000)})
    assert "free some space" in caught.value.hint
    assert read(project.root) == OLD
    assert private(project) == []
    change(project)
    assert read(project.root) == NEW


@pytest.mark.root
def test_a_folder_that_may_not_be_written(project: Project) -> None:
    """As root every folder can be written: the change is tried as nobody."""
    for folder in (project.root, *project.root.parents):
        if folder.stat().st_mode & stat.S_IXOTH == 0:
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH | stat.S_IROTH)

    def as_nobody() -> None:
        os.setgid(65534)
        os.setuid(65534)
        change(project)

    done = crash.forked(as_nobody, crash.NEVER)
    assert done.code == 70
    assert f"{project.private} cannot be written: permission denied" in done.output


def test_two_processes_at_once(project: Project) -> None:
    """Each change waits for the lock; none is lost, none is torn."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom patchq.carry import journal, lock\n"
        "from patchq.config import Project\n"
        "root = Path(sys.argv[1]); project = Project(root, root / '.git')\n"
        "for n in range(10):\n"
        "    with lock.hold(project, 'sync', wait=60):\n"
        "        journal.recover(project)\n"
        "        old = (root / 'series/series').read_bytes()\n"
        "        journal.record(project, 'sync', sys.argv[2], {'series/series': old + b'x'})\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(project.root), str(n)], cwd=Path(__file__).parents[2]
        )
        for n in range(2)
    ]
    assert [process.wait() for process in running] == [0, 0]
    assert (project.root / "series/series").read_bytes() == OLD["series/series"] + b"x" * 20
    assert [e.id for e in journal.entries(project)] == list(range(1, 21))
