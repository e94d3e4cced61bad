"""Upstream as the package index has it: one archive a release, no history.

An archive is downloaded once, checked, and streamed into the store as a commit without parents.
Its id depends on nothing but the archive's content, so it is the same on every machine.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from pathlib import Path

from patchq.errors import PatchqError
from patchq.gitstore.fastimport import Ident, Write
from patchq.gitstore.store import Store
from patchq.progress import SILENT, Progress
from patchq.upstream import index as indexes
from patchq.upstream import pipconf
from patchq.upstream.index import IndexAnswer
from patchq.upstream.pages import Dist, measured
from patchq.upstream.releases import AsOf, Release

NOBODY = Ident(b"patchq", b"patchq@localhost", 0)


class Archives:
    """The releases of `package` on the configured package index.

    `wheels`: a release without a source archive is taken from a wheel, its Python alone.
    """

    def __init__(
        self,
        package: str,
        cache: Path,
        *,
        offline: bool = False,
        refresh: bool = False,
        wheels: bool = False,
        progress: Progress = SILENT,
    ) -> None:
        self._package = indexes.normalized(package)
        self._cache = cache
        self._offline = offline
        self._refresh = refresh
        self._wheels = wheels
        self._progress = progress
        self._asked: list[str] = []

    @property
    def names_are_fixed(self) -> bool:
        """A version is uploaded once."""
        return True

    @cached_property
    def store(self) -> Store:
        return Store(self._cache / "stores" / f"index-{self._package}.git")

    def close(self) -> None:
        if "store" in self.__dict__:
            self.store.close()

    @cached_property
    def _settings(self) -> pipconf.IndexSettings:
        return pipconf.read_settings()

    @cached_property
    def _answer(self) -> IndexAnswer:
        self._progress.step(f"asking the package index for {self._package}")
        return indexes.look_up(
            self._package,
            self._settings,
            self._cache / "index",
            offline=self._offline,
            refresh=self._refresh,
        )

    def as_of(self) -> AsOf:
        answer = self._answer
        notes = tuple(
            f"{self._package} {each.version} was yanked: {each.yanked or 'no reason given'}"
            for each in answer.sdists
            if each.yanked is not None and each.version in self._asked
        )
        return AsOf(f"package index, {self._package}", answer.as_of, answer.complete, notes=notes)

    def latest(self) -> str:
        return indexes.choose(self._answer, "latest").version

    def release(self, name: str, *, commit: str | None = None) -> Release:
        version = name.removeprefix("v")
        self._asked.append(version)
        known = self._stored(version)
        if known is not None:
            return known
        sdist = self._choose(name)
        known = self._stored(sdist.version)
        return known if known is not None else self._bring(sdist)

    def _choose(self, name: str) -> Dist:
        try:
            return self._pick(name)
        except PatchqError:
            if self._offline or not (self._answer.from_cache and self._answer.complete):
                raise
        # Somebody may know of a release that is newer than our list.
        self._refresh = True
        del self._answer
        return self._pick(name)

    def _pick(self, name: str) -> Dist:
        try:
            return indexes.choose(self._answer, name)
        except PatchqError:
            found = self._answer.wheels(name.removeprefix("v")) if self._wheels else ()
            if not found:
                raise
            # Any will do for its Python; the one without a platform has nothing else.
            return measured(
                min(found, key=lambda each: ("-none-any." not in each.filename, each.filename))
            )

    def _stored(self, version: str) -> Release | None:
        """A release that is in the store already: its commit's message holds its facts."""
        commit = self.store.resolve(_ref(version))
        if commit is None:
            return None
        _, _, data = next(self.store.objects.read_many([commit]))
        lines = data.partition(b"\n\n")[2].decode("utf-8", "replace").splitlines()
        facts = [line.partition(": ") for line in lines if ": " in line]
        pairs = tuple((key, value) for key, _, value in facts)
        return Release(version, commit, self.store.objects.tree_of(commit), pairs)

    def _bring(self, sdist: Dist) -> Release:
        if self._offline:
            raise PatchqError(
                f"{self._package} {sdist.version} is not in the store, and --offline forbids"
                " to download it",
                "run it once without --offline",
            )
        from patchq.upstream import download

        folder = self._cache / "archives"
        with download.alone(sdist, folder, self._progress):
            known = self._stored(sdist.version)
            if known is not None:  # the one that was waited for brought it
                return known
            path = download.fetch(sdist, folder, self._settings, self._progress)
            release = import_archive(self.store, self._package, sdist, path, self._progress)
            # The store has it now; the archive would only take room.
            with suppress(OSError):
                path.unlink()
            return release


def import_archive(
    store: Store, package: str, sdist: Dist, path: Path, progress: Progress = SILENT
) -> Release:
    """Stream an archive into `store` as a commit and remember it under its version.

    Raises PatchqError where the archive is not a plain tree of files.
    """
    from patchq.upstream.archive import ArchiveReader
    from patchq.upstream.wheel import python_files

    reader = ArchiveReader(path)
    files = []
    # The whole archive is read before the commit: its message names what was found in it.
    for count, member in enumerate(python_files(path) if sdist.wheel else reader, 1):
        if count % 500 == 0:
            progress.step(f"storing {package} {sdist.version}", count, None, "files")
        mode = "100755" if member.executable else "100644"
        files.append(Write(member.path, mode, member.data))
    facts = [("archive", sdist.filename), ("sha256", sdist.sha256)]
    if reader.commit:
        facts.append(("upstream-commit", reader.commit))
    message = f"{package} {sdist.version}\n\n" + "".join(f"{k}: {v}\n" for k, v in facts)
    with store.fast_import() as importer:
        importer.commit(message.encode(), NOBODY, None, files)
        (commit,) = importer.finish()
    store.git(["update-ref", _ref(sdist.version), commit])
    return Release(sdist.version, commit, store.objects.tree_of(commit), tuple(facts))


def _ref(version: str) -> str:
    return f"refs/patchq/releases/{version}"
