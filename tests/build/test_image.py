"""What a container is built from, and how docker is asked to."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from patchq.build.components import Part, Wheeled
from patchq.build.image import asked_for, context, image
from patchq.build.overlay import Wanted
from patchq.build.run import BuildReport, build
from patchq.build.target import find
from patchq.errors import PatchqError, UsageError
from patchq.render import builds
from patchq.upstream.components import Component
from tests.build.wheels import NAME, make
from tests.support.kit import Kit
from tests.upstream.conftest import Site, entry

DOCKERFILE = Path(__file__).parents[2] / "ci/Dockerfile"
LOCK = b"torch==2.13.0 --hash=sha256:" + b"0" * 64 + b"\n"


@dataclass
class Runner:
    """A project whose runner was built into `out`."""

    root: Path
    out: Path
    report: BuildReport


@pytest.fixture
def runner(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    kit = Kit(tmp_path / "kit")
    kit.history.commit().write("vllm/a.py", b"1\n").tag("v1")
    kit.history.branch("p1", at="v1").commit().write("vllm/a.py", b"2\n")
    wheel = make(tmp_path / NAME, {"vllm/a.py": b"1\n"}).read_bytes()
    site.add(f"/files/{NAME}", wheel)
    site.add_package("vllm", entry(NAME, wheel))
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple")
    root, out = tmp_path / "project", tmp_path / "out"
    (root / "upstream").mkdir(parents=True)
    (root / "upstream/requirements.spark.lock").write_bytes(LOCK)
    (root / "ci").mkdir()
    (root / "ci/Dockerfile").write_bytes(DOCKERFILE.read_bytes())
    wanted = Wanted("vllm", "1.0", kit.tree("v1"), kit.tree("p1"), 5)
    report = build(
        kit.store, wanted, find("spark"), kit.series("v1", "p1"), out, tmp_path / "cache"
    )
    yield Runner(root, out, report)
    kit.close()


def contents(folder: Path) -> dict[str, tuple[bytes, int, float]]:
    """Bytes, mode and date of every file by its path."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        path.relative_to(folder).as_posix(): (
            path.read_bytes(),
            path.stat().st_mode,
            path.stat().st_mtime,
        )
        for path in files
    }


def test_the_folder_holds_all_that_the_dockerfile_copies(runner: Runner) -> None:
    folder = context(runner.root, runner.report, runner.out)
    assert sorted(contents(folder)) == [
        "Dockerfile",
        "build.cdx.json",
        "build.intoto.json",
        "build.json",
        "provenance.json",
        "requirements.lock",
        "runner.lock",
        f"wheels/{runner.report.built.path.name}",
    ]
    for line in re.findall(
        r"(?m)^COPY (?!--from)(.+) \S+$", DOCKERFILE.read_text(encoding="utf-8")
    ):
        assert all((folder / name).exists() for name in line.split())


def test_labels_and_provenance_say_what_is_inside(runner: Runner) -> None:
    folder = context(runner.root, replace(runner.report, lock="ab" * 32), runner.out)
    text = (folder / "Dockerfile").read_text(encoding="utf-8")
    built = runner.report.built
    for line in (
        f"VERSION={built.version}",
        f"TREE={runner.report.wanted.tree}",
        f"LOCK={'ab' * 32}",
    ):
        assert f"\nARG {line}\n" in text
    assert "unknown\n" not in text
    told = json.loads((folder / "provenance.json").read_bytes())
    assert (told["schema"], told["tree"]) == ("patchq.image/1", runner.report.wanted.tree)
    assert len(told["images"]) == 2
    rest = {
        name: data for name, (data, *_) in contents(folder).items() if name != "provenance.json"
    }
    assert {each["name"]: (each["sha256"], each["size"]) for each in told["files"]} == {
        name: (hashlib.sha256(data).hexdigest(), len(data)) for name, data in rest.items()
    }


def test_the_same_inputs_give_the_same_folder(runner: Runner) -> None:
    first = contents(context(runner.root, runner.report, runner.out))
    (runner.out / "image/stray").touch()
    again = contents(context(runner.root, runner.report, runner.out))
    assert first == again
    assert {mode & 0o777 for _, mode, _ in first.values()} == {0o644}
    assert not list(runner.out.glob(".image*"))


def install(folder: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """What the Dockerfile does with the runner's own wheels."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--require-hashes",
        "--no-index",
    ]
    other = ["--platform", "manylinux_2_28_aarch64", "--only-binary", ":all:", "--target", target]
    wheels = ["--find-links", folder / "wheels", "--requirement", folder / "runner.lock"]
    return subprocess.run([*pip, *other, *wheels], capture_output=True, text=True)


def test_pip_takes_the_wheel_by_its_hash_alone(runner: Runner, tmp_path: Path) -> None:
    folder = context(runner.root, runner.report, runner.out)
    done = install(folder, tmp_path / "site")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site/vllm/a.py").read_bytes() == b"2\n"
    (wheel,) = (folder / "wheels").iterdir()
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    assert "DO NOT MATCH THE HASHES" in install(folder, tmp_path / "other").stderr


def test_components_with_patches_of_their_own_go_along(runner: Runner, tmp_path: Path) -> None:
    path = make(tmp_path / "b12x-1.2+patchq-py3-none-any.whl", {"b12x/a.py": b""})
    digest, size = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size
    wheel = Wheeled(path, digest, size, "1.2+patchq", "0" * 40, (), (), ())
    parts = (
        Part(Component("b12x", "kernels"), "patched", wheel=wheel),
        Part(Component("exllamav3", "kernels"), "source"),
    )
    folder = context(runner.root, replace(runner.report, parts=parts), runner.out)
    assert (folder / "wheels" / path.name).read_bytes() == path.read_bytes()
    lock = (folder / "runner.lock").read_text(encoding="utf-8").splitlines()
    assert lock[1] == f"b12x==1.2+patchq --hash=sha256:{digest}"
    told = json.loads((folder / "provenance.json").read_bytes())
    assert told["not_inside"] == ["exllamav3"]


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only program on PATH: writes down how it is called, and the id of no image."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "docker"
    program.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys\n"
        "if sys.argv[1:] == ['version']: sys.exit(0)\n"
        f"pathlib.Path({str(tmp_path / 'called')!r}).write_text('\\n'.join(sys.argv[1:]))\n"
        "print('Step 1/1')\n"
        "if pathlib.Path(sys.argv[-1], 'fail').exists(): sys.exit('no space \\x1b[31mleft')\n"
        "pathlib.Path(sys.argv[sys.argv.index('--iidfile') + 1]).write_text('sha256:abc')\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return program


def test_docker_is_asked_to_build_it(runner: Runner, docker: Path, tmp_path: Path) -> None:
    """The call alone: what docker makes of it is docker's."""
    made = image(runner.root, runner.report, runner.out, tmp_path / "logs")
    called = (tmp_path / "called").read_text(encoding="utf-8").split("\n")
    tag = f"patchq/vllm:1.0-patchq.5.g{runner.report.wanted.tree[:12]}"
    assert called[:5] == ["build", "--platform", "linux/arm64", "--tag", tag]
    assert called[-1] == str(runner.out / "image")
    assert (made.id, made.tag) == ("sha256:abc", tag)
    told = builds.as_json(runner.report, made)["image"]
    assert (told["id"], told["context"]) == ("sha256:abc", str(runner.out / "image"))


def test_a_build_that_fails_shows_its_last_lines(
    runner: Runner, docker: Path, tmp_path: Path
) -> None:
    docker.write_text(
        docker.read_text(encoding="utf-8").replace("'fail'", "'Dockerfile'"), encoding="utf-8"
    )
    with pytest.raises(PatchqError, match=r"ended with status 1: no space \\x1b") as raised:
        image(runner.root, runner.report, runner.out, tmp_path / "logs")
    assert "\x1b" not in raised.value.message
    assert b"no space" in (tmp_path / "logs/image.log").read_bytes()
    assert (runner.out / "image/Dockerfile").is_file()


@pytest.mark.parametrize("there", [False, True], ids=["none", "no daemon"])
def test_without_docker_the_command_is_said(
    runner: Runner, docker: Path, tmp_path: Path, there: bool
) -> None:
    if there:
        docker.write_text(f"#!{sys.executable}\nraise SystemExit('Cannot connect')\n", "utf-8")
    else:
        docker.unlink()
    made = image(runner.root, runner.report, runner.out, tmp_path / "logs")
    assert made.id is None
    assert made.command.startswith(
        "docker build --platform linux/arm64 --tag patchq/vllm:1.0-patchq"
    )
    assert made.command.endswith(str(runner.out / "image"))


def test_what_an_image_needs(runner: Runner) -> None:
    file = runner.root / "ci/Dockerfile"
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r"(BASE=\S+)@sha256:\w+", r"\1", text), encoding="utf-8")
    with pytest.raises(PatchqError, match=r"ci/Dockerfile stands on nvidia/cuda:\S+runtime"):
        context(runner.root, runner.report, runner.out)
    file.write_text(text.replace("ARG TREE=unknown\n", ""), encoding="utf-8")
    with pytest.raises(PatchqError, match="0 lines `ARG TREE=unknown`"):
        context(runner.root, runner.report, runner.out)
    file.unlink()
    with pytest.raises(PatchqError, match="needs ci/Dockerfile"):
        context(runner.root, runner.report, runner.out)
    (runner.root / "upstream/requirements.spark.lock").unlink()
    with pytest.raises(PatchqError, match=r"needs upstream/requirements\.spark\.lock"):
        context(runner.root, runner.report, runner.out)
    assert not (runner.out / "image").exists()


def test_what_no_image_is_for() -> None:
    asked_for("spark", verify=False)
    with pytest.raises(UsageError, match="no image for cpu"):
        asked_for("cpu", verify=False)
    with pytest.raises(UsageError, match="do not go together"):
        asked_for("spark", verify=True)


def test_hadolint_finds_nothing() -> None:
    lint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([lint, "--no-color", DOCKERFILE], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_image_has_no_compiler() -> None:
    """Its last stage: what is built is built before."""
    last = DOCKERFILE.read_text(encoding="utf-8").rpartition("\nFROM ")[2]
    words = set(re.findall(r"[a-z+-]+", last))
    assert last.startswith("${BASE}\n")
    assert (
        "devel"
        not in re.findall(r"(?m)^ARG BASE=(\S+)$", DOCKERFILE.read_text(encoding="utf-8"))[0]
    )
    assert not words & {
        "gcc",
        "g++",
        "clang",
        "nvcc",
        "build-essential",
        "python3-dev",
        "libc6-dev",
    }
