"""The lock of a node: held by a process that ends with the connection, so none is left over."""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import Any


def hold(asked: dict[str, Any]) -> dict[str, Any] | None:
    """Take the lock, say so in a line, and keep it until the end of the input; or who has it."""
    os.makedirs(asked["folder"], exist_ok=True)
    descriptor = os.open(place(asked["folder"]), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return {"held": False, "by": named(descriptor)}
    holder = {**asked["holder"], "pid": os.getpid(), "since": time.time()}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode(), 0)
    os.write(1, (asked["mark"] + json.dumps({"said": {"held": True}}) + "\n").encode())
    while os.read(0, 4096):
        pass
    os.ftruncate(descriptor, 0)
    return None


def holder(asked: dict[str, Any]) -> dict[str, Any] | None:
    """Who holds it now."""
    try:
        descriptor = os.open(place(asked["folder"]), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return named(descriptor)
    finally:
        os.close(descriptor)
    return None


def place(folder: str) -> str:
    return os.path.join(folder, "lock")


def named(descriptor: int) -> dict[str, Any]:
    """What its holder wrote there; it may be writing just now."""
    try:
        found = json.loads(os.pread(descriptor, 4096, 0))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
