"""Bisection and lines of commits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from patchq.gitstore.log import Commit
from patchq.gitstore.store import Change
from patchq.judge.causes import first_bad, line, touching


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
def test_the_first_bad_one(case: tuple[int, int]) -> None:
    count, wanted = case
    asked: list[int] = []

    def is_bad(at: int) -> bool:
        asked.append(at)
        return at >= wanted

    assert first_bad(count, is_bad, lambda: False) == wanted
    assert len(asked) <= count.bit_length() + 1


def test_none_is_bad() -> None:
    assert first_bad(0, lambda _: True, lambda: True) is None
    assert first_bad(5, lambda _: False, lambda: False) is None


def test_bad_from_the_start() -> None:
    """A release branch had what the line lacked at first: the last turn counts."""
    states = [True, True, False, False, True, True]
    assert first_bad(6, states.__getitem__, lambda: True) == 4
    assert first_bad(3, lambda _: True, lambda: True) == 0


def commit(oid: str, *parents: str, path: bytes = b"a") -> Commit:
    change = Change("M", path, path, "100644", "100644", "0", "1")
    return Commit(oid, parents, "", "", "", "", (change,))


def test_the_line_of_first_parents() -> None:
    known = {c.id: c for c in (commit("2", "1"), commit("3", "2", "x"), commit("x", "1"))}
    assert [each.id for each in line(known, "3")] == ["2", "3"]


def test_what_touches_a_path() -> None:
    chain = [
        commit("1", path=b"a/b"),
        commit("2", path=b"a/bc"),
        commit("3", path=b"a"),
        commit("4", path=b"a/b/c"),
    ]
    assert [each.id for each in touching(chain, [b"a/b"])] == ["1", "3", "4"]
