"""A queue's upstream, by its configuration: the first source that is named is used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from patchq.config import QueueConfig, Source, cache_dir
from patchq.progress import SILENT, Progress
from patchq.upstream.releases import Upstream

if TYPE_CHECKING:
    from patchq.upstream.history import History


def open_upstream(
    config: QueueConfig,
    root: Path,
    *,
    offline: bool = False,
    refresh: bool = False,
    progress: Progress = SILENT,
) -> Upstream:
    """The upstream of the queue in the repository at `root`. The caller closes it."""
    return open_source(config.sources[0], root, offline=offline, refresh=refresh, progress=progress)


def open_source(
    source: Source,
    root: Path,
    *,
    offline: bool = False,
    refresh: bool = False,
    progress: Progress = SILENT,
) -> Upstream:
    """One source; a relative path counts from `root`."""
    if source.kind == "index":
        from patchq.upstream.archives import Archives

        return Archives(
            source.value, cache_dir(), offline=offline, refresh=refresh, progress=progress
        )
    return open_history(source, root, offline=offline, progress=progress)


def open_history(
    source: Source, root: Path, *, offline: bool = False, progress: Progress = SILENT
) -> History:
    """A git source, for its history; a relative path counts from `root`."""
    from patchq.upstream.history import History

    value = source.value
    if (root / value).exists():
        value = str(root / value)
    return History(value, cache_dir(), offline=offline, progress=progress)
