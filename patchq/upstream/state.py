"""`upstream/state.json`: what the queues stand on. One writer, one fact a line, sorted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from patchq.errors import PatchqError
from patchq.upstream import pulls as records
from patchq.upstream.pulls import Pull
from patchq.upstream.releases import Release

SCHEMA = "patchq.state/1"


@dataclass(frozen=True)
class QueueState:
    """The base of one queue, what was proved on it, the releases and pull requests that it saw.

    `series` is the digest of the series that gives `runner_tree` on the base. `pulls` are the
    tracked pull requests by OWNER/REPO#N.
    """

    release: str
    commit: str
    tree: str
    series: str = ""
    runner_tree: str = ""
    releases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    pulls: Mapping[str, Pull] = field(default_factory=dict)

    def on(self, base: Release, series: str, runner_tree: str) -> QueueState:
        """The state after a sync."""
        facts = {**dict(base.facts), "commit": base.commit, "tree": base.tree}
        releases = {**dict(self.releases), base.name: facts}
        return replace(
            self,
            release=base.name,
            commit=base.commit,
            tree=base.tree,
            series=series,
            runner_tree=runner_tree,
            releases=releases,
        )

    def proved(self, series: str, runner_tree: str) -> QueueState:
        return replace(self, series=series, runner_tree=runner_tree)


def read(path: Path) -> dict[str, QueueState]:
    """All queues' states by name; an absent file is an empty state.

    Raises PatchqError for a file that is not ours or damaged.
    """
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (ValueError, UnicodeDecodeError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise _damaged(path, f"its schema is not {SCHEMA}")
    try:
        return {name: _queue(entry) for name, entry in data["queues"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(path, f"a field is missing or of the wrong kind ({error})") from error


def _queue(entry: dict[str, Any]) -> QueueState:
    base = entry["base"]
    return QueueState(
        release=str(base["release"]),
        commit=str(base["commit"]),
        tree=str(base["tree"]),
        series=str(entry.get("series", "")),
        runner_tree=str(entry.get("runner_tree", "")),
        releases={name: dict(facts) for name, facts in entry.get("releases", {}).items()},
        pulls={key: records.from_json(key, facts) for key, facts in entry.get("pulls", {}).items()},
    )


def format(states: Mapping[str, QueueState]) -> bytes:
    """The file's bytes."""
    queues = {
        name: {
            "base": {"release": state.release, "commit": state.commit, "tree": state.tree},
            "series": state.series,
            "runner_tree": state.runner_tree,
            "releases": {key: dict(value) for key, value in dict(state.releases).items()},
            **_pulls(state),
        }
        for name, state in states.items()
    }
    document = {"schema": SCHEMA, "queues": queues}
    return (json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _pulls(state: QueueState) -> dict[str, Any]:
    """Left out where none is tracked: older files stay as they are, byte for byte."""
    pulls = {key: records.to_json(pull) for key, pull in state.pulls.items()}
    return {"pulls": pulls} if pulls else {}


def _damaged(path: Path, why: str) -> PatchqError:
    return PatchqError(
        f"{path.parent.name}/{path.name} is damaged: {why}",
        "restore it from git; if two branches changed it, take one side and run `patchq sync`",
    )
