"""Killed at any moment: DST is absent or whole, and the next run keeps what was finished."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from patchq.exl3 import copying, cutting, partial
from patchq.exl3 import slice as slicing
from patchq.exl3.families import load
from patchq.exl3.slice import run
from tests.support import crash
from tests.support.exl3 import encode_checkpoint, moe_layers

SHARDS = 5
FILES = 2 * SHARDS + 1
"""Only the first shard has tensors that are not cut."""

MOMENTS = [
    *[("Partial.finish", count) for count in (0, 1, 2, 7, FILES - 1)],
    *[("copying._write", count) for count in (0, 3, 8)],
    ("copying._Window", 4),
    ("Partial.holds", 0),
    ("slice.copy_others", 0),
    ("slice.write_documents", 0),
    ("Partial.complete", 0),
    ("os.rename", FILES),
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kill")
    encode_checkpoint(folder / "src", moe_layers(experts=5), shards=SHARDS)
    run(folder / "src", folder / "whole", 2, load(), layout="per-rank")
    return folder / "src"


@pytest.mark.parametrize(("where", "count"), MOMENTS)
def test_killed(source: Path, tmp_path: Path, where: str, count: int) -> None:
    target = tmp_path / "dst"
    if where == "Partial.holds":
        # It is asked only when something is there from before.
        _die(source, target, "Partial.finish", 6)
    _die(source, target, where, count)
    assert not target.exists()
    data = tmp_path / ".dst.partial" / "data"
    finished = {path.name: path.stat() for path in data.glob("*.safetensors")}
    report = run(source, target, 2, load(), layout="per-rank")
    kept = 0
    whole = source.parent / "whole"
    assert {path.name for path in target.iterdir()} == {path.name for path in whole.iterdir()}
    for path in whole.iterdir():
        assert path.read_bytes() == (target / path.name).read_bytes(), path.name
    assert [path.name for path in tmp_path.iterdir()] == ["dst"]
    for number in range(1, SHARDS + 1):
        files = {path.name for path in whole.glob(f"model-{number:05}-*")}
        if files <= finished.keys():
            kept += 1
            for name in files:
                now, before = (target / name).stat(), finished[name]
                assert (now.st_ino, now.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert report.resumed == kept


def _die(source: Path, target: Path, where: str, count: int) -> None:
    """Run the slicer, and die by a signal that cannot be caught at this call of a function."""
    owner, _, name = where.rpartition(".")
    place = {"copying": copying, "Partial": partial.Partial, "slice": slicing, "os": os}[owner]
    real, left = getattr(place, name), count

    def dying(*args: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **named)

    def cut() -> None:
        setattr(place, name, dying)
        slicing.run(source, target, 2, load(), layout="per-rank", jobs=1)

    done = crash.forked(cut, crash.NEVER)
    assert done.killed, done


def test_interrupted_by_the_user(source: Path, tmp_path: Path) -> None:
    """Ctrl-C ends all threads at once; the next run goes on."""

    class Impatient:
        pressed = False

        def step(self, what: str, done: int = 0, total: int | None = None, unit: str = "") -> None:
            if what.startswith("cutting") and not self.pressed:
                self.pressed = True
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "dst", 2, load(), progress=Impatient())
    assert not (tmp_path / "dst").exists()
    run(source, tmp_path / "dst", 2, load())
    assert (tmp_path / "dst").is_dir()


def test_interrupted_twice(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who presses Ctrl-C again does not leave threads behind that write into the next run."""
    real = cutting.copy

    def slow(*given: Any, **options: Any) -> None:
        begun.append(threading.current_thread())
        try:
            real(*given, **options)
        finally:
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)
                time.sleep(0.1)
            ended.append(threading.current_thread())

    begun: list[threading.Thread] = []
    ended: list[threading.Thread] = []
    monkeypatch.setattr(cutting, "copy", slow)
    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "dst", 2, load())
    assert begun
    assert sorted(map(id, begun)) == sorted(map(id, ended))
    monkeypatch.undo()
    run(source, tmp_path / "dst", 2, load())
