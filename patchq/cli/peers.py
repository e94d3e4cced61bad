"""What quilt's and StGit's users type, and what it is here: for an unknown command's error."""

from __future__ import annotations

ALL = "patchq series"
PEERS = {
    "add": "no need: edit the file, `patchq refresh` takes it",
    "applied": ALL,
    "clean": "patchq delete NAME",
    "commit": "patchq refresh",
    "email": "patchq export --mbox FILE",
    "files": "patchq show NAME",
    "float": "patchq move NAME --to-top",
    "fold": "patchq import FILE",
    "header": "patchq show NAME, patchq edit NAME",
    "id": "patchq tree",
    "log": "patchq history",
    "mail": "patchq export --mbox FILE",
    "next": ALL,
    "patches": ALL,
    "prev": ALL,
    "previous": ALL,
    "pull": "patchq sync",
    "rebase": "patchq sync --onto RELEASE",
    "redo": "patchq undo ENTRY, with the undo's own number",
    "remove": "patchq split NAME --as NEW -- PATH",
    "reorder": "patchq move NAME --before OTHER",
    "sink": "patchq move NAME --before OTHER",
    "spill": "patchq split NAME --as NEW -- PATH",
    "top": "patchq status",
    "unapplied": ALL,
    "uncommit": "patchq import --git PATH A..B",
    "upgrade": "patchq sync",
}


def hint(word: str, commands: list[str]) -> str:
    """What to type in place of `word`; empty where nothing comes near."""
    from difflib import get_close_matches

    if word in PEERS:
        return f"Here it is: {PEERS[word]}"
    near = get_close_matches(word, commands, n=1)
    return f"Did you mean {near[0]}?" if near else ""
