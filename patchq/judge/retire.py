"""When a patch that says so may go: its `Patchq-Drop-When` against versions and pull requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_VERSION_RULE = re.compile(r"([a-z0-9][a-z0-9._-]*)\s*((?:>=|==|>|~=)\s*[^\s,;]+(?:\s*,[^;]+)?)")
_LANDED = re.compile(r"landed\s+(\S+)")


@dataclass(frozen=True)
class Stand:
    """How a rule stands: it holds with what is pinned, would with `by`, or waits (`by` is "")."""

    rule: str
    holds: bool
    by: str = ""


def stand(
    rule: str,
    pinned: Mapping[str, str],
    newest: Mapping[str, str],
    merged: Mapping[str, bool],
) -> Stand | None:
    """How `rule` stands; None for one that only people can read.

    `pinned` and `newest` are versions by component (and "base"); `merged` says of pull requests
    (OWNER/REPO#N) whether they are.
    """
    text = rule.strip()
    if found := _LANDED.fullmatch(text):
        key = found[1]
        return Stand(rule, False, f"{key}, which is merged" if merged.get(key) else "")
    found = _VERSION_RULE.fullmatch(text)
    if found is None or found[1] not in pinned:
        return None
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    name = found[1]
    try:
        specifier = SpecifierSet(found[2])
    except InvalidSpecifier:
        return None
    if _within(specifier, pinned[name]):
        return Stand(rule, True, f"{name} {pinned[name]}")
    later = newest.get(name, "")
    return Stand(rule, False, f"{name} {later}" if later and _within(specifier, later) else "")


def _within(specifier: object, version: str) -> bool:
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion, Version

    assert isinstance(specifier, SpecifierSet)
    try:
        return specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False
