"""What is installed on this node. In the folder that is patchq's own there:

artifacts/NAME.whl          wheels, as they were built
environments/KEY/           an environment made from locked requirements; `made` is written last
releases/DIGEST/            wheels installed in a folder of their own, and release.json
current, previous           links to the release that starts next, and to the one before
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from typing import Any

RECORD = "release.json"
STAMP = "made"


def home(asked: dict[str, Any]) -> str:
    """The folder, absolute; it is made."""
    os.makedirs(asked["folder"], exist_ok=True)
    return str(asked["folder"])


def digests(asked: dict[str, Any]) -> dict[str, Any]:
    """The sha256 of each of `paths`, None where there is no such file."""
    return {path: sha256(path) for path in asked["paths"]}


def sha256(path: str) -> str | None:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for part in iter(lambda: file.read(1 << 20), b""):
                digest.update(part)
    except FileNotFoundError:
        return None
    return digest.hexdigest()


def python(asked: dict[str, Any]) -> dict[str, Any]:
    """Path and version of the interpreter `python`: a name, or a path that may begin at home."""
    name = asked["python"]
    path = os.path.join(os.path.expanduser("~"), name) if "/" in name else shutil.which(name)
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run(
            [str(path), "-I", "-c", code], check=False, capture_output=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return {"path": path, "version": None}
    return {"path": path, "version": done.stdout.decode("ascii", "replace").strip() or None}


def environment(asked: dict[str, Any]) -> bool:
    """Make the environment `key` from the lock `requirements`; whether it was not there.

    `packages`: the folder that holds them, None: they come from where pip gets them.

    Writes what pip says, and ends without an answer where it fails. What is half made is removed.
    """
    place = os.path.join(asked["folder"], "environments", asked["key"])
    stamp = os.path.join(place, STAMP)
    if os.path.exists(stamp):
        return False
    shutil.rmtree(place, ignore_errors=True)
    try:
        os.makedirs(place)
        run([asked["python"], "-m", "venv", place])
        pip = [os.path.join(place, "bin", "python"), "-m", "pip", "install", "--no-deps"]
        pip += ["--require-hashes", "--only-binary", ":all:", "--no-input"]
        if asked["packages"] is not None:
            pip += ["--no-index", "--find-links", asked["packages"]]
        run([*pip, "--disable-pip-version-check", "--requirement", asked["requirements"]])
        with open(stamp, "w", encoding="utf-8"):
            return True
    finally:
        if not os.path.exists(stamp):
            shutil.rmtree(place, ignore_errors=True)


def run(command: list[str]) -> None:
    """Its words go where ours go. Ends us where it fails."""
    code = subprocess.run(command, check=False).returncode
    if code:
        sys.exit(code)


def install(asked: dict[str, Any]) -> dict[str, Any]:
    """Install `wheels` by `python` into releases/DIGEST, whole or not at all.

    {"installed": whether it was not there}, or {"error": what pip said}.
    """
    place = release(asked)
    if os.path.exists(os.path.join(place, RECORD)):
        return {"installed": False}
    beside = f"{place}.part"
    shutil.rmtree(place, ignore_errors=True)
    shutil.rmtree(beside, ignore_errors=True)
    # Compiled when it runs: now the code would note the folder that is renamed below.
    pip = [asked["python"], "-m", "pip", "install", "--no-deps", "--no-index", "--no-compile"]
    pip += ["--disable-pip-version-check", "--no-input", "--quiet", "--target", beside]
    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        done = subprocess.run(
            [*pip, *asked["wheels"]],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            return {"error": done.stdout[-2000:] or f"it ended with {done.returncode}"}
        with open(os.path.join(beside, RECORD), "w", encoding="utf-8") as file:
            json.dump(asked["record"], file)
        os.rename(beside, place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return {"installed": True}


def switch(asked: dict[str, Any]) -> dict[str, Any]:
    """Make releases/DIGEST the current one; what was current is the previous one. Prunes."""
    folder, digest = asked["folder"], asked["digest"]
    was = linked(folder, "current")
    if was != digest:
        if was is not None:
            link(folder, "previous", was)
        link(folder, "current", digest)
        for name in names(folder, "run"):
            if name.endswith(".starts"):
                os.unlink(os.path.join(folder, "run", name))
    prune(folder)
    return {"was": was if was != digest else linked(folder, "previous")}


def link(folder: str, name: str, digest: str) -> None:
    beside = os.path.join(folder, f".{name}")
    if os.path.lexists(beside):
        os.unlink(beside)
    os.symlink(os.path.join("releases", digest), beside)
    os.replace(beside, os.path.join(folder, name))


def linked(folder: str, name: str) -> str | None:
    try:
        return os.path.basename(os.readlink(os.path.join(folder, name)))
    except OSError:
        return None


def installed(asked: dict[str, Any]) -> dict[str, Any]:
    """The records of the current and the previous release, None where there is none."""
    folder = asked["folder"]
    return {name: record(folder, linked(folder, name)) for name in ("current", "previous")}


def record(folder: str, digest: str | None) -> dict[str, Any] | None:
    if digest is None:
        return None
    try:
        with open(os.path.join(folder, "releases", digest, RECORD), encoding="utf-8") as file:
            return {**json.load(file), "digest": digest}
    except (OSError, ValueError):
        return None  # somebody's hand was in it: it has to be deployed anew


def running(folder: str) -> list[str]:
    """The releases that ranks were started from."""
    found = []
    for name in names(folder, "run"):
        if name.endswith(".json"):
            with open(os.path.join(folder, "run", name), encoding="utf-8") as file:
                found.append(json.load(file)["about"]["release"])
    return found


def prune(folder: str) -> None:
    """Remove releases but for the current, the previous and running ones, and what was theirs."""
    links = [linked(folder, name) for name in ("current", "previous")]
    kept = {each for each in (*links, *running(folder)) if each}
    for name in set(names(folder, "releases")) - kept:
        shutil.rmtree(os.path.join(folder, "releases", name), ignore_errors=True)
    records = [each for digest in kept if (each := record(folder, digest))]
    wheels = {wheel["name"] for each in records for wheel in each["wheels"]}
    for name in names(folder, "artifacts"):
        if name.endswith(".whl") and name not in wheels:
            os.unlink(os.path.join(folder, "artifacts", name))
    environments = {each["environment"] for each in records}
    for name in set(names(folder, "environments")) - environments:
        shutil.rmtree(os.path.join(folder, "environments", name), ignore_errors=True)
    for name in names(folder, "requirements"):
        if name.rpartition(".")[0] not in environments:
            os.unlink(os.path.join(folder, "requirements", name))


def release(asked: dict[str, Any]) -> str:
    return os.path.join(asked["folder"], "releases", asked["digest"])


def names(*parts: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(*parts)))
    except OSError:
        return []
