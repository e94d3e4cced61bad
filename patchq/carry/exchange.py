"""Changes of the file system in small steps: exchange two folders, write, link, sync, remove.

Everything that the journal does to a disk goes through here. Each function raises the
`OSError` of the call that failed.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from errno import (
    EACCES,
    EDQUOT,
    EEXIST,
    EINVAL,
    ENOSPC,
    ENOSYS,
    ENOTEMPTY,
    ENOTSUP,
    EOPNOTSUPP,
    EPERM,
    EROFS,
)
from pathlib import Path

from patchq.errors import PatchqError

_SWAP = 2
"""RENAME_EXCHANGE of Linux (renameat2(2)) and RENAME_SWAP of macOS (renamex_np(2))."""
_AT_FDCWD = -100
_UNSUPPORTED = frozenset({ENOSYS, EINVAL, ENOTSUP, EOPNOTSUPP})
_SYNC_THREADS = 8
_FEW = 32

NOT_A_FILE = "not a regular file"


_REMEDIES = {
    ENOSPC: "free some space on that disk",
    EDQUOT: "free some of your disk quota",
    EROFS: "make that file system writable",
    EACCES: "make it writable for you",
    EPERM: "make it writable for you",
}


class ExchangeUnsupported(Exception):
    """This system or file system cannot exchange two entries in one call."""


def swap(a: Path, b: Path) -> None:
    """Exchange the entries `a` and `b` (both exist, one file system) in one call.

    Raises ExchangeUnsupported where that is not to be had, OSError where it failed.
    """
    # The call goes around Python's own audit events: whoever watches must hear of it.
    sys.audit("patchq.exchange", str(a), str(b))
    import ctypes

    source, target = os.fsencode(a), os.fsencode(b)
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        if sys.platform == "darwin":
            failed = libc.renamex_np(source, target, ctypes.c_uint(_SWAP))
        else:
            failed = libc.renameat2(_AT_FDCWD, source, _AT_FDCWD, target, ctypes.c_uint(_SWAP))
    except AttributeError as error:
        raise ExchangeUnsupported("the C library has no call for it") from error
    if failed:
        code = ctypes.get_errno()
        if code in _UNSUPPORTED:
            raise ExchangeUnsupported(os.strerror(code))
        raise OSError(code, os.strerror(code), str(a), None, str(b))


@contextmanager
def explained(outcome: str) -> Iterator[None]:
    """Turn the `OSError` of a disk that refuses into a sentence; `outcome` ends the hint."""
    try:
        yield
    except OSError as error:
        where = os.fsdecode(error.filename) if error.filename is not None else "a file"
        remedy = _REMEDIES.get(error.errno or 0, "see to that file")
        raise PatchqError(
            f"{where} cannot be written: {(error.strerror or str(error)).lower()}",
            f"{remedy}; {outcome}",
        ) from error


def write_new(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file that does not exist yet; `mode` None: what the umask leaves of 666."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(path, flags, 0o666 if mode is None else mode)
    try:
        if mode is not None and stat.S_IMODE(os.fstat(handle).st_mode) != mode:
            os.fchmod(handle, mode)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise
    finally:
        os.close(handle)


def sync(paths: Iterable[Path]) -> None:
    """Wait until the files and folders are on the disk.

    Several at a time: a disk that is asked for many at once joins them in one commit.
    """
    waiting = list(paths)
    if len(waiting) <= _FEW:
        for path in waiting:
            _sync_one(path)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_SYNC_THREADS) as pool:
        list(pool.map(_sync_one, waiting))


def _sync_one(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:  # some file systems cannot sync a folder
            error.filename = str(path)
            raise
    finally:
        os.close(handle)


def sha256(data: bytes) -> str:
    """The hexadecimal digest that the journal knows contents by."""
    return hashlib.sha256(data).hexdigest()


def state(path: Path) -> str | None:
    """The sha256 of a file, None where there is none, NOT_A_FILE for a folder, link or device."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return sha256(path.read_bytes()) if stat.S_ISREG(found.st_mode) else NOT_A_FILE


def pack(bodies: Mapping[str, bytes]) -> tuple[bytes, dict[str, tuple[int, int]]]:
    """Contents (by sha256), compressed, as one file: its bytes, and where in it each stands."""
    packed = bytearray()
    places: dict[str, tuple[int, int]] = {}
    for key, body in bodies.items():
        small = zlib.compress(body, 1)
        places[key] = (len(packed), len(small))
        packed += small
    return bytes(packed), places


def unpack(path: Path, places: Mapping[str, tuple[int, int]], key: str) -> bytes:
    """One content of a packed file. Raises PatchqError where it is not there or damaged."""
    try:
        at, size = places[key]
        with path.open("rb") as packed:
            packed.seek(at)
            body = zlib.decompress(packed.read(size))
    except (KeyError, OSError, zlib.error) as error:
        raise PatchqError(f"{path} does not hold the content {key[:12]}: {error}") from error
    if sha256(body) != key:
        raise PatchqError(f"{path} is damaged: content {key[:12]} is another")
    return body


def walk(top: Path, below: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    """All entries below `top` with their '/'-separated relative paths, a folder before its content.

    Links are not followed.
    """
    with os.scandir(top) as listing:
        found = sorted(listing, key=lambda entry: entry.name)
    for entry in found:
        relative = below + entry.name
        yield relative, entry
        if entry.is_dir(follow_symlinks=False):
            yield from walk(Path(entry.path), relative + "/")


def copy_tree(
    source: Path | None, target: Path, changes: Mapping[str, tuple[bytes, int | None] | None]
) -> None:
    """Make the folder `target`: what `source` holds, with `changes` on top, on the disk.

    `changes` maps paths relative to the folder to (bytes, mode), or None for a file that goes.
    A file that is not in it is linked (the same inode), or copied with its times where the file
    system cannot link.
    """
    target.mkdir()
    modes: list[tuple[Path, int]] = []
    fresh: list[Path] = []
    for relative, entry in walk(source) if source is not None else ():
        if entry.is_dir(follow_symlinks=False):
            (target / relative).mkdir()
            modes.append((target / relative, entry.stat(follow_symlinks=False).st_mode))
        elif relative not in changes and not _link(Path(entry.path), target / relative):
            fresh.append(target / relative)
    for relative, change in changes.items():
        if change is None:
            remove_empty((target / relative).parent, stop=target)
    for relative, change in changes.items():
        if change is not None:
            path = target / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            write_new(path, *change)
            fresh.append(path)
    if source is not None:
        modes.append((target, source.stat().st_mode))
    for path, mode in reversed(modes):
        if path.is_dir() and path.stat().st_mode != mode:
            path.chmod(stat.S_IMODE(mode))
    folders = [Path(e.path) for _, e in walk(target) if e.is_dir(follow_symlinks=False)]
    sync([path for path in fresh if not path.is_symlink()] + folders + [target])


def _link(source: Path, target: Path) -> bool:
    """True if linked, False if copied."""
    try:
        os.link(source, target, follow_symlinks=False)
        return True
    except OSError as error:
        # What cannot be linked here may still be copied; a full disk or a missing file may not.
        found = source.lstat()
        if stat.S_ISLNK(found.st_mode):
            target.symlink_to(source.readlink())
            return False
        if not stat.S_ISREG(found.st_mode):
            raise error
    write_new(target, source.read_bytes(), stat.S_IMODE(found.st_mode))
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
    return False


def remove_file(path: Path) -> None:
    """Remove a file, if it is there."""
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return


def remove_tree(path: Path) -> None:
    """Remove a folder with everything below it, if it is there. Links are not followed."""
    if not path.is_dir() or path.is_symlink():
        return
    if not os.access(path, os.W_OK | os.X_OK):
        path.chmod(0o700)
    with os.scandir(path) as listing:
        found = list(listing)
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            remove_tree(Path(entry.path))
        else:
            remove_file(Path(entry.path))
    _attempt(path.rmdir)


def remove_empty(folder: Path, *, stop: Path) -> None:
    """Remove `folder` and the folders above it as long as they are empty, up to `stop`."""
    while folder != stop and stop in folder.parents:
        if not _attempt(folder.rmdir):
            return
        folder = folder.parent


def _attempt(call: Callable[[], None]) -> bool:
    """False where a folder is not empty (someone wrote there meanwhile)."""
    try:
        call()
    except FileNotFoundError:
        return True
    except NotADirectoryError:
        return False
    except OSError as error:
        if error.errno in (ENOTEMPTY, EEXIST):
            return False
        raise
    return True
