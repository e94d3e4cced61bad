"""What `patchq build` made, for people and as JSON (docs/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patchq.paths import lossless, show

if TYPE_CHECKING:
    from rich.console import RenderableType

    from patchq.build.components import Part
    from patchq.build.image import Image
    from patchq.build.requirements import Rewritten
    from patchq.build.run import BuildReport


def as_json(report: BuildReport, image: Image | None = None) -> dict[str, Any]:
    built = report.built
    return {
        "schema": "patchq.build-run/1",
        "target": report.target,
        "queue": report.wanted.series,
        "base": report.wanted.release,
        "tree": report.wanted.tree,
        "version": built.version,
        "source": {"name": report.source.filename, "sha256": report.source.sha256},
        "file": str(built.path) if report.record else None,
        "sha256": built.sha256,
        "size": built.size,
        "record": str(report.record) if report.record else None,
        "same": report.same,
        "compared": dict(report.compared),
        "lock": report.lock,
        "components": [_part(each) for each in report.parts],
        "rewritten": [vars(each) for each in report.rewritten],
        "notes": list(report.notes),
        "image": _image(image) if image else None,
        "compiled": dict(built.compiled),
        "laid": sorted(map(lossless, built.overlay.laid)),
        "removed": sorted(map(lossless, built.overlay.removed)),
        "apart": sorted(map(lossless, built.overlay.apart)),
        "unlisted": sorted(map(lossless, built.overlay.unlisted)),
        "beyond": list(built.beyond),
        "differing": list(built.differing),
    }


def drawn(report: BuildReport, image: Image | None = None) -> RenderableType:
    from rich.console import Group

    from patchq.render.console import text

    built, laid = report.built, report.built.overlay
    over = show(report.source.filename)
    lines = [
        f"{built.path.name}",
        f"  {built.size / 1e6:.1f} MB, sha256 {built.sha256}",
        f"  over {over}: {len(laid.laid)} files laid, {len(laid.removed)} removed",
    ]
    if laid.apart:
        lines.append(f"  in no wheel: {len(laid.apart)} files (tests, documentation)")
    if laid.unlisted:
        names = ", ".join(map(show, laid.unlisted))
        lines.append(f"  left out, package_data does not name them: {names}")
    if built.beyond:
        lines.append(f"  beyond the source: {_some(built.beyond)}")
    if built.compiled:
        lines.append(f"  compiled: {_some(tuple(built.compiled))}")
    if built.differing:
        lines.append(f"  not as in the source, kept: {_some(built.differing)}")
    lines += [f"  {change(each)}" for each in report.rewritten]
    lines += [f"  {_says(each)}" for each in report.parts]
    lines += [f"  {note}" for note in report.notes]
    lines += [f"  NOT the same bytes: {name}" for name, same in report.compared.items() if not same]
    if report.same is not None:
        lines.append("  the same bytes" if report.same else "  NOT the same bytes")
    elif report.record:
        lines.append(f"  {built.path.parent}")
    if image is not None and image.id is not None:
        lines.append(f"  image {image.tag}, {image.id}")
    elif image is not None:
        lines += [
            "  neither docker nor podman answers here; where one does, this builds the image:"
        ]
        lines += [f"  {image.command}"]
    return Group(*map(text, lines))


def _image(image: Image) -> dict[str, Any]:
    return {
        "context": str(image.context),
        "tag": image.tag,
        "command": image.command,
        "id": image.id,
    }


def change(each: Rewritten) -> str:
    """A requirement of upstream's wheel that is another in ours, and why."""
    return f"asks for {each.now or 'nothing'} instead of {each.was}: {each.why}"


def _part(part: Part) -> dict[str, Any]:
    source, wheel = part.source, part.wheel
    return {
        "name": part.component.name,
        "kind": part.kind,
        "version": part.component.version or None,
        "source": {"name": source.filename, "sha256": source.sha256} if source else None,
        "file": str(wheel.path) if wheel else str(part.brought) if part.brought else None,
        "sha256": wheel.sha256 if wheel else None,
        "laid": list(wheel.laid) if wheel else [],
        "patches": [each.name for each in wheel.patches] if wheel else [],
    }


def _says(part: Part) -> str:
    component, source, wheel = part.component, part.source, part.wheel
    name = f"{component.name} {component.version or component.commit}"
    if wheel is not None:
        what = f"{len(wheel.laid)} files laid by {len(wheel.patches)} patches"
        return f"{name}: {wheel.path.name}, {what}, sha256 {wheel.sha256}"
    if part.kind == "source" and source is not None:
        return f"{name}: no wheel for this target; {source.filename} is here, to be built there"
    if source is not None:
        return f"{name}: as published, {source.filename}"
    return f"{name}: on no index; to be built on the target from {component.git or 'its source'}"


def _some(names: tuple[str, ...]) -> str:
    told = ", ".join(map(show, names[:6]))
    return told if len(names) <= 6 else f"{told} and {len(names) - 6} more"
