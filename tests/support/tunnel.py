"""A way from here to a port of a network namespace, where no route leads: a link that can be cut."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self

from tests.support.netns import Node


class Tunnel:
    """127.0.0.1:`port` here leads to 127.0.0.1:`port` on `node`, while this is used as a context."""

    def __init__(self, node: Node, port: int) -> None:
        self._node, self._port = node, port
        self._ends: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._server = socket.create_server(("127.0.0.1", self._port), backlog=32)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """End what goes through, at both ends; new connections come through."""
        while self._ends:
            end = self._ends.pop()
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                try:
                    with self._node.entered():
                        far = socket.create_connection(("127.0.0.1", self._port), 10)
                except OSError:
                    near.close()
                    continue
                far.settimeout(None)
                self._ends += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 18):
                other.sendall(data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_WR)
