"""Which files of a release fit the hardware."""

from __future__ import annotations

import pytest

from patchq.upstream.components import Hardware
from patchq.upstream.hardware import Fit, markers
from patchq.upstream.pages import Dist

SPARK = Hardware("aarch64", "3.12", "2.39", "13.0")


def files(*names: str) -> list[Dist]:
    return [Dist("1.0", f"pkg-1.0{name}", "", "", wheel=name.endswith(".whl")) for name in names]


@pytest.mark.parametrize(
    ("names", "best"),
    [
        (("-py3-none-any.whl", ".tar.gz"), "-py3-none-any.whl"),
        (
            ("-cp38-abi3-manylinux_2_28_aarch64.whl", ".tar.gz"),
            "-cp38-abi3-manylinux_2_28_aarch64.whl",
        ),
        (
            ("-py3-none-any.whl", "-cp312-cp312-manylinux2014_aarch64.whl"),
            "-cp312-cp312-manylinux2014_aarch64.whl",
        ),
        (("-cp312-cp312-manylinux_2_28_x86_64.whl", ".tar.gz"), ".tar.gz"),
        (("-py2.py3-none-any.whl",), "-py2.py3-none-any.whl"),
    ],
)
def test_the_file_that_an_installer_takes(names: tuple[str, ...], best: str) -> None:
    found = Fit(SPARK).best(files(*names))
    assert found is not None
    assert found.filename == f"pkg-1.0{best}"
    assert Fit(SPARK).unfit(files(*names)) == ""


@pytest.mark.parametrize(
    "name",
    [
        "-cp312-cp312-manylinux_2_28_x86_64.whl",
        "-cp311-cp311-manylinux_2_28_aarch64.whl",
        "-cp312-cp312-manylinux_2_40_aarch64.whl",
        "-cp312-cp312-win_amd64.whl",
        "-cp313-abi3-manylinux_2_28_aarch64.whl",
    ],
)
def test_a_file_that_does_not_fit(name: str) -> None:
    assert Fit(SPARK).best(files(name)) is None
    said = Fit(SPARK).unfit(files(name))
    assert said == (
        "none of its files fits aarch64, CPython 3.12, glibc 2.39; there is pkg-1.0" + name
    )


def test_markers_say_nothing_of_this_machine() -> None:
    found = markers(SPARK)
    assert (found["python_version"], found["python_full_version"]) == ("3.12", "3.12.0")
    assert (found["platform_machine"], found["sys_platform"]) == ("aarch64", "linux")
    assert found["platform_release"] == found["platform_version"] == ""
