"""A package index on loopback with the parts of a small runner, and a queue that stands on them."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.history import git
from tests.support.inside import Said, call
from tests.support.kit import bare_repository
from tests.upstream.conftest import Site, Tar, entry

HARDWARE = """\
[hardware]
machine = "aarch64"
python = "3.12"
glibc = "2.39"
cuda = "13.0"
"""
COMMENT = "# chosen by hand, with care\n"


class Index:
    """Packages by name; `release` adds one, with its metadata beside its wheel (PEP 658)."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._files: dict[str, list[dict[str, Any]]] = {}

    def release(
        self,
        name: str,
        version: str,
        requires: Sequence[str] = (),
        *,
        python: str = ">=3.9",
        files: Mapping[str, bytes] | None = None,
        date: str = "2026-09-01",
        tag: str = "py3-none-any",
        sdist: bool = True,
        **more: Any,
    ) -> None:
        stem = f"{name.replace('-', '_')}-{version}"
        metadata = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n"
        metadata += f"Requires-Python: {python}\n" * bool(python)
        metadata += "".join(f"Requires-Dist: {each}\n" for each in requires) + "\n"
        wheel = io.BytesIO()
        with zipfile.ZipFile(wheel, "w") as out:
            for path, data in (files or {}).items():
                out.writestr(path, data)
            out.writestr(f"{stem}.dist-info/METADATA", metadata)
        self._add(name, f"{stem}-{tag}.whl", wheel.getvalue(), date, more)
        self.site.add(f"/files/{stem}-{tag}.whl.metadata", metadata.encode())
        if sdist:
            tar = Tar()
            for path, data in {"README": b"read me\n", **(files or {})}.items():
                tar.add(f"{stem}/{path}", data)
            self._add(name, f"{stem}.tar.gz", gzip.compress(tar.bytes(), 1, mtime=0), date, more)

    def _add(self, name: str, file: str, data: bytes, date: str, more: Mapping[str, Any]) -> None:
        self.site.add(f"/files/{file}", data)
        stamp = f"{date}T12:00:00Z"
        found = entry(file, data, **{"upload-time": stamp, **more})
        self._files.setdefault(name, []).append(found)
        self.site.add_package(name, *self._files[name])

    def sha256(self, file: str) -> str:
        return hashlib.sha256(self.site.replies[f"/files/{file}"].data).hexdigest()


class Parts:
    """The queue `engine` on the index package of that name, and its dependencies.toml."""

    def __init__(self, folder: Path, index: Index) -> None:
        self.folder = folder
        self.index = index
        self.root = bare_repository(folder / "queue")

    @property
    def file(self) -> Path:
        return self.root / "upstream/dependencies.toml"

    def init(self, base: str = "1.0") -> Parts:
        self.call("init", "engine", "--index", "engine", "--base", base)
        return self

    def list(self, text: str, hardware: str = HARDWARE) -> Parts:
        """Write the file and commit all."""
        self.file.write_text(COMMENT + hardware + text)
        self.commit()
        return self

    def call(self, *args: str, code: int | None = 0) -> Said:
        return call(self.root, *args, code=code)

    def json(self, *args: str, code: int | None = 0) -> dict[str, Any]:
        return self.call("deps", *args, "--json", code=code).json

    def patch(self, queue: str, name: str, file: str, old: str, new: str, *fields: str) -> None:
        """Add a patch to a queue that puts `new` for `old`; `fields` are more lines of its header."""
        self.call("new", name, "--queue", queue)
        path = self.root / f".git/patchq/work/{queue}/tree" / file
        text = path.read_text()
        assert old in text, text
        path.write_text(text.replace(old, new))
        self.call("refresh", "--queue", queue)
        if fields:
            (found,) = self.root.glob(f"series/**/[0-9]*-{name}.patch")
            head, cut, rest = found.read_bytes().partition(b"\n\n")
            found.write_bytes("\n".join([head.decode(), *fields]).encode() + cut + rest)
        self.commit()
        self.call("check", "--queue", queue)
        self.commit()

    def commit(self) -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--allow-empty", "--no-verify", "-m", "parts")

    def snapshot(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(self.root).parts
        }
