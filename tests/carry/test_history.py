"""Where a patch comes from, which range of upstream is read, and what is gathered of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from patchq.carry.history import Gatherer, origin
from patchq.carry.ranges import Range, Unreached, opened
from patchq.carry.workspace import Queue
from patchq.config import Project, QueueConfig, Source
from patchq.queue import header as headers
from patchq.queue import patch as patches
from patchq.queue.patch import Patch
from patchq.queue.series import Series
from patchq.upstream.pulls import Pull
from patchq.upstream.releases import Release
from tests.support.history import lines
from tests.support.kit import Kit, made

TEXT = lines(range(1, 41))
HEAD = "0123456789abcdef0123456789abcdef01234567"


def patch(subject: str = "Knobs", body: str = "", **fields: str) -> Patch:
    given = [("From", "Ada <ada@example.org>"), ("Subject", subject)]
    given += [(name.replace("_", "-"), value) for name, value in fields.items()]
    return patches.make(1, "knobs", headers.make(given, body), b"")


@pytest.mark.parametrize(
    ("of", "numbers", "heads", "ids"),
    [
        (patch(Patchq_Pr=f"acme/engine#7 @ {HEAD}"), {7}, {"acme/engine#7": HEAD}, ()),
        (patch(Patchq_Pr="Acme/Engine#7"), {7}, {"Acme/Engine#7": ""}, ()),
        (patch(Patchq_Pr="other/thing#7"), set(), {}, ()),
        (patch("Knobs (#9)", Patchq_Pr="acme/engine#7"), {7}, {"acme/engine#7": ""}, ()),
        (patch("Knobs (#9)"), set(), {}, ()),
        (patch('Revert "Knobs (#9)"'), set(), {}, ()),
        (
            patch(Origin="upstream, https://github.com/acme/engine/pull/7"),
            {7},
            {"acme/engine#7": ""},
            (),
        ),
        (
            patch(Origin=f"backport, https://github.com/acme/engine/commit/{HEAD}"),
            set(),
            {},
            (HEAD,),
        ),
        (patch(body=f"Why.\n\n(cherry picked from commit {HEAD})"), set(), {}, (HEAD,)),
    ],
)
def test_origins(of: Patch, numbers: set[int], heads: dict[str, str], ids: tuple[str, ...]) -> None:
    found = origin(of, "acme/engine")
    assert (found.numbers, dict(found.heads), found.ids) == (numbers, heads, ids)


@pytest.mark.parametrize(
    ("subject", "hints"),
    [("Knobs (#9)", (9,)), ("Knobs (#8) (#9)", (8, 9)), ('Revert "Knobs (#9)"', ())],
)
def test_the_numbers_of_a_subject_are_hints(subject: str, hints: tuple[int, ...]) -> None:
    assert origin(patch(subject), "acme/engine").hints == hints
    assert origin(patch(subject, Patchq_Pr="acme/engine#7"), "acme/engine").hints == ()


def test_without_a_repository_every_number_is_upstreams() -> None:
    assert origin(patch(Patchq_Pr="acme/engine#7"), None).numbers == {7}


@pytest.fixture
def kit(kit: Kit) -> Kit:
    """v1, then a landing that v2 has, a release branch with a pick of it in v1.1, and v3."""
    up = kit.history
    up.commit("Start").write("a.txt", TEXT).tag("v1")
    landed = up.commit("Change it (#5)").edit("a.txt", b"line 20\n", b"twenty\ntwenty-one\n20!\n")
    landed.commit("More (#6)").edit("a.txt", b"line 2\n", b"two\n").tag("v2.0rc1").tag("v2")
    up.commit("Last (#7)").edit("a.txt", b"line 30\n", b"thirty\n").tag("v3")
    pick = up.branch("releases/v1.1", at="v1").commit("Change it (#5) (#9)")
    pick.edit("a.txt", b"line 20\n", b"twenty\ntwenty-one\n20!\n").tag("v1.1")
    ours = up.branch("ours", at="v1").commit("Change it")
    ours.edit("a.txt", b"line 20\n", b"twenty\ntwenty-one\n20!\n")
    return kit


def queue(kit: Kit, *sources: Source) -> Queue:
    root = kit.history.path.parent
    return Queue(Project(root, root / ".git"), QueueConfig("demo", "series", sources), Series(), {})


def released(kit: Kit, name: str) -> Release:
    found = kit.release(name)
    return Release(name.removeprefix("v"), found.commit, found.tree)


def test_the_range_of_a_git_queue(kit: Kit) -> None:
    old, new = kit.release("v1"), kit.release("v3")
    source = Source("git", str(kit.history.path))
    ends = Release("v1", old.commit, old.tree), Release("v3", new.commit, new.tree)
    with opened(queue(kit, source), *ends, kit.store, offline=True) as found:
        assert isinstance(found, Range)
        assert (found.old, found.new) == (old.commit, new.commit)
        assert [each.subject for each in found.commits] == [
            "Change it (#5)",
            "More (#6)",
            "Last (#7)",
        ]
        assert [name for name, _ in found.tags] == ["v1.1", "v2", "v3"]
        # A release branch has it first, under another number.
        assert [found.release_of(each.id) for each in found.commits] == ["v1.1", "v2", "v3"]


def test_the_second_source_of_a_queue_on_archives(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The archive of a release is its tag, where their trees are the same."""
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "cache"))
    sources = Source("index", "engine"), Source("git", str(kit.history.path))
    old, new = released(kit, "v1"), released(kit, "v2")
    archived = replace(old, commit="a" * 40), replace(new, commit="b" * 40)
    with opened(queue(kit, *sources), *archived, kit.store, offline=True) as found:
        assert isinstance(found, Range)
        assert (found.old, found.new) == (old.commit, new.commit)
        assert [name for name, _ in found.tags] == ["1.1", "2"]


def test_a_tag_with_another_tree_is_not_the_release(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "cache"))
    sources = Source("index", "engine"), Source("git", str(kit.history.path))
    ends = released(kit, "v1"), replace(released(kit, "v2"), tree="c" * 40, commit="d" * 40)
    with opened(queue(kit, *sources), *ends, kit.store, offline=True) as found:
        assert found == f"{kit.history.path} has no tag 2 with that release's tree"


def test_no_history(kit: Kit) -> None:
    ends = released(kit, "v1"), released(kit, "v2")
    with opened(queue(kit, Source("index", "engine")), *ends, kit.store, offline=True) as found:
        assert found is None


def test_an_address_that_is_not_reached(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "cache"))
    sources = Source("index", "engine"), Source("git", "file:///nowhere/engine.git")
    ends = released(kit, "v1"), released(kit, "v2")
    with opened(queue(kit, *sources), *ends, kit.store, offline=False) as found:
        assert isinstance(found, Unreached) and "cannot be fetched" in found


def gathered(kit: Kit, of: Patch, pull: Pull | None = None, to: str = "v2") -> Gatherer:
    old, new = kit.release("v1"), kit.release(to)
    range_ = Range(kit.store, old.commit, new.commit, to)
    config = QueueConfig("demo", "series", (), github="acme/engine")
    return Gatherer(config, {pull.key: pull} if pull else {}, range_)


def ours(kit: Kit, **fields: str) -> Patch:
    return kit.patch("v1", "ours", **fields)


def test_what_is_known_of_a_patch(kit: Kit) -> None:
    of = ours(kit, pr="acme/engine#5")
    merged = Pull("acme/engine", 5, state="merged", merge_sha="e" * 40)
    known = gathered(kit, of, merged)([of])["ours"]
    assert known.past is not None
    (landing,) = known.past.landings
    assert (landing.pr, landing.release, landing.differs) == ("#5", "v2", 0)
    assert known.past.held == {b"a.txt": 1.0}
    assert [signal.signal for signal in known.signals] == ["pull-merged"]


def test_the_merge_commit_that_the_forge_names(kit: Kit) -> None:
    """A commit without a number is known by the forge's word."""
    commit = kit.store.resolve("v2~")
    of = ours(kit, pr="acme/engine#77")
    pull = Pull("acme/engine", 77, state="merged", merge_sha=commit)
    known = gathered(kit, of, pull)([of])["ours"]
    assert known.past is not None
    assert known.past.named == "the commit that the patch names"


def test_the_smaller_of_two_requests(kit: Kit) -> None:
    """Of a patch of two, the landing of the smaller one is compared file by file as well."""
    both = kit.history.branch("both", at="ours").commit("And more")
    both.write("b.txt", lines(range(200, 240)))
    of = kit.patch("v1", "both")
    numbers = "acme/engine#5", "acme/engine#90"
    of = replace(of, header=of.header.replace("Patchq-Pr", *numbers))
    known = gathered(kit, of)([of])["both"]
    assert known.past is not None
    assert (known.past.named, known.past.whole) == ("#5", False)
    assert known.past.share < 0.25
    assert known.past.held == {b"a.txt": 1.0, b"b.txt": 0.0}


def test_a_request_of_which_the_merge_left_nothing(kit: Kit) -> None:
    kit.history.branch("main").commit("Change it, differently after all (#8)").tag("v4")
    of = ours(kit, pr="acme/engine#8")
    known = gathered(kit, of, to="v4")([of])["ours"]
    assert known.past is not None
    (landing,) = known.past.landings
    assert (landing.pr, landing.differs, known.past.share) == ("#8", None, 0.0)


def test_a_request_that_another_replaced(kit: Kit) -> None:
    diff = ours(kit).diff.replace(b"twenty", b"vingt").replace(b"20!", b"vingt!")
    of = made(1, "ours", diff, pr="acme/engine#4")
    pull = Pull("acme/engine", 4, state="closed", replaced_by=(5,))
    known = gathered(kit, of, pull)([of])["ours"]
    assert known.past is not None and known.past.superseded is not None
    assert known.past.superseded.pr == "#5"


def test_a_history_that_cannot_be_read_is_said(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    of = ours(kit)
    gatherer = gathered(kit, of)
    assert gatherer.range is not None
    gatherer.range.old = "f" * 40
    assert gatherer([of]) == {}
    assert "git log failed" in gatherer.range.failed


def test_doubts_are_added_without_reading_again(kit: Kit) -> None:
    from patchq.judge.model import Signal

    of = ours(kit)
    gatherer = gathered(kit, of)
    first = gatherer([of])["ours"]
    doubt = Signal("check", "needed", "fails")
    assert gatherer.range is not None
    gatherer.range.old = "f" * 40
    again = gatherer.but({"ours": doubt})([of])["ours"]
    assert (again.past, again.signals) == (first.past, (doubt,))
    assert gatherer.range.failed == ""
