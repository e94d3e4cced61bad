"""Take out of a text what tells who and where: tokens, addresses, names.

What is the same stays the same: an address becomes `address-1` wherever it stands, so that a
maintainer can still see which machine talks to which.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Mapping

_KEYS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_TOKENS = re.compile(
    r"\b(?:hf|gh[oprsu]|github_pat|glpat|sk|pk|xox[abp]|npm|pypi)[_-][A-Za-z0-9_-]{10,}"
    r"|\bAKIA[A-Z0-9]{12,}|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)?"
)
_WORD = r"(?:api[-_]?key|token|passw(?:or)?d|passphrase|secret|authorization|cookie)"
_NAMED = re.compile(
    rf"(?i)({_WORD}[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic|token)\s+)?)(?!\*)[^\s\"',}}]{{3,}}"
)
_OPTION = re.compile(rf"(?i)(--(?:[a-z]+-)*{_WORD}\s+)(?!\*)\S+")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}")
_LOGIN = re.compile(r"(://)[^/@\s\"']+@")
_MAIL = re.compile(r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]++@[A-Za-z0-9][A-Za-z0-9.-]*")
_MAC = re.compile(r"\b(?:[0-9A-Fa-f]{2}[:-]){5,7}[0-9A-Fa-f]{2}\b")
_ADDRESS = re.compile(
    r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)"
    r"|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:\.\d{1,3}){0,3}(?![\w:]))"
)
_HOME = re.compile(r"(/home/|/Users/)[^/\s\"':,]+")
_DEVICE = re.compile(r"\b(?:GPU|MIG)-[0-9a-f]{8}-[0-9a-f-]{20,}\b")
_SHORTEST = 2
"""Letters of a name that is looked for: a shorter one stands in every text."""


class Cleaner:
    """`names`: what to say in the place of each name that is known (hosts, accounts, nodes).

    `removed` counts what was taken out so far, by kind.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self.removed: Counter[str] = Counter()
        self._known: dict[str, str] = {}
        known = [name for name in names if len(name) >= _SHORTEST]
        self._names = {name.lower(): names[name] for name in known}
        # The longest first: one may be the beginning of another.
        words = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
        word = rf"(?i)(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])"
        self._words = re.compile(word) if words else None

    def clean(self, text: str) -> str:
        text = _KEYS.sub(self._as("tokens", "(a private key)"), text)
        text = _LOGIN.sub(self._as("tokens", r"\1***@"), text)
        text = _TOKENS.sub(self._as("tokens", "***"), text)
        text = _NAMED.sub(self._as("tokens", r"\1***"), text)
        text = _OPTION.sub(self._as("tokens", r"\1***"), text)
        text = _BEARER.sub(self._as("tokens", r"\1 ***"), text)
        text = _MAC.sub(self._numbered("addresses", "adapter"), text)
        text = _ADDRESS.sub(self._address, text)
        text = _DEVICE.sub(self._numbered("names", "device"), text)
        text = _MAIL.sub(self._numbered("names", "account"), text)
        text = _HOME.sub(self._as("names", r"\1user"), text)
        if self._words is not None:
            text = self._words.sub(self._named, text)
        return text

    def _as(self, kind: str, instead: str) -> Callable[[re.Match[str]], str]:
        def put(found: re.Match[str]) -> str:
            self.removed[kind] += 1
            return found.expand(instead)

        return put

    def _numbered(self, kind: str, word: str) -> Callable[[re.Match[str]], str]:
        def put(found: re.Match[str]) -> str:
            self.removed[kind] += 1
            return self._same(found[0].lower(), word)

        return put

    def _address(self, found: re.Match[str]) -> str:
        try:
            address = ipaddress.ip_address(found[0])
        except ValueError:
            return found[0]  # a time, a version
        if address.is_loopback or address.is_unspecified:
            return found[0]
        self.removed["addresses"] += 1
        return self._same(str(address), "address")

    def _named(self, found: re.Match[str]) -> str:
        self.removed["names"] += 1
        return self._names[found[0].lower()]

    def _same(self, what: str, word: str) -> str:
        if what not in self._known:
            count = sum(each.startswith(f"{word}-") for each in self._known.values())
            self._known[what] = f"{word}-{count + 1}"
        return self._known[what]
