"""What `patchq install`, `rollback`, `uninstall` and `support` did, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from patchq.errors import PatchqError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from patchq.release.install import InstallReport
    from patchq.release.rollback import RollbackReport
    from patchq.release.support import Parcel
    from patchq.release.uninstall import UninstallReport

_HOW = {
    "was there": "was there",
    "copied": "a copy that was there is taken",
    "fetched": "fetched and verified",
    "shipped": "shipped and verified",
}


def installed_json(report: InstallReport) -> dict[str, Any]:
    manifest, deployed = report.manifest, report.deployed
    return {
        "schema": "patchq.install/1",
        "release": manifest.number,
        "source": report.source,
        "signer": report.signer,
        "cluster": report.cluster.name,
        "target": report.cluster.target,
        "size": report.size,
        "dry_run": deployed is None,
        "checks": [
            {"name": check.name, "state": check.state, "says": check.says}
            for check in report.checks
        ],
        "weights": [
            {"node": each.node, "kind": each.kind, "name": each.place, "how": each.how}
            for each in report.brought
        ],
        "nodes": [
            {
                "name": each.node.name,
                "release": each.digest,
                "previous": each.was,
                "shipped": list(each.shipped),
                "installed": each.installed,
            }
            for each in (deployed.nodes if deployed else ())
        ],
        "unit": str(report.unit) if report.unit else None,
        "command": str(report.command) if report.command else None,
    }


def installed(report: InstallReport) -> RenderableType:
    return _lines(_installed(report))


def _installed(report: InstallReport) -> Iterator[str]:
    manifest, name = report.manifest, report.cluster.name
    told = f"release {manifest.number}, {manifest.queue} {manifest.base.release}"
    yield f"{told}, signed by {report.signer}"
    yield f"  from {report.source}, {report.size / 1e6:,.1f} MB"
    for check in report.checks:
        if check.state != "ok":
            yield f"  {check.state}: {check.says}"
            if check.remedy:
                yield f"    -> {check.remedy}"
    if report.deployed is None:
        nodes = ", ".join(node.name for node in report.cluster.nodes)
        yield f"would be installed on {nodes}; nothing was changed"
        return
    for each in report.brought:
        yield f"  {each.node}: {each.kind} {each.place} {_HOW[each.how]}"
    for made in report.deployed.nodes:
        how = "installed" if made.installed else "was installed"
        before = "; `patchq rollback` goes back to the one before" if made.was else ""
        yield f"  {made.node.name}: {how}{before}"
    if report.command is not None:
        yield f"the PATH does not lead to it: patchq is {report.command}"
    yield f"it starts with `patchq cluster start {name}`; what runs goes on with what it has"
    if report.unit is not None:
        yield f"or by systemd: `systemctl --user enable --now patchq@{name}`"


def rolled_back_json(report: RollbackReport) -> dict[str, Any]:
    return {
        "schema": "patchq.rollback/1",
        "cluster": report.cluster.name,
        "from": report.left.number,
        "to": report.now.number,
        "profile": report.now.profile.name,
        "running": list(report.running),
        "dry_run": report.dry_run,
    }


def rolled_back(report: RollbackReport) -> RenderableType:
    name, now = report.cluster.name, report.now.number
    would = "would be " if report.dry_run else "is "
    lines = [f"release {now} {would}the current one, {report.left.number} the one before"]
    if report.running:
        lines.append(f"  {', '.join(report.running)} still run what was started before")
        lines.append(f"  -> `patchq cluster stop {name}`, then `patchq cluster start {name}`")
    return _lines(lines)


def uninstalled_json(report: UninstallReport) -> dict[str, Any]:
    return {
        "schema": "patchq.uninstall/1",
        "home": str(report.home),
        "dry_run": report.dry_run,
        "kept_models": report.kept_models,
        "unit": str(report.unit) if report.unit else None,
        "nodes": [
            {
                "cluster": cluster,
                "error": {"message": each.message, "hint": each.hint}
                if isinstance(each, PatchqError)
                else None,
                **(
                    {}
                    if isinstance(each, PatchqError)
                    else {
                        "name": each.node,
                        "folder": each.folder,
                        "size": each.size,
                        "models": list(each.models),
                        "other": list(each.other),
                    }
                ),
            }
            for cluster, each in report.nodes
        ],
    }


def uninstalled(report: UninstallReport) -> RenderableType:
    return _lines(_uninstalled(report))


def _uninstalled(report: UninstallReport) -> Iterator[str]:
    gone = "would be removed" if report.dry_run else "is removed"
    for _, each in report.nodes:
        if isinstance(each, PatchqError):
            yield f"{each.message}; what is there is there still"
            yield f"  -> {each.hint}, then run it again"
            continue
        what = each.folder or "nothing was there"
        yield f"{each.node}: {what}{f', {each.size / 1e9:.2f} GB, {gone}' if each.folder else ''}"
        if each.models:
            yield f"  with the models {', '.join(each.models)}"
        if each.other:
            yield f"  not patchq's, and left: {', '.join(each.other)}"
    if report.unit is not None:
        yield f"{report.unit} {gone}"
    if not report.exit_code:
        yield f"{report.home} {gone}"


def parcel_json(parcel: Parcel, written: bool) -> dict[str, Any]:
    return {
        "schema": "patchq.support/1",
        "file": str(parcel.path) if written else None,
        "removed": dict(parcel.removed),
        "files": [{"name": each.name, "text": each.text} for each in parcel.files],
    }


def parcel(parcel: Parcel) -> RenderableType:
    """All that would be sent, as it would be."""
    return _lines(_parcel(parcel))


def _parcel(parcel: Parcel) -> Iterator[str]:
    for each in parcel.files:
        yield f"=== {each.name}"
        yield from each.text.splitlines()
    counted = ", ".join(f"{count} {what}" for what, count in parcel.removed if count)
    yield f"=== taken out: {counted or 'nothing was found'}"


def _lines(lines: list[str] | Iterator[str]) -> RenderableType:
    from rich.text import Text

    from patchq.render.console import lines as harmless

    return Text(harmless("\n".join(lines)), overflow="fold")
