"""What upstream's history says of a patch, in words: the signals beside a verdict."""

from __future__ import annotations

from patchq.judge.model import Landing, Past, Signal
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


def as_it_is(past: Past) -> Signal:
    how = f", known by {past.named}" if past.named else ""
    return Signal("history", "landed", f"landed {_places(past)}{how}", past.landings[-1].commit)


def with_changes(past: Past) -> Signal:
    last = past.landings[-1]
    places = _places_and_note(past)
    hunks = sum(each.differs or 0 for each in past.landings)
    if hunks:
        many = "hunk" if hunks == 1 else "hunks"
        more = f"upstream's version differs from ours in {hunks} {many}, shown below"
    else:
        more = f"{past.share:.0%} of its lines stand there"
    return Signal(
        "history",
        "changed",
        f"landed with changes {places}: {more}; taking upstream's",
        last.commit,
    )


def rest(past: Past) -> Signal:
    return Signal(
        "history",
        "partly",
        f"a part of it landed {_places_and_note(past)}; the rest is kept",
        past.landings[-1].commit,
    )


def very_patch(past: Past) -> Signal:
    last = past.landings[-1]
    told = f"{named(last)} is this very patch, hunk by hunk, and nothing took it back"
    return Signal("commit", "landed", told, last.commit)


def taken_out(past: Past) -> Signal:
    last = past.landings[-1]
    return Signal(
        "history",
        "unclear",
        f"{named(last)} in {release(last)} is this very patch, but its lines were taken out again",
        last.commit,
    )


def holds(past: Past) -> Signal:
    last = past.landings[-1]
    return Signal(
        "history",
        "partly",
        f"{named(last)} in {release(last)} holds {past.share:.0%} of its lines: {last.title}",
        last.commit,
    )


def has_note(past: Past) -> Signal:
    last = past.landings[-1]
    return Signal(
        "history",
        "unclear",
        f"{named(last)} in {release(last)} adds {show(past.twin)} as this patch does, but not all"
        f" of the patch stands where it changes something: {last.title}",
        last.commit,
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
