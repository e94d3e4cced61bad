"""A small queue with an upstream, a cluster in name only, and nights of it."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from patchq.nightly import run
from patchq.nightly.model import Fault, Night, Told
from patchq.nightly.run import Asked, Hands, Ran
from patchq.nightly.settings import Settings
from patchq.nightly.work import parsed
from tests.support.history import git
from tests.support.inside import Small

STANDIN = Path(__file__).with_name("standin.py")
CLUSTER = """\
target = "cpu"
port = 8000
master_port = 29555
[[node]]
name = "here"
rank = 0
address = "127.0.0.1"
device = "lo"
"""
PROFILE = 'model = "tiny"\nserved_name = "tiny"\n'
GATE = 'cluster = "pair"\nprofile = "tiny"\n[smoke]\n[bench]\ncontexts = [1024]\nrounds = 2\n'
EVENING = datetime(2026, 12, 1, 1, 23, 45, tzinfo=UTC)


def soon(holds: Callable[[], object]) -> None:
    """Wait until it does."""
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def gone(pid: int) -> bool:
    """Whether the process has ended (one that nobody has fetched yet has)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


@dataclass
class Nights:
    """Nights of the queue of `small`, whose machines are a stand-in (tests/nightly/standin.py)."""

    small: Small
    folder: Path
    settings: Settings
    now: datetime = EVENING
    told: list[tuple[Night, tuple[Night, ...]]] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.small.root

    @property
    def kept(self) -> Path:
        return self.root / "build" / "nights"

    def orders(self, **orders: dict[str, Any]) -> None:
        """What the stand-in does; `cluster_start` stands for `cluster start`."""
        named = {name.replace("_", " "): order for name, order in orders.items()}
        (self.folder / "orders.json").write_text(json.dumps(named))

    def program(self, args: Sequence[str]) -> Sequence[str]:
        return (sys.executable, "-I", "-S", str(STANDIN), str(self.folder), *args)

    def real(self) -> None:
        """Let sync and lock be the real ones."""
        (self.folder / "real").touch()

    def run(self, asked: Asked | None = None, **settings: Any) -> Ran:
        """A night, and an hour later it is over."""
        hands = Hands(self.find, self.tell, self.program, lambda: self.now, grace=2)
        ran = run.night(
            self.root, replace(self.settings, **settings), asked or Asked(start="HEAD"), hands
        )
        self.now += timedelta(days=1)
        return ran

    def find(self, night: Night, _folder: Path) -> Fault | None:
        bad = [each for each in night.stages if each.state not in ("done", "left out")]
        return Fault(bad[0].name, bad[0].says, (), ()) if bad else None

    def tell(self, night: Night, _folder: Path, earlier: tuple[Night, ...]) -> Told:
        self.told.append((night, earlier))
        return Told(says=("somebody was told",))

    def calls(self) -> list[str]:
        """The commands that were run since the last look, `cluster stop` among them."""
        file = self.folder / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        file.write_text("")
        self.last = [json.loads(line) for line in lines]
        return [each["name"] for each in self.last]

    def result(self, ran: Ran, name: str) -> Any:
        return parsed(ran.folder / name)

    def environment(self, name: str) -> dict[str, str]:
        """That of the last command of the name."""
        found: dict[str, str] = json.loads((self.folder / f"{name}.environment").read_text())
        return found

    def states(self, ran: Ran) -> dict[str, str]:
        return {each.name: each.state for each in ran.night.stages}


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of what a night starts here has ended at once."""
    monkeypatch.setattr("patchq.child._POLL", 0.005)
    monkeypatch.setattr("patchq.nightly.step._POLL", 0.005)


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The queue of every test, made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATCHQ_CACHE", str(tmp_path_factory.mktemp("cache")))
        small = Small(tmp_path_factory.mktemp("story")).filled()
        for name, text in {
            "ci/clusters/pair.toml": CLUSTER,
            "ci/profiles/tiny.toml": PROFILE,
            "ci/gate.toml": GATE,
            ".gitignore": "/build/\n",
        }.items():
            path = small.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        small.commit()
    return small.folder


@pytest.fixture
def nights(tmp_path: Path, story: Path) -> Nights:
    # Small.__init__ tells the history anew; a copy of the queue reads the one that is there.
    small = Small.__new__(Small)
    small.folder, small.root = story, tmp_path / "queue"
    shutil.copytree(story / "queue", small.root, symlinks=True)
    folder = tmp_path / "standin"
    folder.mkdir()
    settings = Settings(onto="v2", target="cpu", cluster="pair", profile="tiny")
    return Nights(small, folder, settings)


@pytest.fixture
def head(nights: Nights) -> str:
    return git(nights.root, "rev-parse", "HEAD").decode().strip()
