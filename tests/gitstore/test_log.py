"""The commits of a range, and what they did to lines."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from patchq.errors import PatchqError
from patchq.gitstore import log
from patchq.gitstore.git import GitError
from patchq.gitstore.log import Lines
from patchq.gitstore.store import Store
from tests.support.history import History, git, lines

TEXT = lines(range(1, 11))


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "upstream.git")


@pytest.fixture
def store(history: History) -> Iterator[Store]:
    with Store(history.path) as made:
        yield made


def ids(store: Store, *names: str) -> list[str]:
    found = [store.resolve(name) for name in names]
    assert all(found)
    return [oid for oid in found if oid]


def test_the_commits_of_a_range(history: History) -> None:
    history.commit("Start").write("a", TEXT).tag("v1")
    message = "Sub\x02ject (#1)\n\nA body\nof two lines\n"
    history.commit(message).by(b"Zo\xc3\xab").edit("a", b"line 2\n", b"two\n")
    history.commit("Empty")
    history.commit("More").write("odd\nname", b"x").delete("a").tag("v2")
    history.save()
    with Store(history.path) as store:
        old, new = ids(store, "v1", "v2")
        first, empty, last = log.commits(store, old, new)
        assert (first.subject, first.author, first.parents) == ("Sub\x02ject (#1)", "Zoë", (old,))
        assert first.body.strip() == "A body\nof two lines"
        assert first.date == "2025-06-15"
        assert [(c.status, c.path) for c in first.changes] == [("M", b"a")]
        assert empty.changes == ()
        assert {(c.status, c.path) for c in last.changes} == {("A", b"odd\nname"), ("D", b"a")}
        assert (last.id, log.commits(store, new, new)) == (new, [])


def test_it_is_read_once(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    history.commit("Start").write("a", TEXT).tag("v1")
    history.commit("More").edit("a", b"line 2\n", b"two\n").tag("v2")
    history.save()
    with Store(history.path) as store:
        old, new = ids(store, "v1", "v2")
        found = log.commits(store, old, new)
        read = log.lines(store, found, {b"two"})
        monkeypatch.setattr(Store, "git", None)
        monkeypatch.setattr(Store, "stream", None)
        assert log.commits(store, old, new) == found
        assert log.lines(store, found, {b"two"}) == read


def test_a_torn_cache_is_read_anew(history: History) -> None:
    history.commit("Start").write("a", TEXT).tag("v1")
    history.commit("More").edit("a", b"line 2\n", b"two\n").tag("v2")
    history.save()
    with Store(history.path) as store:
        found = log.commits(store, *ids(store, "v1", "v2"))
        read = log.lines(store, found, {b"two"})
        (kept,) = (store.path / "patchq-lines").iterdir()
        kept.write_bytes(kept.read_bytes()[:10])
        assert log.lines(store, found, {b"two"}) == read


def test_what_became_of_lines(history: History) -> None:
    history.commit("Start").write("a", TEXT).write("b", TEXT).tag("v1")
    change = history.commit("Change").edit("a", b"line 2\n", b"two  \r\n-- two\n++ two\n\n")
    change.edit("b", b"line 3\n", b"")
    history.commit("Move").edit("a", b"line 5\n", b"").edit("b", b"line 7\n", b"line 5\nline 7\n")
    history.commit("Binary").write("c", b"\0two\n")
    history.commit("Same").edit("b", b"line 9\n", b"two\n").tag("v2")
    history.save()
    wanted = {b"two", b"-- two", b"++ two", b"line 3", b"line 5", b"line 9"}
    with Store(history.path) as store:
        found = log.commits(store, *ids(store, "v1", "v2"))
        seen = log.lines(store, found, wanted)
        change_, move, binary, same = (seen.get(each.id, Lines({}, {})) for each in found)
    assert change_ == Lines({b"two": 1, b"-- two": 1, b"++ two": 1}, {b"line 3": 1}, 5)
    assert (dict(move.added), dict(move.removed)) == ({}, {}), "a move adds nothing"
    assert binary.added == {}
    assert (same.added, same.removed) == ({b"two": 1}, {b"line 9": 1})


def test_a_merge_is_what_it_brings(history: History) -> None:
    history.commit("Start").write("a", TEXT).write("b", TEXT).tag("v1")
    history.branch("side", at="v1").commit("Side").edit("a", b"line 2\n", b"two\n")
    history.branch("main").commit("Main").edit("b", b"line 2\n", b"zwei\n")
    history.commit("Merge").merging("side").tag("v2")
    history.save()
    with Store(history.path) as store:
        found = log.commits(store, *ids(store, "v1", "v2"))
        merge = found[-1]
        assert len(merge.parents) == 2
        assert [c.path for c in merge.changes] == [b"a"]
        assert log.lines(store, [merge], {b"two", b"zwei"})[merge.id].added == {b"two": 1}


def test_words_alone(history: History) -> None:
    history.commit("Start").write("a", TEXT).tag("v1")
    history.commit("More\n\nWhy").write("a", b"").tag("v2")
    history.save()
    with Store(history.path) as store:
        (found,) = log.words(store, ids(store, "v2"))
        assert (found.subject, found.body.strip(), found.changes) == ("More", "Why", ())
        assert log.words(store, []) == []


def test_a_partial_clone_fetches_once(history: History, tmp_path: Path) -> None:
    history.commit("Start").write("a", TEXT).write("z", b"never asked for\n").tag("v1")
    for number in range(3):
        history.commit(f"Change {number}").edit("a", b"line %d\n" % (number + 2), b"%d!\n" % number)
    history.tips["main"].tag("v2")
    history.save()
    git(history.path, "config", "uploadpack.allowFilter", "true")
    git(history.path, "config", "uploadpack.allowAnySHA1InWant", "true")
    clone = tmp_path / "clone.git"
    url = history.path.as_uri()
    git(tmp_path, "clone", "-q", "--bare", "--filter=blob:none", url, str(clone))
    with Store(clone) as store:
        found = log.commits(store, *ids(store, "v1", "v2"))
        with pytest.raises(PatchqError, match="--offline"):
            log.bring(store, found, offline=True)
        log.bring(store, found)
        git(history.path.parent, "-C", str(clone), "config", "remote.origin.url", "/nowhere")
        log.bring(store, found, offline=True)
        read = log.lines(store, found, {b"0!", b"1!", b"2!"})
        assert sum(sum(each.added.values()) for each in read.values()) == 3


def test_git_says_no(history: History) -> None:
    history.commit("Start").write("a", TEXT).tag("v1")
    history.save()
    with Store(history.path) as store:
        (commit,) = log.words(store, ids(store, "v1"))
        broken = type(commit)("f" * 40, (), "", "", "", "", ())
        with pytest.raises(GitError):
            log.commits(store, "f" * 40, commit.id)
        assert log.lines(store, [broken], {b"x"}) == {}


def test_many_commits_are_read_by_two_and_say_the_same(history: History) -> None:
    numbers = range(2 * log._FEW)
    history.commit("Start").write("a", b"").tag("v1")
    for number in numbers:
        history.commit(f"Line {number}").write("a", f"line {number}\n".encode())
    history.commit("End").tag("v2")
    history.save()
    wanted = {f"line {number}".encode() for number in numbers}
    with Store(history.path) as store:
        found = log.commits(store, *ids(store, "v1", "v2"))
        together = log.lines(store, found, wanted)
        apart = {}
        for each in found:
            apart |= log.lines(store, [each], wanted)
    assert list(together.items()) == list(apart.items())
    assert found[-1].id not in together and len(together) == len(numbers)
    last = Lines(added={b"line 63": 1}, removed={b"line 62": 1}, size=2)
    assert together[found[-2].id] == last


def test_ctrl_c_ends_what_is_read_side_by_side() -> None:
    """SIGINT to this process alone: git would go on, and the threads with it."""
    ended = []

    class Endless:
        @contextmanager
        def stream(self, args: Sequence[str], input: bytes) -> Iterator[BinaryIO]:
            reading, writing = os.pipe()
            with os.fdopen(reading, "rb") as out:
                try:
                    yield out
                except BaseException:
                    os.close(writing)  # as it is when git is killed
                    ended.append(input)
                    raise

    pairs = [(f"{number:040x}", "") for number in range(log._FEW)]
    press = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    press.start()
    with pytest.raises(KeyboardInterrupt):
        log._read(Endless(), pairs, frozenset())  # type: ignore[arg-type]
    assert len(ended) == 2 and sum(each.count(b"\n") for each in ended) == log._FEW
