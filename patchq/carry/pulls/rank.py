"""Which pull requests matter to a queue, and why: pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from patchq.carry.pulls.model import Candidate, Reason
from patchq.forge.model import PullRequest

TERM = 30
"""What was asked for by name stands in the title."""
TOPIC = 20
LABEL = 10
TEXT = 5
"""Its text says a term or a topic, its title does not: often beside the point."""
FILE = 15
"""It changes a file that a patch of ours changes: it will meet that patch at a sync."""
FILES_AT_MOST = 60
MERGED = 5
CLOSED = -20
DRAFT = -5
REVERT = 10
"""It takes something back: what we rely on may go."""


def rank(
    found: Iterable[PullRequest],
    terms: Sequence[str],
    topics: Sequence[str],
    ours: Iterable[str],
    known: Sequence[str] = (),
    texts: Mapping[str, str] | None = None,
) -> tuple[Candidate, ...]:
    """`found` by what they weigh, best first, those that weigh nothing left out.

    `ours` are the paths that the queue's patches change; `known` the pull requests
    (OWNER/REPO#N) that it watches: one that replaces or reverts such a one matters. `texts` are
    what their authors wrote.
    """
    paths = frozenset(ours)
    made = [
        _candidate(pull, terms, topics, paths, frozenset(known), (texts or {}).get(pull.key, ""))
        for pull in found
    ]
    kept = [each for each in made if each.score > 0]
    return tuple(sorted(kept, key=lambda each: (-each.score, each.key)))


def _candidate(
    pull: PullRequest,
    terms: Sequence[str],
    topics: Sequence[str],
    ours: frozenset[str],
    known: frozenset[str],
    body: str,
) -> Candidate:
    words = (*terms, *(topic for topic in topics if topic not in terms))
    reasons = [
        *(Reason(TERM, f"title says {term!r}") for term in terms if says(pull.title, term)),
        *(
            Reason(TOPIC, f"topic {topic!r}")
            for topic in words[len(terms) :]
            if says(pull.title, topic)
        ),
        *(
            Reason(TEXT, f"text says {word!r}")
            for word in words
            if says(body, word) and not says(pull.title, word)
        ),
        *_labels(pull, words),
        *_related(pull, known),
        *_files(pull, ours),
    ]
    if reasons:
        reasons += _state(pull)
    return Candidate(
        pull.key,
        pull.title,
        pull.state,
        pull.author,
        pull.updated_at or "",
        sum(reason.weight for reason in reasons),
        tuple(reasons),
    )


def says(text: str, word: str) -> bool:
    """Whether a text says a word: at the start of one of its own words, in any case.

    "glm" is said by "[GLM-5.3] fix" and "glm4moe", not by "eglm".
    """
    return bool(re.search(rf"(?<![a-z0-9]){re.escape(word.lower())}", text.lower()))


def _labels(pull: PullRequest, words: Sequence[str]) -> list[Reason]:
    hits = sorted(label for label in pull.labels if any(says(label, word) for word in words))
    return [Reason(LABEL, f"labelled {', '.join(hits)}")] if hits else []


def _related(pull: PullRequest, known: frozenset[str]) -> list[Reason]:
    found = []
    for numbers, verb in ((pull.replaces, "replaces"), (pull.reverts, "takes back")):
        hits = [f"{pull.repo}#{n}" for n in numbers if f"{pull.repo}#{n}" in known]
        found += [Reason(TERM + REVERT, f"{verb} {key}, which is watched here") for key in hits]
    return found


def _files(pull: PullRequest, ours: frozenset[str]) -> list[Reason]:
    hits = sorted(ours.intersection(pull.files))
    if not hits:
        return []
    told = ", ".join(hits[:3]) + (f" and {len(hits) - 3} more" if len(hits) > 3 else "")
    return [Reason(min(FILE * len(hits), FILES_AT_MOST), f"changes {told}, as our patches do")]


def _state(pull: PullRequest) -> list[Reason]:
    if pull.state == "merged":
        return [Reason(MERGED, "merged")]
    if pull.state == "closed":
        return [Reason(CLOSED, "closed without merging")]
    return [Reason(DRAFT, "a draft")] if pull.draft else []
