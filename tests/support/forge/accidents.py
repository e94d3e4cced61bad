"""What can happen to a request on its way: the line is cut, a proxy answers, the client dies."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from werkzeug.wrappers import Request, Response

Right = Callable[[Request, str | None], Response]


@dataclass
class Accident:
    """The request number `at` (from 1) of REST, or of another `kind`, meets it.

    `after`: what was asked is done, and the answer is lost; else it is not done. `half`: of an
    upload, so many bytes come. `ends`: `cut` (the connection), `502`, or `kill`, which has `kills`
    called, and then cuts. `met` has the request that met it.
    """

    at: int
    ends: str = "cut"
    after: bool = False
    half: int | None = None
    kills: Callable[[], None] = lambda: None
    met: list[str] = field(default_factory=list)
    count: int = 0
    kind: str = "rest"

    def around(self, right: Right) -> Right:
        def meets(request: Request, token: str | None) -> Response:
            self.count += 1
            if self.count != self.at:
                return right(request, token)
            self.met.append(f"{request.method} {request.path}")
            if self.half is not None and request.content_length:
                request.environ["tests.half"] = self.half
                right(request, token)
            elif self.after:
                right(request, token)
            if self.ends == "502":
                return self._bad_gateway(request)
            if self.ends == "kill":
                self.kills()
            return cut(request)

        return meets

    def _bad_gateway(self, request: Request) -> Response:
        body = json.dumps({"message": "Server Error"})
        answer = Response(body, 502, content_type="application/json")
        if not self.after:
            answer.headers["Connection"] = "close"  # the body was not read
        return answer


def cut(request: Request) -> Any:
    line: socket.socket = request.environ["werkzeug.socket"]
    line.shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError("cut on purpose")
