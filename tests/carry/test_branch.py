"""Importing a branch: merges taken apart, fixups folded, topics put together; the tree is equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.history import git, lines
from tests.support.inside import Small


class Fork(Small):
    """A queue on v1, and a clone of its upstream in which people work on `fork`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.made()
        self.clone = folder / "clone"
        git(folder, "clone", "-q", str(self.upstream.path), str(self.clone))
        self.run("checkout", "-q", "-b", "fork", "v1")
        self.count = 0

    def run(self, *args: str, ok: tuple[int, ...] = (0,)) -> str:
        return git(self.clone, *args, ok=ok).decode().strip()

    def commit(self, message: str, **files: bytes) -> str:
        """Commit whole files; `a_txt` is a.txt."""
        for name, data in files.items():
            (self.clone / name.replace("_", ".")).write_bytes(data)
        self.run("add", "-A")
        self.count += 1
        self.run("commit", "-q", "--allow-empty", "-m", message)
        return self.run("rev-parse", "HEAD")

    def read(self, name: str) -> bytes:
        return (self.clone / name).read_bytes()

    def edit(self, message: str, name: str, old: bytes, new: bytes) -> str:
        data = self.read(name)
        assert data.count(old) == 1, (old, data.count(old))
        return self.commit(message, **{name.replace(".", "_"): data.replace(old, new)})

    def tree(self, name: str = "fork") -> str:
        return self.run("rev-parse", f"{name}^{{tree}}")

    def bring(self, *args: str, commits: str = "fork", code: int = 0):  # type: ignore[no-untyped-def]
        return self.call("import", "--git", str(self.clone), commits, *args, code=code)

    def names(self) -> list[str]:
        return [patch["name"] for patch in self.call("series", "--json").json["patches"]]


@pytest.fixture
def fork(tmp_path: Path) -> Fork:
    return Fork(tmp_path)


def test_a_branch_alone(fork: Fork) -> None:
    """What it has beside the base; also where the branch started before the base."""
    fork.edit("One", "a.txt", b"line 8\n", b"eight\n")
    fork.edit("Two", "b.txt", b"line 20\n", b"twenty\n")
    done = fork.bring("--json").json
    assert [patch["name"] for patch in done["patches"]] == ["one", "two"]
    assert done["tree"] == fork.tree() == fork.call("tree").out.strip()


def test_merges_are_taken_apart(fork: Fork) -> None:
    fork.run("checkout", "-q", "-b", "left", "v1")
    fork.edit("Left one", "a.txt", b"line 8\n", b"eight\n")
    fork.edit("Left two", "a.txt", b"line 9\n", b"nine\n")
    fork.run("checkout", "-q", "fork")
    fork.edit("Right", "b.txt", b"line 20\n", b"twenty\n")
    fork.run("merge", "-q", "--no-ff", "-m", "Merge left", "left")
    done = fork.bring("--json").json
    assert [patch["subject"] for patch in done["patches"]] == ["Right", "Left one", "Left two"]
    assert done["tree"] == fork.tree()


def conflicting(fork: Fork) -> None:
    fork.run("checkout", "-q", "-b", "left", "v1")
    fork.edit("Left", "a.txt", b"line 8\n", b"eight\n")
    fork.run("checkout", "-q", "fork")
    fork.edit("Right", "a.txt", b"line 8\n", b"acht\n")
    fork.run("merge", "-q", "--no-ff", "left", ok=(1,))
    (fork.clone / "a.txt").write_bytes(fork_text(b"eight, acht\n"))
    fork.run("commit", "-q", "-a", "-m", "Merge left\n\nBoth.")


def fork_text(line: bytes) -> bytes:
    return lines(range(1, 31)).replace(b"line 8\n", line)


def test_a_merge_that_settled_a_conflict_is_firstpatch(fork: Fork) -> None:
    conflicting(fork)
    done = fork.bring("--json").json
    assert [patch["subject"] for patch in done["patches"]] == ["Right", "Merge left"]
    assert done["tree"] == fork.tree()


def test_what_a_merge_changed_beside_its_sides_is_a_patch(fork: Fork) -> None:
    fork.run("checkout", "-q", "-b", "left", "v1")
    fork.edit("Left", "a.txt", b"line 8\n", b"eight\n")
    fork.run("checkout", "-q", "fork")
    fork.edit("Right", "b.txt", b"line 20\n", b"twenty\n")
    fork.run("merge", "-q", "--no-ff", "--no-commit", "left")
    (fork.clone / "new.txt").write_bytes(b"sneaked in\n")
    fork.run("add", "-A")
    fork.run("commit", "-q", "-m", "Merge left")
    done = fork.bring("--json").json
    assert [patch["subject"] for patch in done["patches"]] == ["Right", "Left", "Merge left"]
    assert done["tree"] == fork.tree()


def test_a_merge_of_the_base_is_no_patch(fork: Fork) -> None:
    """The queue is on v2, the fork started on v1 and merged v2: its tree comes out."""
    fork.edit("One", "a.txt", b"line 14\n", b"fourteen\n")
    fork.run("merge", "-q", "--no-ff", "-m", "Merge v2", "v2")
    fork.edit("Two", "b.txt", b"line 20\n", b"twenty\n")
    fork.call("sync", "--onto", "v2")
    done = fork.bring("--json").json
    assert [patch["subject"] for patch in done["patches"]] == ["One", "Two"]
    assert done["tree"] == fork.tree()


def test_a_merge_of_the_base_that_settled_something(fork: Fork) -> None:
    """What no commit says alone is a patch of its own, so that the tree is equal."""
    fork.edit("One", "a.txt", b"line 14\n", b"fourteen\n")
    fork.run("merge", "-q", "--no-ff", "--no-commit", "v2")
    (fork.clone / "new.txt").write_bytes(b"sneaked in\n")
    fork.run("add", "-A")
    fork.run("commit", "-q", "-m", "Merge v2")
    fork.call("sync", "--onto", "v2")
    done = fork.bring("--json").json
    assert [patch["subject"] for patch in done["patches"]] == [
        "One",
        "Settle what the merges of fork settled",
    ]
    assert done["tree"] == fork.tree()


def test_fixups_go_into_their_targets(fork: Fork) -> None:
    one = fork.edit("One\n\nWhy one.", "a.txt", b"line 8\n", b"eigth\n")
    fork.edit("Two", "b.txt", b"line 20\n", b"twenty\n")
    fork.edit("fixup! One", "a.txt", b"eigth\n", b"eight\n")
    fork.edit(f"squash! {one[:10]}", "a.txt", b"line 28\n", b"28\n")
    fork.edit("fixup! fixup! One", "a.txt", b"line 1\n", b"1\n")
    fork.edit("fixup! Nobody", "b.txt", b"line 1\n", b"1\n")
    done = fork.bring("--json").json
    assert [(patch["subject"], len(patch["commits"])) for patch in done["patches"]] == [
        ("One", 4),
        ("Two", 1),
        ("fixup! Nobody", 1),
    ]
    assert done["tree"] == fork.tree()
    first = fork.call("show", "one", "--json").json
    assert first["body"] == "Why one."
    assert paths(first["diff"]) == ["a.txt"]
    assert all(line in first["diff"] for line in ("+1\n", "+eight\n", "+28\n"))


def test_forty_commits_by_topic(fork: Fork) -> None:
    """Merges and fixups among them; three topics, each one patch."""
    for part in range(12):
        number = 2 * part + 1
        fork.edit(
            f"[{'Exl3' if part % 2 else 'spin'}] Part {part}",
            "a.txt" if part % 2 else "b.txt",
            b"line %d\n" % number,
            b"part %d\n" % number,
        )
        if part % 3 == 0:
            fork.edit(
                f"fixup! [{'Exl3' if part % 2 else 'spin'}] Part {part}",
                "a.txt" if part % 2 else "b.txt",
                b"part %d\n" % number,
                b"Part %d\n" % number,
            )
    fork.run("checkout", "-q", "-b", "docs", "fork")
    for part in range(12):
        fork.commit(f"docs(x): page {part}", **{f"page{part}_md": b"text\n"})
    fork.run("checkout", "-q", "fork")
    for part in range(12):
        fork.commit(f"spin: more {part}", **{f"more{part}_txt": b"text\n"})
    fork.run("merge", "-q", "--no-ff", "-m", "Merge docs", "docs")
    assert fork.count == 40
    plan = fork.bring("--group-by", "topic", "--dry-run")
    assert "3 would come in" in plan.out
    assert fork.names() == []
    done = fork.bring("--group-by", "topic", "--json").json
    assert [(patch["name"], len(patch["commits"])) for patch in done["patches"]] == [
        ("spin", 20),
        ("exl3", 8),
        ("docs", 12),
    ]
    assert done["tree"] == fork.tree()
    shown = fork.call("show", "exl3", "--json").json
    assert shown["subject"] == "[exl3] 6 commits"
    assert paths(shown["diff"]) == ["a.txt"], "each patch is its topic's commits and no others"
    assert len(paths(fork.call("show", "docs", "--json").json["diff"])) == 12
    assert ["Patchq-Topic", "exl3"] in shown["header"]
    assert shown["body"].startswith("* [Exl3] Part 1\n\n* [Exl3] Part 3\n")
    assert fork.call("check", "--quilt", "--json").json["proof"]["ok"]


def paths(diff: str) -> list[str]:
    found = [line for line in diff.split("\n") if line.startswith("diff --git ")]
    return [line.split(" b/")[1] for line in found]


def interleaved(fork: Fork) -> None:
    fork.edit("a: one", "a.txt", b"line 8\n", b"eight\n")
    fork.edit("b: two", "a.txt", b"eight\n", b"acht\n")
    fork.edit("a: three", "a.txt", b"acht\n", b"huit\n")


def test_topics_that_stand_between_each_other(fork: Fork) -> None:
    interleaved(fork)
    said = fork.bring("--group-by", "topic", code=1)
    assert "cannot be grouped so: " in said.err
    assert "(a: three) in a.txt needs " in said.err and "(b: two)" in said.err
    assert fork.names() == []


def test_the_whole_branch_as_one(fork: Fork) -> None:
    interleaved(fork)
    done = fork.bring("--group-by", "branch", "--name", "all-of-it", "--json").json
    assert [patch["file"] for patch in done["patches"]] == ["0001-all-of-it.patch"]
    assert done["tree"] == fork.tree()


def test_an_order_by_the_last_commit(fork: Fork) -> None:
    """The first topic ends with what needs the second: it comes behind it."""
    fork.edit("a: one", "a.txt", b"line 8\n", b"eight\n")
    fork.edit("b: two", "a.txt", b"line 20\n", b"twenty\n")
    fork.edit("a: three", "a.txt", b"twenty\n", b"zwanzig\n")
    done = fork.bring("--group-by", "topic", "--json").json
    assert [patch["name"] for patch in done["patches"]] == ["b", "a"]
    assert "eight" not in fork.call("show", "b", "--json").json["diff"]
    assert done["tree"] == fork.tree()


def test_a_list(fork: Fork, tmp_path: Path) -> None:
    ids = [
        fork.edit("One", "a.txt", b"line 8\n", b"eight\n"),
        fork.edit("Two", "b.txt", b"line 20\n", b"twenty\n"),
        fork.edit("Three", "a.txt", b"line 28\n", b"28\n"),
    ]
    file = tmp_path / "groups.toml"
    file.write_text(
        f'[[patch]]\nname = "odd"\nsubject = "The odd ones"\ncommits = ["{ids[0][:8]}", "Three"]\n'
    )
    done = fork.bring("--groups", str(file), "--json").json
    assert [(patch["name"], patch["subject"]) for patch in done["patches"]] == [
        ("odd", "The odd ones"),
        ("two", "Two"),
    ]
    assert done["tree"] == fork.tree()


def test_a_branch_without_the_base(fork: Fork, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "main")
    git(other, "commit", "-q", "--allow-empty", "-m", "x")
    said = fork.call("import", "--git", str(other), "main", code=1)
    assert "main does not come from the base, v1" in said.err


def test_a_name_for_many(fork: Fork) -> None:
    fork.edit("One", "a.txt", b"line 8\n", b"eight\n")
    fork.edit("Two", "b.txt", b"line 20\n", b"twenty\n")
    assert "--name x is for one patch, and 2 come in" in fork.bring("--name", "x", code=1).err
