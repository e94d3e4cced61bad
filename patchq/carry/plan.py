"""From verdicts and carried texts to the files that will stand in the series folder: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from patchq.queue.patch import Patch
from patchq.queue.series import RETIRED, Line, Series, held_line

if TYPE_CHECKING:
    from patchq.carry.fold import Carried
    from patchq.judge.model import Judgement


def next_series(
    series: Series,
    carried: Sequence[Carried],
    texts: Mapping[str, Patch],
    held: Mapping[str, str] | None = None,
) -> Series:
    """The series after the step: kept patches as they read now, dropped ones retired.

    Those that are held back now (`held` says why) keep their text and become a comment.
    """
    actions = {each.patch.name: each.judgement.action for each in carried}
    lines: list[Line] = []
    retired = list(series.retired)
    for line in series.lines:
        if line.kind != "patch" or line.patch is None:
            lines.append(line)
        elif actions[line.patch.name] == "drop":
            retired.append(line.patch.file)
        elif actions[line.patch.name] == "hold":
            lines.append(held_line(line.patch, (held or {})[line.patch.name]))
        else:
            lines.append(Line("patch", line.text, texts[line.patch.name]))
    return Series(tuple(lines), tuple(retired))


def retired_text(patch: Patch, judgement: Judgement, release: str) -> bytes:
    """A dropped patch as it is kept: its text, and in its header why it went."""
    header = patch.header.replace("Patchq-Dropped", f"{judgement.verdict} in {release}")
    told = [f"{s.signal}: {s.detail}" for s in judgement.evidence]
    return patch.with_header(header.replace("Patchq-Evidence", *told)).text


def changes(
    folder: str,
    before: Series,
    after: Series,
    dropped: Mapping[str, bytes],
) -> dict[str, bytes | None]:
    """Paths under the project's root and their new contents; None deletes."""
    old, new = before.files(), after.files()
    out: dict[str, bytes | None] = {
        f"{folder}/{name}": data for name, data in new.items() if old.get(name) != data
    }
    out |= {f"{folder}/{name}": None for name in old if name not in new}
    out |= {f"{folder}/{RETIRED}/{file}": data for file, data in dropped.items()}
    return out
