"""Carry and judge in one pass."""

from __future__ import annotations

from patchq.carry.answers import Decision, evidence_id
from patchq.carry.canonical import exported
from patchq.carry.fold import Carry, fold
from patchq.judge.model import Judgement, Signal
from tests.support.history import git, lines
from tests.support.kit import Kit

TEXT = lines(range(1, 41))


def put(*edits: tuple[bytes, bytes]) -> bytes:
    text = TEXT
    for old, new in edits:
        text = text.replace(old, new)
    return text


NINE, OURS, THEIRS = b"line 9\n", b"9, ours\n", b"9, upstream's\n"


def carry(kit: Kit, *refs: str, **decisions: Decision) -> Carry:
    return fold(
        kit.store,
        kit.release("v1"),
        kit.release("v2"),
        kit.series("v1", *refs),
        decisions=decisions,
    )


def words(found: Carry) -> list[tuple[str | None, str, str]]:
    return [(c.carry, c.judgement.verdict, c.judgement.action) for c in found.patches]


def test_every_patch_is_tried(kit: Kit) -> None:
    """After a conflict the patch's own text goes on: what builds on it is not blamed."""
    kit.history.commit().write("a.txt", TEXT).write("b.txt", TEXT).tag("v1")
    change = kit.history.commit().write("a.txt", put((NINE, THEIRS)))
    change.write("b.txt", put((b"line 30\n", b"30\n"))).tag("v2")
    kit.history.branch("p1", at="v1").commit().write("a.txt", put((NINE, OURS)))
    kit.history.branch("p2", at="p1").commit().edit("a.txt", OURS, OURS + b"and more\n")
    kit.history.branch("p3", at="p2").commit().write("b.txt", put((b"line 30\n", b"30\n")))
    kit.history.branch("p4", at="p3").commit().edit("b.txt", NINE, b"9\n")

    found = carry(kit, "p1", "p2", "p3", "p4")

    assert words(found) == [
        ("conflict", "needed", "ask"),
        ("clean", "needed", "keep"),
        ("empty", "landed", "drop"),
        ("clean", "needed", "keep"),
    ]
    assert [each.patch.name for each in found.asks] == ["p1"]
    stop = found.patches[0].stop
    assert stop is not None
    (clash,) = stop.clashes
    assert b"<<<<<<< v2\n" in clash.marked and b">>>>>>> 0001-p1.patch\n" in clash.marked
    assert found.patches[2].commit is None
    assert found.patches[2].before == found.patches[2].tree
    assert found.patches[3].tree == found.tree


def test_commits_stand_for_patches(kit: Kit) -> None:
    kit.history.commit().write("a.txt", TEXT).tag("v1")
    kit.history.commit().edit("a.txt", b"line 2\n", b"2\n").tag("v2")
    kit.history.branch("p1", at="v1").commit().edit("a.txt", NINE, OURS)
    kit.history.branch("p2", at="p1").commit().edit("a.txt", b"line 30\n", b"30\n")
    found = carry(kit, "p1", "p2")
    log = git(
        kit.history.path, "log", "--reverse", "--format=%an %ae %ai|%s", f"v2..{found.commit}"
    )
    assert log.decode().split("\n")[:-1] == [
        "Ada ada@example.org 2025-01-02 03:04:05 +0200|About p1",
        "Ada ada@example.org 2025-01-02 03:04:05 +0200|About p2",
    ]
    assert git(kit.history.path, "rev-parse", f"{found.commit}^{{tree}}").decode().strip() == (
        found.tree
    )
    again = carry(kit, "p1", "p2")
    assert again.commit == found.commit, "same inputs, same ids"
    texts = exported(kit.store, found)
    assert list(texts) == ["p1", "p2"]
    assert all(text.files is not None for text in texts.values())


def test_words(kit: Kit) -> None:
    kit.history.commit().write("a.txt", TEXT).write("b.txt", TEXT).write("z", b"z\n").tag("v1")
    change = kit.history.commit().move("a.txt", "moved.txt")
    change.edit("b.txt", NINE, OURS).delete("z").tag("v2")
    kit.history.branch("moved", at="v1").commit().edit("a.txt", NINE, OURS)
    kit.history.branch("residual", at="moved").commit().edit("b.txt", NINE, OURS).edit(
        "b.txt", b"line 30\n", b"30\n"
    )
    kit.history.branch("gone", at="residual").commit().write("z", b"zz\n")
    found = carry(kit, "moved", "residual", "gone")
    assert words(found) == [
        ("moved", "needed", "keep"),
        ("residual", "partly-landed", "shrink"),
        ("conflict", "gone", "ask"),
    ]
    assert found.patches[0].moved == {b"a.txt": b"moved.txt"}
    (residual,) = exported(kit.store, found)["residual"].files or ()
    assert [atom.new for hunk in residual.hunks for atom in hunk.atoms] == [(b"30\n",)]


def squashed(kit: Kit) -> None:
    block = b"one\ntwo\nthree\n"
    kit.history.commit().write("a.txt", TEXT).write("b.txt", b"b\n").tag("v1")
    kit.history.commit().write("a.txt", put((NINE, block + b"four\n"))).tag("v2")
    kit.history.branch("p1", at="v1").commit().write("a.txt", put((NINE, block)))
    kit.history.branch("between", at="p1").commit().write("b.txt", b"ours\n")
    kit.history.branch("p2", at="between").commit().write("a.txt", put((NINE, block + b"four\n")))


def test_a_unit_goes_as_one(kit: Kit) -> None:
    squashed(kit)
    found = carry(kit, "p1", "between", "p2")
    assert [(word, action) for word, _, action in words(found)] == [
        ("empty", "drop"),
        ("clean", "keep"),
        ("empty", "drop"),
    ]
    for each in (found.patches[0], found.patches[2]):
        told = {signal.signal for signal in each.judgement.evidence}
        assert len(told) > 1, "a drop names more than one signal"
    assert kit.content(found.tree, "a.txt") == kit.history.tree("v2")[b"a.txt"].data


# Decisions


def asked(kit: Kit) -> Carry:
    """A patch that only the merge calls landed: repetitive lines, deleted by both."""
    kit.history.commit().write("a.txt", TEXT).tag("v1")
    kit.history.commit().write("a.txt", put((NINE, THEIRS))).tag("v2")
    kit.history.branch("p1", at="v1").commit().write("a.txt", put((NINE, OURS)))
    return carry(kit, "p1")


def test_an_answer_to_drop(kit: Kit) -> None:
    evidence = evidence_id(asked(kit).patches[0].judgement)
    found = carry(kit, "p1", p1=Decision("drop", "theirs is as good", evidence))
    (each,) = found.patches
    assert (each.carry, each.judgement.action, each.judgement.conflicts) == ("empty", "drop", ())
    assert each.judgement.evidence[-1] == Signal(
        "decision", "landed", "decided to drop it: theirs is as good"
    )
    assert found.tree == kit.tree("v2")


def test_an_answer_on_other_evidence_does_not_count(kit: Kit) -> None:
    asked(kit)
    found = carry(kit, "p1", p1=Decision("drop", "theirs is as good", "0123456789abcdef"))
    assert words(found) == [("conflict", "needed", "ask")]


def test_a_conflict_cannot_be_kept(kit: Kit) -> None:
    evidence = evidence_id(asked(kit).patches[0].judgement)
    found = carry(kit, "p1", p1=Decision("keep", "ours is better", evidence))
    assert words(found) == [("conflict", "needed", "ask")]


def test_an_answer_to_keep(kit: Kit) -> None:
    kit.history.commit().write(
        "a.py", b"def f():\n    return 1\n" + TEXT.replace(b"line", b"#")
    ).tag("v1")
    change = kit.history.commit()
    change.write("a.py", change.tree[b"a.py"].data + b"def g():\n    return 2\n").tag("v2")
    kit.history.branch("p1", at="v1").commit().edit(
        "a.py", b"    return 1\n", b"    return 1\n\n\ndef g():\n    return 3\n"
    )
    first = carry(kit, "p1")
    assert words(first) == [("clean", "uncertain", "ask")]
    evidence = evidence_id(first.patches[0].judgement)
    found = carry(kit, "p1", p1=Decision("keep", "on purpose", evidence))
    assert words(found) == [("clean", "uncertain", "keep")]


def test_an_answer_to_what_is_not_asked(kit: Kit) -> None:
    kit.history.commit().write("a.txt", TEXT).tag("v1")
    kit.history.commit().write("b.txt", b"b\n").tag("v2")
    kit.history.branch("p1", at="v1").commit().edit("a.txt", NINE, OURS)
    evidence = evidence_id(carry(kit, "p1").patches[0].judgement)
    found = carry(kit, "p1", p1=Decision("drop", "no", evidence))
    assert words(found) == [("clean", "needed", "keep")]


def test_evidence_is_everything_that_was_said() -> None:
    one = Judgement("needed", "ask", (Signal("merge", "unclear", "a"),))
    assert evidence_id(one) == evidence_id(Judgement("needed", "keep", one.evidence))
    others = [
        Judgement("uncertain", "ask", one.evidence),
        Judgement("needed", "ask", (Signal("merge", "unclear", "b"),)),
        Judgement("needed", "ask", (Signal("merge", "needed", "a"),)),
        Judgement("needed", "ask", (Signal("merge", "unclear", "a", "ref"),)),
        Judgement("needed", "ask", ()),
    ]
    assert len({evidence_id(each) for each in [one, *others]}) == 6
