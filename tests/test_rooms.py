"""The rules between the rooms: who imports whom, who prints, who starts programs, who goes out."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "patchq"

# The whole house, from the door to the cellar. Rooms that are not built yet stand here too, so
# that each finds its place in the contract of pyproject.toml when it comes.
HOUSE = (
    {"cli"},
    {"render"},
    {"nightly"},
    {"release", "bisect"},
    {"doctor", "smoke"},
    {"work"},
    {"carry", "build"},
    {"judge"},
    {"upstream", "cluster"},
    {"queue", "gitstore", "forge", "exl3"},
    {"caches", "child", "config", "paths", "progress"},
    {"errors"},
)


def test_imports_go_down_only() -> None:
    """import-linter reads the contracts in pyproject.toml."""
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [lint, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_contract_is_the_house() -> None:
    """The layers that import-linter holds are the house's floors, less what is not built yet."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (
        each for each in settings["tool"]["importlinter"]["contracts"] if each["id"] == "rooms"
    )
    built = {
        path.stem
        for path in PACKAGE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    } - {"__init__", "__main__"}
    layers = [set(layer.split(" | ")) for layer in contract["layers"]]
    assert layers == [floor & built for floor in HOUSE if floor & built]
    assert set().union(*layers) == built


@dataclass(frozen=True)
class Use:
    """One thing that a module does: `import x.y`, `call x.y`, `name x.y`, `keyword shell`."""

    kind: str
    what: str
    line: int
    at_import: bool
    """It happens when the module is imported, not later inside a function."""


@cache
def used(path: Path) -> tuple[Use, ...]:
    return tuple(uses(path.read_text(encoding="utf-8")))


def uses(source: str) -> Iterator[Use]:
    """Everything that the rules below ask about, names resolved through the imports."""
    tree = ast.parse(source)
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                aliases[name.asname or name.name.split(".")[0]] = (
                    name.name if name.asname else name.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                aliases[name.asname or name.name] = f"{node.module}.{name.name}"
    yield from _walk(tree, aliases, at_import=True)


def _walk(node: ast.AST, aliases: dict[str, str], *, at_import: bool) -> Iterator[Use]:
    line = getattr(node, "lineno", 0)
    match node:
        case ast.Import(names=names):
            for name in names:
                yield Use("import", name.name, line, at_import)
        case ast.ImportFrom(module=str(module), names=names):
            for name in names:
                yield Use("import", f"{module}.{name.name}", line, at_import)
        case ast.Attribute() | ast.Name():
            name = _dotted(node, aliases)
            if name:
                yield Use("name", name, line, at_import)
        case ast.Call(keywords=keywords):
            for keyword in keywords:
                if keyword.arg == "shell":
                    yield Use("keyword", "shell", line, at_import)
        case (
            ast.List(elts=[ast.Constant(value="git" | b"git" | "ssh" | "rsync" as name), *_])
            | ast.Tuple(elts=[ast.Constant(value="git" | b"git" | "ssh" | "rsync" as name), *_])
        ):
            yield Use("command", name if isinstance(name, str) else name.decode(), line, at_import)
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        at_import = False
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        at_import = False
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, aliases, at_import=at_import)


def _dotted(node: ast.AST, aliases: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return aliases.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value, aliases)
        return f"{base}.{node.attr}" if base else None
    return None


def imports(*modules: str) -> Callable[[Use], bool]:
    return lambda use: (
        use.kind == "import" and any(f"{use.what}.".startswith(f"{each}.") for each in modules)
    )


def names(*prefixes: str) -> Callable[[Use], bool]:
    """A name, or one that begins so where the prefix ends in `*`."""

    def match(use: Use) -> bool:
        return use.kind == "name" and any(
            use.what.startswith(each[:-1]) if each.endswith("*") else use.what == each
            for each in prefixes
        )

    return match


def either(*finders: Callable[[Use], bool]) -> Callable[[Use], bool]:
    return lambda use: any(find(use) for find in finders)


@dataclass(frozen=True)
class Rule:
    says: str
    finds: Callable[[Use], bool]
    may: tuple[str, ...]
    """Modules (`room/module.py`) and whole rooms (`room/`) that may."""
    example: str
    """A line that the rule must find."""


HEAVY = ("requests", "git", "github", "pydantic", "jinja2", "griffe")

RULES = (
    Rule(
        "only cli and render print",
        either(
            names("print", "sys.stdout*", "sys.stderr*", "sys.__stdout__*", "sys.__stderr__*"),
            imports("rich", "typer", "click"),
        ),
        ("cli/", "render/"),
        "import sys as system\nsystem.stderr.write('x')",
    ),
    Rule(
        "only gitstore starts programs, but for what each of these rooms is for",
        imports("subprocess", "multiprocessing.popen_fork", "pty"),
        (
            "gitstore/",
            "upstream/pipconf.py",
            "upstream/resolver.py",
            "carry/checks.py",
            "carry/quilt.py",
            "cluster/process.py",
            "cluster/there/",
            "work/editor.py",
            "child.py",
            "nightly/step.py",
            "bisect/trial.py",
        ),
        "def late():\n    from subprocess import run",
    ),
    Rule(
        "only gitstore runs git",
        either(imports("git"), lambda use: use.kind == "command" and use.what == "git"),
        ("gitstore/",),
        "run(['git', 'status'])",
    ),
    Rule(
        "only cluster starts ssh and rsync",
        lambda use: use.kind == "command" and use.what in ("ssh", "rsync"),
        ("cluster/",),
        "run(['ssh', 'node', 'true'])",
    ),
    Rule(
        "nothing goes through a shell",
        either(
            lambda use: use.kind == "keyword",
            names(
                "os.system",
                "os.popen*",
                "os.exec*",
                "os.spawn*",
                "os.posix_spawn*",
                "subprocess.getoutput",
                "subprocess.getstatusoutput",
                "asyncio.create_subprocess_*",
            ),
        ),
        (),
        "from os import system as go\ngo('ls')",
    ),
    Rule(
        "only upstream and the forge's client go out",
        imports("requests", "urllib3", "urllib.request", "http.client", "ftplib"),
        ("upstream/", "forge/client.py", "smoke/client.py"),
        "from urllib import request",
    ),
    Rule("only forge talks to GitHub", imports("github"), ("forge/",), "import github.Repository"),
    Rule(
        "what starts slowly is imported where it is needed",
        lambda use: use.at_import and imports(*HEAVY)(use),
        (),
        "import requests",
    ),
    Rule(
        "rich and typer are imported where they are needed",
        lambda use: use.at_import and imports("rich", "typer")(use),
        ("cli/", "render/"),
        "class Late:\n    from rich.table import Table",
    ),
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.says)
def test_rule(rule: Rule) -> None:
    broken = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).as_posix()
        if not module.startswith(rule.may):
            broken += [
                f"patchq/{module}:{use.line}: {use.kind} {use.what}"
                for use in used(path)
                if rule.finds(use)
            ]
    assert not broken, f"{rule.says}:\n" + "\n".join(broken)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.says)
def test_rule_finds_what_it_is_for(rule: Rule) -> None:
    assert any(rule.finds(use) for use in uses(rule.example))


def test_rules_let_pass_what_is_meant_to() -> None:
    innocent = """
from __future__ import annotations
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import requests
    from rich.console import Console
def late():
    import requests
    words = ["digit", "git"]
"""
    late = [rule for rule in RULES if "needed" in rule.says]
    assert len(late) == 2
    assert not [use for use in uses(innocent) for rule in late if rule.finds(use)]
    assert not [use for use in uses(innocent) if use.kind == "command"]
