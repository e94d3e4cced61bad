"""What people read of a night: one screen first, and nothing of strangers is markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from patchq.forge.threads import LONGEST_BODY
from patchq.nightly.model import Culprit, Fault, Told
from patchq.nightly.people import Overdue
from patchq.render import night_parts as parts
from patchq.render.markdown import code
from patchq.render.night_words import issue, overdue, pull, repaired, young
from tests.nightly.tales import HOSTILE, SPINS, STAGES, night, stage, tale
from tests.render.reports import DONE, DROPPED, EVIL, KEPT, SHRUNK, sync

ROOM = LONGEST_BODY


MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table"])
CODE = r"(?<![`\\])(`+)(?!`).*?(?<!`)\1(?!`)"
OURS = r"<details><summary>All patches, as sync reports them</summary>|</details>"


def tokens(text: str) -> Iterator[Token]:
    for token in MARKDOWN.parse(text):
        yield from token.children or (token,)


def harmless(text: str) -> None:
    """By a parser of Markdown: no link, no HTML but ours, no mention, nothing that GitHub links."""
    for token in MARKDOWN.parse(text):
        if token.type == "inline":
            raw = re.sub(CODE, "", token.content).replace("](https://redirect.github.com/", "")
            assert "://" not in raw, "GitHub makes a link of it before it reads entities"
    for token in tokens(text):
        assert token.type not in ("image", "html_inline"), token
        if token.type == "html_block":
            assert re.fullmatch(OURS, token.content.strip()), token.content
        if token.type == "link_open":
            assert str(token.attrs["href"]).startswith("https://redirect.github.com/"), token
        if token.type == "text":
            found = re.search(r"(?i)@\w|#\d|\bGH-\d|www\.|\u202e", token.content)
            assert not found, token.content


def closed(text: str) -> None:
    """No fence is open at the end: the last thing is a paragraph of ours."""
    last = [token for token in MARKDOWN.parse(text) if token.type == "inline"][-1]
    assert last.content == "*Cut here: this is as much as fits.*"


# The pull request


def test_what_moved_is_on_the_first_screen() -> None:
    title, body = (text := pull(tale(night(), sync=DONE), ROOM)).title, text.body
    assert title == "Series for vllm 0.33.0: 1 dropped, 2 refreshed"
    first, _, rest = body.partition("<details>")
    assert first.count("\n") < 45
    assert first.startswith(
        "vllm from 0.32.0 to 0.33.0: 1 kept, 1 kept in part, 1 dropped, 1 held; runner tree"
        " `777777777777`, runner lock `111111111111`. Night `2026-12-01`.\n\n"
        "**Good: sync, build, deploy, smoke, bench, gate passed.**\n"
    )
    assert "| `kept` | needed | refreshed | merges cleanly; only its context changed |" in first
    assert "| `dropped` | landed | dropped | it is there; 4 of 4 |" in first
    assert "</details>" in rest and "+ours, again" in rest
    assert "| smoke | done | 62 s | it is done |" in rest
    assert rest.rstrip().endswith("patchq build\n```")


def test_how_to_try_it() -> None:
    where = {"target": "spark", "cluster": "sparks", "profile": "glm"}
    body = pull(tale(night(), sync=DONE, **where), ROOM).body
    assert "git fetch origin patchq/nightly && git switch --detach FETCH_HEAD\n" in body
    assert "patchq build --target spark\n" in body
    assert "patchq cluster start sparks --profile glm\n" in body


def test_nothing_but_the_base_moved() -> None:
    report = sync(replace(KEPT, rewritten=False))
    text = pull(tale(night(), sync=report), ROOM)
    assert text.title == "Series for vllm 0.33.0: 1 kept"
    assert "The other one is as it was." in text.body
    assert pull(tale(night()), ROOM).title == "Series for vllm 0.33.0", "no report is there"


def test_folders_of_the_machine_are_nobodys_business() -> None:
    report = sync(KEPT)
    upstream = replace(report.upstream, source="git, /srv/mirrors/vllm.git")
    body = pull(tale(night(), sync=replace(report, upstream=upstream)), ROOM).body
    assert "Upstream: git, a local repository." in body
    assert "/srv" not in body


def test_a_red_night_says_so_first() -> None:
    body = pull(tale(night(state="red"), sync=DONE), ROOM).body
    assert "\n\n**Not yet: smoke fails.** recall fails: it spins. Merged as it is," in body
    assert "| smoke | **failed** | 62 s | recall fails |" in body


def test_commits_of_a_person() -> None:
    body = pull(tale(night(), sync=DONE, kept_off="b" * 40), ROOM).body
    assert "has commits that patchq did not make (`bbbbbbbbbbbb`)" in body


def test_many_patches_are_counted() -> None:
    many = tuple(replace(DROPPED, number=n, name=f"patch-{n}") for n in range(1, 31))
    body = pull(tale(night(), sync=sync(*many)), ROOM).body
    first, _, rest = body.partition("<details>")
    assert first.count("| `patch-") == 12 and "18 more below." in first
    assert rest.count("| `patch-") == 30


def test_what_is_too_long_is_left_out_bit_by_bit() -> None:
    long = replace(SHRUNK, range_diff=SHRUNK.range_diff + "\n+x" * 50_000)
    body = pull(tale(night(), sync=sync(long)), ROOM).body
    assert len(body) < ROOM and "The differences of the patches are left out here" in body
    many = tuple(replace(DROPPED, name=f"{n}-" + "x" * 150) for n in range(500))
    body = pull(tale(night(), sync=sync(*many)), ROOM).body
    assert len(body) < ROOM and "*Sync's report is left out here: it is too long." in body
    body = pull(tale(night(), sync=sync(*many)), 2000).body
    assert len(body) <= 2000 and body.endswith("*Cut here: this is as much as fits.*")


def test_titles_of_strangers() -> None:
    evil = replace(DROPPED, name=HOSTILE, subject=HOSTILE, evidence=())
    named = replace(SHRUNK, evidence=tuple(replace(e, detail=HOSTILE) for e in SHRUNK.evidence))
    stages = (stage("sync", "failed", HOSTILE), *STAGES[1:])
    fault = replace(SPINS, cause=HOSTILE)
    made = night(state="red", base=(HOSTILE, HOSTILE), stages=stages, fault=fault)
    text = pull(tale(made, sync=sync(evil, named)), ROOM)
    harmless(text.body.partition("<details>")[0])
    harmless(text.body.partition("</details>\n\n###")[2])
    bold = [each for each in tokens(text.body) if each.type == "strong_open"]
    assert len(bold) == 2, "ours: not yet, and failed"
    assert re.fullmatch(r"[A-Za-z0-9._:+, -]+", text.title)
    row = next(line for line in text.body.split("\n") if "| landed |" in line)
    assert row.replace("\\|", "").count("|") == 5, "a name adds no column"
    assert pull(tale(night(queue="x", base=(EVIL, EVIL))), ROOM).body


@given(st.text(st.sampled_from("`*_[]()<>|#~&@!-:/\\w.GH12 x\n\r\t\"'=+"), max_size=60))
@example("<!-- patchq:end -->")
@example("![x](http://a.b)")
def test_any_words_stay_words(value: str) -> None:
    harmless(f"**red**: {parts.text(value)}")
    harmless(f"| a | b |\n|---|---|\n| {parts.text(value)} | {code(value)} |")
    harmless("\n".join(parts.fence([value, "x"], "text")))


# The issue

ASKS = Fault(
    "sync",
    "moe-router conflicts in a.py (content)",
    ("moe-router: conflicts in a.py (content)",),
    ("git checkout 555555555555", "patchq sync --onto 0.33.0"),
    (
        Culprit("patch", "moe-router", "asks for a decision"),
        Culprit("commit", "0123456789ab", "Route", "https://github.com/org/demo/pull/57477"),
        Culprit("base", "0.33.0", "the release", "https://evil.example/x", 0.974),
    ),
)


def test_the_issue_has_cause_culprit_lines_and_the_way_to_see_it() -> None:
    before = night("2026-11-30", "asks")
    of = tale(night(state="asks", fault=ASKS), before, since="2026-11-30", pull=5)
    text = issue(of, ROOM)
    assert "#5" not in text.body, "a pull request of another night's series"
    assert text.title == "Nightly: sync needs a decision since 2026-11-30"
    assert text.body.startswith("**sync** needs a decision: moe-router conflicts in a.py (content)")
    assert (
        "- upstream's commit `0123456789ab`: Route"
        " ([org/demo\\#&#8203;57477](https://redirect.github.com/org/demo/pull/57477))\n"
        in text.body
    )
    assert "- upstream's release `0.33.0` (97% sure): the release\n" in text.body
    assert "```text\nmoe-router: conflicts in a.py (content)\n```" in text.body
    assert "```sh\ngit checkout 555555555555\npatchq sync --onto 0.33.0\n```" in text.body
    assert "### 2 nights since 2026-11-30\n\n- `2026-12-01`: asks: moe-router" in text.body
    spins = issue(tale(night(state="red"), since="2026-12-01", pull=5), ROOM).body
    assert spins.endswith("\n\nIts series is in #5.")


def test_the_title_is_the_same_from_night_to_night() -> None:
    first, third = night(state="red"), night("2026-12-03", "red")
    titles = {
        issue(tale(of, *before, since="2026-12-01"), ROOM).title
        for of, before in ((first, ()), (third, (first, night("2026-12-02", "incomplete"))))
    }
    assert titles == {"Nightly: smoke fails since 2026-12-01"}


def test_logs_of_strangers() -> None:
    lines = (HOSTILE, "```", "~~~~", "`````text", "ghp_0123456789abcdefghij of ada@example.com")
    culprit = Culprit("patch", HOSTILE, HOSTILE, f"https://github.com/{HOSTILE}")
    fault = Fault("smoke", HOSTILE, lines, (HOSTILE,), (culprit,))
    body = issue(tale(night(state="red", fault=fault), since="2026-12-01"), ROOM).body
    harmless(body)
    fences = [each for each in tokens(body) if each.type == "fence"]
    assert [each.info for each in fences] == ["text", "sh"]
    assert fences[0].content.split("\n")[1:4] == ["```", "~~~~", "`````text"]
    assert "github.com" not in body
    assert "ghp_" not in body and "ada@" not in body


def test_a_long_log_is_cut_where_all_can_see_it() -> None:
    fault = replace(SPINS, lines=tuple("x" * 400 for _ in range(400)))
    for most in (2000, 5000, ROOM):
        body = issue(tale(night(state="red", fault=fault), since="2026-12-01"), most).body
        closed(body)
        assert len(body) <= most


def test_the_words_with_which_it_is_closed() -> None:
    assert repaired(tale(night())) == "Repaired: night `2026-12-01` is green on 0.33.0."
    assert repaired(tale(night(state="quiet"))).startswith(
        "Repaired: in night `2026-12-01` the runner of the last green night stands again"
    )


# The alarm


def test_the_alarm() -> None:
    fault = replace(SPINS, stage="deploy", cause=HOSTILE)
    after = night("2026-12-02", "incomplete", fault=fault, told=Told())
    text = overdue(Overdue("vllm", 50, 36, night(), (after,)), ROOM)
    assert text.title == "Nightly: no night of vllm has come to an end since 2026-12-01"
    assert text.body.startswith(
        "The last night that came to an end is `2026-12-01`: green, 2026-12-01T05:00:00+00:00."
        " The limit is 36 hours.\n"
    )
    assert "- `2026-12-02`: incomplete: " in text.body
    harmless(text.body)
    later = overdue(Overdue("vllm", 51, 36, night(), (after,)), ROOM)
    assert later == text, "an hour more is no news"
    never = overdue(Overdue("vllm", 50, 36, None), ROOM)
    assert never.title == "Nightly: no night of vllm has come to an end yet"
    assert young(night(state="red")) == "Night `2026-12-01` has come to an end: red."
