"""The two nodes on one machine that the tests of two ranks stand on."""

from __future__ import annotations

import socket
import subprocess

import pytest

from tests.support.netns import two_nodes

pytestmark = pytest.mark.root


def test_two_nodes_reach_each_other_and_are_gone_at_the_end() -> None:
    with two_nodes() as (one, other):
        with one.entered():
            server = socket.create_server((one.address, 8000))
        code = "import socket, sys; it = socket.create_connection((sys.argv[1], 8000), 10)"
        code += "; print(it.recv(5).decode(), it.getsockname()[0])"
        command = other.command("python3", "-c", code, one.address)
        with server, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as asking:
            server.settimeout(20)
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"hello")
            assert asking.communicate()[0].split() == ["hello", other.address]
        for node in (one, other):
            routes = subprocess.check_output(node.command("ip", "route"), text=True)
            assert "default" not in routes
    listed = subprocess.check_output(["ip", "netns", "list"], text=True)
    assert one.namespace not in listed and other.namespace not in listed


def test_a_node_has_a_loopback_of_its_own() -> None:
    """The port is taken here, and free there; the thread comes back."""
    with socket.create_server(("127.0.0.1", 0)) as here, two_nodes() as (node, _):
        where = here.getsockname()
        with node.entered():
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(where, 5)
            socket.create_server(where).close()
        socket.create_connection(where, 5).close()
