"""What the package index knows of releases: versions, dates, files, and what they ask for.

Whatever could not be learned is a sentence in `missing`, and no reason to stop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress
from patchq.upstream import index as indexes
from patchq.upstream import metadata, pipconf
from patchq.upstream.components import Hardware
from patchq.upstream.hardware import Fit
from patchq.upstream.index import IndexAnswer
from patchq.upstream.pages import Dist, measured
from patchq.upstream.requirements import is_requirement

_AT_ONCE = 8


@dataclass(frozen=True)
class Listed:
    """A release on the index: when it came (a date, "" unknown), and what it asks for.

    `requires` (with "python>=..." for its Requires-Python) is None where that is not known; `unfit`
    says why no file fits the hardware; `source_only`: it has no wheel that fits, it must be built.
    """

    package: str
    version: str
    date: str
    requires: tuple[str, ...] | None
    unfit: str = ""
    source_only: bool = False
    yanked: bool = False


class Catalog:
    """Asks the configured index, each thing once."""

    def __init__(
        self,
        cache: Path,
        hardware: Hardware,
        *,
        offline: bool = False,
        refresh: bool = False,
        progress: Progress = SILENT,
    ) -> None:
        self._cache = cache
        self._fit = Fit(hardware)
        self._offline = offline
        self._refresh = refresh
        self._progress = progress
        self._settings = pipconf.read_settings()
        self._answers: dict[str, IndexAnswer | None] = {}
        self._listed: dict[tuple[str, str], Listed | None] = {}
        self._missing: set[str] = set()

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(sorted(self._missing))

    def ask(self, packages: Iterable[str]) -> None:
        """Look several packages up at once; what is known is not asked again."""
        wanted = sorted(set(packages) - self._answers.keys())
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for place, (package, answer) in enumerate(
                zip(wanted, pool.map(self._look_up, wanted), strict=True)
            ):
                self._progress.step("asking the package index", place, len(wanted), "packages")
                self._answers[package] = answer

    def learn(self, releases: Iterable[tuple[str, str]]) -> None:
        """Learn of several releases (package, version) at once."""
        wanted = sorted(set(releases) - self._listed.keys())
        self.ask(package for package, _ in wanted)
        self._ask_again(
            {package for package, version in wanted if self._is_newer(package, version)}
        )
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for place, (key, found) in enumerate(
                zip(wanted, pool.map(lambda key: self._learn(*key), wanted), strict=True)
            ):
                self._progress.step("asking what is needed", place, len(wanted), "releases")
                self._listed[key] = found

    def release(self, package: str, version: str) -> Listed | None:
        """One release; None where the index has no such, or was not reached (see `missing`)."""
        self.learn([(package, version)])
        return self._listed[package, version]

    def versions(self, package: str) -> tuple[str, ...]:
        """Final releases that are not yanked and fit the hardware, in order."""
        self.ask([package])
        return tuple(
            version
            for version, files in self._files(package).items()
            if not files[0].prerelease
            and all(each.yanked is None for each in files)
            and not self._fit.unfit(files)
        )

    def dates(self, package: str) -> dict[str, str]:
        """The day of each release's first file."""
        return {
            version: min((each.uploaded or "" for each in files), default="")[:10]
            for version, files in self._files(package).items()
        }

    def _is_newer(self, package: str, version: str) -> bool:
        """Somebody may know of a release that is newer than the list that was kept."""
        answer = self._answers[package]
        if answer is None or self._offline or not (answer.from_cache and answer.complete):
            return False
        return version not in self._files(package)

    def _ask_again(self, packages: set[str]) -> None:
        if packages:
            for package in packages:
                del self._answers[package]
            self._refresh = True
            self.ask(packages)

    def _look_up(self, package: str) -> IndexAnswer | None:
        try:
            answer = indexes.look_up(
                package,
                self._settings,
                self._cache / "index",
                offline=self._offline,
                refresh=self._refresh,
            )
        except PatchqError as problem:
            self._missing.add(problem.message)
            return None
        if not answer.complete:
            self._missing.add(f"the releases of {package} are as of {answer.as_of:%Y-%m-%d}")
        return answer

    def _files(self, package: str) -> dict[str, list[Dist]]:
        answer = self._answers.get(package)
        found: dict[str, list[Dist]] = {}
        for each in answer.dists if answer else ():
            found.setdefault(each.version, []).append(each)
        return found

    def _learn(self, package: str, version: str) -> Listed | None:
        from packaging.version import InvalidVersion, Version

        by_number = {Version(each): files for each, files in self._files(package).items()}
        try:
            files = by_number.get(Version(version))
        except InvalidVersion:
            files = None
        if files is None:
            if self._answers[package] is not None:
                self._missing.add(f"the index has no release {version} of {package}")
            return None
        best = self._fit.best(files)
        return Listed(
            package,
            files[0].version,
            min((each.uploaded or "" for each in files), default="")[:10],
            self._requires(best, files),
            self._fit.unfit(files),
            best is not None and not best.wheel,
            any(each.yanked is not None for each in files),
        )

    def _requires(self, best: Dist | None, files: Sequence[Dist]) -> tuple[str, ...] | None:
        wheels = [each for each in files if each.wheel]
        chosen = (
            best
            if best is not None and best.wheel
            else min(wheels, key=lambda each: each.filename, default=None)
        )
        if chosen is None:
            self._missing.add(
                f"what {files[0].filename} asks for is not known: it has no wheel to read it from"
            )
            return None
        try:
            found = metadata.of(measured(chosen), self._cache, offline=self._offline)
        except PatchqError as problem:
            self._missing.add(problem.message)
            return None
        python = (f"python{found.python}",) if found.python else ()
        return tuple(text for text in (*python, *found.requires) if is_requirement(text))
