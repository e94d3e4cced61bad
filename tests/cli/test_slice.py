"""`patchq slice` as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import ready
from tests.support.exl3 import Layer, encode_checkpoint, moe_layers


def patchq(*words: str | Path) -> tuple[int, str, str]:
    given = ("slice", *map(str, words))
    done = ready.run(given, cwd=Path.cwd(), env=os.environ)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def flat(text: str) -> str:
    """Without the line breaks of the terminal."""
    return " ".join(text.split())


def as_json(*words: str | Path) -> tuple[int, dict[str, Any]]:
    code, out, err = patchq(*words, "--json")
    assert out, err
    return code, json.loads(out)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    encode_checkpoint(tmp_path / "src", moe_layers(experts=3, intermediate=512), shards=2)
    return tmp_path / "src"


def test_three_commands(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "dst"
    code, out, _ = patchq("plan", source, "--tp", "2")
    assert code == 0 and "column, 2 x 256" in out and "rank 1 reads" in out
    code, out, err = patchq("run", source, target, "--tp", "2", "--layout", "per-rank")
    assert code == 0, err
    assert f"patchq slice verify {target} --against {source}" in flat(out)
    code, out, err = patchq("verify", target, "--against", source)
    assert code == 0, err
    assert "bit for bit" in out and "rank 1  sha256:" in out


def test_json(source: Path, tmp_path: Path) -> None:
    code, plan = as_json("plan", source, "--tp", "2")
    assert (code, plan["schema"], plan["refused"]) == (0, "patchq.slice-plan/1", [])
    assert plan["checkpoint"]["experts"] == [3] and len(plan["bytes"]["ranks"]) == 2
    assert {group["split"] for group in plan["groups"]} == {"column", "row"}
    code, run = as_json("run", source, tmp_path / "dst", "--tp", "2")
    assert (code, run["schema"], run["layout"]) == (0, "patchq.slice-run/1", "shared")
    assert run["written"] == sum(each["size"] for each in run["files"])
    code, found = as_json("verify", tmp_path / "dst", "--against", source)
    assert (code, found["schema"], found["ok"]) == (0, "patchq.slice-verify/1", True)
    assert sorted(found["digests"]) == ["0", "1"]


def test_a_refused_plan(source: Path) -> None:
    code, out, _ = patchq("plan", source, "--tp", "3")
    assert code == 5
    assert "its 512 in_features give 170.667 for each of 3 ranks, no multiple of 128" in flat(out)
    assert "[and 2 like it]" in out and "--uneven" in out
    code, plan = as_json("plan", source, "--tp", "3")
    assert code == 5 and len(plan["refused"]) == 9
    assert patchq("plan", source, "--tp", "3", "--uneven")[0] == 0


def test_errors_in_one_sentence(source: Path, tmp_path: Path) -> None:
    code, out, err = patchq("run", source, source / "dst", "--tp", "2")
    assert (code, out) == (2, "") and "lies inside" in err
    code, out, err = patchq("run", source, tmp_path / "dst", "--tp", "2", "--layout", "mixed")
    assert (code, out) == (2, "") and "'mixed' is no layout" in err
    code, found = as_json("run", source, source, "--tp", "2")
    assert (code, found["schema"]) == (2, "patchq.error/1")
    code, out, err = patchq("plan", tmp_path / "none", "--tp", "2")
    assert (code, out) == (1, "") and "is no folder" in err
    code, _, err = patchq("verify", source)
    assert code == 1 and err


def test_verify_says_what_is_wrong(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "dst"
    patchq("run", source, target, "--tp", "2")
    path = next(target.glob("*.safetensors"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    code, out, _ = patchq("verify", target, "--against", source)
    assert code == 5 and "FAILED" in out and "is not sound" in out


def test_a_users_family(tmp_path: Path) -> None:
    encode_checkpoint(tmp_path / "src", [Layer("model.layers.0.mixer.frobnicate", 256, 256)])
    code, out, _ = patchq("plan", tmp_path / "src", "--tp", "2")
    assert code == 5 and "no family says how" in out and '["frobnicate"]' in out
    table = tmp_path / "mine.toml"
    table.write_text('[[rule]]\nmodules = ["frobnicate"]\nsplit = "column"\nwhy = "[b]mine[/b]"\n')
    code, out, _ = patchq("plan", tmp_path / "src", "--tp", "2", "--families", table)
    assert code == 0 and "[b]mine[/b]" in out


def test_help_names_the_commands() -> None:
    code, out, _ = patchq("--help")
    assert code == 0
    assert all(name in out for name in ("plan", "run", "verify"))


def test_plan_and_run_do_without_numpy(source: Path, tmp_path: Path) -> None:
    probe = """
import sys
sys.modules["numpy"] = None
sys.argv = ["patchq", "slice", *sys.argv[1:]]
from patchq.cli.main import main
sys.exit(main())
"""
    for words in (["plan", source], ["run", source, tmp_path / "dst"]):
        done = subprocess.run([sys.executable, "-c", probe, *words, "--tp", "2"], timeout=60)
        assert done.returncode == 0
