"""Where things are: the project's folders, its queues' settings, the user's cache."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from patchq.errors import PatchqError

DEFAULT_QUEUE = "vllm"
KEYS = ("name", "series", "github", "github_api", "git", "sources", "topics", "track")
PULL = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/(?!\.{1,2}#)[A-Za-z0-9_.-]{1,100}#[1-9][0-9]{0,8}"
)
"""How a pull request is written: OWNER/REPO#N."""
NOT_QUEUES = frozenset({"dependencies", "decisions"})
"""Names in `upstream/*.toml` that describe something else than a queue."""


@dataclass(frozen=True)
class Project:
    """A git repository that keeps queues. `git_dir` is its (common) git directory."""

    root: Path
    git_dir: Path

    @property
    def upstream(self) -> Path:
        return self.root / "upstream"

    @property
    def private(self) -> Path:
        """Journal, lock and sessions: never committed, removed with the clone."""
        return self.git_dir / "patchq"

    @property
    def state_file(self) -> Path:
        return self.upstream / "state.json"


@dataclass(frozen=True)
class Source:
    """Where releases come from: a package on the index, or a git URL or path."""

    kind: Literal["index", "git"]
    value: str


@dataclass(frozen=True)
class Track:
    """A pull request ("OWNER/REPO#N") that the queue watches, and why."""

    pr: str
    why: str = ""


@dataclass(frozen=True)
class QueueConfig:
    """What `upstream/NAME.toml` says."""

    name: str
    series: str
    sources: tuple[Source, ...]
    github: str | None = None
    topics: tuple[str, ...] = ()
    track: tuple[Track, ...] = ()
    github_api: str | None = None
    """Where GitHub's API is, where it is not GitHub's own."""
    git: str | None = None
    """Where `github` is for git, where it is not GitHub's own: an address or a path."""


def find_project(start: Path) -> Project:
    """The repository around `start`.

    Raises PatchqError where there is none.
    """
    if (around := _around_private(start)) is not None:
        return around
    for folder in (start, *start.parents):
        dot = folder / ".git"
        if dot.is_dir():
            return Project(folder, dot)
        if dot.is_file():
            return Project(folder, _linked_git_dir(dot))
    raise PatchqError(
        f"{start} is not inside a git repository",
        "run patchq in the repository that keeps the queue, or make one with `git init`",
    )


def maybe_project(start: Path) -> Project | None:
    """The repository around `start`, where there is one that keeps a queue."""
    try:
        found = find_project(start)
    except PatchqError:
        return None
    return found if queue_names(found) else None


def _around_private(start: Path) -> Project | None:
    """The project that a folder inside its `.git/patchq/` belongs to.

    A linked worktree's is named by the file `root` in one of the folders on the way.
    """
    way: list[Path] = []
    for folder in (start, *start.parents):
        git_dir = folder.parent
        if (
            folder.name == "patchq"
            and (git_dir / "HEAD").is_file()
            and (git_dir / "objects").is_dir()
        ):
            roots = [each / "root" for each in (*way, folder) if (each / "root").is_file()]
            if not roots:
                return Project(git_dir.parent, git_dir)
            told = roots[-1].read_bytes()
            return Project(Path(os.path.normpath(git_dir / os.fsdecode(told.strip()))), git_dir)
        if (folder / ".git").is_dir():
            return None  # a repository of its own, nearer than the project's private folder
        way.append(folder)
    return None


def _linked_git_dir(dot: Path) -> Path:
    """A linked worktree or submodule: `.git` is a file that names the directory."""
    text = dot.read_text(encoding="utf-8", errors="surrogateescape").strip()
    if not text.startswith("gitdir: "):
        raise PatchqError(f"{dot} is not a git directory", "repair the repository first")
    private = (dot.parent / text.removeprefix("gitdir: ")).resolve()
    common = private / "commondir"
    if common.is_file():
        return (private / common.read_text(encoding="utf-8").strip()).resolve()
    return private


def queue_names(project: Project) -> list[str]:
    """The queues that `upstream/*.toml` describes, sorted."""
    if not project.upstream.is_dir():
        return []
    return sorted(
        path.stem for path in project.upstream.glob("*.toml") if path.stem not in NOT_QUEUES
    )


def load_queue(project: Project, name: str | None = None) -> QueueConfig:
    """The queue `name`; without a name the one in `series/` itself.

    Raises PatchqError where there is no such queue or its file is malformed.
    """
    names = queue_names(project)
    if not names:
        raise PatchqError(
            f"there is no queue in {project.root}",
            "make one with `patchq init NAME --index PACKAGE --base VERSION`"
            " or `patchq init NAME --git URL --base REF`",
        )
    if name is not None and name not in names:
        raise PatchqError(f"there is no queue {name!r}", f"the queues are: {', '.join(names)}")
    configs = [_read_queue(project, each) for each in ([name] if name else names)]
    if name or len(configs) == 1:
        return configs[0]
    main = [config for config in configs if config.series == "series"]
    chosen = main or [config for config in configs if config.name == DEFAULT_QUEUE]
    if not chosen:
        raise PatchqError("which queue?", f"name one with --queue: {', '.join(names)}")
    return chosen[0]


def _read_queue(project: Project, name: str) -> QueueConfig:
    path = project.upstream / f"{name}.toml"
    where = path.relative_to(project.root)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PatchqError(f"{where} is not valid TOML: {error}", "correct the file") from error
    unknown = set(data) - set(KEYS)
    if unknown:
        raise PatchqError(
            f"{where} has unknown keys: {', '.join(sorted(unknown))}",
            f"known are {', '.join(KEYS)}",
        )
    series = _text(data, "series", where, "series")
    parts = Path(series).parts
    if parts[:1] != ("series",) or ".." in parts or parts[1:2] in (("retired",), ("resolutions",)):
        raise PatchqError(
            f"{where}: series = {series!r} is not in the series folder",
            f'write series = "series" or series = "series/{name}"',
        )
    return QueueConfig(
        name=_text(data, "name", where, name),
        series=series,
        sources=_sources(data, where),
        github=_text(data, "github", where, "") or None,
        github_api=_text(data, "github_api", where, "") or None,
        git=_text(data, "git", where, "") or None,
        topics=_texts(data, "topics", where),
        track=_track(data, where),
    )


def _sources(data: dict[str, Any], where: Path) -> tuple[Source, ...]:
    sources: list[Source] = []
    entries = data.get("sources", [])
    if not isinstance(entries, list):
        raise _not_a_source(entries, where)
    for entry in entries:
        match entry:
            case {"index": str(package)} if len(entry) == 1:
                sources.append(Source("index", package))
            case {"git": str(url)} if len(entry) == 1:
                sources.append(Source("git", url))
            case _:
                raise _not_a_source(entry, where)
    if not sources:
        raise PatchqError(
            f"{where} names no source", 'write [[sources]] with index = "PACKAGE" or git = "URL"'
        )
    return tuple(sources)


def _track(data: dict[str, Any], where: Path) -> tuple[Track, ...]:
    entries = data.get("track", [])
    tracks: list[Track] = []
    for entry in entries if isinstance(entries, list) else [entries]:
        match entry:
            case {"pr": str(pr), "why": str(why)} if PULL.fullmatch(pr) and len(entry) == 2:
                tracks.append(Track(pr, why))
            case {"pr": str(pr)} if PULL.fullmatch(pr) and len(entry) == 1:
                tracks.append(Track(pr))
            case _:
                raise PatchqError(
                    f"{where}: {entry!r} is no pull request to track",
                    'write [[track]] with pr = "OWNER/REPO#N" and why = "..."',
                )
    return tuple(tracks)


def _not_a_source(entry: object, where: Path) -> PatchqError:
    return PatchqError(
        f"{where}: {entry!r} is not a source",
        'write [[sources]] with index = "PACKAGE" or git = "URL"',
    )


def _text(data: dict[str, Any], key: str, where: Path, default: str) -> str:
    value = data.get(key, default)
    if not isinstance(value, str):
        raise PatchqError(f"{where}: {key} is not a text", "correct the file")
    return value


def _texts(data: dict[str, Any], key: str, where: Path) -> tuple[str, ...]:
    value = data.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise PatchqError(f"{where}: {key} is not a list of texts", "correct the file")
    return tuple(value)


def cache_dir() -> Path:
    """The user's cache for stores and downloads (`PATCHQ_CACHE` overrides it)."""
    override = os.environ.get("PATCHQ_CACHE")
    if override:
        return Path(override)
    import platformdirs

    return Path(platformdirs.user_cache_dir("patchq"))
