"""A queue whose runners differ by a number of patches, and a command that shows one's fault."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.support.cli import program
from tests.support.history import History, git
from tests.support.inside import Said, call
from tests.support.kit import bare_repository

SHOWS = """
import os, pathlib, sys
log = pathlib.Path(sys.argv[1])
with log.open("a") as file:
    file.write(os.environ["PATCHQ_BISECT_STEP"] + " " + os.environ["PATCHQ_TREE"] + "\\n")
source = pathlib.Path(os.environ["PATCHQ_SOURCE"])
assert not {"GITHUB_TOKEN", "GH_TOKEN"} & set(os.environ)
sys.exit(all("fault" in (source / name).read_text() for name in sys.argv[2:]))
"""


class Toy:
    """Upstream has a file a number; patch N writes into file N, in the place of a line.

    The project's tag `before` has no patch, `main` has all: each is `change-N`. Those of `needs`
    (place: place of an earlier one) write into the same lines.
    """

    def __init__(self, folder: Path, count: int = 8, needs: dict[int, int] | None = None) -> None:
        self.folder, self.root, self.log = folder, folder / "queue", folder / "runs"
        self.upstream = History(folder / "upstream.git")
        folder.mkdir(parents=True, exist_ok=True)
        start = self.upstream.commit()
        for place in range(count):
            start.write(f"file-{place}.txt", b"top\nwhole\nend\n")
        start.tag("v1")
        topic = self.upstream.branch("topic", at="v1")
        for place in range(count):
            file, old = (needs or {}).get(place, place), b"whole\n"
            if file != place:
                old = b"fault %d\n" % file
            topic = topic.commit(f"Change {place}")
            topic.edit(f"file-{file}.txt", old, b"fault %d\n" % place)
        self.upstream.save()
        bare_repository(self.root)
        call(self.root, "init", "demo", "--git", str(self.upstream.path), "--base", "v1")
        self._commit("before")
        call(self.root, "import", "--git", str(self.upstream.path), "v1..topic")
        self._commit("after")

    def _commit(self, tag: str) -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--no-verify", "-m", tag)
        git(self.root, "tag", tag)

    def shows(self, *places: int) -> str:
        """A command that fails where all these patches are."""
        script = self.folder / "shows.py"
        script.write_text(SHOWS, encoding="utf-8")
        files = [f"file-{place}.txt" for place in places]
        return shlex.join([sys.executable, str(script), str(self.log), *files])

    @property
    def runs(self) -> list[str]:
        """The steps that were run, in order."""
        text = self.log.read_text(encoding="utf-8") if self.log.exists() else ""
        return [line.split()[0] for line in text.splitlines()]

    def asks(self, *places: int) -> list[str]:
        return ["--run", self.shows(*places), "--between", "before", "after", "--source"]

    def bisect(self, *args: str, code: int | None = 0) -> Said:
        """In this process."""
        return call(self.root, "bisect", *args, code=code)

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        """In a process of its own."""
        command = [program(), "bisect", *args]
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=dict(os.environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
