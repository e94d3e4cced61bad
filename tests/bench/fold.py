"""patchq's carry alone, as one process: ``python -m tests.bench.fold REPO OLD NEW SERIES``.

Reads the series folder, carries it from OLD to NEW (names of commits in the bare repository REPO,
whose objects are read in place) and prints the final tree and the seconds of each part as JSON.
With ``--write OUT`` as well the patches are expressed on NEW and written there; with
``--profile FILE`` a cProfile of it all is kept. ``--prepare QUILT SERIES`` makes the folder.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path


def prepare(quilt: Path, series: Path) -> None:
    """Make a series folder in patchq's form of a quilt folder's patches, one to one."""
    from patchq.carry.bring import from_quilt
    from patchq.queue import patch as patches

    series.mkdir(parents=True)
    taken: set[str] = set()
    names = []
    for number, source in enumerate(from_quilt(quilt), 1):
        header = source.brought.header
        name = patches.slug(header.subject, taken)
        taken.add(name)
        made = patches.make(number, name, header, source.brought.diff)
        (series / made.file).write_bytes(made.text)
        names.append(f"{made.file}\n")
    (series / "series").write_text("".join(names))


def carry(repo: Path, old: str, new: str, folder: Path, out: Path | None) -> dict[str, object]:
    """Carry the series; seconds are those since the interpreter ran its first line here."""
    start = time.perf_counter()
    from patchq.carry.canonical import exported, fold_any
    from patchq.carry.fold import Release
    from patchq.gitstore.git import run
    from patchq.gitstore.store import Store
    from patchq.queue import series as serieses

    parts: dict[str, float] = {}

    def mark(name: str) -> None:
        nonlocal start
        now = time.perf_counter()
        parts[name] = now - start
        start = now

    mark("imports")
    applied = serieses.read(folder).applied
    mark("read series")
    cache = Path(os.environ.get("PATCHQ_CACHE") or tempfile.gettempdir())
    with Store(cache / "bench.git", alternates=[repo / "objects"]) as store:
        sides = []
        for name in (old, new):
            done = run(["rev-parse", f"{name}^0"], git_dir=repo)
            commit = done.out.decode().strip()
            sides.append(Release(name, commit, store.objects.tree_of(commit)))
        mark("open")
        carried = fold_any(store, sides[0], sides[1], applied)
        mark("fold")
        if out is not None:
            out.mkdir(parents=True)
            for patch in exported(store, carried).values():
                (out / patch.file).write_bytes(patch.text)
            mark("export")
    words: dict[str, int] = {}
    for each in carried.patches:
        word = f"{each.judgement.verdict}/{each.carry}"
        words[word] = words.get(word, 0) + 1
    note = ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
    return {"tree": carried.tree, "note": note, "parts": parts}


def main(argv: list[str]) -> int:
    """Read the words above; no more than the benchmark needs."""
    if argv[0] == "--prepare":
        prepare(Path(argv[1]), Path(argv[2]))
        return 0
    repo, old, new, folder = argv[:4]
    more = dict(zip(argv[4::2], argv[5::2], strict=True))
    out = Path(more["--write"]) if "--write" in more else None
    work = Path(repo).resolve(), old, new, Path(folder), out
    if "--profile" in more:
        import cProfile

        with cProfile.Profile() as profile:
            said = carry(*work)
        profile.dump_stats(more["--profile"])
    else:
        said = carry(*work)
    print(json.dumps(said))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
