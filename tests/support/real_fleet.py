"""Real vLLM with a model that answers, on the two nodes of a fleet (tests/support/fleet.py)."""

from __future__ import annotations

import hashlib
from pathlib import Path

from patchq.doctor import goldens
from patchq.doctor.rendering import ChatTemplate
from tests.support import runner
from tests.support.fleet import Fleet

BASE = runner.base()
PROFILE = """
model = "tiny"
template = "answers"
served_name = "tiny"
tensor_parallel = 2
[flags]
enforce-eager = true
max-model-len = 2048
max-num-seqs = 8
block-size = 32
reasoning-parser = "glm45"
tool-call-parser = "glm47"
enable-auto-tool-choice = true
enable-prompt-tokens-details = true
reasoning-config = {{ no_stop_in_reasoning = true }}
require-requested-backends = true
[environment]
DO_NOT_TRACK = "1"
HF_HUB_OFFLINE = "1"
# Each start would compile its sampler anew, on each node; tests/runner has it compiled.
TORCHDYNAMO_DISABLE = "1"
VLLM_CPU_KVCACHE_SPACE = "1"
VLLM_NO_USAGE_STATS = "1"
VLLM_CACHE_ROOT = "{cache}"
[limits]
ready = 300
memory = 0.25
[smoke]
standstill = 60
log_known = ["Failed to create oneDNN linear", "CPU SHM communicator disabled"]
"""


def prepare(nodes: Fleet, engine: runner.Runner, model: Path) -> None:
    """What is on the nodes before anything is deployed, and what the project knows of it."""
    for home in nodes.homes:
        (home / "runner").unlink()
        (home / "runner").symlink_to(engine.python.parents[1])
        (home / "models/tiny").rmdir()
        bring(home, model)
    text = PROFILE.format(cache=engine.home / "cache")
    (nodes.root / "ci/profiles/real.toml").write_text(text, encoding="utf-8")
    (nodes.root / "ci/profiles/tiny.toml").unlink()
    pin(nodes.root, model)


def bring(home: Path, model: Path) -> None:
    """The model, as `tiny`, and its template, as `answers`, to a node."""
    (home / "models").mkdir(exist_ok=True)
    (home / "models/tiny").symlink_to(model)
    (home / "patchq/templates").mkdir(parents=True)
    (home / "patchq/templates/answers.jinja").symlink_to(model / "chat_template.jinja")


def pin(root: Path, model: Path) -> None:
    """What its template renders, in the project."""
    template = (model / "chat_template.jinja").read_text(encoding="utf-8")
    found = goldens.render(ChatTemplate(template))
    digest = hashlib.sha256(template.encode()).hexdigest()
    path = root / goldens.path_of("answers")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(goldens.dump("answers", digest, found))
