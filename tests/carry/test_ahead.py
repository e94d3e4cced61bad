"""A call that is started now and asked later."""

from __future__ import annotations

import threading

import pytest

from patchq.carry.ahead import ahead


def test_a_result() -> None:
    go = threading.Event()
    with ahead(lambda: go.wait(30)) as result:
        go.set()
        assert result() is True
        assert result() is True


def fail() -> None:
    raise ValueError("no")


def test_an_error_comes_when_it_is_asked_for() -> None:
    with ahead(fail) as result, pytest.raises(ValueError, match="no"):
        result()
    with ahead(fail):
        pass


def test_an_error_outside_waits_for_the_thread() -> None:
    done = threading.Event()
    before = threading.active_count()
    with pytest.raises(KeyError), ahead(done.set):
        raise KeyError
    assert done.is_set()
    assert threading.active_count() == before
