"""Which reasoning efforts a template knows, and which one it takes where none is given.

As the patch reasoning-effort-known has the runner find out: an effort is known if it renders
another prompt than a made-up one does, or if it is the one that the fallback names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Of the APIs, in their order."""
MADE_UP = "effort-that-no-template-knows"

Render = Callable[[str | None], str | None]
"""The prompt with an effort (None: with none); None where the template refuses it."""


@dataclass(frozen=True)
class Efforts:
    """`known`: in order, without `none`, which switches thinking off; `default`: what a request
    gets that gives none, `others`: what the rest of the APIs' efforts become; both empty where the
    template does not say.
    """

    known: tuple[str, ...]
    default: str
    others: str
    unknown: tuple[str, ...]

    @property
    def is_highest(self) -> bool:
        """Whether a request without an effort gets the highest, though there is a lower one."""
        return len(self.known) > 1 and self.default == self.known[-1]


def find(render: Render) -> Efforts:
    """Renders one conversation with each effort."""
    fallback, undefined = render(MADE_UP), render(None)
    prompts = {effort: render(effort) for effort in EFFORTS if effort != "none"}
    named = _named(fallback, prompts.values())
    handed_on = fallback is None or MADE_UP in fallback
    known = tuple(
        effort
        for effort, prompt in prompts.items()
        if prompt is not None and (handed_on or prompt != fallback or _names(named, effort))
    )

    def called(prompt: str | None) -> str:
        return next((each for each in known if prompt is not None and prompts[each] == prompt), "")

    others = "" if handed_on else called(fallback)
    left = tuple(each for each, prompt in prompts.items() if each not in known and prompt)
    return Efforts(known, called(undefined), others, left)


def _named(fallback: str | None, prompts: Iterable[str | None]) -> str:
    """The lines of the fallback that an effort which is another one does not have."""
    others = {
        line
        for prompt in prompts
        if prompt is not None and prompt != fallback
        for line in prompt.splitlines()
    }
    lines = (fallback or "").splitlines() if others else []
    return "\n".join(line for line in lines if line not in others).lower()


def _names(named: str, effort: str) -> bool:
    return re.search(rf"\b{re.escape(effort)}\b", named) is not None
