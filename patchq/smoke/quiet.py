"""A server is measured by one alone: held against another bench, and only while nobody asks it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from patchq.errors import Incomplete
from patchq.smoke import metrics
from patchq.smoke.client import Client
from patchq.smoke.metrics import Metrics
from patchq.smoke.model import NotRun, Wrong
from patchq.upstream.http import redact


def counters(client: Client) -> Metrics | None:
    with suppress(NotRun, Wrong):
        return client.metrics()
    return None


def idle(client: Client) -> None:
    """Raises Incomplete where the server says that it serves others."""
    found = counters(client)
    running = (found.total(metrics.RUNNING) or 0) if found else 0
    waiting = (found.total(metrics.WAITING) or 0) if found else 0
    if running + waiting:
        raise Incomplete(
            f"{redact(client.url)} is answering {running + waiting:g} other requests",
            "measure when nobody else uses it",
        )


@contextmanager
def alone(url: str, cache: Path) -> Iterator[None]:
    """Holds `url` against another bench of this user. Raises Incomplete."""
    from filelock import FileLock, Timeout

    folder = cache / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"{sha256(url.encode()).hexdigest()[:16]}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise Incomplete(
            f"another bench is measuring {redact(url)}", "wait until it is done"
        ) from None
    try:
        yield
    finally:
        lock.release()
