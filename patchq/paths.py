"""Paths inside trees: bytes, hostile until checked, escaped when shown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from patchq.errors import PatchqError

# Lone surrogates, too: no terminal and no file in UTF-8 takes them.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
# What Windows' and macOS' file systems take for `.git` (git's own verify_path, CVE-2014-9390).
_DOT_GIT = re.compile(rb"(?is)(\.git|git~1)[ .]*(:.*)?")
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


def show(text: bytes | str) -> str:
    """`text` for people: control characters and direction marks escaped, never raw."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def named(paths: Sequence[bytes], most: int = 5) -> str:
    """`paths` for a sentence: the first few, and how many more."""
    shown = ", ".join(map(show, paths[:most]))
    return f"{shown} and {len(paths) - most} more" if len(paths) > most else shown


def lossless(text: bytes) -> str:
    """`text` as a str that gives the same bytes back (JSON and file names)."""
    return text.decode("utf-8", "surrogateescape")


def is_inside(path: bytes) -> bool:
    """Whether `path` stays in its tree and names nothing of git's, on any system.

    A backslash is a plain character for git and on Unix: it is taken, but what stands between
    two of them must be harmless, too.
    """
    parts = path.split(b"/")
    return b"\0" not in path and not any(
        part in (b"", b".") or any(map(_bad, part.split(b"\\"))) for part in parts
    )


def _bad(part: bytes) -> bool:
    plain = _IGNORED_BY_HFS.sub("", lossless(part)).encode("utf-8", "surrogateescape")
    return part == b".." or bool(_DOT_GIT.fullmatch(plain))


def require_inside(path: bytes, where: str) -> None:
    """Raises PatchqError where `path` leaves its tree or names git's own files."""
    if not is_inside(path):
        raise PatchqError(
            f"{where} touches {show(path)}, which is outside the source tree or git's own",
            "correct or remove it: paths are relative, without `..` and `.git`",
        )
