"""What people read of a night: pull request, issue, alarm; as Markdown for GitHub.

Titles, logs and names come from strangers. Nothing of them is markup, a mention or a link; what
machines say is cleaned of tokens, addresses and accounts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from patchq.carry.report import PatchReport, SyncReport
from patchq.nightly.model import Culprit, Fault, Night
from patchq.nightly.people import ISSUE_TITLE, PULL_TITLE, Overdue, Tale, Text, Words
from patchq.release.redact import Cleaner
from patchq.render import markdown, words
from patchq.render.markdown import code
from patchq.render.night_parts import SHORT, cut, fence, joined, name, short, stages, text, why

ROWS = 12
"""Patches on the first screen, and nights in the issue's list."""
_LINK = re.compile(r"https://github\.com/([A-Za-z0-9-]+/[A-Za-z0-9._-]+/[A-Za-z0-9._/-]+)")


def pull(tale: Tale, most: int) -> Text:
    """Title and text of the pull request; the text within `most` characters."""
    title = f"{PULL_TITLE}{name(tale.night.queue)} {name(_onto(tale))}{_counted(tale.sync)}"
    parts = [
        [_moved(tale)],
        [_verdict(tale.night)],
        list(_kept_off(tale)),
        list(_patches(tale.sync)),
    ]
    end = [list(stages(tale.night)), list(_try(tale))]
    for details in _details(tale.sync):
        body = joined([*parts, details, *end])
        if len(body) <= most:
            return Text(title, body)
    return Text(title, cut(joined([*parts, *end]), most))


def issue(tale: Tale, most: int) -> Text:
    """Title and text of the issue; the title stays while the same fault stands."""
    night = tale.night
    fault = night.fault or Fault("", f"the night is {night.state}", (), ())
    verb = "needs a decision" if night.state == "asks" else "fails"
    title = f"{ISSUE_TITLE}{name(fault.stage or 'night')} {verb} since {name(tale.since)}"
    body = joined(
        [
            [f"**{text(fault.stage or night.state)}** {verb}: {text(fault.cause)}"],
            list(_culprits(fault.culprits)),
            list(_lines(fault)),
            list(_again(fault)),
            list(stages(night)),
            list(_nights(tale)),
            [f"Its series is in #{tale.pull}."] if tale.pull and night.commit else [],
        ]
    )
    return Text(title, cut(body, most))


def repaired(tale: Tale) -> str:
    """The comment with which the issue is closed."""
    night = tale.night
    if night.state == "quiet":
        return (
            f"Repaired: in night {code(night.name)} the runner of the last green night stands"
            " again, and nothing has changed since."
        )
    onto = f" on {text(night.base[1])}" if night.base else ""
    return f"Repaired: night {code(night.name)} is green{onto}."


def obsolete(tale: Tale) -> str:
    """The comment with which a pull request is closed that proposes nothing any more."""
    return (
        f"Over: night {code(tale.night.name)} stands on {code(tale.into)} as it is, and has nothing"
        " else to propose."
    )


def overdue(found: Overdue, most: int) -> Text:
    """Title and text of the alarm; they stay the same while nothing new is known."""
    last = found.last
    if last:
        when = last.ended or last.began
        since = f"since {name(when[:10])}"
        told = (
            f"The last night that came to an end is {code(last.name)}: {last.state}, {text(when)}."
        )
    else:
        since, told = "yet", "No night has come to an end yet."
    rows = [f"- {code(each.name)}: {why(each)}" for each in found.unfinished[-ROWS:]]
    body = joined(
        [
            [f"{told} The limit is {found.limit:g} hours."],
            ["Nights after it that came to no end:", "", *rows] if rows else [],
            ["On the machine that runs them, look at the timer and at what the last run said:"],
            fence(
                [
                    "systemctl --user list-timers patchq-nightly.timer",
                    "journalctl --user -u patchq-nightly.service -n 50",
                    "patchq nightly",
                ],
                "sh",
            ),
            ["This closes by itself when a night comes to an end again."],
        ]
    )
    title = f"{ISSUE_TITLE}no night of {name(found.queue)} has come to an end {since}"
    return Text(title, cut(body, most))


def young(night: Night) -> str:
    """The comment with which the alarm is closed."""
    return f"Night {code(night.name)} has come to an end: {night.state}."


# The pull request


def _onto(tale: Tale) -> str:
    base = tale.night.base
    return base[1] if base else (tale.sync.base_to if tale.sync else "")


def _counted(report: SyncReport | None) -> str:
    """How many patches moved, for a title."""
    if report is None:
        return ""
    gone = sum(each.action == "drop" for each in report.patches)
    held = sum(each.action == "hold" for each in report.patches)
    anew = sum(_refreshed(each) for each in report.patches)
    told = [f"{count} {what}" for count, what in ((gone, "dropped"), (anew, "refreshed")) if count]
    if not told:
        told = [f"{len(report.patches) - held} kept"]
    return f": {', '.join(told)}"


def _refreshed(patch: PatchReport) -> bool:
    return patch.action in ("shrink", "update") or (patch.action == "keep" and patch.rewritten)


def _moved(tale: Tale) -> str:
    night, report = tale.night, tale.sync
    was, now = night.base or ("", "")
    onto = _onto(tale)
    where = f"from {text(was)} to {text(now)}" if was != now else f"on {text(onto)}"
    counts = f": {words.counts(report)}" if report else ""
    tree = f"; runner tree {code(night.tree[:12])}" if night.tree else ""
    lock = f", runner lock {code(night.lock[:12])}" if night.lock else ""
    return f"{text(night.queue)} {where}{counts}{tree}{lock}. Night {code(night.name)}."


def _verdict(night: Night) -> str:
    if night.fault is not None:
        stage, cause = text(night.fault.stage), text(night.fault.cause.rstrip("."))
        return f"**Not yet: {stage} fails.** {cause}. Merged as it is, it brings this along."
    done = [each.name for each in night.stages if each.state == "done"]
    return f"**Good: {', '.join(map(text, done))} passed.**"


def _kept_off(tale: Tale) -> Iterator[str]:
    if tale.kept_off:
        yield (
            f"**The branch {code(tale.branch)} has commits that patchq did not make"
            f" ({code(tale.kept_off[:12])}).** They are left as they are, and nothing was pushed:"
            " what is told here is of tonight's series, which the branch does not have. Merge or"
            " delete the branch, and the next night brings its own."
        )


def _patches(report: SyncReport | None) -> Iterator[str]:
    """A line for each patch that moved; the others are counted."""
    if report is None:
        return
    moved = [
        each
        for each in report.patches
        if each.verdict != "needed" or each.action != "keep" or _refreshed(each)
    ]
    if moved:
        yield "| patch | verdict | what was done | why |"
        yield "|---|---|---|---|"
    for patch in moved[:ROWS]:
        reason = text(words.reason(patch), SHORT)
        did = "refreshed" if patch.action == "keep" else words.DID[patch.action]
        yield f"| {code(short(patch.name, SHORT))} | {patch.verdict} | {did} | {reason} |"
    left = len(report.patches) - len(moved[:ROWS])
    if left:
        yield ""
        same = "The other one is as it was." if left == 1 else f"The other {left} are as they were."
        yield f"{left} more below." if len(moved) > ROWS else same


def _details(report: SyncReport | None) -> Iterator[list[str]]:
    """Sync's own report, folded; then with less of it, for where it does not fit."""
    if report is None:
        yield []
        return
    # A git upstream may be a folder of the machine that the night ran on.
    source = re.sub(r"(?<![^\s,])/\S+", "a local repository", report.upstream.source)
    report = replace(report, upstream=replace(report.upstream, source=source))
    without = replace(
        report, patches=tuple(replace(each, range_diff="") for each in report.patches)
    )
    for told, note in (
        (report, ""),
        (without, "The differences of the patches are left out here: they are too long."),
    ):
        told_all = markdown.sync(told).strip().replace("# ", "## ", 1)
        yield [
            "<details><summary>All patches, as sync reports them</summary>",
            "",
            *([note, ""] if note else []),
            told_all,
            "",
            "</details>",
        ]
    yield ["*Sync's report is left out here: it is too long. `patchq sync --json` has it.*"]


def _try(tale: Tale) -> Iterator[str]:
    yield "### Try it"
    yield ""
    build = ["patchq", "build", *(["--target", tale.target] if tale.target else [])]
    lines = [
        f"git fetch origin {tale.branch} && git switch --detach FETCH_HEAD",
        "patchq lock --check",
        " ".join(build),
    ]
    if tale.cluster:
        lines += [
            f"patchq cluster deploy {tale.cluster}",
            f"patchq cluster start {tale.cluster} --profile {tale.profile}",
            f"patchq smoke --cluster {tale.cluster}",
        ]
    yield from fence(lines, "sh")


# The issue


def _culprits(culprits: Sequence[Culprit]) -> Iterator[str]:
    for each in culprits:
        sure = f" ({each.confidence:.0%} sure)" if each.confidence is not None else ""
        says = f": {text(each.says)}" if each.says else ""
        found = _LINK.fullmatch(each.url or "")
        # By this host GitHub writes no "mentioned" below the pull requests of others.
        link = f" ([{_where(found[1])}](https://redirect.github.com/{found[1]}))" if found else ""
        what = f"{_KINDS.get(each.kind, each.kind)} {code(short(each.name, SHORT))}"
        yield f"- {what}{sure}{says}{link}"


def _where(path: str) -> str:
    """What a link to GitHub leads to: OWNER/REPO#N, or the end of its path."""
    repo, pull, number = path.rpartition("/pull/")
    return text(f"{repo}#{number}" if pull else path, SHORT)


_KINDS = {"base": "upstream's release", "commit": "upstream's commit"}


def _lines(fault: Fault) -> list[str]:
    cleaner = Cleaner({})
    return fence([cleaner.clean(each) for each in fault.lines], "text") if fault.lines else []


def _again(fault: Fault) -> list[str]:
    return ["To see it again:", "", *fence(fault.reproduce, "sh")] if fault.reproduce else []


def _nights(tale: Tale) -> Iterator[str]:
    """The nights since it stands, the newest first."""
    bad = [tale.night]
    for each in reversed(tale.earlier):
        if each.began[:10] < tale.since or each.state in ("green", "quiet"):
            break
        bad.append(each)
    if len(bad) > 1:
        yield f"### {len(bad)} nights since {text(tale.since)}"
        yield ""
        yield from (f"- {code(each.name)}: {why(each)}" for each in bad[:ROWS])
        if len(bad) > ROWS:
            yield f"- and {len(bad) - ROWS} more"


WORDS = Words(pull, issue, repaired, obsolete, overdue, young)
