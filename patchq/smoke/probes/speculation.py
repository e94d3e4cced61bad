"""Does it draft, and are the drafts checked?"""

from __future__ import annotations

import re

from patchq.smoke import metrics as names
from patchq.smoke import questions as q
from patchq.smoke.asking import Asking
from patchq.smoke.bounds import ENOUGH, PINNED, Bounds
from patchq.smoke.metrics import Metrics
from patchq.smoke.model import LeftOut, NotRun, Wrong
from patchq.smoke.report import Probe

_PLACE = re.compile("[0-9]{1,3}")
_AT_MOST = 12
"""Answers more that are asked for where the drafts are too few to judge."""


_ASKED = {"role": "user", "content": q.RECITE}
_AGAIN = (_ASKED, {"role": "assistant", "content": "\n".join(q.RECITED)}, _ASKED)
"""The long answer once more: what it says stands there, for drafters that look it up."""


def _speculation(asking: Asking) -> str:
    before = asking.setting.before or asking.client.metrics()
    if before.total(names.DRAFTS) is None:
        if asking.setting.drafts:
            raise Wrong("the profile drafts, and /metrics counts no drafts")
        raise LeftOut("/metrics counts no drafts, and no profile that drafts is named")
    after = asking.client.metrics()
    for _ in range(_AT_MOST):
        if _grown(before, after, names.DRAFTS) >= ENOUGH:
            break
        asking.chat(_AGAIN)
        after = asking.client.metrics()
    drafts = _grown(before, after, names.DRAFTS)
    drafted, accepted = (_grown(before, after, name) for name in (names.DRAFTED, names.ACCEPTED))
    shares = _shares(before, after, drafts)
    asking.evidence.update(drafts=drafts, drafted=drafted, accepted=accepted, accepted_at=shares)
    if drafted <= 0:
        raise Wrong("no drafting: not one token was drafted")
    if drafts < ENOUGH:
        raise NotRun(f"{drafts:g} drafts are too few to judge; {ENOUGH} are needed")
    judge(shares, asking.setting.bounds)
    return f"{drafted:g} tokens drafted, {accepted / drafted:.0%} accepted"


def judge(shares: list[float], bounds: Bounds) -> None:
    """`shares` of accepted tokens by position. Raises Wrong."""
    if shares and shares[0] > PINNED:
        raise Wrong(f"position 0 is accepted in {shares[0]:.1%} of the drafts: nothing is checked")
    for place, (least, most) in enumerate(bounds.acceptance):
        if place >= len(shares):
            raise Wrong(f"position {place} is never drafted; the profile has bounds for it")
        if not least <= shares[place] <= most:
            raise Wrong(
                f"position {place} is accepted in {shares[place]:.1%} of the drafts; the profile"
                f" wants {least:.0%} to {most:.0%}"
            )


def _grown(before: Metrics, after: Metrics, name: str) -> float:
    return (after.total(name) or 0.0) - (before.total(name) or 0.0)


def _shares(before: Metrics, after: Metrics, drafts: float) -> list[float]:
    old, new = (each.by(names.ACCEPTED_AT, "position") for each in (before, after))
    places = sorted((int(place), place) for place in new if _PLACE.fullmatch(place))
    return [round((new[at] - old.get(at, 0.0)) / max(drafts, 1.0), 4) for _, at in places]


PROBES = (
    Probe(
        "speculation",
        "the drafting counters over all probes, and the long answer until 100 drafts are there",
        "tokens are drafted; acceptance by position is within the profile's bounds, and position 0"
        " is not accepted always",
        "“no drafting” (ENT smoke); a stale JIT cache: 0.96 to 0.58 (REE prod-start)",
        _speculation,
        alone=True,
    ),
)
