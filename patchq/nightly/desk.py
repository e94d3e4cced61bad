"""Where people are told, and by whose token."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from patchq.errors import PatchqError
from patchq.forge.client import TOKENS, token
from patchq.forge.proposals import git_host
from patchq.forge.retries import Patience
from patchq.forge.writing import Writer
from patchq.gitstore import tags
from patchq.gitstore.push import Secret
from patchq.nightly.settings import Settings
from patchq.nightly.shared import REMOTE
from patchq.progress import Progress
from patchq.release.where import where


@dataclass(frozen=True)
class Desk:
    """Where is told, and by whose token. `git`: the token for pushes to the forge's own host."""

    repo: str
    api: str
    token: str = field(repr=False)
    variable: str

    @property
    def git(self) -> Secret:
        return Secret(git_host(self.api), self.token)

    def writer(self, progress: Progress, patience: Patience) -> Writer:
        return Writer(self.api, self.token, self.variable, progress, patience)


def desk(root: Path, settings: Settings) -> Desk:
    """Raises PatchqError where there is no token, no repository, or no remote to push to."""
    found = token()
    if found is None:
        raise PatchqError(
            f"no token is set ({' or '.join(TOKENS)})",
            "give it one with the permissions contents, pull-requests and issues: write",
        )
    at = where(root, settings.repository)
    if tags.setting(root, f"remote.{REMOTE}.url") is None:
        raise PatchqError(
            f"the repository has no remote {REMOTE}", f"add it: `git remote add {REMOTE} URL`"
        )
    return Desk(at.repo, at.api, *found)
