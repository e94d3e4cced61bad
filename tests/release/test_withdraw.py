"""A release is withdrawn: signed, said everywhere, and found again online and offline."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from patchq.errors import PatchqError, ProofFailed
from patchq.forge import releases
from patchq.forge.client import Patience
from patchq.forge.errors import ForgeError
from patchq.forge.writing import Writer
from patchq.release import publish, sign, withdraw, withdrawing
from patchq.release.tables import LINE
from patchq.release.withdraw import Mark, Withdrawal
from patchq.release.withdrawing import WithdrawReport
from patchq.render.publish import banner
from tests.support.cli import program
from tests.support.forge.accidents import Accident
from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge
from tests.support.history import git
from tests.support.released import Released

REPO = "acme/runner"
WHY = "it spins on long prompts"
QUICK = Patience(tries=0, backoff=0, secondary=0.1, longest=2, timeout=5)


@pytest.fixture
def repo(forge: Forge) -> Repo:
    return forge.repo(REPO)


@pytest.fixture
def released(repo: Repo, tmp_path: Path) -> Released:
    """Releases 1 to 3, cut and not yet published."""
    made = Released(tmp_path, repo)
    for number in (1, 2, 3):
        made.release(number)
    return made


@pytest.fixture
def client(forge: Forge) -> Iterator[Writer]:
    with Writer(forge.api, forge.token, patience=QUICK) as made:
        yield made


def published(released: Released, client: Writer, *numbers: int) -> None:
    for number in numbers:
        publish.publish(client, publish.wanted(released.project, number, REPO))


def go(released: Released, client: Writer | None, number: int = 3, **more: bool) -> WithdrawReport:
    return withdrawing.run(
        released.project,
        number,
        WHY,
        banner=banner,
        key=released.key,
        client=client,
        repo=REPO,
        **more,
    )


def signers(released: Released) -> Path:
    return released.root / sign.SIGNERS


def online(forge: Forge, name: str, number: int = 3) -> bytes | None:
    """A small file of a release, as anybody gets it."""
    url = f"{forge.url}/{REPO}/releases/download/release-{number}/{name}"
    answer = requests.get(url, timeout=10)
    return answer.content if answer.status_code == 200 else None


def test_it_is_said_everywhere(
    forge: Forge, repo: Repo, released: Released, client: Writer
) -> None:
    published(released, client, 1, 2, 3)
    before = {each.tag: each.body for each in repo.shelf.releases.values()}
    report = go(released, client)
    assert report.withdrawal.last_good == 2 and len(report.steps) == 5
    there = {each.tag: each for each in repo.shelf.releases.values()}
    body = there["release-3"].body
    assert body.startswith(f"{withdraw.BEGIN}\n> [!CAUTION]\n> **Withdrawn on ")
    assert WHY in body and "Install release 2 instead" in body
    assert body.strip().endswith(before["release-3"].strip()), "its own notes follow"
    assert there["release-2"].body == before["release-2"]
    assert repo.shelf.latest == there["release-2"].id, "the last good one is the latest"
    assert (released.root / "releases/3.toml").is_file()
    found = [
        withdraw.withdrawn(3, signers(released), root=released.root),
        withdraw.withdrawn(3, signers(released), small=lambda name: online(forge, name)),
        withdraw.withdrawn(3, signers(released), notes=releases.notes(REPO, 3, client)),
    ]
    assert found == [report.withdrawal] * 3
    assert withdraw.sentence(report.withdrawal) == f"release 3 was withdrawn: {WHY}"
    assert withdraw.advice(report.withdrawal) == "install release 2, the last good one"
    for number in (1, 2):
        assert (
            withdraw.withdrawn(
                number,
                signers(released),
                small=lambda name: online(forge, name, 2),
                notes=releases.notes(REPO, number, client),
                root=released.root,
            )
            is None
        )


def test_again_changes_nothing(
    forge: Forge, repo: Repo, released: Released, client: Writer
) -> None:
    published(released, client, 2, 3)
    first = go(released, client)
    text = (released.root / withdraw.FILE).read_bytes()
    count = forge.count()
    again = go(released, client)
    assert again.steps == () and again.withdrawal == first.withdrawal
    assert (released.root / withdraw.FILE).read_bytes() == text
    assert {each.method for each in forge.asked[count:]} == {"GET"}


def test_immutable(repo: Repo, released: Released, client: Writer) -> None:
    """No file can be added: the notes and the repository say it."""
    repo.shelf.locks = True
    published(released, client, 2, 3)
    report = go(released, client)
    assert report.notes == (
        "release 3 is immutable: the mark stands in its notes and in releases/withdrawn.toml",
    )
    names = {name for each in repo.shelf.releases.values() for name in each.assets}
    assert withdraw.MARKER not in names
    notes = releases.notes(REPO, 3, client)
    assert withdraw.withdrawn(3, signers(released), notes=notes) == report.withdrawal


def test_files_that_are_refused(repo: Repo, released: Released, client: Writer) -> None:
    """It says that it is not immutable, and takes no file: the rest is done."""
    published(released, client, 2, 3)
    real = repo.shelf.begin

    def begin(*args: object) -> object:
        three = next(each for each in repo.shelf.releases.values() if each.tag == "release-3")
        three.immutable = True
        try:
            return real(*args)  # type: ignore[arg-type]
        finally:
            three.immutable = False

    repo.shelf.begin = begin  # type: ignore[method-assign,assignment]
    report = go(released, client)
    (note,) = report.notes
    assert "Cannot upload assets to an immutable release." in note and "in its notes" in note


def test_cut_off_anywhere(forge: Forge, repo: Repo, released: Released, client: Writer) -> None:
    """At each request, before or after it was done: the next run finishes it."""
    published(released, client, 2, 3)
    before, stopped = copy.deepcopy(repo.shelf), 0
    for at in range(1, 12):
        repo.shelf = copy.deepcopy(before)
        (released.root / withdraw.FILE).unlink(missing_ok=True)
        forge.accident = Accident(at, after=bool(at % 2))
        with suppress(ForgeError):
            go(released, client)
        stopped += bool(forge.accident.met)
        forge.accident = None
        report = go(released, client)
        (three,) = (each for each in repo.shelf.releases.values() if each.tag == "release-3")
        assert three.body.count(withdraw.BEGIN) == 1
        assert three.assets["WITHDRAWN"].state == three.assets["WITHDRAWN.sig"].state == "uploaded"
        assert (
            withdraw.withdrawn(3, signers(released), small=lambda name: online(forge, name))
            == withdraw.withdrawn(3, signers(released), root=released.root)
            == report.withdrawal
        )
    assert stopped == 7, "that many requests there are"


def test_the_last_good_one(repo: Repo, released: Released, client: Writer) -> None:
    published(released, client, 1, 3)
    assert go(released, client, 3).withdrawal.last_good == 1, "2 is not published"
    report = go(released, client, 1)
    assert report.withdrawal.last_good is None
    assert "wait for the next one" in withdraw.advice(report.withdrawal)
    assert withdraw.recorded(released.root).keys() == {1, 3}


def test_offline_and_not_published(repo: Repo, released: Released, client: Writer) -> None:
    report = go(released, None)
    assert report.repo is None and report.withdrawal.last_good == 2
    assert withdraw.withdrawn(3, signers(released), root=released.root) == report.withdrawal
    report = go(released, client)
    assert report.notes == (f"release 3 is not published at {REPO}: nothing was changed there",)
    with pytest.raises(PatchqError, match="release 3 was withdrawn: it spins"):
        publish.wanted(released.project, 3, REPO)


def test_dry_run(forge: Forge, repo: Repo, released: Released, client: Writer) -> None:
    published(released, client, 2, 3)
    count = forge.count()
    report = go(released, client, dry_run=True)
    assert len(report.steps) == 5 and not (released.root / withdraw.FILE).exists()
    assert {each.method for each in forge.asked[count:]} == {"GET"}


def test_what_cannot_be_withdrawn(released: Released, tmp_path: Path) -> None:
    with pytest.raises(PatchqError, match="there is no release 9 here"):
        go(released, None, 9)
    for why in ("", "  ", "two\nlines", "\x1b[31m"):
        with pytest.raises(PatchqError, match="the reason is no line of text"):
            withdrawing.run(released.project, 3, why, banner=banner, key=released.key)
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    with pytest.raises(PatchqError, match="the mark would be believed by nobody"):
        withdrawing.run(released.project, 3, WHY, banner=banner, key=other)
    assert not (released.root / withdraw.FILE).exists()


# Marks that cannot be believed


@pytest.fixture
def mark(released: Released) -> Mark:
    go(released, None)
    return withdraw.recorded(released.root)[3]


FORGED: dict[str, Callable[[Mark], Mark]] = {
    "another reason": lambda mark: replace(mark, text=mark.text.replace(b"long", b"all")),
    "no signature": lambda mark: replace(mark, signature=b""),
    "a signature of nothing": lambda mark: replace(mark, signature=b"-----BEGIN\n"),
    "no mark": lambda mark: replace(mark, text=b"gone\n"),
    "no text": lambda mark: replace(mark, text=b"\xff"),
    "a newer form": lambda mark: replace(
        mark, text=mark.text.replace(b"withdrawn/1", b"withdrawn/2")
    ),
}


@pytest.mark.parametrize("forge_it", FORGED.values(), ids=FORGED.keys())
def test_a_forged_mark(released: Released, mark: Mark, forge_it: Callable[[Mark], Mark]) -> None:
    """Whoever installs stops, and is told that the mark itself is not to be believed."""
    bad = forge_it(mark)
    there = {withdraw.MARKER: bad.text, withdraw.SIGNATURE: bad.signature}
    with pytest.raises(ProofFailed) as caught:
        withdraw.withdrawn(3, signers(released), small=there.get)
    says = "release 3 is marked as withdrawn, and the mark does not hold: "
    assert caught.value.message.startswith(says) and caught.value.hint


def test_nobody_is_known(released: Released, mark: Mark) -> None:
    with pytest.raises(ProofFailed, match="nobody's key is known here"):
        withdraw.withdrawn(3, None, root=released.root)


def test_notes_that_only_begin_so(released: Released) -> None:
    with pytest.raises(ProofFailed, match="does not hold"):
        withdraw.withdrawn(3, signers(released), notes=f"{withdraw.BEGIN}\nno mark\n")


@pytest.mark.parametrize(
    "text",
    [
        "[[withdrawn]\n",
        'withdrawn = "x"\n',
        "[[withdrawn]]\nmarker = 1\n",
        '[[withdrawn]]\nmarker = "x"\n',
    ],
)
def test_a_damaged_record(released: Released, text: str) -> None:
    (released.root / withdraw.FILE).write_text(text)
    with pytest.raises(PatchqError, match=r"releases/withdrawn\.toml is damaged"):
        withdraw.withdrawn(3, signers(released), root=released.root)


@given(
    why=st.one_of(
        st.from_regex(LINE, fullmatch=True),
        st.lists(st.sampled_from([*"\"'\\`#>|x ", "```", '"""', withdraw.END, "-->"])).map("".join),
    ),
    notes=st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"])),
)
def test_a_mark_comes_back(why: str, notes: str) -> None:
    """From the record and from notes, whatever the reason and the notes say."""
    value = Withdrawal(3, why[:2000], "2026-03-04T05:06:07Z", "a" * 64, 2)
    made = Mark(withdraw.write(value), b"-----BEGIN\nabc+/=\n-----END\n")
    assert withdraw.read(made) == value
    once = withdraw.into_notes(notes, banner(value), made)
    assert withdraw.in_notes(once) == made
    assert withdraw.into_notes(once, banner(value), made) == once


@given(why=st.from_regex(LINE, fullmatch=True).filter(lambda why: len(why) < 200))
def test_a_record_comes_back(why: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    value = Withdrawal(3, why, "2026-03-04T05:06:07Z", "a" * 64)
    made = Mark(withdraw.write(value), b"-----BEGIN\nabc+/=\n-----END\n")
    root = tmp_path_factory.mktemp("root")
    (root / "releases").mkdir()
    (root / withdraw.FILE).write_bytes(withdraw.record({3: made}))
    assert withdraw.recorded(root) == {3: made}


def test_the_banner_is_no_markup() -> None:
    value = Withdrawal(3, "<b>@ada</b> [x](http://x) ``` #1", "2026-03-04T05:06:07Z", "a" * 64)
    text = banner(value)
    assert r"\<b\>@&#8203;ada\</b\> \[x\](http:&#47;&#47;x) \`\`\` \#&#8203;1" in text
    assert all(line.startswith(">") for line in text.splitlines())


# As a user has it


def test_the_command(forge: Forge, repo: Repo, released: Released, client: Writer) -> None:
    published(released, client, 2, 3)
    (released.root / "releases/publish.toml").write_text(
        f'github = "{REPO}"\ngithub_api = "{forge.api}"\n'
    )

    def patchq(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program(), "release", "withdraw", "3", "--why", WHY, *args],
            cwd=released.root,
            env=os.environ | {"GH_TOKEN": forge.token, "PATCHQ_SIGNING_KEY": str(released.key)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    told = patchq("--commit", "--json")
    assert told.returncode == 0, told.stderr
    value = json.loads(told.stdout)
    assert (value["schema"], value["last_good"]) == ("patchq.release-withdraw/1", 2)
    head = git(released.root, "log", "-1", "--format=%H %s").decode().strip()
    assert head == f"{value['commit']} release: withdraw release 3"
    told = patchq()
    assert told.stdout.startswith(f"release 3 was withdrawn: {WHY}; install release 2")
    assert forge.token not in told.stdout + told.stderr
