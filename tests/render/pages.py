"""Pages of `patchq report`: of any size, with the words that strangers may have written in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from patchq.judge.model import VerdictWord
from patchq.nightly.model import Culprit, Fault, Night, NightState, Stage, Told
from patchq.nightly.page import Downloads, Page, PatchRow, ReleaseRow
from patchq.nightly.page_known import Said, Verdict
from patchq.nightly.page_pulls import Change, PullRow
from patchq.release.manifest import Figure
from patchq.upstream.drift import Drift, Newer

NOW = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
HOSTILE = (
    "<script>window.ran = 1</script>",
    '"><img src=x onerror="window.ran = 1">',
    "'; </style></script><svg onload=window.ran=1>",
    "\u202ereversed\u2066 and \u200fmarked\x1b[31m",
    "{{ 7 * 7 }} {% raw %} &lt;b&gt; &amp; ]]> -->",
    "x" * 10_000,
    "a\nb\tc\x00d",
)
TITLES = (
    "[exl3] Load rank-sliced routed experts on two nodes",
    "[Core] End reasoning that loops instead of the request, and count it",
    "[GLM] Take the beginning of the output from the prompt when thinking is off",
    "[Spec] Warn about low acceptance and missing drafts",
    "[Mamba] Aligned lookahead blocks for the convolution's state",
)
WORDS: tuple[VerdictWord, ...] = ("needed", "needed", "needed", "landed", "uncertain", "updated")


def title(at: int, hostile: bool) -> str:
    return HOSTILE[at % len(HOSTILE)] if hostile else TITLES[at % len(TITLES)]


def patch(at: int, *, hostile: bool = False, judged: bool = True) -> PatchRow:
    said = title(at, hostile)
    word = WORDS[at % len(WORDS)]
    verdict = Verdict(
        word,
        "ask" if word == "uncertain" else "keep",
        "conflict" if word == "uncertain" else "moved",
        "0.33.0",
        "2026-12-01",
        (
            Said("merge", f"applies at other lines; {said}"),
            Said("lines", "37 of 41 added lines are not in upstream's tree", "0123456789"),
            Said("pull request", "it is open, and its head is the pinned one", f"acme/vllm#{at}"),
        ),
        2 if word == "uncertain" else 0,
    )
    return PatchRow(
        number=at + 1,
        name=f"patch-{at + 1}",
        subject=said,
        origin=f"upstream, https://github.com/acme/vllm/pull/{at + 1}" if at % 2 else "vendor",
        status="Pending" if not hostile else said,
        topic=("exl3", "reasoning", "glm", "")[at % 4],
        age=None if at % 17 == 16 else (at * 37) % 400,
        pulls=((f"acme/vllm#{at + 1}", "carries"),) if at % 2 else (),
        waits=(f"landed acme/vllm#{at + 1}", said) if at % 2 else (said,),
        held=said if at % 23 == 22 else None,
        verdict=verdict if judged else None,
    )


def pull(at: int, *, hostile: bool = False) -> PullRow:
    said = title(at, hostile)
    state = ("open", "open", "merged", "closed", "unseen")[at % 5]
    changes = (
        (Change("state", "open", "merged"), Change("title", said, said)) if at % 5 == 2 else ()
    )
    return PullRow(
        key=f"acme/vllm#{at + 1}",
        page=f"https://github.com/acme/vllm/pull/{at + 1}",
        title=said,
        author="someone" if not hostile else said,
        state=state,
        draft=at % 4 == 1,
        updated=f"2026-11-{at % 28 + 1:02}T03:04:05Z",
        why=said if at % 2 else None,
        patches=((f"patch-{at + 1}", "carries"),) if at % 2 else (),
        head=("same", "moved", "", "held", "unknown")[at % 5],  # type: ignore[arg-type]
        decision=("hold", said) if at % 7 == 6 else None,
        replaced_by=(at + 2,) if at % 3 == 0 else (),
        changes=changes if at < 60 else (),
        new=at == 3,
    )


def figures(number: int) -> tuple[Figure, ...]:
    return tuple(
        Figure(
            "prose",
            context,
            concurrency,
            warm,
            decode=round(
                (18 + number * 0.3 - place * 2.5) * (1.6 if warm else 1) * concurrency**0.4, 2
            ),
            ttft=0.4 * (place + 1),
            wall=round((20 - number * 0.15 + place * 9) * (0.7 if warm else 1), 2),
        )
        for concurrency in (1, 4)
        for warm in (False, True)
        for place, context in enumerate((1024, 8192, 32768))
    )


def release(number: int, *, hostile: bool = False) -> ReleaseRow:
    day = datetime(2025, 12, 1, tzinfo=UTC) + timedelta(days=7 * number)
    return ReleaseRow(
        number=number,
        date=day.strftime("%Y-%m-%dT%H:%M:%SZ"),
        base=f"0.{number // 4 + 20}.0",
        patches=17 + number % 5,
        passed=number % 9 != 4,
        withdrawn=(title(0, hostile) if number % 11 == 10 else None),
        figures=figures(number),
        downloads=number * 13 % 90,
        page=f"https://github.com/acme/runner/releases/tag/release-{number}",
    )


def night(back: int, state: NightState = "green", *, hostile: bool = False) -> Night:
    """The night of `back` days ago."""
    day = (NOW - timedelta(days=back)).strftime("%Y-%m-%d")
    ok = state in ("green", "quiet")
    names = ("sync",) if state == "quiet" else ("sync", "build", "deploy", "smoke")
    stages = [
        Stage(name, "done", f"{day}T01:00:00Z", 40.0 * (at * at * 9 + 1), "it is done", 0)
        for at, name in enumerate(names)
    ]
    if state == "green":
        stages += [
            Stage("bench", "done", f"{day}T04:00:00Z", 5000.0, "8 cells", 0),
            Stage("gate", "done", f"{day}T05:30:00Z", 1.2, "all rules hold", 0),
        ]
    if not ok:
        bad = "asks" if state == "asks" else "unreached" if state == "incomplete" else "failed"
        stages[-1] = Stage("smoke", bad, f"{day}T02:00:00Z", 1300.0, "recall failed", 5)  # type: ignore[arg-type]
        stages += [
            Stage(name, "left out", f"{day}T02:30:00Z", 0.0, "smoke failed")
            for name in ("bench", "gate")
        ]
    said = title(back, hostile)
    culprit = Culprit(
        "patch",
        said if hostile else "reasoning-loop",
        said,
        "javascript:alert(1)" if hostile else "https://github.com/acme/vllm/pull/7",
        0.997,
    )
    fault = Fault(
        "smoke",
        said if hostile else "the probe recall spins: the last 640 tokens are one phrase, 40 times",
        tuple(title(at, hostile) for at in range(7)),
        (
            "git checkout 0123456789",
            "patchq smoke --cluster sparks --profile glm-5.3-flash --only recall",
        ),
        (culprit,),
    )
    return Night(
        name=day,
        queue="vllm",
        state=state,
        began=f"{day}T01:00:00+00:00",
        ended=f"{day}T06:00:00+00:00",
        start="a" * 40,
        commit=None if state == "quiet" else "b" * 40,
        base=("0.32.0", "0.33.0"),
        stages=tuple(stages),
        fault=None if ok else fault,
        told=Told(pull=12, issue=None if ok else 13),
    )


def page(
    patches: int = 100,
    pulls: int = 100,
    releases: int = 50,
    nights: int = 60,
    *,
    hostile: bool = False,
    last: NightState = "red",
) -> Page:
    """The page at NOW, whose last night ended `last`."""
    states: tuple[NightState, ...] = (
        last,
        "quiet",
        "green",
        "quiet",
        "asks",
        "incomplete",
        "green",
    )
    counts = {number: number * 13 % 90 for number in range(1, releases + 1)}
    return Page(
        queue="vllm",
        source="index vllm",
        now=NOW,
        base="0.32.0",
        tree="5853c5f6a9337db1fed0400864c50f8577063b39",
        patches=tuple(patch(at, hostile=hostile) for at in range(patches)),
        pulls=tuple(pull(at, hostile=hostile) for at in range(pulls)),
        moved_since="2026-12-01" if nights else None,
        unmoved="" if nights else "no night is known here: nothing to compare with",
        releases=tuple(release(number, hostile=hostile) for number in range(releases, 0, -1)),
        nights=tuple(night(back, states[back % 7], hostile=hostile) for back in range(nights)),
        stale_hours=36,
        drift=Drift(
            "0.32.0",
            "2026-10-28",
            (Newer("0.32.1", "2026-11-09"), Newer("0.33.0", "2026-11-26")),
            (("v0.33.0", 412), ("main", 530)),
            NOW,
        ),
        downloads=Downloads(counts, {}, "2026-12-01T09:30:00+00:00"),
        site="https://github.com/acme/runner",
        notes=("the sync's report of the night 2026-11-02 cannot be read",) if hostile else (),
    )


def empty() -> Page:
    """The page of a queue that has nothing yet, of which nothing is known."""
    return Page(
        "vllm", "index vllm", NOW, "0.32.0", "", (), (), None, "no night is known here: nothing to compare with",
        (), (), 36, Drift("0.32.0", missing=("the package index was not reached",)),
        Downloads({}, {}, missing="nobody is asked with --offline"),
    )  # fmt: skip
