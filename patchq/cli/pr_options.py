"""Arguments and options of `patchq pr`."""

from __future__ import annotations

from typing import Annotated

import typer

Pull = Annotated[
    str, typer.Argument(metavar="PR", help="OWNER/REPO#N, its address, or N of the queue's own.")
]
MaybePull = Annotated[
    str | None, typer.Argument(metavar="[PR]", help="OWNER/REPO#N, its address, or N.")
]
Terms = Annotated[list[str] | None, typer.Argument(metavar="[TERM...]", help="What to look for.")]
MoreGlobs = Annotated[
    list[str] | None, typer.Argument(metavar="[GLOB...]", help="With --exclude: more to leave out.")
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="GLOB", help="Leave files out; may be repeated."),
]
Because = Annotated[str, typer.Option("--why", metavar="TEXT", help="Why; it is recorded.")]
Bring = Annotated[bool, typer.Option("--import", help="Make a patch of it, on top of the series.")]
Revert = Annotated[bool, typer.Option("--revert", help="Make a patch that takes it back.")]
PerCommit = Annotated[bool, typer.Option("--per-commit", help="One patch for each of its commits.")]
Called = Annotated[str, typer.Option("--name", metavar="NAME", help="What to call it.")]
Topic = Annotated[str, typer.Option("--topic", metavar="WORD", help="What it is about.")]
Accept = Annotated[
    bool, typer.Option("--accept", help="Take its new head; our own edits are kept.")
]
Hold = Annotated[
    bool, typer.Option("--hold", help="Keep the pinned head; not asked again for this one.")
]
Repo = Annotated[
    str | None, typer.Option("--repo", metavar="OWNER/REPO", help="Where; else the queue's own.")
]
Limit = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=200, help="How many to show.")
]
