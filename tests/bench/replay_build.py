"""Build a replay: a series of real pull requests on an old release, and what became of each.

The mirror needs its pull-request heads (`refs/pull/N/head`). What is true of a patch is read from
numbers, ancestry and patch ids of the whole history, never from what patchq would say.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import replay_truth
from tests.bench.measure import git
from tests.bench.replay_truth import Commit

AS_CARRIED, CHANGED, REVERTED = "as carried", "changed in review", "reverted"
BUNDLED, OTHER, LATER, NEVER = "bundled", "other number", "landed later", "never landed"
LANDED = (AS_CARRIED, CHANGED, OTHER)
LARGEST = 1500
"""Lines of a patch; larger ones say little of a queue of patches."""

_PICKED = re.compile(r"cherry[- ]picked from commit ([0-9a-f]{40})")


@dataclass(frozen=True)
class Item:
    """One patch of the series: a commit on the old release, and the truth about it."""

    name: str
    kind: str
    numbers: tuple[int, ...]
    heads: tuple[str, ...]
    commit: str

    @property
    def landed(self) -> bool:
        return self.kind in LANDED


@dataclass
class Replay:
    """A repository that borrows the mirror's objects; `branch` holds the series on `old`."""

    repo: Path
    mirror: Path
    old: str
    new: str
    items: list[Item] = field(default_factory=list)
    branch: str = "series"


class Builder:
    """`most`: patches at most; every second pull request is taken as it was early in review."""

    def __init__(self, mirror: Path, old: str, new: str, place: Path, env: dict[str, str]) -> None:
        self.repo = place / "replay.git"
        self.mirror, self.env = mirror, env
        place.mkdir(parents=True, exist_ok=True)
        git("init", "-q", "--bare", str(self.repo), cwd=place, env=env)
        (self.repo / "objects/info/alternates").write_text(f"{mirror}/objects\n")
        form = "--format=%(objectname) %(committerdate:unix) %(refname)"
        refs = [line.split(" ") for line in self._in_mirror("for-each-ref", form).splitlines()]
        pulls = {
            int(name.split("/")[2]): (oid, int(time or 0))
            for oid, time, name in refs
            if name.startswith("refs/pull/") and name.endswith("/head")
        }
        self.heads = {number: oid for number, (oid, _) in pulls.items()}
        self.times = {number: time for number, (_, time) in pulls.items()}
        self.old, self.new = self._commit(old), self._commit(new)
        self.top = self._commit("HEAD")
        self._git("update-ref", "refs/tags/v1", self.old)
        self._git("update-ref", "refs/tags/v2", self.new)
        self.names = (old, new)

    def _git(self, *args: str, data: bytes | None = None) -> str:
        return git(*args, cwd=self.repo, env=self.env, data=data).decode("utf-8", "replace")

    def _in_mirror(self, *args: str) -> str:
        return git("--git-dir", str(self.mirror), *args, cwd=self.repo, env=self.env).decode()

    def _commit(self, name: str) -> str:
        return self._in_mirror("rev-parse", "--verify", f"{name}^{{commit}}").strip()

    def _range(self, *range_: str) -> list[Commit]:
        out = self._git(
            "log", "--topo-order", "--reverse", "-z", "--format=%H%x01%P%x01%s%x01%b", *range_
        )
        parts = [record.split("\x01", 3) for record in out.split("\0") if record]
        return [Commit(a, tuple(b.split()), c, d) for a, b, c, d in parts]

    def build(self, most: int) -> Replay:
        inside = self._range(self.new, f"^{self.old}")
        known = self._range(self.old, self.new, self.top)
        everywhere = {each.number: each for each in known if each.number}
        here = {each.number: each for each in inside if each.number in self.heads}
        ids = self._patch_ids(each.id for each in inside)
        reverted = replay_truth.reverted(inside, ids)
        after = {each.id for each in self._range(self.top, f"^{self.new}", f"^{self.old}")}
        born = int(self._git("log", "-1", "--format=%ct", self.old))
        died = int(self._git("log", "-1", "--format=%ct", self.new))
        picked = {oid for each in inside for oid in _PICKED.findall(each.body)}
        found: list[tuple[int, str, Commit | None]] = []
        for number, head in sorted(self.heads.items()):
            commit = here.get(number)
            if commit is not None:
                found.append((number, REVERTED if commit.id in reverted else "landed", commit))
            elif (later := everywhere.get(number)) is not None:
                if later.id in after:
                    # A release branch has picks of what the main line has under its number.
                    found.append((number, OTHER if later.id in picked else LATER, later))
            elif born - 120 * 86400 < self.times[number] < died:
                kind = self._unnumbered(head, ids)
                if kind:
                    found.append((number, kind, None))
        return self._stack(_spread(found, most))

    def _unnumbered(self, head: str, ids: dict[str, str]) -> str:
        """Of a pull request without a commit of its number: other, never, or "" (do not know)."""
        base = self._base(head)
        if not base or not 0 < self._size(base, head) <= LARGEST:
            return ""
        if self._is_ancestor(head, self.top) or self._is_ancestor(head, self.new):
            return ""
        mine = self._patch_id(base, head)
        if mine in ids.values():
            return OTHER
        return NEVER if mine else ""

    def _stack(self, chosen: list[tuple[int, str, Commit | None]]) -> Replay:
        replay = Replay(self.repo, self.mirror, *self.names)
        tip = self.old
        waiting: list[tuple[int, str, str]] = []
        for place, (number, truth, commit) in enumerate(chosen):
            state = self._state(number, early=place % 2 == 1 and truth in ("landed", REVERTED))
            if state is None:
                continue
            base, head = state
            if self._is_known(base, head):
                continue
            kind = truth
            if commit is not None and truth == "landed":
                same = self._patch_id(base, head) == self._patch_id(commit.parents[0], commit.id)
                kind = AS_CARRIED if same else CHANGED
            if kind == AS_CARRIED and place % 6 == 0:
                # Half of a bundle; its other half is the next one that has not landed.
                waiting.append((number, base, head))
                continue
            numbers, heads = (number,), (head,)
            made = self._put(tip, base, head, number)
            if made and waiting and kind in (NEVER, LATER):
                first, its_base, its_head = waiting.pop()
                half = self._put(tip, its_base, its_head, first)
                both = half and self._put(half, base, head, number)
                if both:
                    made = self._write(f"{both}^{{tree}}", tip, f"bundle {first} {number}")
                    kind, numbers, heads = BUNDLED, (first, number), (its_head, head)
            if made is None:
                continue
            kind = self._by_lines(kind, tip, made)
            name = "-".join(f"p{each}" for each in numbers)
            replay.items.append(Item(name, kind, numbers, heads, made))
            tip = made
        if not replay.items:
            raise RuntimeError("no pull request of the mirror fits between these releases")
        self._branch("series", replay.items, lambda item: f"patch {item.name}")
        self._branch("numbered", replay.items, _numbered)
        return replay

    def _branch(self, name: str, items: list[Item], message: Callable[[Item], str]) -> None:
        tip = self.old
        for item in items:
            tip = self._write(f"{item.commit}^{{tree}}", tip, message(item))
        self._git("update-ref", f"refs/heads/{name}", tip)

    def _by_lines(self, kind: str, tip: str, made: str) -> str:
        """The kind where lines tell what no number does: it landed, or was taken back for good."""
        root = self._write(f"{tip}^{{tree}}", None, "base")
        one = self._write(f"{self.new}^{{tree}}", root, "one")
        two = self._write(f"{made}^{{tree}}", root, "two")
        tree = self._try("merge-tree", "--write-tree", one, two)
        if tree == self._git("rev-parse", f"{self.new}^{{tree}}").strip():
            return OTHER if kind in (NEVER, LATER, BUNDLED) else kind
        if kind in (NEVER, LATER) and self._stands(tip, made):
            return OTHER
        gone = tree != "" and kind in LANDED and self._stands(tip, made) is False
        return REVERTED if gone else kind

    def _stands(self, tip: str, made: str) -> bool | None:
        """Whether a commit of the range makes the whole change, and none takes it back later."""
        options, range_ = replay_truth.DIFF, (self.new, f"^{self.old}")
        diff = git("diff-tree", "-r", "-p", *options, tip, made, cwd=self.repo, env=self.env)
        paths = self._paths(tip, made)
        log = git(*replay_truth.LOG, *options, *range_, "--", *paths, cwd=self.repo, env=self.env)
        return replay_truth.stands(replay_truth.lines(diff), log.split(b"\0"))

    def _is_known(self, base: str, head: str) -> bool:
        """Whether the old release has the very change already, as a pick on its branch."""
        paths = self._paths(base, head)
        listed = self._git("rev-list", "-n", "300", self.old, f"^{base}", "--", *paths).split()
        return self._patch_id(base, head) in self._patch_ids(iter(listed)).values()

    def _paths(self, one: str, other: str) -> list[str]:
        names = self._git("diff-tree", "-r", "-z", "--no-renames", "--name-only", one, other)
        return [f":(literal){name}" for name in names.split("\0") if name]

    def _state(self, number: int, *, early: bool) -> tuple[str, str] | None:
        """(base, head) of a pull request, whole or as it was when half its commits stood."""
        head = self.heads[number]
        base = self._base(head)
        if not base:
            return None
        if early:
            line = self._git("rev-list", "--first-parent", "--reverse", f"{base}..{head}").split()
            if len(line) > 1:
                head = line[(len(line) - 1) // 2]
                base = self._base(head)
        if not base or not 0 < self._size(base, head) <= LARGEST:
            return None
        return base, head

    def _base(self, head: str) -> str:
        """Where a head left the main line, before it came back to it by a merge."""
        for line in (self.top, self.new):
            done = self._try("merge-base", head, line)
            if done and done != head:
                return done
        line = self._git("rev-list", "--first-parent", "-n", "60", head).split()
        merges = set(self._git("rev-list", "--first-parent", "-n", "3000", self.new).split())
        return next((oid for oid in line if oid in merges and oid != head), "")

    def _size(self, base: str, head: str) -> int:
        paths = self._git("diff-tree", "-r", "--name-only", base, head).count("\n")
        if paths > 60:
            return 0
        out = self._git("diff-tree", "-r", "--numstat", "--no-renames", base, head)
        total = 0
        for line in out.splitlines():
            added, removed, _ = line.split("\t", 2)
            if added == "-":
                return 0
            total += int(added) + int(removed)
        return total

    def _put(self, tip: str, base: str, head: str, number: int) -> str | None:
        """The change of base..head on `tip` as a commit, where it merges cleanly."""
        root = self._write(f"{base}^{{tree}}", None, "base")
        one = self._write(f"{tip}^{{tree}}", root, "one")
        two = self._write(f"{head}^{{tree}}", root, "two")
        tree = self._try("merge-tree", "--write-tree", one, two)
        if not tree or tree == self._git("rev-parse", f"{tip}^{{tree}}").strip():
            return None
        if "160000 " in self._git("diff-tree", "-r", tip, tree):
            return None
        return self._write(tree, tip, f"patch {number}")

    def _write(self, tree: str, parent: str | None, subject: str) -> str:
        tree = self._git("rev-parse", tree).strip()
        more = ["-p", parent] if parent else []
        return self._git("commit-tree", tree, *more, "-m", subject).strip()

    def _try(self, *args: str) -> str:
        done = subprocess.run(["git", *args], cwd=self.repo, env=self.env, capture_output=True)
        return done.stdout.decode().strip() if done.returncode == 0 else ""

    def _is_ancestor(self, one: str, other: str) -> bool:
        done = subprocess.run(
            ["git", "merge-base", "--is-ancestor", one, other], cwd=self.repo, env=self.env
        )
        return done.returncode == 0

    def _patch_id(self, old: str, new: str) -> str:
        diff = git("diff-tree", "-r", "-p", "--no-renames", old, new, cwd=self.repo, env=self.env)
        return self._git("patch-id", "--verbatim", data=diff).partition(" ")[0]

    def _patch_ids(self, commits: Iterator[str]) -> dict[str, str]:
        """The patch id of each commit that changes something, merges against their first parent."""
        listed = "".join(f"{oid}\n" for oid in commits).encode()
        args = ("diff-tree", "--stdin", "-r", "-p", "--no-renames", "--diff-merges=first-parent")
        diffs = git(*args, cwd=self.repo, env=self.env, data=listed)
        out = self._git("patch-id", "--verbatim", data=diffs)
        return {oid: key for key, oid in (line.split(" ") for line in out.splitlines())}


def _numbered(item: Item) -> str:
    pairs = zip(item.numbers, item.heads, strict=True)
    fields = "".join(f"Patchq-Pr: mirror/upstream#{number} @ {head}\n" for number, head in pairs)
    return f"patch {item.name}\n\n{fields}"


def _spread(
    found: list[tuple[int, str, Commit | None]], most: int
) -> list[tuple[int, str, Commit | None]]:
    """At most `most`, evenly spread in each kind; the rare kinds whole; in order of number."""
    kinds: dict[str, list[tuple[int, str, Commit | None]]] = {}
    for each in found:
        kinds.setdefault(each[1], []).append(each)
    shares = {"landed": most * 6 // 10, LATER: most * 15 // 100, NEVER: most // 4}
    chosen = []
    for kind, items in kinds.items():
        count = min(len(items), shares.get(kind, most))
        step = len(items) / count
        chosen += [items[int(place * step)] for place in range(count)]
    return sorted(chosen, key=lambda each: each[0])
