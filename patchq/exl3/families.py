"""Which layer is cut how: the table in families.toml, and a user's in front of it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from patchq.errors import PatchqError
from patchq.exl3.model import Split

SPLITS = ("column", "row", "whole")
KEYS = frozenset({"modules", "split", "why", "parts", "heads", "shared", "mlp"})
_EXPRESSION = re.compile(r"[A-Za-z_]\w*(\*[A-Za-z_]\w*)*")


@dataclass(frozen=True)
class Rule:
    """One entry of the table; families.toml says what its keys mean."""

    modules: tuple[str, ...]
    split: Split
    why: str = ""
    parts: int | tuple[str, ...] = 1
    heads: str = ""
    shared: bool = False
    mlp: str = ""


@dataclass(frozen=True)
class Families:
    """Tables in the order in which they are asked."""

    tables: tuple[tuple[Rule, ...], ...]

    def find(self, module: str) -> Rule | None:
        """The rule with the longest end that fits `module`, from the first table that has one."""
        names = module.split(".")
        for table in self.tables:
            best, length = None, 0
            for rule in table:
                for end in rule.modules:
                    wanted = end.split(".")
                    if length < len(wanted) <= len(names) and all(
                        each in ("*", name)
                        for each, name in zip(wanted, names[-len(wanted) :], strict=True)
                    ):
                        best, length = rule, len(wanted)
            if best is not None:
                return best
        return None


def load(extra: Sequence[Path] = ()) -> Families:
    """The shipped table behind the files of `extra`. Raises PatchqError for a bad table."""
    tables = []
    for path in extra:
        try:
            content = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise PatchqError(f"{path} cannot be read: {problem}", "name a TOML file") from None
        tables.append(parse(content, str(path)))
    shipped = files("patchq.exl3").joinpath("families.toml").read_text(encoding="utf-8")
    return Families((*tables, parse(shipped, "families.toml")))


def parse(content: str, where: str) -> tuple[Rule, ...]:
    """The rules of one table. Raises PatchqError with the place and the reason."""
    try:
        document = tomllib.loads(content)
    except tomllib.TOMLDecodeError as problem:
        raise PatchqError(f"{where} is no TOML: {problem}", "correct it") from None
    found = document.get("rule")
    if set(document) - {"rule"} or not isinstance(found, list) or not found:
        raise PatchqError(
            f"{where} is no table of [[rule]] entries",
            'an entry has modules = ["..."] and split = "column", "row" or "whole"',
        )
    return tuple(_rule(entry, f"{where}, rule {number}") for number, entry in enumerate(found, 1))


def _rule(entry: Any, where: str) -> Rule:
    def refuse(why: str) -> PatchqError:
        return PatchqError(f"{where}: {why}", "patchq's own families.toml shows the form")

    if not isinstance(entry, dict) or set(entry) - KEYS:
        raise refuse(f"it may have {', '.join(sorted(KEYS))}")
    modules = entry.get("modules")
    if not isinstance(modules, list) or not modules or not all(map(_is_end, modules)):
        raise refuse("modules is no list of ends of dotted names")
    if entry.get("split") not in SPLITS:
        raise refuse(f"split is one of {', '.join(SPLITS)}")
    parts = entry.get("parts", 1)
    if isinstance(parts, list):
        parts = tuple(parts)
        if not parts or not all(isinstance(p, str) and _EXPRESSION.fullmatch(p) for p in parts):
            raise refuse("parts lists products of names in config.json: heads*head_dim")
    elif type(parts) is not int or not 1 <= parts <= 16:
        raise refuse("parts is a number of equal parts, 1 to 16, or a list")
    for key, kind in (("why", str), ("heads", str), ("shared", bool)):
        if not isinstance(entry.get(key, kind()), kind):
            raise refuse(f"{key} is no {kind.__name__}")
    if entry.get("mlp", "") not in ("", "in", "out"):
        raise refuse('mlp is "in" or "out"')
    return Rule(
        tuple(modules),
        cast(Split, entry["split"]),
        entry.get("why", ""),
        parts,
        entry.get("heads", ""),
        entry.get("shared", False),
        entry.get("mlp", ""),
    )


def _is_end(value: Any) -> bool:
    return isinstance(value, str) and all(value.split("."))


def number(config: Any, name: str) -> int | None:
    """The whole number `name` of config.json, also where it stands in the text model's part."""
    for place in ("", "text_config", "llm_config", "language_config", "thinker_config"):
        part = config.get(place, {}) if place else config
        if isinstance(part, dict):
            value = part.get(name)
            if type(value) is int and value > 0:
                return value
    if name == "head_dim":
        hidden, heads = number(config, "hidden_size"), number(config, "num_attention_heads")
        if hidden and heads and hidden % heads == 0:
            return hidden // heads
    if name == "num_key_value_heads":
        return number(config, "num_attention_heads")
    return None


def product(config: Any, expression: str) -> int | None:
    """`a*b` in numbers of config.json; None where one is missing."""
    value = 1
    for name in expression.split("*"):
        factor = number(config, name)
        if factor is None:
            return None
        value *= factor
    return value
