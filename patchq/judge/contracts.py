"""Clean application is not enough: what a patch's lines use must still be there, and still fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from patchq.judge.model import Finding
from patchq.judge.surface import Surface
from patchq.judge.uses import Use


@dataclass(frozen=True, slots=True)
class Broken:
    """A use that held on the old base and does not on the new one, and where it stands now."""

    path: bytes
    use: Use


def broken(
    path: bytes, now: Sequence[Use], before: Callable[[], Sequence[Use]]
) -> tuple[Broken, ...]:
    """Uses of `path` that fail now and held `before` (asked only if any fails).

    A use is known by its text: what never resolved, on either base, is nobody's finding.
    """
    bad = [use for use in now if use.state != "found"]
    if not bad:
        return ()
    held = {(use.text, use.state) for use in before()}
    found: dict[tuple[int, str], Broken] = {}
    for use in bad:
        if (use.text, "found") in held and (use.text, use.state) not in held:
            found.setdefault((use.line, use.says), Broken(path, use))
    return tuple(found.values())


def absent(path: bytes, now: Sequence[Use], package: str) -> tuple[Broken, ...]:
    """Uses of another component's names (its import package) that its release does not have."""
    return tuple(
        Broken(path, use)
        for use in now
        if use.state != "found" and not use.unsure and use.module.partition(".")[0] == package
    )


def near(name: str, surface: Surface | None) -> str:
    """The name of the module that `name` was probably changed to; empty where none is close."""
    known = list(surface.names) if surface else []
    return next(iter(get_close_matches(name, known, 1, 0.75)), "")


def finding(each: Broken, *, by: str = "", now: str = "") -> Finding:
    """The finding in words. `by`: the upstream commit that did it; `now`: where the name stands."""
    says = f"line {each.use.line}: {each.use.says}"
    if now:
        says += f"; {now}"
    if by:
        says += f"; since {by}"
    return Finding("contract", each.path, says)
