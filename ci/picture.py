"""The README's picture: the report of the sync that `make sync` makes, by rich's own export.

Run in the repository: `.venv/bin/python ci/picture.py docs/first-sync.svg [--onto RELEASE]`.
It is a dry run: nothing is written but the picture.
"""

from __future__ import annotations

import argparse
import io
import re
from dataclasses import replace
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from patchq.carry.sync import sync
from patchq.carry.workspace import read_queue, writing
from patchq.render import tables

TITLE = "make sync"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--onto", default="latest")
    wanted = parser.parse_args()
    with writing(Path.cwd(), "picture") as (project, _):
        report = sync(read_queue(project, None), onto=wanted.onto, dry_run=True)
    # What a sync that is no dry run says at its end.
    told = replace(report, dry_run=False, recorded=report.exit_code == 0)
    console = Console(
        record=True, width=110, file=io.StringIO(), force_terminal=True, markup=False, emoji=False
    )
    console.print(tables.sync(told))
    # Without the web font: a picture in a README loads nothing, and says so nowhere.
    plain = re.sub(r"@font-face \{\{.*?\n    \}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    console.save_svg(str(wanted.picture), title=TITLE, code_format=plain, unique_id="first-sync")


if __name__ == "__main__":
    main()
