"""The record of pull requests: what was seen of each, when a fact was first seen, what is pinned.

It stands in `upstream/state.json`, one fact a line. No news changes no byte: when we last looked
is not in it (the cache knows), nor is a comment that only moved `updated_at`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast, get_args

from patchq.errors import PatchqError
from patchq.forge.model import Means, PullRequest, State, parse_key

DATED = (
    "base", "closed_by", "draft", "head_sha", "merge_sha",
    "replaced_by", "reverted_by", "state",
)  # fmt: skip
"""The facts of which is recorded when their present value was first seen."""

_STICKY = ("former_bases", "mentioned_by", "replaced_by", "reverted_by")
"""A forge tells the newest events only: what was seen once is kept."""

_ALWAYS = ("base", "head_sha")
"""Every pull request has them: where one is missing, the answer left it out."""

_LISTED = (
    "title", "author", "state", "draft", "base", "head_sha", "merge_sha",
    "created_at", "updated_at", "merged_at", "closed_at", "labels", "replaces", "reverts",
)  # fmt: skip
_KNOWS: Mapping[str, tuple[str, ...]] = {
    "graphql": (*_LISTED, *_STICKY, "forced_at", "closed_by", "commits"),
    "rest": (*_LISTED, "replaced_by"),
    "git": ("head_sha",),
}
"""What each means can tell; the rest of a record stays as it is."""

_NOT_NEWS = frozenset({"updated_at", "means", "first_seen"})


@dataclass(frozen=True)
class Pull(PullRequest):
    """A recorded pull request.

    `pinned` is the head that our patch is based on. `first_seen` says of the facts in DATED when
    (ISO 8601, UTC) their present value was first seen.
    """

    pinned: str | None = None
    first_seen: Mapping[str, str] = field(default_factory=dict)


def record(old: Pull | None, seen: PullRequest, now: str) -> Pull:
    """The record after a look: `old` itself where there is no news.

    `now` (ISO 8601, UTC) dates the facts that are new.
    """
    values: dict[str, Any] = _values(old) if old else {"repo": seen.repo, "number": seen.number}
    for name in _KNOWS[seen.means]:
        value = getattr(seen, name)
        if name in _STICKY and old:
            value = tuple(sorted({*getattr(old, name), *value}))
        elif name in _ALWAYS and not value and old:
            value = getattr(old, name)
        values[name] = value
    if old and old.merge_sha and seen.state == "merged" and not seen.merge_sha:
        values["merge_sha"] = old.merge_sha  # newer versions of REST do not tell it
    if seen.files:
        values["files"] = seen.files
    elif old and values.get("head_sha") != old.head_sha:
        values["files"] = ()
    new = Pull(**{**values, "means": seen.means})
    if old and not changes(old, new):
        return old
    dates = {
        name: now if old is None or name in changes(old, new) else old.first_seen.get(name, now)
        for name in DATED
        if getattr(new, name) or name == "draft"
    }
    return dataclasses.replace(new, first_seen=dates)


def changes(old: Pull, new: Pull) -> tuple[str, ...]:
    """The names of the facts that are news, sorted."""
    before, after = _values(old), _values(new)
    return tuple(
        sorted(name for name in after if name not in _NOT_NEWS and before[name] != after[name])
    )


def to_json(pull: Pull) -> dict[str, Any]:
    """The facts that are known, for `upstream/state.json`; repo and number are its key."""
    values = {name: value for name, value in _values(pull).items() if value or value == 0}
    del values["repo"], values["number"]
    if not pull.draft:
        values.pop("draft", None)
    return values


def from_json(key: str, values: Mapping[str, Any]) -> Pull:
    """The record that `to_json` wrote.

    Raises ValueError or TypeError for what it cannot have written.
    """
    try:
        repo, number = parse_key(key)
    except PatchqError as error:
        raise ValueError(error.message) from error
    kinds = {each.name: str(each.type) for each in dataclasses.fields(Pull)}
    made: dict[str, Any] = {"repo": repo, "number": number}
    for name, value in values.items():
        kind = kinds.get(name, "")
        if name in made or not _fits(kind, value):
            raise ValueError(f"{name!r} of {key}")
        made[name] = tuple(value) if isinstance(value, list) else value
    return Pull(**made)


def _fits(kind: str, value: object) -> bool:
    match value:
        case bool():
            return kind == "bool"
        case int():
            return kind == "int | None"
        case str():
            choice = {"State": get_args(State), "Means": get_args(Means)}.get(kind)
            return value in choice if choice else kind in ("str", "str | None")
        case list():
            items = cast("list[object]", value)
            of = {"tuple[str, ...]": str, "tuple[int, ...]": int}.get(kind)
            return of is not None and all(type(item) is of for item in items)
        case dict():
            items_of = cast("dict[object, object]", value)
            return kind.startswith("Mapping") and all(type(v) is str for v in items_of.values())
    return False


def _values(pull: Pull) -> dict[str, Any]:
    """Shallow: `dataclasses.asdict` would copy each list."""
    return {each.name: getattr(pull, each.name) for each in dataclasses.fields(pull)}
