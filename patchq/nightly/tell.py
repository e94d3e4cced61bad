"""Tell people of a night: pull request, issue, and the branch of all nights; each of them once.

Nothing here makes a night fail. What cannot be told now (no network, no rights) is a sentence, and
the next night tells it, since it looks at what stands there and not at what was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from patchq.config import find_project
from patchq.errors import PatchqError
from patchq.forge import issues, proposals
from patchq.forge.issues import Issue
from patchq.forge.retries import PATIENCE, Patience
from patchq.forge.writing import Writer
from patchq.gitstore import push
from patchq.gitstore.objects import Objects
from patchq.gitstore.push import Moved
from patchq.nightly import kept, people, reports, shared
from patchq.nightly.desk import Desk, desk
from patchq.nightly.model import Night, Told
from patchq.nightly.people import Plan, Stands, Step, Tale, Words
from patchq.nightly.settings import Settings
from patchq.nightly.shared import REMOTE
from patchq.progress import SILENT, Progress

TRIES = 3
"""Looks at a branch that people move meanwhile."""
_NOBODY = "nobody was told: "
_NOT_NOW = " was not brought up to date: "


def tell(
    root: Path,
    settings: Settings,
    night: Night,
    folder: Path,
    earlier: tuple[Night, ...],
    words: Words,
    progress: Progress = SILENT,
    *,
    patience: Patience = PATIENCE,
) -> Told:
    """What stands on the forge after it, and what was done now.

    `root` is a repository of the project that has the night's commit; `folder` has the night's
    reports; `earlier`: nights that are known here, those of the shared branch are read as well.
    What the night says of itself as told is not believed: it may come from another machine.
    """
    try:
        at = desk(root, settings)
    except PatchqError as error:
        return replace(_before(night, earlier), says=(f"{_NOBODY}{error.message}",))
    progress.step("reading the nights before")
    there = shared.read(root, night.queue, secret=at.git)
    before = next((each for each in there.nights if _same(each, night)), None)
    night = replace(night, told=before.told if before else Told())
    nights = tuple(each for each in united(earlier, there.nights) if each.name != night.name)
    told = _before(night, nights)
    with at.writer(progress, patience) as client:
        telling = _Telling(root, at, settings, client, night, folder, nights, words, told)
        telling.pull()
        telling.issue()
    told = telling.told
    same = before is not None and _numbers(told) == _numbers(before.told)
    if before and same and not telling.says and not missed(before.told):
        told = before.told  # nothing is new: what was said of it the first time stays
    else:
        told = replace(told, says=(*telling.says, *there.says))
    progress.step("adding the night to the nights")
    try:
        shared.add(root, replace(night, told=told), secret=at.git)
    except PatchqError as error:
        told = replace(told, says=(*told.says, _sentence(shared.BRANCH, error)))
    return told


def missed(told: Told) -> bool:
    """Whether something could not be told; telling the night again does what is left."""
    return any(each.startswith(_NOBODY) or _NOT_NOW in each for each in told.says)


def united(here: Sequence[Night], there: Sequence[Night]) -> tuple[Night, ...]:
    """The nights of both, the oldest first. What was told stands where the telling was done."""
    found = {each.name: each for each in there}
    for each in here:
        other = found.get(each.name)
        if other is None or _numbers(each.told) != (None, None, None) or not _same(each, other):
            found[each.name] = each
    return tuple(found[name] for name in sorted(found, key=kept.order))


@dataclass
class _Telling:
    """One night is told: what is known of it, and what was done so far."""

    root: Path
    at: Desk
    settings: Settings
    client: Writer
    night: Night
    folder: Path
    earlier: tuple[Night, ...]
    words: Words
    told: Told
    says: list[str] = field(default_factory=list)

    @property
    def tale(self) -> Tale:
        night = self.night
        return Tale(
            night,
            self.earlier,
            self.settings.branch,
            self.settings.into,
            sync=reports.sync(self.folder),
            since=people.since(night, self.earlier),
            pull=self.told.pull,
            target=self.settings.target,
            cluster=self.settings.cluster,
            profile=self.settings.profile,
        )

    def pull(self) -> None:
        """The branch and its pull request."""
        over = people.has_nothing(self.night) and self.told.pull is not None
        if not people.proposes(self.night) and not over:
            return
        with self._telling("the pull request"):
            for left in reversed(range(TRIES)):
                self.client.progress.step(f"looking at the pull requests of {self.at.repo}")
                stands = self._stands()
                standing = stands.pull
                self.told = replace(self.told, pull=standing.number if standing else None)
                try:
                    self._do(people.plan_pull(self.tale, stands, self.words))
                    return
                except Moved:
                    if not left:
                        raise

    def issue(self) -> None:
        if self.night.state not in ("green", "quiet", "red", "asks"):
            return
        with self._telling("the issue"):
            self.client.progress.step(f"looking at the issues of {self.at.repo}")
            found = self._issue()
            # One that a person closed stays known: the same fault opens none again.
            bad = self.night.state in ("red", "asks")
            number = found.number if found and (found.open or bad) else None
            self.told = replace(self.told, issue=number)
            self._do(people.plan_issue(self.tale, Stands(issue=found), self.words))

    def _stands(self) -> Stands:
        branch, commit = self.settings.branch, self.night.commit
        pulls = proposals.of_branch(self.client, self.at.repo, branch)
        tip = push.fetch_branch(self.root, REMOTE, branch, secret=self.at.git)
        same = False
        if tip is not None and commit is not None:
            with Objects(find_project(self.root).git_dir) as objects:
                same = objects.tree_of(tip) == objects.tree_of(commit)
        return Stands(pulls, tip, same)

    def _issue(self) -> Issue | None:
        repo, marker = self.at.repo, people.issue_marker(self.night.queue)
        number = self.night.told.issue or people.recorded_issue(self.earlier)
        found = issues.issue(self.client, repo, number) if number else None
        if found is not None and found.open:
            return found
        under = issues.labelled(self.client, repo, self.settings.label)
        ours = [each for each in under if people.has_marker(each, marker)]
        return ours[-1] if ours else found

    def _do(self, plan: Plan) -> None:
        self.says += [each for each in plan.says if each not in self.says]
        for step in plan.steps:
            self.says.append(_STEPS[step.do](self, step))

    # One change each; what was done, as a sentence

    def _push(self, step: Step) -> str:
        branch = self.settings.branch
        self.client.progress.step(f"pushing {branch}")
        push.push(
            self.root, REMOTE, step.commit, branch, expected=step.expected, secret=self.at.git
        )
        self.told = replace(self.told, pushed=step.commit)
        return f"{step.commit[:12]} was pushed to {branch}"

    def _propose(self, step: Step) -> str:
        made = proposals.propose(
            self.client,
            self.at.repo,
            branch=self.settings.branch,
            base=self.settings.into,
            title=step.title or "",
            body=step.body,
        )
        self.told = replace(self.told, pull=made.number)
        return f"pull request #{made.number} was opened"

    def _edit_pull(self, step: Step) -> str:
        assert step.number
        proposals.edit_proposal(
            self.client, self.at.repo, step.number, title=step.title, body=step.body
        )
        return f"pull request #{step.number} was brought up to date"

    def _close_pull(self, step: Step) -> str:
        assert step.number
        proposals.edit_proposal(self.client, self.at.repo, step.number, body=step.body, open=False)
        self.told = replace(self.told, pull=None)
        issues.comment(self.client, self.at.repo, step.number, step.comment)
        return f"pull request #{step.number} was closed: it is over"

    def _open_issue(self, step: Step) -> str:
        label = self.settings.label
        made = issues.open_issue(self.client, self.at.repo, step.title or "", step.body, [label])
        self.told = replace(self.told, issue=made.number)
        if label.lower() in map(str.lower, made.labels):
            return f"issue #{made.number} was opened"
        return (
            f"issue #{made.number} was opened, without the label {label}: the token in"
            f" {self.at.variable} may not set it, so the issue is found again by this record only"
        )

    def _edit_issue(self, step: Step) -> str:
        assert step.number
        issues.edit_issue(self.client, self.at.repo, step.number, title=step.title, body=step.body)
        return f"issue #{step.number} was brought up to date"

    def _close_issue(self, step: Step) -> str:
        assert step.number
        issues.edit_issue(self.client, self.at.repo, step.number, open=False)
        self.told = replace(self.told, issue=None)
        # After it: whoever is killed between the two has not told twice.
        issues.comment(self.client, self.at.repo, step.number, step.comment)
        return f"issue #{step.number} was closed"

    @contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        try:
            yield
        except PatchqError as error:
            self.says.append(_sentence(what, error))


_STEPS: dict[people.Do, Callable[[_Telling, Step], str]] = {
    "push": _Telling._push,
    "propose": _Telling._propose,
    "edit-pull": _Telling._edit_pull,
    "close-pull": _Telling._close_pull,
    "open-issue": _Telling._open_issue,
    "edit-issue": _Telling._edit_issue,
    "close-issue": _Telling._close_issue,
}


def _before(night: Night, earlier: Sequence[Night]) -> Told:
    """What stands because of the nights before, as they recorded it."""
    nights = (night, *reversed(earlier))
    issue = None
    for each in nights:
        issue = issue or each.told.issue
        if issue or (each is not night and each.state in ("green", "quiet")):
            break
    return Told(
        pull=next((each.told.pull for each in nights if each.told.pull), None),
        pushed=next((each.told.pushed for each in nights if each.told.pushed), None),
        issue=issue,
    )


def _numbers(told: Told) -> tuple[int | None, str | None, int | None]:
    return told.pull, told.pushed, told.issue


def _same(one: Night, other: Night) -> bool:
    return (one.name, one.queue, one.began) == (other.name, other.queue, other.began)


def _sentence(what: str, error: PatchqError) -> str:
    hint = f" ({error.hint})" if error.hint else ""
    return f"{what}{_NOT_NOW}{error.message}{hint}"
