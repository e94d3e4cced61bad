"""Issues on GitHub: those under a label, and the steps that change one.

Facts that these functions rest on (GitHub's documentation): pull requests are in the list of
issues, too; a label that does not exist is made with the issue; labels of a token that may not
set any are dropped without a word, so what an issue has stands in `Issue.labels` only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patchq.forge.answers import address, at, author, entries, require_number, text
from patchq.forge.client import Client
from patchq.forge.errors import ForgeError
from patchq.forge.threads import fit_body, fit_title, once, permitted, twice
from patchq.forge.writing import Writer

_ADVICE = "the permission `issues: write`, and issues have to be on,"


@dataclass(frozen=True)
class Issue:
    """`title`, `body`, `author` and `labels` are as they were written: hostile."""

    number: int
    title: str
    body: str
    open: bool
    author: str
    labels: tuple[str, ...]
    page: str


def labelled(client: Client, repo: str, label: str, *, open_only: bool = True) -> tuple[Issue, ...]:
    """The issues under a label (without a comma), the newest first. Raises ForgeError."""
    asked = {"labels": label, "state": "open" if open_only else "all"}
    items = entries(client, f"{at(repo)}/issues", {**asked, "sort": "created", "direction": "desc"})
    found = (_issue(client, item) for item in items if not item.get("pull_request"))
    # A label that is not asked for rightly would bring everybody's.
    return tuple(each for each in found if label.lower() in map(str.lower, each.labels))


def issue(client: Client, repo: str, number: int) -> Issue | None:
    """The issue; None where it is gone, moved away, or is a pull request. Raises ForgeError."""
    try:
        found = client.get(f"{at(repo)}/issues/{number}")
    except ForgeError as error:
        if error.kind == "absent":
            return None
        raise
    made = _issue(client, found)
    return None if made.number != number or found.get("pull_request") else made


def open_issue(
    writer: Writer, repo: str, title: str, body: str, labels: Sequence[str] = ()
) -> Issue:
    """An open issue with these words, once.

    Where `body` begins with a line that is a comment (`<!-- NAME -->`), this marker and the first
    label say which issue it is: an open one that has both gets the words, and no second is opened.
    Of several that were opened at once the oldest stays, and the others are closed. Where the
    token may not set labels, `Issue.labels` lacks them. Raises ForgeError; it may have been opened
    nevertheless, and then the next call finds it.
    """
    title, body = fit_title(title), fit_body(body)
    marker = body.partition("\n")[0].strip()
    label = labels[0] if labels and marker.startswith("<!--") else None

    def ours() -> list[Issue]:
        """The oldest first."""
        under = labelled(writer, repo, label) if label else ()
        return [each for each in under[::-1] if _marker(each) == marker]

    def made() -> Issue | None:
        # Without its labels it can be told by its words alone: nobody else writes just these.
        return next(iter(ours()), None) or _newest(writer, repo, title, body)

    def send() -> Issue:
        value = {"title": title, "body": body, "labels": list(labels)}
        with permitted(writer, repo, f"issues of {repo}", _ADVICE):
            return _issue(writer, writer.write("POST", f"{at(repo)}/issues", value))

    there = ours()
    if not there:
        opened = once(writer, send, made)
        # Another may have looked and opened at the same time.
        there = sorted({each.number: each for each in (opened, *ours())}.values(), key=_number)
    first, *more = there
    for each in more:
        edit_issue(writer, repo, each.number, open=False)
    if not _says(first, title, body):
        return edit_issue(writer, repo, first.number, title=title, body=body)
    return first


def edit_issue(
    writer: Writer,
    repo: str,
    number: int,
    *,
    title: str | None = None,
    body: str | None = None,
    open: bool | None = None,
) -> Issue:
    """Other words for an issue, or open or closed; what is None stays. Raises ForgeError."""
    value = {
        "title": None if title is None else fit_title(title),
        "body": None if body is None else fit_body(body),
        "state": None if open is None else ("open" if open else "closed"),
    }
    value = {key: each for key, each in value.items() if each is not None}
    with permitted(writer, repo, f"issue {number} of {repo}", _ADVICE):
        path = f"{at(repo)}/issues/{number}"
        return _issue(writer, twice(writer, lambda: writer.write("PATCH", path, value)))


def comment(writer: Writer, repo: str, number: int, body: str) -> None:
    """One comment below an issue or a pull request. Raises ForgeError."""
    path, body = f"{at(repo)}/issues/{number}/comments", fit_body(body)

    def same() -> set[int]:
        return set(_ids(writer, entries(writer, path, {}), body))

    def send() -> bool:
        writer.write("POST", path, {"body": body})
        return True

    with permitted(writer, repo, f"issue {number} of {repo}", _ADVICE):
        before = same()
        once(writer, send, lambda: True if same() - before else None)


def _ids(client: Client, items: Iterable[Mapping[str, Any]], body: str) -> Iterable[int]:
    for item in items:
        if type(item.get("id")) is not int:
            raise client.odd()
        if text(item, "body") == body:
            yield item["id"]


def _newest(client: Client, repo: str, title: str, body: str) -> Issue | None:
    """Of the hundred that were opened last the one with these words."""
    asked = {"state": "open", "sort": "created", "direction": "desc", "per_page": "100"}
    items = client.get(f"{at(repo)}/issues", asked)
    if not isinstance(items, list):
        raise client.odd()
    found = (_issue(client, item) for item in items if "pull_request" not in item)
    return next((each for each in found if _says(each, title, body)), None)


def _says(issue: Issue, title: str, body: str) -> bool:
    """Whether these are its words; how a forge ends lines is its own matter."""
    there = issue.body.replace("\r\n", "\n").rstrip()
    return issue.title == title and there == body.replace("\r\n", "\n").rstrip()


def _marker(issue: Issue) -> str:
    return issue.body.partition("\n")[0].strip()


def _number(issue: Issue) -> int:
    return issue.number


def _issue(client: Client, item: Any) -> Issue:
    item = require_number(client, item)
    found = item.get("labels")
    labels = [each if isinstance(each, dict) else {"name": each} for each in found or ()]
    return Issue(
        number=item["number"],
        title=text(item, "title"),
        body=text(item, "body"),
        # What does not say that it is open is not written to as if it were.
        open=item.get("state") == "open",
        author=author(item),
        labels=tuple(name for each in labels if (name := text(each, "name"))),
        page=address(item, "html_url"),
    )
