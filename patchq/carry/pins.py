"""Edit `upstream/dependencies.toml`: move a pin, record what is set aside. Comments stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from patchq.config import Project
from patchq.upstream.components import FILE, Relaxed, parse, pinned
from patchq.upstream.releases import Release

PATH = f"upstream/{FILE}"


def edited(
    project: Project,
    kind: str,
    name: str,
    values: Mapping[str, str],
    relaxed: Iterable[Relaxed] = (),
) -> dict[str, bytes | None]:
    """The file with the entry's `values` ("" removes one), as a change to be recorded.

    No change where it reads so already.
    """
    import tomlkit

    file = project.upstream / FILE
    before = file.read_text(encoding="utf-8")
    document = tomlkit.parse(before)
    entries: Any = document[kind]
    entry = next(each for each in entries if each.get("name") == name)
    for key, value in values.items():
        if value:
            entry[key] = value
        elif key in entry:
            del entry[key]
    known = {(each.of, each.requirement) for each in pinned(project.upstream).relaxed}
    fresh = [each for each in relaxed if (each.of, each.requirement) not in known]
    after = tomlkit.dumps(document)
    for each in fresh:
        table = {"of": each.of, "requirement": each.requirement, "why": each.why}
        after += f"\n[[relaxed]]\n{tomlkit.dumps(table)}"
    parse(after, PATH)
    return {PATH: after.encode()} if after != before else {}


def pin_of(release: Release, *, index: bool) -> dict[str, str]:
    """What the file says of a component on `release`, from the index or from git."""
    facts = dict(release.facts)
    if not index:
        return {"commit": release.commit}
    return {
        "version": release.name.removeprefix("v"),
        "sha256": facts.get("sha256", ""),
        "commit": facts.get("upstream-commit", ""),
    }


def followed(project: Project, queue: str, release: Release) -> dict[str, bytes | None]:
    """The pin of the component whose own queue moves to `release`; no change for other queues."""
    component = next((e for e in pinned(project.upstream).components if e.name == queue), None)
    if component is None:
        return {}
    values = pin_of(release, index=bool(component.index))
    if (component.version if component.index else component.commit) == next(iter(values.values())):
        return {}
    return edited(project, "component", queue, values)
