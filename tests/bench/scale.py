"""How the cost grows with the patches and with the tree, and how fast the short commands start.

``python tests/bench/scale.py``: the same first 10, 50 and 200 patches of the
series of random files on the whole tree and on 500 files of it (with every file they touch).
"""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # In place of this folder, in which `bisect` is not the library's.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import json
import shutil
from typing import Any

from tests.bench import table
from tests.bench.carry import Options, options, say, workplace
from tests.bench.measure import cost, fresh, git, hermetic, machine, median
from tests.bench.ours import OURS, missing, ours_env, patchq, project, sync
from tests.bench.peers import PEERS, Env, Outcome, Way
from tests.bench.releases import entries, listing, narrowed, repository
from tests.bench.series import Case, case, export

COUNTS = (10, 50, 200)
FILES = 500
STARTS = 10


def shorter(whole: Case, count: int, work: Path, env: Env) -> Case:
    """The first `count` patches of `whole`, as a case of its own."""
    if count >= whole.count:
        return whole
    folder = work / f"case-{whole.name}-first{count}"
    if not (folder / "complete").exists():
        fresh(folder)
        shutil.copytree(whole.repo, folder / "case.git")
        tip = f"series~{whole.count - count}"
        repo = folder / "case.git"
        git("update-ref", "refs/heads/series", git_id(repo, tip, env), cwd=repo, env=env)
        git("repack", "-adq", cwd=repo, env=env)
        _finish(folder, f"v{whole.old}", f"v{whole.new}", env)
    return _case(whole, folder, f"{whole.name}-first{count}", count)


def narrow(whole: Case, files: int, work: Path, env: Env) -> Case:
    """`whole` on a tree of `files` files: those that the series touches, and others."""
    folder = work / f"case-{whole.name}-of{files}"
    if not (folder / "complete").exists():
        fresh(folder)
        diff = ["diff-tree", "-r", "-z", "--name-only", f"v{whole.old}", "series"]
        keep = {path for path in git(*diff, cwd=whole.repo, env=env).split(b"\0") if path}
        both = sorted(
            listing(whole.repo, f"v{whole.old}", env).keys()
            & entries(whole.carried.read_bytes()).keys()
        )
        step = max(1, len(both) // files)
        for path in both[::step] + both:
            if len(keep) >= files:
                break
            keep.add(path)
        tips = {
            f"refs/tags/v{whole.old}": f"v{whole.old}",
            f"refs/tags/v{whole.new}": f"v{whole.new}",
            "refs/heads/series": f"v{whole.old}..series",
        }
        narrowed(whole.repo, folder / "case.git", tips, keep, env)
        _finish(folder, f"v{whole.old}", f"v{whole.new}", env)
    return _case(whole, folder, f"{whole.name}-of{files}", whole.count)


def git_id(repo: Path, name: str, env: Env) -> str:
    """The full id of a commit."""
    return git("rev-parse", "--verify", f"{name}^0", cwd=repo, env=env).decode().strip()


def _finish(folder: Path, old: str, new: str, env: Env) -> None:
    """Write the quilt folder and, by git itself, the tree that a carry must give."""
    repo = folder / "case.git"
    export(repo, f"{old}..series", folder / "patches", env)
    scratch = folder / "scratch"
    git("clone", "-q", "-b", "series", str(repo), str(scratch), cwd=folder, env=env)
    git("rebase", "-q", "--onto", new, old, "series", cwd=scratch, env=env)
    rows = git("ls-tree", "-r", "-z", "--full-tree", "HEAD", cwd=scratch, env=env)
    (folder / "carried").write_bytes(rows)
    tree = git("rev-parse", "HEAD^{tree}", cwd=scratch, env=env).decode().strip()
    shutil.rmtree(scratch)
    (folder / "complete").write_text(tree)


def _case(whole: Case, folder: Path, name: str, count: int) -> Case:
    return Case(
        name,
        whole.kind,
        whole.old,
        whole.new,
        count,
        folder / "case.git",
        folder / "patches",
        folder / "carried",
        (folder / "complete").read_text(),
        whole.files,
        whole.refused,
    )


def curve(chosen: Options, work: Path) -> dict[str, Any]:
    """The points of the curve, ready for JSON and for `table.curve`."""
    env = hermetic(work / "home")
    place = work / "place"
    place.mkdir(exist_ok=True)
    old, new = chosen.steps[-1]
    releases = repository(work, chosen.archives, chosen.versions, env)
    whole = case(work, releases, "random", old, new, max(COUNTS), env)
    ways: dict[str, tuple[str, Way]] = {"git": PEERS["git"]}
    if not missing():
        ways |= {name: OURS[name] for name in ("carry", "sync") if name in chosen.ours}
    points = []
    for tree in (narrow(whole, FILES, work, env), whole):
        files = len(entries(tree.carried.read_bytes()))
        for count in COUNTS:
            one = shorter(tree, count, work, env)
            runs: dict[str, list[Outcome]] = {name: [] for name in ways}
            for _ in range(chosen.repeat):
                for name, (_, way) in ways.items():
                    runs[name].append(way(one, place, env, False))
            found = {}
            for name, got in runs.items():
                middle = median([each.cost for each in got])
                found[name] = {
                    "title": ways[name][0],
                    "wall": middle.wall,
                    "cpu": middle.cpu,
                    "same": all(each.same for each in got),
                }
            said = ", ".join(f"{name} {each['wall']:.2f} s" for name, each in found.items())
            say(f"  {files} files, {count} patches: {said}")
            points.append({"files": files, "patches": count, "ways": found})
    return {"step": f"{old} to {new}", "repeat": chosen.repeat, "points": points}


def startup(chosen: Options, work: Path) -> dict[str, Any]:
    """The short commands and a sync with nothing to do, ready for `table.startup`."""
    if missing():
        return {"repeat": STARTS, "commands": []}
    env = hermetic(work / "home")
    place = work / "place"
    place.mkdir(exist_ok=True)
    old, new = chosen.steps[0]
    releases = repository(work, chosen.archives, chosen.versions, env)
    whole = case(work, releases, "random", old, new, max(COUNTS), env)
    cache = fresh(place / "cache-start")
    root = project(whole, place, env)
    first = sync(whole, root, cache, env)
    if first.code:
        raise RuntimeError(f"patchq sync ended with {first.code}: {first.err.decode()[-2000:]}")
    inside = ours_env(env, cache)
    words = {"COMP_WORDS": "patchq sy", "COMP_CWORD": "1", "_PATCHQ_COMPLETE": "complete_bash"}
    onto = [*patchq(), "sync", "--onto", f"v{new}"]
    asked: list[tuple[str, list[str], dict[str, str], int]] = [
        ("`python -c pass` (the floor)", [sys.executable, "-c", "pass"], {}, 0),
        ("`patchq --help`", [*patchq(), "--help"], {}, 150),
        ("`patchq sync --help`", [*patchq(), "sync", "--help"], {}, 150),
        ("completion of `patchq sy`", patchq(), words, 150),
        (f"`patchq sync --onto v{new}` with nothing to do", onto, {}, 300),
        (f"`patchq sync --onto v{new} --json` with nothing to do", [*onto, "--json"], {}, 300),
        ("`patchq status`", [*patchq(), "status"], {}, 0),
    ]
    commands = []
    for title, args, more, goal in asked:
        runs = [cost(args, cwd=root, env={**inside, **more}) for _ in range(STARTS + 1)][1:]
        middle = median(runs)
        say(f"  {title}: {middle.wall * 1000:.0f} ms")
        walls = [each.wall for each in runs]
        facts = {"title": title, "wall": middle.wall, "cpu": middle.cpu, "goal_ms": goal}
        commands.append(facts | {"walls": walls, "largest_mb": middle.largest})
    return {"repeat": STARTS, "patches": whole.count, "commands": commands}


def main() -> int:
    """Measure, print the tables, write the JSON."""
    chosen = options(about=__doc__)
    with workplace(chosen) as work:
        found = {"start": startup(chosen, work), "curve": curve(chosen, work)}
        found["machine"] = machine(hermetic(work / "home"))
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")
    print(table.machine(found["machine"]))
    print(table.curve(found["curve"]))
    print(table.startup(found["start"]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
