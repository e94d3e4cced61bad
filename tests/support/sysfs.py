"""A file system root with what a Spark shows of itself in /proc and /sys, to be spoilt by tests.

Its adapter is as the kernel shows one: an entry of the GID table that is not in use reads all zero,
and its type cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address
from pathlib import Path

DRIVER = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95.05  Release Build\n"
    "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n"
)
ROCE1, ROCE2 = "IB/RoCE v1", "RoCE v2"


def gid(address: str) -> str:
    """The GID of an IPv4 address, as sysfs writes it."""
    value = f"{int(IPv4Address(address)):08x}"
    return f"0000:0000:0000:0000:0000:ffff:{value[:4]}:{value[4:]}"


def table(address: str) -> dict[int, tuple[str, str]]:
    """What an interface with one address gives: twice its link-local GID, twice the address."""
    local = "fe80:0000:0000:0000:4ebb:47ff:fe2c:9a01"
    return {
        0: (local, ROCE1),
        1: (local, ROCE2),
        2: (gid(address), ROCE1),
        3: (gid(address), ROCE2),
    }


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n", encoding="utf-8")


def memory(root: Path, *, available: int = 115, total: int = 119, swap: int = 32) -> None:
    """GiB."""
    kib = 1 << 20
    rows = {
        "MemTotal": total,
        "MemFree": available // 2,
        "MemAvailable": available,
        "Cached": 1,
        "SwapTotal": swap,
    }
    lines = [f"{name + ':':16}{value * kib:8} kB" for name, value in rows.items()]
    write(root / "proc/meminfo", "\n".join([*lines, "HugePages_Total:       0"]))


def interface(
    root: Path, device: str, *, state: str = "up", mtu: int = 9000, speed: int = 200000
) -> None:
    folder = root / "sys/class/net" / device
    for name, value in {"operstate": state, "mtu": mtu, "speed": speed}.items():
        write(folder / name, str(value))


def adapter(
    root: Path,
    name: str,
    device: str,
    gids: Mapping[int, tuple[str, str]],
    *,
    state: str = "4: ACTIVE",
    size: int = 8,
) -> None:
    """An RDMA adapter behind `device`; `gids` by their place in a table of `size`."""
    folder = root / "sys/class/infiniband" / name
    port = folder / "ports/1"
    (folder / "device/net" / device).mkdir(parents=True, exist_ok=True)
    write(port / "state", state)
    for index in range(size):
        text, kind = gids.get(index, (":".join(["0000"] * 8), ""))
        write(port / "gids" / str(index), text)
        if kind:
            write(port / "gid_attrs/types" / str(index), kind)
            write(port / "gid_attrs/ndevs" / str(index), device)


def spark(root: Path, device: str = "enp1s0f0np0", address: str = "192.168.100.10") -> Path:
    """A sound one, its second port without a cable, as they come."""
    memory(root)
    write(root / "proc/driver/nvidia/version", DRIVER.rstrip())
    interface(root, device)
    interface(root, "enp1s0f1np1", state="down", mtu=1500, speed=-1)
    adapter(root, "rocep1s0f0", device, table(address))
    adapter(root, "rocep1s0f1", "enp1s0f1np1", {}, state="1: DOWN")
    return root
