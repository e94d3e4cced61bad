"""What runs on a cluster, as its nodes say it: bound, or refused with the reason."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchq.cluster import config
from patchq.cluster import profile as profiles
from patchq.cluster.deploy import Bundle, Wheel, deploy
from patchq.cluster.nodes import Reach
from patchq.config import Project
from patchq.errors import PatchqError
from patchq.smoke import identity
from patchq.smoke.identify import identify
from patchq.smoke.identity import Identity
from tests.support.fleet import Fleet, fleet

LOCK, TREE = "a" * 64, "b" * 40
DRAFTING = """
model = "tiny"
draft = "small"
template = "chat"
served_name = "tiny"
tensor_parallel = 2
[speculation]
method = "eagle"
"""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Fleet]:
    with fleet(tmp_path) as made:
        wheel = made.wheel()
        labels = {"target": "cpu", "lock": LOCK, "tree": TREE}
        sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
        bundle = Bundle((Wheel(wheel, sha256),), None, "3.11", labels)
        deploy(config.load(made.root, "two"), bundle)
        for home in made.homes:
            (home / "models/tiny/config.json").write_text("{}", encoding="utf-8")
            (home / "models/small").mkdir()
            (home / "models/small/model.safetensors").write_bytes(bytes(8) + b"weights")
            (home / "patchq/templates").mkdir()
            (home / "patchq/templates/chat.jinja").write_text("{{ x }}", encoding="utf-8")
        (made.root / "ci/profiles/tiny.toml").write_text(DRAFTING, encoding="utf-8")
        made.call("start", "two")
        try:
            yield made
        finally:
            made.call("stop", "two", code=None)


def identified(nodes: Fleet) -> Identity:
    cluster = config.load(nodes.root, "two")
    project = Project(nodes.root, nodes.root / ".git")
    with Reach(cluster) as reach:
        return identify(project, cluster, profiles.load(nodes.root, "tiny"), reach)


def test_it_is_bound_to_everything_and_notices_what_changes(nodes: Fleet) -> None:
    found = identified(nodes)
    profile = nodes.root / "ci/profiles/tiny.toml"
    assert (found.lock, found.tree, found.profile, found.cluster) == (LOCK, TREE, "tiny", "two")
    assert found.profile_sha256 == hashlib.sha256(profile.read_bytes()).hexdigest()
    assert found.template == hashlib.sha256(b"{{ x }}").hexdigest()
    ((name, _),) = found.artifacts
    assert name.endswith(".whl")
    assert [(each.name, each.rank) for each in found.nodes] == [("node-0", 0), ("node-1", 1)]
    assert identity.read(identity.as_json(found)) == found

    for home, key in ((nodes.homes[0], "model"), (nodes.homes[1], "draft")):
        folder = home / "models" / ("tiny" if key == "model" else "small")
        (folder / "more.json").write_text("{}", encoding="utf-8")
        other = identified(nodes)
        assert getattr(other, key) != getattr(found, key), "one node has another one"
        (folder / "more.json").unlink()
    assert identified(nodes) == found

    (nodes.homes[1] / "patchq/templates/chat.jinja").unlink()
    with pytest.raises(PatchqError, match="what its template is: not there"):
        identified(nodes)
    profile.write_text(f"{DRAFTING}num_speculative_tokens = 3\n", encoding="utf-8")
    with pytest.raises(PatchqError, match=r"tiny\.toml changed since two was started"):
        identified(nodes)
    profile.write_text(DRAFTING, encoding="utf-8")
    nodes.call("deploy", "two", "--wheel", str(nodes.wheel(build="another")))
    with pytest.raises(PatchqError, match="node-0 runs another release than"):
        identified(nodes)
    nodes.call("stop", "two")
    with pytest.raises(PatchqError, match="rank 0 does not run on node-0"):
        identified(nodes)
