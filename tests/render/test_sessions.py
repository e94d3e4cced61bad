"""Sessions for people: sides, the row of status, a source that was added; hostile ones too."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, RenderableType

from patchq.carry.addgit import AddGitReport
from patchq.carry.clash import Clash
from patchq.carry.merge import Blob
from patchq.carry.session import Glance
from patchq.render import sessions, sessions_json
from tests.render.reports import EVIL


def drawn(what: RenderableType) -> str:
    out = StringIO()
    Console(file=out, width=80, color_system=None).print(what)
    return out.getvalue()


def test_both_sides_line_by_line() -> None:
    many = b"".join(b"line %d\n" % n for n in range(9))
    marked = b"<<<<<<< v2\n" + many + b"||||||| before\n=======\n>>>>>>> p\n"
    clash = Clash(b"a", b"a", "content", None, None, None, marked)

    text = drawn(sessions.sides(clash, "v2", "0001-p.patch"))

    assert text.splitlines() == [
        "    line 1, v2:",
        *(f"      | line {n}" for n in range(4)),
        "      | ... 5 more",
        "    0001-p.patch:",
        "      (nothing)",
    ]


def test_sides_that_are_no_lines() -> None:
    clash = Clash(b"a", b"a", "binary", None, Blob("100644", b"\0"), None)
    assert drawn(sessions.sides(clash, "v2", "0001-p.patch")).splitlines() == [
        "    v2: a file that cannot be shown as lines",
        "    0001-p.patch: no such file",
    ]


def test_hostile_sides() -> None:
    line = EVIL.encode("utf-8", "surrogateescape").replace(b"\n", b" ") + b"\n"
    marked = b"<<<<<<< v2\n" + line + b"||||||| b\n=======\n\x1b[2J\n>>>>>>> p\n"
    text = drawn(sessions.sides(Clash(b"a", b"a", EVIL, None, None, None, marked), EVIL, EVIL))
    assert not set(text) & set("\x1b\x9b\u202e\u2066\u200b\r\t")


def test_the_row_of_status() -> None:
    assert sessions.rows(None) == []
    ((name, told),) = sessions.rows(Glance("/tree", "v2", "p"))
    assert (name, told) == (
        "session",
        "open, onto v2, at p: `patchq sync` tells more; its tree is /tree",
    )
    assert sessions.rows(Glance("/tree", damaged="it is damaged")) == [("session", "it is damaged")]
    assert sessions_json.glance(None) is None
    assert sessions_json.glance(Glance("/tree", "v2")) == {
        "tree": "/tree",
        "onto": "v2",
        "shown": None,
        "damaged": None,
    }


def test_a_source_that_was_added() -> None:
    report = AddGitReport(
        "demo", "upstream/demo.toml", "https://x.example/r", (("1", "c"), ("0", None)), 3
    )
    text = drawn(sessions.added_git(report))
    assert "demo has its history from https://x.example/r now" in text
    assert "It has no tag with the files of 0: no history there." in text
