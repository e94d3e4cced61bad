"""Fetch some refs of a remote, and nothing else: what did not move costs some bytes a ref."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from patchq.gitstore.git import Done, run
from patchq.gitstore.store import Store

FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head")


def configure(store: Store, url: str) -> None:
    """Make `url` the store's `origin`, from which contents that are missing may be fetched."""
    for key, value in (
        ("remote.origin.url", url),
        ("remote.origin.promisor", "true"),
        ("remote.origin.partialclonefilter", "blob:none"),
    ):
        store.git(["config", key, value])


def listed(url: str) -> Done:
    """The refs of the repository at `url`, a line each; any exit status is in the answer."""
    slow = ["-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=20"]
    args = [*slow, "ls-remote", "--quiet", "--end-of-options", url]
    return run(args, network=True, ok=tuple(range(256)))


def fetch(store: Store, refs: Mapping[str, str]) -> Done:
    """Brings refs of `origin` (their name there to that here) with history, without contents:
    `configure` has the filter.

    A ref that is not there is left out: it is asked for as a pattern, which may match nothing.
    git then tells the server the prefixes that it wants, and not all refs come (a GitHub
    repository has thousands). Any exit status is in the answer: the network may be down.
    """
    specs = "".join(f"+{there}*:{here}*\n" for there, here in refs.items())
    return store.git(
        [*FETCH, "--stdin", "origin"],
        input=specs.encode(),
        network=True,
        ok=tuple(range(256)),
    )


def heads(git_dir: Path, refs: Iterable[str]) -> dict[str, str]:
    """The commits of refs of a repository, by one process; what is not there is left out."""
    wanted = list(refs)
    if not wanted:
        return {}
    done = run(
        ["for-each-ref", "--format=%(refname) %(objectname)", *wanted],
        git_dir=git_dir,
    )
    lines = done.out.decode("utf-8", "surrogateescape").splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines)
    return {ref: found[ref] for ref in wanted if ref in found}


def merge_base(store: Store, one: str, other: str) -> str | None:
    """The best common ancestor of two commits, or None."""
    done = store.git(["merge-base", one, other], ok=(0, 1, 128))
    return done.out.decode().split("\n")[0] if done.code == 0 else None


def fetch_objects(store: Store, ids: Sequence[str]) -> Done:
    """Brings objects of `origin` by their ids, in one request; none where all are there."""
    return store.git(
        [*FETCH, "--no-filter", "--stdin", "origin"],
        input="".join(f"{oid}\n" for oid in ids).encode(),
        network=True,
        ok=tuple(range(256)),
    )
