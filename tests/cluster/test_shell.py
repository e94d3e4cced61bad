"""Programs and files on a node: a real ssh, a real rsync, a real server on loopback."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.cluster.config import Cluster, Node
from patchq.cluster.facts import ask
from patchq.cluster.process import Done
from patchq.cluster.shell import Shell, local, ssh
from patchq.cluster.trouble import Unreachable, refused, uncopied
from patchq.errors import Incomplete, PatchqError
from tests.support.sshd import NODE, Sshd, deaf

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with Sshd(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture(params=["here", "there"])
def shell(request: pytest.FixtureRequest, server: Sshd) -> Iterator[Shell]:
    """This machine, and the same machine by ssh: whatever holds of one holds of the other."""
    with local() if request.param == "here" else ssh(NODE, server.config) as opened:
        yield opened


@pytest.fixture
def node(server: Sshd) -> Iterator[Shell]:
    with ssh(NODE, server.config) as opened:
        yield opened


ODD = [
    "",
    "two words",
    "it's",
    '"',
    "$HOME `id` $(id)",
    "*",
    ";ls",
    "-n",
    "a\nb",
    "\\",
    "!",
    "ü",
    "\udcff",
]


def test_arguments_arrive_as_they_are(shell: Shell) -> None:
    code = "import os,sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
    done = shell.run([sys.executable, "-c", code, *ODD])
    assert done.stdout.split(b"\0") == [os.fsencode(each) for each in ODD]
    assert (done.code, done.stderr) == (0, b"")


def test_input_streams_and_code_are_apart(shell: Shell) -> None:
    done = shell.run(["sh", "-c", "cat; echo loud >&2; exit 7"], input=b"\0\xff in")
    assert (done.code, done.stdout, done.stderr) == (7, b"\0\xff in", b"loud\n")
    assert shell.run(["cat"]).stdout == b""
    assert shell.run(["false"]).code == 1
    assert shell.run(["sh", "-c", "exit 255"]).code == 255
    assert shell.run(["no-such-program-here"]).code == 127


def test_much_goes_through_both_ways(shell: Shell) -> None:
    data = os.urandom(1 << 20) * 4
    assert shell.run(["cat"], input=data).stdout == data


def test_a_program_that_takes_too_long(shell: Shell) -> None:
    with pytest.raises(Incomplete, match=r"sleep 60.* took more than 0.2 s") as told:
        shell.run(["sleep", "60"], timeout=0.2)
    assert told.value.exit_code == 6
    assert shell.run(["true"]).code == 0


def test_what_is_written_comes_while_it_runs(shell: Shell) -> None:
    came, first = [], threading.Event()

    def sink(chunk: bytes) -> None:
        came.append(chunk)
        first.set()

    args = ["sh", "-c", "echo one; read line <fifo; echo two >&2; exit 3"]
    folder = Path.cwd()
    os.mkfifo(folder / "fifo")
    with ThreadPoolExecutor() as pool:
        ends = pool.submit(shell.stream, ["env", "-C", str(folder), *args], sink)
        assert first.wait(30)
        assert b"".join(came) == b"one\n"
        (folder / "fifo").write_bytes(b"go\n")
        assert ends.result(30) == 3
    assert b"".join(came) == b"one\ntwo\n"


def test_a_program_that_is_not_there_is_said_in_the_stream(shell: Shell) -> None:
    came: list[bytes] = []
    assert shell.stream(["no-such-program-here"], came.append) != 0
    assert b"no-such-program-here" in b"".join(came)


def gone(pids: list[int]) -> bool:
    """Whether these processes end, within a time that is ample."""
    until = time.monotonic() + 30
    while any(Path(f"/proc/{pid}/stat").exists() and not zombie(pid) for pid in pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def zombie(pid: int) -> bool:
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            == "Z"
        )
    except OSError:
        return True


FAMILY = "echo $$; sleep 300 & echo $!; sleep 301 & echo $!; trap '' TERM; wait; sleep 302"


def test_a_stream_that_ends_early_leaves_no_process(shell: Shell) -> None:
    """A build with children, deaf to SIGTERM: nothing of it goes on, here or there."""
    pids: list[int] = []

    def sink(chunk: bytes) -> None:
        pids.extend(map(int, chunk.split()))
        if len(pids) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shell.stream(["sh", "-c", FAMILY], sink)
    assert gone(pids)


def test_a_stream_that_takes_too_long(shell: Shell) -> None:
    with pytest.raises(Incomplete, match=r"sleep 300.* took more than 0.1 s"):
        shell.stream(["sleep", "300"], print, timeout=0.1)


def test_a_change_of_the_same_size_within_a_second_is_sent(shell: Shell, tmp_path: Path) -> None:
    file, away = tmp_path / "header", tmp_path / "away"
    for text, after in (("return 1;", 100_000_000), ("return 3;", 900_000_000)):
        file.write_text(text)
        os.utime(file, ns=(0, 1_700_000_000_000_000_000 + after))
        shell.send(file, str(away))
    assert away.read_text() == "return 3;"


def test_files_go_and_come(shell: Shell, tmp_path: Path) -> None:
    source, away = tmp_path / "a: source", tmp_path / "there" / "deep er" / "it's"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "tool").write_bytes(b"#!/bin/sh\n")
    (source / "sub" / "tool").chmod(0o755)
    (source / "-n").write_bytes(b"x" * 100_000)
    (source / "link").symlink_to("sub/tool")
    shell.send(source, str(away))
    assert snapshot(away) == snapshot(source)
    (source / "-n").write_bytes(b"y")
    shell.send(source / "-n", str(away / "new" / "name"))
    assert (away / "new" / "name").read_bytes() == b"y"
    assert (away / "-n").read_bytes() == b"x" * 100_000
    shell.fetch(str(away), tmp_path / "back")
    assert snapshot(tmp_path / "back") == snapshot(away)
    shell.fetch(str(away / "sub" / "tool"), tmp_path / "one" / "file")
    assert (tmp_path / "one" / "file").read_bytes() == b"#!/bin/sh\n"


def snapshot(folder: Path) -> dict[str, object]:
    return {
        str(path.relative_to(folder)): (
            os.readlink(path)
            if path.is_symlink()
            else path.is_file() and (path.read_bytes(), path.stat().st_mode)
        )
        for path in folder.rglob("*")
    }


def test_a_relative_path_is_below_the_login_folder(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    name = f"-patchq-test-{os.getpid()}"
    home = shell.run(["pwd"]).stdout.decode().strip()
    try:
        shell.send(tmp_path / "file", f"{name}/b")
        assert Path(home, name, "b").read_bytes() == b"x"
        shell.fetch(f"{name}/b", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == b"x"
    finally:
        shell.run(["rm", "-rf", "--", name])


def test_copies_that_cannot_be_made(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(PatchqError, match="does not exist"):
        shell.send(tmp_path / "none", "x")
    with pytest.raises(PatchqError, match="has no /no/such/file"):
        shell.fetch("/no/such/file", tmp_path / "x")
    with pytest.raises(Incomplete, match=r"was not copied with .*mkdir"):
        shell.send(tmp_path / "file", str(tmp_path / "file" / "below" / "x"))


def test_a_node_without_rsync(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("mkdir", "test", "cat"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    (tmp_path / "file").write_bytes(b"x")
    environment = {"PATH": str(tools)}
    with (
        Sshd(tmp_path / "sshd", environment=environment) as server,
        ssh(NODE, server.config) as node,
        pytest.raises(Incomplete, match=f"rsync is missing here or on {NODE}"),
    ):
        node.send(tmp_path / "file", str(tmp_path / "copy"))


def test_a_machine_without_ssh(monkeypatch: pytest.MonkeyPatch, server: Sshd) -> None:
    with ssh(NODE, server.config) as node:
        monkeypatch.setenv("PATH", "")
        with pytest.raises(PatchqError, match="ssh does not start") as told:
            node.run(["true"])
    assert "openssh-client" in told.value.hint


def test_a_disk_that_is_full() -> None:
    said = b"rsync: [receiver] write failed on x: No space left on device (28)\nrsync error: ...\n"
    told = uncopied("node", "patchq/x", Done(11, b"", said))
    assert "patchq/x does not fit on the disk" in told.message
    assert told.exit_code == 6


def test_one_connection_carries_all(server: Sshd) -> None:
    """Many programs at once on a node: one authentication, nothing left when it is closed."""
    before = set(server.sessions())
    with ssh(NODE, server.config) as node:
        with ThreadPoolExecutor(8) as pool:
            said = [
                each.stdout for each in pool.map(lambda n: node.run(["echo", str(n)]), range(24))
            ]
        assert said == [f"{n}\n".encode() for n in range(24)]
        pids = sorted(set(server.sessions()) - before)
        assert len(pids) == 1
    assert gone(pids)


def test_a_killed_patchq_leaves_no_connection(server: Sshd) -> None:
    before = set(server.sessions())
    code = (
        "import pathlib, sys\nfrom patchq.cluster.shell import ssh\n"
        f"node = ssh({NODE!r}, pathlib.Path({str(server.config)!r}))\n"
        "node.stream(['sh', '-c', 'echo $$; exec sleep 300'],"
        " lambda chunk: (sys.stdout.buffer.write(chunk), sys.stdout.flush()))"
    )
    with (
        tempfile.TemporaryDirectory() as short,
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": short},
            stdout=subprocess.PIPE,
        ) as process,
    ):
        assert process.stdout is not None
        sleeper = int(process.stdout.readline())
        connections = sorted(set(server.sessions()) - before)
        process.kill()
        assert connections
        assert gone([sleeper, *connections])


def test_a_link_that_is_cut(server: Sshd, node: Shell) -> None:
    before = set(server.sessions())
    assert node.run(["true"]).code == 0

    def sink(_: bytes) -> None:
        for pid in set(server.sessions()) - before:
            os.kill(pid, 9)

    with pytest.raises(Unreachable, match=rf"the connection to {NODE} broke while `sh .*` ran"):
        node.stream(["sh", "-c", "echo up; sleep 300"], sink)
    assert node.run(["echo", "again"]).stdout == b"again\n"


@pytest.mark.parametrize(
    ("spoil", "message", "hint"),
    [
        (lambda server: server.know("stranger"), "answers with another host key", "ssh-keygen -R"),
        (lambda server: server.know(""), "has a host key that is not known", "connect once by hand"),
        (lambda server: server.write_client(key="stranger"), "does not let us in: .*Permission denied", "ssh-agent"),
        (lambda server: server.write_client(port=1), "is not reached: .*Connection refused", "switched on"),
    ],
    ids=["wrong host key", "unknown host key", "no key", "no server"],
)  # fmt: skip
def test_nodes_that_are_not_reached(
    tmp_path: Path, spoil: Callable[[Sshd], None], message: str, hint: str
) -> None:
    with Sshd(tmp_path / "sshd") as server:
        spoil(server)
        with ssh(NODE, server.config) as node, pytest.raises(Unreachable, match=message) as told:
            node.run(["true"])
    assert told.value.exit_code == 6
    assert hint in told.value.hint
    assert NODE in told.value.message


def test_names_that_are_none(server: Sshd, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host away\n  HostName no-such-host.invalid\n", encoding="utf-8")
    with ssh("away", config) as node, pytest.raises(Unreachable, match="a name that nobody knows"):
        node.run(["true"])
    config.write_text("Hos away\n", encoding="utf-8")
    with (
        ssh("away", config) as node,
        pytest.raises(Unreachable, match="configuration for away is wrong"),
    ):
        node.run(["true"])


def test_a_server_that_never_answers(
    server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patchq.cluster.line.CONNECTING", 0.5)
    with deaf() as port:
        config = tmp_path / "config"
        config.write_text(f"Host mute\n  HostName 127.0.0.1\n  Port {port}\n", encoding="utf-8")
        with ssh("mute", config) as node, pytest.raises(Unreachable, match="mute was reached, but"):
            node.run(["true"])


def test_closing_does_not_wait_for_a_server_that_never_answers(tmp_path: Path) -> None:
    """What a Ctrl-C does while nodes are asked."""
    with deaf() as port, ThreadPoolExecutor() as pool:
        config = tmp_path / "config"
        config.write_text(f"Host mute\n  HostName 127.0.0.1\n  Port {port}\n", encoding="utf-8")
        node = ssh("mute", config)
        asked = pool.submit(node.run, ["true"])
        while not connected(port):
            time.sleep(0.02)
        node.close()
        assert isinstance(asked.exception(10), Unreachable)
    with pytest.raises(Unreachable, match="was closed"):
        node.run(["true"])


def connected(port: int) -> bool:
    lines = Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]
    return any(int(line.split()[2].split(":")[1], 16) == port for line in lines)


@pytest.mark.parametrize(
    "target", ["-oProxyCommand=id", "", "a b", "a:b", "a@-b", "ü", "a\n", "@a", "a;id"]
)
def test_targets_that_are_none(target: str) -> None:
    with pytest.raises(PatchqError, match="is no ssh target") as told:
        ssh(target)
    assert told.value.exit_code == 1


def test_a_banner_disturbs_nothing(tmp_path: Path) -> None:
    with Sshd(tmp_path / "sshd", f"Banner {tmp_path}/banner") as server:
        (tmp_path / "banner").write_text("Welcome!\n", encoding="utf-8")
        with ssh(NODE, server.config) as node:
            done = node.run(["echo", "x"])
    assert (done.stdout, done.stderr) == (b"x\n", b"")


@pytest.mark.skipif(
    not pwd.getpwuid(os.getuid()).pw_shell.endswith("bash"),
    reason="bash reads .bashrc where sshd starts it",
)
def test_login_files_that_talk(tmp_path: Path) -> None:
    """A node can still be asked; rsync cannot speak through that, and says so."""
    (tmp_path / ".bashrc").write_text("echo Welcome!\n", encoding="utf-8")
    here = Node("here", 0, "127.0.0.1", "lo")
    environment = {"HOME": str(tmp_path)}
    with (
        Sshd(tmp_path / "sshd", environment=environment) as server,
        ssh(NODE, server.config) as node,
    ):
        assert node.run(["true"]).stdout == b"Welcome!\n"
        assert ask(node, Cluster("one", "cpu", (here,), 18896, 18897), here).address is True
        with pytest.raises(Incomplete, match="is your shell clean"):
            node.send(tmp_path / ".bashrc", str(tmp_path / "copy"))


def test_no_room_for_a_socket(
    monkeypatch: pytest.MonkeyPatch, server: Sshd, tmp_path: Path
) -> None:
    long = tmp_path / ("x" * 60)
    long.mkdir()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(long))
    with ssh(NODE, server.config) as node, pytest.raises(PatchqError, match="too long a name"):
        node.run(["true"])


def test_tokens_stay_here(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    assert b"secret" not in shell.run(["env"]).stdout


@given(st.text())
def test_what_ssh_says_never_reaches_a_terminal_raw(said: str) -> None:
    told = refused("n", said, ended=True)
    assert all(char.isprintable() or char == " " for char in told.message if ord(char) < 0xA0)


def test_a_port_there_is_reached_from_here(shell: Shell) -> None:
    """What is said comes through, on several connections at once."""
    with socket.create_server(("127.0.0.1", 0)) as far:
        host, port = shell.forward("127.0.0.1", int(far.getsockname()[1]))
        with (
            socket.create_connection((host, port), 10) as one,
            socket.create_connection((host, port), 10) as other,
        ):
            for near in (one, other):
                end, _ = far.accept()
                with end:
                    end.sendall(b"hello")
                assert near.recv(5) == b"hello"


def test_a_server_that_lets_nothing_through_is_named(tmp_path: Path) -> None:
    options = "AllowTcpForwarding no\nDisableForwarding yes"
    with Sshd(tmp_path, options) as closed, ssh(NODE, closed.config) as node:
        host, port = node.forward("127.0.0.1", 9)
        with socket.create_connection((host, port), 10) as line:
            assert line.recv(1) == b"", "it is told at the first connection, not before"
