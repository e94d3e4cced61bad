"""`patchq release cut`: all or nothing, and nothing where anything does not hold."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from patchq.carry import journal, lock
from patchq.release import manifest, record
from patchq.release.tables import to_table
from tests.release.shop import Shop
from tests.support import crash
from tests.support.history import git
from tests.support.inside import call


def test_a_release_is_a_commit_a_tag_and_a_bundle(shop: Shop) -> None:
    said = shop.cut("--json").json
    assert (said["ok"], said["number"], said["previous"], said["tag"]) == (
        True,
        1,
        None,
        "release-1",
    )
    assert (
        shop.git("rev-parse", "release-1^{commit}")
        == shop.git("rev-parse", "HEAD")
        == said["commit"]
    )
    assert shop.git("status", "--porcelain") == ""
    assert shop.git("show", "--format=", "--name-only", "HEAD").split() == [
        "releases/1.md",
        "releases/1.toml",
    ]
    assert said["release"]["schema"] == "patchq.release/1"
    toml = (shop.root / "releases/1.toml").read_bytes()
    assert toml == (shop.bundle / "release.toml").read_bytes()
    assert (shop.root / "releases/1.md").read_bytes() == (shop.bundle / "notes.md").read_bytes()
    checked = ["sha256sum", "-c", "--strict", "SHA256SUMS"]
    subprocess.run(checked, cwd=shop.bundle, check=True, capture_output=True)
    named = {line.split("  ")[1] for line in (shop.bundle / "SHA256SUMS").read_text().splitlines()}
    assert named == {path.name for path in shop.bundle.iterdir()} - {"SHA256SUMS", "SHA256SUMS.sig"}
    assert b"@ALLOWED_SIGNERS@" not in (shop.bundle / "install.sh").read_bytes()
    assert b"release@demo namespaces=" in (shop.bundle / "install.sh").read_bytes()
    assert set(said) == {
        *("schema", "number", "previous", "tag", "dry_run", "ok", "checks", "release"),
        *("folder", "commit", "entry"),
    }, "docs/json.md"
    verified = shop.call("release", "verify", "1", "--json").json
    assert set(verified) == {"schema", "what", "number", "ok", "checks"}, "docs/json.md"
    assert verified["ok"] and len(verified["checks"]) == 10
    (listed,) = shop.call("release", "list", "--json").json["releases"]
    assert set(listed) == {
        *("number", "date", "base", "tree", "lock", "patches", "previous", "tag", "bundle"),
        "withdrawn",
    }, "docs/json.md"
    assert (listed["tag"], listed["bundle"]) == (said["commit"], True)


def test_two_clones_cut_the_same_bytes(shop: Shop, tmp_path: Path) -> None:
    other = Shop(tmp_path / "other")
    other.folder.mkdir()
    git(tmp_path, "clone", "-q", str(shop.root), str(other.root))
    shutil.copytree(shop.root / "build", other.root / "build")
    for path in other.root.rglob("*"):
        if ".git" not in path.parts and path.is_file():
            os.utime(path, (1, 1))
    for name in ("key", "key.pub"):
        shutil.copy2(tmp_path / name, other.folder / name)
    for each in (shop, other):
        each.cut()
    assert files(shop.bundle) == files(other.bundle)
    assert len(files(shop.bundle)) > 10
    assert shop.git("rev-parse", "release-1^{tree}") == other.git("rev-parse", "release-1^{tree}")


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_date_is_that_of_the_commit_or_the_one_given(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = shop.git("log", "-1", "--format=%cd", "--date=format:%Y-%m-%dT%H:%M:%SZ")
    assert shop.cut("--dry-run", "--json").json["release"]["date"] == told
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    shop.cut()
    found = manifest.read_at(shop.root, 1)
    assert found is not None and found.date == "1970-01-02T00:00:00Z"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    assert "SOURCE_DATE_EPOCH" in shop.cut(code=1).err


def test_a_dry_run_changes_nothing(shop: Shop) -> None:
    before = shop.files(), shop.refs()
    said = shop.call("release", "cut", "--dry-run")  # nor does it need a key
    assert "release 1 would be cut" in said.out
    assert (shop.files(), shop.refs()) == before
    assert not shop.bundle.exists()


def held(shop: Shop) -> None:
    shop.call("hold", "second", "--why", "wait for upstream")
    shop.commit()


def uncommitted(shop: Shop) -> None:
    shop.write("series/notes", "mine\n")


def edited(shop: Shop) -> None:
    """The series by hand, past every proof."""
    shop.header("second", ("+2\n", "+3\n"), (first_blob(shop, "second"), f"..{'1' * 40}"))
    shop.commit()


def first_blob(shop: Shop, name: str) -> str:
    (path,) = shop.root.glob(f"series/*-{name}.patch")
    line = next(line for line in path.read_text().split("\n") if line.startswith("index "))
    return line.split()[1][40:]


def another_lock(shop: Shop) -> None:
    text = (shop.root / "upstream/dependencies.toml").read_text()
    shop.write("upstream/dependencies.toml", text.replace("0123", "3210"))
    shop.commit()


def another_wheel(shop: Shop) -> None:
    (wheel,) = shop.root.glob("build/cpu/*.whl")
    wheel.write_bytes(wheel.read_bytes() + b"\0")


def no_build(shop: Shop) -> None:
    shutil.rmtree(shop.root / "build/cpu")


def no_evidence(shop: Shop) -> None:
    shutil.rmtree(shop.root / "build/evidence")


def failed_probe(shop: Shop) -> None:
    from tests.smoke import runner_evidence as runners

    told = runners.smoke(shop.runner, {"needle": ("failed", "it does not find it")})
    told["probes"][0]["state"] = "failed"
    shop.runner.keep("smoke", told)


def edits(shop: Shop) -> None:
    """In the tree of push and pop."""
    shop.call("push", "--all")
    (shop.root / ".git/patchq/work/demo/tree/vllm/a.py").write_text("7\n")


@pytest.mark.parametrize(
    ("spoil", "code", "name", "says"),
    [
        (held, 5, "queue", "second is held (wait for upstream)"),
        (uncommitted, 5, "commit", "series/notes"),
        (edited, 5, "series", "it was changed by hand"),
        (another_lock, 5, "lock", "model/m/revision differs"),
        (another_wheel, 5, "artifact", "is not what the build's record says"),
        (no_build, 5, "artifact", "there is no build with the wheels"),
        (no_evidence, 6, "gate", "missing: there is no smoke.json"),
        (failed_probe, 5, "gate", "it has not passed"),
        (edits, 5, "queue", "edits in the working tree are in no patch"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_what_does_not_hold_is_no_release(
    shop: Shop, spoil: Callable[[Shop], None], code: int, name: str, says: str
) -> None:
    spoil(shop)
    before = shop.files(), shop.refs(), shop.git("status", "--porcelain")
    said = shop.cut("--json", code=None)
    assert said.code == code, said
    bad = {each["name"]: each["detail"] for each in said.json["checks"] if not each["ok"]}
    assert says in bad[name], bad
    assert (shop.files(), shop.refs(), shop.git("status", "--porcelain")) == before
    assert not shop.bundle.exists()
    assert f"NOT {name}" in shop.cut(code=code).out


def test_numbers_are_given_once_and_in_order(shop: Shop) -> None:
    assert "would leave a gap after 0" in shop.cut("--number", "3", code=1).err
    shop.cut("--number", "3", "--why", "1 and 2 were made elsewhere")
    found = manifest.read_at(shop.root, 3)
    assert found is not None and found.why == "1 and 2 were made elsewhere"
    before = shop.files(), shop.refs()
    assert "release 3 exists already" in shop.cut("--number", "3", code=1).err
    assert "would come before release 3" in shop.cut("--number", "2", code=1).err
    assert (shop.files(), shop.refs()) == before
    assert shop.cut("--json").json["number"] == 4


def test_a_tag_that_is_there_keeps_its_number(shop: Shop) -> None:
    shop.git("tag", "release-1")
    assert "release 1 exists already" in shop.cut(code=1).err


def test_a_bundle_from_elsewhere_is_not_overwritten(shop: Shop) -> None:
    (shop.bundle / "mine").mkdir(parents=True)
    assert "of a release that this repository does not know" in shop.cut(code=1).err
    assert (shop.bundle / "mine").is_dir() and shop.git("tag") == ""


def test_the_key_is_found_where_people_have_it(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "there is no key to sign" in shop.call("release", "cut", code=1).err
    assert "there is no key" in shop.call("release", "cut", "--key", "nowhere", code=1).err
    assert shop.git("tag") == ""
    shop.git("config", "gpg.format", "ssh")
    shop.git("config", "user.signingkey", str(shop.key))
    shop.call("release", "cut")
    shop.git("config", "--unset", "user.signingkey")
    monkeypatch.setenv("PATCHQ_SIGNING_KEY", str(shop.key))
    shop.call("release", "cut")
    assert shop.git("tag").split() == ["release-1", "release-2"]


def test_a_key_that_an_agent_holds(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is gone from here; the public half is enough to name it."""
    socket = shop.folder / "agent"
    with subprocess.Popen(
        ["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL
    ) as agent:
        try:
            while not socket.exists():
                assert agent.poll() is None
            monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
            subprocess.run(["ssh-add", "-q", str(shop.key)], check=True)
            shop.key.unlink()
            shop.git("config", "gpg.format", "ssh")
            shop.git(
                "config", "user.signingkey", f"key::{shop.key.with_suffix('.pub').read_text()}"
            )
            shop.call("release", "cut")
        finally:
            agent.terminate()
    shop.call("release", "verify", "1")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ('namespaces="patchq-release",valid-before="20200101"', "as expired"),
        ('namespaces="git"', "does not have for releases"),
        ('namespaces="patchq-release",valid-after="20990101"', "not valid yet"),
    ],
)
def test_a_key_that_does_not_count_makes_no_release(shop: Shop, options: str, says: str) -> None:
    shop.signers(options)
    shop.commit()
    before = shop.files(), shop.refs()
    said = shop.cut(code=1)
    assert says in said.err and "releases/allowed_signers" in said.err
    assert (shop.files(), shop.refs()) == before
    assert not shop.bundle.exists() and not list(shop.bundle.parent.glob(".*"))


def test_undo_takes_a_release_back_until_it_is_published(shop: Shop) -> None:
    start = shop.git("rev-parse", "HEAD")
    said = shop.cut("--json").json
    shop.call("undo", "--dry-run")
    assert shop.git("tag") == "release-1"
    back = shop.call("undo").out
    assert "Its tag is removed" in back
    assert shop.git("tag") == "" and not shop.bundle.exists()
    assert shop.git("rev-parse", "HEAD^{tree}") == shop.git("rev-parse", f"{start}^{{tree}}")
    assert shop.git("rev-parse", "HEAD^") == said["commit"], "history is not written anew"
    assert shop.git("status", "--porcelain") == ""
    again = shop.call("undo", str(said["entry"] + 1), code=1)
    assert "cut it again" in again.err
    shop.cut("--number", "1")
    shop.git("init", "-q", "--bare", str(shop.folder / "origin.git"))
    shop.git("remote", "add", "origin", str(shop.folder / "origin.git"))
    shop.git("push", "-q", "origin", "main")
    before = shop.files(), shop.refs()
    assert "release withdraw 1" in shop.call("undo", code=1).err
    shop.git("update-ref", "-d", "refs/remotes/origin/main")
    assert "would be taken back" in shop.call("undo", "--dry-run").out
    record.mark_published(shop.project, 1)
    assert "release withdraw 1" in shop.call("undo", code=1).err
    assert shop.files() == before[0] and shop.git("tag") == "release-1"


def test_killed_at_any_step_it_is_there_or_not(shop: Shop, tmp_path: Path) -> None:
    """From the finished bundle on; whoever comes next completes it or takes it back."""
    shop.cut()
    made = tmp_path / "made"
    shutil.copytree(shop.bundle, made)
    shop.call("undo")
    shop.commit()
    kept = tmp_path / "kept"
    shutil.copytree(shop.root, kept, symlinks=True)
    old = shop.files(), shop.refs()
    place = shop.bundle.parent / ".1-x" / "1"
    seen = {"old": 0, "new": 0}

    def prepare() -> None:
        shutil.rmtree(shop.root)
        shutil.copytree(kept, shop.root, symlinks=True)
        place.parent.mkdir()
        shutil.copytree(made, place)

    def run(step: int) -> crash.Run:
        return crash.forked(lambda: record.record(shop.project, 1, place), step, under=shop.root)

    def check(_: crash.Run) -> None:
        with lock.hold(shop.project, "test"):
            journal.recover(shop.project)
            record.settle(shop.project)
        assert shop.git("status", "--porcelain") == ""
        assert not list(shop.bundle.parent.glob(".*"))
        if shop.refs() == old[1]:
            assert shop.files() == old[0] and not shop.bundle.exists()
            seen["old"] += 1
        else:
            assert shop.git("rev-parse", "release-1^{commit}") == shop.git("rev-parse", "HEAD")
            assert files(shop.bundle) == files(made)
            assert (shop.root / "releases/1.toml").read_bytes() == (
                made / "release.toml"
            ).read_bytes()
            seen["new"] += 1

    prepare()
    effects = run(crash.NEVER).effects
    # Before the note there are only objects that nothing names yet.
    note = next(n for n, name in enumerate(effects, 1) if "release.json" in name)
    steps = sorted({1, *range(note - 1, note + 6), *range(note + 6, len(effects) + 1, 2)})
    assert crash.every_step(run, check, prepare=prepare, steps=steps) == len(steps) >= 20
    assert seen["old"] > 3 and seen["new"] > 10


def test_killed_while_it_packs_it_leaves_nothing(shop: Shop) -> None:
    before = shop.files(), shop.refs()

    def run(step: int | str) -> crash.Run:
        arguments = ["release", "cut", "--key", str(shop.key)]
        return crash.forked(lambda: call(shop.root, *arguments), step, under=shop.root)

    died = run("subprocess.Popen")
    assert died.killed or died.code == 0
    killed = run(40)
    assert killed.killed, killed
    assert (shop.files(), shop.refs()) == before
    shop.cut()
    assert [path.name for path in shop.bundle.parent.iterdir()] == ["1"]


def test_the_second_release_tells_what_it_has_otherwise(shop: Shop) -> None:
    shop.cut()
    shop.call("delete", "second", "--why", "landed in 1.1, o/r#9")
    shop.call("new", "third", "-m", "[x] Third")
    shop.call("push", "--all")
    tree = shop.root / ".git/patchq/work/demo/tree"
    (tree / "vllm/b.py").write_text("3\n")
    shop.call("refresh")
    shop.call("pop")
    (tree / "vllm/a.py").write_text("2\n2\n")
    shop.call("refresh")
    shop.built("--offline")
    shop.smoked(lambda cell, number: 60.0)
    shop.cut()
    found = manifest.read_at(shop.root, 2)
    assert found is not None and found.previous == 1
    assert [(each.name, each.state) for each in found.patches] == [
        ("first", "refreshed"),
        ("third", "new"),
    ]
    assert [each.name for each in found.dropped] == ["second"]
    notes = (shop.root / "releases/2.md").read_text()
    assert "Since release 1: 1 new, 1 refreshed, 1 dropped." in notes
    assert "| context | asked | tok/s, 1 | tok/s, 2 | change |" in notes
    assert "| 1024 | prose | 30.1 | 60 | +99.2% |" in notes
    told = shop.call("release", "diff", "1", "2", "--json").json
    assert [(each["kind"], each["name"]) for each in told["patches"]] == [
        ("changed", "first"),
        ("new", "third"),
        ("dropped", "second"),
    ]
    assert set(told) == {
        *("schema", "a", "b", "base", "carried", "patches", "dependencies", "bench", "notes"),
    }, "docs/json.md"
    assert "++2" in told["patches"][0]["range_diff"]
    assert told["carried"] == 0 and told["base"]["a"] == told["base"]["b"]
    pair = next(each for each in told["bench"] if each["a"]["kind"] == "prose")
    assert (pair["a"]["decode"], pair["b"]["decode"]) == (30.12, 60.0)
    drawn = shop.call("release", "diff", "1", "2").out
    assert "dropped: second" in drawn and "30.12 -> 60 tok/s" in drawn
    shop.git("tag", "-d", "release-1")
    again = shop.call("release", "diff", "1", "2", "--json").json
    assert again["patches"] == told["patches"], "out of the bundle's archive"
    shutil.rmtree(shop.bundle)
    again = shop.call("release", "diff", "1", "2", "--json").json
    assert again["notes"] and again["patches"][0]["range_diff"] is None
    assert "there is no release 7 here" in shop.call("release", "diff", "2", "7", code=1).err


def test_a_manifest_reads_as_it_was_written(shop: Shop) -> None:
    shop.cut()
    found = manifest.read_at(shop.root, 1)
    assert found is not None
    assert manifest.write(found) == (shop.root / "releases/1.toml").read_bytes()
    assert shop.call("release", "show", "1", "--json").json["release"] == {
        "schema": manifest.SCHEMA,
        **to_table(found),
    }
    assert shop.call("release", "show", "1").out.startswith(
        "# Release 1\n\ndemo 1.0 with 2 patches"
    )


def test_without_a_branch_and_with_a_build_that_git_does_not_ignore(shop: Shop) -> None:
    shop.write(".gitignore", "")
    shop.commit()
    shop.git("checkout", "-q", "--detach")
    shop.cut()
    assert shop.git("rev-parse", "release-1^{commit}") == shop.git("rev-parse", "HEAD")
    assert shop.git("rev-parse", "main") == shop.git("rev-parse", "HEAD^")
    shop.call("release", "verify", "1")


def test_what_is_committed_meanwhile_is_not_lost(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the commit's making and the moment it counts: the other one stays, ours is none."""
    from patchq.gitstore import tags

    seal = tags.seal

    def late(root: Path, sealed: tags.Sealed) -> None:
        shop.commit("somebody else's")
        seal(root, sealed)

    monkeypatch.setattr(tags, "seal", late)
    before = shop.files()
    assert "somebody else committed or tagged meanwhile" in shop.cut(code=1).err
    assert shop.git("log", "-1", "--format=%s") == "somebody else's"
    assert shop.git("tag") == "" and shop.files() == before and not shop.bundle.exists()
