"""`export --mbox`: what `git am` makes of it, and what `import` reads back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.history import git
from tests.support.inside import Small

TRAP = """Zweites: über [PATCH] alles

A text with traps:

---
diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-line 1
+trapped
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: Somebody Else <else@example.org>
Subject: another
"""


@pytest.fixture
def small(tmp_path: Path) -> Small:
    small = Small(tmp_path)
    made = small.upstream.branch("odd", at="v1").commit("[x] One").by("Zoë Straße".encode())
    made = made.edit("a.txt", b"line 3\n", b"three\r\n").commit(TRAP)
    made.write("latin.txt", b"stra\xdfe\n").write("bin", bytes(range(256)) * 4)
    made.write("no-end.txt", b"no end").chmod("b.txt", 0o100755)
    made = made.commit("Three\n\nOrigin: https://example.org/x\n").delete("no-end.txt")
    made.edit("a.txt", b"three\r\n", b"3\r\n")
    small.upstream.save()
    small.made()
    small.call("import", "--git", str(small.upstream.path), "v1..odd")
    small.call("edit", "1", "--set", "Upstream-Status=Submitted", "--set", "Bug=17")
    small.call("hold", "3", "--why", "held ones are not exported")
    small.call("unhold", "3")
    small.commit()
    return small


def test_git_am_takes_it(small: Small, tmp_path: Path) -> None:
    small.call("export", "--mbox", str(tmp_path / "series.mbox"))
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(small.upstream.path), str(clone))
    git(clone, "checkout", "-q", "v1")
    git(clone, "am", "-q", "--keep-cr", "--keep-non-patch", str(tmp_path / "series.mbox"))
    assert git(clone, "rev-parse", "HEAD^{tree}").decode() == small.call("tree").out
    subjects = git(clone, "log", "--reverse", "--format=%an|%s", "v1..").decode().splitlines()
    assert subjects[0] == "Zoë Straße|[x] One"
    assert len(subjects) == 3
    body = git(clone, "log", "-1", "--format=%B", "HEAD~2").decode()
    assert body.rstrip().endswith("Upstream-Status: Submitted\nPatchq-Name: one\nBug: 17")


def test_import_reads_it_back(small: Small, tmp_path: Path) -> None:
    done = small.call("export", "--mbox", str(tmp_path / "series.mbox"), "--json").json
    assert (done["patches"], done["base"]) == (3, "v1")
    before = small.files()
    tree = small.call("tree").out
    other = Small(tmp_path / "other").made()
    other.call("import", str(tmp_path / "series.mbox"))
    files = other.files()
    patches = {name: data for name, data in before.items() if name.endswith(".patch")}
    assert {name: data for name, data in files.items() if name.endswith(".patch")} == patches
    assert other.call("tree").out == tree


def test_a_file_that_is_there(small: Small, tmp_path: Path) -> None:
    path = tmp_path / "series.mbox"
    path.write_text("precious")
    assert "is there already" in small.call("export", "--mbox", str(path), code=1).err
    assert path.read_text() == "precious"
    small.call("export", "--mbox", str(path), "--force")
    assert path.read_bytes().startswith(b"From 0000000")
    assert "cannot be written" in small.call("export", "--mbox", "/nowhere/x", code=1).err
    small.call("export", "--mbox", str(path), "--branch", "x", code=2)
    small.call("export", "--branch", "x", code=2)
