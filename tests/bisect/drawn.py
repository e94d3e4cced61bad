"""Queues whose two ends are drawn: bases, patches and orders, with all that may go wrong between."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from patchq.gitstore.store import Store
from patchq.queue import series as serieses
from patchq.queue.patch import Patch
from patchq.queue.series import Line, Series
from patchq.upstream import state as states
from patchq.upstream.releases import Release
from patchq.upstream.state import QueueState
from tests.support.history import Commit, History, git
from tests.support.kit import made

Files = dict[str, bytes]


@dataclass(frozen=True)
class Edit:
    """One small change: `what` happens at the line `line` of `file`, with `text`."""

    what: str
    file: str
    line: int
    text: str

    def on(self, files: Mapping[str, bytes]) -> Files:
        """The files with it; as they are where it has no place."""
        out = dict(files)
        if self.what == "new":
            out.setdefault(f"{self.file}-{self.text}", b"made\n" * (self.line + 1))
            return out
        if self.file not in out:
            return out
        if self.what == "gone":
            del out[self.file]
            return out
        if self.what == "move":
            out[f"moved/{self.file}"] = out.pop(self.file)
            return out
        lines = out[self.file].splitlines(keepends=True)
        mark = f"line {self.line}".encode()
        for place, line in enumerate(lines):
            if line.split(b":")[0] == mark:
                fresh = f"line {self.line}: {self.text}\n".encode()
                put = {"put": [fresh], "add": [line, fresh + b"more\n"], "cut": []}[self.what]
                lines[place : place + 1] = put
                break
        out[self.file] = b"".join(lines)
        return out


EDITS = st.builds(
    Edit,
    st.sampled_from(("put", "put", "put", "add", "add", "cut", "new", "gone")),
    st.sampled_from(("a", "b")),
    st.integers(0, 11),
    st.sampled_from("xyz"),
)
UPSTREAM = st.lists(st.one_of(EDITS, st.just(Edit("move", "b", 0, ""))), max_size=4)
SERIES = st.lists(st.integers(0, 6), unique=True, min_size=2, max_size=7)


@dataclass(frozen=True)
class World:
    """Upstream's own commits, what each patch does in A (`was`) and in B, and both series."""

    upstream: Sequence[Edit]
    was: Sequence[Edit]
    now: Sequence[Edit]
    a: Sequence[int]
    b: Sequence[int]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    was = draw(st.lists(EDITS, min_size=7, max_size=7))
    anew = draw(st.sets(st.integers(0, 6), max_size=2))
    now = [draw(EDITS) if place in anew else each for place, each in enumerate(was)]
    return World(draw(UPSTREAM), was, now, draw(SERIES), draw(SERIES))


def told(world: World, folder: Path) -> Path:
    """The project of `world`, its ends tagged `a` and `b`."""
    history = History(folder / "up.git")
    files: Files = {
        name: b"".join(b"line %d: plain\n" % number for number in range(12)) for name in ("a", "b")
    }
    _commit(history, files).tag("v1")
    first = files
    for edit in world.upstream:
        files = edit.on(files)
        _commit(history, files)
    history.tips["main"].tag("v2")
    chains = [
        _chain(history, "on-a", "v1", first, world.a, world.was),
        _chain(history, "on-b", "v2", files, world.b, world.now),
    ]
    history.save()
    root = folder / "queue"
    root.mkdir()
    git(root, "init", "-q", "-b", "main", "--template=")
    with Store(folder / "store.git", alternates=[history.path / "objects"]) as store:
        for tag, base, chain in zip("ab", ("v1", "v2"), chains, strict=True):
            _write(root, history, store, base, chain)
            git(root, "add", "-A")
            git(root, "commit", "-q", "--allow-empty", "-m", tag)
            git(root, "tag", tag)
    return root


def _commit(history: History, files: Files) -> Commit:
    commit = history.commit("change")
    commit.tree.clear()
    for name, data in files.items():
        commit.write(name, data)
    return commit


def _chain(
    history: History,
    branch: str,
    base: str,
    files: Files,
    order: Sequence[int],
    edits: Sequence[Edit],
) -> list[tuple[int, str]]:
    history.branch(branch, at=base)
    found = []
    for number in order:
        fresh = edits[number].on(files)
        if fresh != files and fresh:
            files = fresh
            _commit(history, files)
            tag = f"{branch}-{number}"
            history.tips[branch].tag(tag)
            found.append((number, tag))
    return found


def _write(
    root: Path, history: History, store: Store, base: str, chain: Sequence[tuple[int, str]]
) -> None:
    commits = {name: _resolved(history, name) for name in (base, *(tag for _, tag in chain))}
    trees = {name: store.objects.tree_of(commit) for name, commit in commits.items()}
    before = base
    patches: list[Patch] = []
    for number, tag in chain:
        (diff,) = store.diff_texts([(trees[before], trees[tag])])
        patches.append(made(number + 1, f"p{number}", diff))
        before = tag
    series = Series(tuple(Line("patch", each.file, each) for each in patches))
    folder = root / "series"
    if folder.exists():
        for path in folder.iterdir():
            path.unlink()
    folder.mkdir(exist_ok=True)
    for name, data in series.files().items():
        (folder / name).write_bytes(data)
    assert serieses.read(folder).digest == series.digest
    (root / "upstream").mkdir(exist_ok=True)
    where = os.fspath(history.path)
    text = f'name = "demo"\nseries = "series"\n\n[[sources]]\ngit = "{where}"\n'
    (root / "upstream/demo.toml").write_text(text)
    release = Release(base, commits[base], trees[base])
    state = QueueState(base, commits[base], trees[base])
    data = states.format({"demo": state.on(release, series.digest, trees[before])})
    (root / "upstream/state.json").write_bytes(data)


def _resolved(history: History, name: str) -> str:
    return git(history.path, "rev-parse", f"refs/tags/{name}").decode().strip()
