"""Take back what landed of a pull request: which commits that were, and the patch's header."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from patchq.carry.pulls.book import DROP_WHEN
from patchq.carry.pulls.spans import Source, targets
from patchq.carry.pulls.take import Span, clean, commits
from patchq.carry.shelf import now
from patchq.gitstore.git import run
from patchq.gitstore.store import Store
from patchq.queue import header as headers
from patchq.queue.header import Header
from patchq.queue.mail import from_commit
from patchq.upstream.pulls import Pull


def landed(source: Source, number: int, head: str, pull: Pull | None) -> tuple[Span, bool]:
    """What brought the pull request in, and whether that is known: else it is its own commits.

    A merge brought what it has over its first parent, a squash is one commit, a rebase as many as
    the pull request had, with their subjects.
    """
    store = source.heads.store
    found = pull.merge_sha if pull is not None else None
    if found is None or store.resolve(found) is None:
        tips = [source.heads.branch(name) for name in targets(pull)]
        found = _by_number(store, number, [tip for tip in tips if tip is not None])
    own = source.span(head, pull)
    if found is None:
        return own, False
    span = Span(_start(store, found, own), found)
    source.heads.bring(span.base, span.head)
    return span, True


def _start(store: Store, landed: str, own: Span) -> str:
    parents = _parents(store, landed)
    if len(parents) == 1:
        wanted = [subject(store, commit) for commit, _ in commits(store, own)]
        at = landed
        seen: list[str] = []
        while wanted and len(seen) < len(wanted) and len(above := _parents(store, at)) == 1:
            seen.insert(0, subject(store, at))
            at = above[0]
        if len(wanted) > 1 and seen == wanted:
            return at
    return parents[0]


def _by_number(store: Store, number: int, tips: Sequence[str]) -> str | None:
    """The newest commit below a tip whose subject says that it is the pull request."""
    told = re.compile(rf".*\(#{number}\)|Merge pull request #{number} .*")
    for tip in tips:
        named = f"--grep=#{number}([^0-9]|$)"
        form = ["log", "--format=%H %s", "--extended-regexp", named]
        done = store.git([*form, "--end-of-options", tip])
        for line in done.out.decode("utf-8", "replace").splitlines():
            commit, _, subject = line.partition(" ")
            if told.fullmatch(subject):
                return commit
    return None


def _parents(store: Store, commit: str) -> list[str]:
    _, _, data = next(store.objects.read_many([commit]))
    head = data.partition(b"\n\n")[0]
    return [x[7:].decode() for x in head.split(b"\n") if x.startswith(b"parent ")]


def subject(store: Store, commit: str) -> str:
    _, _, data = next(store.objects.read_many([commit]))
    return from_commit(data, b"").header.subject


def header(key: str, title: str, span: Span, known: bool, who: str) -> Header:
    """The header of the patch that takes `key` back; it goes once upstream did the same."""
    what = clean(title) or key
    moment = now()
    of = f"commit {span.head}" if known else f"its head {span.head}; what landed is not known"
    return headers.make(
        [
            ("From", who),
            ("Date", headers.mail_date(int(moment.timestamp()), "+0000")),
            ("Subject", f'Revert "{what}"'),
            ("Origin", "vendor"),
            ("Upstream-Status", f"Inappropriate [takes {key} back]"),
            (DROP_WHEN, f"reverted {key}"),
        ],
        f"Takes {key} back: {of}.",
    )


def maintainer(root: str) -> str:
    """Who works here, by git's settings and variables, as `Name <mail>`."""
    names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL")
    given = {name: os.environ[name] for name in names if name in os.environ}
    done = run(["-C", root, "var", "GIT_AUTHOR_IDENT"], network=True, env=given, ok=(0, 128))
    told = done.out.decode("utf-8", "replace").rsplit(" ", 2)[0].strip()
    return clean(told) if done.code == 0 and told else "unknown <unknown@localhost>"
