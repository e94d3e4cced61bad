"""What is recorded of a patch's pull requests, as signals.

A forge says what became of a request, not which release has it: a merged one is no more than a
hint until the history or the trees agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from patchq.judge.model import Judgement, Signal
from patchq.upstream.pulls import Pull


def signals(pulls: Iterable[tuple[Pull, str]]) -> tuple[Signal, ...]:
    """The signals of a patch's pull requests; beside each the head that the patch was made from.

    That is "" where the patch does not say.
    """
    return tuple(signal for pull, pinned in pulls for signal in _of(pull, pinned))


def _of(pull: Pull, pinned: str) -> Iterator[Signal]:
    key = pull.key
    if pull.state == "merged":
        where = f" as {pull.merge_sha[:10]}" if pull.merge_sha else ""
        yield Signal("pull-merged", "landed", f"{key} was merged{_on(pull.merged_at)}{where}", key)
    elif pull.state == "closed":
        by = f" by {pull.closed_by[:12]}" if pull.closed_by else ""
        yield Signal(
            "pull-closed", "unclear", f"{key} was closed unmerged{_on(pull.closed_at)}{by}", key
        )
    if pull.reverted_by:
        yield Signal("pull-reverted", "needed", f"{key} was taken back by {_all(pull.reverted_by)}")
    if pull.replaced_by and pull.state != "merged":
        yield Signal("pull-replaced", "unclear", f"{key} was replaced by {_all(pull.replaced_by)}")
    if pull.former_bases:
        yield Signal(
            "pull-base",
            "unclear",
            f"{key} asks for {pull.base} now, not for {pull.former_bases[-1]} any more",
            key,
        )
    start = pinned or pull.pinned or ""
    if start and pull.head_sha and start != pull.head_sha and pull.state == "open":
        forced = " (forced)" if pull.forced_at else ""
        yield Signal(
            "pull-head",
            "needed",
            f"the head of {key} moved from {start[:10]} to {pull.head_sha[:10]}{forced}:"
            f" `patchq pr refresh {key}` shows how",
            key,
        )


def updated(judgement: Judgement) -> Judgement:
    """A patch that is needed, and whose pull request went on meanwhile."""
    if judgement.verdict != "needed" or judgement.action != "keep":
        return judgement
    if not any(signal.signal == "pull-head" for signal in judgement.evidence):
        return judgement
    return replace(judgement, verdict="updated")


def _on(date: str | None) -> str:
    return f" on {date[:10]}" if date else ""


def _all(numbers: Iterable[int]) -> str:
    return ", ".join(f"#{number}" for number in numbers)
