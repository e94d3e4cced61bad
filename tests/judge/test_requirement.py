"""What a requirement says."""

from __future__ import annotations

import pytest

from patchq.judge.requirement import differences, exact, package_of, same, wanted
from tests.judge.test_needs import ENVIRONMENT


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("torch==2.13.0", "2.13.0"),
        ("torch == 2.13.0 ; sys_platform == 'linux'", "2.13.0"),
        ("torch>=2.13", ""),
        ("protobuf!=6.30.*", ""),
        ("cuda-toolkit==13.0.*", ""),
        ("torch", ""),
    ],
)
def test_the_one_version(text: str, version: str) -> None:
    assert exact(text) == version


def test_names_are_compared_as_the_index_does() -> None:
    assert package_of("Nvidia_CUTLASS.dsl[cu13]>=4") == "nvidia-cutlass-dsl"
    assert same("Typing_Extensions >= 4, <5", "typing-extensions<5,>=4")
    assert same("a>=1; python_version > '3'", "a>=1")
    assert not same("a[x]>=1", "a>=1")


def test_what_counts_there() -> None:
    texts = ("a>=1; platform_machine == 'aarch64'", "b; sys_platform == 'win32'", "c; extra == 'x'")
    assert list(wanted(texts, ENVIRONMENT)) == ["a>=1"]
    assert list(wanted(texts, ENVIRONMENT, ("", "x"))) == ["a>=1", "c"]


def test_what_another_release_asks_for_otherwise() -> None:
    was = ("dsl>=4.6", "xformers", "marisa-trie", "torch>=2; sys_platform == 'win32'")
    will = ("dsl>=4.8", "marisa_trie", "pillow")
    assert differences(was, will, ENVIRONMENT) == (
        "asks for dsl>=4.8 (before: >=4.6)",
        "asks for pillow",
        "asks no more for xformers",
    )
