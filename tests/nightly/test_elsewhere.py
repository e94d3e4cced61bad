"""A night from a machine that nobody has to trust: what it may bring, and what is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.gitstore import clone as clones
from patchq.nightly import elsewhere, kept
from patchq.nightly.model import Night, Told
from patchq.nightly.settings import Settings
from tests.nightly.conftest import Nights
from tests.nightly.test_kept import AT, BARE
from tests.support.history import git


class Brought:
    """The folder of a night that ran elsewhere, and a checkout that has the token."""

    def __init__(self, nights: Nights, folder: Path) -> None:
        self.nights = nights
        self.here = folder / "here"
        git(folder, "clone", "-q", str(nights.root), str(self.here))
        self.settings = Settings(into=self.branch, nights=str(folder / "none"))
        start = git(nights.root, "rev-parse", "HEAD").decode().strip()
        self.night = replace(BARE, state="green", ended=AT, start=start)
        self.folder = folder / "dir"
        self.folder.mkdir()
        place = self.work()
        commit(place, "series/0003-new.patch")
        commit(place, "upstream/state.json")
        commit(place, "upstream/requirements.cpu.lock")
        self.bundle(place)
        shutil.rmtree(place)

    @property
    def branch(self) -> str:
        return git(self.nights.root, "symbolic-ref", "--short", "HEAD").decode().strip()

    def take(self) -> Night:
        return elsewhere.night(self.here, self.settings, self.folder)

    def say(self, **fields: object) -> None:
        self.night = replace(self.night, **fields)  # type: ignore[arg-type]
        kept.save(self.folder, self.night)

    def work(self) -> Path:
        """A checkout in which somebody makes other commits on top of the night's start."""
        place = self.folder.parent / "evil"
        git(self.folder, "clone", "-q", str(self.nights.root), str(place))
        return place

    def bundle(self, place: Path, *, start: str | None = None) -> None:
        """The commits there as the night's, honestly named."""
        commit = git(place, "rev-parse", "HEAD").decode().strip()
        clones.bundle(place, start or self.night.start, commit, self.folder / "series.bundle")
        self.say(commit=commit)

    def refs(self) -> list[str]:
        return git(self.here, "for-each-ref", "--format=%(refname)", "refs/patchq").decode().split()


@pytest.fixture
def brought(nights: Nights, tmp_path: Path) -> Brought:
    return Brought(nights, tmp_path)


def commit(place: Path, path: str, text: str = "x\n") -> None:
    (place / path).parent.mkdir(parents=True, exist_ok=True)
    (place / path).write_text(text)
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", path)


def test_a_night_is_taken_with_its_commit_and_without_what_it_told(brought: Brought) -> None:
    brought.say(told=Told(pull=1, pushed="f" * 40, issue=2))
    night = brought.take()
    assert night == replace(brought.night, told=Told())
    ref = f"refs/patchq/nights/{night.name}"
    assert brought.refs() == [ref]
    assert git(brought.here, "rev-parse", ref).decode().strip() == night.commit
    assert brought.take() == night, "it can be told again"


def test_a_night_that_recorded_nothing_needs_no_bundle(brought: Brought) -> None:
    (brought.folder / "series.bundle").unlink()
    with pytest.raises(PatchqError, match="there is no such file"):
        brought.take()
    brought.say(commit=None)
    assert brought.take().commit is None


@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/nightly.yml",
        "patchq/cli/main.py",
        "upstream/demo.toml",
        "upstream/dependencies.toml",
        "upstream/state.json/x",
        "ci/nightly.toml",
        "seriesx/0001-a.patch",
        "releases/allowed_signers",
        "README.md",
    ],
)
def test_a_commit_that_changes_anything_else_is_refused(brought: Brought, path: str) -> None:
    place = brought.work()
    commit(place, "series/0009-fine.patch")
    if path.startswith("upstream/state.json/"):
        git(place, "rm", "-q", "upstream/state.json")
    commit(place, path)
    brought.bundle(place)
    with pytest.raises(PatchqError, match=f"changes {path}"):
        brought.take()
    assert brought.refs() == []


def test_what_is_taken_back_in_a_later_commit_is_refused_all_the_same(brought: Brought) -> None:
    place = brought.work()
    commit(place, ".github/workflows/x.yml")
    git(place, "rm", "-q", ".github/workflows/x.yml")
    git(place, "commit", "-q", "-m", "gone")
    commit(place, "series/0009-fine.patch")
    brought.bundle(place)
    with pytest.raises(PatchqError, match="workflows"):
        brought.take()


def test_links_are_refused(brought: Brought) -> None:
    place = brought.work()
    (place / "series/link").symlink_to("../.github/workflows/ci.yml")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "link")
    brought.bundle(place)
    with pytest.raises(PatchqError, match="series/link"):
        brought.take()


def test_a_merge_is_refused(brought: Brought) -> None:
    place = brought.work()
    git(place, "checkout", "-q", "-b", "side")
    commit(place, "series/0008-side.patch")
    git(place, "checkout", "-q", "-")
    commit(place, "series/0009-fine.patch")
    git(place, "merge", "-q", "--no-ff", "-m", "merge", "side")
    brought.bundle(place)
    with pytest.raises(PatchqError, match="does not stand on"):
        brought.take()


def test_it_has_to_begin_in_the_branch_that_it_goes_into(brought: Brought) -> None:
    place = brought.work()
    commit(place, ".github/workflows/x.yml")
    start = git(place, "rev-parse", "HEAD").decode().strip()
    commit(place, "series/0009-fine.patch")
    brought.bundle(place, start=start)
    brought.say(start=start)
    with pytest.raises(PatchqError, match="is in no branch that it goes into"):
        brought.take()


def test_too_many_commits_are_refused(brought: Brought) -> None:
    place = brought.work()
    for number in range(clones.DEEPEST + 1):
        commit(place, f"series/{number:04d}-x.patch")
    brought.bundle(place)
    with pytest.raises(PatchqError, match="it has 11 commits"):
        brought.take()


def test_another_commit_than_the_night_names_is_refused(brought: Brought) -> None:
    brought.say(commit="e" * 40)
    with pytest.raises(PatchqError, match="does not hold the night's commit"):
        brought.take()


def test_a_second_ref_in_the_bundle_is_refused(brought: Brought) -> None:
    place = brought.work()
    commit(place, "series/0009-fine.patch")
    brought.bundle(place)
    more = ["refs/patchq/night", "HEAD", f"^{brought.night.start}"]
    git(place, "bundle", "create", "-q", str(brought.folder / "series.bundle"), *more)
    with pytest.raises(PatchqError, match="and that alone"):
        brought.take()


def test_what_is_no_bundle_is_refused(brought: Brought) -> None:
    bundle = brought.folder / "series.bundle"
    data = bundle.read_bytes()
    for bad in (b"", b"\0" * 1000, data[: len(data) // 2]):
        bundle.write_bytes(bad)
        with pytest.raises(PatchqError, match="the bundle of the night is refused"):
            brought.take()
    bundle.unlink()
    bundle.symlink_to("/etc/passwd")
    with pytest.raises(PatchqError, match="there is no such file"):
        brought.take()
    assert brought.refs() == []


def test_a_night_that_is_not_over_or_not_of_this_project_is_refused(brought: Brought) -> None:
    brought.say(state="running")
    with pytest.raises(PatchqError, match="is not over"):
        brought.take()
    brought.say(state="green", queue="other")
    with pytest.raises(PatchqError, match="not one of this project's"):
        brought.take()
    (brought.folder / "night.json").unlink()
    with pytest.raises(PatchqError, match=r"has no night\.json"):
        brought.take()
