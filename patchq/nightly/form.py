"""`night.json`: a night as JSON, written, and read strictly: it may come from another machine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, get_args

from patchq.errors import PatchqError
from patchq.nightly.model import (
    NAMES,
    Culprit,
    Fault,
    Night,
    NightState,
    Stage,
    StageState,
    Told,
)

SCHEMA = "patchq.night/1"
FILE = "night.json"
LARGEST = 4 << 20
NAME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:\.([1-9][0-9]{0,3}))?")
"""How a night is called: the day, and which of that day's it is."""
_HEX40 = re.compile(r"[0-9a-f]{40}")
_HEX64 = re.compile(r"[0-9a-f]{64}")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_QUEUE = re.compile(r"[^\s/<>\x00-\x1f\x7f]{1,100}")
_URL = re.compile(r"https?://[^\s\x00-\x1f\x7f<>\"']{1,2000}")
_CULPRITS = (
    *("patch", "base", "commit", "component", "template", "model", "draft", "profile"),
    "requirements",
)


def value(night: Night) -> dict[str, Any]:
    """The night as the JSON object of `night.json` (docs/json.md)."""
    fault, told = night.fault, night.told
    return {
        "schema": SCHEMA,
        "name": night.name,
        "queue": night.queue,
        "state": night.state,
        "began": night.began,
        "ended": night.ended,
        "start": night.start,
        "commit": night.commit,
        "base": {"from": night.base[0], "to": night.base[1]} if night.base else None,
        "tree": night.tree,
        "lock": night.lock,
        "stages": [
            {
                "name": each.name,
                "state": each.state,
                "began": each.began,
                "seconds": round(each.seconds, 1),
                "says": each.says,
                "exit": each.exit,
                "files": list(each.files),
            }
            for each in night.stages
        ],
        "fault": fault
        and {
            "stage": fault.stage,
            "cause": fault.cause,
            "lines": list(fault.lines),
            "reproduce": list(fault.reproduce),
            "culprits": [
                {
                    "kind": each.kind,
                    "name": each.name,
                    "says": each.says,
                    "url": each.url,
                    "confidence": each.confidence,
                }
                for each in fault.culprits
            ],
        },
        "told": {
            "pull": told.pull,
            "pushed": told.pushed,
            "issue": told.issue,
            "says": list(told.says),
        },
    }


def write(night: Night) -> bytes:
    """The bytes of `night.json`: the same night gives the same."""
    return (json.dumps(value(night), indent=2, ensure_ascii=True) + "\n").encode("ascii")


def read(data: bytes) -> Night:
    """The night that `data` is. Raises PatchqError for anything else, with what is wrong."""
    if len(data) > LARGEST:
        raise _damaged(f"it is larger than {LARGEST >> 20} MB")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise _damaged("it is no JSON") from None
    return _night(_Fields(found, ""))


def _night(of: _Fields) -> Night:
    if of.value.get("schema") != SCHEMA:
        raise _damaged(f"its schema is not {SCHEMA}")
    base = of.maybe("base", of.table)
    fault = of.maybe("fault", of.table)
    told = of.table("told")
    return Night(
        name=of.matching("name", NAME),
        queue=of.matching("queue", _QUEUE),
        state=of.one_of("state", get_args(NightState)),
        began=of.time("began"),
        ended=of.maybe("ended", of.time),
        start=of.matching("start", _HEX40),
        commit=of.maybe("commit", lambda key: of.matching(key, _HEX40)),
        base=(base.text("from", 200), base.text("to", 200)) if base else None,
        tree=of.maybe("tree", lambda key: of.matching(key, _HEX40)),
        lock=of.maybe("lock", lambda key: of.matching(key, _HEX64)),
        stages=tuple(_stage(each) for each in of.tables("stages", 3 * len(NAMES))),
        fault=_fault(fault) if fault else None,
        told=Told(
            pull=told.maybe("pull", told.whole),
            pushed=told.maybe("pushed", lambda key: told.matching(key, _HEX40)),
            issue=told.maybe("issue", told.whole),
            says=told.texts("says", 100),
        ),
    )


def _stage(of: _Fields) -> Stage:
    files = of.texts("files", 50)
    if not all(_PLAIN.fullmatch(each) for each in files):
        raise _damaged("a stage names a file that is no plain name")
    return Stage(
        name=of.one_of("name", NAMES),
        state=of.one_of("state", get_args(StageState)),
        began=of.time("began"),
        seconds=of.number("seconds"),
        says=of.text("says"),
        exit=of.maybe("exit", lambda key: of.whole(key, -1000)),
        files=files,
    )


def _fault(of: _Fields) -> Fault:
    return Fault(
        stage=of.one_of("stage", NAMES),
        cause=of.text("cause"),
        lines=of.texts("lines", 400),
        reproduce=of.texts("reproduce", 50),
        culprits=tuple(_culprit(each) for each in of.tables("culprits", 500)),
    )


def _culprit(of: _Fields) -> Culprit:
    return Culprit(
        kind=of.one_of("kind", _CULPRITS),
        name=of.text("name", 1000),
        says=of.text("says"),
        url=of.maybe("url", lambda key: of.matching(key, _URL)),
        confidence=of.maybe("confidence", lambda key: of.number(key, 1)),
    )


class _Fields:
    """The fields of a table of `night.json`, each with its kind."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise _damaged(f"{where or 'it'} is no object")
        self.value: Mapping[str, Any] = value
        self.where = where

    def _wrong(self, key: str) -> PatchqError:
        return _damaged(f"{self.where}{key} is not what it has to be")

    def maybe(self, key: str, kind: Any) -> Any:
        return None if self.value.get(key) is None else kind(key)

    def text(self, key: str, most: int = 20_000) -> str:
        found = self.value.get(key)
        if not isinstance(found, str) or len(found) > most:
            raise self._wrong(key)
        return found

    def texts(self, key: str, most: int) -> tuple[str, ...]:
        found = self.value.get(key)
        if not isinstance(found, list) or len(found) > most:
            raise self._wrong(key)
        if not all(isinstance(each, str) and len(each) <= 20_000 for each in found):
            raise self._wrong(key)
        return tuple(found)

    def matching(self, key: str, form: re.Pattern[str]) -> str:
        found = self.text(key)
        if not form.fullmatch(found):
            raise self._wrong(key)
        return found

    def one_of(self, key: str, words: tuple[Any, ...]) -> Any:
        found = self.text(key, 100)
        if found not in words:
            raise self._wrong(key)
        return found

    def time(self, key: str) -> str:
        found = self.text(key, 40)
        try:
            when = datetime.fromisoformat(found)
        except ValueError:
            raise self._wrong(key) from None
        if when.tzinfo is None:
            raise self._wrong(key)
        return found

    def number(self, key: str, most: float = 1e9) -> float:
        found = self.value.get(key)
        if not isinstance(found, int | float) or isinstance(found, bool) or not 0 <= found <= most:
            raise self._wrong(key)
        return float(found)

    def whole(self, key: str, least: int = 1) -> int:
        found = self.value.get(key)
        if type(found) is not int or not least <= found < 1 << 53:
            raise self._wrong(key)
        return found

    def table(self, key: str) -> _Fields:
        return _Fields(self.value.get(key), f"{self.where}{key}.")

    def tables(self, key: str, most: int) -> list[_Fields]:
        found = self.value.get(key)
        if not isinstance(found, list) or len(found) > most:
            raise self._wrong(key)
        return [_Fields(each, f"{self.where}{key}.") for each in found]


def _damaged(why: str) -> PatchqError:
    return PatchqError(f"{FILE} is no night that this patchq can read: {why}", "see docs/json.md")
