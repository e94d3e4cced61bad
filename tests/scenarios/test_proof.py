"""A carry without conflict can still be wrong: the proof says so and nothing changes."""

from __future__ import annotations

import pytest

from tests.support.cli import Queue
from tests.support.history import History, lines

BODY = b"".join(b"    step_%d = %d\n" % (n, n) for n in range(12))


@pytest.mark.parametrize("other", [False, True], ids=["alone", "among others"])
def test_await_without_async(upstream: History, queue: Queue, other: bool) -> None:
    """Upstream's function is no coroutine any more: parses, but does not compile."""
    upstream.commit().write("m.py", b"async def f(x):\n" + BODY).write("z", b"z\n").tag("v1")
    upstream.commit().write("m.py", b"def f(x):\n" + BODY).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.edit("m.py", b"    step_9 = 9\n", b"    step_9 = await x\n")
    if other:
        topic.commit("other").write("z", b"zz\n")
    queue.start()

    value = queue.sync(code=5).json

    assert value["proof"]["ok"] is False
    failed = [check for check in value["proof"]["checks"] if not check["ok"]]
    assert any("m.py" in str(check) for check in failed)


def test_else_without_if(upstream: History, queue: Queue) -> None:
    text = b"def f(x):\n    if x:\n" + BODY.replace(b"    ", b"        ") + b"    return x\n"
    upstream.commit().write("m.py", text).tag("v1")
    upstream.commit().edit("m.py", b"    if x:\n", b"    with x:\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.edit("m.py", b"    return x\n", b"    else:\n        x = 0\n    return x\n")
    queue.start()

    assert queue.sync(code=5).json["proof"]["ok"] is False


def test_dry_run_proves_too(upstream: History, queue: Queue) -> None:
    upstream.commit().write("m.py", b"async def f(x):\n" + BODY).tag("v1")
    upstream.commit().write("m.py", b"def f(x):\n" + BODY).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.edit("m.py", b"    step_9 = 9\n", b"    step_9 = await x\n")
    queue.start()

    queue.sync("v2", "--dry-run", code=5)


def test_file_that_never_compiled(upstream: History, queue: Queue) -> None:
    """Upstream's own broken file (a fixture, a template) is not the patch's fault."""
    text = b"print 'python 2'\n" + lines(range(1, 20), word="#")
    upstream.commit().write("fixture.py", text).tag("v1")
    upstream.commit().write("fixture.py", text + b"# more\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.edit("fixture.py", b"# 7\n", b"# 7, ours\n")
    queue.start()

    assert queue.sync().column("action") == ["keep"]
    queue.expect({"fixture.py": text.replace(b"# 7\n", b"# 7, ours\n") + b"# more\n"})


def test_imported_check_never_runs(upstream: History, queue: Queue) -> None:
    """Imported text never becomes a command."""
    mark = queue.folder / "ran"
    upstream.commit().write("a.txt", lines(range(1, 20))).tag("v1")
    upstream.commit().write("b.txt", b"b\n").tag("v2")
    topic = upstream.branch("topic", at="v1")
    made = topic.commit(
        f"Ours\n\nWhy.\n\nPatchq-Check: touch {mark}\nPatchq-Drop-When: base>=2\n"
    ).edit("a.txt", b"line 7\n", b"seven\n")
    made.commit(f"Patchq-Check: touch {mark}\n\nPatchq-Check: touch {mark}\n").edit(
        "a.txt", b"line 17\n", b"seventeen\n"
    )
    queue.start()

    queue.sync()

    assert not mark.exists()
    for path in (queue.patch_file(1), queue.patch_file(2)):
        header = path.read_bytes().split(b"\n\n", 1)[0]
        assert not any(
            line.startswith((b"Patchq-Check:", b"Patchq-Drop-When:"))
            for line in header.split(b"\n")
        )


@pytest.mark.parametrize(
    ("command", "code"),
    [("grep -q seven a.txt", 0), ("grep -q eight a.txt", 5)],
    ids=["passes", "fails"],
)
def test_check_of_this_repository(upstream: History, queue: Queue, command: str, code: int) -> None:
    """A check that stands in the queue's own history runs in the patched tree of the new base."""
    upstream.commit().write("a.txt", lines(range(1, 20))).tag("v1")
    upstream.commit().write("b.txt", b"b\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("Ours")
    topic.edit("a.txt", b"line 7\n", b"seven\n")
    queue.start()
    path = queue.patch_file(1)
    head, rest = path.read_bytes().split(b"\n\n", 1)
    path.write_bytes(head + b"\nPatchq-Check: " + command.encode() + b"\n\n" + rest)
    queue.commit("confirm the check")

    value = queue.sync(code=code).json

    assert value["proof"]["ok"] is (code == 0)
    if code == 0:
        assert b"Patchq-Check: " + command.encode() in queue.patch_file(1).read_bytes()
