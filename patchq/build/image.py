"""`patchq build --image`: all that a container is built from in one folder, and the build itself.

The folder depends on the build's own files, the requirements' lock and `ci/Dockerfile` alone: same
inputs, same bytes, dates and modes.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchq.build import provenance, requirements
from patchq.build.run import BuildReport
from patchq.build.target import find
from patchq.build.wheelfile import CHUNK
from patchq.cluster import shell
from patchq.errors import PatchqError, UsageError
from patchq.paths import show
from patchq.progress import SILENT, Progress

CONTEXT = "image"
DOCKERFILE = "ci/Dockerfile"
PROGRAMS = ("docker", "podman")
_RECORDS = (provenance.RECORD, provenance.STATEMENT, provenance.BOM)
_PLATFORMS = {"aarch64": "linux/arm64", "x86_64": "linux/amd64"}
_PINNED = re.compile(r"(?m)^ARG (?:BUILD|BASE)=(\S+)$")
_DIGEST = re.compile(r"\S+@sha256:[0-9a-f]{64}")
_DATE = 315_532_800
"""1980-01-01, as in the wheels."""
_PATIENCE = 60.0


@dataclass(frozen=True)
class Image:
    """`context` is the folder, `command` what builds the image from it, for a shell.

    `id` is the image that was built; None where neither docker nor podman answers here.
    """

    context: Path
    tag: str
    command: str
    id: str | None


def asked_for(target: str, *, verify: bool) -> None:
    """Raises UsageError where no image can be meant."""
    if verify:
        raise UsageError("--image and --verify do not go together", "give one of them")
    if not find(target).gpu:
        raise UsageError(
            f"there is no image for {target}: ci/Dockerfile stands on NVIDIA's",
            "take --target spark or --target cuda-x86_64",
        )


def image(
    root: Path, report: BuildReport, out: Path, work: Path, progress: Progress = SILENT
) -> Image:
    """Write the folder `out/image` and build the image where docker or podman answers.

    `root` is the project, `work` a folder for the log. Raises PatchqError where there is no lock of
    requirements or no Dockerfile, or the build fails.
    """
    progress.step("collecting what the image is built from")
    folder = context(root, report, out)
    version = report.built.version
    tag = f"patchq/{report.wanted.series}:{version.replace('+', '-')}"
    where = _PLATFORMS[find(report.target).machine]
    program = _answering()
    words = [program or PROGRAMS[0], "build", "--platform", where, "--tag", tag, str(folder)]
    command = shlex.join([Path(words[0]).name, *words[1:]])
    if program is None:
        return Image(folder, tag, command, None)
    progress.step(f"building the image by {Path(program).name}")
    return Image(folder, tag, command, _built(words, command, work))


def _answering() -> str | None:
    """The first program that is there and whose daemon, if it has one, answers."""
    with shell.local() as here:
        for name in PROGRAMS:
            program = shutil.which(name)
            if program and here.run([program, "version"], timeout=_PATIENCE).code == 0:
                return program
    return None


def context(root: Path, report: BuildReport, out: Path) -> Path:
    """The folder `out/image`, made anew and switched in whole."""
    name = requirements.file_name(report.target)
    lock = _needed(root / "upstream" / name, f"run `patchq lock --requirements {report.target}`")
    file = _needed(root / DOCKERFILE, "take the one of patchq's own repository")
    wheels = [report.built.path, *(each.wheel.path for each in report.parts if each.wheel)]
    texts = {"requirements.lock": lock, "runner.lock": _own(report)}
    texts |= {each: (out / each).read_bytes() for each in _RECORDS}
    texts["Dockerfile"], bases = _filled(file.decode("utf-8", "replace"), report)
    files = [(f"wheels/{each.name}", *_sum(each)) for each in wheels]
    files += [(each, hashlib.sha256(data).hexdigest(), len(data)) for each, data in texts.items()]
    texts["provenance.json"] = _told(report, bases, sorted(files))
    folder, beside = out / CONTEXT, out / f".{CONTEXT}.{os.getpid()}"
    shutil.rmtree(beside, ignore_errors=True)
    try:
        (beside / "wheels").mkdir(parents=True)
        for each, data in texts.items():
            (beside / each).write_bytes(data)
        for path in wheels:
            shutil.copyfile(path, beside / "wheels" / path.name)
        for path in (*beside.rglob("*"), beside):
            path.chmod(0o755 if path.is_dir() else 0o644)
        for path in sorted((*beside.rglob("*"), beside), reverse=True):
            os.utime(path, (_DATE, _DATE))
        shutil.rmtree(folder, ignore_errors=True)
        beside.replace(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return folder


def _needed(path: Path, hint: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PatchqError(
            f"the image needs {path.parent.name}/{path.name}, and it cannot be read:"
            f" {error.strerror}",
            hint,
        ) from error


def _own(report: BuildReport) -> bytes:
    """What this build made, as pip asks for it: by version and hash, from the folder's wheels."""
    built = report.built
    name = built.path.name.partition("-")[0]
    lines = [f"{name}=={built.version} --hash=sha256:{built.sha256}"]
    for part in report.parts:
        if part.wheel is not None:
            wheel = part.wheel
            name = wheel.path.name.partition("-")[0]
            lines.append(f"{name}=={wheel.version} --hash=sha256:{wheel.sha256}")
    return "".join(f"{line}\n" for line in lines).encode()


def _filled(text: str, report: BuildReport) -> tuple[bytes, tuple[str, ...]]:
    """The Dockerfile with what is known now, and the images that it stands on."""
    bases = tuple(_PINNED.findall(text))
    loose = [base for base in bases if not _DIGEST.fullmatch(base)]
    if loose or not bases:
        raise PatchqError(
            f"{DOCKERFILE} stands on {show(loose[0]) if loose else 'no BUILD and BASE'}",
            "pin its images by digest: NAME:TAG@sha256:...",
        )
    known = {
        "VERSION": report.built.version,
        "TREE": report.wanted.tree,
        "LOCK": report.lock or "none",
        "TARGET": report.target,
    }
    for key, value in known.items():
        text, count = re.subn(rf"(?m)^ARG {key}=unknown$", f"ARG {key}={value}", text)
        if count != 1:
            raise PatchqError(
                f"{DOCKERFILE} has {count} lines `ARG {key}=unknown` instead of one",
                "correct the file",
            )
    return text.encode(), bases


def _told(report: BuildReport, bases: tuple[str, ...], files: list[tuple[str, str, int]]) -> bytes:
    """/opt/patchq/provenance.json."""
    left = [each.component.name for each in report.parts if each.kind in ("source", "commit")]
    told: dict[str, Any] = {
        "schema": "patchq.image/1",
        "series": report.wanted.series,
        "base": report.wanted.release,
        "tree": report.wanted.tree,
        "lock": report.lock,
        "target": report.target,
        "version": report.built.version,
        "images": list(bases),
        "files": [{"name": name, "sha256": sha, "size": size} for name, sha, size in files],
        "not_inside": sorted(left),
    }
    return provenance.to_bytes(told)


def _sum(path: Path) -> tuple[str, int]:
    total, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            total.update(chunk)
            size += len(chunk)
    return total.hexdigest(), size


def _built(words: list[str], command: str, work: Path) -> str:
    """The image's id. The log lies in `work` and is kept where the build fails."""
    work.mkdir(parents=True, exist_ok=True)
    log, mark = work / "image.log", work / f"image.{os.getpid()}.id"
    words = [*words[:-1], "--iidfile", str(mark), words[-1]]
    try:
        with log.open("wb") as file, shell.local() as here:

            def note(chunk: bytes) -> None:
                file.write(chunk)

            code = here.stream(words, note)
        if code == 0 and mark.is_file():
            return mark.read_text("utf-8").strip()
    finally:
        mark.unlink(missing_ok=True)
    lines = [line for line in log.read_bytes()[-4096:].splitlines() if line.strip()]
    said = show(lines[-1]) if lines else "it said nothing"
    raise PatchqError(
        f"`{command}` ended with status {code}: {said}",
        f"the whole log is {log}; wheel and folder are whole, so that the command can be run again",
    )
