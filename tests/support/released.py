"""A project with signed and tagged releases, pushed to the forge; none of them was ever built."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from patchq.config import Project
from patchq.release import bundle, manifest, sign, sums
from patchq.release.manifest import Asset, Base, GateIs, Manifest
from tests.support.forge.repo import Repo
from tests.support.history import git
from tests.support.press import Press


class Released(Press):
    """The project at `root`; its releases lie in `build/releases/N`, as `patchq release cut` has it."""

    def __init__(self, folder: Path, repo: Repo) -> None:
        super().__init__(folder)
        self.repo = repo
        self.root = folder / "project"
        (self.root / "releases").mkdir(parents=True)
        shutil.copy(self.signers, self.root / sign.SIGNERS)
        (self.root / ".gitignore").write_text("/build/\n")
        git(self.root, "init", "-q", "-b", "main", ".")

    @property
    def project(self) -> Project:
        return Project(self.root, self.root / ".git")

    def place(self, number: int) -> Path:
        return bundle.folder(self.root, number)

    def release(self, number: int) -> Path:
        """Release `number`, tagged and pushed; its bundle."""
        place = self.place(number)
        place.mkdir(parents=True)
        files = {
            bundle.NOTES: f"# Release {number}\n\nIt goes on.\n".encode(),
            "engine-1.0+p.1-py3-none-any.whl": f"wheel {number}\n".encode(),
        }
        for name, data in files.items():
            (place / name).write_bytes(data)
        self.sign(number)
        self.push(number)
        return place

    def sign(self, number: int) -> None:
        """Manifest, sums and signature of what lies in the bundle now."""
        place = self.place(number)
        assets = tuple(
            Asset(path.name, path.stat().st_size, sums.sha256(path))
            for path in sorted(place.iterdir())
            if path.name not in manifest.OWN
        )
        before = [each for each in manifest.numbers(self.root) if each < number]
        self.seal(
            Manifest(
                number=number,
                date="2026-03-04T05:06:07Z",
                queue="engine",
                base=Base("1.0", "0" * 40),
                tree="1" * 40,
                lock=hashlib.sha256(str(number).encode()).hexdigest(),
                patches=(),
                assets=assets,
                targets=(),
                models=(),
                previous=max(before, default=None),
                gate=GateIs(True),
            )
        )
        shutil.copy(place / manifest.MANIFEST, self.root / f"releases/{number}.toml")

    def push(self, number: int) -> None:
        """Commit and tag what the project has, and let the forge have both."""
        git(self.root, "add", "-A", ".")
        git(self.root, "commit", "-q", "-m", f"release {number}")
        git(self.root, "tag", "-a", "-f", "-m", f"release {number}", f"release-{number}")
        git(self.root, "push", "-q", "-f", str(self.repo.path), "HEAD:refs/heads/main", "--tags")
