"""install.sh; and the way of somebody who has nothing but Python: to a server, and back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.build import wheels
from tests.support import shelf
from tests.support.fleet import eventually, standins
from tests.support.here import CLUSTER
from tests.support.press import SCRIPT, Press
from tests.upstream.conftest import Site

NOBODY = "nobody"


@dataclass(frozen=True)
class User:
    """Somebody with a home and a path to programs, and nothing else; another account where tests
    run as root and a Python is there for others."""

    home: Path
    account: str | None
    python: str

    def run(self, *command: object, code: int | None = 0, **more: str) -> str:
        path = f"{Path(self.python).parent}:/usr/bin:/bin"
        done = subprocess.run(
            list(map(str, command)),
            cwd=self.home,
            env={"HOME": str(self.home), "PATH": path, "NO_COLOR": "1", **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            user=self.account,
            group=self.account and "nogroup",
            extra_groups=[] if self.account else None,
        )
        assert code is None or done.returncode == code, done.stdout
        return done.stdout

    def files(self) -> set[str]:
        found = (path.relative_to(self.home) for path in self.home.rglob("*"))
        # pip's own: its cache, and what its question for a Rust compiler leaves.
        return {str(path) for path in found if path.parts[0] not in (".cache", ".rustup")}


@pytest.fixture
def user() -> Iterator[User]:
    # Not below pytest's folder, which only its own account may enter.
    folder = Path(tempfile.mkdtemp(prefix="pq-"))
    try:
        folder.chmod(0o755)
        home = folder / "home"
        home.mkdir()
        ours = User(home, None, sys.executable)
        pythons = [getattr(sys, "_base_executable", ""), f"/usr/bin/{Path(PYTHON).name}"]
        others = [User(home, NOBODY, each) for each in pythons if each]
        able = [each for each in others if os.geteuid() == 0 and usable(each)]
        chosen = able[0] if able else ours
        if chosen.account:
            shutil.chown(home, chosen.account, "nogroup")
        yield chosen
    finally:
        shutil.rmtree(folder)


PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"


def usable(user: User) -> bool:
    try:
        return "fits" in user.run(user.python, "-c", "import ensurepip; print('fits')", code=None)
    except OSError:
        return False


@pytest.fixture
def press(tmp_path: Path) -> Press:
    return Press(tmp_path / "press")


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.stop()


@pytest.mark.slow
def test_somebody_with_nothing_gets_a_server_goes_back_and_leaves(
    user: User, press: Press, site: Site
) -> None:
    """Everything real but the server, which is the stand-in; packages come from a folder."""
    place = user.home.parent
    packages = place / "packages"
    ours = shelf.fill(packages, "patchq")
    helper = wheels.plain(packages, "helper", "1.0", {"helper.py": b"print('helps')\n"})
    lock = shelf.line("helper", "1.0", helper)
    port, master = press.ports
    cluster = CLUSTER.format(port=port, master=master, python="")
    (place / "here.toml").write_text(cluster.replace('python = ""\n', ""))
    for number in (1, 2):
        press.whole(number, ours, lock)
        base = press.serve(site, number)
    (user.home / "models/tiny").mkdir(parents=True)
    if user.account:
        shutil.chown(user.home / "models", user.account)
    before = user.files()
    script = place / "install.sh"
    script.write_bytes(press.installer())
    given = ("--packages", packages, "--cluster", place / "here.toml")
    said = user.run("sh", script, "--from", f"{base}/release-1", *given)
    assert "release 1, engine 1.0, signed by release@example.org" in said
    command = user.home / ".local/bin/patchq"
    assert f"the PATH does not lead to it: patchq is {command}" in said
    environment = user.home / "patchq/environments"
    (made,) = environment.iterdir()
    assert user.run(made / "bin/python", "-m", "helper") == "helps\n"
    assert f"serves at http://127.0.0.1:{port}" in user.run(command, "cluster", "start")
    try:
        assert "health 200" in user.run(command, "cluster", "status")
        said = user.run(command, "install", 2, "--packages", packages)
        assert "release 2" in said and f"from {base}/release-2" in said
        assert list(environment.iterdir()) == [made], "the same lock, the same environment"
        user.run(command, "cluster", "stop")
        assert "release 1 is the current one" in user.run(command, "rollback")
        user.run(command, "cluster", "start")
        assert "tiny-1" in user.run(command, "cluster", "logs")
    finally:
        said = user.run(command, "uninstall")
    assert "is removed" in said
    left = user.files() - before
    assert left <= {".local", ".local/bin", ".local/share"}, left
    assert eventually(lambda: not standins([user.home]))


def test_from_the_folder_that_it_lies_in(user: User, press: Press, tmp_path: Path) -> None:
    """It verifies before it runs anything: what is not what was signed is never started."""
    evil = wheels.plain(tmp_path / "evil", "patchq", "9.9", {"patchq/__init__.py": b"boom"})
    press.cut(1, more={evil.name: evil.read_bytes(), "install.sh": press.installer()})
    place = user.home.parent / "release"
    shutil.copytree(press.place(1), place)
    run = ("sh", place / "install.sh")
    for name, how, code in (
        (evil.name, "its patchq has other bytes", 5),
        ("release.toml", "its patchq has other bytes", 5),
        ("SHA256SUMS", "the signature of the release does not hold", 5),
        ("SHA256SUMS.sig", "the signature of the release does not hold", 5),
    ):
        kept = (place / name).read_bytes()
        (place / name).write_bytes(altered(kept))
        said = user.run(*run, code=code)
        assert how in said and "afresh" in said, name
        (place / name).write_bytes(kept)
        (place / name).rename(place / "away")
        said = user.run(*run, code=1)
        assert f"holds no release: {name} is missing" in said or "beside this file" in said
        (place / "away").rename(place / name)
    assert user.files() <= {".local", ".local/share", ".local/share/patchq"}, "nothing is left"


def altered(data: bytes) -> bytes:
    """One letter is another, in the middle: of a signature that is the key or the signature itself."""
    place = len(data) // 2
    while data[place : place + 1] == b"\n":
        place += 1
    other = b"B" if data[place : place + 1] == b"A" else b"A"
    return data[:place] + other + data[place + 1 :]


def test_a_stranger_has_signed_it(user: User, press: Press, tmp_path: Path) -> None:
    stranger = Press(tmp_path / "stranger")
    evil = wheels.plain(tmp_path / "evil", "patchq", "9.9", {"patchq/__init__.py": b"boom"})
    stranger.cut(1, more={evil.name: evil.read_bytes()})
    place = user.home.parent / "release"
    shutil.copytree(stranger.place(1), place)
    (place / "install.sh").write_bytes(press.installer())
    said = user.run("sh", place / "install.sh", code=5)
    assert "the signature of the release does not hold" in said


def test_half_of_it_does_nothing(user: User, press: Press, site: Site) -> None:
    """A download that broke off: whatever is there of it, nothing of it is run."""
    text = press.installer()
    script = user.home.parent / "install.sh"
    for share in range(1, 20):
        script.write_bytes(text[: len(text) * share // 20])
        user.run("sh", script, code=None)
        assert user.files() == set()
    script.write_bytes(text)
    said = user.run("sh", script, code=1)
    assert "there is no release beside this file" in said and "--from" in said
    assert "write it behind" in user.run("sh", script, "--from", code=2)
    said = user.run("sh", script, "--from", "/no/such/folder", code=1)
    assert "/no/such/folder is no folder" in said
    said = user.run("sh", script, "--from", f"{site.url}/r", code=6)
    assert "was not downloaded from" in said and user.files() <= {
        ".local",
        ".local/share",
        ".local/share/patchq",
    }


def test_what_it_needs_is_named(user: User, press: Press) -> None:
    tools = user.home.parent / "bin"
    tools.mkdir()
    for name in ("sh", "dirname", "cat", "env"):
        (tools / name).symlink_to(shutil.which(name) or "/bin/false")
    (user.home.parent / "install.sh").write_bytes(press.installer())
    given = ("sh", user.home.parent / "install.sh", "--from", user.home)
    assert "ssh-keygen is missing" in user.run(*given, code=1, PATH=str(tools))
    for name in ("ssh-keygen", "sha256sum", "awk", "sed"):
        (tools / name).symlink_to(shutil.which(name) or "/bin/false")
    assert "there is no Python 3.11 or newer here" in user.run(*given, code=1, PATH=str(tools))


def test_shellcheck() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([shellcheck, SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    lines = SCRIPT.read_text().splitlines()
    assert lines[-1] == 'main "$@"', "and nothing is run before the last line was read"
