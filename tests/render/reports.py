"""Reports as values, plain ones and such as strangers would like us to show."""

from __future__ import annotations

from datetime import UTC, datetime

from patchq.carry.bring import ImportReport
from patchq.carry.clash import Clash
from patchq.carry.decide import DecideReport
from patchq.carry.export import ExportReport, MboxReport
from patchq.carry.inspect import CheckReport, Event, HistoryReport, StatusReport
from patchq.carry.merge import Blob
from patchq.carry.report import Check, PatchReport, Proof, SyncReport
from patchq.carry.start import InitReport
from patchq.judge.model import Cause, Conflict, Finding, Signal
from patchq.queue import series as serieses
from patchq.queue.series import Line, Series
from patchq.upstream.releases import AsOf, Release
from tests.support.kit import made

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SEEN = AsOf("index, demo", WHEN, complete=True, history=False)
PROOF = Proof((Check("git apply", True, "2 patches give 1234"), Check("check of b", False, "no")))
HOLDS = Proof((Check("git apply", True, "2 patches give 1234"),))

RANGE_DIFF = "## a.txt ##\n@@ -1,3 +1,3 @@\n @@\n--old\n-+ours\n++ours, again"
AROUND = "## a.txt ##\n@@ -1,3 +1,3 @@\n @@\n- before\n+ after"

KEPT = PatchReport(
    1,
    "kept",
    "[Fix] Keep it",
    "0001-kept.patch",
    "needed",
    "clean",
    "keep",
    (Signal("merge", "needed", "merges cleanly"),),
    range_diff=AROUND,
    rewritten=True,
)
DROPPED = PatchReport(
    2,
    "dropped",
    "Drop it",
    None,
    "landed",
    "empty",
    "drop",
    (Signal("merge", "landed", "it is there"), Signal("lines", "landed", "4 of 4", "abc123")),
)
SHRUNK = PatchReport(
    3,
    "shrunk",
    "Shrink it",
    "0003-shrunk.patch",
    "partly-landed",
    "residual",
    "shrink",
    (Signal("patch-id", "partly", "1 of 2"),),
    findings=(Finding("double", b"a.py", "f stands twice"),),
    range_diff=RANGE_DIFF,
    rewritten=True,
)
TORN = PatchReport(
    4,
    "torn",
    "Decide it",
    "0004-torn.patch",
    "needed",
    "conflict",
    "ask",
    (Signal("merge", "unclear", "conflicts in a.txt (content)"),),
    (
        Conflict(b"a.txt", "content", (Cause("0123456789abcdef", "org/demo#7", "Change a.txt"),)),
        Conflict(b"\xff.txt", "deleted upstream"),
    ),
    clashes=(
        Clash(
            *(b"a.txt", b"b.txt", "content"),
            *(Blob("100644", b"a\n"), Blob("100644", b"b\n"), Blob("100755", b"c\n")),
            b"1\n<<<<<<< 2.0\nb\n||||||| before\na\n=======\nc\n>>>>>>> torn\n",
        ),
        Clash(b"\xff.txt", b"\xff.txt", "deleted upstream", Blob("120000", b"x"), None, None),
    ),
)
UNCERTAIN = PatchReport(
    5, "unsure", "Is it there?", "0005-unsure.patch", "uncertain", "empty", "ask"
)
HELD = PatchReport(
    6,
    "held",
    "Later",
    "0006-held.patch",
    "needed",
    "held",
    "hold",
    (Signal("held", "needed", "held, not applied: later"),),
)


def sync(*patches: PatchReport, proof: Proof = HOLDS, **fields: object) -> SyncReport:
    given: dict[str, object] = {
        "queue": "demo",
        "base_from": "1.0",
        "base_to": "2.0",
        "tree": "1234",
        "changed": True,
        "recorded": True,
        "upstream": SEEN,
        "patches": patches,
        "proof": proof,
        "entry": 7,
    }
    return SyncReport(**{**given, **fields})  # type: ignore[arg-type]


DONE = sync(KEPT, DROPPED, SHRUNK, HELD)
ASKED = sync(
    KEPT, TORN, UNCERTAIN, proof=Proof(), recorded=False, entry=None, recovered="It was completed."
)
OPEN = sync(
    TORN, UNCERTAIN, proof=Proof(), recorded=False, entry=None, session="/tree", shown="torn"
)
UNPROVED = sync(KEPT, proof=PROOF, recorded=False, entry=None)
TRIED = sync(KEPT, recorded=False, entry=None, dry_run=True)
NOTHING = sync(KEPT, HELD, base_from="2.0", changed=False, recorded=False, entry=None)

ONE = made(1, "one", b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+\xff\n", topic="x")
TWO = made(2, "two", b"diff --git a/b b/b\n")
SERIES = Series((Line("patch", ONE.file, ONE), serieses.held_line(TWO, "not yet")))
INIT = InitReport("demo", "upstream/demo.toml", "series", Release("1.0", "c0", "1234"), 1)
IMPORT = ImportReport(
    "demo",
    (ONE, TWO),
    (("one", "Patchq-Check: rm -rf /"),),
    "1234",
    HOLDS,
    2,
    commits=(("c1", "c2"), ("two.patch",)),
)
EXPORT = ExportReport("demo", "/src/demo", "patchq", "1.0", "c1", "1234", 2)
MBOX = MboxReport("demo", "series.mbox", "1.0", 2)
CHECK = CheckReport("demo", "1.0", "1234", PROOF)
STATUS = StatusReport("demo", "git ../demo", "1.0", "1234", 3, (("two", "not yet"),), 1, True)
CHANGED = StatusReport("demo", "git ../demo", "1.0", "", 3, (), 0, False, "It was completed.")
HISTORY = HistoryReport(
    "demo",
    "one",
    (
        Event(WHEN, 3, "sync", "demo from 1.0 to 2.0"),
        Event(None, None, "dropped: landed in 2.0", "merge: it is there", b"-a\n+\xff\n"),
    ),
)
DECIDED = DecideReport("demo", "torn", "drop", "theirs will do", "2.0", "0123456789abcdef", 8)

EVIL = (
    "\x1b[31mred\x1b[0m \x9b2J \u202egnp.exe\u202c \u2066x\u2069 \u200b\ufeff\r\nnext\tline"
    " | `code` ``` <b>html</b> [link](https://evil.example) ![i](x) @team #1 **bold** ~~no~~"
    " [bold]markup[/bold] :smile: &lt; \\| \udcff"
)
"""What may stand in a title, a reason, a path: all of it came from strangers."""


def evil() -> SyncReport:
    signal = Signal("merge", "landed", EVIL, EVIL)
    cause = Cause(EVIL, EVIL, EVIL)
    path = EVIL.encode("utf-8", "surrogatepass")
    patch = PatchReport(
        1,
        "evil",
        EVIL,
        "0001-evil.patch",
        "needed",
        "conflict",
        "ask",
        (signal, signal),
        (Conflict(path, EVIL, (cause,)),),
        (Finding(EVIL, path, EVIL),),
        f"## {EVIL} ##\n-+{EVIL}\n++```\n++````\n++{EVIL}",
    )
    return sync(
        patch,
        proof=Proof((Check(EVIL, False, EVIL),)),
        base_from=EVIL,
        base_to=EVIL,
        recorded=False,
        recovered=EVIL,
        upstream=AsOf(EVIL, WHEN, complete=False),
    )
