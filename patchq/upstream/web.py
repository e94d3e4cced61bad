"""Small answers, read whole: lists, manifests, settings."""

from __future__ import annotations

import time
from collections.abc import Mapping

from patchq.errors import Incomplete, PatchqError
from patchq.upstream import http
from patchq.upstream.http import redact
from patchq.upstream.pipconf import IndexSettings

MOST = 16 << 20
"""Bytes that such an answer has at most."""
_ATTEMPTS = 4
_PAUSE = 0.5


def whole(
    url: str,
    settings: IndexSettings,
    headers: Mapping[str, str] | None = None,
    *,
    most: int = MOST,
    login: str = "",
) -> bytes | None:
    """The body; None where the server says that there is no such thing.

    `login`: what to do where it asks who we are. Raises Incomplete where the server is not
    reached, PatchqError where it refuses, or the answer has more than `most` bytes.
    """
    from requests import RequestException
    from urllib3.exceptions import HTTPError

    sent = {**(headers or {}), "Accept-Encoding": "identity"}
    why = ""
    with http.open_session(settings) as session:
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_PAUSE * 2 ** (attempt - 1))
            try:
                with http.get(session, url, settings, sent) as response:
                    status = response.status_code
                    if status in (404, 410):
                        return None
                    if status in (401, 403):
                        raise PatchqError(
                            f"{redact(url)} is refused: the server answered {status}",
                            login or "see whether it may be read without a login",
                        )
                    if status == 200:
                        data = response.raw.read(most + 1, decode_content=False)
                        length = response.headers.get("Content-Length", "")
                        if len(data) > most:
                            raise PatchqError(
                                f"{redact(url)} has more than {most >> 20} MiB, as no such thing",
                                "see whether the address is right",
                            )
                        if not length.isdigit() or len(data) == int(length):
                            return bytes(data)
                        why = f"the connection ended after {len(data)} of {length} bytes"
                        continue
                    why = f"the server answered {status} {response.reason}"
                    if status < 500 and status not in (408, 429):
                        break
            except (RequestException, HTTPError) as error:
                why = http.reason(error, settings)
    raise Incomplete(
        f"{redact(url)} was not read: {why}", "check the address and the network, and run it again"
    )
