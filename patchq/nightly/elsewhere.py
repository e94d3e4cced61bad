"""A night that ran on another machine, told from here: `patchq nightly --tell DIR`.

That machine runs upstream's code and holds no token; this one holds the token. So nothing of DIR is
believed: its night is read strictly, and its commits may change the series and what sync writes
beside it, nothing else (no workflow, no setting, no source of upstream's).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from patchq.build.target import TARGETS
from patchq.config import find_project, queue_names
from patchq.errors import Incomplete, PatchqError
from patchq.gitstore import clone as clones
from patchq.nightly import kept
from patchq.nightly.after import BUNDLE
from patchq.nightly.form import FILE
from patchq.nightly.model import Night, Told
from patchq.nightly.settings import Settings

ALLOWED = {
    "series": True,
    "upstream/state.json": False,
    "upstream/decisions.toml": False,
    "upstream/runner.lock": False,
    **{f"upstream/requirements.{target}.lock": False for target in TARGETS},
}
"""What a night's commits may change: files, and folders where True."""


def night(root: Path, settings: Settings, folder: Path) -> Night:
    """The night of `folder`; its commit is in the project at `root` then, kept by a hidden ref.

    What it says that people were told is left out. Raises PatchqError for whatever is not as it has
    to be; then nothing of it is kept.
    """
    if (folder / FILE).is_symlink() or not (folder / FILE).is_file():
        raise PatchqError(
            f"{folder} has no {FILE}", "name the folder of a night: `patchq nightly` says which"
        )
    found = kept.read((folder / FILE).read_bytes())
    if found.state == "running":
        raise PatchqError(
            f"the night {found.name} is not over", "run `patchq nightly` where it began: it goes on"
        )
    if found.queue not in queue_names(find_project(root)):
        raise PatchqError(
            f"the night is of a queue {found.queue!r}, which is not one of this project's",
            "tell it in the project that it is of",
        )
    if found.commit is not None:
        clones.unbundle(
            root,
            folder / BUNDLE,
            start=found.start,
            commit=found.commit,
            branches=(f"refs/remotes/origin/{settings.into}", "HEAD"),
            allowed=ALLOWED,
            ref=f"{clones.NIGHTS}{found.name}",
        )
    return replace(found, told=Told())


def exit_code(told: Told) -> int:
    """0: everything was told; 6: something of it was not, and telling it again does the rest."""
    from patchq.nightly.tell import missed

    return Incomplete.exit_code if missed(told) else 0
