"""`upstream/dependencies.toml`: what the runner is made of beside upstream, and why."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patchq.errors import PatchqError
from patchq.upstream.entries import KEYS, checked, entries

FILE = "dependencies.toml"
HUB = "https://huggingface.co"
"""Where the repositories of models are, where the file says nothing else."""
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)*")


@dataclass(frozen=True)
class Component:
    """One pinned package. `modules`: what its Python is called when imported; `index`: its name on
    the package index, empty where it is there under none. `sha256` is that of the file which its
    source is read from: the source archive, or a wheel where there is none. `requires`: what it
    asks for (PEP 508) beside what its own metadata says.
    """

    name: str
    why: str
    index: str = ""
    git: str = ""
    version: str = ""
    commit: str = ""
    sha256: str = ""
    modules: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()

    @property
    def pin(self) -> str:
        return self.version or self.commit


@dataclass(frozen=True)
class Model:
    """A repository of the model hub at one revision (a commit, perhaps abbreviated).

    `sha256`: of its `model.safetensors.index.json`, or of its one weight file; empty where it is
    not known. `block_size`: of a drafter, the block that it was trained for, None where unknown.
    """

    name: str
    why: str
    repository: str
    revision: str
    sha256: str = ""
    block_size: int | None = None
    requires: tuple[str, ...] = ()

    @property
    def pin(self) -> str:
        return self.revision


@dataclass(frozen=True)
class Template:
    """A chat template: `file` of a repository of the model hub at one revision, its sha256."""

    name: str
    why: str
    repository: str
    revision: str
    sha256: str = ""
    file: str = "chat_template.jinja"
    requires: tuple[str, ...] = ()

    @property
    def pin(self) -> str:
        return self.revision


@dataclass(frozen=True)
class Relaxed:
    """A requirement of `of` that does not count: set aside on purpose, and why.

    `to` is what is asked for in its place, "" for nothing.
    """

    of: str
    requirement: str
    why: str
    to: str = ""


@dataclass(frozen=True)
class Hardware:
    """What everything must run on: machine as in wheels' tags, versions as texts ("" unknown)."""

    machine: str
    python: str
    glibc: str
    cuda: str = ""
    why: str = ""
    requires: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pins:
    """The whole file; names are given once among all kinds."""

    components: tuple[Component, ...] = ()
    models: tuple[Model, ...] = ()
    drafts: tuple[Model, ...] = ()
    templates: tuple[Template, ...] = ()
    relaxed: tuple[Relaxed, ...] = ()
    hardware: Hardware | None = None
    hub: str = field(default=HUB)

    @property
    def all(self) -> tuple[tuple[str, Component | Model | Template], ...]:
        """Each entry with its kind, in the order of the kinds."""
        return (
            *(("component", each) for each in self.components),
            *(("model", each) for each in self.models),
            *(("draft", each) for each in self.drafts),
            *(("template", each) for each in self.templates),
        )

    def find(self, name: str) -> tuple[str, Component | Model | Template]:
        """The entry called `name` and its kind. Raises PatchqError where there is none."""
        known = {each.name: (kind, each) for kind, each in self.all}
        if name in known:
            return known[name]
        import difflib

        close = difflib.get_close_matches(name, known, 3)
        raise PatchqError(
            f"upstream/{FILE} has no {name!r}",
            f"did you mean {' or '.join(close)}?" if close else "see `patchq deps list`",
        )


def read(upstream: Path) -> tuple[Component, ...]:
    """The components in the folder's file; see `pinned`."""
    return pinned(upstream).components


def pinned(upstream: Path) -> Pins:
    """The folder's file, in its order; nothing where there is no file.

    Raises PatchqError for a file that is malformed, or an entry without a reason or a pin.
    """
    path = upstream / FILE
    where = f"{upstream.name}/{FILE}"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Pins()
    except UnicodeDecodeError as error:
        raise PatchqError(f"{where} is not valid TOML: {error}", "correct the file") from error
    return parse(text, where)


def parse(text: str, where: str) -> Pins:
    """The same of a text; `where` names it in errors."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PatchqError(f"{where} is not valid TOML: {error}", "correct the file") from error
    unknown = set(data) - KEYS.keys() - {"hub"}
    if unknown:
        raise PatchqError(
            f"{where} has unknown tables: {', '.join(sorted(unknown))}",
            "known are [hardware], [[component]], [[model]], [[draft]], [[template]],"
            " [[relaxed]], and hub",
        )
    hub = data.get("hub", HUB)
    if not isinstance(hub, str) or not hub:
        raise PatchqError(f"{where}: hub is no address", f'write hub = "{HUB}", or leave it out')
    found = Pins(
        components=tuple(_component(each, where) for each in entries(data, "component", where)),
        models=tuple(_model(each, "model", where) for each in entries(data, "model", where)),
        drafts=tuple(_model(each, "draft", where) for each in entries(data, "draft", where)),
        templates=tuple(_template(each, where) for each in entries(data, "template", where)),
        relaxed=tuple(_relaxed(each, where) for each in entries(data, "relaxed", where)),
        hardware=_hardware(data["hardware"], where) if "hardware" in data else None,
        hub=hub.rstrip("/"),
    )
    counted = Counter(each.name for _, each in found.all)
    twice = [name for name, count in counted.items() if count > 1]
    if twice:
        raise PatchqError(f"{where} names {twice[0]!r} twice", "remove one of the two")
    return found


def _component(entry: Any, where: str) -> Component:
    values = checked(entry, "component", where)
    if not values.get("version") and not values.get("commit"):
        raise PatchqError(f"{where}: {values['name']} is not pinned", "write version or commit")
    return Component(modules=values.pop("import", ()), **values)


def _model(entry: Any, kind: str, where: str) -> Model:
    return Model(**_in_hub(checked(entry, kind, where), where))


def _template(entry: Any, where: str) -> Template:
    return Template(**_in_hub(checked(entry, "template", where), where))


def _in_hub(values: dict[str, Any], where: str) -> dict[str, Any]:
    for key in ("repository", "revision"):
        if not values.get(key):
            raise PatchqError(
                f"{where}: {values['name']} has no {key}",
                "write repository and revision: where it is, and the commit",
            )
    return values


def _relaxed(entry: Any, where: str) -> Relaxed:
    named = {"name": entry.get("of"), **entry} if isinstance(entry, dict) else entry
    values = checked(named, "relaxed", where)
    if not values.get("requirement"):
        raise PatchqError(
            f"{where}: a [[relaxed]] of {values['of']} names no requirement",
            'write requirement = "...", as its metadata has it',
        )
    return Relaxed(values["of"], values["requirement"], values["why"])


def _hardware(entry: Any, where: str) -> Hardware:
    named = {"name": "hardware", **entry} if isinstance(entry, dict) else entry
    values = checked(named, "hardware", where)
    versions = [values.get(key, "") for key in ("python", "glibc")]
    versions += [values["cuda"]] if values.get("cuda") else []
    if not values.get("machine") or not all(map(_VERSION.fullmatch, versions)):
        raise PatchqError(
            f"{where}: [hardware] does not say what it is",
            'write machine = "aarch64", python = "3.12", glibc = "2.39", and cuda = "13.0"',
        )
    values.pop("name")
    return Hardware(**values)
