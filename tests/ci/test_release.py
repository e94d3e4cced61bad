"""release.yml as it runs: what a person approved, verified, published once, attested."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ci.conftest import REPO
from tests.ci.machine import Machine
from tests.release.shop import Shop
from tests.support.forge.repo import Repo
from tests.support.forge.server import Forge


@pytest.fixture
def released(shop: Shop, repo: Repo, machine: Machine, set_up: Callable[[Path], None]) -> Shop:
    """Release 1, cut and pushed; its bundle lies on the machine where it was cut."""
    set_up(shop.root)
    shop.write("releases/publish.toml", f'github = "{REPO}"\n')
    shop.commit()
    shop.cut()
    shop.git("push", "-q", "-f", str(repo.path), "HEAD:refs/heads/main", "--tags")
    machine.variables["PATCHQ_RELEASES"] = str(shop.root / "build/releases")
    return shop


def test_published_and_attested(forge: Forge, repo: Repo, released: Shop, machine: Machine) -> None:
    jobs = machine.run("release", event="workflow_dispatch", number=1)
    assert jobs["bundle"].good and jobs["publish"].good, f"{jobs['bundle']}\n{jobs['publish']}"
    (one,) = repo.shelf.releases.values()
    assert (one.tag, one.draft) == ("release-1", False)
    bundle = {path.name for path in released.bundle.iterdir()}
    assert {each.name for each in one.assets.values()} == bundle
    assert set(machine.attested) == bundle - {"SHA256SUMS", "SHA256SUMS.sig"}
    told = forge.count()
    again = machine.run("release", event="workflow_dispatch", number=1)
    assert again["publish"].good
    asked = [each for each in forge.asked[told:] if each.kind == "rest"]
    assert {each.method for each in asked} == {"GET"}, "the second time nothing is written"


def test_files_that_are_not_what_was_signed(
    forge: Forge, repo: Repo, released: Shop, machine: Machine
) -> None:
    """The machine that brings them is not trusted."""
    (wheel,) = released.bundle.glob("vllm*.whl")
    wheel.write_bytes(wheel.read_bytes()[:-1] + b"x")
    jobs = machine.run("release", event="workflow_dispatch", number=1)
    publish = jobs["publish"]
    assert publish.step("Verify").code == 5, str(publish)
    assert publish.step("Publish").code is None and publish.step("Attest").code is None
    assert not repo.shelf.releases and machine.attested == []
    assert not [each for each in forge.asked if each.kind == "rest"]


@pytest.mark.parametrize("number", ["0", "1; id", "../1", "07", "", "1\n2"])
def test_what_is_no_number(machine: Machine, number: str) -> None:
    jobs = machine.run("release", event="workflow_dispatch", number=number)
    assert jobs["bundle"].step("Find it").code == 1
    assert "is no release's number" in jobs["bundle"].step("Find it").said
    assert "publish" not in jobs and not machine.artifacts


def test_a_release_that_was_not_cut(machine: Machine) -> None:
    jobs = machine.run("release", event="workflow_dispatch", number=2)
    assert "there is no bundle of release 2 in" in jobs["bundle"].step("Find it").said
    assert "publish" not in jobs
