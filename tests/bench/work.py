"""The hand on a patch beside quilt: push, pop and refresh of one patch among many, and push -a.

``python tests/bench/work.py``: a series of random edits on a real release of vLLM, all commands in
turns; both trees are compared with git's after each push of everything.
"""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # In place of this folder, in which `bisect` is not the library's.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from typing import Any

from tests.bench import table
from tests.bench.carry import Options, options, say, workplace
from tests.bench.measure import Cost, cost, fresh, git, hermetic, machine, median
from tests.bench.ours import missing, ours_env, patchq, project
from tests.bench.peers import Env, unpack
from tests.bench.releases import listing, repository
from tests.bench.series import Case, case

SECONDS = 0.5
"""The goal for push, pop and refresh of one patch."""
FASTER = 3.0
"""The goal for push -a, times quilt."""

WORK = {
    "first": "push -a from nothing (patchq makes its tree)",
    "push -a": "push -a",
    "push": "push of the last patch",
    "pop": "pop of the last patch",
    "refresh": "refresh of the last patch, one file edited",
    "middle": "refresh of the patch in the middle, the others above it",
    "pop -a": "pop -a",
}

Files = dict[bytes, tuple[int, str]]
"""Path: time of the last change in ns, id of the content."""


class Bed:
    """One tool in a tree of its own: `args` are its words before the command's."""

    def __init__(self, tree: Path, cwd: Path, args: Sequence[str], env: Env) -> None:
        self.tree, self._cwd, self._args, self._env = tree, cwd, args, env

    def run(self, *words: str) -> Cost:
        return cost([*self._args, *words], cwd=self._cwd, env=self._env)

    def edit(self, path: bytes, text: bytes) -> None:
        """Add a line to a file that the patch on top touches."""
        with open(os.path.join(os.fsencode(self.tree), path), "ab") as file:
            file.write(text)

    def files(self, leave_out: frozenset[bytes]) -> Files:
        """What stands there."""
        found: Files = {}
        top = os.fsencode(self.tree)
        for folder, below, names in os.walk(top):
            if folder == top:
                below[:] = [name for name in below if name not in leave_out]
            for name in names:
                full = os.path.join(folder, name)
                if os.path.islink(full) or name == b".git":
                    continue
                data = Path(os.fsdecode(full)).read_bytes()
                key = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False)
                info = os.stat(full)
                found[os.path.relpath(full, top)] = (info.st_mtime_ns, key.hexdigest())
        return found


def quilt_bed(one: Case, place: Path, env: Env) -> Bed:
    """The old release with the patches beside it."""
    tree = fresh(place / "quilt")
    unpack(one, f"v{one.old}", tree, env)
    shutil.copytree(one.patches, tree / "patches")
    return Bed(tree, tree, ["quilt", "--quiltrc", "-"], env)


def our_bed(one: Case, place: Path, env: Env) -> Bed:
    """A project with the series imported; its store is warm, as after any other command."""
    root = project(one, place, env)
    inside = ours_env(env, place / "cache-import")
    return Bed(root / ".git/patchq/work/bench/tree", root, patchq(), inside)


LEFT_OUT = frozenset({b".pc", b"patches"})


def turn(one: Case, bed: Bed, wanted: dict[bytes, str], say_: Callable[[str], None]) -> Any:
    """Every command once: seconds by name, and what `push -a` left."""
    middle = str(one.count // 2)
    seconds: dict[str, Cost] = {"first": bed.run("push", "-a")}
    bed.run("pop", "-a")
    before = bed.files(LEFT_OUT)
    seconds["push -a"] = bed.run("push", "-a")
    after = bed.files(LEFT_OUT)
    seconds["pop"] = bed.run("pop")
    seconds["push"] = bed.run("push")
    last, half = (touched(one, number) for number in (one.count, one.count // 2))
    bed.edit(last, b"# one more line\n")
    seconds["refresh"] = bed.run("refresh")
    bed.run("pop", "-a")
    bed.run("push", middle)
    bed.edit(half, b"# a line in the middle\n")
    seconds["middle"] = bed.run("refresh")
    bed.run("push", "-a")
    seconds["pop -a"] = bed.run("pop", "-a")
    rewritten = [path for path, (time, _) in after.items() if before.get(path, (0,))[0] != time]
    for name, took in seconds.items():
        say_(f"  {bed.tree.parts[-1]} {name}: {took.wall:.2f} s")
    return seconds, {
        "same": {path: key for path, (_, key) in after.items()} == wanted,
        "rewritten": len(rewritten),
        "needless": sum(before[p][1] == after[p][1] for p in rewritten if p in before),
    }


def touched(one: Case, number: int) -> bytes:
    """The first file of the patch with that number."""
    (patch,) = one.patches.glob(f"{number:04d}-*.patch")
    line = next(x for x in patch.read_bytes().split(b"\n") if x.startswith(b"+++ b/"))
    return line.removeprefix(b"+++ b/")


def compare(chosen: Options, work: Path) -> dict[str, Any]:
    """Both tools on the first step's old release, in turns; ready for JSON and `shown`."""
    env = hermetic(work / "home")
    place = work / "place"
    place.mkdir(exist_ok=True)
    releases = repository(work, chosen.archives, chosen.versions, env)
    old, new = chosen.steps[0]
    one = case(work, releases, chosen.kinds[0], old, new, chosen.patches, env)
    links = git("ls-tree", "-r", "-z", "series", cwd=one.repo, env=env)
    plain = {line.partition(b"\t")[2] for line in links.split(b"\0") if line[:2] == b"10"}
    wanted = {
        path: key.decode()
        for path, (_, key) in listing(one.repo, "series", env).items()
        if path in plain
    }
    beds = {"patchq": our_bed, "quilt": quilt_bed}
    costs: dict[str, dict[str, list[Cost]]] = {name: {w: [] for w in WORK} for name in beds}
    facts: dict[str, Any] = {}
    for number in range(chosen.repeat):
        for name, make in beds.items():
            say(f"{name} {number + 1}/{chosen.repeat}")
            seconds, seen = turn(one, make(one, place, env), wanted, say)
            facts[name] = seen
            for what, took in seconds.items():
                costs[name][what].append(took)
    return {
        "machine": machine(env),
        "patches": one.count,
        "release": old,
        "seen": facts,
        "ways": {
            name: {
                what: {"wall": median(runs).wall, "cpu": median(runs).cpu}
                for what, runs in each.items()
            }
            for name, each in costs.items()
        },
    }


def shown(found: dict[str, Any]) -> str:
    """The figures as Markdown."""
    ours, quilt = (found["ways"][name] for name in ("patchq", "quilt"))
    body = []
    for what, about in WORK.items():
        mine, other = ours[what], quilt[what]
        goal = f"{SECONDS:g} s" if what in ("push", "pop", "refresh", "middle") else ""
        goal = f"{FASTER:g} times quilt" if what == "push -a" else goal
        times = f"{other['wall'] / mine['wall']:.1f}"
        cells = (f"{each['wall']:.2f} ({each['cpu']:.2f})" for each in (mine, other))
        body.append([about, *cells, times, goal])
    text = [
        "## The working tree: one patch among many\n",
        (
            f"{found['patches']} patches on vLLM {found['release']}; seconds of wall time"
            " (processor time in brackets).\n"
        ),
        table.rows(["", "patchq", "quilt", "times faster", "goal"], body),
    ]
    for name, seen in found["seen"].items():
        same = "gives git's tree" if seen["same"] else "gives ANOTHER tree"
        text.append(
            f"- {name} push -a {same}; it rewrote {seen['rewritten']} files,"
            f" {seen['needless']} of them with the bytes that they had"
        )
    return "\n".join(text) + "\n"


def main() -> int:
    """Measure, print Markdown, write the JSON."""
    chosen = options(about=__doc__)
    why = missing()
    if why:
        raise SystemExit(why)
    with workplace(chosen) as work:
        found = compare(chosen, work)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")
    print(table.machine(found["machine"]))
    print(shown(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
