"""A token for git: to one host, by git's environment, and in no message."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from patchq.gitstore.git import network_env

_CREDENTIALS = re.compile(r"(\w://)[^/@\s]*@")


@dataclass(frozen=True)
class Secret:
    """A token for a host (`github.com`, with its port where it has one). It is in no repr."""

    host: str
    token: str = field(repr=False)

    def may_go_to(self, url: str) -> bool:
        """Whether it is for this address, and nobody can listen on the way."""
        with suppress(ValueError):
            parts = urlsplit(url)
            host = parts.netloc.rpartition("@")[2].lower()
            safe = parts.scheme == "https" or (parts.scheme == "http" and _loopback(parts.hostname))
            # Who wrote a password into the address means that one.
            return safe and host == self.host.lower() and parts.password is None
        return False

    def environment(self, urls: Iterable[str]) -> dict[str, str]:
        """What git is told of it, for those of the addresses that it is for, and for no other.

        Headers that the user's settings have for them are dropped: two are refused. A redirection
        is not followed, where git would send the header along; and no helper is asked, which would
        be told to forget its own password where the token is refused.
        """
        pairs: list[tuple[str, str]] = []
        for url in filter(self.may_go_to, urls):
            pairs += [
                (f"http.{url}.extraHeader", ""),
                (f"http.{url}.extraHeader", f"Authorization: Basic {self._basic}"),
                (f"http.{url}.followRedirects", "false"),
                ("credential.helper", ""),
            ]
        if not pairs:
            return {}
        start = int(network_env()["GIT_CONFIG_COUNT"])
        env = {"GIT_CONFIG_COUNT": str(start + len(pairs)), "GIT_ASKPASS": ""}
        for index, (key, value) in enumerate(pairs, start):
            env[f"GIT_CONFIG_KEY_{index}"] = key
            env[f"GIT_CONFIG_VALUE_{index}"] = value
        return env

    @property
    def _basic(self) -> str:
        return base64.b64encode(f"x-access-token:{self.token}".encode()).decode()


def clean(text: str, secret: Secret | None = None) -> str:
    """Without credentials: those of addresses, and the token in each form that it is sent in."""
    text = _CREDENTIALS.sub(r"\1", text)
    if secret and secret.token:
        for form in (secret.token, secret._basic):
            text = text.replace(form, "***")
    return text


def _loopback(host: str | None) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host or "").is_loopback
    return host == "localhost"
