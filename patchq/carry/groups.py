"""Which commits become one patch: fixups with their targets, topics, a list. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from patchq.errors import PatchqError
from patchq.paths import show
from patchq.queue import header as headers
from patchq.queue.header import Header
from patchq.queue.mail import Brought

_FIXUP = re.compile(r"^(?:fixup|squash|amend)! +")
_TAG = re.compile(r"^\s*\[([A-Za-z0-9][A-Za-z0-9 ._/+-]*)\]")
_PREFIX = re.compile(r"^([A-Za-z][A-Za-z0-9_./-]*)(?:\([^)]*\))?!?:\s")


@dataclass(frozen=True)
class Group:
    """Commits (their places, from 0) that become one patch; empty texts are made up later."""

    members: tuple[int, ...]
    name: str = ""
    topic: str = ""
    subject: str = ""


@dataclass(frozen=True)
class Wanted:
    """A patch of a list: its name, and its commits by id, its beginning, or subject."""

    name: str
    commits: tuple[str, ...]
    subject: str = ""


def read_list(path: Path) -> tuple[Wanted, ...]:
    """The patches that a `--groups` file names. Raises PatchqError where it cannot be read."""
    import tomllib

    try:
        return listed(tomllib.loads(path.read_text(encoding="utf-8")), path.name)
    except OSError as error:
        raise PatchqError(f"{path} cannot be read: {error.strerror}", "name a file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PatchqError(f"{path} is not valid TOML: {error}", "correct the file") from error


def listed(data: Mapping[str, Any], where: str) -> tuple[Wanted, ...]:
    """A `--groups` file: `[[patch]]` tables with name, commits and maybe a subject.

    Raises PatchqError for anything else.
    """
    entries = data.get("patch")
    if set(data) != {"patch"} or not isinstance(entries, list):
        raise _no_list(where)
    return tuple(_wanted(entry, where) for entry in entries)


def _wanted(entry: Any, where: str) -> Wanted:
    match entry:
        case {"name": str(name), "commits": [str(), *_] as commits, **rest}:
            subject = rest.pop("subject", "")
            if not rest and isinstance(subject, str) and all(isinstance(c, str) for c in commits):
                return Wanted(name, tuple(commits), subject)
    raise _no_list(where)


def _no_list(where: str) -> PatchqError:
    return PatchqError(
        f"{where} is not a list of patches",
        'write [[patch]] with name = "..." and commits = ["...", ...]',
    )


def targets(ids: Sequence[str], subjects: Sequence[str]) -> list[int]:
    """For each commit the one that it mends (`fixup! SUBJECT`), or itself."""
    found: list[int] = []
    for place, subject in enumerate(subjects):
        wanted = subject
        while mends := _FIXUP.match(wanted):
            wanted = wanted[mends.end() :]
        target = place
        if wanted != subject:
            earlier = range(place - 1, -1, -1)
            target = next(
                (at for at in earlier if subjects[at] == wanted),
                next(
                    (
                        at
                        for at in earlier
                        if subjects[at].startswith(wanted) or _is_id(wanted, ids[at])
                    ),
                    place,
                ),
            )
        found.append(found[target] if target < place else place)
    return found


def topic_of(subject: str) -> str:
    """`[topic] ...` or `topic: ...` (also `topic(part): ...`), in lower case; else nothing."""
    found = _TAG.match(subject) or _PREFIX.match(subject)
    return found[1].strip().lower() if found else ""


def grouped(
    ids: Sequence[str],
    subjects: Sequence[str],
    *,
    by_topic: bool = False,
    wanted: Sequence[Wanted] = (),
) -> tuple[Group, ...]:
    """The groups in the order of their first commits. What belongs to none stands alone.

    Raises PatchqError for a listed commit that is not there, or is there twice.
    """
    mends = targets(ids, subjects)
    of: dict[int, Group] = {}
    for want in wanted:
        group = Group((), want.name, "", want.subject)
        for text in want.commits:
            place = mends[_place(text, ids, subjects)]
            if place in of and of[place] is not group:
                raise PatchqError(
                    f"{show(text)} is listed for {of[place].name} and for {want.name}",
                    "a commit belongs to one patch",
                )
            of[place] = group
    topics: dict[str, Group] = {}
    members: dict[int, list[int]] = {}
    groups: dict[int, Group] = {}
    for place, target in enumerate(mends):
        topic = topic_of(subjects[target]) if by_topic else ""
        group = of.get(target) or (topics.get(topic) if topic else None) or Group((), "", topic)
        if topic and target not in of:
            topics.setdefault(topic, group)
        of.setdefault(target, group)
        members.setdefault(id(group), []).append(place)
        groups[id(group)] = group
    return tuple(replace(groups[key], members=tuple(places)) for key, places in members.items())


def header(group: Group, brought: Sequence[Brought], mends: Sequence[int]) -> Header:
    """One header for the commits of a group; `brought` and `mends` are all commits'."""
    heads = [brought[place].header for place in group.members if mends[place] == place]
    first = heads[0]
    if len(heads) == 1 and not group.subject and not group.topic:
        return first
    if group.subject:
        subject = group.subject
    elif len(heads) == 1:
        subject = first.subject
    else:
        about = f"[{group.topic}]" if group.topic else f"{group.name}:"
        subject = f"{about} {len(heads)} commits"
    fields = [(key, value) for key, value in first.fields if key != "Subject"]
    fields.append(("Subject", subject))
    for other in heads[1:]:
        fields += [
            field for field in other.fields if field[0] == "Patchq-Pr" and field not in fields
        ]
    if group.topic and not first.get("Patchq-Topic"):
        fields.append(("Patchq-Topic", group.topic))
    if len(heads) == 1:
        return headers.make(fields, first.body)
    told = [f"* {head.subject}" + (f"\n\n{head.body}" if head.body else "") for head in heads]
    authors = dict.fromkeys(head.get("From") for head in heads)
    others = [f"Co-authored-by: {who}" for who in authors if who != first.get("From")]
    return headers.make(fields, "\n\n".join([*told, "\n".join(others)]))


def _place(text: str, ids: Sequence[str], subjects: Sequence[str]) -> int:
    found = [
        at
        for at, (commit, subject) in enumerate(zip(ids, subjects, strict=True))
        if subject == text or _is_id(text, commit)
    ]
    if len(found) != 1:
        many = f"{len(found)} commits are" if found else "no commit is"
        raise PatchqError(
            f"{many} called {show(text)!r} in the range", "name it by its id (seven digits or more)"
        )
    return found[0]


def _is_id(text: str, commit: str) -> bool:
    return bool(re.fullmatch(r"[0-9a-f]{7,40}", text)) and commit.startswith(text)
