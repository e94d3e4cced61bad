"""The chat template: is it the pinned one, and does it ask the model what is meant."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from patchq.doctor import efforts, goldens
from patchq.doctor.conversations import NOT_THINKING, OFF, PLAIN, THINKING
from patchq.doctor.goldens import Goldens
from patchq.doctor.model import Check, of_error
from patchq.doctor.rendering import ChatTemplate, Refused, Unrenderable
from patchq.errors import PatchqError
from patchq.paths import show
from patchq.upstream.components import Template

NAME = "template"
GOLDENS = "golden texts"
OFF_SWITCH = "thinking off"
EFFORT = "reasoning effort"
MAX_FILE = 1 << 20
_MARKS = (("<think>", "</think>"), ("[THINK]", "[/THINK]"))
_PINS = "upstream/dependencies.toml"


@dataclass(frozen=True)
class Source:
    """A template's text and the sha256 of its file."""

    text: str
    sha256: str


class NoTemplate(PatchqError):
    """What is in the file cannot be a template."""


def read(path: Path) -> Source:
    """Raises NoTemplate where it is no template, PatchqError where there is no such file."""
    if not path.is_file():
        raise PatchqError(f"there is no file {path}", "name a chat template (chat_template.jinja)")
    with path.open("rb") as file:
        raw = file.read(MAX_FILE + 1)
    try:
        if len(raw) > MAX_FILE:
            raise NoTemplate(
                f"{path} is no chat template: it is larger than {MAX_FILE >> 20} MB",
                "name a .jinja file",
            )
        return Source(raw.decode("utf-8"), hashlib.sha256(raw).hexdigest())
    except UnicodeDecodeError:
        raise NoTemplate(
            f"{path} is no chat template: it is not UTF-8", "name a .jinja file"
        ) from None


def find_pin(path: Path, digest: str, pins: Sequence[Template]) -> Template | None:
    """The pinned template that the file is, or should be: by digest, by name, or the only one."""
    same = [pin for pin in pins if pin.sha256 == digest]
    called = [pin for pin in pins if path.stem in (pin.name, Path(pin.file).stem)]
    return next(iter([*same, *(called if len(called) == 1 else ()), *pins[: len(pins) == 1]]), None)


def check(
    path: Path, pins: Sequence[Template] | None = None, root: Path | None = None
) -> tuple[Check, ...]:
    """The template in the file `path`; `pins` and `root` are the project's, None outside of one.

    Raises PatchqError where there is no such file.
    """
    try:
        source = read(path)
    except NoTemplate as problem:
        return (of_error(NAME, problem),)
    digest = source.sha256
    pin = find_pin(path, digest, pins or ())
    pinned = tuple(_pinned(digest, pin)) if pins is not None else ()
    try:
        template = ChatTemplate(source.text)
        rendered = goldens.render(template)
        behaves = (*_off(rendered), *_efforts(template))
    except Unrenderable as problem:
        return (*pinned, Check(NAME, "fatal", f"it cannot be rendered: {show(str(problem))}"))
    compared = tuple(_compared(rendered, pin, root)) if root is not None else ()
    told = (*pinned, *compared, *behaves)
    if any(each.state in ("warning", "fatal", "unknown") for each in told):
        return told
    known = pin is not None and root is not None and not compared
    about = f"{pin.name} at {pin.revision}" if pin else f"sha256 {digest[:12]}"
    about += f", renders {len(rendered)} conversations{' as expected' if known else ''}"
    return (Check(NAME, "ok", about), *told)


def _pinned(digest: str, pin: Template | None) -> Iterator[Check]:
    if pin is None:
        yield Check(NAME, "note", f"{_PINS} pins no such template (sha256 {digest[:12]})")
    elif not pin.sha256:
        yield Check(
            NAME,
            "unknown",
            f"whether it is {pin.name} at {pin.revision} is not known",
            f"{_PINS} has no sha256 of it",
            f'if it is, write sha256 = "{digest}" there',
        )
    elif pin.sha256 != digest:
        yield Check(
            NAME,
            "fatal",
            f"it is not {pin.name} at {pin.revision}: its sha256 is {digest[:12]},"
            f" {pin.sha256[:12]} is pinned",
            "what was tested was tested with the pinned one",
            f"take {pin.file} of {pin.repository} at {pin.revision}, or pin this one",
        )


def _compared(rendered: Goldens, pin: Template | None, root: Path) -> Iterator[Check]:
    if pin is None:
        return
    where = goldens.path_of(pin.name)
    try:
        wanted = goldens.read(root / where)
    except PatchqError as problem:
        yield of_error(GOLDENS, problem)
        return
    if wanted is None:
        yield Check(
            GOLDENS,
            "note",
            f"there are none of {pin.name}",
            remedy="--write-goldens writes them; read them before they are committed",
        )
        return
    for name, found in rendered.items():
        if name not in wanted:
            yield Check(GOLDENS, "note", f"{where} does not have {name}")
        elif said := goldens.difference(wanted[name], found):
            yield Check(
                GOLDENS,
                "fatal",
                f"the conversation {name} is rendered otherwise than expected: {show(said)}",
                f"{where} has what it was",
                "if that is meant, write them anew with --write-goldens and read the difference",
            )


def _off(rendered: Goldens) -> Iterator[Check]:
    """A prompt that ends in an open thought makes the model think, whatever was asked."""
    off = rendered[OFF.name]
    for begin, end in _MARKS:
        if not off.refused and off.text.rfind(begin) > off.text.rfind(end):
            yield Check(
                OFF_SWITCH,
                "warning",
                f"with thinking off the prompt still opens {begin}",
                "the model thinks, and its thought may come as the answer",
                "take the maker's corrected template, or serve with"
                """ --reasoning-config '{"no_thought_in_content": true}'""",
            )


def _efforts(template: ChatTemplate) -> Iterator[Check]:
    def render(effort: str | None) -> str | None:
        values = dict(NOT_THINKING if effort == "none" else THINKING)
        try:
            given = {} if effort is None else {"reasoning_effort": effort}
            return template.render(PLAIN, **values, **given)
        except Refused:
            return None

    found = efforts.find(render)
    if not found.is_highest:
        return
    become = ""
    if found.unknown and found.others == found.default:
        become = f", and so do {', '.join(found.unknown)}"
    lower = found.known[-2]
    yield Check(
        EFFORT,
        "warning",
        f"a request that gives no effort gets {found.default!r}, the highest{become}",
        f"it knows {', '.join(found.known)}; GLM-5.3 was measured to take 2,160 s with its highest"
        " and 468 s with high, with the same score",
        f"""serve with --default-chat-template-kwargs '{{"reasoning_effort": "{lower}"}}'""",
    )
