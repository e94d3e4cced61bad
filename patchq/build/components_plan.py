"""Where the changes of a component's source go in its wheel: pure.

A source archive has its package at the top, or below `src/` or `python/`; some packages carry their
sources along as data, elsewhere (FlashInfer: `csrc/` as `flashinfer/data/csrc/`). The wheel's own
members say where: the one that ends with the path and has the very bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from patchq.build.plan import NATIVE_FILES, NATIVE_FOLDERS, NATIVE_SUFFIXES, PACKAGING, Changed
from patchq.errors import ProofFailed
from patchq.paths import lossless, show

PREFIXES = (b"", b"src/", b"python/")


@dataclass(frozen=True)
class Placed:
    """`laid` (object ids by member) and `removed` members; `apart`: paths that no wheel has;
    `homeless`: those that a compiler or the packaging would have to bring into one.
    """

    laid: Mapping[str, str]
    removed: tuple[str, ...]
    apart: tuple[bytes, ...]
    homeless: tuple[bytes, ...]


def place(
    changed: Iterable[Changed],
    modules: Collection[str],
    members: Collection[str],
    read: Callable[[str], bytes],
    blob: Callable[[str], bytes],
    wheel: str,
) -> Placed:
    """Sort the changes. `read` gives a member of the wheel, `blob` an object of the source.

    Raises ProofFailed where the wheel has another file than the source in a place that changes.
    """
    laid: dict[str, str] = {}
    removed: list[str] = []
    apart: list[bytes] = []
    homeless: list[bytes] = []
    for each in sorted(changed, key=lambda each: each.path):
        own = _own(each.path, modules)
        if each.old is None:
            places = [own] if own and each.path.endswith(b".py") else []
        else:
            places = _places(each, own, members, read, blob, wheel)
        if not places:
            (homeless if _matters(each.path, own) else apart).append(each.path)
        elif each.new is None:
            removed += places
        else:
            laid |= dict.fromkeys(places, each.new)
    return Placed(laid, tuple(removed), tuple(apart), tuple(homeless))


def _own(path: bytes, modules: Iterable[str]) -> str | None:
    """The member that a path inside the package becomes."""
    for prefix in PREFIXES:
        for module in modules:
            if path.startswith(prefix + module.encode() + b"/"):
                return lossless(path[len(prefix) :])
    return None


def _places(
    each: Changed,
    own: str | None,
    members: Collection[str],
    read: Callable[[str], bytes],
    blob: Callable[[str], bytes],
    wheel: str,
) -> list[str]:
    assert each.old is not None
    old = blob(each.old)
    if own is not None and own in members:
        if read(own) != old:
            raise ProofFailed(
                f"{wheel} was not built from the source that its patches are for:"
                f" {show(own)} differs",
                "take the release's own wheel, or another index",
            )
        return [own]
    path = lossless(each.path)
    ends = [name for name in members if name == path or name.endswith(f"/{path}")]
    return sorted(name for name in ends if read(name) == old)


def _matters(path: bytes, own: str | None) -> bool:
    if path in PACKAGING or path in NATIVE_FILES or path.startswith(NATIVE_FOLDERS):
        return True
    return path.endswith(NATIVE_SUFFIXES) or own is not None
