"""`upstream/decisions.toml`: people's answers, bound to the evidence that they were given on."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from patchq.carry.answers import Decision
from patchq.config import Project
from patchq.errors import PatchqError


@dataclass(frozen=True)
class PullDecision:
    """What was said about a pull request, and the head that it was said about ("" if unknown)."""

    answer: Literal["refuse", "hold"]
    why: str
    evidence: str


def read(project: Project, queue: str) -> dict[str, Decision]:
    """The answers for one queue, by patch name.

    Raises PatchqError for a malformed file.
    """
    found = _entries(project, queue)
    return {name: _decision(name, entry) for name, entry in found.items() if "#" not in name}


def pulls(project: Project, queue: str) -> dict[str, PullDecision]:
    """What was said about pull requests, by OWNER/REPO#N: no patch has such a name.

    Raises PatchqError for a malformed file.
    """
    found = _entries(project, queue)
    return {name: _about_pull(name, entry) for name, entry in found.items() if "#" in name}


def _entries(project: Project, queue: str) -> dict[str, Any]:
    path = project.upstream / "decisions.toml"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PatchqError(
            f"upstream/decisions.toml is not valid TOML: {error}", "correct the file"
        ) from error
    answers = data.get(queue, {})
    if not isinstance(answers, dict):
        raise PatchqError(f"upstream/decisions.toml: {queue} is not a table", "correct the file")
    return answers


def answered(
    project: Project, queue: str, name: str, answer: str, why: str, evidence: str
) -> dict[str, bytes | None]:
    """The file with one answer more, as a change to be recorded; its comments stay."""
    return all_answered(project, queue, {name: Decision(answer, why, evidence)})


def all_answered(
    project: Project, queue: str, answers: Mapping[str, Decision]
) -> dict[str, bytes | None]:
    """The same with several, or with none: then nothing changes."""
    if not answers:
        return {}
    import tomlkit

    path = project.upstream / "decisions.toml"
    document = tomlkit.parse(path.read_text(encoding="utf-8") if path.is_file() else "")
    table = document.setdefault(queue, tomlkit.table())
    for name, each in sorted(answers.items()):
        entry = tomlkit.table()
        entry["answer"], entry["why"], entry["evidence"] = each.answer, each.why, each.evidence
        table[name] = entry
    return {"upstream/decisions.toml": tomlkit.dumps(document).encode()}


def forgotten(project: Project, queue: str, name: str) -> dict[str, bytes | None]:
    """The file without the answer about `name`; no change where there is none."""
    import tomlkit

    path = project.upstream / "decisions.toml"
    document = tomlkit.parse(path.read_text(encoding="utf-8") if path.is_file() else "")
    table = document.get(queue, {})
    if name not in table:
        return {}
    del table[name]
    return {"upstream/decisions.toml": tomlkit.dumps(document).encode()}


def _about_pull(name: str, entry: Any) -> PullDecision:
    match entry:
        case {"answer": "refuse" | "hold" as answer, "why": str(why), "evidence": str(evidence)}:
            return PullDecision(answer, why, evidence)
    raise PatchqError(
        f"upstream/decisions.toml: the entry of {name!r} is not an answer",
        'it needs answer = "refuse" or "hold", why and evidence',
    )


def _decision(name: str, entry: Any) -> Decision:
    match entry:
        case {"answer": "keep" | "drop" as answer, "why": str(why), "evidence": str(evidence)}:
            return Decision(answer, why, evidence)
    raise PatchqError(
        f"upstream/decisions.toml: the entry of {name!r} is not an answer",
        'it needs answer = "keep" or "drop", why and evidence',
    )
