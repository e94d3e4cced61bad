"""The pins with the patches that belong to them: whose queue is whose, and what patches relax."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from patchq.carry.workspace import Queue, read_queue
from patchq.config import Project, queue_names
from patchq.errors import PatchqError
from patchq.judge.needs import Waiver
from patchq.judge.requirement import RELAXES, set_aside
from patchq.queue.patch import Patch
from patchq.upstream.components import FILE, Component, Hardware, Model, Pins, Template, pinned


@dataclass(frozen=True)
class Book:
    """Everything on disk about the runner's parts: `queues` are those of patched components."""

    project: Project
    queue: Queue
    pins: Pins
    queues: Mapping[str, Queue]

    @property
    def hardware(self) -> Hardware:
        """Raises PatchqError where the file does not say what the runner is for."""
        if self.pins.hardware is None:
            raise PatchqError(
                f"upstream/{FILE} does not say what hardware the runner is for",
                'add [hardware] with machine = "aarch64", python = "3.12", glibc = "2.39",'
                ' cuda = "13.0"',
            )
        return self.pins.hardware

    @property
    def patches(self) -> tuple[tuple[Queue, Patch], ...]:
        """Every applied patch, of the queue itself and of the components."""
        queues = (self.queue, *self.queues.values())
        return tuple((queue, patch) for queue in queues for patch in queue.series.applied)

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """What patches and the file itself set aside. Raises PatchqError for a malformed field."""
        by_file = [
            Waiver(each.of, each.requirement, f"upstream/{FILE} ({each.why})")
            for each in self.pins.relaxed
        ]
        return (
            *(each for queue, patch in self.patches for each in relaxed_by(queue, patch)),
            *by_file,
        )


def open_book(project: Project, name: str | None) -> Book:
    """The parts of the runner whose queue is `name`.

    Raises PatchqError for whatever is malformed, or a component's series without its queue.
    """
    queue = read_queue(project, name)
    pins = pinned(project.upstream)
    names = set(queue_names(project)) - {queue.config.name}
    queues: dict[str, Queue] = {}
    for component in pins.components:
        if component.name in names:
            queues[component.name] = read_queue(project, component.name)
        elif (project.root / "series" / component.name / "series").exists():
            where = f"series/{component.name}"
            raise PatchqError(
                f"{where} has patches, but {component.name} has no queue",
                f"move it away, `patchq init {component.name} {source_option(component)}`, then"
                f" `patchq import --queue {component.name} --quilt DIR`",
            )
    return Book(project, queue, pins, queues)


def source_option(component: Component) -> str:
    """The options of `patchq init` that make a queue of a component."""
    if component.index:
        return f"--index {component.index} --base {component.version}"
    return f"--git {component.git or 'URL'} --base {component.commit}"


def origin(entry: Component | Model | Template) -> str:
    """Where an entry comes from, in a word and a name."""
    if isinstance(entry, Component):
        return f"index {entry.index}" if entry.index else f"git {entry.git}"
    return f"hub {entry.repository}"


def address(pins: Pins, entry: Model | Template) -> str:
    """Where git finds the repository of an entry of the hub."""
    return f"{pins.hub}/{entry.repository}"


def relaxed_by(queue: Queue, patch: Patch) -> Iterable[Waiver]:
    fields = patch.header.all(RELAXES)
    for of, requirement, to in set_aside(fields, queue.path_of(patch)):
        yield Waiver(of, requirement, f"carried patch {patch.name}", to)
