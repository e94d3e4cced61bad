"""What `patchq report` finds out about a queue: all of it from real files, nothing guessed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from patchq.carry.workspace import Queue, read_queue
from patchq.config import find_project
from patchq.forge.model import PullRequest
from patchq.forge.writing import Writer
from patchq.nightly import form, page_asked, shared
from patchq.nightly.model import Night, NightState, Told
from patchq.nightly.page import Downloads, Page, gather, ordered
from patchq.nightly.page_pulls import Change
from patchq.release import publish
from patchq.release.where import Where
from patchq.render.page import files
from patchq.upstream import pulls as records
from patchq.upstream import state as states
from patchq.upstream.drift import Drift, Newer
from patchq.upstream.pulls import Pull
from tests.support.forge.fixtures import forge, forge_server  # noqa: F401
from tests.support.forge.server import Forge
from tests.support.history import git
from tests.support.inside import Small
from tests.support.released import Released

NOW = datetime(2026, 12, 2, 9, 30, tzinfo=UTC)
REPO = "acme/demo"
UNKNOWN = Downloads({}, {}, missing="nobody was asked")


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path / "story").filled()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "nights"


def queue(small: Small) -> Queue:
    return read_queue(find_project(small.root), None)


def head(small: Small) -> str:
    return git(small.root, "rev-parse", "HEAD").decode().strip()


def night(small: Small, day: int, state: NightState = "green", **more: Any) -> Night:
    """The night of a day in December, at the queue's present commit."""
    name = f"2026-12-{day:02}"
    begun = Night(
        name, "demo", state, f"{name}T01:00:00+00:00", f"{name}T06:00:00+00:00", head(small)
    )
    return replace(begun, **more)


def keep(folder: Path, found: Night, **results: Any) -> Night:
    """The night's folder, with what its stages printed."""
    place = folder / found.name
    place.mkdir(parents=True, exist_ok=True)
    (place / form.FILE).write_bytes(form.write(found))
    for name, value in results.items():
        (place / f"{name}.json").write_text(value if isinstance(value, str) else json.dumps(value))
    return found


def page(small: Small, folder: Path, *nights: Night, **more: Any) -> Page:
    given = {"drift": Drift("v1"), "downloads": UNKNOWN, **more}
    return gather(queue(small), now=NOW, nights=nights, folder=folder, **given)


def synced(small: Small, onto: str) -> dict[str, Any]:
    return small.call("sync", "--onto", onto, "--dry-run", "--json", code=None).json


def test_a_queue_of_which_little_is_known(small: Small, folder: Path) -> None:
    found = page(small, folder)
    assert (found.queue, found.base, found.hours, found.late) == ("demo", "v1", None, False)
    assert [(each.name, each.subject, each.verdict) for each in found.patches] == [
        ("lands", "Lands", None),
        ("stays", "Stays", None),
    ]
    assert found.tree == queue(small).state.runner_tree
    assert (found.moved_since, found.unmoved) == (
        None,
        "no night is known here: nothing to compare with",
    )
    assert (found.pulls, found.releases, found.nights, found.notes) == ((), (), (), ())


def test_a_patch_says_where_it_comes_from_and_what_it_waits_for(small: Small, folder: Path) -> None:
    file = next(small.root.glob("series/*-lands.patch"))
    text = file.read_text()
    start = text.index("Patchq-Name")
    head_, rest = text[:start], text[start:]
    head_ = "\n".join(
        "Date: Tue, 1 Dec 2026 23:00:00 -0500" if line.startswith("Date:") else line
        for line in head_.split("\n")
        if not line.startswith("Origin:")
    )
    name, _, body = rest.partition("\n")
    more = f"Origin: backport, #7\nUpstream-Status: Submitted\n{name}\nPatchq-Pr: {REPO}#7 @ {'e' * 40}\nPatchq-Topic: cache\nPatchq-Drop-When: landed {REPO}#8\nPatchq-Drop-When: the moon is full\n"
    file.write_text(head_ + more + body)
    small.call("hold", "stays", "--why", "it waits")
    lands, stays = page(small, folder).patches
    assert (lands.origin, lands.status, lands.topic) == ("backport, #7", "Submitted", "cache")
    assert lands.age == 0, "it was made on the 2nd, in UTC"
    assert lands.waits == (f"landed {REPO}#8", "the moon is full")
    assert set(lands.pulls) == {(f"{REPO}#7", "carries"), (f"{REPO}#8", "waits")}
    assert (lands.held, stays.held) == (None, "it waits")
    dated = "Date: Tue, 1 Dec 2026 23:00:00 -0500\n"
    text = file.read_text()
    for other in ("", "Date: once upon a time\n"):
        file.write_text(text.replace(dated, other))
        assert page(small, folder).patches[0].age is None


def test_the_last_sync_says_what_it_thought(small: Small, folder: Path) -> None:
    first = keep(folder, night(small, 1), sync=synced(small, "v2"))
    last = keep(folder, night(small, 2, "asks"), sync=synced(small, "v3"))
    lands, stays = (each.verdict for each in page(small, folder, first, last).patches)
    assert lands is not None and stays is not None
    assert (lands.word, lands.action, lands.night, lands.onto) == (
        "landed",
        "drop",
        "2026-12-02",
        "v3",
    )
    assert lands.evidence and all(said.detail for said in lands.evidence)
    assert (stays.action, stays.carry, stays.conflicts) == ("ask", "conflict", 1)


def test_nothing_new_keeps_the_evidence_of_the_night_before(small: Small, folder: Path) -> None:
    judged = synced(small, "v2")
    (stays,) = (each for each in judged["patches"] if each["name"] == "stays")
    assert stays["verdict"] == "needed" and stays["evidence"]
    quiet = {**judged, "patches": [{**stays, "evidence": []}]}
    nights = (
        keep(folder, night(small, 1), sync=judged),
        keep(folder, night(small, 2, "quiet"), sync=quiet),
    )
    found = page(small, folder, *nights).patches[1].verdict
    assert found is not None and found.night == "2026-12-02"
    assert [said.detail for said in found.evidence] == [
        each["detail"] for each in stays["evidence"]
    ]


DAMAGE = (
    "{",
    "[]",
    '{"schema": "patchq.sync/9"}',
    '{"schema": "patchq.sync/1", "base": {"to": "v2"}, "patches": [{}]}',
    '{"schema": "patchq.sync/1", "base": {"to": "v2"}, "patches": [{"verdict": "<b>"}]}',
    '{"schema": "patchq.sync/1", "base": 3, "patches": []}',
    "[" * 100_000,
    "\udce9",
)


def test_a_damaged_report_is_named_and_left_out(small: Small, folder: Path) -> None:
    good = keep(folder, night(small, 1), sync=synced(small, "v2"))
    bad = keep(folder, night(small, 2))
    for damage in DAMAGE:
        (folder / bad.name / "sync.json").write_bytes(damage.encode("utf-8", "surrogateescape"))
        found = page(small, folder, good, bad)
        assert found.notes == ("the sync's report of the night 2026-12-02 cannot be read",), damage
        verdict = found.patches[0].verdict
        assert verdict is not None and verdict.night == "2026-12-01"


def test_a_sync_that_failed_said_nothing_of_patches(small: Small, folder: Path) -> None:
    error = {"schema": "patchq.error/1", "message": "no", "hint": "", "log": None}
    found = page(small, folder, keep(folder, night(small, 2, "red"), sync=error))
    assert found.notes == () and found.patches[0].verdict is None


def seen(number: int, state: str = "open", **more: Any) -> PullRequest:
    facts = {"title": f"Change {number}", "author": "someone", "head_sha": "1" * 40, "base": "main"}
    return PullRequest(REPO, number, state=state, **{**facts, **more})  # type: ignore[arg-type]


def record(small: Small, *pulls: Pull) -> None:
    """Let upstream/state.json know of pull requests, and track them."""
    config = small.root / "upstream/demo.toml"
    have = config.read_text()
    for each in pulls:
        if each.key not in have:
            have += f'\n[[track]]\npr = "{each.key}"\nwhy = "to be seen"\n'
    config.write_text(have)
    path = small.root / "upstream/state.json"
    every = states.read(path)
    known = {each.key: each for each in pulls}
    path.write_bytes(states.format({**every, "demo": replace(every["demo"], pulls=known)}))
    small.commit()


def moved(
    before: str = "2026-11-01T00:00:00Z", after: str = "2026-12-02T01:05:00Z"
) -> Callable[[Small], Night]:
    """Pull requests 1 to 3 are known when the night of the 2nd begins; it sees what moved."""

    def play(small: Small) -> Night:
        old = [records.record(None, seen(number), before) for number in (1, 2, 3)]
        record(small, *old)
        begun = night(small, 2)
        record(
            small,
            records.record(old[0], seen(1, "merged", merge_sha="2" * 40, updated_at=after), after),
            records.record(old[1], seen(2, updated_at=after), after),
            records.record(old[2], seen(3, head_sha="3" * 40, draft=True), after),
            records.record(None, seen(4), after),
        )
        return replace(begun, commit=head(small))

    return play


def test_what_moved_since_the_night_before(small: Small, folder: Path) -> None:
    last = moved()(small)
    found = page(small, folder, night(small, 1), last)
    assert found.moved_since == "2026-12-02" and found.unmoved == ""
    told = {each.key: each.changes for each in found.pulls}
    assert told == {
        f"{REPO}#1": (Change("state", "open", "merged"), Change("merge_sha", "", "2222222222")),
        f"{REPO}#2": (),
        f"{REPO}#3": (Change("draft", "no", "yes"), Change("head_sha", "1" * 10, "3" * 10)),
        f"{REPO}#4": (),
    }
    assert [each.new for each in found.pulls] == [False, False, False, True]
    assert [each.moved for each in found.pulls] == [True, False, True, True]
    assert found.pulls[0].state == "merged" and found.pulls[0].why == "to be seen"
    assert found.pulls[0].page == f"https://github.com/{REPO}/pull/1"


def test_the_night_saw_it_although_nothing_is_merged_yet(small: Small, folder: Path) -> None:
    last = moved()(small)
    git(small.root, "reset", "-q", "--hard", last.start)
    states_now = {each.key: each.state for each in page(small, folder, last).pulls}
    assert states_now[f"{REPO}#1"] == "merged", "as the night's own commit has it"
    git(small.root, "clone", "-q", ".", str(folder / last.name / "queue"))
    git(folder / last.name / "queue", "fetch", "-q", "origin", last.commit or "")
    git(small.root, "reflog", "expire", "--expire=now", "--all")
    git(small.root, "gc", "-q", "--prune=now")
    states_now = {each.key: each.state for each in page(small, folder, last).pulls}
    assert states_now[f"{REPO}#1"] == "merged", "as the night's clone has it"


def test_without_the_nights_commits_dates_say_what_is_new(small: Small, folder: Path) -> None:
    last = replace(moved()(small), start="f" * 40, commit="--output=x")
    found = page(small, folder, last)
    told = {each.key: [change.fact for change in each.changes] for each in found.pulls}
    assert told[f"{REPO}#1"] == ["state", "merge_sha"] and told[f"{REPO}#2"] == []
    assert [each.new for each in found.pulls] == [False, False, False, True]


def test_the_alarm_and_the_order_of_nights(small: Small, folder: Path) -> None:
    ten, two, other = night(small, 1), night(small, 1), night(small, 2)
    ten, two = replace(ten, name="2026-12-01.10"), replace(two, name="2026-12-01.2")
    stranger = replace(other, queue="other", name="2026-12-03")
    assert [each.name for each in ordered([two, stranger, ten, other, ten], "demo")] == [
        "2026-12-02",
        "2026-12-01.10",
        "2026-12-01.2",
    ]
    found = page(small, folder, other)
    assert (found.hours, found.late) == (3.5, False)
    assert replace(found, now=NOW + timedelta(hours=33)).late
    assert not replace(found, now=NOW + timedelta(hours=33), stale_hours=48).late
    running = page(small, folder, replace(other, state="running", ended=None))
    assert running.hours == 8.5, "since it began"


def whole(
    small: Small, folder: Path, monkeypatch: pytest.MonkeyPatch, *, offline: bool = True
) -> Page:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(NOW.timestamp())))
    return page_asked.whole(queue(small), nights=folder, offline=offline)


def test_drift_by_history(small: Small, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = whole(small, folder, monkeypatch)
    day = git(small.upstream.path, "log", "-1", "--format=%cs", "v2").decode().strip()
    assert found.drift.newer == (Newer("v2", day), Newer("v3", day))
    assert found.drift.commits == (("v3", 2), ("main", 2))
    assert found.drift.missing == () and found.exit_code == 0
    assert found.base_days == (NOW.date() - datetime.fromisoformat(found.drift.date).date()).days
    assert found.downloads.missing.startswith("no repository is set")


def test_drift_that_nobody_can_tell(
    small: Small, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small.root / "upstream/demo.toml"
    gone = config.read_text().replace(str(small.upstream.path), "http://127.0.0.1:9/gone.git")
    config.write_text(gone)
    for offline, code in ((True, 0), (False, 6)):
        found = whole(small, folder, monkeypatch, offline=offline)
        assert found.drift.newer is None and found.drift.commits == ()
        assert found.drift.missing and found.exit_code == code


def test_a_base_that_is_no_version(
    small: Small, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.call("sync", "--onto", head_of(small, "v2"), "--json")
    found = whole(small, folder, monkeypatch).drift
    assert found.newer is None and found.commits == (("v3", 1), ("main", 1))
    assert "is no version: releases since are not counted" in found.missing[0]


def head_of(small: Small, ref: str) -> str:
    return git(small.upstream.path, "rev-parse", f"{ref}^{{commit}}").decode().strip()


def test_nights_of_other_machines(
    small: Small, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was told stands on the branch, what was done stands here; offline the last fetch counts."""
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    git(small.root, "remote", "add", "origin", str(tmp_path / "remote.git"))
    keep(folder, night(small, 2))
    for each in (night(small, 1), night(small, 2, told=Told(pull=7))):
        shared.add(small.root, each)
    found = whole(small, folder, monkeypatch, offline=False)
    assert [(each.name, each.told.pull) for each in found.nights] == [
        ("2026-12-02", 7),
        ("2026-12-01", None),
    ]
    git(small.root, "update-ref", "-d", "refs/remotes/origin/patchq/nights")
    assert [each.name for each in whole(small, folder, monkeypatch).nights] == ["2026-12-02"]
    git(small.root, "fetch", "-q", "origin")
    assert len(whole(small, folder, monkeypatch).nights) == 2
    (tmp_path / "remote.git").rename(tmp_path / "away.git")
    found = whole(small, folder, monkeypatch, offline=False)
    assert len(found.nights) == 2 and "as they were seen last" in found.notes[0]
    assert found.exit_code == 6


def test_downloads(
    forge: Forge,  # noqa: F811
    tmp_path: Path,
    small: Small,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released = Released(tmp_path, forge.repo(REPO))
    with Writer(forge.api, forge.token) as client:
        released.release(1)
        publish.publish(client, publish.wanted(released.project, 1, REPO))
    at = Where(REPO, forge.api)
    nights = (night(small, 2), night(small, 1))

    def asked(offline: bool = False) -> Downloads:
        return page_asked.downloads(at, folder, nights, offline=offline)

    assert asked().missing == "there is no token in GITHUB_TOKEN or GH_TOKEN to ask with"
    monkeypatch.setenv("GITHUB_TOKEN", forge.token)
    live = asked()
    assert live.counts == {1: 0} and live.pages[1].endswith("/releases/tag/release-1")
    assert asked(offline=True).missing == "nobody is asked with --offline"
    kept = {"schema": "patchq.release-stats/1", "repo": REPO, "as_of": "2026-12-01T05:00:00+00:00"}
    listed = [{"number": 1, "downloads": 41, "page": None}]
    keep(folder, nights[1], downloads={**kept, "releases": listed})
    keep(folder, nights[0], downloads={**kept, "releases": [{"number": "x"}]})
    found = asked(offline=True)
    assert (found.counts, found.as_of, found.missing) == ({1: 41}, kept["as_of"], "")
    monkeypatch.setenv("GITHUB_TOKEN", "of nobody")
    refused = asked()
    assert (refused.counts, refused.reached) == ({1: 41}, False)
    (folder / nights[1].name / "downloads.json").unlink()
    assert "token" in asked().missing and not asked().reached


def test_the_same_is_the_same_byte_for_byte(
    small: Small, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(folder, moved()(small), sync=synced(small, "v3"))
    one = files(whole(small, folder, monkeypatch))
    assert one == files(whole(small, folder, monkeypatch))
    assert one != files(replace(whole(small, folder, monkeypatch), now=NOW + timedelta(hours=40)))
