"""A release installed by whoever runs it: verified, switched at once, gone back from, removed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patchq.release import manifest, sign
from patchq.upstream import download, web
from tests.build import wheels
from tests.support import shelf
from tests.support.fleet import fleet, standins
from tests.support.inside import Said, call
from tests.support.press import Press
from tests.upstream.conftest import Site


@pytest.fixture
def press(tmp_path: Path) -> Press:
    return Press(tmp_path / "press")


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.stop()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_PAUSE", 0.0)
    monkeypatch.setattr(web, "_PAUSE", 0.0)
    monkeypatch.setattr("patchq.cluster.start.POLL", 0.1)


@pytest.fixture
def home(sealed: Path, press: Press) -> Path:
    """The user's home, with the model that the profile serves."""
    (sealed / "models/tiny").mkdir(parents=True)
    press.cluster()
    return sealed


def install(press: Press, what: object, *more: str, code: int = 0) -> Said:
    given = ("--cluster", str(press.folder.parent / "here.toml"), "--signers", str(press.signers))
    return call(Path.cwd(), "install", str(what), *given, *more, code=code)


def current(home: Path) -> str | None:
    """The wheel of the release that starts next on this machine."""
    link = home / "patchq/current"
    if not link.exists():
        return None
    (wheel,) = link.resolve().glob("vllm-*.dist-info")
    return wheel.name.removesuffix(".dist-info")


DOCS = Path(__file__).resolve().parents[2] / "docs/json.md"
FOREIGN = ("cwd", "patchq-cache", ".rustup")
"""What tests put there, and what pip's question for a Rust compiler leaves."""


def everything(home: Path) -> set[str]:
    """All files below the home, but for FOREIGN."""
    return {
        str(path.relative_to(home))
        for path in home.rglob("*")
        if not path.is_dir() and path.relative_to(home).parts[0] not in FOREIGN
    }


def test_from_a_folder_to_a_server_and_back_to_nothing(press: Press, home: Path) -> None:
    before = everything(home)
    press.cut(1)
    press.cut(2)
    said = install(press, 1, "--from", str(press.folder))
    assert "release 1, engine 1.0, signed by release@example.org" in said.out
    assert current(home) == "vllm-1.0"
    started = call(Path.cwd(), "cluster", "start").out
    assert f"tiny serves at http://127.0.0.1:{press.ports[0]}" in started
    try:
        said = call(Path.cwd(), "install", "2", "--json")
        assert [said.json[key] for key in ("release", "cluster", "target")] == [2, "here", "cpu"]
        promised(said.json)
        assert current(home) == "vllm-2.0"
        said = call(Path.cwd(), "rollback")
        assert "release 1 is the current one, 2 the one before" in said.out
        assert "here still run what was started before" in said.out
        assert current(home) == "vllm-1.0"
        back = call(Path.cwd(), "rollback", "--json").json
        assert back["to"] == 2
        promised(back)
        said = call(Path.cwd(), "uninstall", "--dry-run")
        assert "would be removed" in " ".join(said.out.split()) and current(home) == "vllm-2.0"
        promised(call(Path.cwd(), "uninstall", "--dry-run", "--json").json)
    finally:
        said = call(Path.cwd(), "uninstall")
    assert "is removed" in " ".join(said.out.split())
    assert everything(home) == before, "it leaves nothing"
    assert (home / "models/tiny").is_dir(), "a model that was there stays"
    said = call(Path.cwd(), "cluster", "status", code=1)
    assert "not inside a git repository" in said.err


def promised(value: dict[str, Any]) -> None:
    """docs/json.md has every field, those of the entries of lists included."""
    rows = [line for line in DOCS.read_text().splitlines() if f"| {value['schema']} |" in line]
    words = set(re.findall(r"\w+", rows[0]))
    entries = [each for found in value.values() if isinstance(found, list) for each in found]
    for table in (value, *(each for each in entries if isinstance(each, dict))):
        assert set(table) - {"schema"} <= words


def test_over_http_in_parts_with_a_line_that_breaks(press: Press, home: Path, site: Site) -> None:
    press.cut(1, more={"source.tar.gz": os.urandom(400_000)}, part=20_000)
    base = press.serve(site, 1)
    broken = site.replies["/releases/release-1/source.tar.gz.part-07"]
    broken.cuts = [900, 300]
    site.replies["/releases/release-1/SHA256SUMS"].failures = [503]
    install(press, 1, "--from", base)
    assert current(home) == "vllm-1.0"
    ranges = [each.headers.get("Range") for each in site.log if each.path.endswith("part-07")]
    assert ranges == [None, "bytes=900-", "bytes=1200-"]
    assert not (home / ".local/share/patchq/downloads").exists()
    press.cut(2)
    press.serve(site, 2)
    assert call(Path.cwd(), "install", "2", "--json").json["source"] == f"{base}/release-2"


def test_what_is_there_is_not_downloaded_again(press: Press, home: Path, site: Site) -> None:
    """The last file is missing on the mirror at first; the second run gets that one alone."""
    press.cut(1)
    base = press.serve(site, 1)
    wheel = f"/releases/release-1/{press.read(1).targets[0].wheels[0]}"
    kept = site.replies.pop(wheel)
    said = install(press, 1, "--from", base, code=1)
    assert "vllm-1.0-py3-none-any.whl cannot be downloaded" in said.err and "404" in said.err
    assert current(home) is None
    site.replies[wheel] = kept
    asked = site.asked("/releases/release-1/profile.toml")
    install(press, 1, "--from", base)
    assert site.asked("/releases/release-1/profile.toml") == asked == 1


@pytest.mark.parametrize(
    "name",
    ["vllm-1.0-py3-none-any.whl", "profile.toml", "requirements.cpu.lock", "release.toml"],
)
def test_a_tampered_file_is_refused(press: Press, home: Path, name: str) -> None:
    path = press.cut(1) / name
    path.write_bytes(path.read_bytes() + b" ")
    said = install(press, press.place(1), code=5 if name == "release.toml" else 1)
    assert f"{name} " in said.err and "do not use it" in said.err
    assert not (home / "patchq").exists()


def test_sums_that_nobody_signed(press: Press, home: Path) -> None:
    path = press.cut(1) / manifest.SUMS
    path.write_bytes(path.read_bytes().replace(b"profile.toml", b"profole.toml"))
    said = install(press, press.place(1), code=5)
    assert "its signature does not hold: it is not over these sums" in said.err
    assert not (home / "patchq").exists()


def test_a_key_that_is_not_known(press: Press, home: Path, tmp_path: Path) -> None:
    press.cut(1)
    press.signers.write_text(Press(tmp_path / "another").signers.read_text())
    said = install(press, press.place(1), code=5)
    assert "by a key that allowed_signers does not name" in said.err
    said = call(Path.cwd(), "install", str(press.place(1)), code=5)
    assert "nobody's key is known here" in said.err and "install.sh" in said.err
    assert not (home / "patchq").exists()


def test_a_release_that_was_withdrawn(press: Press, home: Path, site: Site) -> None:
    press.cut(1)
    press.cut(2)
    press.withdraw(2, "it spins", 1)
    press.serve(site, 1)
    base = press.serve(site, 2)
    for where in (str(press.folder), base):
        said = install(press, 2, "--from", where, code=1)
        assert "release 2 was withdrawn: it spins" in said.err
        assert "install release 1, the last good one" in said.err
    (press.place(2) / "WITHDRAWN.sig").write_bytes(b"?")
    assert "does not hold" in install(press, press.place(2), code=5).err
    assert current(home) is None


def test_a_machine_that_it_is_not_for(press: Press, home: Path) -> None:
    """Another processor, no driver, another kind of machine: before anything is downloaded."""
    press.cut(1)
    (wheel,) = press.read(1).targets[0].wheels
    cluster = press.folder.parent / "here.toml"
    plain = cluster.read_text()
    cluster.write_text(plain.replace('"cpu"', '"spark"'))
    said = install(press, press.place(1), code=1)
    assert "release 1 is not built for spark, which here takes" in said.err
    for number, target, why in (
        (2, "spark", "here is x86_64, the target spark is for aarch64"),
        (3, "cuda-x86_64", "here has no NVIDIA driver loaded"),
    ):
        own = replace(press.read(1).targets[0], name=target)
        press.cut(number, target=own, more={wheel: b"built for it"})
        cluster.write_text(plain.replace('"cpu"', f'"{target}"'))
        assert why in install(press, press.place(number), code=5).err
    for path in (cluster, home / ".local/share/patchq/ci/clusters/here.toml"):
        path.unlink(missing_ok=True)
    given = ("--signers", str(press.signers))
    said = call(Path.cwd(), "install", str(press.place(2)), *given, code=1)
    assert "release 2 is not built for this machine (x86_64)" in said.err
    assert "it is for spark (aarch64)" in said.err and "--cluster FILE" in said.err
    assert not (home / "patchq").exists()
    assert not (home / ".local/share/patchq/downloads").exists()


def test_a_newer_manifest(press: Press, home: Path) -> None:
    press.cut(1)
    made = press.read(1)
    data = manifest.write(made).replace(b"patchq.release/1", b"patchq.release/2")
    press.seal(made, data)
    said = install(press, press.place(1), code=1)
    assert "is of a newer patchq" in said.err
    assert "install the patchq that comes with that release" in said.err
    assert not (home / "patchq").exists()


def test_a_disk_that_is_full(
    press: Press, home: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    press.cut(1)
    base = press.serve(site, 1)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(download, "_put", refuse)
        said = install(press, 1, "--from", base, code=1)
    assert "the disk is full" in said.err and "PATCHQ_HOME" in said.err
    assert not (home / "patchq").exists()
    install(press, 1, "--from", base)
    assert current(home) == "vllm-1.0"


def test_where_nothing_is(press: Press, home: Path, site: Site) -> None:
    press.cut(1)
    said = install(press, 7, code=2)
    assert "where is release 7?" in said.err and "--from" in said.err
    assert "holds no release 7" in install(press, 7, "--from", str(press.folder), code=1).err
    assert "has no release 7" in install(press, 7, "--from", press.serve(site, 1), code=1).err
    said = install(press, 7, "--from", press.serve(site, 1), "--offline", code=1)
    assert "--offline forbids" in said.err
    site.stop()
    said = install(press, 1, "--from", site.url, code=6)
    assert "it cannot be reached" in said.err
    said = install(press, press.folder / "release-1", "--from", site.url, code=2)
    assert "says itself where it is" in said.err


def test_two_machines(press: Press, tmp_path: Path) -> None:
    """Both, or none: with the second out of reach nothing changes on the first."""
    with fleet(tmp_path / "fleet") as nodes:
        given = ("--cluster", str(press.fleet(nodes)))
        given += ("--signers", str(press.signers), "--from", str(press.folder))
        for home in nodes.homes:
            (home / "models/tiny").mkdir(exist_ok=True)
        for number in (1, 2):
            press.cut(number, profile=TWO)
        call(Path.cwd(), "install", "1", *given)
        nodes.servers[1].cut()
        nodes.servers[1].__exit__()
        try:
            said = call(Path.cwd(), "install", "2", *given, code=6)
        finally:
            nodes.servers[1].__enter__()
        assert "node-1 is not reached" in said.err
        assert [current(home) for home in nodes.homes] == ["vllm-1.0"] * 2
        call(Path.cwd(), "install", "2", *given)
        call(Path.cwd(), "cluster", "start")
        assert call(Path.cwd(), "cluster", "status").out.count("runs since") == 2
        call(Path.cwd(), "rollback")
        assert [current(home) for home in nodes.homes] == ["vllm-1.0"] * 2
        (nodes.homes[1] / "patchq/mine.txt").write_text("the user's own")
        nodes.servers[1].cut()
        nodes.servers[1].__exit__()
        try:
            said = call(Path.cwd(), "uninstall", code=6)
        finally:
            nodes.servers[1].__enter__()
        assert "node-1 is not reached" in said.out and "run it again" in said.out
        assert not (nodes.homes[0] / "patchq").exists()
        said = call(Path.cwd(), "uninstall")
        assert "not patchq's, and left: mine.txt" in said.out
        assert os.listdir(nodes.homes[1] / "patchq") == ["mine.txt"]
        assert not standins(nodes.homes)
        assert "nothing is installed here" in call(Path.cwd(), "uninstall", code=1).err


@pytest.mark.slow
def test_a_machine_without_a_network_gets_the_packages_from_here(
    press: Press, tmp_path: Path
) -> None:
    """It makes its environment from a folder that is copied to it, and gone afterwards."""
    packages = tmp_path / "packages"
    helper = wheels.plain(packages, "helper", "1.0", {"helper.py": b"print('helps')\n"})
    press.cut(1, profile=TWO, lock=shelf.line("helper", "1.0", helper))
    with fleet(tmp_path / "fleet") as nodes:
        file = press.fleet(nodes)
        nodes.cluster(python=None)
        text = file.read_text()
        file.write_text(text[: text.index("[[node]]", text.index("[[node]]") + 1)])
        given = ("--cluster", str(file), "--signers", str(press.signers))
        given += ("--packages", str(packages))
        (nodes.homes[0] / "models/tiny").mkdir(exist_ok=True)
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        nodes.servers[0].__exit__()
        nodes.servers[0].serve_config("", {"HOME": str(nodes.homes[0]), "PATH": path})
        nodes.servers[0].__enter__()
        call(Path.cwd(), "install", str(press.place(1)), *given)
        folder = nodes.homes[0] / "patchq"
        (made,) = (folder / "environments").iterdir()
        done = subprocess.run([made / "bin/python", "-m", "helper"], capture_output=True)
        assert done.stdout == b"helps\n" and not (folder / "packages").exists()


TWO = """\
model = "tiny"
served_name = "{name}"
tensor_parallel = 2
[limits]
ready = 60
"""


def test_a_half_removed_install_is_made_whole(press: Press, home: Path) -> None:
    press.cut(1)
    press.cut(2)
    install(press, 1, "--from", str(press.folder))
    release = (home / "patchq/current").resolve()
    (release / "release.json").unlink()
    install(press, 1, "--from", str(press.folder))
    assert current(home) == "vllm-1.0" and (release / "release.json").exists()
    said = call(Path.cwd(), "rollback", code=1)
    assert "here has no release before 1" in said.err
    for name in ("releases", "artifacts", "previous"):
        path = home / "patchq" / name
        os.rename(path, home / "cwd" / name) if path.exists() else None
    said = call(Path.cwd(), "cluster", "start", code=1)
    assert "here has no release" in said.err
    install(press, 2, "--from", str(press.folder))
    assert current(home) == "vllm-2.0"
    call(Path.cwd(), "uninstall")
    assert not (home / "patchq").exists()


def test_it_says_beforehand_what_it_would_do(press: Press, home: Path) -> None:
    press.cut(1)
    before = everything(home)
    said = install(press, press.place(1), "--dry-run")
    assert "would be installed on here; nothing was changed" in said.out
    assert everything(home) - before <= {".local/share/patchq/lock"}


def test_the_key_is_for_releases(press: Press, home: Path) -> None:
    place = press.cut(1)
    (place / manifest.SIGNATURE).unlink()
    text = press.signers.read_text().replace(sign.NAMESPACE, "git")
    sign.sign(place / manifest.SUMS, str(press.key))
    press.signers.write_text(text)
    assert "signature does not hold" in install(press, place, code=5).err
