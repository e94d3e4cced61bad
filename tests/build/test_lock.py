"""The runner's lock: one digest over everything, told from a damaged one, found by its start."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.build.lock import Difference, differences, find, make, parse, read
from patchq.errors import PatchqError
from tests.support.history import git

FACTS = {"tree": "1" * 40, "base/release": "0.32.0", "component/b12x/version": "1.5.1"}
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,8}", fullmatch=True)
KEYS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
VALUES = st.from_regex(r"[!-~]([ -~]{0,20}[!-~])?", fullmatch=True)


def test_one_fact_a_line_and_one_digest_over_them() -> None:
    lines = f"base/release 0.32.0\ncomponent/b12x/version 1.5.1\ntree {'1' * 40}\n"
    digest = hashlib.sha256(lines.encode()).hexdigest()
    lock = make(FACTS)
    assert lock.text.decode() == f"patchq.lock/1\ndigest {digest}\n{lines}"
    assert lock.digest == digest
    assert make(reversed(FACTS.items())).text == lock.text, "in whatever order they come"


@given(st.dictionaries(KEYS, VALUES, max_size=8))
def test_what_is_written_is_read(facts: dict[str, str]) -> None:
    lock = make(facts)
    assert parse(lock.text, "it") == lock
    assert dict(lock.facts) == facts


@pytest.mark.parametrize(
    ("key", "value"),
    [("a b", "1"), ("a", "1\n2"), ("a", ""), ("../a", "1"), ("a//b", "1"), ("a", " 1"), ("", "1")],
)
def test_what_cannot_stand_on_a_line_is_refused(key: str, value: str) -> None:
    with pytest.raises(PatchqError, match="cannot stand in a lock"):
        make({key: value})


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda text: b"", "first line"),
        (lambda text: text[:-1], "not whole"),
        (lambda text: text.replace(b"lock/1", b"lock/2"), "first line"),
        (lambda text: text.replace(b"digest ", b"digest z"), "no digest"),
        (lambda text: text.replace(b"0.32.0", b"0.33.0"), "have the digest"),
        (lambda text: text + b"a 1\n", "not sorted"),
        (lambda text: text + b"tree " + b"1" * 40 + b"\n", "twice"),
        (lambda text: text + b"\xff\n", "UTF-8"),
        (lambda text: text + b"<<<<<<< ours\n", "sorted"),
    ],
)
def test_a_damaged_lock_is_told(tmp_path: Path, spoil: object, why: str) -> None:
    (tmp_path / "runner.lock").write_bytes(spoil(make(FACTS).text))  # type: ignore[operator]
    with pytest.raises(PatchqError, match=why):
        read(tmp_path)


@given(st.binary(max_size=80) | st.text("patchq.lock/1 \ndigest0a", max_size=80).map(str.encode))
def test_anything_is_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(PatchqError):
        assert parse(data, "it").text == data


def test_what_differs_is_named() -> None:
    now = make({**FACTS, "component/b12x/version": "1.6.0", "model/m/revision": "abc"})
    without = make({key: value for key, value in now.facts if key != "tree"})
    assert differences(make(FACTS), without) == (
        Difference("component/b12x/version", "1.5.1", "1.6.0"),
        Difference("model/m/revision", None, "abc"),
        Difference("tree", "1" * 40, None),
    )
    assert differences(now, now) == ()
    assert len(differences(None, now)) == 4


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two committed locks, and a third that is not committed."""
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "upstream").mkdir()
    for number in range(3):
        lock = make({**FACTS, "number": str(number)})
        (tmp_path / "upstream/runner.lock").write_bytes(lock.text)
        if number < 2:
            git(tmp_path, "add", "-A")
            git(tmp_path, "commit", "-q", "-m", str(number))
    return tmp_path


def test_a_runner_is_found_by_the_start_of_its_digest(project: Path) -> None:
    for number in range(3):
        lock = make({**FACTS, "number": str(number)})
        assert find(project, lock.digest[:8]) == lock
    assert find(project) == make({**FACTS, "number": "2"}), "left out: the present one"


def test_a_runner_that_is_none(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(PatchqError, match="no lock has a digest that starts with 0000000"):
        find(project, "0000000")
    for word in ("abc", "nothex", "ABCD", "../../x", "f" * 65, "--all"):
        with pytest.raises(PatchqError, match="names no runner"):
            find(project, word)
    with pytest.raises(PatchqError, match=r"there is no upstream/runner\.lock"):
        find(tmp_path_factory.mktemp("empty"))


def test_a_start_that_two_runners_share(project: Path) -> None:
    start = make({**FACTS, "number": "0"}).digest[:4]
    number = next(
        number
        for number in itertools.count()
        if hashlib.sha256(f"number x{number}\n".encode()).hexdigest().startswith(start)
    )
    (project / "upstream/runner.lock").write_bytes(make({"number": f"x{number}"}).text)
    with pytest.raises(PatchqError, match="the start of 2 runners' digests") as caught:
        find(project, start)
    assert caught.value.hint == "give more letters"
