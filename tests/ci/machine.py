"""Runs the jobs of a workflow as GitHub would, here: a fresh clone, each `run` by bash, in order.

What an action does is done by hand: a checkout is a clone, an artifact a folder. Expressions are
read as far as our workflows use them; one that is not known is an error, never an empty text.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
WORD = re.compile(r"'[^']*'|fromJSON(?=\()|&&|\|\||!=|==|!|[()]|[A-Za-z_][\w.-]*(?:\(\))?|\d+|\s+")
STAMP = """
{ .venv/bin/python -c "import sys; print(sys.version)" && pwd -P && cksum "$1" pyproject.toml; } \\
  >".venv/.made-from-$1"
"""
"""What ci/venv.sh writes when it is done."""
PROGRAM = """#!{python}
import sys
sys.path.insert(0, {root!r})
from patchq.cli.main import main
sys.exit(main())
"""
CALLS = ("workflow_call", "workflow_dispatch")
KNOWN = {"github", "inputs", "jobs", "matrix", "needs", "runner", "steps", "vars"}

Tree = dict[str, Any]


def load(path: Path) -> Tree:
    value = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    assert isinstance(value, dict)
    return value


def workflow(name: str) -> Tree:
    return load(ROOT / ".github/workflows" / f"{name}.yml")


@dataclass
class Context:
    """What expressions see; `failed` and `cancelled` are for the status functions."""

    values: Mapping[str, Any]
    failed: bool = False
    cancelled: bool = False

    def find(self, name: str) -> Any:
        here: Any = self.values
        first, *_ = name.split(".")
        assert first in KNOWN, f"an expression names {name}"
        for part in name.split("."):
            here = here.get(part, "") if isinstance(here, Mapping) else ""
        return here

    def value(self, text: str) -> Any:
        """Of one expression, without its braces."""
        words = WORD.findall(text)
        assert "".join(words) == text, f"not read: {text!r}"
        return eval(
            "".join(map(self._word, words)).strip(), {"__builtins__": {}, "fromJSON": json.loads}
        )

    def _word(self, word: str) -> str:
        plain = {"&&": " and ", "||": " or ", "!": " not ", "true": "True", "false": "False"}
        functions = {
            "always()": True,
            "cancelled()": self.cancelled,
            "failure()": self.failed,
            "success()": not self.failed and not self.cancelled,
        }
        if word in functions:
            return repr(functions[word])
        if word in plain:
            return plain[word]
        if word == "fromJSON":
            return word
        if word[0].isalpha():
            return repr(self.find(word))
        return word

    def fill(self, text: Any) -> str:
        def plain(value: Any) -> str:
            return str(value).lower() if isinstance(value, bool) else str(value)

        return EXPRESSION.sub(lambda found: plain(self.value(found[1].strip())), plain(text))

    def holds(self, condition: Any) -> bool:
        """An `if`; where it names no status function, success is asked for as well."""
        if condition is None:
            return not self.failed and not self.cancelled
        text = str(condition).strip()
        if found := EXPRESSION.fullmatch(text):
            text = found[1].strip()
        asks = re.search(r"\b(always|cancelled|failure|success)\(\)", text)
        return bool(self.value(text)) and (bool(asks) or self.holds(None))


@dataclass
class Step:
    """A step as it ended. `code` is None where it was left out."""

    name: str
    code: int | None
    said: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Job:
    """A job as it ended."""

    name: str
    steps: list[Step]
    outputs: dict[str, str]
    workspace: Path

    @property
    def good(self) -> bool:
        return all(step.code in (0, None) for step in self.steps)

    def step(self, name: str) -> Step:
        return next(step for step in self.steps if step.name == name)

    def __str__(self) -> str:
        return "\n".join(f"--- {each.name}: {each.code}\n{each.said}" for each in self.steps)


@dataclass
class Machine:
    """GitHub's part: the repository that is checked out, artifacts, variables, the token."""

    folder: Path
    origin: str
    token: str
    environment: Mapping[str, str]
    repository: str = "acme/runner"
    variables: dict[str, str] = field(default_factory=dict)
    artifacts: dict[str, dict[str, bytes]] = field(default_factory=dict)
    attested: list[str] = field(default_factory=list)
    after: dict[str, Callable[[Path], None]] = field(default_factory=dict)
    """Step name -> what happens after it, in the job's workspace and folders."""
    jobs: dict[str, Job] = field(default_factory=dict)

    def run(self, name: str, *, event: str = "schedule", **inputs: Any) -> dict[str, Job]:
        """All jobs of a workflow, in the order of the file; those left out are not in the answer.

        The rows of a matrix run at the same time, as NAME.0, NAME.1, ...; the jobs of a workflow
        that is called are CALLER/NAME.
        """
        self.jobs = {}
        self._workflow(name, event, inputs, "")
        return self.jobs

    def _workflow(
        self, name: str, event: str, inputs: Mapping[str, Any], caller: str
    ) -> dict[str, str]:
        """The outputs of a workflow."""
        file = workflow(name)
        declared = (file["on"].get(event) or {}).get("inputs") or {} if event in CALLS else {}
        assert event in file["on"] and inputs.keys() <= declared.keys()
        inputs = {key: each.get("default", "") for key, each in declared.items()} | dict(inputs)
        github = {
            "token": self.token,
            "event_name": event,
            "ref": "refs/heads/main",
            "run_id": "7",
            "repository": self.repository,
        }
        ended: dict[str, dict[str, Any]] = {}
        for key, job in file["jobs"].items():
            needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
            context = Context(
                {
                    "github": github,
                    "inputs": inputs,
                    "vars": self.variables,
                    "needs": {each: ended[each] for each in needs},
                },
                failed=any(ended[each]["result"] != "success" for each in needs),
            )
            outputs: dict[str, str] = {}
            result = "skipped"
            if context.holds(job.get("if")):
                place = f"{caller}{key}"
                if "uses" in job:
                    called = Path(job["uses"]).stem
                    given = {each: context.fill(text) for each, text in job["with"].items()}
                    outputs = self._workflow(called, "workflow_call", given, f"{place}/")
                    mine = [
                        each for name, each in self.jobs.items() if name.startswith(f"{place}/")
                    ]
                else:
                    mine = self._rows(place, job, context)
                    outputs = mine[-1].outputs
                result = "success" if all(each.good for each in mine) else "failure"
            ended[key] = {"outputs": outputs, "result": result}
        told = (file["on"].get("workflow_call") or {}).get("outputs") or {}
        context = Context({"jobs": ended})
        return {key: context.fill(each["value"]) for key, each in told.items()}

    def _rows(self, place: str, job: Tree, context: Context) -> list[Job]:
        matrix = (job.get("strategy") or {}).get("matrix")
        if not matrix:
            self.jobs[place] = self.job(place, job, context, {})
            return [self.jobs[place]]
        names = [f"{place}.{number}" for number, _ in enumerate(rows(context, matrix))]
        with ThreadPoolExecutor(len(names)) as pool:
            work = [
                pool.submit(self.job, name, job, context, row)
                for name, row in zip(names, rows(context, matrix), strict=True)
            ]
            self.jobs.update(zip(names, (each.result() for each in work), strict=True))
        return [self.jobs[name] for name in names]

    def job(self, key: str, job: Tree, context: Context, matrix: Mapping[str, Any]) -> Job:
        folder = self.folder / key.replace("/", ".")
        shutil.rmtree(folder, ignore_errors=True)
        workspace, temp = folder / "workspace", folder / "temp"
        workspace.mkdir(parents=True)
        temp.mkdir()
        inner = Context(
            {**context.values, "runner": {"temp": str(temp)}, "matrix": matrix, "steps": {}}
        )
        steps: list[Step] = []
        for entry in job["steps"]:
            name = entry["name"]
            if not inner.holds(entry.get("if")):
                steps.append(Step(name, None))
                continue
            environment = {
                key: inner.fill(value) for key, value in (entry.get("env") or {}).items()
            }
            given = {key: inner.fill(value) for key, value in (entry.get("with") or {}).items()}
            if "uses" in entry:
                code, said, outputs = self._uses(entry["uses"], given, workspace), "", {}
            else:
                code, said, outputs = self._shell(entry["run"], environment, workspace, temp)
            if "id" in entry:
                inner.values["steps"][entry["id"]] = {"outputs": outputs}
            inner.failed = inner.failed or code != 0
            steps.append(Step(name, code, said, environment))
            if name in self.after:
                self.after[name](folder)
        outputs = {key: inner.fill(value) for key, value in (job.get("outputs") or {}).items()}
        return Job(key, steps, outputs, workspace)

    def _shell(
        self, script: str, environment: Mapping[str, str], workspace: Path, temp: Path
    ) -> tuple[int, str, dict[str, str]]:
        told = temp.parent / "output"
        told.write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=workspace,
            env={
                **self.environment,
                "CI": "true",
                "GITHUB_ACTIONS": "true",
                "GITHUB_OUTPUT": str(told),
                "GITHUB_STEP_SUMMARY": str(temp.parent / "summary"),
                "GITHUB_REPOSITORY": self.repository,
                "GITHUB_WORKSPACE": str(workspace),
                "RUNNER_TEMP": str(temp),
                **environment,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        pairs = (line.split("=", 1) for line in told.read_text().splitlines())
        said = (done.stdout + done.stderr).decode(errors="replace")
        return done.returncode, said, dict(pairs)

    def _uses(self, uses: str, given: Mapping[str, str], workspace: Path) -> int:
        action = uses.partition("@")[0]
        match action:
            case "actions/checkout":
                self._checkout(given, workspace)
            case "actions/setup-python":
                assert re.fullmatch(r"3\.\d+", given["python-version"])
            case "actions/upload-artifact":
                place = Path(workspace, given["path"])
                every = [place] if place.is_file() else place.rglob("*")
                base = place.parent if place.is_file() else place
                found = {
                    str(path.relative_to(base)): path.read_bytes()
                    for path in every
                    if path.is_file() and not path.name.startswith(".")
                }
                if not found:
                    return int(given["if-no-files-found"] == "error")
                self.artifacts[given["name"]] = found
            case "actions/download-artifact":
                pattern = given.get("name") or given["pattern"]
                assert "name" in given or given["merge-multiple"] == "true"
                for artifact in fnmatch.filter(self.artifacts, pattern):
                    for name, data in self.artifacts[artifact].items():
                        path = Path(workspace, given["path"], name)
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_bytes(data)
            case "actions/attest":
                self._attest(Path(workspace, given["subject-checksums"]))
            case _:
                raise AssertionError(f"nobody knows what {action} does")
        return 0

    def _checkout(self, given: Mapping[str, str], workspace: Path) -> None:
        depth = [] if given.get("fetch-depth") == "0" else ["--depth=1"]
        subprocess.run(
            ["git", "clone", "-q", *depth, self.origin, "."],
            cwd=workspace,
            env=dict(self.environment),
            check=True,
        )
        furnish(workspace)

    def _attest(self, checksums: Path) -> None:
        for line in checksums.read_text().splitlines():
            digest, name = re.fullmatch(r"([0-9a-f]{64})  (\S+)", line).groups()  # type: ignore[union-attr]
            assert hashlib.sha256((checksums.parent / name).read_bytes()).hexdigest() == digest
            self.attested.append(name)


def rows(context: Context, matrix: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Of a matrix with one key, whose list stands there or is a job's output; `include` has rows."""
    ((key, values),) = matrix.items()
    if isinstance(values, str):
        found = EXPRESSION.fullmatch(values)
        assert found
        values = context.value(found[1].strip())
    return list(values) if key == "include" else [{key: value} for value in values]


def furnish(workspace: Path) -> None:
    """Gives a clone the environment that runs this test, so that ci/venv.sh finds it done.

    The patchq in it is the one that is tested.
    """
    if not (workspace / "ci/venv.sh").is_file():
        return
    venv = workspace / ".venv"
    (venv / "bin").mkdir(parents=True)
    real = Path(sys.prefix)
    shutil.copy(real / "pyvenv.cfg", venv)
    (venv / "lib").symlink_to(real / "lib")
    for path in (real / "bin").iterdir():
        if path.name != "patchq":
            (venv / "bin" / path.name).symlink_to(path)
    program = venv / "bin/patchq"
    program.write_text(PROGRAM.format(python=venv / "bin/python", root=str(ROOT)))
    program.chmod(0o755)
    for lock in ("requirements.lock", "requirements-test.lock"):
        command = ["sh", "-c", STAMP, "sh", lock]
        subprocess.run(command, cwd=workspace, check=True)
    with (workspace / ".git/info/exclude").open("a") as file:
        file.write("/.venv/\n")


def plain(home: Path, **more: str) -> dict[str, str]:
    """The environment of a service: no identity, no configuration of the user's."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
        "PIP_CONFIG_FILE": os.devnull,
        # No index but one that a test gives.
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PATCHQ_CACHE": str(home / "cache"),
        **more,
    }
