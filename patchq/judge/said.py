"""What upstream's history says of a patch, in words: the signals beside a verdict."""

from __future__ import annotations

from patchq.judge.model import Landing, Past, Says, Signal
from patchq.paths import show


def named(landing: Landing) -> str:
    """A commit as people name it: its short id, and its pull request."""
    return f"{landing.commit[:10]} ({landing.pr})" if landing.pr else landing.commit[:10]


def release(landing: Landing) -> str:
    return landing.release or "upstream"


def _places(past: Past) -> str:
    return " and ".join(f"in {release(each)} as {named(each)}" for each in past.landings)


def _places_and_note(past: Past) -> str:
    if not past.twin:
        return _places(past)
    return f"{_places(past)}, which adds {show(past.twin)} as this patch does"


def _last(past: Past) -> str:
    return f"{named(past.landings[-1])} in {release(past.landings[-1])}"


def _history(past: Past, says: Says, told: str) -> Signal:
    """By the last landing."""
    return Signal("history", says, told, past.landings[-1].commit)


def as_it_is(past: Past) -> Signal:
    how = f", known by {past.named}" if past.named else ""
    return _history(past, "landed", f"landed {_places(past)}{how}")


def with_changes(past: Past) -> Signal:
    places = _places_and_note(past)
    hunks = sum(each.differs or 0 for each in past.landings)
    if hunks:
        many = "hunk" if hunks == 1 else "hunks"
        more = f"upstream's version differs from ours in {hunks} {many}, shown below"
    else:
        more = f"{past.share:.0%} of its lines stand there"
    return _history(past, "changed", f"landed with changes {places}: {more}; taking upstream's")


def rest(past: Past) -> Signal:
    places = _places_and_note(past)
    return _history(past, "partly", f"a part of it landed {places}; the rest is kept")


def very_patch(past: Past) -> Signal:
    last = past.landings[-1]
    told = f"{named(last)} is this very patch, hunk by hunk, and nothing took it back"
    return Signal("commit", "landed", told, last.commit)


def taken_out(past: Past) -> Signal:
    told = f"{_last(past)} is this very patch, but its lines were taken out again"
    return _history(past, "unclear", told)


def holds(past: Past) -> Signal:
    title = past.landings[-1].title
    return _history(past, "partly", f"{_last(past)} holds {past.share:.0%} of its lines: {title}")


def has_note(past: Past) -> Signal:
    return _history(
        past,
        "unclear",
        f"{_last(past)} adds {show(past.twin)} as this patch does, but not all of the patch stands"
        f" where it changes something: {past.landings[-1].title}",
    )


def reverted(landing: Landing, by: Landing) -> Signal:
    return Signal(
        "reverted",
        "needed",
        f"{named(landing)} brought it, {named(by)} took it back in {by.release or 'this range'}:"
        f" {by.title}",
        by.commit,
    )


def superseded(by: Landing) -> Signal:
    return Signal(
        "superseded",
        "changed",
        f"its pull request was replaced by {by.pr}, which landed in {release(by)} as"
        f" {by.commit[:10]}: {by.title}",
        by.commit,
    )
