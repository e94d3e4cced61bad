"""Small realistic edits of Python text that leave it compiling: seeded, nothing of git here."""

from __future__ import annotations

import ast
import io
import random
import tokenize
import warnings


def compiles(text: bytes) -> bool:
    """Whether Python takes `text` as a module."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<bench>", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def edit(text: bytes, rng: random.Random, tag: str) -> bytes | None:
    """`text` with one to three hunks whose new lines carry `tag`; None where nothing fits.

    A hunk puts in a few lines, replaces a line, deletes a comment line or adds a function.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
        comments = _comment_lines(text)
    except (SyntaxError, ValueError, tokenize.TokenError):
        return None
    if b"\r" in text or b"\f" in text:
        return None
    lines = text.splitlines(keepends=True)
    places = _statements(module, lines)
    if len(places) < 4 or not lines[-1].endswith(b"\n"):
        return None
    hunks = sorted(
        rng.sample(places, min(rng.randint(1, 3), len(places))), key=lambda at: -at.lineno
    )
    for number, place in enumerate(hunks):
        _one(lines, place, rng, f"{tag}_{number}", comments)
    return b"".join(lines)


def _one(
    lines: list[bytes], place: ast.stmt, rng: random.Random, tag: str, comments: set[int]
) -> None:
    at = place.lineno - 1
    indent = " " * place.col_offset
    kind = rng.choices(("insert", "replace", "delete", "function"), (5, 4, 2, 1))[0]
    if kind == "function":
        text = (
            f"\n\ndef _bench_{tag}(values: list[int]) -> int:\n"
            f'    """Sum what lies above the {tag} threshold."""\n'
            "    total = 0\n"
            "    for value in values:\n"
            f"        if value > {rng.randint(1, 99)}:\n"
            "            total += value\n"
            "    return total\n"
        )
        lines.append(text.encode())
        return
    if kind == "replace" and isinstance(place, ast.Assign):
        old = lines[at].decode()
        name, _, value = old.rstrip("\n").partition(" = ")
        if value and "#" not in value:
            lines[at] = f"{name} = ({value})  # {tag}\n".encode()
            return
    near = [line for line in comments if at - 40 < line < at]
    if kind == "delete" and near:
        del lines[rng.choice(near)]
        # The place moved up by one; a deletion alone could stand upstream already.
        at -= 1
    new = [f"{indent}# {tag}: carried by the benchmark\n"]
    new += [
        f'{indent}_bench_{tag}_{step} = len("{tag}") + {rng.randint(1, 999)}\n'
        for step in range(rng.randint(0, 3))
    ]
    if rng.random() < 0.3:
        new += [f"{indent}if _bench_flag_{tag}():\n", f'{indent}    print("{tag}")\n']
    lines[at:at] = [line.encode() for line in new]


def _statements(module: ast.Module, lines: list[bytes]) -> list[ast.stmt]:
    """Simple statements in function bodies that have their lines to themselves."""
    found = {}
    for function in ast.walk(module):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if (
                isinstance(node, ast.Assign | ast.Return | ast.AugAssign | ast.Raise)
                and node.lineno == node.end_lineno
                and lines[node.lineno - 1][: node.col_offset].strip() == b""
                and lines[node.lineno - 1].rstrip()[-1:] != b";"
                and lines[node.lineno - 1].isascii()
                and not lines[node.lineno - 2].rstrip().endswith(b"\\")
            ):
                found[node.lineno] = node
    return [found[line] for line in sorted(found)]


def _comment_lines(text: bytes) -> set[int]:
    """Indices of the lines that hold a comment and nothing else."""
    return {
        token.start[0] - 1
        for token in tokenize.tokenize(io.BytesIO(text).readline)
        if token.type == tokenize.COMMENT and token.line[: token.start[1]].strip() == ""
    }
