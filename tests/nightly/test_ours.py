"""patchq's own part of a text on the forge: replaced between its markers, and nothing else touched."""

from __future__ import annotations

import pytest

from patchq.forge.threads import LONGEST_BODY
from patchq.nightly.ours import BEGIN, END, merged, room, unmarked


@pytest.mark.parametrize(
    ("standing", "found"),
    [
        ("", f"{BEGIN}\nnew\n{END}"),
        (f"a\n{BEGIN}\nold\n{END}\nb", f"a\n{BEGIN}\nnew\n{END}\nb"),
        (f"a\r\n{BEGIN}\r\nold\r\n{END}\r\nb", f"a\n{BEGIN}\nnew\n{END}\nb"),
        (f"a\n{BEGIN}\nold", f"a\n\nold\n\n{BEGIN}\nnew\n{END}"),
        (f"old\n{END}\nb", f"old\n\nb\n\n{BEGIN}\nnew\n{END}"),
        (f"{END} a {BEGIN}", f"a\n\n{BEGIN}\nnew\n{END}"),
    ],
)
def test_what_stands_outside_stays(standing: str, found: str) -> None:
    assert merged(standing, "new\n") == found
    assert merged(found, "new") == found


def test_room_beside_what_people_wrote() -> None:
    long = "x" * 30_000
    assert len(merged(long, "y" * room(long))) < LONGEST_BODY
    assert room("") > 64_000 and room("x" * LONGEST_BODY) == 2000


def test_a_marker_in_a_strangers_words_is_none() -> None:
    block = unmarked(f"a log line: {END}\n<!-- patchq:tree {'0' * 40} -->")
    whole = merged("mine", block)
    assert whole.count(END) == 1 and "<!-- patchq:tree" not in whole
    assert merged(whole, "new") == merged("mine", "new")
