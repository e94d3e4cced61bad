"""The built wheel's name, version and requirements: pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType

from patchq.build.target import Target

NAME = "vllm"
"""vLLM asks for a distribution of this name at run time, whatever it was published as."""
_REQUIRES = "Requires-Dist: "
# A CPU build asks for torch of an index of its own; the plain one of that version serves.
_LOCAL_TORCH = re.compile(r"^(Requires-Dist: torch==[0-9.]+)\+cpu\b")
# Nothing of a text model needs them, and none of the index's fit beside a CPU torch.
_NOT_FOR_CPU = re.compile(
    r"^Requires-Dist: (?:torchaudio|torchvision|torchcodec)\b(?!.*\bextra ==)"
)


def version(release: str, number: int | None, tree: str, target: Target) -> str:
    """`0.29.0+patchq.5.g1a2b3c4d5e6f`: the release, ours, and the tree that was built.

    A build that belongs to no release has the number 0. The local part of a CPU build says so.
    """
    parts = ["patchq", str(number or 0), f"g{tree[:12]}", *filter(None, [target.local])]
    return f"{release}+{'.'.join(parts)}"


def metadata(
    text: bytes,
    new_version: str,
    target: Target,
    instead: Mapping[str, str] = MappingProxyType({}),
    name: str = NAME,
) -> bytes:
    """METADATA with our name and version; the requirements stay, but for what the target lacks.

    `instead`: requirements that are rewritten on purpose ("": taken out), by what they were.
    """
    head, blank, body = text.partition(b"\n\n")
    lines = head.decode("utf-8", "surrogateescape").split("\n")
    if target.name == "cpu":
        lines = [_LOCAL_TORCH.sub(r"\1", line) for line in lines if not _NOT_FOR_CPU.match(line)]
    ours = {"Name": f"Name: {name}", "Version": f"Version: {new_version}"}
    ours |= {f"{_REQUIRES}{was}": f"{_REQUIRES}{now}" for was, now in instead.items()}
    gone = {f"{_REQUIRES}{was}" for was, now in instead.items() if not now}
    lines = [line for line in lines if line not in gone]
    lines = [ours.get(line, ours.get(line.partition(": ")[0], line)) for line in lines]
    return "\n".join(lines).encode("utf-8", "surrogateescape") + blank + body


def says(series: str, release: int | None, base: str, tree: str) -> bytes:
    """`vllm/patchq.json`, from which a server says what it was built from."""
    told = {"series": series, "release": str(release or "none"), "base": base, "tree": tree}
    return (json.dumps(told, indent=2, sort_keys=True) + "\n").encode()


def filename(old: str, new_version: str, name: str = NAME) -> str:
    """The wheel's file name: the tags are the old one's."""
    return "-".join([name, new_version, *old.removesuffix(".whl").split("-")[-3:]]) + ".whl"
