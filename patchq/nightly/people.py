"""What is left to do until people are told of a night: from what stands on the forge. Pure.

The plan has no memory but the nights' own records. What was not done (no network, a lost answer, a
process killed) is done by the next night, since it does not stand there; what stands as it should
is not written again. What people did is theirs: their commits, their words outside of the markers,
their titles, and what they closed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from patchq.carry.report import SyncReport
from patchq.forge.issues import Issue
from patchq.forge.proposals import Proposal
from patchq.nightly.model import Night
from patchq.nightly.ours import BEGIN, merged, plain, room, unmarked

PULL_TITLE, ISSUE_TITLE = "Series for ", "Nightly: "
"""What patchq's own titles begin with; a title that does not is a person's, and stays."""

_TREE = "<!-- patchq:tree {} -->"
_TREES = re.compile(r"<!-- patchq:tree ([0-9a-f]{40}) -->")
_FAULT = "<!-- patchq:fault {} -->"
_OBSOLETE = "<!-- patchq:obsolete -->"
"""In a pull request that patchq closed itself: nobody refused it."""

Do = Literal[
    "push", "propose", "edit-pull", "close-pull", "open-issue", "edit-issue", "close-issue"
]


@dataclass(frozen=True)
class Text:
    title: str
    body: str


@dataclass(frozen=True)
class Tale:
    """All that a text about a night is made of. `earlier`: the oldest first, without the night.

    `since`: the day since which the fault stands. `kept_off`: the branch's tip, where people
    committed to it, so that nothing was pushed. `pull`: its number, where one is open. `target`,
    `cluster`, `profile`: what it is built for, and tried on.
    """

    night: Night
    earlier: tuple[Night, ...]
    branch: str
    into: str
    sync: SyncReport | None = None
    since: str = ""
    kept_off: str | None = None
    pull: int | None = None
    target: str = ""
    cluster: str = ""
    profile: str = ""


@dataclass(frozen=True)
class Overdue:
    """What the alarm is about: `last` is the last night that came to an end, None without one.

    `unfinished`: the nights after it. Ages in hours.
    """

    queue: str
    hours: float
    limit: float
    last: Night | None
    unfinished: tuple[Night, ...] = ()


@dataclass(frozen=True)
class Words:
    """The texts, from render (`patchq.render.night_words.WORDS`); a number bounds characters."""

    pull: Callable[[Tale, int], Text]
    issue: Callable[[Tale, int], Text]
    repaired: Callable[[Tale], str]
    obsolete: Callable[[Tale], str]
    overdue: Callable[[Overdue, int], Text]
    young: Callable[[Night], str]


@dataclass(frozen=True)
class Stands:
    """What the forge and its repository have.

    `pulls`: of the branch, the newest first. `tip`: of the branch; None where it is not there.
    `same`: whether its files are those of the night's commit. `issue`: the one that is recorded,
    open or not, or an open one that is found by label and marker.
    """

    pulls: tuple[Proposal, ...] = ()
    tip: str | None = None
    same: bool = False
    issue: Issue | None = None

    @property
    def pull(self) -> Proposal | None:
        """The open one; a person may have turned it to another branch."""
        return next((each for each in self.pulls if each.open), None)


@dataclass(frozen=True)
class Step:
    """One change. `number`: of the issue or pull request; `title` None: it stays.

    `expected`: what the branch has to be at (None: it must not be there). `comment`: written when
    an issue or a pull request is closed.
    """

    do: Do
    number: int | None = None
    title: str | None = None
    body: str = ""
    commit: str = ""
    expected: str | None = None
    comment: str = ""


@dataclass(frozen=True)
class Plan:
    """`says`: sentences about what is left as it is, and why."""

    steps: tuple[Step, ...] = ()
    says: tuple[str, ...] = ()


def proposes(night: Night) -> bool:
    """Whether a pull request is due: it was tried, and has a series that `into` has not."""
    release = night.stage("release")
    released = release is not None and release.state == "done"
    return night.state in ("green", "red") and night.commit is not None and not released


def has_nothing(night: Night) -> bool:
    """Whether all is well with `into` as it is, so that what an earlier night proposed is over."""
    return night.state in ("green", "quiet") and night.commit is None


def plan_pull(tale: Tale, stands: Stands, words: Words) -> Plan:
    """Push and pull request: opened once, kept up to date where it is, closed when it is over."""
    night, pull, tip = tale.night, stands.pull, stands.tip
    if has_nothing(night) and pull is not None and _is_ours(tale, stands):
        body = pull.body.replace(BEGIN, f"{BEGIN}\n{_OBSOLETE}", 1)
        return Plan((Step("close-pull", pull.number, body=body, comment=words.obsolete(tale)),))
    if not proposes(night) or night.commit is None:
        return Plan()
    refused = _refused(tale, stands)
    if pull is None and refused is not None:
        return _left(f"pull request #{refused.number} has this very series, and was closed")
    steps = []
    if not stands.same:
        if _is_ours(tale, stands):
            steps.append(Step("push", commit=night.commit, expected=tip))
        else:
            tale = replace(tale, kept_off=tip)
    says = () if tale.kept_off is None else (_kept_off(tale),)
    if pull is None and tale.kept_off is not None:
        return Plan(says=says)
    tale = replace(tale, pull=pull.number if pull else None)
    standing = pull.body if pull else ""
    text = words.pull(tale, room(standing))
    mark = f"{_TREE.format(night.tree)}\n" if night.tree else ""
    body = merged(standing, f"{mark}{unmarked(text.body)}")
    if pull is None:
        steps.append(Step("propose", title=text.title, body=body))
    elif (step := edit("edit-pull", pull, PULL_TITLE, text.title, body)) is not None:
        steps.append(step)
    return Plan(tuple(steps), says)


def plan_issue(tale: Tale, stands: Stands, words: Words) -> Plan:
    """The one issue: open while the last night is red or asks, closed when a later one is good."""
    night, issue = tale.night, stands.issue
    tale = replace(tale, since=since(night, tale.earlier))
    if night.state in ("green", "quiet"):
        if issue is None or not issue.open:
            return Plan()
        return Plan((Step("close-issue", issue.number, comment=words.repaired(tale)),))
    if night.state not in ("red", "asks"):
        return Plan()
    mark = _FAULT.format(key(night))
    if issue is not None and not issue.open and mark in issue.body and _by_hand(tale, issue):
        return _left(f"issue #{issue.number} tells of this very fault, and was closed")
    there = issue if issue is not None and issue.open else None
    standing = there.body if there else ""
    text = words.issue(tale, room(standing))
    body = merged(standing, f"{mark}\n{unmarked(text.body)}")
    if (marker := issue_marker(night.queue)) not in body:
        body = f"{marker}\n{body}"
    if there is None:
        return Plan((Step("open-issue", title=text.title, body=body),))
    step = edit("edit-issue", there, ISSUE_TITLE, text.title, body)
    return Plan((step,) if step else ())


def issue_marker(queue: str) -> str:
    """The first line of the issue, by which (and its label) it is found again."""
    return f"<!-- patchq:nightly {queue} -->"


def alarm_marker(queue: str) -> str:
    return f"<!-- patchq:alarm {queue} -->"


def has_marker(issue: Issue, marker: str) -> bool:
    return issue.body.partition("\n")[0].strip() == marker


def recorded_issue(earlier: Sequence[Night]) -> int | None:
    """The number of the issue that was open last, as far as the nights know."""
    return next((each.told.issue for each in reversed(earlier) if each.told.issue), None)


def since(night: Night, earlier: Sequence[Night]) -> str:
    """The day since which nights fail in this stage; those that reached nothing do not count."""
    first = night
    for each in reversed(earlier):
        if each.state in ("incomplete", "running"):
            continue
        if each.state not in ("red", "asks") or _stage(each) != _stage(night):
            break
        first = each
    return first.began[:10]


def key(night: Night) -> str:
    """What a fault is known by: the stage, and what was tried. The same fault has the same key."""
    fault = night.fault
    patches = sorted(each.name for each in fault.culprits if each.kind == "patch") if fault else []
    tried = [night.lock] if night.lock else [night.base[1] if night.base else "", *patches]
    parts = [_stage(night), *(each or "" for each in tried)]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def _left(why: str) -> Plan:
    return Plan(says=(f"{why}: none is opened again",))


def edit(do: Do, standing: Issue | Proposal, begins: str, title: str, body: str) -> Step | None:
    """What differs; None where nothing does."""
    new = title if standing.title.startswith(begins) and standing.title != title else None
    if new is None and plain(standing.body).strip() == body.strip():
        return None
    return Step(do, standing.number, new, body)


def _is_ours(tale: Tale, stands: Stands) -> bool:
    """Whether nobody's work is lost when the branch moves from its tip.

    Every commit that a night made is one of patchq's own, also one whose push nobody could record;
    and what was merged is not lost. What the night says of itself as pushed is no record: it may
    come from another machine.
    """
    pushed = {each.told.pushed for each in tale.earlier}
    ours = pushed | {each.commit for each in (*tale.earlier, tale.night)}
    merged = {each.head_sha for each in stands.pulls if each.merged}
    return stands.tip is None or stands.tip in ours | merged


def _refused(tale: Tale, stands: Stands) -> Proposal | None:
    """A pull request with this very tree that a person closed."""
    told = {each.told.pull: each.tree for each in tale.earlier if each.told.pull}
    for pull in stands.pulls:
        if not pull.open and not pull.merged and _OBSOLETE not in pull.body:
            trees = {*_TREES.findall(pull.body), told.get(pull.number)}
            if tale.night.tree is not None and tale.night.tree in trees:
                return pull
    return None


def _kept_off(tale: Tale) -> str:
    return (
        f"{tale.branch} has commits that patchq did not make ({(tale.kept_off or '')[:12]}):"
        " nothing was pushed"
    )


def _by_hand(tale: Tale, issue: Issue) -> bool:
    """Whether a person closed it: after a good night patchq does."""
    for each in reversed(tale.earlier):
        if each.told.issue == issue.number:
            return each.state not in ("green", "quiet")
        if each.state in ("green", "quiet"):
            return False
    return True


def _stage(night: Night) -> str:
    return night.fault.stage if night.fault else ""
