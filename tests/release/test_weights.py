"""Models from their own source: at the pinned revision, verified, resumed, or taken from here."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchq.release import from_hub
from patchq.release.manifest import ModelIs
from patchq.upstream import download, web
from tests.support.fleet import fleet
from tests.support.inside import Said, call
from tests.support.press import COMMIT, Hub, Press
from tests.upstream.conftest import Site

PLACE = f"tiny-{COMMIT[:8]}"
INDEX = json.dumps({"weight_map": {"a": "model-1.safetensors"}}).encode()
FILES = {
    "model-1.safetensors": bytes(range(256)) * 12_000,
    "model.safetensors.index.json": INDEX,
    "config.json": b"{}",
    "sub/notes.txt": b"small",
    ".gitattributes": b"* text=auto\n",
}
SHARD = f"/someone/tiny/resolve/{COMMIT}/model-1.safetensors"
TINY = ModelIs(kind="model", name="tiny", repository="someone/tiny", revision=COMMIT[:8])
TEMPLATE = ModelIs(kind="template", name="chat", repository="maker/tiny", revision=COMMIT)
PROFILE = """\
model = "tiny"
template = "chat"
served_name = "{name}"
[limits]
ready = 60
"""


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.stop()


@pytest.fixture
def hub(site: Site, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """The hub, which HF_ENDPOINT names."""
    monkeypatch.setenv("HF_ENDPOINT", site.url)
    monkeypatch.setattr(download, "_PAUSE", 0.0)
    monkeypatch.setattr(web, "_PAUSE", 0.0)
    made = Hub(site)
    made.add("someone/tiny", FILES)
    made.add("maker/tiny", {"chat_template.jinja": b"{{ messages }}"})
    return made


@pytest.fixture
def press(tmp_path: Path) -> Press:
    return Press(tmp_path / "press")


def install(press: Press, number: int = 1, *more: str, code: int = 0) -> Said:
    given = ("--cluster", str(press.cluster()), "--signers", str(press.signers))
    return call(Path.cwd(), "install", str(press.place(number)), *given, *more, code=code)


def content(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_fetched_verified_served_and_removed(sealed: Path, hub: Hub, press: Press) -> None:
    press.cut(1, models=(TINY, TEMPLATE), profile=PROFILE)
    said = install(press)
    assert f"here: model {PLACE} fetched and verified" in said.out
    assert content(sealed / "models" / PLACE) == FILES
    template = sealed / f"patchq/templates/chat-{COMMIT[:12]}.jinja"
    assert template.read_bytes() == b"{{ messages }}"
    call(sealed, "cluster", "start")
    try:
        log = call(sealed, "cluster", "logs").out
        assert f"serve {sealed}/models/{PLACE} " in log and f"--chat-template {template}" in log
    finally:
        call(sealed, "cluster", "stop")
    asked = hub.site.asked(SHARD)
    said = install(press)
    assert f"model {PLACE} was there" in said.out and hub.site.asked(SHARD) == asked
    assert f"with the models {PLACE}" in call(sealed, "uninstall").out
    assert not (sealed / "models").exists()


def test_a_line_that_breaks_is_gone_on_with(sealed: Path, hub: Hub, press: Press) -> None:
    press.cut(1, models=(TINY,))
    hub.site.replies[SHARD].cuts = [1_500_000, 200_000]
    hub.site.replies[f"/api/models/someone/tiny/revision/{COMMIT[:8]}"].failures = [502, 429]
    install(press)
    ranges = [each.headers.get("Range") for each in hub.site.log if each.path == SHARD]
    assert ranges == [None, "bytes=1500000-", "bytes=1700000-"]
    call(sealed, "uninstall", "--keep-models")
    assert content(sealed / "models" / PLACE) == FILES


def test_it_goes_on_after_a_day_without_a_network(sealed: Path, hub: Hub, press: Press) -> None:
    press.cut(1, models=(TINY,))
    hub.site.replies[SHARD].cuts = [1_000_000, *[0] * 20]
    said = install(press, code=1)
    assert "it goes on where it ended" in said.err
    assert not (sealed / "models" / PLACE).exists() and not (sealed / "patchq/current").exists()
    hub.site.replies[SHARD].cuts = []
    hub.site.log.clear()
    install(press)
    (shard,) = [each for each in hub.site.log if each.path == SHARD]
    assert shard.headers["Range"] == "bytes=1000000-"


def test_another_revision_than_the_pinned_one(sealed: Path, hub: Hub, press: Press) -> None:
    press.cut(1, models=(TINY,))
    path = f"/api/models/someone/tiny/revision/{COMMIT[:8]}"
    reply = hub.site.replies[path]
    reply.data = reply.data.replace(COMMIT.encode(), b"f" * 40)
    said = install(press, code=1)
    assert f"gives someone/tiny at {'f' * 40}, not at {COMMIT[:8]}" in said.err
    del hub.site.replies[path]
    said = install(press, code=1)
    assert f"has no someone/tiny at the revision {COMMIT[:8]}" in said.err
    assert not (sealed / "patchq/current").exists()


@pytest.mark.parametrize("path", ["model-1.safetensors", "config.json"])
def test_other_bytes_than_the_hub_promises(sealed: Path, hub: Hub, press: Press, path: str) -> None:
    press.cut(1, models=(TINY,))
    reply = hub.site.replies[f"/someone/tiny/resolve/{COMMIT}/{path}"]
    reply.data = bytes(len(reply.data))
    said = install(press, code=5 if path == "config.json" else 1)
    assert f"{path} " in said.err and "is not what the hub promises" in said.err
    assert not (sealed / "models" / PLACE).exists()


def test_an_index_that_the_release_was_not_tested_with(
    sealed: Path, hub: Hub, press: Press
) -> None:
    pinned = ModelIs(**{**vars(TINY), "sha256": "0" * 64})
    press.cut(1, models=(pinned,))
    said = install(press, code=5)
    assert "tiny is not what the release was tested with" in said.err
    assert not (sealed / "models" / PLACE).exists()


def test_a_copy_that_is_there_is_taken(sealed: Path, hub: Hub, press: Press) -> None:
    """Whole, it is; with one byte changed it is fetched beside, and the copy stays as it is."""
    press.cut(1, models=(TINY,))
    copy = sealed / "models/tiny"
    for path, data in FILES.items():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(data)
    said = install(press)
    assert f"model {PLACE} a copy that was there is taken" in said.out
    assert os.readlink(sealed / "models" / PLACE) == str(copy)
    assert not hub.site.asked(SHARD)
    call(sealed, "uninstall")
    assert content(copy) == FILES and not (sealed / "models" / PLACE).is_symlink()
    (copy / "config.json").write_bytes(b"[]")
    assert "fetched and verified" in install(press).out
    assert content(sealed / "models" / PLACE) == FILES
    assert (copy / "config.json").read_bytes() == b"[]"


def cached(home: Path) -> Path:
    """The model in the hub's own cache: links to blobs. The folder that holds the links."""
    cache = home / ".cache/huggingface/hub/models--someone--tiny"
    snapshot = cache / "snapshots" / COMMIT
    for path, data in FILES.items():
        blob = cache / "blobs" / hashlib.sha256(data).hexdigest()
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(data)
        (snapshot / path).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / path).symlink_to(blob)
    return snapshot


def test_the_hubs_own_cache_is_taken(sealed: Path, hub: Hub, press: Press) -> None:
    press.cut(1, models=(TINY,))
    snapshot = cached(sealed)
    install(press)
    assert os.readlink(sealed / "models" / PLACE) == str(snapshot)
    assert not hub.site.asked(SHARD)


def test_no_room_for_them(
    sealed: Path, hub: Hub, press: Press, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen before a byte is fetched, or when the disk is full all the same."""
    press.cut(1, models=(TINY,))
    huge = {**FILES, "model-2.safetensors": b"x" * 2000}
    hub.add("someone/tiny", huge)
    path = f"/api/models/someone/tiny/revision/{COMMIT[:8]}"
    reply = hub.site.replies[path]
    reply.data = reply.data.replace(b'"size": 2000', b'"size": 99000000000000000')
    said = install(press, code=1)
    assert "someone/tiny does not fit into" in said.err and "GB are free" in said.err
    assert not hub.site.asked(SHARD)
    hub.add("someone/tiny", FILES)

    def refuse(file: object, chunk: bytes) -> None:
        raise OSError(28, "No space left on device")

    kept = download._put
    monkeypatch.setattr(from_hub.downloads, "_put", lambda f, c: _fill(f, c, kept, refuse))
    said = install(press, code=1)
    assert "model-1.safetensors does not fit into" in said.err
    assert "give `models` of the node another place" in said.err
    assert not (sealed / "patchq/current").exists()
    call(sealed, "uninstall")
    assert not (sealed / "models").exists(), "what was under way goes, too"


def _fill(file: object, chunk: bytes, put: object, refuse: object) -> None:
    assert callable(put) and callable(refuse)
    (refuse if "models" in str(getattr(file, "name", "")) else put)(file, chunk)


def test_terms_that_have_to_be_accepted(
    sealed: Path, hub: Hub, press: Press, monkeypatch: pytest.MonkeyPatch
) -> None:
    press.cut(1, models=(TINY,))
    path = f"/api/models/someone/tiny/revision/{COMMIT[:8]}"
    hub.site.replies[path].failures = [401]
    said = install(press, code=1)
    assert "the server answered 401" in said.err and "HF_TOKEN" in said.err
    monkeypatch.setenv("HF_TOKEN", "hf_very_secret_indeed")
    hub.site.log.clear()
    install(press)
    sent = {each.headers.get("Authorization") for each in hub.site.log}
    assert sent == {"Bearer hf_very_secret_indeed"}
    hub.site.replies[path].failures = [403]
    shutil.rmtree(sealed / "models")
    assert "hf_very" not in install(press, code=1).err


def test_offline_only_what_is_here(sealed: Path, hub: Hub, press: Press) -> None:
    pinned = ModelIs(**{**vars(TINY), "sha256": hashlib.sha256(INDEX).hexdigest()})
    press.cut(1, models=(pinned,))
    said = install(press, 1, "--offline", code=1)
    assert "tiny is not on every node, and --offline forbids to fetch it" in said.err
    copy = sealed / "models/tiny"
    copy.mkdir(parents=True)
    (copy / "model.safetensors.index.json").write_bytes(INDEX)
    hub.site.log.clear()
    install(press, 1, "--offline")
    assert (sealed / "models" / PLACE).resolve() == copy and hub.site.log == []
    call(sealed, "uninstall")
    (copy / "model.safetensors.index.json").write_bytes(b"{}")
    said = install(press, 1, "--offline", code=5)
    assert "is not what the release was tested with" in said.err


def test_fetched_once_for_two_machines(hub: Hub, press: Press, tmp_path: Path) -> None:
    """This machine is neither: what was fetched goes on to both, and nothing of it stays here."""
    press.cut(1, models=(TINY, TEMPLATE), profile=PROFILE + "\n[environment]\nA = '1'\n")
    with fleet(tmp_path / "fleet") as nodes:
        given = ("--cluster", str(press.fleet(nodes)))
        given += ("--signers", str(press.signers))
        said = call(Path.cwd(), "install", str(press.place(1)), *given)
        assert said.out.count("shipped and verified") == 2 and hub.site.asked(SHARD) == 1
        for home in nodes.homes:
            assert content(home / "models" / PLACE) == FILES
            assert (home / f"patchq/templates/chat-{COMMIT[:12]}.jinja").exists()
        assert not (Path.home() / ".local/share/patchq/models").exists()
        shutil.rmtree(nodes.homes[1] / "models" / PLACE)
        said = call(Path.cwd(), "install", str(press.place(1)), *given)
        assert f"node-0: model {PLACE} was there" in said.out
        assert f"node-1: model {PLACE} shipped and verified" in said.out


def test_a_cache_of_links_goes_to_the_other_machine_as_files(
    sealed: Path, hub: Hub, press: Press, tmp_path: Path
) -> None:
    """This machine is one of the two, and has the hub's cache; the other one has nothing."""
    press.cut(1, models=(TINY,))
    cached(sealed)
    with fleet(tmp_path / "fleet") as nodes:
        file = press.fleet(nodes)
        file.write_text(file.read_text().replace('ssh = "node-0"\n', ""))
        given = ("--cluster", str(file), "--signers", str(press.signers))
        said = call(Path.cwd(), "install", str(press.place(1)), *given)
        assert f"node-0: model {PLACE} a copy that was there is taken" in said.out
        assert not hub.site.asked(SHARD)
        there = nodes.homes[1] / "models" / PLACE
        assert content(there) == FILES
        assert not any(path.is_symlink() for path in there.rglob("*"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"config.json"', b'"../../evil.json"'),
        (b'"config.json"', b'"/etc/evil.json"'),
        (b'"siblings"', b'"brothers"'),
        (b'"size": 2', b'"size": -2'),
        (b"{", b"["),
    ],
)
def test_a_hub_that_says_something_else(
    sealed: Path, hub: Hub, press: Press, old: bytes, new: bytes
) -> None:
    press.cut(1, models=(TINY,))
    reply = hub.site.replies[f"/api/models/someone/tiny/revision/{COMMIT[:8]}"]
    assert old in reply.data
    reply.data = reply.data.replace(old, new)
    said = install(press, code=1)
    assert "does not say what someone/tiny holds" in said.err
    assert not list(sealed.rglob("evil*"))
