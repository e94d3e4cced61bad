"""What a doctor found, for people: a line where all is well, why and what to do where it is not."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from patchq.doctor.model import Check, Diagnosis, of_error
from patchq.errors import Incomplete, PatchqError
from patchq.render.doctor import as_json, drawn

OK = Check("checkpoint", "ok", "EXL3, 92 shards")
BAD = Check("loader", "fatal", "it is not cut", "no slices", "patchq slice run A B --tp 2")


def shown(*checks: Check) -> str:
    out = StringIO()
    Console(file=out, width=80, highlight=False, markup=False).print(drawn(Diagnosis(checks)))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def test_a_line_for_what_is_well_and_three_for_what_is_not() -> None:
    assert shown(OK, BAD) == (
        "ok     checkpoint  EXL3, 92 shards\n"
        "fatal  loader      it is not cut\n"
        "                   no slices\n"
        "                   -> patchq slice run A B --tp 2"
    )


def test_what_strangers_wrote_is_harmless() -> None:
    text = shown(Check("a\x1b[1m", "note", "b\x1b[31m", "c\u202e", "d\x07"))
    assert not {"\x1b", "\u202e", "\x07"} & set(text)


def test_json() -> None:
    value = as_json(Diagnosis((OK, BAD)))
    assert (value["schema"], value["ok"]) == ("patchq.doctor/1", False)
    assert value["checks"][1]["remedy"] == BAD.remedy


def test_exit_codes() -> None:
    unknown = of_error("node", Incomplete("it does not answer", "start it"))
    fatal = of_error("file", PatchqError("it is damaged", "mend it"))
    assert (unknown.state, fatal.state, fatal.remedy) == ("unknown", "fatal", "mend it")
    for code, checks in (
        (0, (OK, Check("x", "warning", "y"), Check("x", "note", "y"))),
        (6, (OK, unknown)),
        (5, (fatal, unknown)),
    ):
        assert Diagnosis(checks).exit_code == code
