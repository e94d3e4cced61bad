"""What upstream's history adds to what the trees say: the verdict on both.

History alone never drops: a commit that holds a patch, and no later one that takes it back, is one
signal; that the trees agree is the other. On replays of real histories one commit with 85 % of a
patch's lines, or with half of them where upstream's winning text leaves nothing of it, was the
landing each time.
"""

from __future__ import annotations

from dataclasses import replace

from patchq.judge import said
from patchq.judge.change import FEW
from patchq.judge.history import HALF
from patchq.judge.model import (
    Action,
    FileSeen,
    Judgement,
    Landing,
    Observation,
    Past,
    Signal,
    VerdictWord,
)
from patchq.judge.twin import TEXT, brought

MOST = 0.85
"""Share of a patch's lines from which one commit is its landing, whatever the trees lack."""
SOME = 0.25
"""Share of a file's lines from which the landing is about that part of the patch."""
SPARE = 0.01
"""Share of a patch's lines that may be left over in files that the landing has."""
ALL = 1_000_000
"""Lines: a change of its own."""
GONE = "deleted upstream"
"""The conflict of a file that upstream has no more, at least under this name."""


def weigh(seen: Observation, plain: Judgement) -> Judgement:
    """The verdict of the trees, `plain`, with the history beside it."""
    past = seen.past
    if past is None or seen.unit:
        return plain
    files = [file for file in seen.files if file.merge != "noop"]
    if not files:
        return plain
    if past.reverted is not None:
        return _reverted(past, past.reverted, files, plain)
    if past.landings:
        plain = _landed(past, files, plain)
    if past.superseded is not None and plain.action != "drop":
        return _superseded(past.superseded, files, plain)
    return plain


def _landed(past: Past, files: list[FileSeen], plain: Judgement) -> Judgement:
    torn = [file for file in files if file.merge == "conflict"]
    gone = not any(_at_its_place(file) for file in files)
    if gone and not past.named and not past.rewritten and _is_exact(past):
        return _with(plain, "uncertain", "ask", said.taken_out(past))
    if plain.verdict == "landed" or all(file.merge == "empty" for file in files):
        if plain.verdict == "landed" or past.named or past.share >= HALF:
            return _with(plain, "landed", "drop", said.as_it_is(past))
    elif _is_landing(past, files, torn):
        if not _is_exact(past):
            return _with(plain, "landed-with-changes", "drop", said.with_changes(past))
        made = _with(plain, "landed", "drop", said.very_patch(past))
        return _with(made, "landed", "drop", said.as_it_is(past))
    elif plain.action == "drop":
        return _with(plain, plain.verdict, "drop", said.with_changes(past))
    elif past.twin and past.whole and torn:
        return _by_its_note(past, files, plain)
    elif past.named or (past.share >= HALF and any(_at_its_place(file) for file in files)):
        return _in_part(past, torn, plain)
    return _with(plain, plain.verdict, plain.action, said.holds(past))


def _is_landing(past: Past, files: list[FileSeen], torn: list[FileSeen]) -> bool:
    """Whether the landing brought the patch as a whole, though in other words."""
    if past.named and past.whole:
        # A number that stands for something else has no line and no path in common.
        return max(past.share, past.unit) > 0 or bool(past.paths)
    if not past.whole:
        return False
    if _is_exact(past):
        return True
    if not any(_at_its_place(file) for file in files):
        return False
    wins = bool(torn) and all(file.wins_empty or _went_later(file, past) for file in torn)
    lines = sum(file.lines for file in files)
    if sum(_left(file, past) for file in files) > SPARE * lines:
        return False
    if past.lines < FEW:
        return past.share >= 1 and wins and past.stands >= HALF
    settled = all(file.merge == "empty" or file.path in past.restated for file in files)
    return past.share >= MOST or (past.share >= HALF and (wins or settled))


def _by_its_note(past: Past, files: list[FileSeen], plain: Judgement) -> Judgement:
    """A note tells which commit the landing is, the places that it changes how much it brought."""
    there = brought(past, files)
    if all(file.path in there for file in files):
        return _with(plain, "landed-with-changes", "drop", said.with_changes(past))
    torn = tuple(file.path for file in files if file.merge == "conflict")
    if there.issuperset(torn):
        made = _with(plain, "partly-landed", "shrink", said.rest(past))
        return replace(made, yields=torn)
    return _with(plain, "uncertain", "ask", said.has_note(past))


def _is_exact(past: Past) -> bool:
    """Whether a commit makes the patch's very hunks, context and all."""
    return any(each.differs == 0 and each.share >= 1 for each in past.landings)


def _at_its_place(file: FileSeen) -> bool:
    """Whether upstream changed what the patch changes, where it does: else the same lines came
    to another place, as they may."""
    return file.merge in ("empty", "conflict") or bool(file.same or file.elsewhere)


def _left(file: FileSeen, past: Past) -> int:
    """About how many lines of a file are still to be done, for all that the landing did.

    Where review changed a hunk, it stands in conflict with upstream's; what merges cleanly, stands
    nowhere upstream and is not in the landing either is a change of its own.
    """
    held = past.held.get(file.path, 0.0)
    missing = _missing(file, past)
    if file.merge == "empty" or file.path in past.restated or _went_later(file, past):
        return 0
    if held < SOME or (file.kind == GONE and file.path in past.moved):
        return ALL
    if file.merge == "clean":
        if file.added and held >= HALF:
            return 0  # upstream has it under another name
        if file.atoms and file.same == file.atoms:
            return ALL  # of its text nothing is left, so its mode is
        return min(missing, max(file.lines - file.found, 0) if file.lines else missing)
    if file.wins_empty:
        return 0
    if _is_torn_text(file):
        return min(missing, file.clear)
    return 0 if held >= MOST else ALL


def _went_later(file: FileSeen, past: Past) -> bool:
    """Whether upstream took the landing into the file before it took the file away.

    A file that has only another name still lacks what the landing lacks.
    """
    if file.kind != GONE:
        return False
    if file.path in past.moved:
        return past.moved[file.path]
    return file.path in past.paths and past.held.get(file.path, 0.0) >= HALF


def _missing(file: FileSeen, past: Past) -> int:
    """About how many lines of a file the landing does not have."""
    return round((1 - past.held.get(file.path, 0.0)) * max(file.lines, file.atoms))


def _unseen(file: FileSeen, past: Past) -> int:
    """About how many lines of a torn file are neither in the landing nor clear of upstream's."""
    return _missing(file, past) - file.clear


def _is_torn_text(file: FileSeen) -> bool:
    return file.kind in TEXT


def _in_part(past: Past, torn: list[FileSeen], plain: Judgement) -> Judgement:
    """Some of it landed: upstream's text wins where the landing was, the rest is carried on.

    Where another part of the patch is still needed, only if it stands clear of upstream's changes:
    what conflicts would be lost unseen.
    """
    enough = HALF if past.named else MOST
    yields = [
        file.path
        for file in torn
        if _is_torn_text(file)
        and past.held.get(file.path, 0.0) >= enough
        and ((past.whole and file.wins_empty) or _unseen(file, past) <= max(1, SPARE * file.lines))
    ]
    if len(yields) == len(torn):
        made = _with(plain, "partly-landed", "shrink", said.rest(past))
        return replace(made, yields=tuple(yields))
    unsure = past.share >= HALF and not past.named
    word: VerdictWord = "uncertain" if unsure and plain.action == "ask" else plain.verdict
    return _with(plain, word, plain.action, said.holds(past))


def _reverted(past: Past, by: Landing, files: list[FileSeen], plain: Judgement) -> Judgement:
    landing = past.landings[-1]
    told = said.reverted(landing, by)
    if plain.verdict == "landed" and all(_verbatim(file) for file in files):
        # Whatever the words say: upstream's text is the patched one, line by line.
        return _with(plain, "landed", "drop", told)
    if plain.action == "drop" or plain.verdict == "uncertain":
        return _with(plain, "uncertain", "ask", told)
    return _with(plain, "reverted", plain.action, told)


def _verbatim(file: FileSeen) -> bool:
    return file.merge == "empty" and (
        (bool(file.atoms) and file.same == file.atoms)
        or (file.lines >= FEW and file.found >= file.lines)
    )


def _superseded(by: Landing, files: list[FileSeen], plain: Judgement) -> Judgement:
    told = said.superseded(by)
    torn = any(file.merge == "conflict" for file in files)
    if by.share >= HALF or (torn and by.share >= SOME):
        return _with(plain, "superseded", "drop", told)
    return replace(_with(plain, "superseded", "ask", told), conflicts=plain.conflicts)


def _with(plain: Judgement, verdict: VerdictWord, action: Action, said: Signal) -> Judgement:
    conflicts = () if action in ("drop", "shrink") else plain.conflicts
    return replace(
        plain,
        verdict=verdict,
        action=action,
        evidence=(said, *plain.evidence),
        conflicts=conflicts,
    )
