"""Everything that was named, looked at in one go: what `patchq doctor` does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from patchq.carry import journal
from patchq.carry.workspace import Queue, read_queue, reading, writing
from patchq.cluster import config as clusters
from patchq.cluster.config import Cluster
from patchq.config import find_project, queue_names
from patchq.doctor import artifact, capabilities, checkpoint, draft, goldens, nodes, template
from patchq.doctor.capabilities import NOT_ASKED, Loader
from patchq.doctor.model import Check, Diagnosis
from patchq.doctor.rendering import ChatTemplate, Unrenderable
from patchq.errors import PatchqError, UsageError
from patchq.progress import SILENT, Progress
from patchq.upstream.components import Pins, pinned


@dataclass(frozen=True)
class Asked:
    """What is to be looked at, None where it was not named. `tp`: for how many ranks it is meant,
    `draft_tokens`: how many are to be drafted.
    """

    model: Path | None = None
    draft: Path | None = None
    template: Path | None = None
    artifact: Path | None = None
    cluster: str | None = None
    draft_tokens: int | None = None
    tp: int | None = None
    full: bool = False

    @property
    def paths(self) -> dict[clusters.Kind, Path]:
        """What runs on the nodes, by kind."""
        kinds: dict[clusters.Kind, Path | None] = {
            "artifact": self.artifact,
            "model": self.model,
            "draft": self.draft,
            "template": self.template,
        }
        return {kind: path for kind, path in kinds.items() if path is not None}


@dataclass(frozen=True)
class Here:
    """The project around the current folder: its queue and what it pins; None: there is none.

    `recovered`: what an interrupted command left and this one completed.
    """

    queue: Queue | None = None
    pins: Pins | None = None
    root: Path | None = None
    recovered: str | None = None


def here(start: Path, name: str | None) -> Here:
    """Raises PatchqError where the project is malformed, or the queue `name` is not in it."""
    try:
        find_project(start)
    except PatchqError:
        if name is not None:
            raise
        return Here()
    project, recovered = reading(start, "doctor")
    queue = read_queue(project, name) if name or queue_names(project) else None
    return Here(queue, pinned(project.upstream), project.root, recovered)


def examine(
    asked: Asked, around: Here, *, offline: bool = False, progress: Progress = SILENT
) -> Diagnosis:
    """Raises UsageError where nothing was named, PatchqError where what was named is not there."""
    if asked.draft_tokens is not None and asked.draft is None:
        raise UsageError("--draft-tokens of which drafter?", "name it with --draft DIR")
    if asked.tp is not None and asked.model is None and asked.cluster is None:
        raise UsageError("--tp of which checkpoint?", "name it with --model DIR")

    def loader() -> Loader:
        if asked.artifact is not None:
            return capabilities.of_artifact(asked.artifact)
        if around.queue is not None:
            return capabilities.of_queue(around.queue, offline=offline, progress=progress)
        return NOT_ASKED

    cluster = _cluster(asked, around)
    tp = asked.tp or (len(cluster.nodes) if cluster else None)
    found: list[Check] = []
    if (model := _here(asked.model, cluster)) is not None:
        found += checkpoint.check(model, loader, tp, progress)
    if (drafter := _here(asked.draft, cluster)) is not None:
        drafts = around.pins.drafts if around.pins else ()
        found += draft.check(drafter, model, asked.draft_tokens, drafts)
    if (text := _here(asked.template, cluster)) is not None:
        pins = around.pins.templates if around.pins else None
        found += template.check(text, pins, around.root)
    if (wheel := _here(asked.artifact, cluster)) is not None:
        found += artifact.check(wheel, progress=progress)
    if cluster is not None:
        found += nodes.check(cluster, asked.paths, full=asked.full, progress=progress)
    if not found:
        raise UsageError(
            "nothing was named to look at",
            "name --model DIR, --draft DIR, --template FILE, --artifact FILE or --cluster C, or"
            " several of them",
        )
    return Diagnosis(tuple(found))


def _cluster(asked: Asked, around: Here) -> Cluster | None:
    if asked.cluster is None:
        return None
    if around.root is None:
        raise PatchqError(
            f"there is no project here that has a cluster {asked.cluster!r}",
            "run it in the repository whose ci/clusters/ describes the nodes",
        )
    return clusters.load(around.root, asked.cluster)


def _here(path: Path | None, cluster: Cluster | None) -> Path | None:
    """What is to be looked at on this machine; with a cluster, it may be on its nodes alone."""
    return None if path is None or (cluster and not path.exists()) else path


def write_goldens(path: Path, start: Path) -> str:
    """Render the golden conversations with the template `path` and keep them in the project.

    Returns the file that was written, below the project's root. `patchq undo` takes it back.
    Raises PatchqError where no template is pinned that it could be, or where it cannot be rendered.
    """
    source = template.read(path)
    with writing(start, "doctor") as (project, _):
        pin = template.find_pin(path, source.sha256, pinned(project.upstream).templates)
        if pin is None or pin.sha256 not in ("", source.sha256):
            what = f"{path.name} is not {pin.name} at {pin.revision}" if pin else "it is not pinned"
            raise PatchqError(
                f"no golden texts for {path.name}: {what}",
                "pin it as a [[template]] in upstream/dependencies.toml first",
            )
        try:
            found = goldens.render(ChatTemplate(source.text))
        except Unrenderable as problem:
            raise PatchqError(
                f"{path} cannot be rendered: {problem}", "mend the template first"
            ) from problem
        where = goldens.path_of(pin.name)
        data = goldens.dump(pin.name, source.sha256, found)
        journal.record(project, "doctor", f"golden texts of {pin.name}", {where: data})
    return where
