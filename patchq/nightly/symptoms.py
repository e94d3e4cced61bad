"""What a stage's result or log says went wrong: the first cause, and the lines that show it.

Each kind of result (`schema`) has a reader; where none says anything bad, the log is read.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from patchq.carry.report import SyncReport
from patchq.cluster.causes import CAUSES
from patchq.judge.model import Cause
from patchq.nightly import reports
from patchq.nightly.model import Culprit, Stage
from patchq.nightly.reports import number, table, tables, text, texts
from patchq.paths import show

LINES = 40
"""Lines of a log that are told, at most."""

_ERROR = re.compile(r"(?i)\berror\b|\bfatal\b|\bfailed\b|exception|^patchq: ")
_ENDED = re.compile(r"^[A-Za-z_][A-Za-z0-9_.]*(?:Error|Exception|Exit|Interrupt)\b")
"""The last line of a traceback."""
_REPO = re.compile(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True)
class Symptom:
    """`shows`: the commands that show it, after those that lead to the stage."""

    cause: str
    lines: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()
    culprits: tuple[Culprit, ...] = ()


def of(stage: Stage, folder: Path, github: str | None = None) -> Symptom:
    """Of a stage that did not end well. `github`: OWNER/REPO of upstream, for links."""
    for value in reports.results(folder, stage):
        reader = _READERS.get(text(value, "schema"))
        found = reader(value) if reader else None
        if value.get("schema") == "patchq.sync/1":
            found = _sync(reports.synced(value), github)
        if found is not None:
            # A bare sentence shows little: what the command said on its way stands in the log.
            more = _telling(reports.log(folder, stage))[1] if len(found.lines) < 2 else ()
            return replace(found, lines=(*found.lines, *more))
    line, lines = _telling(reports.log(folder, stage))
    if stage.state == "late" or not line:
        return Symptom(stage.says, lines)
    return Symptom(line, lines)


# What each kind of result says, where it says something bad


def _error(value: Mapping[str, Any]) -> Symptom | None:
    message, hint = text(value, "message"), text(value, "hint")
    return Symptom(message or "it failed", (f"hint: {hint}",) if hint else ())


def _sync(report: SyncReport, github: str | None) -> Symptom | None:
    asks = [patch for patch in report.patches if patch.action == "ask"]
    again = (f"patchq sync --onto {shlex.quote(report.base_to)}",)
    if not asks:
        bad = [check for check in report.proof.checks if not check.ok]
        if bad:
            failed = tuple(f"{check.name}: {check.detail}" for check in bad)
            named = [
                Culprit("patch", each.name, f"the proof names it: {bad[0].name}")
                for each in report.patches
                if _names(failed[0], each.name)
            ]
            return Symptom(f"the proof failed: {failed[0]}", failed, again, tuple(named[:1]))
        if not report.upstream.complete:
            why = "; ".join(report.upstream.notes) or "not everybody answered"
            return Symptom(f"upstream was not reached ({report.upstream.source}): {why}")
        return None
    lines: list[str] = []
    culprits: list[Culprit] = []
    for patch in asks:
        where = ", ".join(f"{show(each.path)} ({each.kind})" for each in patch.conflicts)
        why = f"conflicts in {where}" if where else "is it upstream's now?"
        said = "; ".join(signal.detail for signal in patch.evidence)
        lines.append(f"{patch.name}: {why}" + (f": {said}" if said and not where else ""))
        culprits.append(Culprit("patch", patch.name, f"asks for a decision: {why}"))
        for cause in dict.fromkeys(cause for each in patch.conflicts for cause in each.causes):
            lines.append(f"  since {cause.told}")
            if (culprit := _commit(cause, github)) not in culprits:
                culprits.append(culprit)
    since = (
        f", since {lines[1].removeprefix('  since ')}" if lines[1:2] and lines[1][0] == " " else ""
    )
    many = f"{len(asks)} of {len(report.patches)} patches ask for a decision: "
    return Symptom(
        (many if len(asks) > 1 else "") + lines[0] + since, tuple(lines), again, tuple(culprits)
    )


def _names(says: str, patch: str) -> bool:
    """Whether a check names a patch, or its file (`0003-NAME.patch`)."""
    return bool(re.search(rf"(?:(?<![\w-])|(?<=\d{{4}}-)){re.escape(patch)}(?![\w-])", says))


def _commit(cause: Cause, github: str | None) -> Culprit:
    """The upstream commit that made a patch conflict, and where to read of it."""
    url = None
    repo, _, pull = (cause.pr or "").partition("#")
    where = repo or github or ""
    if _REPO.fullmatch(where) and re.fullmatch(r"[1-9][0-9]{0,8}", pull):
        url = f"https://github.com/{where}/pull/{pull}"
    elif github and re.fullmatch(r"[0-9a-f]{40}", cause.commit):
        url = f"https://github.com/{github}/commit/{cause.commit}"
    return Culprit("commit", cause.commit[:12], cause.told.partition(" ")[2] or cause.title, url)


def _smoke(value: Mapping[str, Any]) -> Symptom | None:
    probes = tables(value, "probes")
    bad = [each for each in probes if each.get("state") == "failed"]
    bad = bad or [each for each in probes if each.get("state") == "not run"]
    if not bad:
        return None
    first, more = bad[0], f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    what = "fails" if first.get("state") == "failed" else "was not run"
    runner = table(value, "runner")
    where = [
        word
        for option, name in (
            ("--cluster", text(runner, "cluster")),
            ("--profile", text(runner, "profile") or text(value, "profile")),
        )
        if name
        for word in (option, name)
    ]
    url = text(table(value, "server"), "url")
    where = where if "--cluster" in where else ["--url", url, *where]
    command = ["patchq", "smoke", *where, "--only", text(first, "name")]
    command += ["--seed", str(number(value, "seed"))] if number(value, "seed") else []
    return Symptom(
        f"{text(first, 'name')} {what}{more}: {text(first, 'says')}",
        tuple(_shown(first)),
        (shlex.join(command),),
    )


def _shown(probe: Mapping[str, Any]) -> Iterator[str]:
    """Lines of what a probe saw: its rule, the logs, the exchange that went wrong."""
    for key in ("rule", "stands_for"):
        if text(probe, key):
            yield f"{key.replace('_', ' ')}: {text(probe, key)}"
    logs = table(table(probe, "evidence"), "lines")
    for node in logs:
        for line in texts(logs, node)[-(LINES // 2) :]:
            yield f"{node}| {line}"
    exchanges = tables(probe, "exchanges")
    odd = [each for each in exchanges if each.get("broke") or each.get("spin")] or exchanges[-1:]
    for each in odd[:2]:
        spin = table(each, "spin")
        if spin:
            yield (
                f"it spins ({text(spin, 'kind')}): {number(spin, 'copies')} copies of"
                f" {text(spin, 'what')!r}, from character {number(spin, 'begins')} on"
            )
        for key in ("asked", "broke", "reasoning", "content"):
            if said := text(each, key):
                yield f"{key}: {said}"


def _started(value: Mapping[str, Any]) -> Symptom | None:
    failure = table(value, "failure")
    if not failure:
        return None
    cluster, profile = text(value, "cluster"), text(value, "profile")
    node = f" (on {text(failure, 'node')})" if text(failure, "node") else ""
    remedy = text(failure, "remedy")
    return Symptom(
        f"it does not start{node}: {text(failure, 'says')}",
        (*texts(failure, "lines")[-(LINES - 1) :], *((f"what to do: {remedy}",) if remedy else ())),
        (shlex.join(["patchq", "cluster", "start", cluster, "--profile", profile]),),
    )


def _bench(value: Mapping[str, Any]) -> Symptom | None:
    if value.get("ok") is not False:
        return None
    broke = [
        text(each, "broke")
        for visit in tables(value, "visits")
        for each in tables(visit, "taken")
        if text(each, "broke")
    ]
    says = text(value, "stopped") or f"{number(value, 'broken')} requests have no figures"
    return Symptom(f"not all was measured: {says}", tuple(broke))


def _compare(value: Mapping[str, Any]) -> Symptom | None:
    if value.get("ok") is not False:
        return None
    wanted = text(value, "verdict")
    found = (*tables(value, "findings"), *tables(value, "totals"))
    says = tuple(text(each, "says") for each in found if each.get("verdict") == wanted)
    if wanted == "inconclusive":
        says = texts(value, "doubts") or says
    word = "it is slower than before" if wanted == "worse" else "it cannot be said how fast it is"
    return Symptom(f"{word}: {says[0]}" if says else word, says)


def _gate(value: Mapping[str, Any]) -> Symptom | None:
    bad = [each for each in tables(value, "findings") if each.get("ok") is not True]
    bad.sort(key=lambda each: each.get("state") != "failed")
    lines = tuple(f"{text(each, 'rule')}: {text(each, 'says')}" for each in bad)
    return Symptom(f"the gate says no: {lines[0]}", lines, ("patchq gate",)) if bad else None


def _checks(value: Mapping[str, Any]) -> Symptom | None:
    """Of a cut, a verification: named checks."""
    bad = [each for each in tables(value, "checks") if each.get("ok") is False]
    lines = tuple(f"{text(each, 'name')}: {text(each, 'detail')}" for each in bad)
    return Symptom(lines[0], lines) if bad else None


def _locked(value: Mapping[str, Any]) -> Symptom | None:
    keys = ", ".join(text(each, "key") for each in tables(value, "differing"))
    if not (value.get("checked") is True and keys):
        return None
    return Symptom(f"the runner lock does not hold: {keys}", (), ("patchq lock --check",))


def _built(value: Mapping[str, Any]) -> Symptom | None:
    if value.get("same") is not False:
        return None
    bad = tuple(name for name, same in table(value, "compared").items() if same is False)
    return Symptom(f"built again it is another: {', '.join(bad)}", bad)


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Symptom | None]] = {
    "patchq.error/1": _error,
    "patchq.lock-run/1": _locked,
    "patchq.build-run/1": _built,
    "patchq.cluster-start/1": _started,
    "patchq.smoke/1": _smoke,
    "patchq.bench/1": _bench,
    "patchq.compare/1": _compare,
    "patchq.gate/1": _gate,
    "patchq.release-cut/1": _checks,
}


# Where no result says it: the log


def _telling(log: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The first line of a log that says what went wrong, in words, and the lines around it."""
    place, says = _first(log)
    if place is None:
        return "", tuple(log[-LINES:])
    begin = max(0, min(place - LINES // 2, len(log) - LINES))
    return says, tuple(log[begin : begin + LINES])


def _first(log: Sequence[str]) -> tuple[int | None, str]:
    for follows in (False, True):
        for place, line in enumerate(log):
            for cause in CAUSES:
                if cause.follows is follows and cause.sign.search(line):
                    return place, f"{cause.says}: {line.strip()}"
        if not follows:
            for sign in (_ENDED, _ERROR):
                for place, line in enumerate(log):
                    if sign.search(line):
                        return place, line.strip().removeprefix("patchq: ")
    return None, ""
