"""Search the files of a tree, which nobody has checked out."""

from __future__ import annotations

from patchq.gitstore.store import Store


def files_with(store: Store, tree: str, pattern: str, glob: str) -> list[bytes]:
    """Paths of `tree` that match `glob` and have a line that matches the extended `pattern`."""
    args = ["grep", "-l", "-z", "-E", "--no-color", "-e", pattern, tree, "--", glob]
    found = store.git(args, ok=(0, 1)).out.split(b"\0")
    return [each.partition(b":")[2] for each in found if each]
