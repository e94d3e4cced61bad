"""`patchq report` as a person runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.inside import Small, call


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path / "story").filled()


def test_a_page_and_its_json(small: Small, tmp_path: Path) -> None:
    site = tmp_path / "a" / "site"
    before = small.files()
    said = small.call("report", "--html", str(site), "--offline", "--json")
    assert [path.name for path in site.iterdir()] == ["index.html"]
    data = (site / "index.html").read_bytes()
    assert b"<h1>The queue demo on v1</h1>" in data
    assert said.json["schema"] == "patchq.report/1"
    assert said.json["files"] == [{"path": str(site / "index.html"), "bytes": len(data)}]
    assert [each["name"] for each in said.json["patches"]] == ["lands", "stays"]
    assert small.files() == before, "nothing of the queue changes"


def test_again_writes_it_anew_and_leaves_the_rest(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "CNAME").write_text("queue.example.org\n")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1796117400")
    for _ in range(2):
        small.call("report", "--html", str(site), "--offline")
        old = (site / "index.html").stat()
    small.call("report", "--html", str(site), "--offline")
    assert (site / "index.html").stat().st_mtime_ns == old.st_mtime_ns, "the same is not written"
    assert (site / "CNAME").read_text() == "queue.example.org\n"
    assert len(list(site.iterdir())) == 2


def test_in_a_terminal(small: Small) -> None:
    said = small.call("report", "--offline")
    assert said.out.splitlines() == [
        "demo on v1: 2 patches, 0 held",
        "No night is known here.",
        "What moved is not known: no night is known here: nothing to compare with.",
        "2 releases are newer than v1.",
    ]


def test_who_did_not_answer_is_said(small: Small, tmp_path: Path) -> None:
    config = small.root / "upstream/demo.toml"
    away = config.read_text().replace(str(small.upstream.path), "http://127.0.0.1:9/away.git")
    config.write_text(away)
    said = small.call("report", "--html", str(tmp_path / "site"), "--json", code=6)
    assert said.json["drift"]["newer"] is None and said.json["drift"]["missing"]
    assert b"is not known" in (tmp_path / "site" / "index.html").read_bytes(), "it is written"
    small.call("report", "--offline")


def test_what_a_user_may_get_wrong(small: Small, tmp_path: Path) -> None:
    assert "there is no queue 'other'" in small.call("report", "--queue", "other", code=1).err
    settings = small.root / "ci" / "nightly.toml"
    settings.parent.mkdir()
    settings.write_text("stale_days = 2\n")
    assert "ci/nightly.toml" in small.call("report", "--offline", code=1).err
    settings.unlink()
    (tmp_path / "file").write_text("")
    said = small.call("report", "--html", str(tmp_path / "file"), "--offline", code=1)
    assert "the system refused" in said.err and "file" in said.err
    (tmp_path / "empty").mkdir()
    assert "not inside a git repository" in call(tmp_path / "empty", "report", code=1).err
