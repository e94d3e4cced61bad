"""A repository of the forge: its branches, tags and pull requests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.forge.commits import Bare, Change, Clock, Commit
from tests.support.forge.issue import Comment, Issue
from tests.support.forge.pull import Pull
from tests.support.forge.shelf import Shelf

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
    issues: dict[int, Issue] = field(default_factory=dict)
    labels: set[str] = field(default_factory=lambda: {"bug"})
    """That issues may have; others are made with the first issue that gets them."""
    drafts: bool = True
    """Whether pull requests may be drafts (not in private repositories of free accounts)."""
    shelf: Shelf = field(default_factory=Shelf)
    """Its releases."""

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

        def place(sha: str) -> None:
            self.bare.set(ref, sha)
            self.follow()

        return Change(self.bare, made, place)

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
        number = number or self.next_number()
        assert number not in self.pulls and number not in self.issues
        pull = Pull(self, number, title, base, body, author, list(labels), draft)
        self.pulls[number] = pull
        pull.starts()
        self.mentions(pull)
        return pull

    def next_number(self) -> int:
        """Issues and pull requests are counted together."""
        return max([*self.pulls, *self.issues], default=0) + 1

    def propose(
        self, branch: str, title: str, *, base: str = "main", body: str = "", author: str = "mona"
    ) -> Pull:
        """Opens a pull request from a branch of this repository, whose head it follows."""
        number = self.next_number()
        pull = Pull(self, number, title, base, body, author, [], draft=False, branch=branch)
        self.pulls[number] = pull
        pull.starts_at(self.bare.sha(f"refs/heads/{branch}"))
        self.mentions(pull)
        return pull

    def issue(
        self, title: str, *, body: str = "", author: str = "ada", labels: Sequence[str] = ()
    ) -> Issue:
        """Opens an issue; labels that are not there yet are made."""
        made = Issue(self, self.next_number(), title, body, author, list(labels))
        self.labels.update(labels)
        self.issues[made.number] = made
        return made

    def comment(self, on: Issue | Pull, body: str, author: str) -> Comment:
        every = [*self.issues.values(), *self.pulls.values()]
        number = 1 + sum(len(each.comments) for each in every)
        made = Comment(number, body, author, self.clock.tick())
        on.comments.append(made)
        on.updated_at = made.when
        return made

    def head(self, branch: str) -> str | None:
        """Where a branch is; None where there is none."""
        ref = f"refs/heads/{branch}"
        return self.bare.git("for-each-ref", "--format=%(objectname)", ref) or None

    def deletes(self, branch: str) -> Repo:
        self.bare.git("update-ref", "-d", f"refs/heads/{branch}")
        self.follow()
        return self

    def protects(self, branch: str) -> Repo:
        """Nobody may push to it from now on."""
        hook = self.path / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        ref = f"refs/heads/{branch}"
        hook.write_text(
            "#!/bin/sh\n"
            f"grep -q ' {ref}$' || exit 0\n"
            f"echo 'error: GH006: Protected branch update failed for {ref}.' >&2\n"
            "exit 1\n"
        )
        hook.chmod(0o755)
        return self

    def follow(self) -> None:
        """Branches may have moved: open pull requests go with theirs."""
        for pull in self.pulls.values():
            if pull.branch and pull.state == "open":
                pull.follows()

    def mentions(self, pull: Pull) -> None:
        """Writes into the history of those that a text points to that it does."""
        for found in MENTION.finditer(f"{pull.title}\n{pull.body}"):
            target = self.pulls.get(int(found["number"] or found["url"]))
            if target and target is not pull and found["repo"] in (None, self.name):
                target.happened("CrossReferencedEvent", source=pull)
