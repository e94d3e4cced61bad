"""Start a call now and take its result later: for work that waits on another process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def ahead(call: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """Run `call` in a thread; what is yielded gives its result, or raises what it raised."""
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()

    def result() -> T:
        thread.join()
        if errors:
            raise errors[0]
        return results[0]

    try:
        yield result
    finally:
        thread.join()
