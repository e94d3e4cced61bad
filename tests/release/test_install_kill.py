"""An upgrade that is killed anywhere: the old release or the new one, and the next run ends it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from patchq.upstream import download, web
from tests.support import crash
from tests.support.fleet import eventually
from tests.support.inside import call
from tests.support.press import Press

TRIED = 6
"""Of the steps, evenly; the last ones, where links are switched, besides."""
LAST = 2


def at_work(home: Path) -> list[str]:
    """What a killed run left running: it comes to its end by itself."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"HOME={home}\0".encode() in path.read_bytes() + b"\0":
                found.append((path.parent / "cmdline").read_bytes().decode("utf-8", "replace"))
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_a_kill_anywhere_in_an_upgrade(
    sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_PAUSE", 0.0)
    monkeypatch.setattr(web, "_PAUSE", 0.0)
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    press = Press(tmp_path / "press")
    (sealed / "models/tiny").mkdir(parents=True)
    given = ("--cluster", str(press.cluster()), "--signers", str(press.signers))
    given += ("--from", str(press.folder))
    for number in (1, 2):
        press.cut(number)
    call(Path.cwd(), "install", "1", *given)
    kept = tmp_path / "kept"
    ours = ("patchq", ".local")
    for name in ours:
        shutil.copytree(sealed / name, kept / name, symlinks=True)

    def prepare() -> None:
        assert eventually(lambda: not at_work(sealed)), at_work(sealed)
        for name in ours:
            shutil.rmtree(sealed / name, ignore_errors=True)
            shutil.copytree(kept / name, sealed / name, symlinks=True)

    def run(step: crash.Step) -> crash.Run:
        return crash.forked(lambda: call(Path.cwd(), "install", "2", *given), step, under=sealed)

    def number() -> int:
        """The release that starts next; the whole of it is there."""
        assert eventually(lambda: not at_work(sealed)), at_work(sealed)
        (node,) = call(Path.cwd(), "cluster", "status", "--json").json["nodes"]
        release = sealed / "patchq/releases" / node["current"]["digest"]
        assert (release / "vllm/standin.py").is_file() and (release / "bin/vllm").is_file()
        return int(node["current"]["labels"]["number"])

    prepare()
    whole = run(crash.NEVER)
    assert (whole.code, number()) == (0, 2), whole
    count = len(whole.effects)
    steps = {*range(1, count, max(1, count // TRIED)), *range(count - LAST, count + 1)}
    seen: set[int] = set()

    def check(done: crash.Run) -> None:
        seen.add(number())

    def again() -> None:
        call(Path.cwd(), "install", "2", *given)
        assert number() == 2
        assert not (sealed / ".local/share/patchq/downloads").exists()

    assert crash.every_step(run, check, prepare=prepare, steps=sorted(steps)) == len(steps)
    assert seen == {1, 2}
    again()
    prepare()
    run(count // 2)
    again()
    call(Path.cwd(), "rollback")
    assert number() == 1
    call(Path.cwd(), "uninstall")
    assert not (sealed / "patchq").exists() and not (sealed / ".local/share/patchq").exists()
