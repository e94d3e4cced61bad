"""`upstream/runner.lock`: everything that decides how a runner behaves, under one digest.

The form is `SCHEMA`, `digest HEX`, then one fact a line, `KEY VALUE`, sorted by key. The digest is
the sha256 of the lines of facts. A key is made of names that are split by `/`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from patchq.errors import PatchqError
from patchq.paths import show

FILE = "runner.lock"
SCHEMA = "patchq.lock/1"
SHORTEST = 4
"""Letters of a digest that name a runner: a lock of a repository's whole life is told by fewer."""
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+#@-]*(?:/[A-Za-z0-9][A-Za-z0-9._+#@-]*)*")
_VALUE = re.compile(r"[^\x00-\x20\x7f](?:[^\x00-\x1f\x7f]*[^\x00-\x20\x7f])?")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class RunnerLock:
    """The facts, sorted by key."""

    facts: tuple[tuple[str, str], ...]

    @cached_property
    def digest(self) -> str:
        """sha256 of the facts, in hex: the runner's identity."""
        return hashlib.sha256(self._lines()).hexdigest()

    @property
    def text(self) -> bytes:
        """The file's bytes."""
        return f"{SCHEMA}\ndigest {self.digest}\n".encode() + self._lines()

    def get(self, key: str) -> str | None:
        return dict(self.facts).get(key)

    def _lines(self) -> bytes:
        return "".join(f"{key} {value}\n" for key, value in self.facts).encode()


@dataclass(frozen=True)
class Difference:
    """One fact that two locks have otherwise; None where one has it not at all."""

    key: str
    was: str | None
    now: str | None


def make(facts: Mapping[str, str] | Iterable[tuple[str, str]]) -> RunnerLock:
    """Raises PatchqError for a key or a value that cannot stand on one line."""
    pairs = dict(facts)
    for key, value in pairs.items():
        if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise PatchqError(
                f"the fact {show(key)!r} with the value {show(value)!r} cannot stand in a lock",
                "a name has letters, digits and .+_- only, a value is one line that is not empty",
            )
    return RunnerLock(tuple(sorted(pairs.items())))


def parse(data: bytes, where: str) -> RunnerLock:
    """Raises PatchqError for what is no lock, or whose digest is not that of its facts."""
    try:
        lines = data.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise _damaged(where, "it is no text in UTF-8") from error
    if lines[0] != SCHEMA or not data.endswith(b"\n"):
        raise _damaged(where, f"it is not whole, or its first line is not {SCHEMA}")
    word, _, digest = lines[1].partition(" ") if len(lines) > 1 else ("", "", "")
    if word != "digest" or not _DIGEST.fullmatch(digest):
        raise _damaged(where, "its second line is no digest")
    pairs = [line.partition(" ")[::2] for line in lines[2:]]
    if len(dict(pairs)) != len(pairs) or pairs != sorted(pairs):
        raise _damaged(where, "its facts are not sorted, or one stands twice")
    lock = make(pairs)
    if lock.digest != digest:
        raise _damaged(where, f"its facts have the digest {lock.digest}, not {digest}")
    return lock


def read(upstream: Path) -> RunnerLock | None:
    """The lock in the folder `upstream`; None where there is none yet. Raises as `parse` does."""
    path = upstream / FILE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return parse(data, f"{upstream.name}/{FILE}")


def differences(was: RunnerLock | None, now: RunnerLock) -> tuple[Difference, ...]:
    """What `now` has otherwise than `was`, by key."""
    old, new = dict(was.facts if was else ()), dict(now.facts)
    keys = sorted(set(old) | set(new))
    return tuple(
        Difference(key, old.get(key), new.get(key)) for key in keys if old.get(key) != new.get(key)
    )


def find(root: Path, runner: str | None = None) -> RunnerLock:
    """The lock that `runner`, the start of a digest, names: the present one or a committed one.

    Without a name the present one. Raises PatchqError where none has it, several do, or the word
    is no start of a digest.
    """
    present = read(root / "upstream")
    if runner is None:
        if present is None:
            raise PatchqError(f"there is no upstream/{FILE}", "`patchq lock` writes it")
        return present
    if not re.fullmatch(rf"[0-9a-f]{{{SHORTEST},64}}", runner):
        raise PatchqError(
            f"{show(runner)!r} names no runner",
            f"give at least {SHORTEST} letters of a lock's digest (0-9, a-f); `patchq lock` shows"
            " the present one",
        )
    found = {lock.digest: lock for lock in _known(root, present) if lock.digest.startswith(runner)}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise PatchqError(
            f"{runner} is the start of {len(found)} runners' digests:"
            f" {', '.join(sorted(each[:16] for each in found))}",
            "give more letters",
        )
    raise PatchqError(
        f"no lock has a digest that starts with {runner}, neither the present one nor a committed"
        " one",
        "`patchq lock` shows the present one, `git log upstream/runner.lock` the older ones",
    )


def _known(root: Path, present: RunnerLock | None) -> Iterable[RunnerLock]:
    from patchq.gitstore.project import versions

    if present is not None:
        yield present
    for data in versions(root, f"upstream/{FILE}"):
        try:
            yield parse(data, f"a committed upstream/{FILE}")
        except PatchqError:
            continue  # one of another form, or damaged then, is no answer


def _damaged(where: str, why: str) -> PatchqError:
    return PatchqError(
        f"{where} is damaged: {why}",
        "run `patchq lock`, which writes it anew; git knows the last good one",
    )
