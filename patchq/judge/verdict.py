"""From signals to a verdict. Never drop on one signal; never guess where signals disagree.

The thresholds come from replays of real histories (299 patches of three projects): a merge in
which upstream wins every conflict and leaves nothing was wrong on its own in 4 of 100, never
where most of the added lines stood upstream as well.
"""

from __future__ import annotations

from dataclasses import replace

from patchq.judge.model import Conflict, FileSeen, Judgement, Observation, Signal
from patchq.judge.past import weigh
from patchq.judge.pulls import updated
from patchq.paths import show

MOST = 0.8
"""Share of the added lines, in every file, from which a conflict is upstream's wording of ours."""
HALF = 0.5
"""Share from which it may be, so that a person decides."""

FEW = 3
"""Added lines from which it is no chance that upstream added them all as well."""
WORTH_SAYING = 0.25
"""A lower share is chance: brackets and `return` stand everywhere."""


def signals(seen: Observation) -> tuple[Signal, ...]:
    """Every observation of `seen` as a signal, in a fixed order."""
    files = [file for file in seen.files if file.merge != "noop"]
    found = [
        _merge(files),
        _patch_id(files),
        _lines(files),
        _reverse(files),
        _modes(files),
        _wins(files),
        _elsewhere(files),
        _doubles(files),
        _moved(files),
        _unit(seen),
    ]
    return (*(signal for signal in found if signal), *seen.extra)


def judge(seen: Observation) -> Judgement:
    """The verdict on one patch from what was seen of it: trees, then history, then the forge."""
    return updated(_doubted(weigh(seen, _by_trees(seen))))


def _doubted(judgement: Judgement) -> Judgement:
    """A patch whose own check fails without it does not go unasked."""
    if judgement.action != "drop" or not any(
        signal.signal == "check" and signal.says == "needed" for signal in judgement.evidence
    ):
        return judgement
    return replace(judgement, verdict="uncertain", action="ask")


def _by_trees(seen: Observation) -> Judgement:
    evidence = signals(seen)
    files = [file for file in seen.files if file.merge != "noop"]
    conflicts = tuple(Conflict(file.path, file.kind) for file in files if file.merge == "conflict")
    names = {signal.signal for signal in seen.extra}
    said = {signal.says for signal in seen.extra}
    if seen.unit:
        return Judgement("landed-with-changes" if seen.unit_changed else "landed", "drop", evidence)
    if not files:
        return Judgement("needed", "keep", evidence)
    if conflicts:
        return _conflicting(files, conflicts, evidence, merged="pull-merged" in names)
    if all(_gone_in(file) for file in files):
        if all(_confirmed(file) for file in files) or "landed" in said:
            return Judgement("landed", "drop", evidence)
        return Judgement("uncertain", "ask", evidence)
    if any(_twice(file) for file in files):
        return Judgement("uncertain", "ask", evidence)
    partly = [file for file in files if _gone_in(file) or file.same or file.elsewhere]
    if partly:
        if all(_confirmed(file) for file in partly if _gone_in(file)):
            return Judgement("partly-landed", "shrink", evidence)
        return Judgement("uncertain", "ask", evidence)
    return Judgement("needed", "keep", evidence)


def _conflicting(
    files: list[FileSeen],
    conflicts: tuple[Conflict, ...],
    evidence: tuple[Signal, ...],
    *,
    merged: bool,
) -> Judgement:
    if all(file.kind == "deleted upstream" for file in files if file.merge == "conflict"):
        return Judgement("gone", "ask", evidence, conflicts)
    # Upstream's wording may win only where nothing of the patch would be lost silently: no part
    # of it may be left over, and the lines must be there.
    left_over = any(file.merge == "clean" for file in files)
    share = min(_share(file) for file in files)
    lines = sum(file.lines for file in files)
    wins = all(file.wins_empty or file.merge != "conflict" for file in files)
    if wins and not left_over and lines:
        if share >= (HALF if merged else MOST):
            return Judgement("landed-with-changes", "drop", evidence)
        if share >= HALF:
            return Judgement("uncertain", "ask", evidence, conflicts)
    return Judgement("needed", "ask", evidence, conflicts)


def _twice(file: FileSeen) -> bool:
    """Whether keeping it may put upstream's own lines there a second time.

    flashinfer #3318: a block of CODEOWNERS landed a few lines further down, and merged cleanly.
    """
    if file.elsewhere or file.merge != "clean":
        return False
    return bool(file.doubles) or (file.lines >= FEW and file.found == file.lines and not file.same)


def _share(file: FileSeen) -> float:
    """Share of the added lines that upstream added too; without added lines what the merge says."""
    if file.lines:
        return file.found / file.lines
    return 1.0 if _gone_in(file) else 0.0


def _gone_in(file: FileSeen) -> bool:
    """Nothing of the patch is left to do in this file."""
    return file.merge == "empty"


def _confirmed(file: FileSeen) -> bool:
    """A second, independent signal says that upstream has this file's change."""
    if file.mode_only or not file.atoms:
        return file.upstream_changed
    return (
        file.same == file.atoms or file.reverse or (bool(file.lines) and file.found >= file.lines)
    )


def _merge(files: list[FileSeen]) -> Signal | None:
    if not files:
        return Signal("merge", "needed", "the patch changes nothing by itself")
    empty = [file for file in files if file.merge == "empty"]
    torn = [file for file in files if file.merge == "conflict"]
    if torn:
        names = ", ".join(f"{show(file.path)} ({file.kind})" for file in torn)
        return Signal("merge", "unclear", f"conflicts in {names}")
    if len(empty) == len(files):
        return Signal("merge", "landed", "the three-way merge leaves upstream's text as it is")
    if empty:
        return Signal(
            "merge", "partly", f"upstream has it whole in {_some(empty)}, not in the other files"
        )
    if any(file.elsewhere for file in files):
        return Signal("merge", "unclear", "it merges cleanly, but parts of it would stand twice")
    if any(file.same for file in files):
        return Signal("merge", "partly", "merges cleanly, without what upstream has already")
    return Signal("merge", "needed", "merges cleanly: upstream does not have it")


def _patch_id(files: list[FileSeen]) -> Signal | None:
    atoms = sum(file.atoms for file in files)
    same = sum(file.same for file in files)
    if not same:
        return None
    says = "landed" if same == atoms else "partly"
    return Signal(
        "patch-id",
        "landed" if says == "landed" else "partly",
        f"{same} of {atoms} changes stand upstream verbatim, at the same place",
    )


def _lines(files: list[FileSeen]) -> Signal | None:
    counted = [file for file in files if file.lines and file.upstream_changed]
    if not any(file.found for file in counted):
        return None
    total = sum(file.lines for file in counted)
    found = sum(file.found for file in counted)
    if found < WORTH_SAYING * total:
        return None
    least = min(counted, key=_share)
    detail = f"{found} of {total} added lines stand upstream"
    if len(counted) > 1:
        detail += f" (least in {show(least.path)}: {least.found} of {least.lines})"
    share = _share(least)
    return Signal("lines", "landed" if share >= MOST else "partly", detail)


def _reverse(files: list[FileSeen]) -> Signal | None:
    hits = [file for file in files if file.reverse]
    if not hits:
        return None
    whole = len(hits) == len(files)
    return Signal(
        "reverse",
        "landed" if whole else "partly",
        f"it can be taken out of upstream's text in {_some(hits)}, and not be put in",
    )


def _modes(files: list[FileSeen]) -> Signal | None:
    hits = [file for file in files if file.merge == "empty" and _changed_whole(file)]
    if not hits:
        return None
    return Signal(
        "upstream-changed",
        "landed" if len(hits) == len(files) else "partly",
        f"upstream gave {_some(hits)} the same mode or whole content",
    )


def _changed_whole(file: FileSeen) -> bool:
    """Upstream changed what the patch changes otherwise than line by line."""
    return file.upstream_changed and (file.mode_only or not file.atoms)


def _wins(files: list[FileSeen]) -> Signal | None:
    torn = [file for file in files if file.merge == "conflict"]
    if not torn:
        return None
    if all(file.wins_empty for file in torn):
        return Signal(
            "upstream-wins", "changed", "nothing is left of it where upstream's text wins"
        )
    return Signal("upstream-wins", "needed", "parts of it are left even where upstream's text wins")


def _elsewhere(files: list[FileSeen]) -> Signal | None:
    hits = [file for file in files if file.elsewhere]
    if not hits:
        return None
    blocks = sum(file.elsewhere for file in hits)
    return Signal(
        "elsewhere",
        "landed" if all(_gone_in(file) for file in files) else "partly",
        f"upstream added {blocks} of its blocks verbatim at another place of {_some(hits)}",
    )


def _doubles(files: list[FileSeen]) -> Signal | None:
    names = sorted({name for file in files for name in file.doubles})
    if not names:
        return None
    return Signal("duplicates", "changed", f"with it, {', '.join(names)} would be defined twice")


def _moved(files: list[FileSeen]) -> Signal | None:
    moved = [file for file in files if file.new_path != file.path]
    if not moved:
        return None
    return Signal(
        "moved",
        "needed",
        "; ".join(f"{show(file.path)} is now {show(file.new_path)}" for file in moved),
    )


def _unit(seen: Observation) -> Signal | None:
    if not seen.unit:
        return None
    how = "in other words" if seen.unit_changed else "as it is"
    return Signal("unit", "landed", f"upstream has {', '.join(seen.unit)} as one change, {how}")


def _some(files: list[FileSeen]) -> str:
    names = [show(file.path) for file in files]
    return (
        ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:3])} and {len(names) - 3} more"
    )
