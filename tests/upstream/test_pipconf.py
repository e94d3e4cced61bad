"""pip's configuration is read as pip reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.upstream import pipconf
from patchq.upstream.pipconf import PIP_DEFAULT, IndexSettings, read_settings

ONE, TWO, THREE = (f"https://{name}.example.com/simple" for name in ("one", "two", "three"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


class Machine:
    """Places for all of pip's files."""

    def __init__(self, root: Path) -> None:
        self.home, self.etc, self.prefix = root / "home", root / "etc", root / "prefix"
        self.environ = {"HOME": str(self.home)}

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, **environ: str) -> IndexSettings:
        return read_settings({**self.environ, **environ}, prefix=self.prefix, etc=self.etc)


def test_nothing_configured_means_pips_default(machine: Machine) -> None:
    assert machine.read() == IndexSettings(urls=(PIP_DEFAULT,))


def test_later_files_win(machine: Machine) -> None:
    places = [
        machine.etc / "xdg/pip/pip.conf",
        machine.etc / "pip.conf",
        machine.home / ".pip/pip.conf",
        machine.home / ".config/pip/pip.conf",
        machine.prefix / "pip.conf",
    ]
    for number, place in enumerate(places):
        machine.write(place, f"[global]\nindex-url = https://host{number}.example.com/\n")
        assert machine.read().urls == (f"https://host{number}.example.com",)
    own = machine.write(machine.home / "own.conf", f"[global]\nindex_url = {ONE}\n")
    assert machine.read(PIP_CONFIG_FILE=str(own)).urls == (ONE,)
    assert machine.read(PIP_CONFIG_FILE=str(own), PIP_INDEX_URL=TWO).urls == (TWO,)


def test_a_named_file_replaces_the_users_and_devnull_all(machine: Machine) -> None:
    machine.write(machine.home / ".config/pip/pip.conf", "[global]\ntimeout = 7\n")
    own = machine.write(machine.home / "own.conf", f"[global]\nindex-url = {ONE}\n")
    assert machine.read(PIP_CONFIG_FILE=str(own)) == IndexSettings(urls=(ONE,))
    assert machine.read(PIP_CONFIG_FILE=os.devnull) == IndexSettings(urls=(PIP_DEFAULT,))
    assert machine.read(PIP_CONFIG_FILE=str(machine.home / "none")).timeout == 7


def test_sections_and_the_environment(machine: Machine) -> None:
    machine.write(
        machine.etc / "pip.conf",
        f"[download]\nindex-url = {TWO}\n[global]\nindex-url = {ONE}\ndefault-timeout = 9\n"
        f"[list]\nindex-url = {THREE}\n",
    )
    assert machine.read().urls == (TWO,)
    assert machine.read(PIP_INDEX_URL="").urls == (TWO,), "an empty variable is as if not set"
    assert machine.read(PIP_PYPI_URL=THREE).urls == (THREE,)
    assert machine.read().timeout == 9
    assert machine.read(PIP_TIMEOUT="3.5").timeout == 3.5


def test_every_setting(machine: Machine) -> None:
    machine.write(
        machine.home / ".config/pip/pip.conf",
        f"[global]\nextra-index-url =\n    {TWO}/\n    {THREE}\n    {TWO}\ncert = ~/ca.pem\n"
        "trusted-host = One.example.com two.example.com:8443\nfind-links = /wheels /more\n"
        "proxy = http://user:word@proxy.example.com:3128\nretries = 2\nclient-cert = /c.pem\n"
        "interpolated = %(nothing)s\n",
    )
    found = machine.read()
    assert found == IndexSettings(
        urls=(PIP_DEFAULT, TWO, THREE),
        ca=str(machine.home / "ca.pem"),
        proxy="http://user:word@proxy.example.com:3128",
        trusted_hosts=frozenset({"one.example.com", "two.example.com:8443"}),
        find_links=("/wheels", "/more"),
        client_cert="/c.pem",
        retries=2,
    )
    assert "word" not in repr(found)
    assert machine.read(PIP_EXTRA_INDEX_URL=ONE).urls == (PIP_DEFAULT, ONE)
    assert machine.read(PIP_NO_INDEX="1").urls == ()
    assert machine.read(PIP_NO_INDEX="off").urls == (PIP_DEFAULT, TWO, THREE)


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"PIP_NO_INDEX": "perhaps"}, "no-index is 'perhaps'"),
        ({"PIP_TIMEOUT": "soon"}, "timeout is 'soon'"),
        ({"PIP_RETRIES": "-1"}, "retries is '-1'"),
        ({"PIP_TIMEOUT": "nan"}, "timeout is 'nan'"),
    ],
)
def test_values_that_are_none(machine: Machine, environ: dict[str, str], says: str) -> None:
    with pytest.raises(PatchqError, match=says):
        machine.read(**environ)


def test_a_malformed_file_is_named_and_not_quoted(machine: Machine) -> None:
    path = machine.write(machine.etc / "pip.conf", "[global]\nthe secret itself\n")
    with pytest.raises(PatchqError, match=f"{path} is malformed") as caught:
        machine.read()
    assert "secret" not in caught.value.message + caught.value.hint
    machine.write(path, "index-url = https://me:secret@host.example.com\n")
    with pytest.raises(PatchqError, match="malformed at line 1") as caught:
        machine.read()
    assert "secret" not in caught.value.message + caught.value.hint


def test_a_file_that_cannot_be_read(machine: Machine) -> None:
    path = machine.etc / "pip.conf"
    path.parent.mkdir()
    path.symlink_to(path)
    with pytest.raises(PatchqError, match=f"{path} cannot be read"):
        machine.read()


ORACLE = """
import json, sys
from pip._internal.commands import create_command
from pip._internal.utils import appdirs
options, _ = create_command("download").parse_args(["x"])
links = options.find_links
print(json.dumps([options.index_url, options.extra_index_urls, options.no_index, links,
                  options.cert, options.timeout, options.trusted_hosts, options.retries]))
"""


def test_pip_agrees(machine: Machine) -> None:
    """pip itself, where there is one, reads the same from files of every kind and variables."""
    machine.write(
        machine.home / ".pip/pip.conf", f"[global]\nindex-url = {ONE}\ntimeout = 4\nretries = 1\n"
    )
    machine.write(
        machine.home / ".config/pip/pip.conf",
        f"[global]\nextra-index-url = {TWO} {THREE}\ntimeout =\n[download]\ntrusted_host = a b\n",
    )
    machine.write(machine.home / "xdg/pip/pip.conf", "[global]\nno-index = no\nfind-links = /w\n")
    environ = {
        **machine.environ,
        "XDG_CONFIG_DIRS": str(machine.home / "xdg"),
        "PIP_CERT": "/ca.pem",
        "PIP_INDEX_URL": "",
        "PIP_RETRIES": "3",
    }
    done = subprocess.run(
        [sys.executable, "-c", ORACLE], env=environ, capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip("no pip beside this Python")
    ours = read_settings(environ)
    url, extra, no_index, links, cert, timeout, trusted, retries = json.loads(done.stdout)
    assert ours.urls == (() if no_index else (url, *extra))
    assert list(ours.find_links) == links
    assert (ours.ca, ours.timeout, ours.retries) == (cert, timeout, retries)
    assert sorted(ours.trusted_hosts) == sorted(trusted)


def test_the_default_is_asked_of_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "python3"
    asked.write_text("#!/bin/sh\necho https://default.example.com/simple/\n")
    asked.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    pipconf.default_index.cache_clear()
    try:
        found = pipconf.resolved(IndexSettings(urls=(PIP_DEFAULT, ONE)))
        assert found.urls == ("https://default.example.com/simple", ONE)
        pipconf.default_index.cache_clear()
        asked.write_text("#!/bin/sh\nexit 1\n")
        with pytest.raises(PatchqError, match="no package index is configured"):
            pipconf.default_index()
    finally:
        pipconf.default_index.cache_clear()
