"""`upstream/decisions.toml`: people's answers, bound to the evidence that they were given on."""

from __future__ import annotations

import tomllib
from typing import Any

from patchq.carry.fold import Decision
from patchq.config import Project
from patchq.errors import PatchqError


def read(project: Project, queue: str) -> dict[str, Decision]:
    """The answers for one queue, by patch name.

    Raises PatchqError for a malformed file.
    """
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
    return {name: _decision(name, entry) for name, entry in answers.items()}


def answered(
    project: Project, queue: str, name: str, answer: str, why: str, evidence: str
) -> dict[str, bytes | None]:
    """The file with one answer more, as a change to be recorded; its comments stay."""
    import tomlkit

    path = project.upstream / "decisions.toml"
    document = tomlkit.parse(path.read_text(encoding="utf-8") if path.is_file() else "")
    table = document.setdefault(queue, tomlkit.table())
    entry = tomlkit.table()
    entry["answer"], entry["why"], entry["evidence"] = answer, why, evidence
    table[name] = entry
    return {"upstream/decisions.toml": tomlkit.dumps(document).encode()}


def _decision(name: str, entry: Any) -> Decision:
    match entry:
        case {"answer": "keep" | "drop" as answer, "why": str(why), "evidence": str(evidence)}:
            return Decision(answer, why, evidence)
    raise PatchqError(
        f"upstream/decisions.toml: the entry of {name!r} is not an answer",
        'it needs answer = "keep" or "drop", why and evidence',
    )
