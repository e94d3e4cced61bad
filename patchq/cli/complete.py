"""What the shell offers: names of queues and patches. Errors offer nothing."""

from __future__ import annotations

from pathlib import Path

from patchq.errors import PatchqError


def queue_names(incomplete: str) -> list[str]:
    from patchq import config

    try:
        names = config.queue_names(config.find_project(Path.cwd()))
    except (PatchqError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete)]


def targets(incomplete: str) -> list[str]:
    from patchq.build.target import TARGETS

    return [name for name in TARGETS if name.startswith(incomplete)]


def cluster_names(incomplete: str) -> list[str]:
    from patchq.cluster.config import names
    from patchq.release.installed import root

    try:
        found = names(root(Path.cwd()))
    except (PatchqError, OSError):
        return []
    return [name for name in found if name.startswith(incomplete)]


def profile_names(incomplete: str) -> list[str]:
    from patchq import config
    from patchq.cluster.profile import names

    try:
        found = names(config.find_project(Path.cwd()).root)
    except (PatchqError, OSError):
        return []
    return [name for name in found if name.startswith(incomplete)]


def probe_names(incomplete: str) -> list[str]:
    from patchq.smoke.catalog import PROBES

    return [probe.name for probe in PROBES if probe.name.startswith(incomplete)]


def runners(incomplete: str) -> list[str]:
    """Releases, and the runners of which there is evidence."""
    from patchq import config
    from patchq.smoke.evidence import there
    from patchq.smoke.released import numbers

    try:
        root = config.find_project(Path.cwd()).root
        found = [*map(str, numbers(root)), *there(root)]
    except (PatchqError, OSError):
        return []
    return [name for name in found if name.startswith(incomplete)]


def release_numbers(incomplete: str) -> list[str]:
    from patchq import config
    from patchq.smoke.released import numbers

    try:
        found = numbers(config.find_project(Path.cwd()).root)
    except (PatchqError, OSError):
        return []
    return [str(number) for number in found if str(number).startswith(incomplete)]


def part_names(incomplete: str) -> list[str]:
    from patchq import config
    from patchq.upstream.components import pinned

    try:
        found = pinned(config.find_project(Path.cwd()).upstream)
    except (PatchqError, OSError):
        return []
    return [each.name for _, each in found.all if each.name.startswith(incomplete)]


def answers(incomplete: str) -> list[str]:
    return [each for each in ("keep", "drop") if each.startswith(incomplete)]


def patch_names(incomplete: str) -> list[str]:
    return [name for name in _names() if name.startswith(incomplete)]


def held_names(incomplete: str) -> list[str]:
    return [name for name, held in _names().items() if held and name.startswith(incomplete)]


def applied_names(incomplete: str) -> list[str]:
    """Patches that are applied in the working tree."""
    return [name for name in patch_names(incomplete) if name in _applied()]


def unapplied_names(incomplete: str) -> list[str]:
    """Patches that are neither applied in the working tree nor held."""
    held = held_names(incomplete)
    return [n for n in patch_names(incomplete) if n not in held and n not in _applied()]


def _applied() -> list[str]:
    from patchq import config
    from patchq.work import state

    try:
        project = config.find_project(Path.cwd())
        found = state.read(state.place_of(project, config.load_queue(project).name))
    except (PatchqError, OSError):
        return []
    return [each.name for each in found.applied] if found else []


def _names() -> dict[str, bool]:
    """Each patch of the queue, and whether it is held."""
    from patchq import config
    from patchq.queue import series

    try:
        project = config.find_project(Path.cwd())
        found = series.read(project.root / config.load_queue(project).series)
    except (PatchqError, OSError):
        return {}
    return {patch.name: patch.name in found.held for patch in found.all}
