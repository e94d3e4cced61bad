"""Pull requests made of what really changed between two vLLM releases.

Both releases come from the package index. The history between them is made here, of the newer
one's own files, on the forge double.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.support.forge.commits import Commit
from tests.support.forge.pull import Pull
from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge
from tests.support.history import git

DRAFT = "  # for now"


class Releases:
    """Two releases' trees, in the store that patchq made of their archives."""

    def __init__(self, store: Path, old: str, new: str) -> None:
        self.store, self.names = store, (old, new)
        self.old, self.new = (
            self._git("rev-parse", f"refs/patchq/releases/{release}^{{tree}}").strip()
            for release in self.names
        )

    def _git(self, *args: str) -> str:
        return git(self.store, *args).decode("utf-8", "surrogateescape")

    def changed(self, *args: str) -> list[str]:
        trees = (self.old, self.new)
        found = self._git(
            "diff-tree", "-r", "--no-renames", "-z", *args[:-1], *trees, "--", args[-1]
        )
        return found.split("\0")[:-1]

    def file(self, tree: str, path: str) -> str:
        return self._git("cat-file", "blob", f"{tree}:{path}")

    def small_fix(self, under: str) -> str:
        """The first file there in which some lines were exchanged for some others."""
        for row in self.changed("--diff-filter=M", "--numstat", under):
            more, less, path = row.split("\t")
            if more.isdecimal() and 3 <= int(more) <= 8 and 1 <= int(less) <= 8:
                return path
        raise AssertionError(f"no small fix in {under}")


def before_review(old: str, new: str) -> str:
    """`new` with the last line that it adds said otherwise."""
    known, lines = set(old.splitlines()), new.splitlines()
    last = max(at for at, line in enumerate(lines) if line.strip() and line not in known)
    lines[last] += DRAFT
    return "\n".join(lines) + "\n"


@dataclass(repr=False)
class Upstream:
    """vLLM from one release to the other, and pull requests in between."""

    releases: Releases
    repo: Repo

    @classmethod
    def at_the_old_one(cls, releases: Releases, forge: Forge) -> Upstream:
        """Nothing is copied: the repository borrows the objects of the store."""
        repo = forge.repo("vllm-project/vllm")
        borrowed = repo.path / "objects/info/alternates"
        borrowed.write_text(f"{releases.store / 'objects'}\n")
        made = cls(releases, repo)
        repo.bare.set(
            "refs/heads/main", repo.bare.write(made._all_of(releases.old, releases.names[0]))
        )
        repo.tag(f"v{releases.names[0]}")
        return made

    def _all_of(self, tree: str, message: str, *parents: str) -> Commit:
        when = self.repo.clock.tick()
        return Commit(parents, tree, f"{message}\n", "Mona Maintainer", when, {})

    def opens(self, title: str, files: dict[str, str], *, number: int) -> Pull:
        pull = self.repo.pull(title, number=number)
        for path, text in files.items():
            pull.write(path, text.encode("utf-8", "surrogateescape"))
        return pull

    def fix(self, under: str, number: int) -> Pull:
        path = self.releases.small_fix(under)
        text = self.releases.file(self.releases.new, path)
        return self.opens(f"[Bugfix] {path}", {path: text}, number=number)

    def released(self) -> None:
        """One commit brings all the rest."""
        bare = self.repo.bare
        rest = self._all_of(self.releases.new, "All the rest", bare.sha("refs/heads/main"))
        bare.set("refs/heads/main", bare.write(rest))
        self.repo.tag(f"v{self.releases.names[1]}")
