"""`ci/nightly.toml`: what a night does, where its records lie, and whom it tells.

onto = "latest"           what sync aims at: latest, main (upstream's, by git), a version or a tag
target = "spark"          what is built
cluster = "NAME"          where it is tried (ci/clusters/NAME.toml)
profile = "NAME"          what it serves there (ci/profiles/NAME.toml)
branch, into              the pull request's branch, and the one that it goes into
nights = "build/nights"   where nights are kept; a relative path counts from the project
keep = 60                 how many
publish = false           whether a night whose gate has passed is released
key = "FILE"              the key that signs such a release (never the key itself)
stale_hours = 36          a last night older than this raises the alarm
[minutes]                 how long each stage may take
[github]                  repository: OWNER/REPO; label: of the issues

Everything has a default: without the file these are taken.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from patchq.cluster.table import NAME, Table
from patchq.errors import PatchqError
from patchq.forge.model import require_repo

FILE = "ci/nightly.toml"
MINUTES: Mapping[str, float] = MappingProxyType(
    {
        "sync": 20,
        "build": 60,
        "deploy": 60,
        "smoke": 90,
        "bench": 120,
        "gate": 5,
        "release": 60,
        "culprit": 240,
    }
)
"""Of the stages, and of the search for a culprit (0: none is searched)."""
_TOP = (
    *("onto", "target", "cluster", "profile", "branch", "into", "nights", "keep"),
    *("publish", "key", "stale_hours", "minutes", "github"),
)
_ONTO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+/-]{0,99}")
_BRANCH = re.compile(
    r"(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.))[A-Za-z0-9_][A-Za-z0-9._/+@-]{0,199}(?<![./])"
)
_TARGET = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_LABEL = re.compile(r"[^\x00-\x1f\x7f,]{1,50}")


@dataclass(frozen=True)
class Settings:
    """What the file says. `minutes` by stage; `repository` None: as releases are published."""

    onto: str = "latest"
    target: str = "spark"
    cluster: str = "sparks"
    profile: str = "glm-5.3-flash"
    branch: str = "patchq/nightly"
    into: str = "main"
    nights: str = "build/nights"
    keep: int = 60
    publish: bool = False
    key: str | None = None
    stale_hours: float = 36
    minutes: Mapping[str, float] = field(default_factory=lambda: MINUTES)
    repository: str | None = None
    label: str = "patchq-nightly"

    def folder(self, root: Path) -> Path:
        """Where the nights of the project at `root` are kept."""
        return root / Path(self.nights).expanduser()


def load(root: Path) -> Settings:
    """The settings of the project at `root`. Raises PatchqError where the file is malformed."""
    try:
        data = tomllib.loads((root / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PatchqError(f"{FILE} is not valid TOML: {error}", "correct the file") from error
    return parse(data)


def parse(data: Mapping[str, Any]) -> Settings:
    """What the file says. Raises PatchqError; a key that nobody knows is an error."""
    file, usual = Table(data, FILE, _TOP), Settings()
    github = Table(data.get("github", {}), f"{FILE}, github", ("repository", "label"))
    repository = github.data.get("repository")
    publish = data.get("publish", usual.publish)
    if not isinstance(publish, bool):
        raise file.wrong("publish is neither true nor false", "write publish = false")
    key = data.get("key")
    if key is not None and (not isinstance(key, str) or not key or "\n" in key):
        raise file.wrong("key is no path", 'write the path of a key: key = "~/.ssh/release"')
    if publish and key is None:
        raise file.wrong("publish = true, and no key signs", 'name one: key = "~/.ssh/release"')
    branch = _text(file, "branch", usual.branch, _BRANCH)
    into = _text(file, "into", usual.into, _BRANCH)
    if branch == into:
        raise file.wrong(
            "branch and into are one", "give the nightly a branch that is nobody else's"
        )
    return Settings(
        onto=_text(file, "onto", usual.onto, _ONTO),
        target=_text(file, "target", usual.target, _TARGET),
        cluster=_text(file, "cluster", usual.cluster, NAME),
        profile=_text(file, "profile", usual.profile, NAME),
        branch=branch,
        into=into,
        nights=_text(file, "nights", usual.nights, re.compile(r"[^\x00-\x1f\x7f]+")),
        keep=int(_number(file, "keep", usual.keep, 1, 10_000, whole=True)),
        publish=publish,
        key=key,
        stale_hours=_number(file, "stale_hours", usual.stale_hours, 1, 10_000),
        minutes=_minutes(data.get("minutes", {})),
        repository=None if repository is None else _repository(github, repository),
        label=_text(github, "label", usual.label, _LABEL),
    )


def _minutes(entry: Any) -> Mapping[str, float]:
    table = Table(entry, f"{FILE}, minutes", tuple(MINUTES))
    return MappingProxyType(
        {
            name: _number(table, name, usual, 0 if name == "culprit" else 0.01, 1440)
            for name, usual in MINUTES.items()
        }
    )


def _repository(table: Table, value: Any) -> str:
    if not isinstance(value, str):
        raise table.wrong("repository is no text", 'write repository = "OWNER/REPO"')
    return require_repo(value)


def _text(table: Table, key: str, usual: str, form: re.Pattern[str]) -> str:
    value = table.data.get(key, usual)
    if not isinstance(value, str) or not form.fullmatch(value):
        raise table.wrong(f"{key} = {value!r:.80} is none", f'write it like {key} = "{usual}"')
    return value


def _number(
    table: Table, key: str, usual: float, least: float, most: float, *, whole: bool = False
) -> float:
    value = table.data.get(key, usual)
    kinds = (int,) if whole else (int, float)
    if type(value) not in kinds or not least <= value <= most:
        raise table.wrong(
            f"{key} = {value!r:.40} is no number from {least:g} to {most:g}",
            f"write it like {key} = {usual:g}",
        )
    return float(value)
