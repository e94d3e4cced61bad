"""Answers that are a function of their question's bytes, kept beside the store.

A cache and nothing else: what cannot be read or written is computed again.
"""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

MOST = 20_000
"""Answers that are kept; the oldest go."""
PATIENCE = 2.0
"""Seconds that a write waits for another process's."""


class Memo:
    """Answers by question, in an SQLite database at `path`. Writes last once it is closed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fresh: dict[bytes, bytes] = {}
        self._base: sqlite3.Connection | None = None
        self._broken = False

    def get(self, question: bytes) -> bytes | None:
        """What is known; None where nothing is."""
        if (fresh := self._fresh.get(question)) is not None:
            return fresh
        base = self._open(make=False)
        if base is None:
            return None
        try:
            row = base.execute("SELECT answer FROM kept WHERE question = ?", (question,)).fetchone()
            return zlib.decompress(row[0]) if row else None
        except (sqlite3.Error, zlib.error, TypeError):
            self._broken = True
            return None

    def put(self, question: bytes, answer: bytes) -> None:
        self._fresh[question] = answer

    def close(self) -> None:
        """Keep what was learnt, all of it or nothing."""
        fresh, self._fresh = self._fresh, {}
        base = self._open(make=True) if fresh else self._base
        if base is None:
            return
        try:
            with base:
                base.executemany(
                    "INSERT OR REPLACE INTO kept (question, answer) VALUES (?, ?)",
                    [(question, zlib.compress(answer, 1)) for question, answer in fresh.items()],
                )
                base.execute(
                    "DELETE FROM kept WHERE place <= (SELECT max(place) FROM kept) - ?", (MOST,)
                )
        except sqlite3.Error:
            self._broken = True
        finally:
            base.close()
            self._base = None

    def _open(self, *, make: bool) -> sqlite3.Connection | None:
        if self._base is not None or self._broken or not (make or self._path.is_file()):
            return None if self._broken else self._base
        try:
            self._base = sqlite3.connect(self._path, timeout=PATIENCE)
            self._base.execute(
                "CREATE TABLE IF NOT EXISTS kept (place INTEGER PRIMARY KEY AUTOINCREMENT,"
                " question BLOB UNIQUE NOT NULL, answer BLOB NOT NULL)"
            )
        except sqlite3.Error:
            self._broken = True
            return None
        return self._base
