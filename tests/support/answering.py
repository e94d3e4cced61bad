"""Tiny models that answer the probes, and spin: made on a CPU at the first use, in seconds.

What is slow to learn is written into the weights (answering_net.py): heads that look back, and heads
that find what a question told. The rest, when to say what of it, is learnt from lessons, which are
the probes' own questions (patchq/smoke/questions.py) with values drawn anew (answering_talk.py): as
rules, by counting (answering_rules.py). So it comes out the same on every processor, and an exam
says by how much the right token leads at least (answering_school.py).
The spinning model has other lessons: with thinking on its thought goes round for ever, in a way that
depends on the question (answering_talk.SPINS); with thinking off it answers as the first.

Tests import `models`; a runner environment's Python runs this file as a program with a folder
(torch and transformers are there, not here).
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_PARTS = ("_net", "_rules", "_school", "_talk", "_tokens")
_MADE_FROM = (
    *(f"tests/support/answering{part}.py" for part in ("", *_PARTS)),
    "patchq/smoke/questions.py",
)


@dataclass(frozen=True)
class Models:
    """Folders that `vllm serve` takes.

    `report`: by model and kind of question what was learnt (answering_school.Learnt).
    """

    answers: Path
    spins: Path
    report: Mapping[str, Mapping[str, Mapping[str, float]]]


def models(python: Path) -> Models:
    """Made by `python`, a runner environment's, where these scripts have not made them yet."""
    from filelock import FileLock

    digest = hashlib.sha256()
    for name in _MADE_FROM:
        digest.update((ROOT / name).read_bytes())
    made_by = python.parents[2] / "made-from"  # transformers writes the settings
    digest.update(made_by.read_bytes() if made_by.exists() else b"")
    home = ROOT / "build" / "runner"
    folder = home / f"answering-{digest.hexdigest()[:16]}"
    with FileLock(home / "answering.lock"):
        if not folder.is_dir():
            unfinished = home / "answering-unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            make(python, unfinished)
            unfinished.rename(folder)
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return Models(folder / "answers", folder / "spins", report)


def make(python: Path, folder: Path) -> None:
    """Both models in `folder`, and report.json."""
    done = subprocess.run(
        [python, "-I", "-B", __file__, folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"},
        text=True,
    )
    assert done.returncode == 0, done.stdout


def main(folder: Path) -> None:
    from tests.support import answering_school as school
    from tests.support import answering_tokens as words

    tokens = words.tokenizer(_texts(random.Random(1)))
    report: dict[str, Any] = {}
    held = school.exam(tokens, 2)
    for name, examined in (
        ("answers", held),
        ("spins", {**school.plain(held), **school.spinning_exam(tokens, 3)}),
    ):
        model = _saved(school.taught(tokens, 4, spin=name == "spins"), tokens, folder / name)
        report[name] = school.learnt(model, examined, tokens)
        print(f"{time.process_time():.0f} s: {name}", flush=True)
    (folder / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")


def _texts(draw: random.Random) -> list[str]:
    """Of every kind so many lessons that all of its words occur."""
    from tests.support import answering_talk as talk
    from tests.support import answering_tokens as words

    plain = words.tokenizer([])
    lessons = [talk.lesson(kind, draw, 10) for kind in talk.KINDS for _ in range(60)]
    return [
        *(talk.rendered(plain, each, thinking=False) for each in lessons),
        *(f"{talk.thought(each)}{words.THINK_END}{each.answer}" for each in lessons),
        *(talk.AGAIN, *talk.SPINS.values()),
    ]


def _saved(model: Any, tokens: Any, folder: Path) -> Any:
    """The model as it is kept: of bfloat16."""
    import torch

    kept = model.to(torch.bfloat16)
    kept.generation_config.do_sample = False
    kept.save_pretrained(folder)
    tokens.save_pretrained(folder)
    (folder / "generation_config.json").write_text(
        json.dumps({"eos_token_id": tokens.eos_token_id}), encoding="utf-8"
    )
    return kept.to(torch.float32)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main(Path(sys.argv[1]))
