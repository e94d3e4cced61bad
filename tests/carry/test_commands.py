"""Queues on disk: init, import, export, check, history, decide, sync, commit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from patchq.carry import bring, decisions, inspect, journal, lock, start, step, workspace
from patchq.carry.answers import Decision
from patchq.carry.commits import commit_sync
from patchq.carry.decide import decide
from patchq.carry.export import export
from patchq.carry.report import Check, Proof
from patchq.carry.sync import idle, sync
from patchq.config import Project, find_project
from patchq.errors import PatchqError
from tests.support import crash
from tests.support.history import git, lines
from tests.support.inside import Small
from tests.support.kit import bare_repository

TEXT = lines(range(1, 31))


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path).filled()


def project(small: Small) -> Project:
    return Project(small.root, small.root / ".git")


def queue(small: Small) -> workspace.Queue:
    return workspace.read_queue(project(small), None)


# Making a queue


@pytest.fixture
def bare(tmp_path: Path) -> Small:
    return Small(tmp_path).repository()


def make(small: Small, name: str = "demo", **given: str) -> start.InitReport:
    options = {"git": "../upstream.git", "base": "v1", **given}
    return start.init(project(small), name, cwd=small.root, **options)  # type: ignore[arg-type]


def test_init(bare: Small) -> None:
    made = make(bare, base="latest")
    assert (made.file, made.series, made.base.name) == ("upstream/demo.toml", "series", "v3")
    assert set(bare.files()) == {"upstream/demo.toml", "upstream/state.json", "series/series"}
    text = (bare.root / "upstream/demo.toml").read_text()
    assert f'git = "{bare.upstream.path}"' in text
    found = queue(bare)
    assert found.is_proved
    assert found.state.runner_tree == found.state.tree == made.base.tree
    assert found.series.all == ()


def test_a_second_queue_gets_a_folder_of_its_own(bare: Small) -> None:
    make(bare)
    made = make(bare, "other", base="v2")
    assert made.series == "series/other"
    found = workspace.read_queue(project(bare), "other")
    assert found.state.release == "v2"
    assert queue(bare).state.release == "v1", "the first one's state stays"


@pytest.mark.parametrize("name", ["", "Demo", "-x", "a/b", "..", "dependencies", "decisions"])
def test_a_name_that_is_none(bare: Small, name: str) -> None:
    with pytest.raises(PatchqError, match="cannot be a queue's name"):
        make(bare, name)
    assert bare.files() == {}


def test_a_queue_that_is_there(bare: Small) -> None:
    make(bare)
    with pytest.raises(PatchqError, match="there is a queue 'demo' already"):
        make(bare)


def test_a_series_that_is_there(bare: Small) -> None:
    (bare.root / "series").mkdir()
    (bare.root / "series/series").write_text("old.patch\n")
    with pytest.raises(PatchqError, match="series/series exists already"):
        make(bare)


# Reading one


def test_a_queue_without_a_state(small: Small) -> None:
    (small.root / "upstream/state.json").unlink()
    with pytest.raises(PatchqError, match="has no base for the queue 'demo'"):
        _ = queue(small).state


def test_a_release_that_was_moved(small: Small) -> None:
    found = queue(small)
    moved = {**found.states, "demo": replace(found.state, tree="0" * 40)}
    with (
        workspace.upstream_of(found) as upstream,
        pytest.raises(PatchqError, match=r"upstream's v1 has the tree .* recorded 000000000000"),
    ):
        workspace.base_of(replace(found, states=moved), upstream)


def test_the_recorded_commit_counts_not_the_tag(small: Small) -> None:
    git(small.upstream.path, "tag", "-f", "v1", "v2")
    found = queue(small)
    with workspace.upstream_of(found) as upstream:
        assert workspace.base_of(found, upstream).commit == found.state.commit


def test_an_interrupted_command_is_completed_by_a_reader(small: Small) -> None:
    def record() -> None:
        journal.record(project(small), "sync", "by hand", {"series/series": b""})

    assert crash.forked(record, "patchq.exchange").killed
    assert workspace.quiet_queue(small.root, None) is None
    found, told = workspace.reading(small.root / "series", "status")
    assert found == find_project(small.root)
    assert told is not None and "was completed" in told
    assert workspace.reading(small.root, "status") == (found, None)
    assert workspace.quiet_queue(small.root, None) is not None


def test_a_reader_waits_for_nobody(small: Small) -> None:
    with lock.hold(project(small), "sync"):
        assert workspace.reading(small.root, "status")[1] is None


def test_a_writer_is_alone(small: Small) -> None:
    with workspace.writing(small.root, "sync") as (found, told):
        assert told is None
        assert found.root == small.root
        with pytest.raises(PatchqError, match="is at work"):
            lock.hold(found, "undo").__enter__()


# Import


def diff(*edits: tuple[bytes, bytes], path: str = "a.txt") -> bytes:
    """A plain unified diff, as anybody would send it."""
    import difflib

    old = TEXT.decode().splitlines(keepends=True)
    text = TEXT
    for before, after in edits:
        text = text.replace(before, after)
    new = text.decode().splitlines(keepends=True)
    return "".join(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")).encode()


EDIT = diff((b"line 9\n", b"9, ours\n"))


def test_files(small: Small, tmp_path: Path) -> None:
    (tmp_path / "0007-my-fix.patch").write_bytes(EDIT)
    (tmp_path / "other.diff").write_bytes(diff((b"line 25\n", b"25\n")))
    made = bring.bring(
        queue(small), files=[tmp_path / "0007-my-fix.patch", tmp_path / "other.diff"]
    )
    assert [patch.file for patch in made.patches] == ["0003-my-fix.patch", "0004-other.patch"]
    assert made.proof.ok
    found = queue(small)
    assert found.state.runner_tree == made.tree
    assert found.is_proved
    assert all(patch.files for patch in found.series.applied)


def test_a_dry_run_of_an_import(small: Small, tmp_path: Path) -> None:
    (tmp_path / "x.patch").write_bytes(EDIT)
    before = small.files()
    made = bring.bring(queue(small), files=[tmp_path / "x.patch"], dry_run=True)
    assert (made.entry, made.dry_run, len(made.patches)) == (None, True, 1)
    assert small.files() == before


def test_a_patch_without_a_leading_folder(small: Small, tmp_path: Path) -> None:
    (tmp_path / "x.patch").write_bytes(EDIT.replace(b"a/a.txt", b"a.txt").replace(b"b/a", b"a"))
    (patch,) = bring.bring(queue(small), files=[tmp_path / "x.patch"]).patches
    assert [file.path for file in patch.files or ()] == [b"a.txt"]


def test_all_or_nothing(small: Small, tmp_path: Path) -> None:
    (tmp_path / "good.patch").write_bytes(EDIT)
    (tmp_path / "bad.patch").write_bytes(diff((b"line 21\n", b"21\n")))
    before = small.files()
    with pytest.raises(PatchqError, match=r"bad\.patch .*does not apply on top of the series"):
        bring.bring(queue(small), files=[tmp_path / "good.patch", tmp_path / "bad.patch"])
    assert small.files() == before


def test_a_name_is_used_once(small: Small, tmp_path: Path) -> None:
    for number, text in enumerate((EDIT, diff((b"line 25\n", b"25\n")))):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}/lands.patch").write_bytes(text)
    paths = [tmp_path / "0/lands.patch", tmp_path / "1/lands.patch"]
    made = bring.bring(queue(small), files=paths)
    assert [patch.name for patch in made.patches] == ["lands-2", "lands-3"]


def test_a_quilt_folder(small: Small, tmp_path: Path) -> None:
    folder = tmp_path / "patches"
    (folder / "sub").mkdir(parents=True)
    (folder / "one.patch").write_bytes(EDIT)
    two = diff((b"line 25\n", b"25\n")).replace(b"a/a.txt", b"x/y/a.txt")
    (folder / "sub/two.diff").write_bytes(two.replace(b"b/a.txt", b"x/y/a.txt"))
    (folder / "series").write_text("# ours\n\none.patch # why\nsub/two.diff -p2\n")
    sources = bring.from_quilt(folder)
    assert [(source.label, source.levels) for source in sources] == [
        ("one.patch", (1,)),
        ("two.diff", (2,)),
    ]
    made = bring.bring(queue(small), quilt=folder)
    assert [patch.name for patch in made.patches] == ["one", "two"]


@pytest.mark.parametrize("line", ["../x.patch", "/etc/passwd", "link/x.patch"])
def test_a_quilt_folder_that_leaves_itself(small: Small, tmp_path: Path, line: str) -> None:
    folder = tmp_path / "patches"
    folder.mkdir()
    (tmp_path / "x.patch").write_bytes(EDIT)
    (folder / "link").symlink_to(tmp_path)
    (folder / "series").write_text(f"{line}\n")
    with pytest.raises(PatchqError, match=r"series:1 names .*, outside the folder"):
        bring.from_quilt(folder)


@pytest.mark.parametrize(
    ("commits", "why"),
    [
        ("v1", "holds no commits"),
        ("--all..", "is not a range of commits"),
        ("v1..nowhere", "has no range 'v1..nowhere'"),
        ("topic..v1", "holds no commits"),
    ],
)
def test_no_range(small: Small, commits: str, why: str) -> None:
    with pytest.raises(PatchqError, match=why):
        bring.bring(queue(small), git=str(small.upstream.path), commits=commits)


def test_a_repository_that_is_none(small: Small, tmp_path: Path) -> None:
    with pytest.raises(PatchqError, match="is not a path"):
        bring.bring(queue(small), git="https://example.org/x", commits="a..b")
    with pytest.raises(PatchqError, match="is not a git repository"):
        bring.bring(queue(small), git=str(tmp_path), commits="a..b")


def test_a_commit_of_another_base_is_merged_in(small: Small, tmp_path: Path) -> None:
    """Its blobs are at hand, so that git can merge where the context differs."""
    other = small.upstream.branch("other", at="v2").commit("Elsewhere")
    other.edit("a.txt", b"line 6\n", b"6\n")
    small.upstream.save()
    made = bring.bring(queue(small), git=str(small.upstream.path), commits="v2..other")
    assert [patch.name for patch in made.patches] == ["elsewhere"]


# Export


def test_export(small: Small, tmp_path: Path) -> None:
    done = export(queue(small), small.upstream.path, "out")
    assert (done.branch, done.base, done.patches) == ("out", "v1", 2)
    path = small.upstream.path
    assert git(path, "rev-parse", "out").decode().strip() == done.commit
    assert git(path, "rev-parse", "out^{tree}") == git(path, "rev-parse", "topic^{tree}")
    assert export(queue(small), path, "out") == done, "again: nothing to do"
    git(path, "branch", "-f", "out", "v3")
    with pytest.raises(PatchqError, match="git does not write the branch out"):
        export(queue(small), path, "out")
    assert export(queue(small), path, "out", force=True) == done


@pytest.mark.parametrize("name", ["-x", "a b", "a..b", "", "x.lock"])
def test_export_to_no_branch(small: Small, name: str) -> None:
    with pytest.raises(PatchqError, match="cannot be a branch's name"):
        export(queue(small), small.upstream.path, name)


def test_export_into_a_repository_of_its_own(small: Small, tmp_path: Path) -> None:
    """All that the branch needs goes along."""
    target = bare_repository(tmp_path / "target")
    done = export(queue(small), target, "out")
    git(target, "fsck", "--full", "--strict")
    assert git(target, "rev-parse", "out^{tree}").decode().strip() == done.tree


# Looking


def checks_of(small: Small, **options: bool) -> dict[str, Check]:
    return {check.name: check for check in inspect.check(queue(small), **options).proof.checks}


def test_check(small: Small) -> None:
    found = checks_of(small, quilt=True)
    assert all(check.ok for check in found.values())
    assert {"numbers", "git apply", "recorded tree", "quilt"} <= set(found)


def test_check_of_a_series_changed_by_hand(small: Small) -> None:
    (path,) = small.root.glob("series/*-stays.patch")
    path.write_bytes(path.read_bytes().replace(b"+20, ours\n", b"+20, by hand\n"))
    assert not inspect.status(queue(small)).proved
    recorded = queue(small).state.runner_tree
    tree = inspect.runner_tree(queue(small))
    assert tree != recorded
    found = checks_of(small)
    assert found["git apply"].ok
    assert not found["recorded tree"].ok
    assert "`patchq sync --onto v1` proves and records it" in found["recorded tree"].detail
    report = sync(queue(small), onto="v1")
    assert report.recorded
    assert checks_of(small)["recorded tree"].ok
    assert inspect.runner_tree(queue(small)) == tree == queue(small).state.runner_tree


def test_two_patches_of_one_number(small: Small) -> None:
    (path,) = small.root.glob("series/*-stays.patch")
    path.rename(path.with_name("0001-stays.patch"))
    (small.root / "series/series").write_text("0001-lands.patch\n0001-stays.patch\n")
    found = checks_of(small)["numbers"]
    assert not found.ok
    assert found.detail.startswith(
        "0001-stays.patch and 0001-lands.patch: `patchq check --renumber`"
    )


def test_status(small: Small) -> None:
    found = inspect.status(queue(small), "told")
    assert (found.applied, found.held, found.retired, found.proved) == (2, (), 0, True)
    assert (found.base, found.recovered) == ("v1", "told")
    (small.root / "series/series").write_text("0001-lands.patch\n# held 0002-stays.patch: later\n")
    found = inspect.status(queue(small))
    assert (found.applied, found.held, found.proved) == (1, (("stays", "later"),), False)
    assert found.tree == ""


def test_history(small: Small) -> None:
    sync(queue(small), onto="v2")
    told = inspect.history(project(small), queue(small), None)
    assert [(event.entry, event.what) for event in told.events] == [
        (1, "init"),
        (2, "import"),
        (3, "sync"),
    ]
    for name in ("lands", "0001-lands.patch", "1"):
        found = inspect.history(project(small), queue(small), name)
        assert [event.what for event in found.events] == ["import", "sync", "dropped: landed in v2"]
        assert found.events[-1].text.endswith(b"+nine\n line 10\n line 11\n line 12\n")
        assert "merge: " in found.events[-1].detail
    journal.undo(project(small))
    told = inspect.history(project(small), queue(small), "stays")
    assert told.events[-1].what == "undo"
    assert any("(taken back by entry 4)" in event.detail for event in told.events)
    with pytest.raises(PatchqError, match="there is no patch 'never'"):
        inspect.history(project(small), queue(small), "never")


# Sync


def test_sync(small: Small) -> None:
    report = sync(queue(small), onto="v2", recovered="told")
    assert (report.base_from, report.base_to) == ("v1", "v2")
    assert (report.changed, report.recorded, report.recovered) == (True, True, "told")
    assert [(p.name, p.action, p.file) for p in report.patches] == [
        ("lands", "drop", None),
        ("stays", "keep", "series/0002-stays.patch"),
    ]
    assert report.exit_code == 0
    found = queue(small)
    assert found.is_proved and found.state.runner_tree == report.tree
    assert set(found.state.releases) == {"v1", "v2"}
    assert [patch.name for patch in found.series.all] == ["stays"]


def test_nothing_to_do(small: Small) -> None:
    sync(queue(small), onto="v2")
    before = small.files()
    for report in (idle(queue(small), onto="v2"), sync(queue(small), onto="v2")):
        assert report is not None
        assert (report.changed, report.recorded, report.exit_code) == (False, False, 0)
        assert report.proof.ok
        assert [(p.name, p.action) for p in report.patches] == [("stays", "keep")]
    assert idle(queue(small), onto="v3") is None
    assert small.files() == before


def test_a_dry_run(small: Small) -> None:
    before = small.files()
    report = sync(queue(small), onto="v2", dry_run=True)
    assert (report.changed, report.recorded, report.entry) == (True, False, None)
    assert report.proof.ok
    assert small.files() == before


def test_a_proof_that_fails_changes_nothing(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    before = small.files()
    failed = Proof((Check("git apply", False, "no"),))
    monkeypatch.setattr(step, "prove", lambda *_, **__: failed)
    report = sync(queue(small), onto="v2")
    assert (report.exit_code, report.recorded, report.proof) == (5, False, failed)
    assert small.files() == before


def test_a_decision_comes_before_the_proof(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "prove", None)
    report = sync(queue(small), onto="v3")
    assert (report.exit_code, report.proof) == (4, Proof())
    assert report.patches[1].conflicts


def test_what_the_proof_knows_of_the_base_before(small: Small) -> None:
    """The patched text there is built again where nobody recorded its tree, or it is gone."""
    found = queue(small)
    with workspace.upstream_of(found) as upstream:
        base = workspace.base_of(found, upstream)
        wanted = small.upstream.tree("topic")[b"a.txt"].data
        for tree in (found.state.runner_tree, "", "0" * 40):
            states = {**found.states, "demo": replace(found.state, runner_tree=tree)}
            read = step.Patched(upstream.store, base, replace(found, states=states))
            assert read(b"a.txt") == wanted
            assert read(b"nowhere") is None


def test_commit(small: Small) -> None:
    (small.root / "mine.txt").write_text("not patchq's\n")
    git(small.root, "add", "mine.txt")
    report = sync(queue(small), onto="v2")
    for key, value in (("user.name", "Mona"), ("user.email", "mona@example.org")):
        git(small.root, "config", key, value)
    made = commit_sync(project(small), report, "# Title\n\nThe report.\n")
    log = git(small.root, "log", "-1", "--format=%H%n%B", "--name-only").decode()
    assert log.startswith(f"{made}\nsync demo from v1 to v2\n\nThe report.\n")
    assert "series/retired/0001-lands.patch" in log
    assert "mine.txt" not in log
    assert git(small.root, "status", "--porcelain") == b"A  mine.txt\n"


# Decisions


def test_decide(small: Small) -> None:
    done = decide(queue(small), "2", "drop", "theirs will do", onto="v3")
    assert (done.name, done.answer, done.onto) == ("stays", "drop", "v3")
    assert decisions.read(project(small), "demo") == {
        "stays": Decision("drop", "theirs will do", done.evidence)
    }
    assert decisions.read(project(small), "other") == {}
    report = sync(queue(small), onto="v3")
    assert report.exit_code == 0
    assert [p.action for p in report.patches] == ["drop", "drop"]


def test_a_conflict_cannot_be_kept(small: Small) -> None:
    with pytest.raises(PatchqError, match="stays conflicts on v3: it cannot be kept"):
        decide(queue(small), "stays", "keep", "ours", onto="v3")


def test_nothing_is_asked(small: Small) -> None:
    for name, onto in (("stays", "v2"), ("lands", "v3")):
        with pytest.raises(PatchqError, match=f"nothing is asked about {name} on {onto}"):
            decide(queue(small), name, "drop", "no", onto=onto)
    with pytest.raises(PatchqError, match="there is no patch 'never'"):
        decide(queue(small), "never", "drop", "no", onto="v3")


def test_an_answer_can_be_given_anew(small: Small) -> None:
    decide(queue(small), "stays", "drop", "one", onto="v3")
    decide(queue(small), "stays", "drop", "two", onto="v3")
    assert decisions.read(project(small), "demo")["stays"].why == "two"


def test_comments_of_the_decisions_stay(small: Small) -> None:
    path = small.root / "upstream/decisions.toml"
    text = '# by hand\n[other.x]\nanswer = "keep"\nwhy = "y"\nevidence = "z" # kept\n'
    path.write_text(text)
    ((name, data),) = decisions.answered(
        project(small), "demo", "stays", "drop", 'a "quoted" why\n', "0123"
    ).items()
    assert name == "upstream/decisions.toml"
    assert data is not None and data.startswith(text.encode())
    path.write_bytes(data)
    assert decisions.read(project(small), "demo")["stays"].why == 'a "quoted" why\n'
    assert decisions.read(project(small), "other")["x"].answer == "keep"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[demo", "is not valid TOML"),
        ("\xff", "is not valid TOML"),
        ('[demo.x]\nanswer = "perhaps"\nwhy = ""\nevidence = ""\n', "'x' is not an answer"),
        ('[demo.x]\nanswer = "drop"\nevidence = ""\n', "'x' is not an answer"),
        ("[demo]\nx = 1\n", "'x' is not an answer"),
        ("demo = 1\n", "demo is not a table"),
    ],
)
def test_decisions_that_are_malformed(small: Small, text: str, why: str) -> None:
    (small.root / "upstream/decisions.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(PatchqError, match=why):
        decisions.read(project(small), "demo")


def test_what_a_patch_says_of_its_own_end_is_shown(small: Small) -> None:
    """`Patchq-Drop-When` is for the maintainer to read at every sync; it decides nothing."""
    file = small.root / "series" / "0002-stays.patch"
    head, cut, rest = file.read_bytes().partition(b"\n\n")
    file.write_bytes(head + b"\nPatchq-Drop-When: base>=v2" + cut + rest)
    patch = sync(queue(small), onto="v2", dry_run=True).patches[1]
    assert (patch.name, patch.action) == ("stays", "keep")
    assert patch.evidence[-1].detail == "goes when: base>=v2"
