"""The clean apply that is wrong: a definition that upstream added elsewhere stands twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.cli import Queue
from tests.support.history import History

HELPER = b"def clamp(value, low, high):\n    return max(low, min(value, high))\n\n\n"
OTHER = b"def clamp(value, low, high):\n    return sorted((low, value, high))[1]\n\n\n"


def module(*, top: bytes = b"", bottom: bytes = b"", use: bytes = b"") -> bytes:
    """A module with room for a definition near its top and at its end."""
    body = b"".join(
        b"def f%d(x):\n    return x + %d%s\n\n\n" % (n, n, use if n == 7 else b"")
        for n in range(12)
    )
    return b"import os\n\n\n" + top + body + bottom + b"LAST = os.name\n"


def test_same_helper_elsewhere(upstream: History, queue: Queue) -> None:
    """Nothing but the helper is in the patch: it landed."""
    upstream.commit().write("m.py", module()).tag("v1")
    upstream.commit().write("m.py", module(bottom=HELPER)).tag("v2")
    upstream.branch("topic", at="v1").commit("clamp").write("m.py", module(top=HELPER))
    names = queue.start().names()

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["action"]) == ("landed", "drop")
    assert queue.retired() == names
    queue.expect({"m.py": module(bottom=HELPER)})


def test_same_helper_elsewhere_and_more_in_the_patch(upstream: History, queue: Queue) -> None:
    use = b" + clamp(x, 0, 1)"
    upstream.commit().write("m.py", module()).tag("v1")
    upstream.commit().write("m.py", module(bottom=HELPER)).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("clamp")
    topic.write("m.py", module(top=HELPER, use=use))
    names = queue.start().names()

    patch = queue.sync().patch(1)

    assert (patch["verdict"], patch["action"]) == ("partly-landed", "shrink")
    assert queue.names() == names
    queue.expect({"m.py": module(bottom=HELPER, use=use)})


def test_same_helper_elsewhere_and_another_file(upstream: History, queue: Queue) -> None:
    upstream.commit().write("m.py", module()).tag("v1")
    upstream.commit().write("m.py", module(bottom=HELPER)).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("clamp").write("m.py", module(top=HELPER))
    topic.write("use.py", b"from m import clamp\n\nclamp(1, 2, 3)\n")
    queue.start()

    assert queue.sync().column("verdict") == ["partly-landed"]
    queue.expect(
        {"m.py": module(bottom=HELPER), "use.py": b"from m import clamp\n\nclamp(1, 2, 3)\n"}
    )


def test_next_patch_uses_the_helper(upstream: History, queue: Queue) -> None:
    """The first patch goes, the second, made on top of it, still finds its place."""
    upstream.commit().write("m.py", module()).tag("v1")
    upstream.commit().write("m.py", module(bottom=HELPER)).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("clamp").write("m.py", module(top=HELPER))
    use = b" + clamp(x, 0, 1)"
    topic.commit("use").write("m.py", module(top=HELPER, use=use))
    queue.start()

    assert queue.sync().column("action") == ["drop", "keep"]
    queue.expect({"m.py": module(bottom=HELPER, use=use)})


def test_same_method_elsewhere_in_the_class(upstream: History, queue: Queue) -> None:
    def text(top: bytes = b"", bottom: bytes = b"") -> bytes:
        body = b"".join(b"    def m%d(self):\n        return %d\n\n" % (n, n) for n in range(12))
        return b"class Box:\n    size = 1\n\n" + top + body + bottom + b"\nBOX = Box()\n"

    method = b"    def area(self):\n        return self.size * self.size\n\n"
    upstream.commit().write("m.py", text()).tag("v1")
    upstream.commit().write("m.py", text(bottom=method)).tag("v2")
    upstream.branch("topic", at="v1").commit("area").write("m.py", text(top=method))
    queue.start()

    assert queue.sync().column("verdict") == ["landed"]
    queue.expect({"m.py": text(bottom=method)})


def test_same_name_with_another_body(upstream: History, queue: Queue) -> None:
    upstream.commit().write("m.py", module()).tag("v1")
    upstream.commit().write("m.py", module(bottom=OTHER)).tag("v2")
    upstream.branch("topic", at="v1").commit("clamp").write("m.py", module(top=HELPER))
    queue.start()

    outcome = queue.sync(code=4)

    assert outcome.column("verdict") == ["uncertain"]
    assert outcome.column("action") == ["ask"]
    assert "clamp" in outcome.text


def test_upstream_renames_into_our_name(upstream: History, queue: Queue) -> None:
    """Upstream's `bound` became `clamp`, which we carry under that name."""
    upstream.commit().write("m.py", module(bottom=OTHER.replace(b"clamp", b"bound"))).tag("v1")
    upstream.commit().write("m.py", module(bottom=OTHER)).tag("v2")
    topic = upstream.branch("topic", at="v1").commit("clamp")
    topic.write("m.py", module(top=HELPER, bottom=OTHER.replace(b"clamp", b"bound")))
    queue.start()

    outcome = queue.sync(code=None)

    assert outcome.code in (4, 5), str(outcome)
    assert "clamp" in outcome.text


TWICE_BY_RIGHT = {
    "property": b"""class Box:
    @property
    def size(self):
        return self._size

    @size.setter
    def size(self, value):
        self._size = value
""",
    "overload": b"""from typing import overload


@overload
def pick(x: int) -> int: ...
@overload
def pick(x: str) -> str: ...
def pick(x):
    return x
""",
    "branches": b"""import sys

if sys.platform == "linux":

    def where():
        return "here"
else:

    def where():
        return "there"
""",
    "two classes": b"""class One:
    def name(self):
        return 1


class Two:
    def name(self):
        return 2
""",
    "try": b"""try:
    from json import loads
except ImportError:

    def loads(text):
        return None
""",
}


@pytest.mark.parametrize("text", TWICE_BY_RIGHT.values(), ids=TWICE_BY_RIGHT.keys())
def test_twice_by_right(upstream: History, queue: Queue, text: bytes) -> None:
    """Python has good reasons to define a name twice: no false alarm."""
    filler = b"".join(b"X%d = %d\n" % (n, n) for n in range(20))
    upstream.commit().write("m.py", filler).tag("v1")
    upstream.commit().write("m.py", b"FIRST = 1\n" + filler).tag("v2")
    upstream.branch("topic", at="v1").commit("ours").write("m.py", filler + text)
    queue.start()

    assert queue.sync().column("verdict") == ["needed"]
    queue.expect({"m.py": b"FIRST = 1\n" + filler + text})


def test_stood_twice_upstream_already(upstream: History, queue: Queue) -> None:
    """Upstream's own doubled definition is not the patch's fault."""
    base = module(top=HELPER, bottom=OTHER)
    upstream.commit().write("m.py", base).tag("v1")
    upstream.commit().write("m.py", base + b"MORE = 1\n").tag("v2")
    topic = upstream.branch("topic", at="v1").commit("ours")
    topic.edit("m.py", b"return x + 5\n", b"return x + 55\n")
    queue.start()

    assert queue.sync().column("action") == ["keep"]
    queue.expect({"m.py": base.replace(b"x + 5\n", b"x + 55\n") + b"MORE = 1\n"})


GUARD = b"""    if x is None:
        log.warning('nothing given')
        count['nothing'] += 1
        if count['nothing'] > LIMIT:
            raise RuntimeError('nothing given, again and again')
        return None
"""
SETTINGS = b"""    restart: always
    privileged: true
    read_only: false
    environment:
      MODE: server
      LEVEL: debug
"""


def guarded(*numbers: int) -> bytes:
    return b"".join(
        b"def f%d(x):\n%s    y = x + %d\n    return y * %d\n\n\n"
        % (n, GUARD if n in numbers else b"", n, n)
        for n in range(12)
    )


def services(*numbers: int) -> bytes:
    return b"services:\n" + b"".join(
        b"  s%d:\n    image: s%d\n%s    port: %d\n" % (n, n, SETTINGS * (n in numbers), n)
        for n in range(12)
    )


def sections(*numbers: int) -> bytes:
    more = b"restart = always\nprivileged = true\nread_only = false\nlevel = debug\n"
    return b"".join(
        b"[s%d]\nimage = s%d\n%sport = %d\n\n" % (n, n, more * (n in numbers), n) for n in range(12)
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [("m.py", guarded), ("m.yaml", services), ("m.ini", sections)],
    ids=["guard", "settings", "sections"],
)
def test_same_lines_elsewhere_are_no_definition(
    upstream: History, queue: Queue, name: str, text: Callable[..., bytes]
) -> None:
    """Upstream put the very lines into another function or section: who can tell? A person.

    They may be missing where the patch has them, or be the patch itself, landed elsewhere.
    """
    upstream.commit().write(name, text()).tag("v1")
    upstream.commit().write(name, text(9)).tag("v2")
    upstream.branch("topic", at="v1").commit("ours").write(name, text(2))
    queue.start()

    patch = queue.sync(code=4).patch(1)
    assert (patch["verdict"], patch["carry"], patch["action"]) == ("uncertain", "clean", "ask")

    queue.run("decide", patch["name"], "keep", "--why", "another place", "--onto", "v2")
    assert queue.sync().column("action") == ["keep"]
    queue.expect({name: text(2, 9)})


def test_same_lines_elsewhere_in_several_places(upstream: History, queue: Queue) -> None:
    """One of our places is upstream's too, the other is not."""
    upstream.commit().write("m.py", guarded()).tag("v1")
    upstream.commit().write("m.py", guarded(9)).tag("v2")
    upstream.branch("topic", at="v1").commit("ours").write("m.py", guarded(2, 9))
    queue.start()

    assert queue.sync().column("action")[0] in {"keep", "shrink"}
    queue.expect({"m.py": guarded(2, 9)})


def test_same_method_in_another_class(upstream: History, queue: Queue) -> None:
    """The same method text in another class is another method."""

    def text(*having: str) -> bytes:
        method = b"    def area(self):\n        return self.size * self.size\n\n"
        return b"".join(
            b"class %s:\n    size = 1\n\n%s    def other(self):\n        return 2\n\n\n"
            % (name.encode(), method if name in having else b"")
            for name in ("Box", "Cup", "Jar", "Pot", "Tin", "Urn")
        )

    upstream.commit().write("m.py", text()).tag("v1")
    upstream.commit().write("m.py", text("Urn")).tag("v2")
    upstream.branch("topic", at="v1").commit("ours").write("m.py", text("Box"))
    queue.start()

    assert queue.sync().column("action") == ["keep"]
    queue.expect({"m.py": text("Box", "Urn")})
