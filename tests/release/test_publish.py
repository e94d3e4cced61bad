"""Publishing: killed or cut off anywhere, it ends in exactly one right release, seen only whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from patchq.errors import PatchqError, ProofFailed
from patchq.forge import releases
from patchq.forge.client import Patience
from patchq.forge.errors import ForgeError
from patchq.forge.releases import LARGEST, LONGEST, Asset, Release
from patchq.forge.writing import Writer
from patchq.release import bundle, publish, publishing, record, sums
from patchq.release.publishing import File, Stands, Wanted, plan
from tests.support.cli import program
from tests.support.forge import shelf
from tests.support.forge.accidents import Accident
from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge
from tests.support.forge.shelf import Shelf
from tests.support.history import git
from tests.support.released import Released

REPO = "acme/runner"
QUICK = Patience(tries=2, backoff=0, secondary=0.1, longest=2, timeout=5)
ONCE = replace(QUICK, tries=0)

# The plan: from what stands there to what is left


def file(name: str, digest: str = "a", size: int = 3) -> File:
    return File(Path("/bundle") / name, size, digest * 64)


WANT = Wanted(
    5, REPO, "7" * 40, "Release 5", "It goes on.", "5" * 64, (file("a.whl"), file("b.whl", "b"))
)


def asset(name: str, digest: str | None = "a", size: int = 3, *, uploaded: bool = True) -> Asset:
    return Asset(hash(name), name, size, uploaded, digest and digest * 64, 0, "")


def release(*assets: Asset, id: int = 1, number: int = 5, draft: bool = True) -> Release:
    return Release(
        id, f"release-{number}", f"Release {number}", WANT.body, draft, False, "", None, "", assets
    )


A, B = asset("a.whl"), asset("b.whl", "b")


def left(*found: Release) -> list[str]:
    return [f"{each.do} {each.what}" for each in plan(WANT, Stands(found, WANT.object))]


def test_from_nothing() -> None:
    assert left() == ["create release-5", "upload a.whl", "upload b.whl", "publish release-5"]


def test_what_is_right_already_is_not_sent_again() -> None:
    assert left(release(A)) == ["upload b.whl", "publish release-5"]
    assert left(release(A, B)) == ["publish release-5"]
    assert left(release(A, B, draft=False)) == []


@pytest.mark.parametrize(
    "odd",
    [
        asset("a.whl", None, 0, uploaded=False),
        asset("a.whl", "c"),
        asset("a.whl", None, 2),
        asset("a.whl", "a", 2),
    ],
    ids=["an upload that broke off", "another file", "half of it, no digest", "another size"],
)
def test_what_is_not_right_is_sent_again(odd: Asset) -> None:
    assert left(release(odd, B)) == ["remove-asset a.whl", "upload a.whl", "publish release-5"]


def test_what_is_not_ours_goes() -> None:
    assert left(release(A, B, asset("x"))) == ["remove-asset x", "publish release-5"]


def test_a_digest_that_is_not_told_is_waited_for() -> None:
    assert left(release(asset("a.whl", None), B)) == ["await a.whl", "publish release-5"]


def test_words_of_an_older_cut() -> None:
    older = replace(release(A, B), notes=WANT.body.replace("5" * 64, "4" * 64))
    assert left(older) == ["edit release-5", "publish release-5"]
    mended = replace(release(A, B), notes="A word more.\r\n" + WANT.mark, title="Release five")
    assert left(mended) == ["publish release-5"], "words that somebody mended there stay"


def test_two_drafts() -> None:
    """The answer to the first was lost, and the list did not show it yet: the older one stays."""
    assert left(release(id=9), release(A, B, id=3)) == [
        "remove-draft release-5",
        "publish release-5",
    ]
    assert left(release(A, B, draft=False), release(id=9)) == ["remove-draft release-5"]


def test_an_older_one_does_not_become_the_latest() -> None:
    for other, newest in ((4, True), (6, False)):
        found = (release(A, B), release(id=2, number=other, draft=False))
        (last,) = plan(WANT, Stands(found, WANT.object))
        assert last.newest is newest
    (last,) = plan(WANT, Stands((release(A, B), release(id=2, number=6)), WANT.object))
    assert last.newest, "a draft counts for nothing"


@pytest.mark.parametrize(
    ("assets", "says"),
    [
        ((A,), "b.whl is missing"),
        ((A, asset("b.whl", "c")), "b.whl is another file"),
        ((A, asset("b.whl", None)), "b.whl has no digest there"),
        ((A, B, asset("x\x1b[1m")), r"x\x1b[1m is not of the bundle"),
        ((A, asset("b.whl", "b", uploaded=False)), "b.whl is missing"),
    ],
)
def test_another_one_is_published(assets: tuple[Asset, ...], says: str) -> None:
    with pytest.raises(ProofFailed) as caught:
        left(release(*assets, draft=False))
    assert caught.value.message == f"release 5 is published already, and is another one: {says}"
    assert "withdraw it" in caught.value.hint


def test_a_withdrawn_one_has_more_files() -> None:
    found = release(A, B, asset("WITHDRAWN"), asset("WITHDRAWN.sig"), draft=False)
    assert left(found) == []


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a draft by hand": (
        lambda: left(replace(release(), notes="Soon!")),
        "acme/runner has a draft for release-5 that patchq did not make (1)",
    ),
    "no tag": (lambda: plan(WANT, Stands((), None)), "the tag release-5 is not at acme/runner yet"),
    "another tag": (
        lambda: plan(WANT, Stands((), "8" * 40)),
        "the tag release-5 at acme/runner is 888888888888, and here it is 777777777777",
    ),
    "too large": (
        lambda: plan(replace(WANT, files=(file("a", size=LARGEST + 1),)), Stands((), None)),
        "a has 2000000001 bytes, and GitHub takes 1 to 2000000000",
    ),
    "empty": (
        lambda: plan(replace(WANT, files=(file("a", size=0),)), Stands((), None)),
        "a has 0 bytes, and GitHub takes 1 to 2000000000",
    ),
    "an odd name": (
        lambda: plan(replace(WANT, files=(file("a b"),)), Stands((), None)),
        "GitHub would give 'a b' another name",
    ),
    "too many": (
        lambda: plan(replace(WANT, files=(file("a"),) * 1001), Stands((), None)),
        "release 5 has 1001 files, and GitHub takes 1000",
    ),
}


@pytest.mark.parametrize(("ask", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_stands_in_the_way(ask: Callable[[], object], says: str) -> None:
    with pytest.raises(PatchqError) as caught:
        ask()
    assert (caught.value.message, bool(caught.value.hint)) == (says, True)
    assert caught.value.exit_code == 1


def test_long_notes_are_cut_at_a_line() -> None:
    body = replace(WANT, notes="a line\n" * LONGEST).body
    assert len(body) < LONGEST + 200 and "a line\n\nThe rest stands in notes.md.\n" in body
    assert plan(WANT, Stands((replace(release(A, B), notes=body),), WANT.object))


# Against the forge


@pytest.fixture
def repo(forge: Forge) -> Repo:
    return forge.repo(REPO)


@pytest.fixture
def released(repo: Repo, tmp_path: Path) -> Released:
    return Released(tmp_path, repo)


@pytest.fixture
def client(forge: Forge) -> Iterator[Writer]:
    with Writer(forge.api, forge.token, patience=QUICK) as made:
        yield made


def want(released: Released, number: int = 1) -> Wanted:
    return publish.wanted(released.project, number, REPO)


def right(there: Shelf, place: Path, tag: str = "release-1") -> None:
    """Exactly one release, published, with the files of the bundle; and none was ever seen less."""
    (one,) = there.releases.values()
    assert (one.tag, one.draft, there.latest) == (tag, False, one.id)
    files = {path.name: sums.sha256(path) for path in place.iterdir()}
    assert {each.name: each.sha256 for each in one.assets.values()} == files
    assert all(each.state == "uploaded" for each in one.assets.values())
    assert set(there.seen) == {f"{tag}: {' '.join(sorted(files))}"}, "it was seen unfinished"


def test_published_once(forge: Forge, repo: Repo, released: Released, client: Writer) -> None:
    place = released.release(1)
    planned = publish.publish(client, want(released), dry_run=True)
    assert not repo.shelf.releases and planned.release is None
    assert {each.method for each in forge.asked} == {"GET"}
    done = publish.publish(client, want(released))
    right(repo.shelf, place)
    assert [each.do for each in planned.steps] == [each.do for each in done.steps]
    assert done.release and not done.release.draft
    count = forge.count()
    again = publish.publish(client, want(released))
    assert again.steps == () and again.release == done.release
    assert {each.method for each in forge.asked[count:]} == {"GET"}


def test_immutable_releases(repo: Repo, released: Released, client: Writer) -> None:
    repo.shelf.locks = True
    place = released.release(1)
    done = publish.publish(client, want(released))
    assert done.release and done.release.immutable
    right(repo.shelf, place)
    assert publish.publish(client, want(released)).steps == ()


def test_a_second_one_becomes_the_latest(repo: Repo, released: Released, client: Writer) -> None:
    released.release(1)
    released.release(3)
    released.release(2)
    for number in (1, 3, 2):
        publish.publish(client, want(released, number))
    assert repo.shelf.releases[repo.shelf.latest or 0].tag == "release-3"


def test_over_what_an_older_cut_left(
    repo: Repo, released: Released, client: Writer, tmp_path: Path
) -> None:
    """Half of it was sent, and a second draft made; then the release was cut again."""
    place = released.release(1)
    older = replace(want(released), sums="4" * 64)
    for _ in range(2):
        draft = releases.create(client, REPO, older.tag, older.title, older.body)
        for name in ("notes.md", "gone.whl"):
            path = tmp_path / name
            path.write_text("older\n")
            releases.upload(client, draft, path)
    done = publish.publish(client, want(released))
    right(repo.shelf, place)
    (one,) = repo.shelf.releases.values()
    assert want(released).mark in one.body and older.mark not in one.body
    assert [each.do for each in done.steps[:4]] == [
        "remove-draft",
        "edit",
        "remove-asset",
        "remove-asset",
    ]


def test_no_digest_ever(repo: Repo, released: Released, client: Writer) -> None:
    """An older server tells none: nothing proves the upload, so it is never published."""
    repo.shelf.tells = False
    place = released.release(1)
    with pytest.raises(ForgeError, match="tells no digest of a file") as caught:
        publish.publish(client, want(released))
    assert caught.value.exit_code == 6 and repo.shelf.seen == []
    repo.shelf.tells = True
    publish.publish(client, want(released))
    right(repo.shelf, place)


def test_a_file_that_is_altered_on_the_way(
    forge: Forge, repo: Repo, released: Released, client: Writer
) -> None:
    """It is not sent for ever, and nothing is published."""
    released.release(1)
    real = repo.shelf.end

    def end(one: shelf.Asset) -> None:
        real(one)
        one.sha256 = "0" * 64

    repo.shelf.end = end  # type: ignore[method-assign]
    with pytest.raises(ProofFailed, match="has another file each time that SHA256SUMS is sent"):
        publish.publish(client, want(released))
    sent = [each for each in forge.asked if each.path.endswith("name=SHA256SUMS")]
    assert len(sent) == QUICK.tries + 1 and repo.shelf.seen == []


def test_a_tag_that_moves_meanwhile(repo: Repo, released: Released, client: Writer) -> None:
    released.release(1)
    wanted = want(released)
    publish.publish(client, wanted, dry_run=True)
    git(repo.path, "tag", "-f", "release-1", "main")
    with pytest.raises(PatchqError, match="the tag release-1 at acme/runner is"):
        publish.publish(client, wanted)


# Killed at every step

ALL = tuple(range(1, 19))
WRITES = (3, 7, 8, 9, 10, 11, 15)
UPLOADS = (7, 8, 9, 10, 11)


def test_the_steps_are_as_counted(forge: Forge, released: Released, client: Writer) -> None:
    """For the points below."""
    released.release(1)
    publish.publish(client, want(released))
    assert len(forge.asked) == len(ALL)
    writes = [place for place, each in enumerate(forge.asked, 1) if each.method != "GET"]
    uploads = [place for place, each in enumerate(forge.asked, 1) if "/uploads/" in each.path]
    assert (tuple(writes), tuple(uploads)) == (WRITES, UPLOADS)


def in_fork(forge: Forge, accident: Accident, action: Callable[[], object]) -> int:
    """Calls `action` in a fork of this process, which the accident kills; its exit code."""
    ready = threading.Event()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            action()
            code = 0
        finally:
            os._exit(code)

    def kill() -> None:
        ready.wait()
        os.kill(child, signal.SIGKILL)

    accident.kills = kill
    ready.set()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


KILLED = {
    "before a request is heard": [Accident(at, "kill") for at in ALL],
    "after it was done": [Accident(at, "kill", after=True) for at in WRITES],
    "half way through an upload": [Accident(at, "kill", half=4) for at in UPLOADS[::2]],
    "before a byte of an upload came": [Accident(at, "kill", half=0) for at in UPLOADS[::2]],
}


@pytest.mark.parametrize("points", KILLED.values(), ids=KILLED.keys())
def test_killed(
    forge: Forge,
    repo: Repo,
    released: Released,
    points: list[Accident],
) -> None:
    place = released.release(1)
    wanted = want(released)

    def go() -> None:
        with Writer(forge.api, forge.token, patience=QUICK) as fresh:
            publish.publish(fresh, wanted)

    for point in points:
        repo.shelf = Shelf()
        forge.accident = replace(point)
        ended = in_fork(forge, forge.accident, go)
        assert forge.accident.met, point
        assert ended == -signal.SIGKILL, (point, forge.accident.met)
        forge.accident = None
        go()
        right(repo.shelf, place)


PASSING = {
    "the line is cut before a request is heard": [Accident(at) for at in WRITES],
    "the line is cut, and the answer lost": [Accident(at, after=True) for at in WRITES],
    "the line is cut half way through an upload": [Accident(at, half=4) for at in UPLOADS[::2]],
    "502, nothing done": [Accident(at, "502") for at in (*WRITES, 18)],
    "502, and yet it is done": [Accident(at, "502", after=True) for at in WRITES],
    "502 half way through an upload": [Accident(at, "502", half=4) for at in UPLOADS[::2]],
}


@pytest.mark.parametrize("points", PASSING.values(), ids=PASSING.keys())
def test_what_passes_is_overcome(
    forge: Forge,
    repo: Repo,
    released: Released,
    client: Writer,
    points: list[Accident],
) -> None:
    """One command is enough; one that gives up at once is finished by the next."""
    place = released.release(1)
    wanted = want(released)
    for number, point in enumerate(points):
        repo.shelf = Shelf()
        forge.accident = replace(point)
        if number % 2:
            with Writer(forge.api, forge.token, patience=ONCE) as hasty:
                with pytest.raises(ForgeError) as caught:
                    publish.publish(hasty, wanted)
                assert "`patchq release publish 1` goes on where it stopped" in caught.value.hint
                assert caught.value.exit_code == 6
        publish.publish(client, wanted)
        assert forge.accident.met, point
        forge.accident = None
        right(repo.shelf, place)


# What is published


SPOILT: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file": (
        lambda at: (at / "notes.md").write_text("other\n"),
        "notes.md is not what was signed",
    ),
    "a file more": (lambda at: (at / "x").write_text("x"), "x is not among the sums"),
    "the sums": (
        lambda at: (at / "SHA256SUMS").write_text(f"{'0' * 64}  notes.md\n"),
        "signature: it is not over these sums",
    ),
}


@pytest.mark.parametrize(("spoil", "says"), SPOILT.values(), ids=SPOILT.keys())
def test_a_bundle_that_does_not_hold(
    released: Released, spoil: Callable[[Path], object], says: str
) -> None:
    spoil(released.release(1))
    with pytest.raises(ProofFailed, match="the bundle of release 1 does not hold") as caught:
        want(released)
    assert says in caught.value.message


def test_a_bundle_of_another_cut(released: Released) -> None:
    place = released.release(1)
    (place / "notes.md").write_text("second thoughts\n")
    released.sign(1)
    with pytest.raises(ProofFailed, match="is not the release that release-1 has"):
        want(released)


def test_nothing_to_publish(released: Released) -> None:
    with pytest.raises(PatchqError, match="there is no bundle of release 1 in"):
        want(released)
    released.release(1)
    git(released.root, "tag", "-d", "release-1")
    with pytest.raises(PatchqError, match="there is no tag release-1 here"):
        want(released)


# As a user has it


def patchq(released: Released, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program(), "release", *args],
        cwd=released.root,
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=60,
    )


def point_at(forge: Forge, released: Released) -> dict[str, str]:
    (released.root / "releases/publish.toml").write_text(
        f'github = "{REPO}"\ngithub_api = "{forge.api}"\n'
    )
    return {"GITHUB_TOKEN": forge.token}


def test_the_command(forge: Forge, repo: Repo, released: Released) -> None:
    place = released.release(1)
    said = patchq(released, "publish", "1")
    assert said.returncode == 1 and "nothing says where releases are published" in said.stderr
    env = point_at(forge, released)
    said = patchq(released, "publish", "1")
    assert said.returncode == 1 and "without a token" in said.stderr
    told = patchq(released, "publish", "1", "--dry-run", **env)
    assert told.returncode == 0, told.stderr
    assert "would send notes.md, 25 B" in told.stdout and not repo.shelf.releases
    assert not record.is_published(released.project, 1)
    forge.accident = Accident(8, half=5)
    told = patchq(released, "publish", "1", "--json", **env)
    assert told.returncode == 0, told.stderr
    value = json.loads(told.stdout)
    assert (value["schema"], value["published"]) == ("patchq.release-publish/1", True)
    steps = [f"{each['do']} {each['what']}" for each in value["steps"]]
    assert "remove-asset SHA256SUMS.sig" in steps and steps.count("upload SHA256SUMS.sig") == 1
    right(repo.shelf, place)
    assert record.is_published(released.project, 1), "`patchq undo` leaves it alone from now on"
    told = patchq(released, "publish", "1", **env)
    assert "is published already: http://127.0.0.1" in " ".join(told.stdout.split())
    shown = "".join((told.stdout, told.stderr, json.dumps(value)))
    assert forge.token not in shown


# A process that publishes and says how much memory it had at most, in kB.
PROGRAM = """
import resource, sys
from pathlib import Path
from patchq.config import Project
from patchq.forge.writing import Writer
from patchq.release.publish import publish, wanted
root, api, token = Path(sys.argv[1]), *sys.argv[2:]
with Writer(api, token) as client:
    assert publish(client, wanted(Project(root, root / ".git"), 1, "acme/runner")).release
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_is_flat(forge: Forge, repo: Repo, released: Released) -> None:
    """300 MB, a hole on disk, goes up in pieces."""

    def peak() -> int:
        told = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(released.root), forge.api, forge.token],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert told.returncode == 0, told.stderr
        return int(told.stdout)

    released.release(1)
    small = peak()
    repo.shelf = Shelf()
    place = bundle.folder(released.root, 1)
    with (place / "large.whl").open("wb") as out:
        out.truncate(300_000_000)
    released.sign(1)
    released.push(1)
    large = peak()
    right(repo.shelf, place)
    assert large - small < 30_000, (small, large)


def test_the_marker_is_the_same_in_both_rooms() -> None:
    from patchq.release import withdraw

    assert publishing.MARKER == (withdraw.MARKER, withdraw.SIGNATURE)
