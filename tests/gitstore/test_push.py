"""A branch of a remote: pushed once, never over somebody's work, and the token only where it may go."""

# ruff: noqa: F811 (the forge is a fixture that is imported)

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from werkzeug.wrappers import Response

from patchq.errors import Incomplete, PatchqError
from patchq.gitstore import push
from patchq.gitstore.push import Moved, Secret
from tests.support.forge.accidents import Accident
from tests.support.forge.fixtures import forge, forge_server  # noqa: F401
from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge
from tests.support.history import git
from tests.support.kit import bare_repository

BRANCH = "patchq/nightly"
NIGHT = datetime(2026, 12, 1, 3, 17, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = bare_repository(tmp_path / "work")
    (folder / "series").mkdir()
    (folder / "series/a").write_text("a\n")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


@pytest.fixture
def there(root: Path, tmp_path: Path) -> Path:
    """A bare repository beside it, which is its `origin`."""
    path = tmp_path / "there.git"
    git(root, "clone", "-q", "--bare", str(root), str(path))
    git(root, "remote", "add", "origin", str(path))
    return path


@pytest.fixture
def repo(forge: Forge, root: Path) -> Repo:
    made = forge.repo("acme/runner", {"README": b"read\n"})
    git(root, "remote", "add", "origin", forge.git(made))
    return made


@pytest.fixture
def secret(forge: Forge) -> Secret:
    return Secret(forge.url.removeprefix("http://"), forge.token)


def said(root: Path, *args: str) -> str:
    return git(root, *args).decode().strip()


def night(root: Path, number: int = 1, parent: str | None = None) -> str:
    files = {f"nights/{number}.json": b"{}\n"}
    return push.commit_files(root, parent or said(root, "rev-parse", "main"), files, "n", NIGHT)


# A commit of some files


def test_a_commit_of_some_files(root: Path) -> None:
    (root / "series/a").write_text("edited\n")
    before = said(root, "for-each-ref"), said(root, "status", "--porcelain")
    files = {"series/b": b"b\n", "new/x": b"\0", "run": b"#!/bin/bash\n"}
    made = push.commit_files(root, "main", files, "Night\n\nbody", NIGHT)
    assert said(root, "ls-tree", "-r", "--name-only", made).split("\n") == [
        "new/x", "run", "series/a", "series/b",
    ]  # fmt: skip
    assert said(root, "show", f"{made}:series/a") == "a", "neighbours stay as they were"
    assert said(root, "ls-tree", made, "run").startswith("100755"), "a program stays one"
    assert said(root, "ls-tree", made, "series/b").startswith("100644")
    assert said(root, "log", "-1", "--format=%B%P", made) == "\n".join(
        ("Night", "", "body", said(root, "rev-parse", "main"))
    )
    assert (said(root, "for-each-ref"), said(root, "status", "--porcelain")) == before


def test_the_same_asked_twice(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the settings, the order and the time zone are."""
    first = push.commit_files(root, "main", {"a": b"1", "b": b"2"}, "n", NIGHT)
    git(root, "config", "i18n.commitEncoding", "latin1")
    git(root, "config", "commit.gpgSign", "true")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    zone = timezone(timedelta(hours=9))
    again = push.commit_files(root, "main", {"b": b"2", "a": b"1"}, "n\n", NIGHT.astimezone(zone))
    assert first == again
    assert push.commit_files(root, first, {"a": b"1"}, "n", NIGHT) == first, "nothing changes"


def test_who_commits(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def who() -> str:
        return said(root, "log", "-1", "--format=%an <%ae> %cn <%ce> %ct", night(root))

    assert who().startswith("A. Author <"), "the environment's, as the tests have it"
    for role in ("AUTHOR", "COMMITTER"):
        for part in ("NAME", "EMAIL", "DATE"):
            monkeypatch.delenv(f"GIT_{role}_{part}", raising=False)
    nobody = "patchq <patchq@localhost>"
    assert who() == f"{nobody} {nobody} {int(NIGHT.timestamp())}"
    git(root, "config", "user.email", "mona@example.org")
    git(root, "config", "author.name", "Mona")
    assert who().startswith("Mona <mona@example.org> patchq <mona@example.org> ")


def test_files_that_go_and_come(root: Path) -> None:
    one = push.commit_files(root, "main", {"series/a": None, "series/b": b"b"}, "n", NIGHT)
    assert said(root, "ls-tree", "-r", "--name-only", one).split("\n") == ["run", "series/b"]
    two = push.commit_files(root, one, {"run/deep": b"x", "series/gone": None}, "n", NIGHT)
    assert said(root, "ls-tree", "-r", "--name-only", two).split("\n") == ["run/deep", "series/b"]
    alone = push.commit_files(root, None, {"a": b"a"}, "n", NIGHT)
    assert said(root, "rev-list", "--count", alone) == "1"


def test_without_a_work_tree(there: Path) -> None:
    made = push.commit_files(there, "main", {"series/b": b"b"}, "n", NIGHT)
    assert said(there, "diff", "--name-status", "main", made) == "A\tseries/b"


def test_paths_that_leave(root: Path) -> None:
    for path in ("../x", "/x", "a//b", ".git/config", "a/.GIT/x", "x\0y", ""):
        with pytest.raises(PatchqError, match="outside the source tree or git's own"):
            push.commit_files(root, "main", {path: b"x"}, "n", NIGHT)


# Where a branch is


def test_where_a_branch_is(root: Path, there: Path) -> None:
    assert push.tip(root, "origin", BRANCH) is None
    git(there, "branch", BRANCH)
    git(there, "update-ref", f"refs/heads/x/refs/heads/{BRANCH}x", "main")
    assert push.tip(root, "origin", BRANCH) == said(root, "rev-parse", "main")
    assert push.tip(root, str(there), BRANCH) == said(root, "rev-parse", "main")
    assert push.tip(root, "origin", f"{BRANCH}x") is None, "the end of another's name is not it"


def test_its_commits_come_and_no_branch_moves(root: Path, there: Path) -> None:
    assert push.fetch_branch(root, "origin", BRANCH) is None
    git(root, "fetch", "-q")
    theirs = push.commit_files(there, "main", {"x": b"x"}, "n", NIGHT)
    git(there, "update-ref", f"refs/heads/{BRANCH}", theirs)
    git(there, "tag", "v1", theirs)
    before = said(root, "for-each-ref", "refs/heads", "refs/remotes", "refs/tags")
    assert push.fetch_branch(root, "origin", BRANCH) == theirs
    assert said(root, "show", f"{theirs}:x") == "x"
    assert said(root, "for-each-ref", "refs/heads", "refs/remotes", "refs/tags") == before
    assert (
        not (root / ".git/FETCH_HEAD").exists()
        or BRANCH not in (root / ".git/FETCH_HEAD").read_text()
    )
    other = push.commit_files(there, None, {"y": b"y"}, "n", NIGHT)
    git(there, "update-ref", f"refs/heads/{BRANCH}", other)
    assert push.fetch_branch(root, "origin", BRANCH) == other, "it may be exchanged"


# A push


def test_a_branch_from_its_first_push(root: Path, there: Path) -> None:
    first, second = night(root), night(root, 2)
    push.push(root, "origin", first, BRANCH, expected=None)
    assert push.tip(root, "origin", BRANCH) == first
    push.push(root, "origin", second, BRANCH, expected=first)
    assert push.tip(root, "origin", BRANCH) == second, "exchanged: it is our own"
    push.push(root, "origin", second, BRANCH, expected=first)
    assert push.tip(root, "origin", BRANCH) == second, "it is there already: nothing is wrong"


def test_a_persons_work_stays(root: Path, there: Path) -> None:
    first = night(root)
    push.push(root, "origin", first, BRANCH, expected=None)
    theirs = push.commit_files(there, first, {"by hand": b"x"}, "n", NIGHT)
    git(there, "update-ref", f"refs/heads/{BRANCH}", theirs)
    for expected in (first, None):
        with pytest.raises(Moved, match="somebody else moved it") as caught:
            push.push(root, "origin", night(root, 2), BRANCH, expected=expected)
        assert caught.value.tip == theirs == push.tip(root, "origin", BRANCH)
    git(there, "update-ref", "-d", f"refs/heads/{BRANCH}")
    with pytest.raises(Moved, match="is gone") as caught:
        push.push(root, "origin", night(root, 2), BRANCH, expected=theirs)
    assert caught.value.tip is None is push.tip(root, "origin", BRANCH)


def test_nothing_else_is_pushed(root: Path, there: Path) -> None:
    """No hook runs, no tag follows, nothing is signed."""
    hook = root / ".git/hooks/pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    for key in ("push.followTags", "push.gpgSign", "push.useForceIfIncludes"):
        git(root, "config", key, "true")
    git(root, "config", "push.recurseSubmodules", "only")  # and not what they are in
    made = night(root)
    git(root, "tag", "-a", "-m", "x", "v1", made)
    push.push(root, "origin", made, BRANCH, expected=None)
    assert said(there, "for-each-ref", "--format=%(refname)") == (
        f"refs/heads/main\nrefs/heads/{BRANCH}"
    )


def test_a_hook_of_theirs(root: Path, there: Path) -> None:
    hook = there / "hooks/update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nprintf 'no \\033[31mred\\n' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(Incomplete, match="hook declined") as caught:
        push.push(root, "origin", night(root), BRANCH, expected=None)
    assert "no \\x1b[31mred" in caught.value.message and "rules or hooks" in caught.value.hint


NO_BRANCHES = (
    "", "-x", "--delete", "a..b", "a b", "a:b", "x.lock", "/x", "x/", "x\0y", "x\ny", "a*", "@{-1}",
    "a\\b", "~", ".x",
)  # fmt: skip


def test_no_names_of_branches(root: Path, there: Path) -> None:
    made = night(root)
    for branch in NO_BRANCHES:
        with pytest.raises(PatchqError, match="no name of a branch"):
            push.push(root, "origin", made, branch, expected=None)
        with pytest.raises(PatchqError, match="no name of a branch"):
            push.tip(root, "origin", branch)
        with pytest.raises(PatchqError, match="no name of a branch"):
            push.fetch_branch(root, "origin", branch)


def test_no_remotes(root: Path) -> None:
    for remote in ("", "-x", "--upload-pack=touch x", "x\0y"):
        with pytest.raises(PatchqError, match="is no remote"):
            push.tip(root, remote, BRANCH)


def test_no_commits(root: Path, there: Path) -> None:
    made = night(root)
    for commit in ("", "main", "--all", "0" * 39, "+" + "0" * 40):
        for one, expected in ((commit, None), (made, commit)):
            with pytest.raises(PatchqError, match="no id of a commit"):
                push.push(root, "origin", one, BRANCH, expected=expected)


def test_a_remote_that_is_a_program(root: Path, tmp_path: Path) -> None:
    with pytest.raises(Incomplete, match="transport 'ext' not allowed"):
        push.tip(root, f"ext::touch {tmp_path}/made", BRANCH)
    assert not (tmp_path / "made").exists()


def test_not_reached(root: Path) -> None:
    with pytest.raises(Incomplete) as caught:
        push.push(root, "http://127.0.0.1:9/x.git", night(root), BRANCH, expected=None)
    assert caught.value.message.startswith("cannot push the branch patchq/nightly of http://127")
    assert "the network" in caught.value.hint
    with pytest.raises(Incomplete, match="does not appear to be a git repository") as caught:
        push.fetch_branch(root, "nowhere", BRANCH)
    assert "address" in caught.value.hint


# Over HTTP, with a token


def test_with_a_token(forge: Forge, repo: Repo, root: Path, secret: Secret) -> None:
    made = night(root)
    push.push(root, "origin", made, BRANCH, expected=None, secret=secret)
    assert repo.head(BRANCH) == made == push.tip(root, "origin", BRANCH, secret=secret)
    repo.private = True
    theirs = repo.commit("By hand", branch=BRANCH).write("x", b"x\n").sha
    assert push.fetch_branch(root, "origin", BRANCH, secret=secret) == theirs
    with pytest.raises(Moved) as caught:
        push.push(root, "origin", night(root, 2), BRANCH, expected=made, secret=secret)
    assert caught.value.tip == theirs == repo.head(BRANCH)
    assert {each.token for each in forge.asked} == {forge.token}


def test_a_pull_request_follows(repo: Repo, root: Path, secret: Secret) -> None:
    start = push.fetch_branch(root, "origin", "main", secret=secret)
    first = night(root, 1, start)
    push.push(root, "origin", first, BRANCH, expected=None, secret=secret)
    pull = repo.propose(BRANCH, "Series")
    second = night(root, 2, start)
    push.push(root, "origin", second, BRANCH, expected=first, secret=secret)
    assert (pull.sha, pull.commits) == (second, [second])
    assert pull.events[-1].what == {"before": first}


@pytest.fixture
def heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What git is called with, a line an argument."""
    told, real = tmp_path / "heard", shutil.which("git")
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> "{told}"\nexec {real} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return told


def test_the_token_is_no_argument(
    repo: Repo, root: Path, secret: Secret, heard: Path, tmp_path: Path
) -> None:
    push.push(root, "origin", night(root), BRANCH, expected=None, secret=secret)
    words = heard.read_text()
    assert "--porcelain" in words
    for form in (secret.token, secret._basic):
        assert form not in words
        kept = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert not [path for path in kept if form.encode() in path.read_bytes()]
    assert secret.token not in repr(secret)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("example.org", None),
        ("127.0.0.1", None),
        (None, "http://localhost:{port}/acme/runner.git"),
        (None, "http://127.0.0.1:{port}@localhost:{port}/acme/runner.git"),
    ],
)
def test_it_goes_to_no_other_host(
    forge: Forge,
    repo: Repo,
    root: Path,
    host: str | None,
    url: str | None,
) -> None:
    port = forge.url.rpartition(":")[2]
    secret = Secret(host or f"127.0.0.1:{port}", forge.token)
    remote = url.format(port=port) if url else "origin"
    assert push.tip(root, remote, "main", secret=secret) == repo.head("main")
    assert forge.asked and {each.token for each in forge.asked} <= {None, port}
    with pytest.raises(Incomplete):
        push.push(root, remote, night(root), BRANCH, expected=None, secret=secret)
    assert forge.token not in {each.token for each in forge.asked}


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("https://github.com/a/b.git", True),
        ("https://GitHub.com/a/b", True),
        ("https://me@github.com/a/b", True),
        ("https://me:password@github.com/a/b", False),
        ("http://github.com/a/b", False),
        ("https://github.com.evil.example/a/b", False),
        ("https://github.com@evil.example/a/b", False),
        ("https://github.com:8443/a/b", False),
        ("ssh://git@github.com/a/b", False),
        ("git@github.com:a/b", False),
        ("/srv/a/b", False),
        ("https://[github.com/a/b", False),
    ],
)
def test_which_addresses_it_is_for(url: str, may: bool) -> None:
    secret = Secret("github.com", "ghp_x")
    assert secret.may_go_to(url) is may
    assert bool(secret.environment([url])) is may


@pytest.fixture
def elsewhere(forge: Forge, repo: Repo) -> Iterator[str]:
    """A host that leads to the forge."""

    class Leads(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", f"{forge.url}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return None

    with HTTPServer(("127.0.0.1", 0), Leads) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_host_that_leads_elsewhere(
    forge: Forge,
    repo: Repo,
    root: Path,
    elsewhere: str,
) -> None:
    url = f"http://{elsewhere}/acme/runner.git"
    assert push.tip(root, url, "main") == repo.head("main"), "git goes there without a token"
    forge.asked.clear()
    with pytest.raises(Incomplete) as caught:
        push.tip(root, url, "main", secret=Secret(elsewhere, forge.token))
    assert not forge.asked and "it has moved" in caught.value.hint


def test_what_the_user_has_set(forge: Forge, repo: Repo, root: Path, secret: Secret) -> None:
    """An alias leads to the host; a header that a workflow left there is not sent beside ours."""
    git(root, "config", f"url.{forge.url}/.insteadOf", "work:")
    git(root, "remote", "set-url", "origin", "work:acme/runner.git")
    named = forge.git(repo).replace("://", "://me@")
    for at in (forge.url, forge.git(repo), named):
        git(root, "config", f"http.{at}.extraheader", "Authorization: Basic b2xkOm9sZA==")
    with pytest.raises(Incomplete, match=r"Authentication failed|could not read Username"):
        push.tip(root, "origin", "main")
    made = night(root)
    push.push(root, "origin", made, BRANCH, expected=None, secret=secret)
    assert repo.head(BRANCH) == made == push.tip(root, named, BRANCH, secret=secret)


@pytest.fixture
def helper(root: Path, tmp_path: Path) -> Path:
    """The user's own helper for passwords, and what it was asked."""
    program, told = tmp_path / "helper", tmp_path / "asked"
    program.write_text(
        f'#!/bin/sh\necho "$1" >> "{told}"\ncat > /dev/null\n'
        '[ "$1" != get ] || printf "username=me\\npassword=%s\\n" "$TEST_PASSWORD"\n'
    )
    program.chmod(0o755)
    git(root, "config", "credential.helper", str(program))
    git(root, "config", "credential.http://127.0.0.1.helper", str(program))
    return told


def test_the_users_own_password(
    forge: Forge,
    repo: Repo,
    root: Path,
    helper: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TEST_PASSWORD", forge.token)
    made = night(root)
    push.push(root, "origin", made, BRANCH, expected=None)
    assert repo.head(BRANCH) == made and "get" in helper.read_text()


def test_a_bad_token(
    forge: Forge,
    repo: Repo,
    root: Path,
    helper: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The user's helper is not asked, and so not told to forget what it knows."""
    monkeypatch.setenv("TEST_PASSWORD", forge.token)
    port = forge.url.rpartition(":")[2]
    made = night(root)
    acts: dict[str, Callable[[Secret], object]] = {
        "push": lambda old: push.push(root, "origin", made, BRANCH, expected=None, secret=old),
        "read": lambda old: push.tip(root, "origin", BRANCH, secret=old),
        "fetch": lambda old: push.fetch_branch(root, "origin", BRANCH, secret=old),
    }
    for verb, act in acts.items():
        old = Secret(f"127.0.0.1:{port}", "ghp_old")
        with pytest.raises(Incomplete) as caught:
            act(old)
        assert caught.value.message.startswith(f"cannot {verb} the branch")
        assert "has to be good for" in caught.value.hint
        assert "ghp_" not in f"{caught.value.message}{caught.value.hint}{caught.value!r}"
    assert not helper.exists() and repo.head(BRANCH) is None


def test_without_the_permission(forge: Forge, repo: Repo, root: Path) -> None:
    forge.rights["ghp_reader"] = {"issues"}
    reader = Secret(forge.url.removeprefix("http://"), "ghp_reader")
    with pytest.raises(Incomplete, match="error: 403") as caught:
        push.push(root, "origin", night(root), BRANCH, expected=None, secret=reader)
    assert "Write access to repository not granted" in caught.value.message
    assert "`contents: write`" in caught.value.hint


def test_without_a_token(repo: Repo, root: Path) -> None:
    with pytest.raises(Incomplete) as caught:
        push.push(root, "origin", night(root), BRANCH, expected=None)
    assert "give git a key or a token" in caught.value.hint


def test_a_password_in_an_address_is_not_said(forge: Forge, repo: Repo, root: Path) -> None:
    url = forge.git(repo).replace("://", "://me:hunter2@")
    git(root, "remote", "set-url", "origin", url)
    with pytest.raises(Incomplete) as caught:
        push.push(root, "origin", night(root), BRANCH, expected=None)
    assert "hunter2" not in caught.value.message and forge.git(repo) in caught.value.message


def test_not_there(repo: Repo, root: Path, forge: Forge, secret: Secret) -> None:
    with pytest.raises(Incomplete, match="not found") as caught:
        push.tip(root, f"{forge.url}/acme/gone.git", BRANCH, secret=secret)
    assert "check the remote's address" in caught.value.hint


def test_a_protected_branch(repo: Repo, root: Path, secret: Secret) -> None:
    repo.protects("main")
    tip = repo.head("main")
    with pytest.raises(Incomplete, match="pre-receive hook declined") as caught:
        push.push(root, "origin", night(root), "main", expected=tip, secret=secret)
    assert "GH006: Protected branch update failed" in caught.value.message
    assert repo.head("main") == tip


@pytest.mark.parametrize("after", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("ends", ["502", "cut"])
def test_a_lost_answer(
    forge: Forge, repo: Repo, root: Path, secret: Secret, ends: str, after: bool
) -> None:
    """The refs are told; of the push itself nothing is heard."""
    forge.accident = Accident(2, ends, after, kind="git")
    made = night(root)
    if after:
        push.push(root, "origin", made, BRANCH, expected=None, secret=secret)
    else:
        with pytest.raises(Incomplete, match="cannot push the branch") as caught:
            push.push(root, "origin", made, BRANCH, expected=None, secret=secret)
        assert "run it again" in caught.value.hint
    assert forge.accident.met == ["POST /acme/runner.git/git-receive-pack"]
    assert repo.head(BRANCH) == (made if after else None)


def test_a_forge_that_is_down(forge: Forge, repo: Repo, root: Path, secret: Secret) -> None:
    forge.fails("git", 502, b"<html>", times=2)
    with pytest.raises(Incomplete, match=r"error: 502|HTTP 502"):
        push.push(root, "origin", night(root), BRANCH, expected=None, secret=secret)
    assert not any(each.times for each in forge.faults), "it was looked what became of it"


def test_moved_in_between(forge: Forge, repo: Repo, root: Path, secret: Secret) -> None:
    """After git saw the refs, and before it pushes: the forge itself says no."""
    first = night(root)
    push.push(root, "origin", first, BRANCH, expected=None, secret=secret)
    theirs = ""

    def somebody(response: Response) -> Response:
        nonlocal theirs
        theirs = repo.commit("By hand", branch=BRANCH).write("x", b"x\n").sha
        return response

    forge.fails("git", spoils=somebody)
    with pytest.raises(Moved) as caught:
        push.push(root, "origin", night(root, 2), BRANCH, expected=first, secret=secret)
    assert caught.value.tip == theirs == repo.head(BRANCH)
