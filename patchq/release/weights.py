"""Models, drafts and templates: from their own source, at the pinned revision, to every node.

They are never part of a release, whose licence is not theirs. A node has them under a name that
says the revision, so the release before keeps its own (`patchq.cluster.there.weights`).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchq.cluster import errand
from patchq.cluster.config import Node
from patchq.cluster.nodes import Reach, sound
from patchq.cluster.shell import Shell
from patchq.errors import Incomplete, PatchqError, ProofFailed
from patchq.paths import show
from patchq.progress import SILENT, Progress
from patchq.release import from_hub
from patchq.release.from_hub import INDEX
from patchq.release.manifest import ModelIs
from patchq.release.sums import sha256
from patchq.upstream import hub, pipconf
from patchq.upstream.hub import Revision
from patchq.upstream.pipconf import IndexSettings

TEMPLATE = "chat_template.jinja"
_REVISION = re.compile(r"[0-9a-f]{7,64}")
_SHORT = 12


@dataclass(frozen=True)
class Brought:
    """What a node has now: `how` is "was there", "copied", "fetched" or "shipped"."""

    node: str
    kind: str
    place: str
    how: str


def place(model: ModelIs) -> str:
    """Its name on the nodes. Raises PatchqError for a revision that is no commit."""
    if not _REVISION.fullmatch(model.revision):
        raise PatchqError(
            f"{model.name} is pinned to {model.revision!r}, which is no commit",
            "tell those who publish the release",
        )
    return f"{model.name}-{model.revision[:_SHORT]}"


def bring(
    reach: Reach,
    models: Sequence[ModelIs],
    staging: Path,
    *,
    offline: bool = False,
    progress: Progress = SILENT,
) -> tuple[Brought, ...]:
    """See that every node has all of them, whole and verified.

    `staging`: where they lie on their way, where this machine is no node. Raises PatchqError; what
    is under way goes on from there the next time.
    """
    brought: list[Brought] = []
    for model in models:
        one = _Template if model.kind == "template" else _Weights
        brought += one(reach, model, staging, offline, progress).bring()
    return tuple(brought)


class _Wanted:
    def __init__(
        self, reach: Reach, model: ModelIs, staging: Path, offline: bool, progress: Progress
    ) -> None:
        self._reach, self._model, self._staging = reach, model, staging
        self._offline, self._progress = offline, progress
        self._place = place(model)
        self._base = hub.endpoint()
        self._settings: IndexSettings = pipconf.read_settings()
        self._nodes = reach.cluster.nodes

    def _listed(self) -> Revision:
        model = self._model
        if self._offline:
            raise PatchqError(
                f"{model.name} is not on every node, and --offline forbids to fetch it",
                f"copy {model.repository} at {model.revision} there, into the models folder as"
                f" {model.name}",
            )
        self._progress.step(f"asking for the files of {model.name}")
        return hub.revision(self._base, model.repository, model.revision, self._settings)

    def _said(self, node: Node, how: str) -> Brought:
        return Brought(node.name, self._model.kind, self._place, how)


class _Template(_Wanted):
    """One file, in `templates/` of the node's folder."""

    def bring(self) -> list[Brought]:
        def there(node: Node, shell: Shell) -> bool:
            path = self._path(node, shell)
            found = errand.run(shell, node, "files.digests", {"paths": [path]})[path]
            return found is not None and self._model.sha256 in (None, found)

        have = sound(self._reach.each(there))
        lacking = [node for node, has in zip(self._nodes, have, strict=True) if not has]
        if lacking:
            data = self._fetched()
            self._staging.mkdir(parents=True, exist_ok=True)
            file = self._staging / f"{self._place}.jinja"
            file.write_bytes(data)
            for node in lacking:
                shell = self._reach.shell(node)
                shell.send(file, self._path(node, shell))
            file.unlink()
        return [self._said(n, "fetched" if n in lacking else "was there") for n in self._nodes]

    def _path(self, node: Node, shell: Shell) -> str:
        folder = errand.run(shell, node, "files.home", {})
        return f"{folder}/templates/{self._place}.jinja"

    def _fetched(self) -> bytes:
        name = self._model.file or TEMPLATE
        revision = self._listed()
        file = next((each for each in revision.files if each.path == name), None)
        if file is None:
            raise PatchqError(
                f"{revision.repository} has no {name} at {revision.commit}",
                "tell those who publish the release",
            )
        data = from_hub.small(self._base, revision, file, self._settings)
        if self._model.sha256 not in (None, hashlib.sha256(data).hexdigest()):
            raise _another(self._model)
        return data


class _Weights(_Wanted):
    """A folder of files, in `models` of the node."""

    def bring(self) -> list[Brought]:
        def there(node: Node, shell: Shell) -> bool:
            return errand.run(shell, node, "weights.have", self._asked(node)) is not None

        have = sound(self._reach.each(there))
        lacking = [node for node, has in zip(self._nodes, have, strict=True) if not has]
        how = {node.name: "was there" for node in self._nodes}
        if lacking and self._offline:
            how |= {node.name: "copied" for node in lacking if self._trust(node)}
            lacking = [node for node in lacking if how[node.name] != "copied"]
        if lacking:
            revision = self._listed()
            how |= {node.name: "copied" for node in lacking if self._copied(node, revision)}
            lacking = [node for node in lacking if how[node.name] != "copied"]
            how |= self._brought(lacking, revision) if lacking else {}
        return [self._said(node, how[node.name]) for node in self._nodes]

    def _asked(self, node: Node, revision: Revision | None = None, **more: Any) -> dict[str, Any]:
        files = revision.files if revision else ()
        return {
            "models": node.models,
            "place": self._place,
            "repository": self._model.repository,
            "revision": revision.commit if revision else self._model.revision,
            "files": [[each.path, each.size, each.sha256, each.blob] for each in files],
            **more,
        }

    def _copies(self, node: Node) -> list[str]:
        """Where a node may have a copy: its models folder, and the hub's own cache."""
        name = self._model.repository.replace("/", "--")
        hub_cache = f".cache/huggingface/hub/models--{name}/snapshots"
        return [f"{node.models}/{self._model.name}", hub_cache]

    def _copied(self, node: Node, revision: Revision) -> bool:
        """Whether it has a copy with exactly these files; it is taken then."""
        shell = self._reach.shell(node)
        own, cache = self._copies(node)
        for path in (own, f"{cache}/{revision.commit}"):
            asked = self._asked(node, revision, path=path, copy=path)
            self._progress.step(f"looking for a copy of {self._model.name} on {node.name}")
            if self._differs(node, asked) is None:  # one that is not there differs in its first
                errand.run(shell, node, "weights.take", asked)
                return True
        return False

    def _trust(self, node: Node) -> bool:
        """Offline only the pinned index tells a copy: whether there is one that has it."""
        path = f"{node.models}/{self._model.name}"
        shell = self._reach.shell(node)
        said = errand.run(shell, node, "weights.indexed", {"path": path, "index": INDEX})
        if said is None or self._model.sha256 is None:
            return False
        if said["sha256"] != self._model.sha256:
            raise _another(self._model)
        asked = {**self._asked(node), "copy": path, "files": said["files"]}
        errand.run(shell, node, "weights.take", asked)
        return True

    def _brought(self, lacking: Sequence[Node], revision: Revision) -> dict[str, str]:
        """Fetch once, then copy on: from the node that is this machine, or from `staging`."""
        local = next((node for node in self._nodes if node.ssh is None), None)
        how: dict[str, str] = {}
        if local is None:
            folder = self._staging / self._place
            folder.mkdir(parents=True, exist_ok=True)
            self._download(revision, folder, shutil.disk_usage(folder).free)
        else:
            folder = Path(os.path.expanduser("~")) / local.models / self._place
            if local in lacking:
                path, free, _ = self._begun(local, revision)
                self._download(revision, Path(path), free)
                self._take(local, revision)
                how[local.name] = "fetched"
        with _without_links(folder, self._staging / f"{self._place}.plain") as plain:
            for node in lacking:
                if node is not local:
                    self._ship(plain, node, revision)
                    how[node.name] = "shipped"
        shutil.rmtree(self._staging, ignore_errors=True)
        return how

    def _ship(self, folder: Path, node: Node, revision: Revision) -> None:
        shell = self._reach.shell(node)
        self._progress.step(f"shipping {self._model.name} to {node.name}")
        path, free, there = self._begun(node, revision)
        if sum(each.size for each in revision.files) - there > free:
            raise errand.no_space(node, self._model.name)
        shell.send(folder, path)
        if (wrong := self._differs(node, self._asked(node, revision, path=path))) is not None:
            raise PatchqError(
                f"{show(wrong)} of {self._model.name} has other bytes on {node.name} than here",
                "see to its disk and to the way there; run it again",
            )
        self._take(node, revision)

    def _begun(self, node: Node, revision: Revision) -> tuple[str, int, int]:
        """Where it goes on the node, absolute; bytes free there; bytes that are there already."""
        asked = self._asked(node, revision)
        said = errand.run(self._reach.shell(node), node, "weights.begin", asked)
        return str(said["path"]), int(said["free"]), int(said["size"])

    def _download(self, revision: Revision, folder: Path, free: int) -> None:
        from_hub.download(self._base, revision, folder, free, self._settings, self._progress)
        index = folder / INDEX
        wanted = self._model.sha256
        if wanted and index.is_file() and sha256(index) != wanted:
            raise _another(self._model)

    def _differs(self, node: Node, asked: dict[str, Any]) -> str | None:
        """The first file that is other than asked; hashing takes minutes."""
        shell = self._reach.shell(node)
        said, words = errand.stream(shell, node, "weights.differs", asked, lambda _: None)
        if said is None and errand.MARK not in words:
            raise Incomplete(f"{node.name} did not say what it has", "run it again")
        return None if said is None else str(said)

    def _take(self, node: Node, revision: Revision) -> None:
        asked = self._asked(node, revision, copy=None)
        errand.run(self._reach.shell(node), node, "weights.take", asked)


def _another(model: ModelIs) -> ProofFailed:
    return ProofFailed(
        f"{model.name} is not what the release was tested with: its sha256 is another",
        f"take {model.repository} at {model.revision}, and nothing else",
    )


@contextmanager
def _without_links(folder: Path, beside: Path) -> Iterator[Path]:
    """The folder, or one `beside` with its files: the hub's cache has links, which rsync keeps."""
    files = [path for path in folder.rglob("*") if not path.is_dir()]
    if not any(path.is_symlink() for path in files):
        yield folder
        return
    shutil.rmtree(beside, ignore_errors=True)
    try:
        for path in files:
            target = beside / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path.resolve(), target)
            except OSError:  # on another disk
                shutil.copyfile(path, target)
        yield beside
    finally:
        shutil.rmtree(beside, ignore_errors=True)
