"""GitHub's descriptions come at their pinned sums, or one sentence says why they do not."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "ci" / "github-descriptions.py"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A copy of the script in a folder of its own, and `bin` for what it may find."""
    (tmp_path / "ci").mkdir()
    (tmp_path / "bin").mkdir()
    shutil.copy(SCRIPT, tmp_path / "ci")
    return tmp_path


def npm(place: Path, script: str) -> None:
    path = place / "bin/npm"
    path.write_text(f"#!{shutil.which('sh')}\n{script}\n")
    path.chmod(0o755)


def run(place: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, place / "ci" / SCRIPT.name],
        env={**os.environ, "PATH": str(place / "bin")},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "" and done.stderr.count("\n") <= 1
    return done.returncode, done.stderr.removeprefix("GitHub's descriptions: ")


def test_no_npm(place: Path) -> None:
    status, said = run(place)
    assert status == 1 and said.startswith("npm is missing, which brings GitHub's descriptions")


def test_a_registry_that_is_not_reached(place: Path) -> None:
    npm(place, "echo 'npm error code ENOTFOUND' >&2; echo more >&2; exit 1")
    status, said = run(place)
    assert status == 1
    assert said.startswith(
        "npm does not bring @octokit/openapi 23.0.2 (npm error code ENOTFOUND): "
    )


def test_another_archive(place: Path) -> None:
    npm(place, "echo other >octokit-openapi-23.0.2.tgz")
    status, said = run(place)
    assert status == 1 and "is not the one that is pinned in ci/github-descriptions.py" in said
    assert not (place / "build").exists()


def test_nothing_is_asked_for_what_is_there(place: Path) -> None:
    npm(place, f": >{place}/asked; exit 1")
    made = place / "build/github/made-by"
    made.parent.mkdir(parents=True)
    made.write_text(hashlib.sha256(SCRIPT.read_bytes()).hexdigest() + "\n")
    assert run(place) == (0, "") and not (place / "asked").exists()
    made.write_text("an older script\n")
    assert run(place)[0] == 1 and (place / "asked").exists()


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("github_descriptions", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_cut_keeps_what_it_refers_to(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def ref(kind: str, name: str) -> dict[str, str]:
        return {"$ref": f"#/components/{kind}/{name}"}

    ok = {"content": {"application/json": {"schema": ref("schemas", "a"), "examples": {"x": 1}}}}
    whole = {
        "openapi": "3.0.3",
        "info": {"title": "t", "version": "1"},
        "paths": {
            "/mine": {
                "parameters": [ref("parameters", "p")],
                "get": {"responses": {"200": ok}},
                "put": {"responses": {"200": {"schema": ref("schemas", "other")}}},
            },
            "/other": {"get": {}},
        },
        "components": {
            "schemas": {
                "a": {"properties": {"examples": ref("schemas", "b")}},
                "b": {"items": ref("schemas", "a")},
                "other": {},
            },
            "parameters": {"p": {"name": "p"}, "q": {}},
            "examples": {"e": {}},
        },
    }
    monkeypatch.setattr(script, "REST", (("get", "/mine"),))
    cut = json.loads(script.cut_rest(json.dumps(whole).encode()))
    assert cut["paths"].keys() == {"/mine"} and cut["paths"]["/mine"].keys() == {
        "get",
        "parameters",
    }
    assert cut["components"]["schemas"].keys() == {"a", "b"}
    assert cut["components"]["parameters"].keys() == {"p"}
    media = cut["paths"]["/mine"]["get"]["responses"]["200"]["content"]["application/json"]
    assert media.keys() == {"schema"}
    assert "examples" in cut["components"]["schemas"]["a"]["properties"], "a property, no example"


def test_a_schema_without_its_prose(script: ModuleType) -> None:
    text = (
        b'"""Says \\""" this."""\ntype A {\n  """\n  More.\n  """\n  b(c: String = "x"): Int\n}\n'
    )
    assert script.cut_graphql(text) == b'type A {\n  b(c: String = "x"): Int\n}\n'
