"""Ports and networks: each cluster its own, and kept."""

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from raybus.dev.errors import DevError
from raybus.dev.layout import Networks, allocate_network, allocate_ports, ensure_layout
from raybus.dev.paths import cluster_dir


def test_ports_of_other_clusters_and_of_running_programs_are_left_alone() -> None:
    ports = allocate_ports(("a", "b"), frozenset({21000}), lambda port: port != 21001)
    assert ports == {"a": 21002, "b": 21003}


def test_no_free_port_is_one_clear_sentence() -> None:
    with pytest.raises(DevError, match="No free ports"):
        allocate_ports(("a",), frozenset(), lambda port: False)


def test_networks_of_all_clusters_are_disjoint() -> None:
    networks = [network for index in range(32) for network in Networks(index).all()]
    assert not any(a.overlaps(b) for i, a in enumerate(networks) for b in networks[i + 1 :])


@pytest.mark.parametrize(
    ("taken", "routes", "expected"),
    [
        pytest.param(frozenset[int](), [], 0, id="the first"),
        pytest.param(frozenset({0, 1}), [], 2, id="others have theirs"),
        pytest.param(frozenset[int](), ["10.64.3.0/24"], 1, id="the machine uses a part of the pods' network"),
        pytest.param(frozenset[int](), ["10.96.0.0/14"], 4, id="the machine uses Service networks"),
    ],
)
def test_network_choice(taken: frozenset[int], routes: list[str], expected: int) -> None:
    assert allocate_network(taken, map(IPv4Network, routes)) == expected


def test_a_machine_that_uses_all_of_ten_is_told_so() -> None:
    with pytest.raises(DevError, match="All private networks"):
        allocate_network(frozenset(), [IPv4Network("10.0.0.0/8")])


def test_a_layout_is_kept_and_never_shared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = ensure_layout(cluster_dir("one"), idle=True)
    second = ensure_layout(cluster_dir("two"), idle=True)
    assert ensure_layout(cluster_dir("one"), idle=False) == first
    assert not set(first.ports.values()) & set(second.ports.values())
    assert first.network_index != second.network_index


@pytest.mark.parametrize("name", ["", "Dev", "a/b", "-a", "a" * 30, ".."])
def test_names_that_could_not_name_interfaces_are_refused(name: str) -> None:
    with pytest.raises(DevError, match="no cluster name"):
        cluster_dir(name)
