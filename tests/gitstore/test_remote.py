"""Some refs of a remote: exactly those, whatever stands beside them."""

from __future__ import annotations

from pathlib import Path

from patchq.gitstore import remote
from patchq.gitstore.store import Store
from tests.support.history import History


def test_some_refs(tmp_path: Path) -> None:
    history = History(tmp_path / "up")
    history.commit("one").write("a", b"1\n").tag("v1")
    history.commit("two").write("a", b"2\n")
    history.branch("pull/1", at="v1").commit("pull").write("b", b"1\n")
    history.branch("pull/12", at="v1").commit("other").write("b", b"2\n")
    history.save()
    there = remote.heads(history.path, ["refs/heads/main", "refs/heads/pull", "refs/heads/pull/1"])
    assert there.keys() == {"refs/heads/main", "refs/heads/pull/1"}, "no folder, nothing near"
    assert remote.heads(history.path, []) == {}

    with Store(tmp_path / "store") as store:
        remote.configure(store, str(history.path))
        refs = {f"refs/heads/{name}": f"refs/x/{name}" for name in ("main", "pull/1", "pull/7")}
        assert remote.fetch(store, refs).code == 0
        brought = remote.heads(store.path, refs.values())
        assert brought["refs/x/pull/1"] == there["refs/heads/pull/1"]
        assert "refs/x/pull/7" not in brought
        one, main = brought["refs/x/pull/1"], brought["refs/x/main"]
        assert remote.merge_base(store, one, main) == store.resolve(f"{main}^")
        assert remote.merge_base(store, one, "0" * 40) is None


def test_no_remote(tmp_path: Path) -> None:
    with Store(tmp_path / "store") as store:
        remote.configure(store, str(tmp_path / "gone"))
        done = remote.fetch(store, {"refs/heads/main": "refs/x/main"})
        assert done.code != 0 and done.why
