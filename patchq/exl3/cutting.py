"""The copying of all shards, a few at once, with one account of the bytes."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

from patchq.exl3.copying import copy
from patchq.exl3.layout import Layout, lay_out
from patchq.exl3.model import Plan, Shard
from patchq.exl3.partial import Partial
from patchq.progress import Progress

OFTEN = 0.1
"""Seconds between two steps of the progress."""


class _Stopped(BaseException):
    """Another thread failed, or the user stops: not an error of this one."""


class Cutting:
    """The copying of all shards, by a few threads, with one account of the bytes."""

    def __init__(
        self,
        partial: Partial,
        plan: Plan,
        layout: Layout,
        progress: Progress,
        total: int,
        done: int,
        *,
        sync: bool,
    ) -> None:
        self.total = total
        self.done = done
        self._partial = partial
        self._plan = plan
        self._layout = layout
        self._progress = progress
        self._begin = done
        self._sync = sync
        self._started = time.monotonic()
        self._told = 0.0
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._running = 0
        self._quiet = threading.Condition()

    def run(self, shards: Sequence[Shard], threads: int) -> None:
        pool = ThreadPoolExecutor(max_workers=max(1, threads))
        try:
            waiting: list[Future[None]] = [pool.submit(self._shard, shard) for shard in shards]
            finished, _ = wait(waiting, return_when=FIRST_EXCEPTION)
            problems = [each.exception() for each in finished if not each.cancelled()]
        finally:
            self._end(pool)
        for problem in problems:
            if problem is not None and not isinstance(problem, _Stopped):
                raise problem

    def _shard(self, shard: Shard) -> None:
        with self._quiet:
            if self._stop.is_set():
                raise _Stopped
            self._running += 1
        try:
            self._cut(shard)
        finally:
            with self._quiet:
                self._running -= 1
                self._quiet.notify_all()

    def _cut(self, shard: Shard) -> None:
        job = lay_out(self._plan, shard, self._layout)
        files = [output.file for output in job.outputs]
        copy(job, [self._partial.part(file) for file in files], self._tell, sync=self._sync)
        for file in files:
            self._partial.finish(file)

    def _end(self, pool: ThreadPoolExecutor) -> None:
        """Not before the last shard is let go of, however often Ctrl-C is pressed.

        The caller lets go of the folder's lock next: a thread that went on would write into the run
        of another. They are counted, not joined: Python 3.11 takes a thread for ended once a join
        was interrupted (the `except` of Thread._wait_for_tstate_lock).
        """
        impatient: KeyboardInterrupt | None = None
        while True:
            try:
                with self._quiet:
                    self._stop.set()
                    self._quiet.wait_for(lambda: not self._running)
                pool.shutdown(wait=False, cancel_futures=True)
                break
            except KeyboardInterrupt as again:
                impatient = again
        if impatient is not None:
            raise impatient

    def _tell(self, count: int) -> None:
        if self._stop.is_set():
            raise _Stopped
        with self._lock:
            self.done += count
            now = time.monotonic()
            if now - self._told < OFTEN:
                return
            self._told = now
            rate = (self.done - self._begin) / max(now - self._started, 1e-6)
            left = (self.total - self.done) / max(rate, 1.0)
            what = f"cutting, {rate / 1e6:.0f} MB/s, {_duration(left)} left"
            self._progress.step(what, self.done, self.total, "B")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
