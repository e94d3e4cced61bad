"""What a node says of itself: sent there as it stands here, run by its own python3 (3.8 or newer).

So it imports nothing of patchq, starts nothing and changes nothing.

Forms: Documentation/ABI/stable/sysfs-class-infiniband and sysfs-class-net of the Linux kernel,
proc_meminfo(5), proc_net_tcp(5), nvml.h of NVIDIA's driver, safetensors' own format page.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import platform
import re
import socket
import struct
import time
from typing import Any

WHOLE = 64 * 1024 * 1024
"""Bytes up to which a file is read whole; of a larger one its header, or its two ends."""
END = 1024 * 1024
MOST_FILES = 20000
MOST_HEADER = 100_000_000


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """All facts; one that cannot be had is None, and `failed` says why."""
    root = asked.get("root", "/")
    sought: dict[str, Any] = {
        "memory": lambda: memory(root),
        "gpu": lambda: gpu(asked.get("nvml", "libnvidia-ml.so.1")),
        "driver": lambda: driver(root),
        "disk": lambda: disk(home(asked["folder"])),
        "ports": lambda: {str(port): holder(port) for port in asked["ports"]},
        "address": lambda: has_address(asked["address"]),
        "link": lambda: link(root, asked["device"]),
        "adapters": lambda: adapters(root, asked["device"]),
        "files": lambda: {
            name: listing(home(path), asked.get("full", False))
            for name, path in asked["files"].items()
        },
    }
    begun = time.time()
    failed: dict[str, str] = {}
    facts: dict[str, Any] = {
        "machine": platform.machine(),
        "home": os.path.expanduser("~"),
    }
    for name, find in sought.items():
        try:
            facts[name] = find()
        except Exception as error:  # one fact that is missing hides no other
            facts[name] = None
            failed[name] = str(error) or type(error).__name__
    facts["failed"] = failed
    facts["time"] = [begun, time.time()]
    return facts


def home(path: str) -> str:
    return os.path.join(os.path.expanduser("~"), path)


def read(*parts: str) -> str:
    with open(os.path.join(*parts), encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def read_or_none(*parts: str) -> str | None:
    try:
        return read(*parts)
    except OSError:
        return None


def names(*parts: str) -> list[str]:
    """What is in a folder, numbers in their order."""
    try:
        found = os.listdir(os.path.join(*parts))
    except OSError:
        return []
    return sorted(found, key=lambda name: (not name.isdigit(), name.zfill(8)))


def memory(root: str) -> dict[str, int]:
    """Bytes, by the names of /proc/meminfo."""
    found = re.findall(r"(?m)^(\w+):\s+(\d+) kB", read(root, "proc/meminfo"))
    values = {name: 1024 * int(value) for name, value in found}
    return {name: values[name] for name in ("MemTotal", "MemFree", "MemAvailable", "SwapTotal")}


def driver(root: str) -> str | None:
    """The version of NVIDIA's kernel module that is loaded; None where there is none."""
    text = read_or_none(root, "proc/driver/nvidia/version")
    found = re.search(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)*)\s", text or "", re.M)
    return found.group(1) if found else None


def gpu(library: str) -> dict[str, Any] | None:
    """What NVML says: the CUDA version that the driver takes, and the devices; None without it."""
    try:
        nvml = ctypes.CDLL(library)
    except OSError:
        return None

    def ask(name: str, *args: Any) -> None:
        status = getattr(nvml, name)(*args)
        if status != 0:
            raise OSError(f"{name} answers {status}")

    ask("nvmlInit_v2")
    try:
        number, count = ctypes.c_int(), ctypes.c_uint()
        ask("nvmlSystemGetCudaDriverVersion_v2", ctypes.byref(number))
        ask("nvmlDeviceGetCount_v2", ctypes.byref(count))
        devices = []
        for place in range(count.value):
            device, text = ctypes.c_void_p(), ctypes.create_string_buffer(96)
            major, minor = ctypes.c_int(), ctypes.c_int()
            ask("nvmlDeviceGetHandleByIndex_v2", place, ctypes.byref(device))
            ask("nvmlDeviceGetName", device, text, 96)
            both = ctypes.byref(major), ctypes.byref(minor)
            ask("nvmlDeviceGetCudaComputeCapability", device, *both)
            name = text.value.decode("utf-8", "replace")
            devices.append({"name": name, "capability": f"{major.value}.{minor.value}"})
        cuda = f"{number.value // 1000}.{number.value % 1000 // 10}"
        return {"cuda": cuda, "devices": devices}
    finally:
        nvml.nvmlShutdown()


def disk(folder: str) -> dict[str, Any]:
    """Free bytes where `folder` is or would be made."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    found = os.statvfs(folder)
    return {"folder": folder, "free": found.f_bavail * found.f_frsize}


def holder(port: int) -> str | None:
    """None where `port` is free, else who listens there, as far as this account may know."""
    for family, address in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):  # noqa: S104
        try:
            with socket.socket(family, socket.SOCK_STREAM) as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                one.bind((address, port))
                one.listen(1)
        except PermissionError:
            return "the system: this account may not open it"
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return listener(port) or "another account's process"
    return None


def listener(port: int) -> str | None:
    wanted = set()
    for table in ("tcp", "tcp6"):
        for line in (read_or_none("/proc/net", table) or "").splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and int(words[1].rsplit(":", 1)[1], 16) == port:
                wanted.add(f"socket:[{words[9]}]")
    for pid in names("/proc"):
        if pid.isdigit():
            for handle in names("/proc", pid, "fd"):
                try:
                    if os.readlink(f"/proc/{pid}/fd/{handle}") in wanted:
                        return f"process {pid} ({read('/proc', pid, 'comm')})"
                except OSError:
                    continue
    return None


def has_address(address: str) -> bool:
    """Whether `address` is this machine's: only then can it be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        try:
            one.bind((address, 0))
        except OSError:
            return False
    return True


def link(root: str, device: str) -> dict[str, Any] | None:
    """The network interface; None where there is none of that name."""
    folder = os.path.join(root, "sys/class/net", device)
    if not os.path.isdir(folder):
        return None
    speed = read_or_none(folder, "speed")
    return {
        "state": read_or_none(folder, "operstate"),
        "mtu": int(read(folder, "mtu")),
        "speed": int(speed) if speed and speed.isdigit() else None,
        "addresses": addresses(device),
    }


def addresses(device: str) -> list[str]:
    """The interface's addresses, IPv4 (netdevice(7), SIOCGIFCONF) and IPv6 (/proc/net/if_inet6)."""
    size, entry = 65536, 40 if struct.calcsize("P") == 8 else 32
    space = ctypes.create_string_buffer(size)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        asked = struct.pack("iP", size, ctypes.addressof(space))
        used = struct.unpack("iP", fcntl.ioctl(one, 0x8912, asked))[0]
    found = []
    for place in range(0, used, entry):
        name = space.raw[place : place + 16].split(b"\0")[0].decode("utf-8", "replace")
        if name.split(":")[0] == device:
            found.append(socket.inet_ntoa(space.raw[place + 20 : place + 24]))
    for line in (read_or_none("/proc/net/if_inet6") or "").splitlines():
        words = line.split()
        if words[5] == device:
            found.append(socket.inet_ntop(socket.AF_INET6, bytes.fromhex(words[0])))
    return found


def adapters(root: str, device: str) -> list[dict[str, Any]]:
    """The RDMA adapters behind the interface, each with its port 1 and that port's GIDs.

    A GID is [index, text, type, interface]; the type of an entry that is not used cannot be read.
    """
    base = os.path.join(root, "sys/class/infiniband")
    found = []
    for name in names(base):
        port = os.path.join(base, name, "ports/1")
        gids: list[list[Any]] = [
            [
                int(index),
                read_or_none(port, "gids", index) or "",
                read_or_none(port, "gid_attrs/types", index) or "",
                read_or_none(port, "gid_attrs/ndevs", index) or "",
            ]
            for index in names(port, "gids")
            if index.isdigit()
        ]
        below = names(base, name, "device/net")
        if device in below or any(gid[3] == device for gid in gids):
            found.append(
                {
                    "name": name,
                    "state": read_or_none(port, "state") or "",
                    "gids": [gid for gid in gids if gid[1].strip("0:") or gid[2]],
                }
            )
    return found


def listing(path: str, full: bool) -> list[list[Any]] | None:
    """A file, or every file below a folder: [name, size, digest], sorted; None: nothing is there.

    `digest` is the sha256 of what `content` takes: names, sizes and headers tell two checkpoints
    apart without reading 155 GB.
    """
    if os.path.isfile(path):
        return [["", os.path.getsize(path), content(path, True)]]
    if not os.path.isdir(path):
        return None
    found = []
    for folder, below, files in os.walk(path):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in files:
            whole = os.path.join(folder, name)
            if name.startswith("."):
                continue
            if not os.path.isfile(whole):
                raise OSError(f"{whole} points to nothing")
            relative = os.path.relpath(whole, path)
            found.append([relative, os.path.getsize(whole), content(whole, full)])
            if len(found) > MOST_FILES:
                raise OSError(f"{path} holds more than {MOST_FILES} files")
    return sorted(found)


def content(path: str, full: bool) -> str:
    """sha256 of the file, of a shard's header, or of a large file's two ends."""
    digest, size = hashlib.sha256(), os.path.getsize(path)
    with open(path, "rb") as file:
        if full or (size <= WHOLE and not path.endswith(".safetensors")):
            for part in iter(lambda: file.read(END), b""):
                digest.update(part)
        elif path.endswith(".safetensors"):
            start = file.read(8)
            digest.update(start)
            digest.update(file.read(min(int.from_bytes(start, "little"), MOST_HEADER)))
        else:
            digest.update(file.read(END))
            file.seek(-END, os.SEEK_END)
            digest.update(file.read(END))
    return digest.hexdigest()
