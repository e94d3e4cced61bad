"""Which adapter and GID an address means: what a wrong one does a minute into the start is said
before it."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.cluster.config import Node
from patchq.cluster.facts import Adapter, Gid
from patchq.cluster.roce import Fault, chosen
from tests.support.sysfs import ROCE1, ROCE2, gid, table

ADDRESS = "192.168.100.10"
NODE = Node("a", 0, ADDRESS, "eth0")


def adapter(gids: dict[int, tuple[str, str]], name: str = "rocep1s0f0") -> Adapter:
    entries = tuple(Gid(index, text, kind) for index, (text, kind) in gids.items())
    return Adapter(name, "4: ACTIVE", entries)


SOUND = adapter(table(ADDRESS))


def index(node: Node, *adapters: Adapter) -> tuple[str, int]:
    choice = chosen(node, adapters)
    assert not isinstance(choice, Fault), choice.says
    return choice[0].name, choice[1].index


def fault(node: Node, *adapters: Adapter) -> Fault:
    choice = chosen(node, adapters)
    assert isinstance(choice, Fault)
    return choice


def test_the_version_2_entry_of_the_address() -> None:
    assert index(NODE, SOUND) == ("rocep1s0f0", 3)


def test_the_index_moves_with_the_table() -> None:
    """After a restart IPv6 addresses stand in front: another index, the same address."""
    more = {0: ("fe80::1", ROCE2), 1: ("2001:db8::7", ROCE1), 5: (gid(ADDRESS), ROCE2)}
    assert index(NODE, adapter(more)) == ("rocep1s0f0", 5)


def test_an_ipv6_address_is_its_own_gid() -> None:
    node = replace(NODE, address="2001:db8::7")
    entry = {4: ("2001:0db8:0000:0000:0000:0000:0000:0007", ROCE2)}
    assert index(node, adapter(entry)) == ("rocep1s0f0", 4)


def test_a_port_that_is_down_is_passed_over() -> None:
    down = replace(SOUND, name="roce0", state="1: DOWN")
    assert index(NODE, down, SOUND) == ("rocep1s0f0", 3)
    assert "no RDMA port behind eth0 of a is up: roce0 is 1: DOWN" in fault(NODE, down).says


def test_no_adapter() -> None:
    assert "has no RDMA adapter behind eth0" in fault(NODE).says


def test_an_address_without_an_entry() -> None:
    told = fault(replace(NODE, address="192.168.100.99"), SOUND)
    assert told.says == "rocep1s0f0 of a has no RoCE v2 GID for 192.168.100.99"
    assert "errno 61" in told.reason


def test_an_address_that_has_version_1_only() -> None:
    told = fault(NODE, adapter({0: (gid(ADDRESS), ROCE1)}))
    assert told.says.endswith(f"for {ADDRESS}, but one of {ROCE1}")


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (6, "GID 6 of rocep1s0f0 on a is empty"),
        (1, "GID 1 of rocep1s0f0 on a is fe80:"),
        (2, f"({ROCE1}), not RoCE v2 of {ADDRESS}"),
    ],
)
def test_an_index_that_was_written_down_is_checked(number: int, says: str) -> None:
    told = fault(replace(NODE, gid_index=number), SOUND)
    assert says in told.says
    assert told.remedy.endswith("(now it is 3)")
    assert index(replace(NODE, gid_index=3), SOUND) == ("rocep1s0f0", 3)


@pytest.mark.parametrize("text", ["", "zz", "0000:0000:0000:0000:0000:0000:0000:0000", "\x1b[1m"])
def test_entries_that_are_none(text: str) -> None:
    assert "has no RoCE v2 GID" in fault(NODE, adapter({0: (text, ROCE2)})).says


@given(st.ip_addresses(v=4), st.ip_addresses(v=4))
def test_a_gid_names_one_address(one: IPv4Address, other: IPv4Address) -> None:
    assert Gid(0, gid(str(one)), ROCE2).names(str(other)) == (one == other)
