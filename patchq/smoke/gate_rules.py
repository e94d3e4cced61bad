"""`ci/gate.toml`: what evidence has to show before a runner may be released.

cluster = "NAME"          whose nodes the evidence has to come from (ci/clusters/NAME.toml)
profile = "NAME"          what they have to have served (ci/profiles/NAME.toml)
days = 14                 how old evidence may be; left out: of any age
[smoke]                   left_out: probes that a runner may have no use for
[bench]                   contexts: prompt tokens that must have been measured (about);
                          rounds: at least; acceptance: least and most of all drafted tokens
[compare]                 verdicts: what the comparison with the last release may come to;
                          interleaved: whether both must have been measured in turns;
                          first: whether a first release, with none before it, may pass

Without the table [bench] or [compare] that evidence is not asked for.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchq.cluster.table import NAME, Table
from patchq.errors import PatchqError
from patchq.smoke.gate_forms import VERDICTS
from patchq.smoke.stats import Verdict

FILE = "ci/gate.toml"
_KEYS = ("cluster", "profile", "days", "smoke", "bench", "compare")


@dataclass(frozen=True)
class BenchRules:
    """`contexts` in prompt tokens; `acceptance`: least and most share, None: not judged."""

    contexts: tuple[int, ...] = ()
    rounds: int = 1
    acceptance: tuple[float, float] | None = None


@dataclass(frozen=True)
class CompareRules:
    """`first`: whether the first release, which has nothing to be compared with, may pass."""

    verdicts: tuple[Verdict, ...] = ("better", "same")
    interleaved: bool = False
    first: bool = False


@dataclass(frozen=True)
class Rules:
    """`days` None: evidence may be of any age; `bench`, `compare` None: it is not asked for."""

    cluster: str
    profile: str
    days: float | None = None
    left_out: tuple[str, ...] = ()
    bench: BenchRules | None = None
    compare: CompareRules | None = None


def load(root: Path, probes: Collection[str]) -> Rules:
    """The rules of the project at `root`; `probes`: the names of all that there are.

    Raises PatchqError where there are none, or the file is malformed.
    """
    try:
        data = tomllib.loads((root / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PatchqError(
            f"there is no {FILE}", "write the rules of the gate into it (docs/gate.md)"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PatchqError(f"{FILE} is not valid TOML: {error}", "correct the file") from error
    return parse(data, probes)


def parse(data: Mapping[str, Any], probes: Collection[str]) -> Rules:
    """What the file says. Raises PatchqError."""
    file = Table(data, FILE, _KEYS)
    if "smoke" not in data:
        raise file.wrong(
            "it has no table [smoke]", "write one, empty where every probe has to pass"
        )
    smoke = Table(data["smoke"], f"{FILE}, smoke", ("left_out",))
    left_out = _texts(smoke, "left_out")
    if unknown := sorted(set(left_out) - set(probes)):
        raise smoke.wrong(f"left_out: there is no probe {unknown[0]}", "docs/smoke.md has them all")
    return Rules(
        cluster=_name(file, "cluster"),
        profile=_name(file, "profile"),
        days=_number(file, "days", 3650) if "days" in data else None,
        left_out=left_out,
        bench=_bench(data["bench"]) if "bench" in data else None,
        compare=_compare(data["compare"]) if "compare" in data else None,
    )


def _bench(entry: Any) -> BenchRules:
    table = Table(entry, f"{FILE}, bench", tuple(BenchRules.__dataclass_fields__))
    contexts = table.data.get("contexts", [])
    if not isinstance(contexts, list) or not all(
        type(each) is int and each > 0 for each in contexts
    ):
        raise table.wrong("contexts is no list of numbers", "write contexts = [1024, 8192]")
    acceptance = table.data.get("acceptance")
    if acceptance is not None:
        if not isinstance(acceptance, list) or len(acceptance) != 2:
            raise table.wrong("acceptance is no pair", "write acceptance = [least, most]")
        least, most = (_share(table, each) for each in acceptance)
        if least > most:
            raise table.wrong(
                f"acceptance: {least:g} is more than {most:g}", "write the least first"
            )
        acceptance = least, most
    rounds = table.whole("rounds", 1, 10_000) if "rounds" in table.data else 1
    return BenchRules(tuple(contexts), rounds, acceptance)


def _compare(entry: Any) -> CompareRules:
    table = Table(entry, f"{FILE}, compare", tuple(CompareRules.__dataclass_fields__))
    told = _texts(table, "verdicts", list(CompareRules.verdicts))
    verdicts = tuple(each for each in VERDICTS if each in told)
    if len(verdicts) != len(told) or not verdicts:
        raise table.wrong(
            "verdicts has a word that is none, or the same one twice",
            f"they are {', '.join(VERDICTS)}",
        )
    flags = {}
    for key in ("interleaved", "first"):
        flags[key] = table.data.get(key, False)
        if not isinstance(flags[key], bool):
            raise table.wrong(f"{key} is neither true nor false", f"write {key} = false")
    return CompareRules(verdicts, **flags)


def _name(table: Table, key: str) -> str:
    text = table.text(key)
    if not NAME.fullmatch(text):
        raise table.wrong(f"{key} = {text!r} is no name", f"write the name of a {key}, not a path")
    return text


def _texts(table: Table, key: str, default: list[str] | None = None) -> tuple[str, ...]:
    value = table.data.get(key, default or [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise table.wrong(f"{key} is no list of texts", f'write {key} = ["..."]')
    return tuple(value)


def _number(table: Table, key: str, most: float) -> float:
    value = table.data[key]
    if type(value) not in (int, float) or not 0 < value <= most:
        raise table.wrong(f"{key} is no number up to {most:g}", f"write {key} = 14")
    return float(value)


def _share(table: Table, value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise table.wrong("acceptance is no pair of shares from 0 to 1", "write [least, most]")
    return float(value)
