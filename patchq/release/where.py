"""Where releases are published: a repository at GitHub, and where its API is."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from patchq.errors import PatchqError
from patchq.forge.client import usual_api
from patchq.forge.model import require_repo
from patchq.gitstore import tags

FILE = "releases/publish.toml"
KEYS = ("github", "github_api")
_ORIGIN = re.compile(
    r"(?:https://(?:[^@/]*@)?|ssh://git@|git@)github\.com[/:]([^/:]+/[^/:]+?)(?:\.git)?/?"
)


@dataclass(frozen=True)
class Where:
    """OWNER/REPO, and the address of the API that has it."""

    repo: str
    api: str


def where(root: Path, repo: str | None = None) -> Where:
    """What was given, what `releases/publish.toml` says, or where git's `origin` is.

    Raises PatchqError where none of them says it, or the file is malformed.
    """
    told = _told(root / FILE)
    found = repo or told.get("github") or _origin(root)
    if found is None:
        raise PatchqError(
            "nothing says where releases are published",
            f'write github = "OWNER/REPO" into {FILE}, or give --repo OWNER/REPO',
        )
    return Where(require_repo(found), told.get("github_api") or usual_api())


def _told(path: Path) -> dict[str, str]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise PatchqError(f"{FILE} is no TOML: {error}", "correct it") from error
    for key, value in table.items():
        if key not in KEYS or not isinstance(value, str):
            raise PatchqError(
                f"{FILE} has {key!r:.60}, which means nothing there",
                'it knows github = "OWNER/REPO" and github_api = "https://..."',
            )
    return table


def _origin(root: Path) -> str | None:
    url = tags.setting(root, "remote.origin.url")
    found = _ORIGIN.fullmatch(url) if url else None
    return found[1] if found else None
