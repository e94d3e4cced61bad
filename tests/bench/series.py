"""A synthetic series on one release that goes onto another without a conflict.

Each candidate patch is merged as ``git rebase`` would (merge-ort, three ways); one that conflicts,
loses lines, leaves a file that does not compile or comes out differently by a peer's way of
applying (tests/bench/agree.py) is replaced by another.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.bench.agree import Sides, agree
from tests.bench.edits import compiles, edit
from tests.bench.measure import fresh, git
from tests.bench.releases import listing

KINDS = {
    "random": "files picked at random",
    "changed": "only files that upstream changed too",
    "moved": "as random, a third of the patches in files that upstream moved",
}


@dataclass(frozen=True)
class Case:
    """One piece of work: a series of `count` patches on `old`, to be carried onto `new`.

    `repo` is bare and holds the tags, ``refs/heads/series`` and one commit a patch; `patches` is
    the same as a quilt directory; `tree` is the tree that a carry must give and `carried` its
    listing (``git ls-tree -r -z``). `files` counts the files that the series touches, `refused`
    the candidates that were thrown away.
    """

    name: str
    kind: str
    old: str
    new: str
    count: int
    repo: Path
    patches: Path
    carried: Path
    tree: str
    files: int
    refused: int


def case(
    work: Path,
    releases: Path,
    kind: str,
    old: str,
    new: str,
    count: int,
    env: Mapping[str, str],
    seed: int = 1,
) -> Case:
    """The case, made once in `work` and then found again."""
    name = f"{kind}-{old}-{new}-{count}-{seed}"
    folder = work / f"case-{name}"
    note = folder / "case.json"
    if not note.exists():
        fresh(folder)
        made = _Maker(folder, releases, kind, f"v{old}", f"v{new}", env, seed).run(count)
        note.write_text(json.dumps(made))
    facts = json.loads(note.read_text())
    return Case(
        name,
        kind,
        old,
        new,
        count,
        folder / "case.git",
        folder / "patches",
        folder / "carried",
        facts["tree"],
        facts["files"],
        facts["refused"],
    )


def export(repo: Path, span: str, patches: Path, env: Mapping[str, str]) -> None:
    """Write the commits of `span` as a quilt directory in git's canonical form."""
    fresh(patches)
    git(
        *("-c", "core.quotePath=true", "format-patch", "-q", "--zero-commit", "--no-signature"),
        *("--no-stat", "-N", "-k", "--full-index", "--no-renames", "-o", str(patches), span),
        cwd=repo,
        env=env,
    )
    names = sorted(file.name for file in patches.glob("*.patch"))
    (patches / "series").write_text("".join(f"{name}\n" for name in names))


class _Maker:
    """Grows the series patch by patch on both releases at once, in a scratch repository."""

    def __init__(
        self,
        folder: Path,
        releases: Path,
        kind: str,
        old: str,
        new: str,
        env: Mapping[str, str],
        seed: int,
    ) -> None:
        self.folder, self.kind, self.old, self.new = folder, kind, old, new
        self.rng = random.Random(f"{kind} {old} {new} {seed}")
        self.scratch = folder / "scratch.git"
        self.env = dict(env) | {"GIT_INDEX_FILE": str(folder / "index")}
        git(
            "clone",
            "-q",
            "--bare",
            "--shared",
            str(releases),
            str(self.scratch),
            cwd=folder,
            env=env,
        )
        self._git("read-tree", old)
        self.texts: dict[bytes, bytes] = {}
        self.pool, self.moved = self._pick_from()
        self.touched: list[bytes] = []

    def _git(self, *args: str, data: bytes | None = None) -> bytes:
        return git(*args, cwd=self.scratch, env=self.env, data=data)

    def _word(self, *args: str, data: bytes | None = None) -> str:
        return self._git(*args, data=data).decode().strip()

    def _pick_from(self) -> tuple[list[bytes], list[bytes]]:
        here = listing(self.scratch, self.old, self.env)
        there = listing(self.scratch, self.new, self.env)
        both = [
            path
            for path, entry in here.items()
            if path.startswith(b"vllm/")
            and path.endswith(b".py")
            and path in there
            and (self.kind != "changed" or there[path] != entry)
        ]
        rows = self._git("diff-tree", "-r", "-z", "-M", "--diff-filter=R", self.old, self.new)
        parts = rows.split(b"\0")
        moved = [
            path
            for head, path in pairwise(parts)
            if head[:1] == b":" and path.startswith(b"vllm/") and path.endswith(b".py")
        ]
        if self.kind == "moved" and not moved:
            raise SystemExit(f"{self.new} moved no file of vllm/: leave out the kind 'moved'")
        return sorted(both), sorted(moved)

    def _candidate(self) -> list[bytes]:
        some = self.rng.choices((1, 2, 3), (5, 3, 2))[0]
        chosen: list[bytes] = []
        if self.kind == "moved" and self.moved and self.rng.random() < 1 / 3:
            chosen.append(self.rng.choice(self.moved))
        while len(chosen) < some:
            again = self.touched and self.rng.random() < 0.2
            path = self.rng.choice(self.touched if again else self.pool)
            if path not in chosen:
                chosen.append(path)
        return chosen

    def run(self, count: int) -> dict[str, object]:
        old_tip = self._word("rev-parse", f"{self.old}^0")
        new_tree = self._word("rev-parse", f"{self.new}^{{tree}}")
        number = refused = 0
        while number < count:
            if refused > 20 * count + 200:
                raise RuntimeError(f"no {count} patches without a conflict were found")
            tag = f"b{number + 1:04d}x{refused}"
            made = self._try(old_tip, new_tree, tag, number + 1)
            if made is None:
                refused += 1
                self._git("read-tree", old_tip)
                continue
            old_tip, new_tree = made
            number += 1
        repo = self.folder / "case.git"
        self._git("update-ref", "refs/heads/series", old_tip)
        # Not kept as objects: a peer that finds its result there already would write less.
        rows = self._git("ls-tree", "-r", "-z", "--full-tree", new_tree)
        (self.folder / "carried").write_bytes(rows)
        self._git("repack", "-adlfq")
        git(
            "clone",
            "-q",
            "--bare",
            "--no-local",
            str(self.scratch),
            str(repo),
            cwd=self.folder,
            env=self.env,
        )
        export(repo, f"{self.old}..series", self.folder / "patches", self.env)
        shutil.rmtree(self.scratch)
        (self.folder / "index").unlink()
        return {"tree": new_tree, "files": len(set(self.touched)), "refused": refused}

    def _try(self, tip: str, onto: str, tag: str, number: int) -> tuple[str, str] | None:
        rows, fresh_texts = [], {}
        chosen = self._candidate()
        for place, path in enumerate(chosen):
            before = self.texts.get(path)
            if before is None:
                before = self._blob(self.old, path)
            after = edit(before, self.rng, f"{tag}_{place}")
            if after is None or after == before or not compiles(after):
                return None
            blob = self._word("hash-object", "-w", "--stdin", data=after)
            rows.append(b"100644 %s\t%s\0" % (blob.encode(), path))
            fresh_texts[path] = after
        self._git("update-index", "-z", "--index-info", data=b"".join(rows))
        stem = chosen[0].decode().rsplit("/", 1)[-1].removesuffix(".py").replace("_", " ")
        message = f"[Bench][{self.kind}] Adjust {stem} ({number})\n\nSynthetic patch {tag}.\n"
        commit = self._word(
            "commit-tree", self._word("write-tree"), "-p", tip, data=message.encode()
        )
        side = self._word("commit-tree", onto, "-p", tip, data=b"side\n")
        try:
            merged = self._word("merge-tree", "--write-tree", side, commit)
        except RuntimeError:
            return None
        if self._counts(tip, commit) != self._counts(onto, merged):
            return None
        for line in self._git("diff-tree", "-r", "-z", "--name-only", onto, merged).split(b"\0"):
            if line and not compiles(self._blob(merged, line)):
                return None
        if self.kind != "moved" and not self._peers_agree(tip, commit, onto, merged, fresh_texts):
            return None
        self.texts |= fresh_texts
        self.touched += [path for path in chosen if path not in self.touched]
        return commit, merged

    def _blob(self, tree: str, path: bytes) -> bytes:
        return self._git("cat-file", "blob", f"{tree}:{path.decode()}")

    def _peers_agree(
        self, tip: str, commit: str, onto: str, merged: str, texts: Mapping[bytes, bytes]
    ) -> bool:
        files = [
            Sides(
                path.decode(),
                self._blob(tip, path),
                text,
                self._blob(onto, path),
                self._blob(merged, path),
            )
            for path, text in texts.items()
        ]
        diff = self._git("diff-tree", "-r", "-p", "--full-index", "--no-renames", tip, commit)
        return agree(files, diff, self.env)

    def _counts(self, one: str, other: str) -> list[bytes]:
        rows = self._git("diff-tree", "-r", "-z", "--numstat", one, other).split(b"\0")
        return sorted(row.rpartition(b"\t")[0] for row in rows if row)
