"""Random small series and random upstream edits: the tree that `git rebase` gives."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from tests.support.cli import Queue
from tests.support.history import History, git

FILES = 3
REGIONS = 8
REGION = 6  # lines; edits stay off a region's first and last, so that regions never touch


@dataclass(frozen=True)
class Edit:
    """In region `region` of file `file`: lines from `first` on, `gone` of them, become `new`."""

    file: int
    region: int
    first: int
    gone: int
    new: int


@dataclass(frozen=True)
class Story:
    upstream: tuple[Edit, ...]
    patches: tuple[tuple[Edit, ...], ...]


def edits(ours: bool) -> st.SearchStrategy[Edit]:
    """Upstream edits the even regions, we the odd ones."""
    return st.builds(
        Edit,
        file=st.integers(0, FILES - 1),
        region=st.sampled_from(range(int(ours), REGIONS, 2)),
        first=st.integers(1, REGION - 2),
        gone=st.integers(0, 2),
        new=st.integers(0, 3),
    )


STORIES = st.builds(
    Story,
    upstream=st.lists(edits(False), max_size=8).map(tuple),
    patches=st.lists(
        st.lists(edits(True), min_size=1, max_size=3).map(tuple), min_size=1, max_size=4
    ).map(tuple),
)


class Text:
    """A file as regions of lines; every line that is ever written is its own."""

    def __init__(self, number: int) -> None:
        self.regions = [
            [b"file %d region %d line %d\n" % (number, r, n) for n in range(REGION)]
            for r in range(REGIONS)
        ]

    def edit(self, edit: Edit, word: bytes) -> None:
        region = self.regions[edit.region]
        end = min(edit.first + edit.gone, len(region) - 1)
        region[edit.first : end] = [b"%s %d\n" % (word, n) for n in range(edit.new)]

    def __bytes__(self) -> bytes:
        return b"".join(b"".join(region) for region in self.regions)


def write(upstream: History, story: Story) -> None:
    texts = [Text(number) for number in range(FILES)]
    start = upstream.commit("start")
    for number, text in enumerate(texts):
        start.write(f"f{number}.txt", bytes(text))
    start.tag("v1")
    theirs = [Text(number) for number in range(FILES)]
    change = upstream.commit("theirs")
    for place, edit in enumerate(story.upstream):
        theirs[edit.file].edit(edit, b"upstream %d" % place)
        change.write(f"f{edit.file}.txt", bytes(theirs[edit.file]))
    change.tag("v2")
    upstream.branch("topic", at="v1")
    for number, patch in enumerate(story.patches):
        commit = upstream.commit(f"patch {number}")
        for place, edit in enumerate(patch):
            texts[edit.file].edit(edit, b"ours %d %d" % (number, place))
            commit.write(f"f{edit.file}.txt", bytes(texts[edit.file]))


def rebased(upstream: History, work: Path) -> str | None:
    """The tree of `git rebase` onto v2, or None for a conflict."""
    git(work.parent, "clone", "-q", "-b", "topic", str(upstream.path), str(work))
    onto = ("--onto", "v2", "v1", "topic")
    done = git(
        work, "rebase", "-q", "--reapply-cherry-picks", "--empty=keep", *onto, ok=(0, 1, 128)
    )
    if (work / ".git/rebase-merge").exists():
        return None
    assert not done.startswith(b"CONFLICT")
    return git(work, "rev-parse", "HEAD^{tree}").decode().strip()


@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(STORIES)
def test_same_tree_as_rebase(story: Story) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        upstream = History(folder / "upstream.git")
        write(upstream, story)
        upstream.save()
        wanted = rebased(upstream, folder / "rebase")
        assume(wanted is not None)
        queue = Queue(folder, upstream).start()

        outcome = queue.sync()

        event(f"{len(story.patches)} patches")
        assert queue.tree() == wanted, str(outcome)
        queue.expect(_files(upstream, str(wanted)))
    finally:
        shutil.rmtree(folder)


def _files(upstream: History, tree: str) -> dict[str | bytes, bytes]:
    names = [f"f{number}.txt" for number in range(FILES)]
    return {name: git(upstream.path.parent / "rebase", "show", f"{tree}:{name}") for name in names}
