"""Stands for patchq in a night: it does what `orders.json` beside its log says of each command.

`standin.py FOLDER ARGS...`: a line for each call goes to FOLDER/calls. Without an order a command
succeeds at once, and a release that is synced onto has a runner of its own. Where there is a file
FOLDER/real, sync and lock are the real ones.

An order of a command ("cluster start" has two words) may say: exit, json (what it prints),
says (on stderr), sleep (seconds), kills ("before" or "after": the night, by SIGKILL), deaf (SIGINT
is ignored), writes (files, with their texts), once (the order is forgotten then).
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

REAL = ("sync", "lock")
GOOD: dict[str, dict[str, Any]] = {
    "build": {"schema": "patchq.build-run/1", "file": "/x/runner-1-py3-none-any.whl"},
    "cluster deploy": {"schema": "patchq.cluster-deploy/1", "cluster": "pair", "nodes": [{}, {}]},
    "cluster start": {"schema": "patchq.cluster-start/1", "profile": "tiny", "seconds": 2.5},
    "cluster stop": {"schema": "patchq.cluster-stop/1", "cluster": "pair", "nodes": []},
    "smoke": {"schema": "patchq.smoke/1", "probes": [{"name": "cache", "state": "passed"}]},
    "bench": {"schema": "patchq.bench/1", "ok": True},
    "compare": {"schema": "patchq.compare/1", "ok": True, "verdict": "same"},
    "gate": {"schema": "patchq.gate/1", "ok": True, "findings": []},
    "bisect": {"schema": "patchq.bisect/1", "culprit": None},
}


def main(folder: Path, args: list[str]) -> None:
    words = 2 if args[0] in ("cluster", "release") else 1
    name = " ".join(args[:words])
    with (folder / "calls").open("a") as log:
        log.write(json.dumps({"name": name, "args": args, "cwd": os.getcwd()}) + "\n")
    (folder / f"{name}.environment").write_text(json.dumps(dict(os.environ)))
    orders = folder / "orders.json"
    given = json.loads(orders.read_text()) if orders.exists() else {}
    order = given.get(name, {})
    if order.get("once"):
        del given[name]
        orders.write_text(json.dumps(given))
    if order.get("deaf"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if "says" in order:
        sys.stderr.write(order["says"] + "\n")
        sys.stderr.flush()
    try:
        if order.get("kills") == "before":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(0.2)
        time.sleep(order.get("sleep", 0))
    except KeyboardInterrupt:
        (folder / "interrupted").write_text(name)
        sys.exit(130)
    if args[0] in REAL and "json" not in order and (folder / "real").exists():
        real = [sys.executable, "-P", "-m", "patchq.cli.main", *args]
        if order.get("kills") != "after":
            os.execv(real[0], real)
        os.spawnv(os.P_WAIT, real[0], real)
    else:
        print(json.dumps(order.get("json") or good(folder, name, args)), flush=True)
    if args[0] == "build" and not order.get("exit"):
        made = Path("build/cpu")
        made.mkdir(parents=True, exist_ok=True)
        (made / "build.json").write_text("{}")
    for path, text in order.get("writes", {}).items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    if order.get("kills") == "after":
        os.kill(os.getppid(), signal.SIGKILL)
    sys.exit(order.get("exit", 0))


def good(folder: Path, name: str, args: list[str]) -> dict[str, Any]:
    """What a command gives that comes through."""
    if name == "sync":
        onto = args[args.index("--onto") + 1]
        (folder / "onto").write_text(onto)
        base = {"from": "v1", "to": onto}
        return {"schema": "patchq.sync/1", "base": base, "changed": onto != "v1", "patches": []}
    if name == "lock":
        digest = hashlib.sha256((folder / "onto").read_bytes()).hexdigest()
        return {"schema": "patchq.lock-run/1", "digest": digest, "facts": {"tree": digest[:40]}}
    if name == "release cut":
        Path("releases").mkdir(exist_ok=True)
        Path("releases/1.toml").write_text("number = 1")
        Path("build/releases/1").mkdir(parents=True)
        Path("build/releases/1/SHA256SUMS").touch()
        for args in (["add", "releases"], ["commit", "-qm", "cut"], ["tag", "-am1", "release-1"]):
            subprocess.run(["git", *args], check=True)
        return {"schema": "patchq.release-cut/1", "number": 1, "ok": True, "checks": []}
    return GOOD.get(name, {"schema": "patchq.other/1"})


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
