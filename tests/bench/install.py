"""From a mirror to a server, an upgrade, and back: seconds, and memory at a large asset.

    python -m tests.bench.install [--size MB]

The mirror and the packages are on this machine, the server is the stand-in (tests/support/standin.py).
What it must reach: install to serving in 180 s, rollback in 5 s, memory that no asset's size changes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.build import wheels
from tests.support import shelf
from tests.support.press import HERE, Press
from tests.support.sshd import free_port


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=300, help="of the largest asset, in MB")
    size = parser.parse_args().size
    with tempfile.TemporaryDirectory(prefix="patchq-bench-") as folder:
        place = Path(folder)
        press = Press(place / "press")
        # In a process of its own: a program's peak begins with that of who starts it.
        maker = multiprocessing.Process(target=make, args=(place, press, size))
        maker.start()
        maker.join()
        port = free_port()
        served = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
        served += ["--directory", str(press.folder)]
        with subprocess.Popen(served, stderr=subprocess.DEVNULL) as mirror:
            try:
                return measure(place, press, f"http://127.0.0.1:{port}", size)
            finally:
                mirror.terminate()


def make(place: Path, press: Press, size: int) -> None:
    """Two releases, the packages, and a home."""
    packages = place / "packages"
    ours = shelf.fill(packages, "patchq")
    helper = wheels.plain(packages, "helper", "1.0", {"helper.py": b""})
    large = {"source.tar.gz": os.urandom(1 << 20) * size}
    for number in (1, 2):
        press.whole(number, ours, shelf.line("helper", "1.0", helper), large)
    (place / "install.sh").write_bytes(press.installer())


def measure(place: Path, press: Press, base: str, size: int) -> int:
    packages, home = place / "packages", place / "home"
    (home / "models/tiny").mkdir(parents=True)
    port, master = press.ports
    cluster = HERE.format(port=port, master=master, python="").replace('python = ""\n', "")
    (place / "here.toml").write_text(cluster)
    given = ["--packages", str(packages), "--cluster", str(place / "here.toml")]
    command = str(home / ".local/bin/patchq")
    took = {
        "install": run(
            home, "sh", str(place / "install.sh"), "--from", f"{base}/release-1", *given
        ),
        "start": run(home, command, "cluster", "start"),
        "upgrade": run(home, command, "install", "2", "--packages", str(packages)),
        "rollback": run(home, command, "rollback"),
        "uninstall": run(home, command, "uninstall"),
    }
    for what, (seconds, memory) in took.items():
        print(f"{what:10} {seconds:7.1f} s {memory:6.0f} MB, with an asset of {size} MB")
    good = took["install"][0] + took["start"][0] < 180 and took["rollback"][0] < 5
    return 0 if good else 1


def run(home: Path, *command: str) -> tuple[float, float]:
    """What a command of somebody with nothing but a home takes: seconds, and MB of memory."""
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    begun = time.monotonic()
    child = subprocess.Popen(
        command, cwd=home, env={"HOME": str(home), "PATH": path}, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return time.monotonic() - begun, used.ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
