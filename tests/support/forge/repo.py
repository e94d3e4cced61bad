"""A repository of the forge: its branches, tags and pull requests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.forge.commits import Bare, Change, Clock, Commit
from tests.support.forge.pull import Pull

MENTION = re.compile(
    r"(?:(?<![\w/])|(?P<repo>[\w.-]+/[\w.-]+))#(?P<number>\d+)\b|/pull/(?P<url>\d+)\b"
)


@dataclass
class Repo:
    """OWNER/NAME. `number` counts up; pull requests may be given other ones."""

    name: str
    bare: Bare
    clock: Clock
    private: bool = False
    pulls: dict[int, Pull] = field(default_factory=dict)

    @classmethod
    def make(cls, name: str, folder: Path, clock: Clock, files: Mapping[str, bytes]) -> Repo:
        repo = cls(name, Bare(folder / f"{name}.git"), clock)
        first = Commit((), None, "Start\n", "Mona Maintainer", clock.tick(), files)
        repo.bare.set("refs/heads/main", repo.bare.write(first))
        return repo

    @property
    def path(self) -> Path:
        return self.bare.path

    def commit(
        self, message: str, *, branch: str = "main", author: str = "Mona Maintainer"
    ) -> Change:
        """A commit straight on a branch; its verbs say what it changes."""
        ref = f"refs/heads/{branch}"
        tip = self.bare.sha(ref)
        made = Commit((tip,), self.bare.tree(tip), f"{message}\n", author, self.clock.tick(), {})
        return Change(self.bare, made, lambda sha: self.bare.set(ref, sha))

    def branch(self, name: str, *, at: str = "main") -> Repo:
        self.bare.set(f"refs/heads/{name}", self.bare.sha(at))
        return self

    def tag(self, name: str, *, at: str = "main") -> str:
        sha = self.bare.sha(at)
        self.bare.set(f"refs/tags/{name}", sha)
        return sha

    def pull(
        self,
        title: str,
        *,
        number: int | None = None,
        base: str = "main",
        body: str = "",
        author: str = "ada",
        labels: Sequence[str] = (),
        draft: bool = False,
    ) -> Pull:
        """Opens a pull request with one commit; its verbs say what the commit changes."""
        number = number or max(self.pulls, default=0) + 1
        assert number not in self.pulls
        pull = Pull(self, number, title, base, body, author, list(labels), draft)
        self.pulls[number] = pull
        pull.starts()
        self.mentions(pull)
        return pull

    def mentions(self, pull: Pull) -> None:
        """Writes into the history of those that a text points to that it does."""
        for found in MENTION.finditer(f"{pull.title}\n{pull.body}"):
            target = self.pulls.get(int(found["number"] or found["url"]))
            if target and target is not pull and found["repo"] in (None, self.name):
                target.happened("CrossReferencedEvent", source=pull)
