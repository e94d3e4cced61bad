"""The mark of a withdrawn release: what it says, who signed it, and where it is found.

It is TOML, signed as the sums of a release are (sign.py), and stands in up to three places, alike:
in `releases/withdrawn.toml` of the repository, as the files WITHDRAWN and WITHDRAWN.sig of the
release, and within its notes, which may be edited even where no file can be added.
"""

from __future__ import annotations

import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from patchq.errors import PatchqError, ProofFailed
from patchq.release import sign, tables
from patchq.release.manifest import Number
from patchq.release.tables import Date, Line, Sha256

FILE = "releases/withdrawn.toml"
MARKER = "WITHDRAWN"
SIGNATURE = "WITHDRAWN.sig"
SCHEMA = "patchq.withdrawn/1"
BEGIN, END = "<!-- patchq: withdrawn -->", "<!-- patchq: end of withdrawn -->"
_HEAD = """\
# Releases that are not to be installed, each with its signed mark.
# Written by `patchq release withdraw`.
"""
_BLOCK = re.compile(
    f"^{re.escape(BEGIN)}$.{{0,40000}}?^{re.escape(END)}$", re.DOTALL | re.MULTILINE
)
_FENCED = re.compile(r"^```text\n(.{1,10000}?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Withdrawal:
    """`manifest`: the sha256 of the release's manifest. `last_good`: what to install instead."""

    release: Number
    why: Line
    date: Date
    manifest: Sha256
    last_good: Number | None = None


@dataclass(frozen=True)
class Mark:
    """A withdrawal as it was signed, and the signature; neither is believed by being here."""

    text: bytes
    signature: bytes


def write(value: Withdrawal) -> bytes:
    """The text that is signed."""
    import tomlkit

    return tomlkit.dumps({"schema": SCHEMA, **tables.to_table(value)}).encode()


def read(mark: Mark) -> Withdrawal:
    """What a mark says, whoever signed it. Raises ValueError where it says nothing."""
    table = tomllib.loads(mark.text.decode("utf-8"))
    if table.pop("schema", None) != SCHEMA:
        raise ValueError("it is of a newer patchq, or no mark")
    return tables.from_table(Withdrawal, table)


def withdrawn(
    number: int,
    signers: Path | None,
    *,
    small: Callable[[str], bytes | None] | None = None,
    notes: str = "",
    root: Path | None = None,
) -> Withdrawal | None:
    """Whether release `number` was withdrawn, as somebody whom `signers` names has signed.

    Looked at is what is given: `small` gives a small file that lies beside the release's (None:
    it is not there), `notes` are its notes at the forge (`forge.releases.notes`), `root` is a
    project or another folder with `releases/withdrawn.toml`. Raises ProofFailed where there is a
    mark that nobody known has signed: whoever installs cannot tell then.
    """
    for mark in _marks(small, notes, root):
        try:
            found = read(mark)
        except (ValueError, RecursionError) as error:
            raise _unclear(number, f"it cannot be read: {error}") from error
        if found.release != number:
            continue
        who, why = signed_by(mark, signers)
        if who is None:
            raise _unclear(number, why)
        return found
    return None


def signed_by(mark: Mark, signers: Path | None) -> tuple[str | None, str]:
    """Who of `signers` signed a mark; or None, and why it does not hold."""
    if signers is None:
        return None, "nobody's key is known here"
    with tempfile.TemporaryDirectory(prefix="patchq-") as folder:
        signature = Path(folder) / SIGNATURE
        signature.write_bytes(mark.signature)
        return sign.signer(mark.text, signature, signers)


def sentence(value: Withdrawal) -> str:
    """For whoever wants to install it: why not, and what instead."""
    return f"release {value.release} was withdrawn: {value.why}"


def advice(value: Withdrawal) -> str:
    if value.last_good is None:
        return "there is no release before it that is good; wait for the next one"
    return f"install release {value.last_good}, the last good one"


def recorded(root: Path) -> dict[int, Mark]:
    """The marks in `releases/withdrawn.toml`, by release; PatchqError where it is damaged."""
    try:
        table = tomllib.loads((root / FILE).read_bytes().decode("utf-8"))
        entries = table.get("withdrawn", [])
        marks = [Mark(e["marker"].encode(), e["signature"].encode()) for e in entries]
        return {read(mark).release: mark for mark in marks}
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise PatchqError(
            f"{FILE} is damaged: {error}", "git knows the last good one; get it back from there"
        ) from error


def record(marks: dict[int, Mark]) -> bytes:
    """`releases/withdrawn.toml` with these marks."""
    import tomlkit

    document = tomlkit.document()
    every = tomlkit.aot()
    for _, mark in sorted(marks.items()):
        entry = tomlkit.table()
        entry["marker"] = tomlkit.string(mark.text.decode(), multiline=True)
        entry["signature"] = tomlkit.string(mark.signature.decode("ascii"), multiline=True)
        every.append(entry)
    document["withdrawn"] = every
    return (_HEAD + "\n" + tomlkit.dumps(document)).encode()


def in_notes(notes: str) -> Mark | None:
    """The mark within notes, or None."""
    block = _BLOCK.search(notes.replace("\r\n", "\n"))
    parts = _FENCED.findall(block[0]) if block else []
    return Mark(parts[0].encode(), parts[1].encode()) if len(parts) == 2 else None


def into_notes(notes: str, banner: str, mark: Mark) -> str:
    """Notes with the banner and the mark on top, once however often this is done."""
    old = _BLOCK.sub("", notes.replace("\r\n", "\n"))
    parts = [
        BEGIN,
        banner.strip(),
        "",
        "<details><summary>The signed mark</summary>",
        "",
        *(f"```text\n{part.decode()}```\n" for part in (mark.text, mark.signature)),
        "</details>",
        END,
        "",
        old.strip(),
        "",
    ]
    return "\n".join(parts)


def _marks(
    small: Callable[[str], bytes | None] | None, notes: str, root: Path | None
) -> Iterator[Mark]:
    if root is not None:
        yield from recorded(root).values()
    if small is not None:
        text = small(MARKER)
        if text is not None:
            yield Mark(text, small(SIGNATURE) or b"")
    if BEGIN in notes:
        yield in_notes(notes) or Mark(b"", b"")


def _unclear(number: int, why: str) -> ProofFailed:
    return ProofFailed(
        f"release {number} is marked as withdrawn, and the mark does not hold: {why}",
        "do not install it before those who publish it have said what is true",
    )
