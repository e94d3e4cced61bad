"""The pull requests that a queue knows: tracked, named by its patches, decided upon. All pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from patchq.carry.decisions import PullDecision
from patchq.config import Track
from patchq.errors import PatchqError
from patchq.forge.model import parse_key
from patchq.queue.header import Header
from patchq.queue.patch import Patch
from patchq.upstream.pulls import Pull

PR = "Patchq-Pr"
DROP_WHEN = "Patchq-Drop-When"
_PIN = re.compile(r"(\S+)(?:\s+@\s*([0-9a-f]{40}))?")
_RULE = re.compile(r"(landed|reverted)\s+(\S+)")

Role = Literal["carries", "reverts", "waits"]
Stand = Literal["", "same", "moved", "held", "unknown"]


@dataclass(frozen=True)
class Use:
    """A patch that names a pull request. `pin` is the head that it was made from, "" if unknown.

    `role`: it carries the pull request, takes it back, or goes once that has landed.
    """

    patch: str
    file: str
    role: Role
    pin: str = ""


@dataclass(frozen=True)
class Entry:
    """One pull request as the queue knows it.

    `why` is None where it is not tracked, `pull` None where it was never seen.
    """

    key: str
    why: str | None
    uses: tuple[Use, ...] = ()
    pull: Pull | None = None
    decision: PullDecision | None = None

    @property
    def pin(self) -> str:
        """The head that is pinned: the patch's, else the one recorded when it was tracked."""
        pins = [use.pin for use in self.uses if use.role == "carries" and use.pin]
        return pins[0] if pins else (self.pull.pinned or "" if self.pull else "")

    @property
    def stand(self) -> Stand:
        """How today's head stands to the pinned one; "" where nothing is pinned."""
        head = self.pull.head_sha if self.pull else ""
        if not self.pin:
            return ""
        if not head:
            return "unknown"
        if head == self.pin:
            return "same"
        held = self.decision is not None and self.decision.answer == "hold"
        return "held" if held and self.decision and self.decision.evidence == head else "moved"


def pins(header: Header) -> dict[str, str]:
    """OWNER/REPO#N and pinned head ("" if none) of each pull request that a patch carries."""
    found: dict[str, str] = {}
    for value in header.all(PR):
        if (match := _PIN.fullmatch(value.strip())) and (key := _key(match[1])):
            found.setdefault(key, match[2] or "")
    return found


def rules(header: Header) -> list[tuple[str, str]]:
    """(landed|reverted, OWNER/REPO#N) of each rule about a pull request."""
    return [
        (match[1], key)
        for value in header.all(DROP_WHEN)
        if (match := _RULE.fullmatch(value.strip())) and (key := _key(match[2]))
    ]


def _key(text: str) -> str:
    try:
        return "{}#{}".format(*parse_key(text))
    except PatchqError:
        return ""


def uses_of(patch: Patch) -> dict[str, Use]:
    found = {
        key: Use(patch.name, patch.file, "reverts" if rule == "reverted" else "waits")
        for rule, key in rules(patch.header)
    }
    for key, pin in pins(patch.header).items():
        found[key] = Use(patch.name, patch.file, "carries", pin)
    return found


def book(
    track: Iterable[Track],
    series: Iterable[Patch],
    recorded: Mapping[str, Pull],
    decided: Mapping[str, PullDecision],
) -> tuple[Entry, ...]:
    """Every pull request that is tracked, named by a patch, or decided upon, by repository."""
    whys = {each.pr: each.why for each in track}
    uses: dict[str, list[Use]] = {}
    for patch in series:
        for key, use in uses_of(patch).items():
            uses.setdefault(key, []).append(use)
    keys = sorted({*whys, *uses, *decided}, key=_order)
    return tuple(
        Entry(key, whys.get(key), tuple(uses.get(key, ())), recorded.get(key), decided.get(key))
        for key in keys
    )


def watched(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Whose state is asked for: tracked ones and those that a patch names."""
    return tuple(each.key for each in entries if each.why is not None or each.uses)


def _order(key: str) -> tuple[str, int]:
    repo, _, number = key.rpartition("#")
    return repo, int(number)
