"""git over HTTP by git's own `git http-backend`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from werkzeug.wrappers import Request, Response


def serve_git(request: Request, repository: Path, path: str, user: str | None = None) -> Response:
    """Hands one request to the backend, whose answer is that of a CGI program.

    `user`: who may push; without one git's backend takes no push.
    """
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_PROJECT_ROOT": str(repository),
        "PATH_INFO": f"/{path}",
        "REQUEST_METHOD": request.method,
        "QUERY_STRING": request.query_string.decode(),
        "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        "REMOTE_ADDR": "127.0.0.1",
    }
    if user:
        environment["REMOTE_USER"] = user
    for variable, header in (
        ("GIT_PROTOCOL", "Git-Protocol"),
        ("HTTP_CONTENT_ENCODING", "Content-Encoding"),
    ):
        if header in request.headers:
            environment[variable] = request.headers[header]
    done = subprocess.run(
        ["git", "http-backend"], input=request.get_data(), env=environment, capture_output=True
    )
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    fields = [line.split(": ", 1) for line in head.decode("latin-1").split("\r\n") if line]
    headers = dict(fields)
    status = headers.pop("Status", "200 OK")
    return Response(body, status, headers)
