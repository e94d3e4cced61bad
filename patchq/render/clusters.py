"""What `patchq cluster` did and saw, for people and as JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from patchq.cluster.lock import told, when
from patchq.errors import PatchqError
from patchq.paths import show

if TYPE_CHECKING:
    from rich.console import RenderableType

    from patchq.cluster.deploy import DeployReport
    from patchq.cluster.logs import LogsReport
    from patchq.cluster.ranks import ClusterStatus, Status, Stopped, StopReport
    from patchq.cluster.start import StartReport


def deployed_json(report: DeployReport) -> dict[str, Any]:
    return {
        "schema": "patchq.cluster-deploy/1",
        "cluster": report.cluster.name,
        "wheels": [
            {"name": each.path.name, "sha256": each.sha256} for each in report.bundle.wheels
        ],
        "labels": dict(report.bundle.labels),
        "nodes": [
            {
                "name": each.node.name,
                "release": each.digest,
                "previous": each.was,
                "shipped": list(each.shipped),
                "installed": each.installed,
                "python": each.python,
            }
            for each in report.nodes
        ],
    }


def deployed(report: DeployReport) -> RenderableType:
    lines = [f"{wheel.path.name}, sha256 {wheel.sha256}" for wheel in report.bundle.wheels]
    for each in report.nodes:
        what = "shipped, verified, installed" if each.shipped else "was there, installed"
        what = what if each.installed else "was installed"
        before = f"; {each.was} is kept" if each.was else ""
        lines.append(f"  {each.node.name}: {what} as {each.digest}{before}")
    return _lines(lines)


def started_json(report: StartReport) -> dict[str, Any]:
    failure = report.failure
    return {
        "schema": "patchq.cluster-start/1",
        "cluster": report.cluster.name,
        "profile": report.profile.name,
        "run": report.run,
        "url": report.url if failure is None else None,
        "seconds": round(report.seconds, 1),
        "ranks": [_status(each) for each in report.ranks],
        "failure": None
        if failure is None
        else {
            "says": failure.says,
            "remedy": failure.remedy,
            "node": failure.node.name if failure.node else None,
            "lines": list(failure.lines),
        },
        "left": stopped_json(report.left)["nodes"] if report.left else [],
    }


def started(report: StartReport) -> RenderableType:
    failure = report.failure
    if failure is None:
        ranks = ", ".join(f"rank {each.node.rank} on {each.node.name}" for each in report.ranks)
        return _lines(
            [
                f"{report.profile.name} serves at {report.url} after {report.seconds:.0f} s",
                f"  {ranks}; run {report.run}",
            ]
        )
    lines = [failure.says, f"  -> {failure.remedy}"]
    lines += [f"  | {line}" for line in failure.lines]
    if report.left is None:
        lines.append("nothing of it runs any more")
    else:
        lines += list(_stopped_lines(report.left))
    lines.append(f"its logs are kept: `patchq cluster logs {report.cluster.name}`")
    return _lines(lines)


def stopped_json(report: StopReport) -> dict[str, Any]:
    return {
        "schema": "patchq.cluster-stop/1",
        "cluster": report.cluster.name,
        "nodes": [
            {"name": node.name, "rank": node.rank, **_of_stopped(each)}
            for node, each in zip(report.cluster.nodes, report.nodes, strict=True)
        ],
    }


def _of_stopped(each: Stopped | PatchqError) -> dict[str, Any]:
    if isinstance(each, PatchqError):
        return _error(each)
    return {"ran": each.ran, "killed": each.killed, "left": list(each.left), "error": None}


def stopped(report: StopReport) -> RenderableType:
    return _lines(list(_stopped_lines(report)))


def _stopped_lines(report: StopReport) -> Iterator[str]:
    for node, each in zip(report.cluster.nodes, report.nodes, strict=True):
        if isinstance(each, PatchqError):
            yield f"{node.name}: {each.message}; what runs there runs on"
            yield f"  -> {each.hint}"
        elif each.left:
            yield f"{node.name}: processes {', '.join(map(str, each.left))} do not end"
            yield "  -> see with `ps` there what they wait for"
        elif not each.ran:
            yield f"{node.name}: nothing ran"
        else:
            how = f", {each.killed} processes had to be killed" if each.killed else ""
            yield f"{node.name}: rank {node.rank} is stopped{how}"


def status_json(report: ClusterStatus) -> dict[str, Any]:
    return {
        "schema": "patchq.cluster-status/1",
        "cluster": report.cluster.name,
        "nodes": [
            {"name": node.name, "rank": node.rank, **_error(each)}
            if isinstance(each, PatchqError)
            else _status(each)
            for node, each in zip(report.cluster.nodes, report.nodes, strict=True)
        ],
    }


def _status(each: Status) -> dict[str, Any]:
    return {
        "name": each.node.name,
        "rank": each.node.rank,
        "error": None,
        "state": _state(each),
        "current": each.current,
        "previous": each.previous,
        "run": _run(each.rank),
        "processes": each.processes,
        "restarts": each.restarts,
        "health": each.health,
        "progress": each.progress,
        "lock": each.lock,
    }


def _run(rank: Mapping[str, Any] | None) -> dict[str, Any] | None:
    keys = ("run", "by", "about", "since", "ended", "log", "pid")
    return None if rank is None else {key: rank.get(key) for key in keys}


def _state(each: Status) -> str:
    if each.rank is None:
        return "stopped"
    if each.alive:
        return "frozen" if each.frozen else "running"
    return "ended" if not each.processes else "ending"


def status(report: ClusterStatus) -> RenderableType:
    lines: list[str] = []
    for node, each in zip(report.cluster.nodes, report.nodes, strict=True):
        if isinstance(each, PatchqError):
            lines += [f"{node.name}: {each.message}", f"  -> {each.hint}"]
            continue
        lines.append(f"{node.name}: rank {node.rank} {_told(each)}")
        lines += [f"  {name} {_release(name, each)}" for name in ("current", "previous")]
        if each.lock:
            lines.append(f"  in use: {told(each.lock)}")
    return _lines(lines)


def _told(each: Status) -> str:
    rank, state = each.rank, _state(each)
    if rank is None:
        return "is stopped"
    since, by = when(rank["since"]), rank["by"]
    if state in ("ended", "ending"):
        ended = rank["ended"]
        how = f"ended with {ended['code']} at {when(ended['when'])}" if ended else "is gone"
        return f"{how}, started at {since} by {by}"
    words = f"{'is frozen' if state == 'frozen' else 'runs'} since {since}"
    words += f" ({rank['about'].get('profile')}, by {by}), {each.processes} processes"
    words += f", {each.restarts} restarts since it was deployed"
    if rank["port"]:
        words += f", health {each.health if each.health is not None else 'does not answer'}"
    return words + (f", {_progress(each.progress)}" if each.progress else "")


def _progress(progress: Mapping[str, Any]) -> str:
    keys = ("running_requests", "waiting_requests", "generation_tokens")
    names = ("running", "waiting", "tokens generated")
    known = [
        f"{progress[key]} {name}" for key, name in zip(keys, names, strict=True) if key in progress
    ]
    head = [str(progress["status"])] if "status" in progress else []
    if progress.get("status") == "stalled":
        head = [f"stalled for {progress.get('seconds_without_progress')} s"]
    return ", ".join([*head, *known])


def _release(name: str, each: Status) -> str:
    found = each.current if name == "current" else each.previous
    if found is None:
        return "none"
    wheel = found["wheels"][0]
    when_, lock = when(found["deployed"]), found["labels"].get("lock")
    runner = f", runner {lock[:12]}" if lock else ""
    number = found["labels"].get("number")
    what = f"release {number}, " if number else ""
    return f"{found['digest']}: {what}{wheel['name']}{runner}, deployed {when_} by {found['by']}"


def logs_json(report: LogsReport) -> dict[str, Any]:
    return {
        "schema": "patchq.cluster-logs/1",
        "cluster": report.cluster.name,
        "nodes": [
            {"name": node.name, "rank": node.rank, **_error(each)}
            if isinstance(each, PatchqError)
            else {
                "name": node.name,
                "rank": node.rank,
                "error": None,
                "runs": list(each.runs),
                "cut": each.cut,
                "found": [{"run": one.run, "lines": list(one.lines)} for one in each.found],
            }
            for node, each in zip(report.cluster.nodes, report.nodes, strict=True)
        ],
    }


def logs(report: LogsReport) -> RenderableType:
    return _lines(logs_lines(report))


def logs_lines(report: LogsReport) -> list[str]:
    lines: list[str] = []
    several = any(
        not isinstance(each, PatchqError) and len(each.found) > 1 for each in report.nodes
    )
    for node, each in zip(report.cluster.nodes, report.nodes, strict=True):
        if isinstance(each, PatchqError):
            lines += [f"{node.name}: {each.message}", f"  -> {each.hint}"]
            continue
        for one in each.found:
            before = f"{one.run} {node.name}" if several else node.name
            lines += [f"{before}| {line}" for line in one.lines]
        if each.cut:
            lines.append(f"{node.name}: more lines match; the last ones are shown")
        if not any(one.there for one in each.found):
            lines.append(f"{node.name}: no log is kept")
    return [show(line) for line in lines]


def _error(problem: PatchqError) -> dict[str, Any]:
    return {"error": {"message": problem.message, "hint": problem.hint}}


def _lines(lines: list[str]) -> RenderableType:
    from rich.console import Group

    from patchq.render.console import text

    return Group(*(text(show(line)) for line in lines))
