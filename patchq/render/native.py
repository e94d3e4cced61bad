"""What of a series' native code is compiled anew, for people and as JSON (docs/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patchq.paths import show

if TYPE_CHECKING:
    from rich.console import RenderableType

    from patchq.build.native.plan import NativePlan, Object, Work
    from patchq.build.native.schemas import Finding, Operator

MOST = 12
"""Objects of an extension that people are shown; `--json` has them all."""


def as_json(plan: NativePlan) -> dict[str, Any]:
    return {
        "schema": "patchq.build-plan/1",
        "device": plan.facts.device,
        "arch": plan.facts.arch,
        "changed": list(plan.changed),
        "extensions": [_work(each) for each in plan.works],
        "rust": list(plan.rust),
        "apart": [vars(each) for each in plan.apart],
        "unknown": [vars(each) for each in plan.unknown],
        "findings": [_finding(each) for each in plan.findings],
        "fetched": [vars(each) for each in plan.fetched] if plan.works else [],
    }


def _work(work: Work) -> dict[str, Any]:
    return {
        "name": work.extension.name,
        "file": work.extension.file,
        "whole": work.whole or None,
        "sources": work.total,
        "removed": list(work.removed),
        "objects": [_object(each) for each in work.objects],
    }


def _object(each: Object) -> dict[str, Any]:
    archs = each.source.archs
    return {
        "source": each.source.path,
        "archs": None if archs is None else list(archs),
        "generated": each.source.generated,
        "needs": list(each.needs),
        "reasons": list(each.reasons),
    }


def _finding(each: Finding) -> dict[str, Any]:
    return {
        "operator": each.operator,
        "says": each.says,
        "certain": each.certain,
        "old": _operator(each.old),
        "new": _operator(each.new),
        "call": {"path": each.call.path, "line": each.call.line, "text": each.call.text},
    }


def _operator(each: Operator | None) -> dict[str, Any] | None:
    return {"path": each.path, "line": each.line, "schema": each.text} if each else None


def drawn(plan: NativePlan) -> RenderableType:
    from rich.console import Group

    from patchq.render.console import text

    return Group(*(text(show(line)) for line in lines(plan)))


def lines(plan: NativePlan) -> list[str]:
    """The plan as people read it."""
    if not plan.changed:
        return ["The series changes no native code: nothing is compiled."]
    where = " ".join(filter(None, [plan.facts.device, plan.facts.arch]))
    told = [f"{len(plan.changed)} native files change; for {where}:"]
    for work in plan.works:
        told += _says(work)
    if plan.rust:
        told.append(f"  Rust, by cargo: {', '.join(plan.rust[:5])}")
    told += [f"  not compiled here: {each.path} ({each.says})" for each in plan.apart]
    told += [f"  unknown: {each.path}: {each.says}" for each in plan.unknown]
    if not plan.compiles:
        told.append("  nothing is compiled")
    for each in plan.findings:
        told += _found(each)
    return told


def _says(work: Work) -> list[str]:
    count = work.total if work.whole else len(work.objects)
    told = [f"  {work.extension.name}: {count} of {work.total} objects"]
    if work.whole:
        told.append(f"    all of it: {work.whole}")
    told += [f"    without {path}, which it had" for path in work.removed]
    for each in work.objects[:MOST]:
        archs = "unknown" if each.source.archs is None else " ".join(each.source.archs)
        told.append(f"    {each.source.path} [{archs}]: {'; '.join(each.reasons)}")
    if len(work.objects) > MOST:
        told.append(f"    and {len(work.objects) - MOST} more")
    return told


def _found(each: Finding) -> list[str]:
    told = [f"  {each.operator}: {each.says}"]
    told.append(f"    was: {each.old.text}")
    if each.new:
        told.append(f"    {each.new.path}:{each.new.line}: {each.new.text}")
    told.append(f"    {each.call.path}:{each.call.line}: {each.call.text:.200}")
    return told
