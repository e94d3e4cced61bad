"""Where a pull request starts and ends, and the store in which its commits can be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from patchq.carry.pulls.take import Piece, Span, paths
from patchq.carry.workspace import Queue
from patchq.config import cache_dir
from patchq.errors import Incomplete, PatchqError
from patchq.forge.model import PullRequest
from patchq.gitstore import remote
from patchq.gitstore.git import run
from patchq.gitstore.store import Store
from patchq.progress import SILENT, Progress
from patchq.upstream.heads import Heads, git_url

TRUNKS = ("main", "master")


def targets(pull: PullRequest | None) -> tuple[str, ...]:
    """The branch that a pull request asks to be taken into; the usual ones where that is unknown.

    A branch name is a stranger's: one that git would not take is none.
    """
    if pull is None or not pull.base:
        return TRUNKS
    named = run(["check-ref-format", f"refs/heads/{pull.base}"], ok=(0, 1)).code == 0
    return (pull.base,) if named and "*" not in pull.base else TRUNKS


@dataclass(frozen=True)
class Source:
    """A repository's pull requests, and `store`, which reads them beside the queue's releases."""

    heads: Heads
    store: Store
    repo: str
    offline: bool = False

    def head(self, number: int, pull: PullRequest | None) -> str:
        """Today's head, fetched with its target branch where it can be.

        Raises Incomplete where there is no such pull request, or nobody was reached.
        """
        brought = self.heads.fetch([number], branches=targets(pull))
        found = brought.heads.get(number) or self.heads.known(number)
        if found is None:
            why = "; ".join(brought.missing) or "the repository has no such head"
            raise Incomplete(
                f"the head of {self.repo}#{number} was not reached: {why}",
                "see to the number and the network, then run it again",
            )
        return found

    def has(self, commit: str) -> bool:
        """Whether a commit is at hand, or can be had: forges give former heads by their id."""
        if self.heads.store.resolve(commit) is None and not self.offline:
            remote.fetch_objects(self.heads.store, [commit])
        return self.heads.store.resolve(commit) is not None

    def span(self, head: str, pull: PullRequest | None) -> Span:
        """From where the head left its target branch to the head, contents at hand.

        Raises PatchqError where the two have no commit in common.
        """
        for name in targets(pull):
            base = self.heads.merge_base(head, name)
            if base is not None:
                break
        else:
            raise PatchqError(
                f"{head[:12]} has no commit in common with {' or '.join(targets(pull))}",
                "fetch the upstream's branches: run it again with a network",
            )
        if base == head:
            base = self._before_the_merge(head, name, pull)
        self.heads.bring(base, head)
        return Span(base, head)

    def follow(self, pieces: Iterable[Piece], tree: str) -> None:
        """Bring what it takes to see where files went that `tree` does not have.

        git compares contents for that; those of `tree` are here.
        """
        objects = self.store.objects
        for piece in pieces:
            old = objects.tree_of(piece.old)
            lost = [path for path in paths(piece.diff) if objects.lookup(tree, path) is None]
            if any(objects.lookup(old, path) is not None for path in lost):
                gone = [each for each in self.store.changes(old, tree) if each.status == "D"]
                remote.fetch_objects(self.heads.store, sorted({each.old_oid for each in gone}))

    def _before_the_merge(self, head: str, branch: str, pull: PullRequest | None) -> str:
        """The base of a head that its branch holds: what the merge's other side had of it."""
        done = self.heads.store.git(
            [
                *("rev-list", "--merges", "--ancestry-path", "--parents", "--reverse"),
                *("--end-of-options", self.heads.branch(branch) or head, f"^{head}"),
            ],
        )
        # Not the first parents' line alone: what it was merged into may have been merged in turn.
        for line in done.out.decode().splitlines():
            _, first, *others = line.split()
            if head in others:
                base = self.heads.store.git(["merge-base", first, head], ok=(0, 1)).out
                return base.decode().strip() or first
        if pull is not None and pull.commits:
            found = self.heads.store.resolve(f"{head}~{pull.commits}")
            if found is not None:
                return found
        raise PatchqError(
            f"the branch {branch} holds {head[:12]} already, and not by a merge: where it started"
            " is not known",
            "bring it in as a range: `patchq import --git PATH A..B`",
        )


@contextmanager
def source(
    queue: Queue, store: Store, repo: str, *, offline: bool, progress: Progress = SILENT
) -> Iterator[Source]:
    """The pull requests of `repo`, beside the releases in `store`."""
    where = git_url(queue.config, repo, queue.project.root)
    heads = Heads(repo, where, cache_dir(), offline=offline, progress=progress)
    try:
        if heads.store.path == store.path:
            yield Source(heads, store, repo, offline)
        else:
            with Store(store.path, borrow=heads.store.path) as both:
                yield Source(heads, both, repo, offline)
    finally:
        heads.close()
