"""The series on disk: a quilt directory that quilt and git can use without us."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from patchq.errors import PatchqError
from patchq.queue import patch as patches
from patchq.queue.header import one_line
from patchq.queue.patch import Patch

RETIRED = "retired"
_HELD = re.compile(r"^# held (\S+):(?: (.*))?$")
_COMMENT = re.compile(r"(?:^|\s)#.*")


@dataclass(frozen=True)
class Line:
    """One line of the `series` file. `patch` is None for comments and empty lines."""

    kind: Literal["patch", "held", "comment"]
    text: str
    patch: Patch | None = None
    why: str = ""


@dataclass(frozen=True)
class Series:
    """The ordered patches. `retired` are the file names of those dropped earlier."""

    lines: tuple[Line, ...] = ()
    retired: tuple[str, ...] = ()

    @property
    def applied(self) -> tuple[Patch, ...]:
        return tuple(line.patch for line in self.lines if line.kind == "patch" and line.patch)

    @property
    def all(self) -> tuple[Patch, ...]:
        """Applied and held patches, in order."""
        return tuple(line.patch for line in self.lines if line.patch)

    @property
    def held(self) -> dict[str, str]:
        """Name and reason of each held patch."""
        return {
            line.patch.name: line.why for line in self.lines if line.kind == "held" and line.patch
        }

    @property
    def names(self) -> frozenset[str]:
        """Every name in use; a retired patch keeps its name."""
        retired = {found[2] for file in self.retired if (found := patches.FILE.match(file))}
        return frozenset({patch.name for patch in self.all} | retired)

    @property
    def next_number(self) -> int:
        """One more than any number ever given."""
        used = [patch.number for patch in self.all]
        used += [int(found[1]) for file in self.retired if (found := patches.FILE.match(file))]
        return max(used, default=0) + 1

    @property
    def doubled(self) -> tuple[tuple[Patch, str], ...]:
        """Patches whose number another one had first, and that one's file."""
        seen = {int(found[1]): file for file in self.retired if (found := patches.FILE.match(file))}
        double: list[tuple[Patch, str]] = []
        for patch in self.all:
            if seen.get(patch.number, patch.file) != patch.file:
                double.append((patch, seen[patch.number]))
            seen.setdefault(patch.number, patch.file)
        return tuple(double)

    def find(self, name: str) -> Patch:
        """The patch called `name` (or its number, or its file name).

        Raises PatchqError where there is none.
        """
        for patch in self.all:
            if name in (patch.name, patch.file) or (name.isdecimal() and int(name) == patch.number):
                return patch
        import difflib

        close = difflib.get_close_matches(name, [patch.name for patch in self.all], 3)
        raise PatchqError(
            f"there is no patch {name!r} in the series",
            f"did you mean {' or '.join(close)}?" if close else "see `patchq series`",
        )

    def append(self, new: list[Patch]) -> Series:
        return Series(self.lines + tuple(Line("patch", p.file, p) for p in new), self.retired)

    def files(self) -> dict[str, bytes]:
        """The folder's files by name: `series` and every patch in it."""
        text = "".join(f"{line.text}\n" for line in self.lines)
        out = {patch.file: patch.text for patch in self.all}
        out["series"] = text.encode("utf-8", "surrogateescape")
        return out

    @property
    def digest(self) -> str:
        """sha256 over names and contents of the folder's files."""
        total = hashlib.sha256()
        for name, data in sorted(self.files().items()):
            total.update(b"%s %d\n" % (name.encode(), len(data)))
            total.update(data)
        return total.hexdigest()


def held_line(patch: Patch, why: str) -> Line:
    """The comment that holds `patch` back; `why` becomes one line."""
    why = one_line(why)
    return Line("held", f"# held {patch.file}: {why}".rstrip(), patch, why)


def read(folder: Path) -> Series:
    """The series in `folder`; an absent folder is an empty series.

    Raises PatchqError for a `series` file that names a missing, foreign or second file.
    """
    try:
        text = (folder / "series").read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        text = ""
    lines: list[Line] = []
    seen: dict[str, str] = {}
    names: dict[str, str] = {}
    for number, raw in enumerate(text.removesuffix("\n").split("\n") if text else (), 1):
        line = _line(folder, raw.rstrip(), f"{folder.name}/series:{number}")
        lines.append(line)
        if line.patch is None:
            continue
        file = line.patch.file
        if file in seen:
            raise PatchqError(
                f"{folder.name}/series:{number} names {file} a second time",
                "remove one of the two lines",
            )
        if line.patch.name in names:
            raise PatchqError(
                f"{folder.name}/series:{number}: {file} and {names[line.patch.name]}"
                f" are both called {line.patch.name!r}",
                "rename one of them",
            )
        seen[file] = names[line.patch.name] = file
    retired = folder / RETIRED
    gone = sorted(path.name for path in retired.glob("*.patch")) if retired.is_dir() else []
    return Series(tuple(lines), tuple(gone))


def _line(folder: Path, raw: str, where: str) -> Line:
    held = _HELD.match(raw)
    if held:
        return Line("held", raw, _patch(folder, held[1], where), held[2] or "")
    words = _COMMENT.sub("", raw).split()
    if not words:
        return Line("comment", raw)
    file, *options = words
    if options not in ([], ["-p1"]):
        raise PatchqError(
            f"{where}: {' '.join(options)} is not supported here",
            "bring foreign quilt directories in with `patchq import --quilt DIR`",
        )
    return Line("patch", raw, _patch(folder, file, where))


def _patch(folder: Path, file: str, where: str) -> Patch:
    if not patches.FILE.match(file):
        raise PatchqError(
            f"{where} names {file!r}, which is not NNNN-name.patch",
            "bring the patch in with `patchq import`",
        )
    try:
        data = (folder / file).read_bytes()
    except FileNotFoundError:
        raise PatchqError(
            f"{where} names {file}, which is not there",
            "restore the file (git knows it), or remove the line",
        ) from None
    except IsADirectoryError:
        raise PatchqError(f"{where}: {file} is a folder", "remove the line") from None
    return patches.parse(file, data)
