"""Names that some system takes for another place or for git's own are known, and shown safely."""

from __future__ import annotations

import pytest

from patchq.errors import PatchqError
from patchq.paths import is_inside, require_inside, show


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "/a", "a/", "a//b", ".", "./a", "a/./b", "..", "../a", "a/../b", "a/..", "a\0b",
        ".git", "a/.GiT/hooks/x", ".git ", ".git./x", ".git . /x", "GIT~1/x", ".git:x",
        ".git::$INDEX_ALLOCATION/x", ".git:a\nb", ".g\u200cit/x", "\ufeff.gIt", "a/.git\u202e . /x",
        "a\\.git\\x", "..\\x", "a\\..",
    ],
)  # fmt: skip
def test_outside(path: str) -> None:
    assert not is_inside(path.encode())
    with pytest.raises(PatchqError, match="outside the source tree"):
        require_inside(path.encode(), "it")


@pytest.mark.parametrize(
    "path",
    [
        "a", "a/b", ".gitignore", ".github/x", "git", "git~2", "git~10", ".git-x", "x.git", "...",
        "a..b", "..gitx", "C:", "a\\b", "a\\\\b\\", ".gi\u0142", "\u200c", "a\nb", ".git\n",
    ],
)  # fmt: skip
def test_inside(path: str) -> None:
    require_inside(path.encode(), "it")
    require_inside(b"\xe4/" + path.encode(), "it")


def test_what_is_shown() -> None:
    assert show(b"a\n\x1b[31m") == r"a\n\x1b[31m"
    assert show("é\n\udce4\u202e".encode("utf-8", "surrogateescape")) == r"é\n\xe4\u202e"
