"""What an answer of GitHub's REST says, where it says it as GitHub does; the rest is empty."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from patchq.forge.client import Client
from patchq.forge.errors import ForgeError
from patchq.forge.model import require_repo

_PAGES = 100
"""At most so many pages are read of a list: ten thousand entries."""


def at(repo: str) -> str:
    return f"/repos/{require_repo(repo)}"


def entries(client: Client, path: str, asked: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    """The objects of a list, page by page. Raises ForgeError."""
    for page in range(1, _PAGES + 1):
        items = client.get(path, {**asked, "per_page": "100", "page": str(page)})
        if not isinstance(items, list):
            raise client.odd()
        yield from (item for item in items if isinstance(item, dict))
        if len(items) < 100:
            return


def require_number(client: Client, item: Any) -> Mapping[str, Any]:
    """The object, where it has a number. Raises ForgeError."""
    if isinstance(item, dict) and type(item.get("number")) is int and item["number"] > 0:
        return item
    if isinstance(item, dict) and {"message", "url"} <= item.keys():
        # The answer 307 to a change; reads are led there.
        raise ForgeError("refused", f"{client.host} has it elsewhere now", "write its new name")
    raise client.odd()


def text(item: Mapping[str, Any], key: str) -> str:
    """As it was written, hostile; in UTF-8 at least."""
    value = item.get(key)
    return utf8(value) if isinstance(value, str) else ""


def address(item: Mapping[str, Any], key: str) -> str:
    value = text(item, key)
    return value if re.fullmatch(r"https?://[!-~]{1,2000}", value) else ""


def author(item: Mapping[str, Any]) -> str:
    """Empty where the account is gone."""
    user = item.get("user")
    return text(user, "login") if isinstance(user, dict) else ""


def utf8(value: str) -> str:
    return value.encode("utf-8", "replace").decode()
