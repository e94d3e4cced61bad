"""Evidence on disk: `build/evidence/LOCK/smoke.json`, `bench.json`, `compare.json`.

Each is what the command of that name gives as JSON (docs/json.md), with `runner`, what it is bound
to (null: a server asked by its address), and `when` it was taken. The file before stays beside it
as `NAME.json.1`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from patchq.errors import PatchqError
from patchq.gitstore.files import write
from patchq.smoke import identity as identities
from patchq.smoke.identity import Identity

Kind = Literal["smoke", "bench", "compare"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LETTERS = 16
"""Of the runner lock's digest, that name the folder."""
_DIGEST = re.compile(rf"[0-9a-f]{{{LETTERS},64}}")
_LARGEST = 256 << 20


@dataclass(frozen=True)
class Kept:
    """A file of evidence. `sha256` is of its bytes; `runner` None: bound to nothing; `when` None:
    it does not say; `value` is the whole object."""

    kind: Kind
    path: Path
    sha256: str
    when: datetime | None
    runner: Identity | None
    value: Mapping[str, Any]


def folder(root: Path, lock_digest: str) -> Path:
    """Where the evidence of a runner lies in the project at `root`."""
    if not _DIGEST.fullmatch(lock_digest):
        raise ValueError(f"{lock_digest!r} is no digest of a runner lock")
    return root / "build" / "evidence" / lock_digest[:LETTERS]


def there(root: Path) -> list[str]:
    """The starts of the digests of the runners of which there is evidence, sorted."""
    found = (root / "build" / "evidence").glob("*")
    return sorted(path.name for path in found if _DIGEST.fullmatch(path.name))


def bound(
    identity: Identity | None, value: Mapping[str, Any], when: datetime | None = None
) -> dict[str, Any]:
    """`value` as evidence: with what it is bound to, and when it was taken (now)."""
    taken = (when or datetime.now(UTC)).isoformat(timespec="seconds")
    return {**value, "runner": identities.maybe_json(identity), "when": taken}


def keep(
    root: Path,
    identity: Identity,
    kind: Kind,
    value: Mapping[str, Any],
    *,
    out: Path | None = None,
) -> Path:
    """Write evidence where the gate looks for it, or to `out`; the file before is kept beside.

    `value` is the command's JSON object. Raises ValueError where its schema is another kind's.
    """
    if value.get("schema") != _schema(kind):
        raise ValueError(f"{value.get('schema')!r} is no evidence of the kind {kind}")
    path = out or folder(root, identity.lock) / f"{kind}.json"
    data = (json.dumps(bound(identity, value), indent=2, ensure_ascii=True) + "\n").encode()
    with suppress(FileNotFoundError):
        write(path.with_name(f"{path.name}.1"), path.read_bytes())
    write(path, data)
    return path


def load(where: Path, kind: Kind) -> Kept | None:
    """The evidence of that kind in the folder `where`; None where there is none.

    Raises PatchqError, naming the file, for what is no evidence of that kind.
    """
    path = where / f"{kind}.json"
    try:
        if path.stat().st_size > _LARGEST:
            raise _damaged(path, kind, f"it is larger than {_LARGEST >> 20} MB")
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _damaged(path, kind, f"it cannot be read: {error.strerror}") from None
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise _damaged(path, kind, "it is no JSON") from None
    if not isinstance(value, dict) or value.get("schema") != _schema(kind):
        raise _damaged(path, kind, f"its schema is not {_schema(kind)}")
    try:
        entry, told = value.get("runner"), value.get("when")
        runner = None if entry is None else identities.read(entry)
        when = None if told is None else _time(told)
    except (ValueError, TypeError, OverflowError) as error:
        raise _damaged(path, kind, f"what it is bound to is not readable: {error}") from None
    return Kept(kind, path, hashlib.sha256(data).hexdigest(), when, runner, value)


def _time(told: str) -> datetime:
    found = datetime.fromisoformat(told)
    if found.tzinfo is None:
        raise ValueError(f"{told!r:.80} has no time zone")
    return found.astimezone(UTC)


def _schema(kind: Kind) -> str:
    return f"patchq.{kind}/1"


def _damaged(path: Path, kind: Kind, why: str) -> PatchqError:
    return PatchqError(f"{path} is no evidence: {why}", f"run `patchq {kind}` again")
