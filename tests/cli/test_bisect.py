"""`patchq bisect` as it is typed: what is refused, what it prints, its exit statuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bisect.toys import Toy


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """Three patches; read only."""
    return Toy(tmp_path_factory.mktemp("toy"), 3)


def snapshot(root: Path) -> set[str]:
    return {str(path) for path in (root / ".git/patchq").rglob("*")}


def test_a_dry_run_says_what_moved_and_keeps_nothing(toy: Toy) -> None:
    before = snapshot(toy.root)
    said = toy.bisect(*toy.asks(1), "--dry-run")
    assert said.out.splitlines()[0] == "3 things moved from before to after"
    assert [line.split()[0] for line in said.out.splitlines()[1:]] == ["patch"] * 3
    told = toy.bisect(*toy.asks(1), "--dry-run", "--json").json
    assert told["schema"] == "patchq.bisect-moves/1"
    assert [each["name"] for each in told["moves"]] == ["change-0", "change-1", "change-2"]
    assert set(told["moves"][0]) == {"kind", "name", "says", "url", "needs"}
    assert snapshot(toy.root) - before <= {str(toy.root / ".git/patchq/lock")}
    assert toy.runs == []


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        ((), 1, "there is no bisection here"),
        (("--dry-run",), 2, "what shows the fault?"),
        (("--run", "true", "--next", "2", "--try", "x"), 2, "are one each"),
        (("--run", "true", "--false-alarms", "0.1"), 2, "needs more runs than one"),
        (("--run", "true", "--profile", "small"), 2, "--profile is for what is started"),
        (("--run", "'"), 1, "--run cannot be read"),
        (("--run", "true", "--cluster", "none"), 1, "there is no cluster 'none'"),
        (("--run", "true", "--target", "moon"), 2, "'moon' is no target"),
        (("--run", "true", "--between", "before", "nothing"), 1, "no revision of this repository"),
        (("--run", "true", "--between", "after", "after"), 1, "nothing moved"),
        (("--run", "true"), 1, "there is no release here yet"),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, tuple) else None,
)
def test_what_is_refused(toy: Toy, args: tuple[str, ...], code: int, says: str) -> None:
    said = toy.bisect(*args, code=code)
    assert says in said.err and not said.out


def test_what_people_and_programs_read(tmp_path: Path) -> None:
    toy = Toy(tmp_path, 4)
    named = toy.bisect(*toy.asks(2), "--known", "--next", "3")
    assert named.out.splitlines()[0] == ("4 of 4 moves are suspected (before to after)")
    steps = [line.split()[0] for line in named.out.splitlines()[1:]]
    assert len(steps) == 3
    tried = toy.bisect("--try", steps[0])
    assert tried.out.startswith(f"step {steps[0]}: 0 of 1 runs show the fault\n")
    assert "there is no step" in toy.bisect("--try", "0" * 12, code=1).err
    folder = next((toy.root / ".git/patchq/bisect").iterdir())
    open_ = toy.bisect("--take", str(folder / f"{steps[0]}.json"), "--json").json
    assert (open_["state"], open_["culprit"], open_["runs"]) == ("open", None, 1)
    said = toy.bisect()
    assert said.out.splitlines()[0] == "it is change-2 (patch): patch change-2 added: Change 2"
    assert "sure to 100.0%, after 3 builds and 3 runs" in said.out
    told = toy.bisect("--json").json
    assert told["schema"] == "patchq.bisect/1" and told["state"] == "found"
    assert told["culprit"] == {
        "kind": "patch",
        "name": "change-2",
        "says": "patch change-2 added: Change 2",
        "url": None,
    }
    assert told["confidence"] == 1 and told["reproduce"].startswith("patchq bisect --between ")
    again = toy.bisect(*toy.asks(2), "--known", "--again", "--json").json
    assert again["culprit"] == told["culprit"] and len(toy.runs) == 5


def test_another_question_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    toy = Toy(tmp_path, 2)
    state = ("--state", str(tmp_path / "state"), "--known", "--next", "1")
    toy.bisect(*toy.asks(0), *state)
    assert "holds another bisection" in toy.bisect(*toy.asks(1), *state, code=1).err
    toy.bisect(*toy.asks(1), *state, "--again")


def test_a_fault_that_is_not_there(tmp_path: Path) -> None:
    toy = Toy(tmp_path, 2)
    ends = ("--between", "before", "after")
    assert "B does not show the fault in 1 run" in toy.bisect("--run", "true", *ends, code=1).err
    assert "A shows the fault, too" in toy.bisect("--run", "false", *ends, code=1).err


def test_it_cannot_tell(tmp_path: Path) -> None:
    """The command cannot say of what lies between: status 4, and the suspects are named."""
    toy = Toy(tmp_path, 2)
    said = toy.bisect(
        "--run", "sh -c 'exit 125'", "--between", "before", "after", "--known", code=4
    )
    assert said.out.splitlines()[0] == "it is one of these 2:"
    assert "cannot be tried" in said.out
