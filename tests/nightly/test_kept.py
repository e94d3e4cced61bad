"""Nights on disk: what is written is read back, what is no night is refused, what is kept."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.errors import PatchqError
from patchq.nightly import kept
from patchq.nightly.model import Culprit, Fault, Night, Stage, Told

AT = "2026-12-01T01:23:45+00:00"
FULL = Night(
    name="2026-12-01.2",
    queue="demo",
    state="red",
    began=AT,
    ended=AT,
    start="a" * 40,
    commit="b" * 40,
    base=("0.29.0", "0.32.0"),
    tree="c" * 40,
    lock="d" * 64,
    stages=(
        Stage("sync", "done", AT, 12.5, "moved", 0, ("sync.json", "sync.log")),
        Stage("smoke", "failed", AT, 1.0, "failed: cache", -9, ("smoke.json",)),
    ),
    fault=Fault(
        "smoke",
        "it spins \u202e <b>",
        ("one", "two"),
        ("patchq smoke",),
        (Culprit("commit", "abc", "says", "https://example.org/c/1", 0.99),),
    ),
    told=Told(7, "e" * 40, 9, ("opened",)),
)
BARE = Night("2026-12-01", "demo", "running", AT, None, "a" * 40)


@pytest.mark.parametrize("night", [FULL, BARE])
def test_what_is_written_is_read_back(night: Night) -> None:
    assert kept.read(kept.write(night)) == night
    assert kept.write(night) == kept.write(kept.read(kept.write(night)))


def changed(path: str, value: Any) -> bytes:
    """night.json with one field otherwise: `stages.0.name`."""
    found = json.loads(kept.write(FULL))
    *way, last = path.split(".")
    place = found
    for key in way:
        place = place[int(key) if key.isdecimal() else key]
    place[last] = value
    return json.dumps(found).encode()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schema", "patchq.night/2"),
        ("name", "../../etc"),
        ("name", "2026-12-01.0"),
        ("name", "2026-12-01\n"),
        ("queue", "a/b"),
        ("queue", None),
        ("state", "splendid"),
        ("began", "2026-12-01T01:23:45"),
        ("ended", "yesterday"),
        ("start", "a" * 39),
        ("start", "HEAD"),
        ("commit", "b" * 40 + "\n"),
        ("lock", "d" * 40),
        ("base", ["0.29.0", "0.32.0"]),
        ("stages", {}),
        ("stages.0.name", "lunch"),
        ("stages.0.state", "perhaps"),
        ("stages.0.seconds", -1),
        ("stages.0.seconds", float("nan")),
        ("stages.0.seconds", True),
        ("stages.0.exit", "0"),
        ("stages.0.files", ["../../../etc/passwd"]),
        ("stages.0.files", [".git"]),
        ("stages.0.says", "x" * 20_001),
        ("fault.stage", "x"),
        ("fault.lines", ["x"] * 401),
        ("fault.culprits.0.kind", "user"),
        ("fault.culprits.0.url", "javascript:alert(1)"),
        ("fault.culprits.0.confidence", 1.5),
        ("told", None),
        ("told.pull", 0),
        ("told.issue", "7"),
        ("told.pushed", "HEAD"),
    ],
)
def test_a_field_that_is_not_what_it_has_to_be_is_refused(path: str, value: Any) -> None:
    kept.read(changed("queue", "other"))
    with pytest.raises(PatchqError, match="is no night that this patchq can read"):
        kept.read(changed(path, value))


def test_a_later_field_is_passed_over() -> None:
    assert kept.read(changed("weather", "fine")) == FULL


@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["schema", "name", "stages", "told", "fault", "base"]), inner
            )
        ),
        max_leaves=10,
    ).map(lambda value: json.dumps(value).encode())
)
def test_whatever_is_no_night_is_refused_in_a_sentence(data: bytes) -> None:
    with pytest.raises(PatchqError):
        kept.read(data)


def test_what_is_nested_too_deep_or_too_large_is_refused() -> None:
    for data in (b"[" * 100_000, b" " * (5 << 20)):
        with pytest.raises(PatchqError):
            kept.read(data)


def test_nights_are_named_by_day_and_turn() -> None:
    day = date(2026, 12, 1)
    assert kept.next_name(day, []) == "2026-12-01"
    assert kept.next_name(day, ["2026-11-30.4", "2026-12-01"]) == "2026-12-01.2"
    assert kept.next_name(day, ["2026-12-01", "2026-12-01.9"]) == "2026-12-01.10"


def made(nights: Path, *states: str, queue: str = "demo") -> list[str]:
    """Nights of one December, the oldest first, each with a clone."""
    names = []
    for state in states:
        name = kept.next_name(date(2026, 12, 1), kept.names(nights))
        night = replace(BARE, name=name, state=state, queue=queue)
        (nights / name / kept.QUEUE / "build").mkdir(parents=True)
        kept.save(nights / name, night)
        names.append(name)
    return names


def test_nights_are_listed_the_oldest_first_and_damaged_ones_left_out(tmp_path: Path) -> None:
    names = made(tmp_path, *["green"] * 10)
    made(tmp_path, "red", queue="other")
    (tmp_path / names[3] / "night.json").write_text("{")
    (tmp_path / "lock").touch()
    found = kept.listed(tmp_path, "demo")
    assert [each.name for each in found] == [name for name in names if name != names[3]]
    assert kept.last(found, "red") is None
    last = kept.last(found, "green")
    assert last is not None
    assert last.name == "2026-12-01.10"


def test_old_nights_go_and_clones_of_all_but_the_last_green_and_red(tmp_path: Path) -> None:
    names = made(tmp_path, "green", "quiet", "red", "green", "red", "quiet", "asks", "running")
    theirs = made(tmp_path, "green", queue="other")
    assert kept.prune(tmp_path, 7) == names[:2]
    assert kept.names(tmp_path) == [*names[2:], *theirs]
    clones = [name for name in kept.names(tmp_path) if (tmp_path / name / kept.QUEUE).exists()]
    assert clones == [names[3], names[4], names[7], *theirs], "last green, last red, unfinished"


def test_the_last_green_night_stays_however_old_it_is(tmp_path: Path) -> None:
    names = made(tmp_path, "green", *["red"] * 5)
    kept.prune(tmp_path, 2)
    assert kept.names(tmp_path) == [names[0], *names[-2:]]


HOLDS = """
import sys
from pathlib import Path
from patchq.nightly import kept
with kept.hold(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_nights_at_once_are_refused_with_the_holders_name(tmp_path: Path) -> None:
    program = [sys.executable, "-c", HOLDS, str(tmp_path)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(PatchqError) as caught, kept.hold(tmp_path):
            pass
        assert f"process {other.pid}" in caught.value.message
        assert f"kill {other.pid}" in caught.value.hint
        other.kill()
    with kept.hold(tmp_path):
        pass


def test_a_disk_that_refuses_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (name,) = made(tmp_path, "running")
    before = (tmp_path / name / "night.json").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "night.json")

    monkeypatch.setattr(kept, "write_file", full)
    with pytest.raises(PatchqError, match="No space left") as caught:
        kept.save(tmp_path / name, FULL)
    assert "make room" in caught.value.hint
    assert (tmp_path / name / "night.json").read_bytes() == before
