"""What is installed for this user, and where. In the folder `home()`:

ci/clusters/NAME.toml     the machines, as `patchq install --cluster` was given them
allowed_signers           whose releases are taken; install.sh brings it
source                    where releases came from last
tools/KEY/, current       patchq itself, a private environment for each of its versions; install.sh
downloads/N/              a release on its way; gone once it is installed
models/                   weights on their way to other machines
lock                      held while one patchq installs

The runner is not here: `patchq cluster deploy`'s folder on every node has it, with one link that
says which, and its record says with which profile (`Release`).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from patchq.cluster import config, nodes, profile, ranks
from patchq.cluster.config import Cluster
from patchq.cluster.profile import Profile
from patchq.cluster.table import NAME
from patchq.config import find_project
from patchq.errors import PatchqError, UsageError
from patchq.gitstore import files

VARIABLE = "PATCHQ_HOME"
SIGNERS = "allowed_signers"
SOURCE = "source"
CLUSTERS = Path("ci/clusters")
KINDS = ("model", "draft", "template")
HERE = """# This machine alone: written by `patchq install`. Edit it as docs/clusters.md says.
target = "{target}"
port = 8888
master_port = 29521

[[node]]
name = "here"
rank = 0
address = "127.0.0.1"
device = "lo"
"""


@dataclass(frozen=True)
class Release:
    """A release that is on a node: `about` is what its ranks are started with."""

    number: int
    digest: str
    profile: Profile
    about: Mapping[str, str]


def home() -> Path:
    """Absolute; `PATCHQ_HOME` overrides it."""
    override = os.environ.get(VARIABLE)
    if override:
        return Path(os.path.abspath(override))
    import platformdirs

    return Path(platformdirs.user_data_dir("patchq"))


def root(start: Path) -> Path:
    """Whose clusters are meant at `start`: those of the project around it, else what is installed.

    Raises PatchqError where there is neither.
    """
    try:
        project = find_project(start).root
    except PatchqError:
        project = None
    if project is not None and (project / "ci").is_dir():
        return project
    if config.names(home()):
        return home()
    return find_project(start).root if project is None else project


def cluster(name: str | None = None) -> Cluster:
    """The installed cluster `name`, or the only one. Raises PatchqError where there is none."""
    names = config.names(home())
    if not names:
        raise PatchqError("no release is installed here", "`patchq install N` installs one")
    if name is None and len(names) > 1:
        raise UsageError("which cluster?", f"name one: {', '.join(names)}")
    return config.load(home(), names[0] if name is None else name)


@dataclass(frozen=True)
class Given:
    """A cluster, and the files that say it, by their paths below `home()`."""

    cluster: Cluster
    files: Mapping[str, bytes]


def given(file: Path) -> Given:
    """The cluster that `file` describes, with the ssh configuration beside it.

    Raises PatchqError where it cannot be read or says something else.
    """
    told, data = _table(file)
    if not NAME.fullmatch(file.stem):
        raise PatchqError(f"{file.name} is no name", "use small letters, digits and dashes")
    found = config.parse(told, file.stem, file.name, file.parent)
    kept = {f"{CLUSTERS}/{file.stem}.toml": data}
    if found.ssh_config is not None and not os.path.isabs(told["ssh_config"]):
        if "/" in told["ssh_config"] or not found.ssh_config.is_file():
            raise PatchqError(
                f"{file.name}: ssh_config = {told['ssh_config']!r} is no file beside it",
                "put it there, or name it by its absolute path",
            )
        kept[f"{CLUSTERS}/{told['ssh_config']}"] = found.ssh_config.read_bytes()
    return Given(found, kept)


def this_machine(target: str) -> Given:
    """This machine alone."""
    text = HERE.format(target=target)
    found = config.parse(tomllib.loads(text), "here", "here.toml", home() / CLUSTERS)
    return Given(found, {f"{CLUSTERS}/here.toml": text.encode()})


def keep(told: Given) -> None:
    """Remember the machines."""
    for name, data in told.files.items():
        files.write(home() / name, data)


def _table(file: Path) -> tuple[dict[str, Any], bytes]:
    try:
        data = file.read_bytes()
        return tomllib.loads(data.decode("utf-8")), data
    except OSError as error:
        raise PatchqError(
            f"{file} cannot be read: {error.strerror}", "name a cluster's file"
        ) from error
    except ValueError as error:
        raise PatchqError(f"{file} is not valid TOML: {error}", "correct the file") from error


def labels(number: int, name: str, text: str, places: Mapping[str, str]) -> dict[str, str]:
    """What a node's record keeps of a release. `text`: the profile's file; `places`: under which
    names its model, draft and template are there."""
    return {"number": str(number), "profile": name, "profile_toml": text, **places}


def release(record: Mapping[str, Any] | None) -> Release | None:
    """The release that a node's record is of; None for a build that was deployed by hand.

    Raises PatchqError for a record that somebody changed.
    """
    told = record.get("labels") if record else None
    if record is None or not isinstance(told, Mapping) or "number" not in told:
        return None
    try:
        text, name = str(told["profile_toml"]), str(told["profile"])
        plain = profile.parse(tomllib.loads(text), name, f"{name}.toml")
        places = {kind: str(told[kind]) for kind in KINDS if kind in told}
        chosen = replace(plain, **places)  # type: ignore[arg-type]
        about = profile.described(chosen, text.encode())
        return Release(int(told["number"]), str(record["digest"]), chosen, about)
    except (KeyError, ValueError) as error:
        raise PatchqError(
            "the record of the release on the node is damaged", "install the release again"
        ) from error


def current(cluster: Cluster) -> Release:
    """The release that starts next on a cluster, as rank 0's node says.

    Raises Incomplete where it is not reached, PatchqError where it has none.
    """
    first = cluster.nodes[0]
    with nodes.shell(cluster, first) as there:
        found = release(ranks.ask(there, first, 0).current)
    if found is None:
        raise PatchqError(f"{first.name} has no release", "`patchq install N` installs one")
    return found


def source() -> str | None:
    """Where the last release came from."""
    try:
        return (home() / SOURCE).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


@contextmanager
def alone() -> Iterator[None]:
    """Be the only patchq that installs here. Raises PatchqError where another one does."""
    from filelock import FileLock, Timeout

    home().mkdir(parents=True, exist_ok=True)
    lock = FileLock(home() / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise PatchqError(
            "another patchq installs or removes a release here", "wait until it is done"
        ) from None
    try:
        yield
    finally:
        lock.release()
