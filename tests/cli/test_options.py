"""Without --queue, a command in a queue's working tree means that queue."""

from __future__ import annotations

from pathlib import Path

from tests.support.hand import Hand
from tests.support.inside import call


def test_the_tree_that_one_is_in_says_the_queue(tmp_path: Path) -> None:
    hand = Hand(tmp_path)
    upstream = str(hand.upstream.path)
    hand.call("init", "other", "--git", upstream, "--base", "v1")
    hand.call("new", "lone", "--queue", "other")
    inside = hand.root / ".git/patchq/work/other/tree"
    call(inside, "hold", "1", "--why", "later")
    held = call(inside, "status", "--json").json
    assert (held["queue"], held["held"]) == ("other", [{"name": "lone", "why": "later"}])
    assert hand.json("status", "--queue", "demo")["held"] == []
    for command in ("series", "graph", "history", "check", "tree"):
        assert call(inside, command, "--json").json["queue"] == "other"
    assert call(inside, "show", "1", "--json").json["name"] == "lone"
    assert hand.json("series", "--queue", "demo")["queue"] == "demo"
