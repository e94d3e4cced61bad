"""Tiny models that answer the probes, and spin: trained once on a CPU, kept in tests/data/answering.

    .venv/bin/python -m tests.support.answering 0.32.0

trains them anew in the runner environment of that release, some ten minutes, and keeps them: after
a change of what they are made from, which a test sees. They are kept, and not made by each run of
the tests, since another processor adds up in another order: what one machine has learnt to the
last question another has not.

The weights begin with what is slow to learn already in place (answering_net.py): heads that look
back a token or two, heads that find where the same tokens stood before and say what came then, and
one that looks for what a question or a tool said last.
Training on the probes' own questions (patchq/smoke/questions.py), with values drawn anew each time,
teaches the rest: what is asked for, what to leave out, when to call a tool and when to stop
(answering_school.py: until an exam finds nothing weak).
The spinning model is trained a little further: with thinking on its thought goes round for ever, in
a way that depends on the question (answering_talk.SPINS); with thinking off it answers as before.

Tests import `models`; the runner environment's Python runs this file as a program with a folder
(torch and transformers are there, not here).
"""

from __future__ import annotations

import copy
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
_MADE_FROM = (
    "tests/support/answering.py",
    "tests/support/answering_net.py",
    "tests/support/answering_school.py",
    "tests/support/answering_talk.py",
    "patchq/smoke/questions.py",
)


KEPT = ROOT / "tests" / "data" / "answering"
_STAMP = "made-from"


@dataclass(frozen=True)
class Models:
    """Folders that `vllm serve` takes. `report`: what was learnt, as the training measured it."""

    answers: Path
    spins: Path
    report: Mapping[str, Any]


def made_from() -> str:
    """A digest of what decides about the models."""
    digest = hashlib.sha256()
    for name in _MADE_FROM:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def kept() -> str:
    """The digest of what the kept models were made from."""
    return (KEPT / _STAMP).read_text(encoding="utf-8").strip()


def models(python: Path) -> Models:
    """The kept ones; trained by `python`, a runner environment's, where they are of other scripts."""
    from filelock import FileLock

    digest = made_from()
    home = ROOT / "build" / "runner"
    folder = home / f"answering-{digest[:16]}"
    with FileLock(home / "answering.lock"):
        if not folder.is_dir():
            unfinished = home / "answering-unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            if kept() == digest:
                shutil.copytree(KEPT, unfinished)
            else:
                make(python, unfinished)
            unfinished.rename(folder)
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return Models(folder / "answers", folder / "spins", report)


def keep(release: str) -> None:
    """Train the models anew, and keep them."""
    from tests.support import runner

    made = KEPT.with_name("answering-new")
    make(runner.environment(release), made)
    (made / _STAMP).write_text(f"{made_from()}\n", encoding="utf-8")
    shutil.rmtree(KEPT, ignore_errors=True)
    made.rename(KEPT)


def make(python: Path, folder: Path) -> None:
    """Both models in `folder`, and report.json: of each kind of question the share that is right."""
    done = subprocess.run(
        [python, "-I", __file__, folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"},
        text=True,
    )
    assert done.returncode == 0, done.stdout


def main(folder: Path) -> None:
    import torch

    from tests.support import answering_net as net
    from tests.support import answering_school as school
    from tests.support import answering_talk as talk

    # Of more threads most of the time goes into waiting: the matrices are small.
    torch.set_num_threads(1)
    tokens = talk.tokenizer(_texts(random.Random(1)))

    def say(what: str) -> None:
        print(f"{time.process_time():5.0f} s, {what}", flush=True)

    held, last = school.exam(tokens, 2), school.exam(tokens, 3)
    answers = school.taught(
        lambda attempt: net.begin(tokens, attempt), tokens, school.ANSWERS, held, 1, say
    )
    report: dict[str, Any] = {"answers": school.shares(answers, last, tokens)}
    _save(answers, tokens, folder / "answers")
    spinning = {**school.plain(held), **school.spinning_exam(tokens, 4)}
    spins = school.taught(
        lambda attempt: copy.deepcopy(answers), tokens, school.SPINS, spinning, 2, say
    )
    report["spins"] = school.shares(spins, school.spinning_exam(tokens, 5), tokens)
    report["spins, not thinking"] = school.shares(spins, school.plain(last), tokens)
    _save(spins, tokens, folder / "spins")
    (folder / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")


def _texts(draw: random.Random) -> list[str]:
    """Of every kind so many lessons that all of its words occur."""
    from tests.support import answering_talk as talk

    plain = talk.tokenizer([])
    lessons = [talk.lesson(kind, draw, 10) for kind in talk.KINDS for _ in range(60)]
    return [
        *(talk.rendered(plain, each, thinking=False) for each in lessons),
        *(f"{talk.thought(each)}{each.answer}" for each in lessons),
        *talk.SPINS.values(),
    ]


def _save(model: Any, tokens: Any, folder: Path) -> None:
    import torch

    kept = copy.deepcopy(model).to(torch.bfloat16)
    kept.generation_config.do_sample = False
    kept.save_pretrained(folder)
    tokens.save_pretrained(folder)
    (folder / "generation_config.json").write_text(
        json.dumps({"eos_token_id": tokens.eos_token_id}), encoding="utf-8"
    )


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    if __package__:
        keep(sys.argv[1])
    else:
        main(Path(sys.argv[1]))
