"""Any subset of what moved as a project in which plain commands work, or a sentence why not."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchq.bisect.assemble import Assembled, Unbuildable, assemble
from patchq.bisect.model import closed
from patchq.bisect.moves import Between, between
from patchq.config import find_project
from patchq.errors import PatchqError
from tests.bisect.conftest import Story, function, pin
from tests.bisect.drawn import World, told, worlds
from tests.scenarios.conftest import cache as cache
from tests.support.cli import Queue
from tests.support.history import History, git, lines


def everything(found: Between) -> frozenset[str]:
    return frozenset(move.name for move in found.moves)


def with_needs(found: Between, *names: str) -> frozenset[str]:
    return closed(found.moves, frozenset(names))


def content(made: Assembled, story: Story, path: str) -> bytes | None:
    """A file of the runner tree, by git from the store."""
    store = next((story.cache / "stores").iterdir())
    done = git(store, "ls-tree", made.tree, path).split()
    return git(store, "cat-file", "blob", done[2].decode()) if done else None


@pytest.mark.parametrize("commits", [False, True])
def test_nothing_is_a_and_everything_is_b(story: Story, tmp_path: Path, commits: bool) -> None:
    """Not only the same trees: the very locks, and the very patches."""
    found = story.between(commits=commits)
    for end, subset in ((found.a, frozenset[str]()), (found.b, everything(found))):
        made = assemble(found, subset, tmp_path / end.label)
        tag = "good" if end is found.a else "bad"
        shown = git(story.root, "show", f"{tag}:upstream/runner.lock").decode()
        facts = dict(line.split(" ", 1) for line in shown.splitlines()[1:])
        assert made.tree == facts["tree"]
        assert made.lock == facts["digest"] == end.digest
        for path in (made.folder / "series").glob("*.patch"):
            assert path.read_bytes() == end.files[f"series/{path.name}"]


def test_plain_commands_work_in_it(story: Story, tmp_path: Path) -> None:
    found = story.between(commits=False)
    made = assemble(found, with_needs(found, "eight", "template/chat"), tmp_path / "step")
    assert git(made.folder, "status", "--porcelain") == b""

    step = Queue(tmp_path, story.queue.upstream, {"PATCHQ_CACHE": str(story.cache)})
    check = step.run("check", "--json", cwd=made.folder).json
    assert check["proof"]["ok"] and check["tree"] == made.tree
    # Exit 5: no requirements are locked in this queue; the lock itself is the one that was made.
    lock = step.run("lock", "--check", "--json", cwd=made.folder, code=5).json
    assert lock["digest"] == made.lock and lock["differing"] == []
    names = [path.name for path in sorted((made.folder / "series").glob("*.patch"))]
    assert [name[5:-6] for name in names] == [
        *("one", "three", "four", "five", "six", "seven", "eight")
    ]
    assert b"'eight'" in (content(made, story, "extra.py") or b"")


def test_a_move_moves_what_it_names_and_nothing_else(story: Story, tmp_path: Path) -> None:
    found = story.between(commits=False)
    plain = assemble(found, frozenset(), tmp_path / "plain")

    without = assemble(found, frozenset({"three"}), tmp_path / "three")
    notes = content(without, story, "notes.txt") or b""
    assert b"line 10\n" in notes and b"line 40 by four\n" in notes

    chat = assemble(found, frozenset({"template/chat"}), tmp_path / "chat")
    assert chat.tree == plain.tree and chat.lock != plain.lock
    pins = (chat.folder / "upstream/dependencies.toml").read_text()
    assert 'revision = "bbbb"' in pins and 'version = "1.0"' in pins

    fast = assemble(found, frozenset({"profile/small"}), tmp_path / "fast")
    assert (fast.folder / "ci/profiles/small.toml").read_text() == "# fast\n"
    assert len({plain.lock, without.lock, chat.lock, fast.lock}) == 4


def test_an_older_patch_is_carried_onto_the_newer_base(story: Story, tmp_path: Path) -> None:
    """Six as A has it was never on v2: it is merged there, below the header that came."""
    found = story.between(commits=False)
    made = assemble(found, frozenset({"base/v2"}), tmp_path / "step")
    core = content(made, story, "core.py") or b""
    assert core.startswith(b"# It begins here.\n")
    assert b"'one and six'" in core and b"anew" not in core
    assert b"'u2 by five'" in (content(made, story, "util/new.py") or b"")
    assert content(made, story, "util/old.py") is None


def test_a_patch_goes_with_the_commit_that_has_it(story: Story, tmp_path: Path) -> None:
    """On upstream's own commits: Two is carried before the one that took it, and gone on it."""
    found = story.between()
    way = [move.name for move in found.moves if move.kind == "commit"]
    before = assemble(found, frozenset(way[:1]), tmp_path / "before")
    after = assemble(found, frozenset(way[:2]), tmp_path / "after")
    for made in (before, after):
        assert b"'f4 by two'" in (content(made, story, "core.py") or b"")
    names = [{path.name for path in (m.folder / "series").glob("*.patch")} for m in (before, after)]
    assert names[0] - names[1] == {"0002-two.patch"}
    assert after.there == ("two",)
    state = json.loads((after.folder / "upstream/state.json").read_bytes())
    assert state["queues"]["demo"]["base"]["commit"] == way[1]
    step = Queue(tmp_path, story.queue.upstream, {"PATCHQ_CACHE": str(story.cache)})
    assert step.run("check", "--json", cwd=after.folder).json["tree"] == after.tree


def test_the_same_subset_is_the_same_everywhere(story: Story, tmp_path: Path) -> None:
    found = story.between(commits=False)
    subset = with_needs(found, "nine-b-bold-b", "four")
    one, two = (assemble(found, subset, tmp_path / name) for name in ("one", "two"))
    assert (one.tree, one.lock) == (two.tree, two.lock)
    heads = [git(made.folder, "rev-parse", "HEAD") for made in (one, two)]
    assert heads[0] == heads[1]


def test_the_project_itself_is_left_alone(story: Story, tmp_path: Path) -> None:
    before = story.queue.snapshot()
    refs = git(story.root, "for-each-ref")
    found = story.between()
    assemble(found, everything(found), tmp_path / "step")
    assert story.queue.snapshot() == before
    assert git(story.root, "for-each-ref") == refs
    with pytest.raises(PatchqError, match="is not empty"):
        assemble(found, frozenset(), tmp_path / "step")


def subsets(found: Between) -> st.SearchStrategy[frozenset[str]]:
    names = sorted(everything(found))
    return st.sets(st.sampled_from(names)).map(lambda chosen: with_needs(found, *chosen))


def test_commands_in_it_are_never_about_the_project_around(story: Story) -> None:
    """A folder that patchq takes for a part of the project itself is refused, not worked in."""
    found = story.between()
    place = story.root / ".git/patchq/steps"
    with suppress(PatchqError):
        made = assemble(found, frozenset(), place / "one")
        assert find_project(made.folder).root == made.folder
    shutil.rmtree(place)


SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=6, suppress_health_check=SLOW)
@given(data=st.data())
def test_each_subset_proves_or_says_why_not(story: Story, data: st.DataObject) -> None:
    found = story.between(commits=data.draw(st.booleans()))
    with tempfile.TemporaryDirectory() as place:
        _made(found, data.draw(subsets(found)), Path(place), story.queue.upstream.path)


@settings(max_examples=8, suppress_health_check=SLOW)
@given(world=worlds(), commits=st.booleans(), data=st.data())
def test_whatever_moved_nothing_is_a_and_everything_is_b(
    world: World, commits: bool, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patched:
        folder = Path(place)
        patched.setenv("PATCHQ_CACHE", str(folder / "cache"))
        root = told(world, folder)
        found = between(root, "a", "b", commits=commits)
        for tag, subset in (("a", frozenset[str]()), ("b", everything(found))):
            state = json.loads(git(root, "show", f"{tag}:upstream/state.json"))
            made = assemble(found, subset, folder / tag)
            assert made.tree == state["queues"]["demo"]["runner_tree"]
        if found.moves:
            _made(found, data.draw(subsets(found)), folder, folder / "up.git")


def _made(found: Between, subset: frozenset[str], folder: Path, upstream: Path) -> None:
    """The subset, proved by git alone: its patches on its base are its tree, and its lock's."""
    try:
        made = assemble(found, subset, folder / "step")
    except Unbuildable:
        return
    state = json.loads((made.folder / "upstream/state.json").read_bytes())["queues"]["demo"]
    assert state["runner_tree"] == made.tree
    work = folder / "work"
    git(folder, "clone", "-q", "--no-checkout", str(upstream), str(work))
    git(work, "checkout", "-q", state["base"]["commit"])
    lines = (made.folder / "series/series").read_text().splitlines()
    files = [str(made.folder / "series" / line) for line in lines if line and line[0] != "#"]
    for file in files:
        git(work, "apply", "--index", file)
    assert git(work, "write-tree").decode().strip() == made.tree
    lock = (made.folder / "upstream/runner.lock").read_text()
    assert f"\ntree {made.tree}\n" in lock and f"digest {made.lock}\n" in lock


@pytest.fixture
def torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Queue:
    """Added on one base: Left and Right, Right on Left's line, and Half, which breaks core.py
    unless Whole is there as well.
    """
    history = History(tmp_path / "upstream.git")
    first = history.commit("start").write("notes.txt", lines(range(1, 30)))
    first.write("core.py", function("f", "plain") + lines(range(1, 30), word="# ")).tag("v1")
    topic = history.branch("topic", at="v1").commit("Half")
    topic.edit("core.py", b"#  3\n", b"broken = (\n#  3\n")
    topic = topic.commit("Whole").edit("core.py", b"#  25\n", b"#  25\n)\n")
    topic = topic.commit("Left").edit("notes.txt", b"line 9\n", b"line 9 left\n")
    topic.commit("Right").edit("notes.txt", b"line 9 left\n", b"line 9 left and right\n")
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "cache"))
    queue = Queue(tmp_path, history).start(commits=None)
    git(queue.root, "tag", "good")
    queue.run("import", "--git", str(history.path), "v1..topic")
    return queue.commit("imported")


def test_what_does_not_compile_is_not_made(torn: Queue, tmp_path: Path) -> None:
    found = between(torn.root, "good", ".")
    with pytest.raises(Unbuildable, match=r"core\.py does not compile: line 8") as caught:
        assemble(found, frozenset({"half"}), tmp_path / "step")
    assert caught.value.exit_code == 5
    made = assemble(found, frozenset({"half", "whole"}), tmp_path / "whole")
    assert made.folder.is_dir()


def test_a_patch_that_does_not_go_there_is_named(torn: Queue, tmp_path: Path) -> None:
    """Left is written anew, and Right with it: neither goes with the other's old text."""
    git(torn.root, "tag", "both")
    for name in ("left", "right"):
        path = next(torn.series.glob(f"*-{name}.patch"))
        path.write_bytes(path.read_bytes().replace(b"line 9 left", b"line 9 LEFT"))
    torn.run("sync", "--onto", "v1")
    torn.commit("anew")
    found = between(torn.root, "both", ".")
    assert {move.name: move.needs for move in found.moves} == {
        "left": frozenset(),
        "right": frozenset({"left"}),
    }
    with pytest.raises(Unbuildable, match=r"right does not go on v1: .*notes.txt \(content\)"):
        assemble(found, frozenset({"left"}), tmp_path / "step")
    assert assemble(found, everything(found), tmp_path / "all").tree == torn.tree()


def test_a_patch_that_people_wrote_stays_as_they_wrote_it(torn: Queue, tmp_path: Path) -> None:
    """Short ids in its `index` lines are no canonical form, and no reason for another lock."""
    path = next(torn.series.glob("*-left.patch"))
    text = re.sub(rb"(?m)^index (\w{7})\w+\.\.(\w{7})\w+", rb"index \1..\2", path.read_bytes())
    assert text != path.read_bytes()
    path.write_bytes(text)
    git(torn.root, "commit", "-qam", "by hand")
    found = between(torn.root, "good", ".")
    made = assemble(found, everything(found), tmp_path / "all")
    assert (made.folder / "series" / path.name).read_bytes() == text


def test_a_file_in_the_place_of_a_folder_is_said(torn: Queue, tmp_path: Path) -> None:
    git(torn.root, "branch", "-q", "other")
    (torn.folder / "file.diff").write_bytes(_new_file("place"))
    (torn.folder / "folder.diff").write_bytes(_new_file("place/inner"))
    torn.run("import", str(torn.folder / "file.diff"))
    torn.commit("file")
    git(torn.root, "checkout", "-q", "other")
    torn.run("import", str(torn.folder / "folder.diff"))
    torn.commit("folder")
    found = between(torn.root, "main", "other")
    with pytest.raises(Unbuildable, match="there is a file place, not a folder"):
        assemble(found, frozenset({"folder"}), tmp_path / "step")
    assert assemble(found, everything(found), tmp_path / "all").tree == found.trees[1]


def test_two_new_patches_of_one_number_get_their_own(torn: Queue, tmp_path: Path) -> None:
    """A and B each added a patch since they parted; with B's and without its removal, both stand."""
    git(torn.root, "branch", "-q", "other")
    (torn.folder / "a.diff").write_bytes(_new_file("a.txt"))
    (torn.folder / "b.diff").write_bytes(_new_file("b.txt"))
    torn.run("import", str(torn.folder / "a.diff"))
    torn.commit("a")
    git(torn.root, "checkout", "-q", "other")
    torn.run("import", str(torn.folder / "b.diff"))
    torn.commit("b")
    found = between(torn.root, "main", "other")
    assert everything(found) == {"a", "b"}
    made = assemble(found, frozenset({"b"}), tmp_path / "step")
    names = [line for line in (made.folder / "series/series").read_text().split() if line]
    assert sorted(name[:4] for name in names) == sorted({name[:4] for name in names})
    assert {name[5:] for name in names} >= {"a.patch", "b.patch"}


def test_another_order_is_a_move(torn: Queue, tmp_path: Path) -> None:
    git(torn.root, "tag", "before")
    torn.run("move", "whole", "--after", "right")
    torn.commit("in another order")
    found = between(torn.root, "before", ".")
    (move,) = found.moves
    assert (move.name, move.says) == ("series/order", "the series in another order")
    for tag, subset in (("before", frozenset[str]()), ("HEAD", everything(found))):
        made = assemble(found, subset, tmp_path / tag)
        series = git(torn.root, "show", f"{tag}:series/series")
        assert (made.folder / "series/series").read_bytes() == series


def test_another_name_is_none(torn: Queue) -> None:
    git(torn.root, "tag", "before")
    torn.run("rename", "whole", "entire")
    torn.commit("called otherwise")
    assert between(torn.root, "before", ".").moves == ()


def test_a_components_own_patches_go_with_it(torn: Queue, tmp_path: Path) -> None:
    pin(torn, "1.0", "aaaa", "slow")
    torn.commit("plain")
    git(torn.root, "tag", "plain")
    shutil.copytree(torn.series, torn.root / "series/lib")
    torn.commit("patched")
    found = between(torn.root, "plain", ".")
    (move,) = found.moves
    assert move.says == "component lib patched anew"
    plain = assemble(found, frozenset(), tmp_path / "plain")
    assert not list((plain.folder / "series/lib").glob("*.patch"))
    own = assemble(found, everything(found), tmp_path / "own")
    assert len(list((own.folder / "series/lib").glob("*.patch"))) == 4
    assert own.tree == plain.tree and own.lock != plain.lock


def test_history_beside_archives_gives_commits(story: Story, tmp_path: Path) -> None:
    """A queue on archives that has a git source too: its commits can be stood on, from git."""
    root = tmp_path / "queue"
    git(tmp_path, "clone", "-q", str(story.root), str(root))
    path = root / "upstream/demo.toml"
    start, sources, rest = path.read_text().partition("[[sources]]")
    path.write_text(f'{start}[[sources]]\nindex = "demo"\n\n{sources}{rest}')
    git(root, "commit", "-qam", "archives first")
    found = between(root, "good", ".", commits=True)
    way = [move.name for move in found.moves if move.kind == "commit"]
    made = assemble(found, frozenset(way[:3]), tmp_path / "step")
    step = Queue(tmp_path, story.queue.upstream, {"PATCHQ_CACHE": str(story.cache)})
    assert step.run("check", "--json", cwd=made.folder).json["tree"] == made.tree


def test_without_history_there_are_no_commits(torn: Queue) -> None:
    path = torn.root / "upstream/demo.toml"
    start = path.read_text().partition("[[sources]]")[0]
    path.write_text(f'{start}[[sources]]\nindex = "demo"\n')
    torn.commit("archives only")
    with pytest.raises(PatchqError, match="demo has no history of upstream"):
        between(torn.root, "good", ".", commits=True)


def _new_file(name: str) -> bytes:
    return (
        f"diff --git a/{name} b/{name}\nnew file mode 100644\nindex 0000000..1269488\n"
        f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+data\n"
    ).encode()


LOCK = """# for demo v1
# on aarch64, glibc 2.39, Python 3.12
# pin lib=={version}
lib=={version} \\
    --hash=sha256:{hash}
other==2.0 \\
    --hash=sha256:{other}
"""


def test_locked_requirements_follow_the_pins(torn: Queue, tmp_path: Path) -> None:
    """A mixture of A's packages and B's component has the hashes that B's lock knows."""
    place = torn.root / "upstream/requirements.spark.lock"
    for tag, version, digit, other in (("old", "1.0", "1", "a"), ("new", "1.1", "2", "b")):
        pin(torn, version, "aaaa", "slow")
        text = LOCK.format(version=version, hash=digit * 64, other=other * 64)
        place.write_text(text)
        torn.commit(tag)
        git(torn.root, "tag", tag)
    found = between(torn.root, "old", "new")
    assert everything(found) == {"component/lib", "requirements/locks"}
    made = assemble(found, frozenset({"component/lib"}), tmp_path / "step")
    told = (made.folder / "upstream/requirements.spark.lock").read_text()
    assert "lib==1.1" in told and "2" * 64 in told and "a" * 64 in told
    assert "1" * 64 not in told and "b" * 64 not in told


@pytest.mark.network
def test_the_shipped_series_from_one_release_to_another(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM 0.29.0 to 0.32.0 with the series carried and one patch more: two moves, four runners."""
    from tests.support.vllm import first_series

    monkeypatch.setenv("PATCHQ_CACHE", str(cache))
    queue = first_series(tmp_path / "queue", cache)
    queue.sync("0.32.0")
    (tmp_path / "more.diff").write_bytes(_new_file("vllm/more.txt"))
    queue.patchq("import", str(tmp_path / "more.diff"))
    queue.commit()
    found = between(queue.root, "HEAD~1", ".")
    assert {move.name: move.needs for move in found.moves} == {
        "base/0.32.0": frozenset(),
        "more": frozenset({"base/0.32.0"}),
    }
    trees = []
    for number, names in enumerate(((), ("base/0.32.0",), ("base/0.32.0", "more"))):
        made = assemble(found, frozenset(names), tmp_path / f"step-{number}")
        assert len(list((made.folder / "series").glob("*.patch"))) == 17 + (number == 2)
        trees.append(made.tree)
        shutil.rmtree(made.folder)
    assert (trees[0], trees[2]) == found.trees
    assert trees[1] not in found.trees
