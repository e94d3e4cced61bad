"""The notes of a release, `releases/N.md`: one screen for its users, then every detail.

All of it comes from the manifest, so the same release has the same notes. Titles and reasons come
from strangers: nothing in them is markup.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from patchq.release import history
from patchq.release.manifest import Figure, Manifest, PatchIs
from patchq.release.sign import NAMESPACE
from patchq.render.markdown import code, plain

_STATES = ("new", "refreshed", "carried")
_WORDS = {"decode": "tok/s", "wall": "wall s", "ttft": "first token s"}
_FEW = 8
"""Changes, and rows of figures, on the first screen."""


def notes(release: Manifest, previous: Manifest | None) -> str:
    """Markdown, ending in a newline."""
    parts = [
        [f"# Release {release.number}"],
        [_summary(release)],
        list(_changes(release, previous)),
        list(_speed(release, previous)),
        list(_use(release)),
        ["## Details"],
        list(_patches(release)),
        list(_dropped(release)),
        list(_dependencies(release, previous)),
        list(_figures(release, previous)),
        list(_limits(release)),
        list(_tests(release)),
        list(_identity(release)),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _summary(release: Manifest) -> str:
    where = ", ".join(each.name for each in release.targets if each.wheels)
    nodes = Counter(_node(each.gpu or each.machine, each.driver) for each in release.tested)
    tested = ", ".join(f"{count} x {plain(name)}" for name, count in sorted(nodes.items()))
    return (
        f"{plain(release.queue)} {plain(release.base.release)} with {len(release.patches)} patches,"
        f" for {plain(where)}; {release.date[:10]}. Tested on {tested or 'nothing'}."
    )


def _node(name: str, driver: str | None) -> str:
    return f"{name}, driver {driver}" if driver else name


def _changes(release: Manifest, previous: Manifest | None) -> Iterator[str]:
    if release.why:
        yield f"The number before is left out: {plain(release.why)}"
        yield ""
    if previous is None:
        yield "The first release."
        return
    states = Counter(each.state for each in release.patches)
    told = [f"{states[state]} {state}" for state in _STATES if states[state]]
    told += [f"{len(release.dropped)} dropped"] if release.dropped else []
    yield f"Since release {previous.number}: {', '.join(told)}{_base(release, previous)}."
    fresh = [each for each in release.patches if each.state != "carried"]
    lines = [f"- {each.state}: {code(each.name)}, {plain(each.title)}" for each in fresh]
    lines += [f"- dropped: {code(each.name)}, {plain(each.why)}" for each in release.dropped]
    if lines:
        yield ""
    yield from lines[:_FEW]
    if len(lines) > _FEW:
        yield f"- and {len(lines) - _FEW} more, below"


def _base(release: Manifest, previous: Manifest) -> str:
    was, now = previous.base.release, release.base.release
    return "" if was == now else f"; now on {plain(now)}, before on {plain(was)}"


def _speed(release: Manifest, previous: Manifest | None) -> Iterator[str]:
    """What people ask for first: the rate of one conversation by context."""
    pairs = [
        (was, now)
        for was, now in history.beside(previous.bench if previous else (), release.bench)
        if now is not None and now.concurrency == 1
    ]
    if pairs:
        yield from _table(pairs[:_FEW], ("decode", "wall"), previous, release)


def _use(release: Manifest) -> Iterator[str]:
    number = release.number
    upgrade = f"patchq install {number} --from DIR"
    for command, what in (
        ("sh install.sh", "install; it verifies all of it first"),
        (upgrade, "upgrade; DIR: the folder of the files"),
        ("patchq rollback", "back to the release before, in seconds"),
    ):
        yield f"    {command:<{len(upgrade)}}   # {what}"
    if release.limits:
        yield ""
        yield "Known limits: " + " ".join(plain(each) for each in release.limits[:3])


def _patches(release: Manifest) -> Iterator[str]:
    yield "### Patches"
    yield ""
    yield "| # | patch | since the last | what it does | pull requests |"
    yield "|--:|---|---|---|---|"
    for each in release.patches:
        cells = [f"{each.number:04d}", code(each.name), each.state, plain(each.title), _pulls(each)]
        yield "| " + " | ".join(cells) + " |"


def _pulls(patch: PatchIs) -> str:
    return ", ".join(map(_pull, patch.prs))


def _pull(value: str) -> str:
    """OWNER/REPO#N, which the manifest's form has checked, as a link; the head that it is at."""
    name, _, head = value.partition(" @ ")
    repository, _, number = name.partition("#")
    link = f"[{plain(name)}](https://github.com/{repository}/pull/{number})"
    return f"{link} at {head[:12]}" if head else link


def _dropped(release: Manifest) -> Iterator[str]:
    if release.dropped:
        yield "### Dropped"
        yield ""
        for each in release.dropped:
            yield f"- {each.number:04d} {code(each.name)}: {_linked(each.why)}"


def _linked(why: str) -> str:
    """A reason, the pull requests in it as links."""
    found = re.split(r"([A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{1,100}#[1-9]\d{0,8})", why)
    return "".join(_pull(part) if n % 2 else plain(part) for n, part in enumerate(found))


def _dependencies(release: Manifest, previous: Manifest | None) -> Iterator[str]:
    found = history.dependencies(previous, release) if previous else ()
    if found:
        yield f"### What else changed since release {previous.number if previous else 0}"
        yield ""
        for each in found:
            yield f"- {code(each.key)}: {_short(each.was)} -> {_short(each.now)}"


def _short(value: str | None) -> str:
    if value is None:
        return "none"
    return code(value[:12] if re.fullmatch(r"[0-9a-f]{40,64}", value) else value)


def _figures(release: Manifest, previous: Manifest | None) -> Iterator[str]:
    pairs = history.beside(previous.bench if previous else (), release.bench)
    if pairs:
        yield "### Benchmarks"
        yield ""
        yield "Medians. A cell that was not measured is empty."
        yield ""
        yield from _table(pairs, ("decode", "ttft", "wall"), previous, release)


def _table(
    pairs: Sequence[tuple[Figure | None, Figure | None]],
    metrics: Sequence[str],
    previous: Manifest | None,
    release: Manifest,
) -> Iterator[str]:
    heads = ["context", "asked"]
    for metric in metrics:
        heads += [f"{_WORDS[metric]}, {previous.number}"] if previous else []
        heads += [f"{_WORDS[metric]}, {release.number}"]
        heads += ["change"] if previous else []
    yield "| " + " | ".join(heads) + " |"
    yield "|--:|---|" + "--:|" * (len(heads) - 2)
    for was, now in pairs:
        either = now or was
        assert either is not None
        cells = [f"{either.context}", _asked(either)]
        for metric in metrics:
            old, new = (getattr(each, metric) if each else None for each in (was, now))
            cells += [_figure(old), _figure(new), _change(old, new)] if previous else [_figure(new)]
        yield "| " + " | ".join(cells) + " |"


def _asked(figure: Figure) -> str:
    many = f", {figure.concurrency} at once" if figure.concurrency > 1 else ""
    return f"{plain(figure.kind)}{many}{', cached' if figure.warm else ''}"


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _change(old: float | None, new: float | None) -> str:
    return f"{new / old - 1:+.1%}" if old and new is not None else ""


def _limits(release: Manifest) -> Iterator[str]:
    if release.limits:
        yield "### Known limits"
        yield ""
        yield from (f"- {plain(each)}" for each in release.limits)


def _tests(release: Manifest) -> Iterator[str]:
    yield "### What it passed"
    yield ""
    for rule in release.gate.findings:
        yield f"- {plain(rule.rule)}: {plain(rule.says)}"


def _identity(release: Manifest) -> Iterator[str]:
    yield "### What it is"
    yield ""
    yield f"- runner lock {code(release.lock)}"
    base = release.base
    yield f"- runner tree {code(release.tree)}, on {plain(base.release)}, {code(base.tree)}"
    for each in release.models:
        yield f"- {each.kind} {code(each.name)}: {code(each.repository)} at {code(each.revision)}"
    yield f"- profile {code(release.profile)}, patchq {plain(release.patchq)}"
    yield ""
    yield "By hand it is verified with OpenSSH and the keys of `releases/allowed_signers`:"
    yield ""
    yield f"    ssh-keygen -Y verify -f allowed_signers -I NAME -n {NAMESPACE} \\"
    yield "        -s SHA256SUMS.sig < SHA256SUMS"
    yield "    sha256sum -c --strict SHA256SUMS"
