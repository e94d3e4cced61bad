"""Diffs of one file, written by hand."""

from __future__ import annotations

from patchq.queue.diff import FileDiff, parse

OID = "1" * 40
"""What the file is afterwards."""


def diff(path: str, *hunks: str, new: bool = False) -> FileDiff:
    """One file's diff; each hunk is its lines with their signs."""
    text = f"diff --git a/{path} b/{path}\n" + ("new file mode 100644\n" if new else "")
    old = "0" * 40 if new else "2" * 40
    text += f"index {old}..{OID}" + ("\n" if new else " 100644\n")
    text += f"--- {'/dev/null' if new else f'a/{path}'}\n+++ b/{path}\n"
    for place, hunk in enumerate(hunks):
        body = hunk.splitlines()
        count = [sum(line[:1] in sides for line in body) for sides in (" -", " +")]
        start = 100 * place + (0 if new else 1)
        text += f"@@ -{start},{count[0]} +{start or 1},{count[1]} @@\n{hunk}"
    (file,) = parse(text.encode(), "test")
    return file


def new(path: str, *lines: str) -> FileDiff:
    return diff(path, "".join(f"+{line}\n" for line in lines), new=True)
