"""Sessions while the world goes on: the series is edited, upstream moves, the tree is spoiled."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.history import History, git, lines
from tests.support.inside import Said, call
from tests.support.kit import bare_repository

TEXT = lines(range(1, 61))


def put(*changes: tuple[int, str]) -> bytes:
    text = TEXT
    for number, new in changes:
        text = text.replace(b"line %d\n" % number, new.encode() + b"\n")
    return text


class Torn:
    """A queue of patches that all conflict: patch `pN` changes line 5 of `fN.txt`, so does v2."""

    def __init__(self, folder: Path, count: int = 2) -> None:
        self.folder = folder
        self.root = folder / "queue"
        self.tree = self.root / ".git/patchq/sessions/demo/tree"
        self.count = count
        self.upstream = History(folder / "upstream.git")
        start = self.upstream.commit().write("g.txt", TEXT)
        for number in range(1, count + 1):
            start.write(f"f{number}.txt", TEXT)
        start.tag("v1")
        change = self.upstream.commit()
        for number in range(1, count + 1):
            change.write(f"f{number}.txt", put((5, "5, upstream's")))
        change.tag("v2")
        self.upstream.branch("topic", at="v1")
        for number in range(1, count + 1):
            self.upstream.commit(f"p{number}").write(f"f{number}.txt", put((5, "5, ours")))

    def filled(self) -> Torn:
        self.upstream.save()
        bare_repository(self.root)
        self.call("init", "demo", "--git", str(self.upstream.path), "--base", "v1")
        self.call("import", "--git", str(self.upstream.path), "v1..topic")
        return self.commit()

    def commit(self) -> Torn:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--no-verify", "-m", "queue")
        return self

    def call(self, *args: str, code: int | None = 0) -> Said:
        return call(self.root, *args, code=code)

    def open(self) -> Torn:
        self.call("sync", "--onto", "v2", code=4)
        return self

    def go_on(self, code: int = 0) -> Said:
        return self.call("sync", "--continue", "--json", code=code)

    def resolve(self, number: int, text: str = "5, both") -> None:
        (self.tree / f"f{number}.txt").write_bytes(put((5, text)))

    def actions(self, said: Said) -> list[str]:
        return [patch["action"] for patch in said.json["patches"]]

    @property
    def is_open(self) -> bool:
        return self.tree.parent.exists()

    def patch(self, number: int) -> Path:
        (found,) = self.root.glob(f"series/*-p{number}.patch")
        return found


@pytest.fixture
def torn(tmp_path: Path) -> Torn:
    return Torn(tmp_path).filled()


def test_twelve_conflicts_in_one_run(tmp_path: Path) -> None:
    torn = Torn(tmp_path, 12).filled()

    said = torn.call("sync", "--onto", "v2", code=4).out

    for number in range(1, 13):
        assert f"p{number} conflicts:\n  f{number}.txt: content" in said
    assert said.count("| 5, upstream's") == said.count("| 5, ours") == 12
    asked = torn.call("sync", "--json", code=4).json
    assert [len(patch["conflicts"]) for patch in asked["patches"]] == [1] * 12
    assert all(len(c["sides"]) == 1 for patch in asked["patches"] for c in patch["conflicts"])
    torn.resolve(1)
    assert torn.go_on(code=4).json["shown"] == "p2"


def test_what_builds_on_a_conflict_is_not_asked_again(tmp_path: Path) -> None:
    """The second patch adds to the first one's line; it follows what that line became."""
    torn = Torn(tmp_path, 1)
    torn.upstream.commit("p2").write("f1.txt", put((5, "5, ours"), (9, "9, ours")))
    torn.filled().open()
    torn.resolve(1)

    assert torn.actions(torn.go_on()) == ["keep", "keep"]


def test_a_second_sync_tells_how_the_session_stands(torn: Torn) -> None:
    torn.open()
    torn.resolve(1)
    text = (torn.tree / "f1.txt").read_bytes()

    for args in (("sync",), ("sync", "--onto", "v2"), ("sync", "--onto", "2", "--json")):
        said = torn.call(*args, code=4)
        assert str(torn.tree) in said.out.replace("\n", "") or str(torn.tree) in said.out
    assert (torn.tree / "f1.txt").read_bytes() == text, "work in the tree stays"
    refused = torn.call("sync", "--onto", "v1", code=1)
    assert "a session of demo onto v2 is open in" in refused.err
    for args in (
        ("--abort", "--continue"),
        ("--continue", "--onto", "v2"),
        ("--abort", "--dry-run"),
    ):
        torn.call("sync", *args, code=2)


def test_without_a_session(torn: Torn) -> None:
    for args in (("--continue",), ("--skip", "p1"), ("--abort",)):
        said = torn.call("sync", *args, code=1)
        assert "no session of demo is open" in said.err


def test_a_name_that_is_none(torn: Torn) -> None:
    torn.open()
    assert "there is no patch 'never'" in torn.call("sync", "--skip", "never", code=1).err
    torn.call("sync", "--skip", "p2", code=4)
    assert torn.is_open


# The series, edited meanwhile


def test_another_patch_edited_meanwhile(torn: Torn) -> None:
    torn.open()
    torn.resolve(1)
    two = torn.patch(2)
    two.write_bytes(two.read_bytes().replace(b"+5, ours", b"+5, edited"))

    said = torn.go_on(code=4).json

    assert said["notes"] == ["The series was changed since; it is carried as it is now."]
    assert said["shown"] == "p2"
    assert b"5, edited\n" in (torn.tree / "f2.txt").read_bytes()
    torn.resolve(2)
    assert torn.go_on().json["notes"] == []


def test_the_shown_patch_edited_meanwhile(torn: Torn) -> None:
    """What was edited for its old text is kept aside, and its new text is shown."""
    torn.open()
    torn.resolve(1)
    one = torn.patch(1)
    one.write_bytes(one.read_bytes().replace(b"+5, ours", b"+5, edited"))

    said = torn.go_on(code=4).json

    assert said["shown"] == "p1"
    place = torn.root / ".git/patchq/kept/demo/p1-1"
    assert said["notes"][1] == f"What you edited for p1 is kept in {place}."
    assert (place / "f1.txt").read_bytes() == put((5, "5, both"))
    assert b"<<<<<<< v2\n" in (torn.tree / "f1.txt").read_bytes()
    assert b"5, edited\n" in (torn.tree / "f1.txt").read_bytes()


def test_a_patch_that_a_patch_before_it_moves(tmp_path: Path) -> None:
    """A patch before the shown one changes another file: what was resolved stays good."""
    torn = Torn(tmp_path, 1)
    torn.upstream.branch("topic", at="v1").commit("p0").write("g.txt", put((9, "9, ours")))
    torn.upstream.commit("p1").write("f1.txt", put((5, "5, ours")))
    torn.filled().open()
    torn.resolve(1)
    zero = torn.patch(0)
    zero.write_bytes(zero.read_bytes().replace(b"+9, ours", b"+9, edited"))

    assert torn.go_on().json["recorded"] is True
    assert b"+9, edited" in torn.patch(0).read_bytes()
    assert b"g.txt" not in torn.patch(1).read_bytes()


def test_nothing_conflicts_any_more(torn: Torn) -> None:
    """The patches were rewritten by hand for the new release."""
    torn.open()
    for number in (1, 2):
        path = torn.patch(number)
        path.write_bytes(
            path.read_bytes().replace(
                b" line 4\n-line 5\n+5, ours\n line 6\n", b" line 4\n line 5\n line 6\n"
            )
        )
        data = path.read_bytes()
        head = data[: data.index(b"diff --git")]
        path.write_bytes(
            head
            + f"--- a/f{number}.txt\n+++ b/f{number}.txt\n@@ -39,3 +39,3 @@\n line 39\n-line 40\n"
            f"+40, ours\n line 41\n".encode()
        )

    said = torn.call("sync", "--json")

    assert torn.actions(said) == ["keep", "keep"]
    assert not torn.is_open


# Upstream, meanwhile


def test_the_release_is_pinned(torn: Torn) -> None:
    torn.open()
    commit = git(torn.upstream.path, "rev-parse", "v2").decode().strip()
    torn.upstream.branch("main").commit().write("f1.txt", b"all new\n").tag("v2").tag("v3")
    torn.upstream.save()
    torn.resolve(1)
    torn.go_on(code=4)
    torn.resolve(2)

    assert torn.go_on().json["base"]["to"] == "v2"
    assert f'"commit": "{commit}"' in (torn.root / "upstream/state.json").read_text()


# The tree, spoiled


def test_a_tree_that_is_gone_is_made_anew(torn: Torn) -> None:
    torn.open()
    torn.resolve(1)
    torn.go_on(code=4)
    shutil.rmtree(torn.tree)

    said = torn.go_on(code=4).json

    assert said["notes"] == ["The session's tree was gone; it shows the conflict anew."]
    assert (torn.tree / "f1.txt").read_bytes() == put((5, "5, both")), "nothing is asked again"
    torn.resolve(2)
    torn.go_on()


@pytest.mark.parametrize("what", ["git folder", "git link", "commits", "reset"])
def test_git_commands_in_the_tree(torn: Torn, what: str) -> None:
    torn.open()
    if what == "git folder":
        shutil.rmtree(torn.tree.parent / "git")
    elif what == "git link":
        (torn.tree / ".git").unlink()
    elif what == "commits":
        git(torn.tree, "checkout", "-q", "-b", "mine")
        torn.resolve(1)
        git(torn.tree, "add", "-A")
        git(torn.tree, "commit", "-q", "-m", "mine")
    else:
        git(torn.tree, "reset", "-q", "--hard")
        assert "nothing would be left of p1" in torn.call("sync", "--continue", code=1).err
    torn.resolve(1)

    assert torn.go_on(code=4).json["shown"] == "p2"
    torn.resolve(2)
    torn.go_on()


def test_settings_of_the_user_do_not_act_on_the_tree(torn: Torn, tmp_path: Path) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "post-index-change", "pre-commit"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        (hooks / name).chmod(0o755)
    attributes = tmp_path / "attributes"
    attributes.write_text("* text eol=crlf filter=evil merge=ours\n")
    config = tmp_path / "config"
    config.write_text(
        f"[core]\n\thooksPath = {hooks}\n\tattributesFile = {attributes}\n\tautocrlf = true\n"
        "[rerere]\n\tenabled = true\n\tautoupdate = true\n[merge]\n\tconflictStyle = merge\n"
        f'[filter "evil"]\n\tclean = touch {tmp_path}/ran\n\tsmudge = touch {tmp_path}/ran\n'
    )
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
        torn.open()
        assert b"|||||||" in (torn.tree / "f1.txt").read_bytes()
        assert b"\r" not in (torn.tree / "f1.txt").read_bytes()
        torn.resolve(1)
        torn.go_on(code=4)
        torn.resolve(2)
        torn.go_on()
    assert not (tmp_path / "ran").exists()
    assert not (torn.root / ".git/rr-cache").exists()


def test_the_queue_of_the_tree_one_stands_in(torn: Torn) -> None:
    """With several queues, the one whose session it is, not the main one."""
    main = torn.root / "upstream/demo.toml"
    torn.call("init", "other", "--git", str(torn.upstream.path), "--base", "v1")
    torn.call("import", "--queue", "other", "--git", str(torn.upstream.path), "v1..topic")
    torn.call("sync", "--queue", "other", "--onto", "v2", code=4)
    tree = torn.root / ".git/patchq/sessions/other/tree"
    (tree / "f1.txt").write_bytes(put((5, "5, both")))

    said = call(tree, "sync", "--continue", "--json", code=4)

    assert (said.json["queue"], said.json["shown"]) == ("other", "p2")
    call(tree, "sync", "--abort")
    assert main.is_file() and not tree.exists()


def test_a_proof_that_fails_leaves_the_session(torn: Torn) -> None:
    """The tree stays with what was resolved last: it can be corrected there."""
    two = torn.patch(2)
    line = "Patchq-Check: grep -q both f2.txt\n"
    two.write_text(two.read_text().replace("\n\n", f"\n{line}\n", 1))
    torn.commit().open()
    torn.resolve(1)
    torn.go_on(code=4)
    torn.resolve(2, "5, wrong")

    said = torn.go_on(code=5).json

    assert (said["recorded"], said["session"]) == (False, str(torn.tree))
    torn.resolve(2)
    assert torn.go_on().json["recorded"] is True


# Recorded resolutions


def resolved(torn: Torn) -> list[Path]:
    torn.open()
    for number in (1, 2):
        torn.resolve(number)
        torn.go_on(code=4 if number == 1 else 0)
    found = sorted(torn.root.glob("series/resolutions/*/*"))
    texts = [path.read_bytes() for path in found]
    torn.call("undo")
    for path, text in zip(found, texts, strict=True):
        path.parent.mkdir(parents=True)
        path.write_bytes(text)
    torn.commit()
    return found


def test_a_resolution_reads_well(torn: Torn) -> None:
    one, two = resolved(torn)
    assert one.parent.name == "p1" and two.parent.name == "p2"
    assert one.name.startswith("f1.txt-") and one.suffix == ".diff"
    text = one.read_text()
    assert text.startswith(
        "Patchq-Resolution: 1\nPatch: p1\nPath: f1.txt\nConflict: content\nReleases: v1 to v2\n"
    )
    assert text.endswith(" line 4\n-5, upstream's\n+5, both\n line 6\n line 7\n line 8\n")
    torn.call("check")
    torn.call("check", "--quilt")


def test_one_of_two_is_used(torn: Torn) -> None:
    one, _ = resolved(torn)
    one.unlink()

    said = torn.call("sync", "--onto", "v2", "--json", code=4)

    assert torn.actions(said) == ["ask", "keep"]
    shown = torn.call("sync", code=4).out
    assert "conflict in f2.txt resolved before, used again" in " ".join(shown.split())
    report = torn.folder / "report.md"
    torn.call("sync", "--markdown", str(report), code=4)
    assert "resolved before, used again" in report.read_text()


def test_other_blobs_are_not_resolved(torn: Torn) -> None:
    """A byte more upstream, and it is another conflict."""
    resolved(torn)
    text = put((5, "5, upstream's"), (50, "50, upstream's"))
    torn.upstream.branch("main").commit().write("f1.txt", text).tag("v3")
    torn.upstream.save()

    said = torn.call("sync", "--onto", "v3", "--json", code=4)

    assert torn.actions(said) == ["ask", "keep"]


def test_an_edit_beside_the_conflict_goes_with_it_or_both_are_asked(tmp_path: Path) -> None:
    torn = Torn(tmp_path, 1)
    torn.upstream.branch("main").commit().write("other.txt", TEXT).tag("v3")
    torn.upstream.commit().write("g.txt", put((9, "9, upstream's"))).tag("v4")
    torn.filled().open()
    torn.resolve(1)
    (torn.tree / "g.txt").write_bytes(put((5, "5, beside")))
    torn.go_on()
    found = {path: path.read_bytes() for path in torn.root.glob("series/resolutions/*/*")}
    assert len(found) == 2
    torn.call("undo")
    for path, text in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)

    used = torn.call("sync", "--onto", "v3", "--dry-run", "--json").json["patches"][0]
    assert [one["detail"] for one in used["evidence"] if one["signal"] == "resolution"] == [
        "conflict in f1.txt resolved before, used again",
        "g.txt edited beside a conflict before, used again",
    ]
    asked = torn.call("sync", "--onto", "v4", "--dry-run", "--json", code=4).json["patches"][0]
    assert "resolution" not in [one["signal"] for one in asked["evidence"]]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"Patchq-Resolution: 1", b"Patchq-Resolution: 2", "does not begin as one"),
        (b"Theirs: 100644 ", b"Theirs: 100644 x", "an id is damaged"),
        (b"\nPatch: p1", b"", "a field is missing"),
        (b"\nPatch: p1", b"\nPatch: p1\nPatch: p1", "it has a line"),
        (b"+5, both", b"+5, lies", "gives another content than it says"),
        (b"-5, upstream's", b"-5, nobody's", "other lines stand where"),
        (b"a/f1.txt b/f1.txt", b"a/../f1 b/../f1", "outside the source tree"),
        (b"diff --git", b"diff --cc", "not a git diff"),
    ],
)
def test_a_damaged_resolution_is_refused(torn: Torn, old: bytes, new: bytes, why: str) -> None:
    one, _ = resolved(torn)
    data = one.read_bytes()
    assert data.count(old) == 1
    one.write_bytes(data.replace(old, new))
    before = torn.patch(1).read_bytes()

    said = torn.call("sync", "--onto", "v2", code=1)

    assert why in said.err, said.err
    assert torn.patch(1).read_bytes() == before
    assert not torn.is_open
    one.unlink()
    torn.call("sync", "--onto", "v2", code=4)


def test_a_queue_in_a_folder_of_its_own(tmp_path: Path) -> None:
    torn = Torn(tmp_path, 1).filled()
    (torn.root / "series/demo").mkdir()
    for path in (torn.root / "series").glob("*"):
        if path.name != "demo":
            path.rename(torn.root / "series/demo" / path.name)
    config = torn.root / "upstream/demo.toml"
    config.write_text(config.read_text().replace('series = "series"', 'series = "series/demo"'))
    torn.call("sync", "--onto", "v2", code=4)
    torn.resolve(1)
    torn.go_on()
    assert list(torn.root.glob("series/demo/resolutions/p1/*"))
    assert os.listdir(torn.root / "series") == ["demo"]
