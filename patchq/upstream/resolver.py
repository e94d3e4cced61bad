"""Which release of everything a set of requirements comes to, by uv, asked as pip is configured.

uv resolves for a machine and a Python that are not those here, and builds nothing on the way. It
does not read pip's configuration, so it is told what pip would use, by its environment: addresses
may hold credentials, and command lines can be read by anybody.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from patchq.errors import PatchqError
from patchq.progress import SILENT, Progress
from patchq.upstream import pipconf
from patchq.upstream.components import Hardware
from patchq.upstream.http import redact
from patchq.upstream.pipconf import IndexSettings

NOTHING: Mapping[tuple[str, str], Sequence[str]] = MappingProxyType({})
_MOST_TOLD = 2000
_PASSED = ("PATH", "HOME", "TMPDIR", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@dataclass(frozen=True)
class Resolved:
    """One package: its normal name, its version, the sha256 of its wheels that fit, sorted."""

    name: str
    version: str
    hashes: tuple[str, ...]


def resolve(
    requirements: Sequence[str],
    hardware: Hardware,
    cache: Path,
    *,
    instead: Mapping[tuple[str, str], Sequence[str]] = NOTHING,
    keep: Sequence[str] = (),
    progress: Progress = SILENT,
) -> tuple[Resolved, ...]:
    """Everything that `requirements` come to, by name; each with the hashes of its wheels.

    `instead`: what a release (name, version) asks for, where that is not to be read from its own
    metadata; `keep` (NAME==VERSION) are taken where they still fit. Raises PatchqError where
    nothing fits, the index is not reached, or uv is not there.
    """
    settings = pipconf.resolved(pipconf.read_settings())
    platform = f"{hardware.machine}-manylinux_{hardware.glibc.replace('.', '_')}"
    with tempfile.TemporaryDirectory(prefix="patchq-") as folder:
        place = Path(folder)
        (place / "uv.toml").write_text(_told(instead), encoding="utf-8")
        (place / "in.txt").write_text(_lines(requirements), encoding="utf-8")
        (place / "out.txt").write_text(_lines(keep), encoding="utf-8")
        common = [_program(), "pip", "compile", "--quiet", "--config-file", "uv.toml"]
        common += ["--no-build", "--no-header", "--no-annotate", "--no-python-downloads"]
        common += ["--python-version", hardware.python, "--python-platform", platform]
        # As pip: the best release of all indexes, not the first index that has the package.
        common += ["--index-strategy", "unsafe-best-match", "--cache-dir", str(cache / "uv")]
        progress.step(f"resolving for {platform}, Python {hardware.python}")
        choose = [*common, "--output-file", "out.txt", "in.txt"]
        try:
            _run(choose, place, settings)
        except PatchqError:
            if not keep:
                raise
            # With several indexes uv looks for a version that it knows on the first of them only.
            (place / "out.txt").unlink()
            _run(choose, place, settings)
        progress.step("asking for the hashes")
        form = ["--no-deps", "--format", "pylock.toml", "--output-file", "pylock.toml"]
        _run([*common, *form, "out.txt"], place, settings)
        return _read((place / "pylock.toml").read_text(encoding="utf-8"))


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _told(instead: Mapping[tuple[str, str], Sequence[str]]) -> str:
    import tomlkit

    return tomlkit.dumps(
        {
            "dependency-metadata": [
                {"name": name, "version": version, "requires-dist": list(requires)}
                for (name, version), requires in sorted(instead.items())
            ]
        }
    )


def _program() -> str:
    beside = Path(sysconfig.get_path("scripts")) / "uv"
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if not found:
        raise PatchqError(
            "the resolver uv is not here",
            "install it beside patchq with `pip install 'patchq[lock]'`",
        )
    return found


def _run(command: Sequence[str], folder: Path, settings: IndexSettings) -> None:
    env = _environment(settings, os.environ)
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        told = done.stderr.decode("utf-8", "replace")
        for url in (*settings.urls, *settings.find_links):
            told = told.replace(url, redact(url))
        raise PatchqError(
            f"the requirements do not resolve: {_plain(told)[:_MOST_TOLD]}",
            "`patchq deps check` says which pins contradict each other; where the index was not"
            " reached, check the network and pip's configuration (`pip config debug`)",
        )


def _plain(told: str) -> str:
    told = re.sub(r"\x1b\[[0-9;]*m", "", told)
    return " ".join(told.split()).removeprefix("error: ")


def _environment(settings: IndexSettings, environ: Mapping[str, str]) -> dict[str, str]:
    env = {name: environ[name] for name in _PASSED if name in environ}
    for name in _PROXIES:
        for spelled in (name, name.lower()):
            if spelled in environ:
                env[spelled] = environ[spelled]
    first, *more = settings.urls or ("",)
    if first:
        env["UV_DEFAULT_INDEX"] = first
        env["UV_INDEX"] = " ".join(more)
    else:
        env["UV_NO_INDEX"] = "1"
    env["UV_FIND_LINKS"] = ",".join(settings.find_links)
    env["UV_HTTP_TIMEOUT"] = str(max(1, round(settings.timeout)))
    if settings.ca:
        env["SSL_CERT_FILE"] = settings.ca
    if settings.client_cert:
        env["SSL_CLIENT_CERT"] = settings.client_cert
    if settings.proxy:
        env |= {"HTTP_PROXY": settings.proxy, "HTTPS_PROXY": settings.proxy}
    if settings.trusted_hosts:
        env["UV_INSECURE_HOST"] = " ".join(sorted(settings.trusted_hosts))
    return {name: value for name, value in env.items() if value}


def _read(text: str) -> tuple[Resolved, ...]:
    """The packages of a pylock.toml (PEP 751). Raises PatchqError for a form that is not known."""
    try:
        packages: list[dict[str, Any]] = tomllib.loads(text).get("packages", [])
        found = [
            Resolved(
                str(each["name"]),
                str(each["version"]),
                tuple(sorted({str(wheel["hashes"]["sha256"]) for wheel in each["wheels"]})),
            )
            for each in packages
        ]
    except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as error:
        raise PatchqError(
            f"the resolver's answer is not understood: {type(error).__name__} {error}",
            "an index without sha256 cannot be locked; update uv, or use another index",
        ) from error
    return tuple(sorted(found, key=lambda each: each.name))
