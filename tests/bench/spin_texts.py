"""Texts that do not spin, in two halves that share no source.

Real texts are what the machine has (Python's library, licences, manuals, documentation) and a
source archive of vLLM. What is written here is made by other functions in each half.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import sysconfig
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

LENGTH = 12_000
"""Characters of an output, at most."""
_SHARE = Path("/usr/share")
_LIBRARY = Path(sysconfig.get_path("stdlib"))


def files(pick: random.Random, folder: Path, pattern: str, characters: int) -> Iterator[str]:
    """Texts of files drawn from a folder, each cut into outputs."""
    paths = sorted(path for path in folder.rglob(pattern) if path.is_file())
    paths = [path for path in paths if "site-packages" not in path.parts]
    pick.shuffle(paths)
    for path in paths:
        try:
            data = path.read_bytes()
            text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
        except (OSError, EOFError, UnicodeDecodeError):
            continue
        for start in range(0, len(text), LENGTH):
            if characters <= 0:
                return
            yield text[start : start + LENGTH]
            characters -= len(text[start : start + LENGTH])


def archive(pick: random.Random, path: Path, suffix: str, characters: int) -> Iterator[str]:
    """Files of a source archive, as `files`."""
    with tarfile.open(path) as tar:
        texts = [
            file.read().decode("utf-8", "replace")
            for member in tar
            if member.name.endswith(suffix) and (file := tar.extractfile(member))
        ]
    pick.shuffle(texts)
    for text in texts:
        for start in range(0, len(text), LENGTH):
            if characters <= 0:
                return
            yield text[start : start + LENGTH]
            characters -= len(text[start : start + LENGTH])


def real(half: int, size: int, vllm: Path | None) -> dict[str, Iterator[str]]:
    """By source, some `size` characters of each. Half 0 is tuned on, half 1 is held out."""
    pick = random.Random(half)
    if half == 0:
        places = {
            "Python's library": (_LIBRARY, "*.py"),
            "licences": (_SHARE / "common-licenses", "*"),
            "manuals": (_SHARE / "man/man1", "*.gz"),
            "manuals, ja": (_SHARE / "man/ja", "*.gz"),
            "Perl's library": (_SHARE / "perl", "*.p[lmo]*"),
            "CMake's help": (_SHARE, "cmake*/Help/**/*.rst"),
        }
        return {name: files(pick, *place, size) for name, place in places.items()}
    places = {
        f"manuals, {language}": (_SHARE / "man" / language, "*.gz")
        for language in ("de", "es", "fr", "ko", "pl", "ru", "tr", "zh_CN", "zh_TW")
    }
    places["documentation, HTML"] = (_SHARE / "doc", "*.html")
    places["documentation, Markdown"] = (_SHARE / "doc", "*.md")
    places["changelogs"] = (_SHARE / "doc", "changelog*.gz")
    found = {name: files(pick, *place, size) for name, place in places.items()}
    if vllm is not None:
        for suffix in (".py", ".md", ".json", ".cu", ".cpp", ".rs", ".csv", ".html", ".yaml"):
            found[f"vLLM, *{suffix}"] = archive(pick, vllm, suffix, size)
    return found


# Written ones. Each takes words and a generator of chances.
Words = list[str]


def _table(words: Words, pick: random.Random) -> str:
    rows = [f"| {pick.choice(words)} | {pick.randrange(9999)} | yes |" for _ in range(150)]
    return "| name | count | there |\n|---|---|---|\n" + "\n".join(rows)


def _numbered(words: Words, pick: random.Random) -> str:
    return "\n".join(f"{n}. {' '.join(pick.sample(words, 6))}." for n in range(1, 200))


def _records(words: Words, pick: random.Random) -> str:
    rows = [
        {"id": n, "name": pick.choice(words), "kind": pick.choice(words[:9]), "ok": True}
        for n in range(120)
    ]
    return json.dumps(rows, indent=pick.choice([None, 2]))


def _refrain(words: Words, pick: random.Random) -> str:
    refrain = "\n".join(" ".join(pick.sample(words, 6)) for _ in range(2))
    verses = ["\n".join(" ".join(pick.sample(words, 7)) for _ in range(4)) for _ in range(9)]
    return "\n\n".join(f"{verse}\n\n{refrain}" for verse in verses)


def _count(words: Words, pick: random.Random) -> str:
    return pick.choice(["\n", ", ", " "]).join(str(n) for n in range(1, 201))


def _rows(words: Words, pick: random.Random) -> str:
    rows = [
        f"{pick.choice(words)},{pick.random():.3f},{pick.randrange(9)},0,0," for _ in range(300)
    ]
    return "name,share,rank,a,b,\n" + "\n".join(rows)


def _separated(words: Words, pick: random.Random) -> str:
    sign = pick.choice("-=*#_~")
    return f"\n{sign * pick.randrange(20, 160)}\n".join(
        " ".join(pick.choices(words, k=30)) for _ in range(40)
    )


def _drawn(words: Words, pick: random.Random) -> str:
    wide = pick.randrange(20, 70)
    lines = [" " * n + "/" + "_" * (wide - n) + "\\" + "#" * n for n in range(wide)]
    box = "+" + "-" * wide + "+"
    return "\n".join([*lines, box, *(f"|{word:^{wide}}|" for word in words[:20]), box])


def _encoded(words: Words, pick: random.Random) -> str:
    data = pick.randbytes(3000) + bytes(pick.randrange(60)) + pick.randbytes(500)
    return base64.encodebytes(data).decode()


def _html(words: Words, pick: random.Random) -> str:
    rows = [
        f'<tr class="row"><td>{pick.choice(words)}</td><td>{pick.choice(words)}</td></tr>'
        for _ in range(120)
    ]
    return "<table>\n" + "\n".join(rows) + "\n</table>"


def _song(words: Words, pick: random.Random) -> str:
    names = pick.sample(words, 12)
    verse = "On the {} day of winter my true love gave to me:\n"
    return "\n\n".join(
        verse.format(names[n]) + "\n".join(f"a {word} tree," for word in reversed(names[: n + 1]))
        for n in range(12)
    )


def _rhyme(words: Words, pick: random.Random) -> str:
    line = "This is the {} that lay in the house that the {} built.\n"
    told = [f"This is the {word} that {pick.choice(words)} the" for word in pick.sample(words, 12)]
    return "\n".join(line.format(*pick.sample(words, 2)) + "\n".join(told[:n]) for n in range(12))


def _cases(words: Words, pick: random.Random) -> str:
    case = (
        "def test_{0}() -> None:\n    assert read({0!r}) == {1}\n    assert write({1}) == {0!r}\n"
    )
    return "\n\n".join(case.format(pick.choice(words), pick.randrange(999)) for _ in range(80))


def _squares(words: Words, pick: random.Random) -> str:
    return "\n".join(f"{n} times {n} is {n * n}." for n in range(1, 80))


WRITTEN: tuple[dict[str, Callable[[Words, random.Random], str]], ...] = (
    {
        "tables": _table,
        "numbered lists": _numbered,
        "refrains": _refrain,
        "CSV": _rows,
        "counting": _count,
        "HTML rows": _html,
        "cumulative songs": _song,
    },
    {
        "JSON records": _records,
        "separators": _separated,
        "drawings": _drawn,
        "base64": _encoded,
        "squares": _squares,
        "rhymes": _rhyme,
        "test cases": _cases,
    },
)
