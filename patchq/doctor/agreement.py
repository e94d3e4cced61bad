"""Whether the nodes have the same: artifact, model, draft, template, driver, frame size."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from patchq.cluster.config import Node
from patchq.cluster.facts import Facts, File
from patchq.doctor.model import Check
from patchq.paths import show

Listing = tuple[File, ...]
_REASON = "ranks that differ give wrong answers, or wait for each other for ever"


def of_files(
    kind: str, name: str, here: Listing | None, answered: Sequence[tuple[Node, Facts]]
) -> tuple[Check, ...]:
    """Compare what the nodes have of one thing: with what is `here`, else with the first node's."""
    checks: list[Check] = []
    there: list[tuple[str, Listing | None]] = []
    for node, found in answered:
        if found.files is None:
            why = show(found.failed.get("files", "it does not say"))
            says = f"the {kind} of {node.name} could not be read: {why}"
            checks.append(Check(f"{node.name} {kind}", "fatal", says, remedy="bring it anew"))
        else:
            there.append((node.name, found.files.get(kind)))
    have = [(owner, listing) for owner, listing in there if listing is not None]
    if there and not have:
        says = f"{show(name)} ({kind}) is on no node yet"
        return (*checks, Check(kind, "note", says, remedy="it has to be brought there first"))
    if not have:
        return tuple(checks)
    owner, wanted = ("this machine", here) if here is not None else have[0]
    for each, listing in there:
        if listing is None:
            says = f"{each} has no {show(name)} ({kind}), {have[0][0]} has it"
            remedy = f"bring it to {each} as well"
            checks.append(Check(f"{each} {kind}", "fatal", says, _REASON, remedy))
        elif (what := difference(wanted, listing)) is not None:
            says = f"{show(name)} ({kind}) on {each} is not that of {owner}: {what}"
            remedy = f"bring it to {each} anew"
            checks.append(Check(f"{each} {kind}", "fatal", says, _REASON, remedy))
    if not checks:
        size = sum(file.size for file in wanted) / 1e9
        files = "" if len(wanted) == 1 else f", {len(wanted)} files"
        says = f"{show(name)} ({kind}) is the same everywhere: {digest(wanted)[:12]}{files}"
        return (Check(kind, "ok", f"{says}, {size:.1f} GB"),)
    return tuple(checks)


def difference(wanted: Listing, listing: Listing) -> str | None:
    """The first thing in which they differ, for a sentence; None where they do not."""
    ours, theirs = ({file.name: file for file in each} for each in (wanted, listing))
    for name in sorted(ours.keys() | theirs.keys()):
        shown = show(name) or "it"
        if name not in theirs:
            return f"{shown} is missing"
        if name not in ours:
            return f"{shown} is too much"
        if theirs[name].size != ours[name].size:
            return f"{shown} has {theirs[name].size} bytes, not {ours[name].size}"
        if theirs[name].digest != ours[name].digest:
            return (
                f"{shown} has the digest {show(theirs[name].digest[:12])},"
                f" not {show(ours[name].digest[:12])}"
            )
    return None


def digest(listing: Listing) -> str:
    """One digest for a listing: sha256 of its names, sizes and digests, a file a line."""
    lines = [f"{file.digest} {file.size} {file.name}\n" for file in listing]
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def of_machines(answered: Sequence[tuple[Node, Facts]]) -> Iterator[Check]:
    """What should be alike on all nodes, and is not."""
    frames = {node.name: found.link.mtu for node, found in answered if found.link}
    drivers = {node.name: found.driver for node, found in answered if found.driver}
    if len(set(frames.values())) > 1:
        yield Check(
            "MTU",
            "warning",
            f"the interfaces take frames of different sizes: {_told(frames)}",
            "large messages are lost or cut up on the way",
            "set the same MTU on all (`ip link set DEVICE mtu 9000`)",
        )
    if len(set(drivers.values())) > 1:
        yield Check(
            "drivers",
            "warning",
            f"the nodes have different drivers: {_told(drivers)}",
            "a runner is tested with one",
            "update the older one",
        )


def _told(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {show(str(value))}" for name, value in values.items())
