"""Releases of a git repository: a path is read in place, a URL fetched without its old contents."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.upstream.history import History as Upstream
from patchq.upstream.history import local_git_dir
from tests.support.history import History, git

Open = Callable[..., Upstream]


@pytest.fixture
def history(tmp_path: Path) -> History:
    """v1, v2 (annotated) and v2.1rc1 on main, a branch that goes on at v1."""
    history = History(tmp_path / "up")
    history.commit("one").write("a", b"1\n").write("old", b"old\n").tag("v1").tag("nightly")
    history.commit("two").write("a", b"2\n").delete("old").tag("v2", annotated=True)
    history.commit("three").write("a", b"3\n").tag("v2.1rc1")
    history.branch("topic/x", at="v1").commit("ours").write("b", b"b\n")
    history.save()
    git(history.path, "config", "uploadpack.allowFilter", "true")
    return history


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    with contextlib.ExitStack() as stack:

        def make(url: object, **options: bool) -> Upstream:
            made = Upstream(str(url), tmp_path / "cache", **options)
            return stack.enter_context(contextlib.closing(made))

        yield make


def rev(history: History, name: str) -> str:
    return git(history.path, "rev-parse", name).decode().strip()


def objects_here(upstream: Upstream) -> int:
    """Objects in the store itself."""
    done = upstream.store.git(["count-objects", "-v"])
    counts = dict(line.split(": ") for line in done.out.decode().splitlines())
    return int(counts["count"]) + int(counts["in-pack"])


@pytest.fixture(params=["path", "url"])
def upstream(request: pytest.FixtureRequest, history: History, opened: Open) -> Upstream:
    return opened(history.path if request.param == "path" else f"file://{history.path}")


def test_a_release_by_any_name(history: History, upstream: Upstream) -> None:
    for name, called, ref in (
        ("v1", "v1", "v1"),
        ("1", "v1", "v1"),
        ("v2", "v2", "v2"),
        ("topic/x", "topic/x", "topic/x"),
        ("main", "main", "main"),
        (rev(history, "v1"), rev(history, "v1"), "v1"),
        (rev(history, "main")[:9], rev(history, "main")[:9], "main"),
    ):
        found = upstream.release(name)
        commit = rev(history, f"{ref}^{{commit}}")
        assert (found.name, found.commit, found.facts) == (called, commit, ())
        walked = upstream.store.objects.walk(found.tree)
        seen = {path: upstream.store.objects.blob(entry.oid) for path, entry in walked}
        assert seen == {path: entry.data for path, entry in history.tree(ref).items()}


def test_a_tag_is_meant_before_a_branch_of_its_name(history: History, upstream: Upstream) -> None:
    git(history.path, "update-ref", "refs/heads/v1", "main")
    assert upstream.release("v1").commit == rev(history, "refs/tags/v1")


def test_the_newest_release_is_a_version_and_final(upstream: Upstream) -> None:
    assert upstream.latest() == "v2"


def test_no_version_at_all(tmp_path: Path, opened: Open) -> None:
    history = History(tmp_path / "bare")
    history.commit("x").tag("nightly").tag("v1rc1")
    history.save()
    with pytest.raises(PatchqError, match="has no tag that is a version") as caught:
        opened(history.path).latest()
    assert "--onto REF" in caught.value.hint


@pytest.mark.parametrize(
    "name", ["v3", "", "-x", "--help", "v1..v2", "refs/heads/none", "1" * 40, "a\nb", "\udcff"]
)
def test_an_unknown_release_says_which_exist(upstream: Upstream, name: str) -> None:
    with pytest.raises(PatchqError, match="has no tag, branch or commit") as caught:
        upstream.release(name)
    assert caught.value.hint == "its newest tags are: nightly, v1, v2, v2.1rc1"


def test_a_repository_without_tags(tmp_path: Path, opened: Open) -> None:
    history = History(tmp_path / "bare")
    history.commit("x")
    history.save()
    with pytest.raises(PatchqError) as caught:
        opened(history.path).release("v1")
    assert caught.value.hint == "its newest tags are: none"


def test_a_tag_that_moved(history: History, upstream: Upstream) -> None:
    """What was recorded counts; without a record the tag as it is now."""
    was = rev(history, "v1")
    first = upstream.release("v1")
    assert first.commit == was
    git(history.path, "tag", "-f", "v1", "main")
    upstream._fetched = False
    recorded = upstream.release("v1", commit=was)
    assert (recorded.name, recorded.commit, recorded.tree) == ("v1", was, first.tree)
    upstream._fetch()
    assert upstream.release("v1").commit == rev(history, "main")
    assert upstream.release("v1", commit=was).commit == was
    gone = "1" * 40
    assert upstream.release("v1", commit=gone).commit == rev(history, "main")


# --- a path


def test_a_path_is_read_in_place(history: History, opened: Open) -> None:
    upstream = opened(history.path, offline=True)
    upstream.release("v1")
    as_of = upstream.as_of()
    assert objects_here(upstream) == 0
    assert (as_of.source, as_of.complete, as_of.history) == (f"git, {history.path}", True, True)
    assert abs((datetime.now(UTC) - as_of.when).total_seconds()) < 60
    # What is new there is there at once.
    history.branch("main").commit("four").write("a", b"4\n").tag("v4")
    history.save()
    assert upstream.release("v4").commit == rev(history, "v4")
    assert upstream.latest() == "v4"


def test_the_repository_of_a_path(history: History, tmp_path: Path, sealed: Path) -> None:
    """Bare, with a work tree, a linked work tree, below the home folder; never one around it."""
    git(tmp_path, "clone", "-q", str(history.path), str(sealed / "clone"))
    git(sealed / "clone", "worktree", "add", "-q", "../linked")
    (sealed / "clone/sub").mkdir()
    assert local_git_dir(str(history.path)) == history.path
    for value in (sealed / "clone", sealed / "clone/.git", sealed / "linked", "~/clone"):
        assert local_git_dir(str(value)) == sealed / "clone/.git"
    odd = sealed / "odd:name"
    odd.symlink_to(history.path)
    assert local_git_dir(str(odd)) == history.path
    for value in (sealed / "clone/sub", sealed / "none", tmp_path, __file__):
        with pytest.raises(PatchqError, match="is not a git repository"):
            local_git_dir(str(value))


@pytest.mark.parametrize(
    "value",
    [
        "https://example.org/up.git", "ssh://git@example.org/up", "file:///srv/up", "git://x/y",
        "git@example.org:owner/up.git", "git@example.org:/srv/up.git", "host:/srv/up.git",
        "host:up",
    ],
)  # fmt: skip
def test_addresses_are_no_paths(value: str) -> None:
    assert local_git_dir(value) is None


@pytest.mark.parametrize("value", ["--upload-pack=evil", "-x", "ext::sh -c evil"])
def test_addresses_that_are_commands(value: str, opened: Open) -> None:
    with pytest.raises(PatchqError, match="is not a repository address"):
        opened(value)


# --- a URL


def test_a_url_brings_the_contents_of_one_release_only(history: History, opened: Open) -> None:
    upstream = opened(f"file://{history.path}")
    upstream.release("v2")
    missing = upstream.store.git(
        ["rev-list", "--objects", "--all", "--missing=print", "--filter=blob:none"]
    ).out.decode()
    blobs = {name: rev(history, f"{name}:a") for name in ("v1", "v2", "v2.1rc1")}
    have = upstream.store.git(
        ["cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)"]
    ).out.decode()
    assert blobs["v2"] in have and blobs["v1"] not in have and blobs["v2.1rc1"] not in have
    assert rev(history, "topic/x^{commit}") in missing, "all of the history, without contents"


def test_offline_a_url_gives_what_is_here(history: History, opened: Open) -> None:
    url = f"file://{history.path}"
    with pytest.raises(PatchqError, match="has no tag, branch or commit 'v1'"):
        opened(url, offline=True).release("v1")
    brought = opened(url).release("v1")
    history.path.rename(history.path.with_name("away"))
    upstream = opened(url, offline=True)
    assert upstream.release("v1") == brought
    assert upstream.latest() == "v2"
    assert not upstream.as_of().complete
    with pytest.raises(PatchqError, match=r"1 files of .* are not in the store, and --offline"):
        upstream.release("v2")


def test_out_of_reach_a_url_gives_what_is_here(history: History, opened: Open) -> None:
    url = f"file://{history.path}"
    first = opened(url)
    brought = first.release("v1")
    assert first.as_of().complete
    stamp = first.store.path / "patchq-fetched"
    os.utime(stamp, (1_750_000_000, 1_750_000_000))
    history.path.rename(history.path.with_name("away"))
    upstream = opened(url)
    assert upstream.release("v1") == brought
    assert upstream.latest() == "v2"
    as_of = upstream.as_of()
    assert (as_of.complete, as_of.when) == (False, datetime.fromtimestamp(1_750_000_000, UTC))


def test_a_url_that_was_never_reached(tmp_path: Path, opened: Open) -> None:
    url = f"file://{tmp_path}/none"
    with pytest.raises(PatchqError, match=r"none cannot be fetched: .*does not appear") as caught:
        opened(url).release("v1")
    assert "a path to a clone works as well" in caught.value.hint


def test_a_password_is_not_shown(opened: Open) -> None:
    upstream = opened("https://me:secret@127.0.0.1:1/up.git")
    with pytest.raises(PatchqError) as caught:
        upstream.release("v1")
    assert "secret" not in caught.value.message + upstream.as_of().source
    assert "https://127.0.0.1:1/up.git" in caught.value.message


def test_two_urls_have_two_stores(history: History, opened: Open, tmp_path: Path) -> None:
    other = History(tmp_path / "deep" / "up")
    other.path.parent.mkdir()
    other.commit("x").tag("v9")
    other.save()
    one, two = opened(f"file://{history.path}"), opened(f"file://{other.path}")
    assert one.store.path != two.store.path
    assert (one.latest(), two.latest()) == ("v2", "v9")


def test_a_server_that_cannot_leave_contents_out(history: History, opened: Open) -> None:
    git(history.path, "config", "uploadpack.allowFilter", "false")
    upstream = opened(f"file://{history.path}")
    found = upstream.release("v1")
    assert [path for path, _ in upstream.store.objects.walk(found.tree)] == [b"a", b"old"]
