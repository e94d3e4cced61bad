"""From the shipped series to a user's server, on to the next release, and back. All of it is real
but GitHub: two machines (network namespaces), vLLM on both, ssh, keys, packages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.scenarios.conftest import cache as cache
from tests.support import answering, runner, shelf
from tests.support.fleet import Fleet, fleet
from tests.support.forge.fixtures import forge, forge_server  # noqa: F401
from tests.support.forge.server import Forge
from tests.support.history import git
from tests.support.inside import call
from tests.support.netns import Node, two_nodes
from tests.support.press import COMMIT, Hub
from tests.support.real_fleet import BASE, prepare
from tests.support.vllm import Repository, shipped
from tests.upstream.conftest import Site

pytestmark = [
    *(pytest.mark.root, pytest.mark.runner, pytest.mark.network, pytest.mark.slow),
    # Two ranks take all that a small machine has: one story after another, and beside one server.
    pytest.mark.xdist_group("two-nodes"),
    pytest.mark.timeout(1800),
]
REPO = "acme/runner"
PINS = f"""
[[model]]
name = "tiny"
repository = "someone/tiny"
revision = "{COMMIT}"
why = "it was made for the probes"

[[template]]
name = "answers"
repository = "someone/tiny"
revision = "{COMMIT}"
file = "chat_template.jinja"
why = "it is the model's own"
"""
RULES = """
cluster = "netns"
profile = "real"
days = 1
[smoke]
left_out = ["image", "speculation"]
[bench]
contexts = [256]
[compare]
# Of a machine that two ranks and the tests share nothing can be said in one round.
verdicts = ["better", "same", "inconclusive", "worse"]
first = true
"""
# Of fewer tokens a busy machine may bring all at once, and then they have no rate.
MEASURED = (
    *("--context", "256", "--concurrency", "1", "--tokens", "64"),
    *("--rounds", "1", "--warmup", "0"),
)


@pytest.fixture
def places() -> Iterator[tuple[Node, Node]]:
    with two_nodes() as nodes:
        yield nodes


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.stop()


@dataclass(frozen=True)
class Maintainer:
    """`queue` is the project; `key` signs its releases."""

    queue: Repository
    nodes: Fleet
    key: Path

    def begin(self, forge: Forge, model: Path) -> None:  # noqa: F811
        root = self.queue.root
        prepare(self.nodes, runner.stock(BASE), model)
        with (root / "upstream/dependencies.toml").open("a") as file:
            file.write(PINS)
        (root / "ci/gate.toml").write_text(RULES)
        (root / "releases").mkdir()
        settings = f'github = "{REPO}"\ngithub_api = "{forge.api}"\n'
        (root / "releases/publish.toml").write_text(settings)
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(self.key)]
        subprocess.run(command, check=True)
        public = self.key.with_suffix(".pub").read_text().strip()
        signers = f'release@acme.example namespaces="patchq-release" {public}\n'
        (root / "releases/allowed_signers").write_text(signers)
        (root / ".gitignore").write_text("/build/\n")

    def release(self, number: int, forge: Forge, last: str | None = None) -> str:  # noqa: F811
        """Build, deploy, smoke, measure, judge, cut, publish. `last`: the runner lock of the release
        before; gives this one's."""
        queue, root = self.queue, self.queue.root
        queue.patchq("lock")
        queue.commit()
        queue.patchq("build", "--target", "cpu")
        self.nodes.call("deploy", "netns")
        self.nodes.call("start", "netns", "--profile", "real")
        try:
            on = ("--cluster", "netns", "--profile", "real")
            call(root, "smoke", *on)
            if last is None:
                call(root, "bench", *on, *MEASURED)
            else:
                before = root / f"build/evidence/{last[:16]}/bench.json"
                call(root, "compare", str(before), *on, *MEASURED, code=None)
        finally:
            self.nodes.call("stop", "netns")
        gate = call(root, "gate", "--json").json
        queue.patchq("release", "cut", "--key", str(self.key))
        git(root, "push", "-q", str(forge.repos[REPO].path), "+HEAD:refs/heads/main", "--tags")
        call(root, "release", "publish", str(number))
        lock: str = gate["lock"]
        return lock


@dataclass(frozen=True)
class User:
    """Somebody with a home, an account on two machines, and a link to a release's page."""

    home: Path
    packages: Path
    cluster: Path

    def run(self, *command: object, **more: str) -> str:
        done = subprocess.run(
            list(map(str, command)),
            cwd=self.home,
            env={
                "HOME": str(self.home),
                "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
                "NO_COLOR": "1",
                **more,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


def test_from_the_series_to_a_user_and_back(
    tmp_path: Path,
    cache: Path,
    places: tuple[Node, Node],
    forge: Forge,  # noqa: F811
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATCHQ_CACHE", str(cache))
    monkeypatch.setenv("GITHUB_TOKEN", forge.token)
    forge.repo(REPO)
    model = answering.models(runner.stock(BASE).python).answers
    Hub(site).add("someone/tiny", {each.name: each.read_bytes() for each in model.iterdir()})
    queue = shipped(tmp_path / "queue", cache)
    with fleet(tmp_path, places, queue.root) as nodes:
        ours = Maintainer(queue, nodes, tmp_path / "key")
        ours.begin(forge, model)
        first = ours.release(1, forge)
        trees = [tree_of(queue)]

        user = somebody(tmp_path, nodes)
        page = f"{forge.url}/{REPO}/releases/download/release-1"
        script = user.home / "install.sh"
        script.write_bytes(requests.get(f"{page}/install.sh", timeout=60).content)
        told = {"HF_ENDPOINT": site.url, "GITHUB_API_URL": forge.api}
        given = ("--packages", user.packages, "--cluster", user.cluster)
        said = user.run("sh", script, "--from", page, *given, **told)
        assert "signed by release@acme.example" in said
        mine = user.home / ".local/bin/patchq"
        assert served(user, mine, places[0]) == trees[0]

        change(queue)
        ours.release(2, forge, first)
        trees.append(tree_of(queue))
        assert trees[0] != trees[1]
        user.run(mine, "install", "2", "--from", REPO, **told)
        assert served(user, mine, places[0]) == trees[1]
        said = user.run(mine, "rollback")
        assert "release 1 is the current one" in said
        assert served(user, mine, places[0]) == trees[0]
        user.run(mine, "uninstall")
        assert nodes.left() == []


def somebody(folder: Path, nodes: Fleet) -> User:
    """With a place of their own on each machine, beside the maintainer's."""
    user = User(folder / "user", folder / "packages", folder / "user.toml")
    user.home.mkdir()
    shelf.fill(user.packages, "patchq")
    clusters = nodes.root / "ci/clusters"
    text = (clusters / "netns.toml").read_text()
    user.cluster.write_text(text.replace("[[node]]\n", '[[node]]\nfolder = "mine"\n'))
    shutil.copy(clusters / "netns.ssh", folder)
    return user


def change(queue: Repository) -> None:
    """A patch more: the next release has another tree."""
    queue.patchq("new", "note", "--message", "A word in the logger")
    (tree,) = queue.root.glob(".git/patchq/work/*/tree")
    with (tree / "vllm/logger.py").open("a") as file:
        file.write("# The second release has this line.\n")
    queue.patchq("refresh")
    queue.patchq("pop", "--all")
    queue.patchq("check")


def tree_of(queue: Repository) -> str:
    return queue.patchq("tree").strip()


def served(user: User, patchq: Path, place: Node) -> Any:
    """The tree that the user's runner says it is, when it has answered."""
    user.run(patchq, "cluster", "start")
    try:
        with place.entered():
            said = requests.get("http://127.0.0.1:8000/version", timeout=60).json()
            message = {
                "role": "user",
                "content": "The code is amber 42. Reply with the code alone.",
            }
            body = {"model": "tiny", "messages": [message]}
            answer = requests.post(
                "http://127.0.0.1:8000/v1/chat/completions", json=body, timeout=120
            ).json()
    finally:
        user.run(patchq, "cluster", "stop")
    assert answer["choices"][0]["message"]["content"] == "amber 42"
    return said["patchq"]["tree"]
