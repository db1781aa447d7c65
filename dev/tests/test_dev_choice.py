"""Which cluster fits this machine: tables of machines and wishes."""

from pathlib import Path

import pytest

from raybus.dev.choice import Machine, Provider, choose, obstacle_to_real_node
from raybus.dev.errors import DevError
from raybus.dev.options import ClusterOptions, parse_nodes


def machine(
    *,
    root: bool = True,
    apt: bool = True,
    docker_works: bool = False,
    kind_installed: bool = False,
    missing: tuple[str, ...] = (),
    can_make_namespaces: bool = True,
) -> Machine:
    return Machine(root, apt, docker_works, kind_installed, missing, can_make_namespaces)


DOCKER_AND_KIND = machine(docker_works=True, kind_installed=True)


@pytest.mark.parametrize(
    ("options", "offers", "expected"),
    [
        pytest.param(ClusterOptions(kubeconfig=Path("k")), DOCKER_AND_KIND, Provider.GIVEN, id="given comes first"),
        pytest.param(ClusterOptions(), DOCKER_AND_KIND, Provider.KIND, id="kind where Docker works"),
        pytest.param(ClusterOptions(), machine(kind_installed=True), Provider.LOCAL, id="kind without a Docker daemon"),
        pytest.param(ClusterOptions(), machine(docker_works=True), Provider.LOCAL, id="Docker without kind"),
        pytest.param(ClusterOptions(bare=True), DOCKER_AND_KIND, Provider.LOCAL, id="kind knows no bare cluster"),
        pytest.param(ClusterOptions(kwok_nodes=3), DOCKER_AND_KIND, Provider.LOCAL, id="kind knows no simulated nodes"),
        pytest.param(ClusterOptions(), machine(), Provider.LOCAL, id="neither"),
    ],
)
def test_choice(options: ClusterOptions, offers: Machine, expected: Provider) -> None:
    assert choose(options, offers) is expected


@pytest.mark.parametrize(
    ("offers", "says"),
    [
        pytest.param(machine(), None, id="root with everything"),
        pytest.param(machine(missing=("runc",)), None, id="apt can bring what is missing"),
        pytest.param(machine(root=False), "root", id="not root"),
        pytest.param(machine(missing=("runc", "iptables"), apt=False), "runc, iptables", id="no apt: names packages"),
        pytest.param(machine(can_make_namespaces=False), "CAP_SYS_ADMIN", id="root without rights"),
    ],
)
def test_obstacle_to_a_real_node(offers: Machine, says: str | None) -> None:
    obstacle = obstacle_to_real_node(offers)
    assert (obstacle is None) == (says is None)
    assert says is None or says in str(obstacle)


@pytest.mark.parametrize(
    ("options", "real"),
    [
        (ClusterOptions(), True),
        (ClusterOptions(bare=True), False),
        (ClusterOptions(kwok_nodes=5), False),
        (ClusterOptions(kwok_nodes=5, real_node=True), True),
    ],
)
def test_a_real_node_unless_something_simpler_is_asked_for(options: ClusterOptions, real: bool) -> None:
    assert options.wants_real_node() is real


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (ClusterOptions(bare=True, kwok_nodes=3), "bare cluster has no nodes"),
        (ClusterOptions(kubeconfig=Path("k"), kwok_nodes=3), "its own affair"),
        (ClusterOptions(kubeconfig=Path("k"), audited=True), "not ours to configure"),
        (ClusterOptions(kwok_nodes=-1), "not possible"),
    ],
)
def test_contradictions_are_refused(options: ClusterOptions, says: str) -> None:
    with pytest.raises(DevError, match=says):
        options.check()


@pytest.mark.parametrize(
    ("values", "expected"),
    [((), (0, None)), (("real",), (0, True)), (("kwok:20",), (20, None)), (("real", "kwok:5"), (5, True))],
)
def test_nodes_flag(values: tuple[str, ...], expected: tuple[int, bool | None]) -> None:
    assert parse_nodes(values) == expected


@pytest.mark.parametrize("value", ["kwok", "kwok:", "kwok:x", "kwok:-1", "fake:3", ""])
def test_nodes_flag_refuses_what_it_does_not_know(value: str) -> None:
    with pytest.raises(DevError, match="is not understood"):
        parse_nodes((value,))
