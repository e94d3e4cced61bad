"""A pull request, and all that can happen to one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha1
from typing import TYPE_CHECKING, Any

from tests.support.forge.commits import Change, Commit, Writes
from tests.support.forge.issue import Comment

if TYPE_CHECKING:
    from tests.support.forge.repo import Repo


@dataclass
class Event:
    kind: str
    at: datetime
    what: dict[str, Any]


@dataclass(eq=False)
class Pull(Writes):
    """`sha` is its head. The verbs of `Writes` change its newest commit."""

    repo: Repo
    number: int
    title: str
    base: str
    body: str
    author: str
    labels: list[str]
    draft: bool
    state: str = "open"
    merge_sha: str | None = None
    created_at: datetime = field(init=False)
    updated_at: datetime = field(init=False)
    merged_at: datetime | None = None
    closed_at: datetime | None = None
    events: list[Event] = field(default_factory=list)
    landing: Change | None = None
    commits: list[str] = field(default_factory=list)
    """Its own, the oldest first."""
    branch: str = ""
    """Of this repository; empty for one from a fork."""
    comments: list[Comment] = field(default_factory=list)

    @property
    def key(self) -> str:
        return f"{self.repo.name}#{self.number}"

    @property
    def landed(self) -> str:
        """The commit that it landed as."""
        assert self.landing, f"{self.key} did not land"
        return self.landing.sha

    @property
    def start(self) -> str:
        """Where it leaves its base branch."""
        return self.bare.git("merge-base", self._base_ref, self.sha)

    @property
    def test_merge(self) -> str:
        """What REST calls `merge_commit_sha` before it is merged, and after it was closed."""
        return sha1(f"{self.key} {self.sha}".encode()).hexdigest()

    @property
    def _base_ref(self) -> str:
        return f"refs/heads/{self.base}"

    def _place(self, sha: str) -> None:
        self.commits[-1] = sha
        self.bare.set(f"refs/pull/{self.number}/head", sha)
        if self.branch:
            self.bare.set(f"refs/heads/{self.branch}", sha)

    def starts(self) -> None:
        self.bare = self.repo.bare
        self.created_at = self.updated_at = self.repo.clock.tick()
        self._first(self.bare.sha(self._base_ref), self.title)
        self.bare.set(f"refs/pull/{self.number}/merge", self.sha)

    def starts_at(self, sha: str) -> None:
        """From a branch of this repository that is there."""
        self.bare = self.repo.bare
        self.created_at = self.updated_at = self.repo.clock.tick()
        self._head_is(sha)
        self.bare.set(f"refs/pull/{self.number}/merge", sha)

    def follows(self) -> None:
        """Its branch may have moved, or may be gone, or its commits may have been pushed to base."""
        sha, before = self.repo.head(self.branch), self.sha
        if sha is None:
            self._close()
            return
        if sha != before:
            self._head_is(sha)
            if self._is_in(before, sha):
                self.updated_at = self.repo.clock.tick()
            else:
                self.happened("HeadRefForcePushedEvent", before=before)
        if self._is_in(sha, self._base_ref):
            self._close()
            self.state, self.merged_at, self.merge_sha = "merged", self.closed_at, sha

    def _head_is(self, sha: str) -> None:
        self.sha = sha
        self.bare.set(f"refs/pull/{self.number}/head", sha)
        self.commits = self.bare.git("rev-list", "--reverse", f"{self._base_ref}..{sha}").split()

    def _is_in(self, one: str, other: str) -> bool:
        return self.bare.git("merge-base", one, other) == self.bare.sha(one)

    def _first(self, parent: str, message: str) -> None:
        when = self.repo.clock.tick()
        self.commit = Commit(
            (parent,), self.bare.tree(parent), f"{message}\n", self.author, when, {}
        )
        self.sha = self.bare.write(self.commit)
        self.commits.append(self.sha)
        self._place(self.sha)

    def happened(self, kind: str, **what: Any) -> datetime:
        self.updated_at = self.repo.clock.tick()
        self.events.append(Event(kind, self.updated_at, what))
        return self.updated_at

    # What its author does

    def push(self, message: str) -> Pull:
        """One more commit on its head."""
        self._first(self.sha, message)
        self.updated_at = self.repo.clock.now
        return self

    def force_push(self, message: str) -> Pull:
        """Another head, of one commit on today's base."""
        before, self.commits = self.sha, []
        self._first(self.bare.sha(self._base_ref), message)
        self.happened("HeadRefForcePushedEvent", before=before)
        return self

    def says(self, body: str) -> Pull:
        self.body = body
        self.updated_at = self.repo.clock.tick()
        self.repo.mentions(self)
        return self

    def changes_base(self, branch: str) -> Pull:
        former, self.base = self.base, branch
        self.happened("BaseRefChangedEvent", former=former, now=branch)
        return self

    def closes(self) -> Pull:
        self._close()
        return self

    def reopens(self) -> Pull:
        self.state, self.closed_at = "open", None
        self.happened("ReopenedEvent")
        return self

    def superseded_by(self, other: Pull) -> Pull:
        other.says(f"{other.body}\n\nSupersedes #{self.number}")
        return self.closes()

    def duplicate_of(self, other: Pull) -> Pull:
        self.happened("MarkedAsDuplicateEvent", canonical=other)
        return self.closes()

    def _close(self, closer: Pull | str | None = None) -> None:
        self.closed_at = self.happened("ClosedEvent", closer=closer)
        self.state = "closed"
        self.bare.forget(f"refs/pull/{self.number}/merge")

    def _merge(self) -> None:
        self._close()
        self.state, self.merged_at, self.merge_sha = "merged", self.closed_at, self.landed

    # How it lands; the verbs of what comes back change what landed

    def lands_by_squash(self, as_number: int | None = None) -> Change:
        """One commit whose subject ends in `(#N)`."""
        self._lands(f"{self.title} (#{as_number or self.number})\n\n{self.body}".rstrip() + "\n")
        self._merge()
        return self._landing

    def lands_by_merge(self) -> Change:
        """A merge commit; the head is one of its parents."""
        text = f"Merge pull request #{self.number} from {self.author}/topic\n\n{self.title}\n"
        self._lands(text, more=(self.sha,))
        self._merge()
        return self._landing

    def lands_by_rebase(self) -> Change:
        """Its commits one by one, without its number."""
        for sha in self.commits:
            text = self.bare.git("show", "-s", "--format=%B", sha) + "\n"
            self._lands(text, theirs=sha, since=f"{sha}^")
        self._merge()
        return self._landing

    def lands_by_hand(self, trailer: str | None = None) -> Change:
        """A commit that closes it, for GitHub unmerged. `trailer`: `Closes #N` where not given."""
        self._lands(f"{self.title}\n\n{trailer or f'Closes #{self.number}'}\n")
        self._close(self.landed)
        return self._landing

    def lands_by_bot(self) -> Change:
        """As PyTorch's merge bot does: a commit, a label, and it is closed unmerged."""
        url = f"https://github.com/{self.repo.name}/pull/{self.number}"
        self._lands(f"{self.title} (#{self.number})\n\nPull Request resolved: {url}\n")
        self.labels.append("Merged")
        self._close()
        return self._landing

    @property
    def _landing(self) -> Change:
        assert self.landing
        return self.landing

    def _lands(
        self,
        message: str,
        *,
        more: tuple[str, ...] = (),
        theirs: str | None = None,
        since: str | None = None,
    ) -> None:
        tip = self.bare.sha(self._base_ref)
        tree = self.bare.merged(tip, theirs or self.sha, since)
        made = Commit((tip, *more), tree, message, self.author, self.repo.clock.tick(), {})

        def place(sha: str) -> None:
            self.bare.set(self._base_ref, sha)
            if self.merge_sha:
                self.merge_sha = sha

        self.landing = Change(self.bare, made, place)

    # What others make of what landed

    def picked_to(
        self,
        branch: str,
        *,
        number: int | None = None,
        names_it: bool = False,
        trailer: bool = False,
    ) -> Pull:
        """Another pull request that lands it on a branch; most do not say what they pick."""
        body = f"Cherry-pick of #{self.number}" if names_it else ""
        pick = self.repo.pull(self.title, number=number, base=branch, body=body)
        pick._has_tree(self.bare.merged(pick.start, self.landed, f"{self.landed}^"))
        if trailer:
            pick.body += f"\n\n(cherry picked from commit {self.landed})"
        pick.lands_by_squash()
        return pick

    def reverted(self, *, number: int | None = None, says: str | None = None) -> Pull:
        """Another pull request that takes it back, and lands."""
        title = f'Revert "{self.title} (#{self.number})"'
        body = f"Reverts {self.key}" if says is None else says
        revert = self.repo.pull(title, number=number, base=self.base, body=body)
        revert._has_tree(self.bare.merged(revert.start, f"{self.landed}^", self.landed))
        revert.lands_by_squash()
        return revert

    def relands(self, *, number: int | None = None, title: str | None = None) -> Pull:
        """Another pull request that brings it again, and lands."""
        named = title or f"[Reland] {self.title}"
        again = self.repo.pull(named, number=number, base=self.base, body=f"Relands #{self.number}")
        again._has_tree(self.bare.merged(again.start, self.landed, f"{self.landed}^"))
        again.lands_by_squash()
        return again

    def _has_tree(self, tree: str) -> None:
        self.commit = replace(self.commit, tree=tree)
        self.sha = self.bare.write(self.commit)
        self._place(self.sha)
