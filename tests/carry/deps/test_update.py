"""Moving a part to another version: judged, carried, proved, recorded, and taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.carry.deps.conftest import ENGINE, OPS, TOML, kernels
from tests.support.history import git
from tests.support.kit import bare_repository
from tests.support.parts import COMMENT, HARDWARE, Index, Parts

MODEL = """
[[model]]
name = "tiny"
repository = "owner/tiny"
revision = "{revision}"
sha256 = "{sha256}"
why = "the smallest"
"""


@pytest.fixture
def free(parts: Parts) -> Parts:
    """With a dsl that both releases of kernels take."""
    return parts.list(TOML.replace('"4.6.0"', '"4.7.0"'))


def test_the_pin_moves_with_its_sha256_and_undo_takes_it_back(free: Parts) -> None:
    before = free.snapshot()
    told = free.json("update", "kernels", "1.8")
    assert told["schema"] == "patchq.deps-update/1"
    assert (told["from"], told["to"], told["recorded"]) == ("1.7", "1.8", True)
    sha256 = free.index.sha256("kernels_python-1.8.tar.gz")
    assert told["sha256"] == sha256
    assert told["brings"] == ["asks for dsl>=4.7.0 (before: >=4.6.0)"]
    assert told["proof"]["ok"] is True
    text = free.file.read_text()
    assert text.startswith(COMMENT)
    assert "# the fast one" in text
    assert 'version = "1.8"\nimport = ["kernels"]\nwhy = "attention"' in text
    assert f'sha256 = "{sha256}"' in text
    assert free.json("check")["ok"] is True
    free.call("undo")
    assert free.snapshot() == before


def test_latest_is_the_newest_release_and_nothing_to_do_is_said(free: Parts) -> None:
    free.index.release("kernels-python", "2.0rc1", ["dsl"])
    free.call("deps", "update", "kernels", "latest")
    assert 'version = "1.8"' in free.file.read_text()
    said = free.call("deps", "update", "kernels", "1.8").out
    assert said.endswith("kernels is at 1.8 already: nothing changed.\n")


def test_a_dry_run_changes_nothing(free: Parts) -> None:
    before = free.snapshot()
    told = free.json("update", "kernels", "1.8", "--dry-run")
    assert told["changed"] is True
    assert (told["recorded"], told["entry"]) == (False, None)
    assert told["files"] == ["upstream/dependencies.toml"]
    assert free.snapshot() == before


def test_a_version_that_contradicts_needs_a_reason(parts: Parts) -> None:
    before = parts.snapshot()
    said = parts.call("deps", "update", "kernels", "1.8", code=4).out
    assert "dsl: upstream/dependencies.toml pins 4.6.0; kernels 1.8 needs >=4.7.0" in said
    assert parts.snapshot() == before
    parts.call("deps", "update", "kernels", "1.8", "--anyway", code=2)

    told = parts.json("update", "kernels", "1.8", "--anyway", "--why", "4.6.0 was measured")
    assert told["relaxed"] == ["kernels: dsl>=4.7.0"]
    text = parts.file.read_text()
    assert (
        '[[relaxed]]\nof = "kernels"\nrequirement = "dsl>=4.7.0"\nwhy = "4.6.0 was measured"\n'
        in text
    )
    said = parts.call("deps", "check").out
    assert "upstream/dependencies.toml (4.6.0 was measured) relaxes it" in said
    parts.call("undo")
    assert parts.snapshot() == before


def test_the_base_s_own_pin_may_be_set_aside(index: Index, parts: Parts) -> None:
    index.release("engine", "1.1", ["kernels-python==1.7"], files={"engine/run.py": ENGINE})
    parts.list(TOML.replace('"4.6.0"', '"4.7.0"'))
    parts.call("sync", "--onto", "1.1")
    parts.commit()
    (conflict,) = parts.json("update", "kernels", "1.8", code=4)["conflicts"]
    assert [need["of"] for need in conflict["needs"]] == [
        "upstream/dependencies.toml",
        "engine 1.1",
    ]
    told = parts.json("update", "kernels", "1.8", "--anyway", "--why", "faster")
    assert told["relaxed"] == ["engine: kernels-python==1.7"]


def test_an_archive_with_another_sha256_is_refused(free: Parts) -> None:
    free.index.site.replies["/files/kernels_python-1.8.tar.gz"].data += b"x"
    before = free.snapshot()
    said = free.call("deps", "update", "kernels", "1.8", code=1).err
    assert "is not what the index promises" in said
    assert free.snapshot() == before


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("kernles", "1.8"), "did you mean kernels?"),
        (("kernels", "9.9"), "no release 9.9"),
        (("kernels", "1.8", "--sha256", "0" * 64), "verified against its own source"),
    ],
)
def test_a_mistake(free: Parts, args: tuple[str, ...], says: str) -> None:
    before = free.snapshot()
    said = free.call("deps", "update", *args, code=1).err
    assert says in said
    assert free.snapshot() == before


# A component with patches of its own


@pytest.fixture
def patched(free: Parts) -> Parts:
    """The kernels' own queue carries a patch."""
    free.call("init", "kernels", "--index", "kernels-python", "--base", "1.7")
    free.patch("kernels", "scale", "kernels/ops.py", "2 * x", "3 * x")
    return free


def test_its_patches_are_carried_and_the_pin_goes_along(patched: Parts) -> None:
    before = patched.snapshot()
    told = patched.json("update", "kernels", "1.8")
    (patch,) = told["sync"]["patches"]
    assert (patch["name"], patch["action"]) == ("scale", "keep")
    assert told["sync"]["base"] == {**told["sync"]["base"], "from": "1.7", "to": "1.8"}
    assert told["recorded"] is told["sync"]["recorded"] is True
    assert {"upstream/dependencies.toml", "upstream/state.json"} <= set(told["files"])
    assert 'version = "1.8"' in patched.file.read_text()
    assert patched.call("status", "--queue", "kernels").out.count("1.8") == 1
    patched.call("undo")
    assert patched.snapshot() == before


def test_a_component_is_not_measured_by_its_own_pin(patched: Parts) -> None:
    """Its file uses a name that its new release has and the pinned one has not."""
    newer = b"from kernels.more import twice\n\n\n" + OPS
    files = {**kernels(newer), "kernels/more.py": b"def twice(x): ...\n"}
    patched.index.release("kernels-python", "1.9", ["dsl"], files=files)
    (patch,) = patched.json("update", "kernels", "1.9")["sync"]["patches"]
    assert (patch["action"], patch["findings"]) == ("keep", [])


def test_a_sync_of_its_queue_moves_the_pin_too(patched: Parts) -> None:
    patched.call("sync", "--queue", "kernels", "--onto", "1.8")
    assert 'version = "1.8"' in patched.file.read_text()
    sha256 = patched.index.sha256("kernels_python-1.8.tar.gz")
    assert f'sha256 = "{sha256}"' in patched.file.read_text()


def test_a_conflict_opens_a_session_that_ends_with_the_pin(patched: Parts) -> None:
    other = OPS.replace(b"2 * x", b"4 * x")
    patched.index.release("kernels-python", "1.9", ["dsl"], files=kernels(other))
    before = patched.snapshot()
    dry = patched.json("update", "kernels", "1.9", "--dry-run", code=4)
    assert dry["sync"]["session"] is None
    told = patched.json("update", "kernels", "1.9", code=4)
    assert patched.snapshot() == before
    tree = Path(told["sync"]["session"])
    assert "a session of kernels is open" in (
        patched.call("deps", "update", "kernels", "1.9", code=1).err
    )
    (tree / "kernels/ops.py").write_bytes(OPS.replace(b"2 * x", b"12 * x"))
    patched.call("sync", "--queue", "kernels", "--continue")
    assert 'version = "1.9"' in patched.file.read_text()
    assert patched.json("list")["parts"][0]["pin"] == "1.9"


def test_a_patch_that_landed_goes(patched: Parts) -> None:
    other = OPS.replace(b"2 * x", b"3 * x")
    patched.index.release("kernels-python", "1.9", ["dsl"], files=kernels(other))
    (patch,) = patched.json("update", "kernels", "1.9")["sync"]["patches"]
    assert (patch["verdict"], patch["action"]) == ("landed", "drop")
    assert (patched.root / "series/kernels/retired").is_dir()


def test_a_series_without_a_queue_is_refused(parts: Parts) -> None:
    folder = parts.root / "series/kernels"
    folder.mkdir()
    (folder / "series").write_text("")
    said = parts.call("deps", "list", code=1).err
    assert "kernels has no queue" in said
    assert "patchq init kernels --index kernels-python --base 1.7" in said


# What else it means


def test_what_our_files_use_and_the_release_lacks_is_found(free: Parts) -> None:
    without = OPS.replace(b"def attend(x)", b"def attend2(x)")
    free.index.release("kernels-python", "1.9", ["dsl"], files=kernels(without))
    free.patch("engine", "ours", "engine/run.py", "attend(x)\n", "attend(x) + 1\n")
    (found,) = free.json("update", "kernels", "1.9", "--dry-run")["findings"]
    assert found["path"] == "engine/run.py"
    assert "kernels.ops has no 'attend'" in found["says"]
    assert free.json("update", "kernels", "1.8", "--dry-run")["findings"] == []
    part = free.json("outdated", "--look")["parts"][0]
    assert part["newer"][-1]["version"] == "1.9"
    assert len(part["findings"]) == 1


@pytest.mark.parametrize(
    ("wants", "passes"), [("attend(x) + 1", False), ("return", True)], ids=["needed", "not-needed"]
)
def test_a_workaround_that_says_when_it_goes(free: Parts, wants: str, passes: bool) -> None:
    rule = "Patchq-Drop-When: kernels>=1.8"
    check = f"Patchq-Check: grep -q '{wants}' engine/run.py"
    free.patch("engine", "work-around", "engine/run.py", "(x)\n", "(x) + 1\n", rule, check)
    (waits,) = free.json("outdated")["retirements"]
    assert (waits["holds"], waits["by"], waits["check"]) == (False, "kernels 1.8", None)

    (going,) = free.json("update", "kernels", "1.8")["retirements"]
    assert (going["patch"], going["holds"]) == ("work-around", True)
    assert going["check"]["ok"] is passes
    said = free.call("deps", "outdated").out
    assert "work-around goes when kernels>=1.8: that holds (kernels 1.8)." in said
    if passes:
        assert 'patchq delete work-around --queue engine --why "kernels 1.8"' in said
    else:
        assert "It is still needed" in said


def test_a_component_in_git_alone_moves_to_a_commit(parts: Parts) -> None:
    source = bare_repository(parts.folder / "spark")
    commits = []
    for text in ("WIDTH = 4", "WIDTH = 5"):
        (source / "trellis.py").write_text(text)
        git(source, "add", "-A")
        git(source, "commit", "-q", "--no-verify", "-m", text)
        commits.append(git(source, "rev-parse", "HEAD").decode().strip())
    entry = f'name = "spark"\ngit = "{source}"\ncommit = "{commits[0]}"\nwhy = "the trellis"\n'
    parts.list(TOML + "\n[[component]]\n" + entry)
    part = parts.json("outdated")["parts"][-1]
    assert (part["pin"], part["newer"][0]["version"]) == tuple(commits)
    told = parts.json("update", "spark", "main")
    assert (told["from"], told["to"]) == tuple(commits)
    assert f'commit = "{commits[1]}"' in parts.file.read_text()


# Models


def hub(parts: Parts) -> tuple[Path, str, str]:
    """A repository of the hub with two commits; the model is pinned to the first."""
    source = bare_repository(parts.folder / "hub/owner/tiny")
    commits = []
    for text in ("old", "new"):
        (source / "chat_template.jinja").write_text(text)
        git(source, "add", "-A")
        git(source, "commit", "-q", "--no-verify", "-m", text)
        commits.append(git(source, "rev-parse", "HEAD").decode().strip())
    model = MODEL.format(revision=commits[0][:8], sha256="0" * 64)
    parts.list(TOML + model, hardware=f'hub = "file://{parts.folder}/hub"\n' + HARDWARE)
    return source, commits[0], commits[1]


def test_a_model_moves_to_what_its_branch_is_at(parts: Parts) -> None:
    _, old, new = hub(parts)
    model = parts.json("outdated")["parts"][-1]
    assert (model["name"], model["pin"]) == ("tiny", old[:8])
    assert model["newer"] == [{"version": new, "date": None}]
    told = parts.json("update", "tiny", "main", "--sha256", "1" * 64)
    assert (told["kind"], told["to"], told["recorded"]) == ("model", new, True)
    assert f'revision = "{new}"\nsha256 = "{"1" * 64}"' in parts.file.read_text()
    assert parts.json("outdated")["parts"][-1]["newer"] == []
    said = parts.call("deps", "update", "tiny", "nowhere", code=1).err
    assert "has no branch, tag or commit 'nowhere'" in said


def test_another_revision_forgets_the_sha256(parts: Parts) -> None:
    _, old, new = hub(parts)
    parts.call("deps", "update", "tiny", old)
    assert "0" * 64 in parts.file.read_text(), "the same commit, written out"
    parts.call("deps", "update", "tiny", new[:10])
    assert "0" * 64 not in parts.file.read_text()


def test_a_hub_that_is_not_reached(parts: Parts) -> None:
    source, _, new = hub(parts)
    source.rename(source.with_name("gone"))
    before = parts.snapshot()
    parts.call("deps", "update", "tiny", "main", code=6)
    assert parts.snapshot() == before
    told = parts.json("outdated", code=6)
    assert any(each.startswith("tiny: ") for each in told["missing"])
    assert told["parts"][0]["name"] == "kernels", "the rest is there"
    parts.call("deps", "update", "tiny", new, "--offline", code=6)
    assert f'revision = "{new}"' in parts.file.read_text()
