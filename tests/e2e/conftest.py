"""One cluster with a real node for all end-to-end tests, and the services of Raybus around it for each module.

Where a real node is impossible the tests fail and say why: there is nothing that they could run on.
"""

import os
import uuid
from collections.abc import Callable, Iterator

import pytest
from ray_world import RayWorld
from raybus_command import raybus_command

from raybus.cli.dev_command import make_stack
from raybus.dev import cluster as clusters
from raybus.dev.choice import inspect_machine, obstacle_to_real_node
from raybus.dev.cluster import Cluster, ClusterOptions
from raybus.dev.gotools import ensure_tools
from raybus.dev.kubectl import Kubectl
from raybus.dev.stack import Stack, running

NAME = os.environ.get("RAYBUS_E2E_CLUSTER", "e2e")


@pytest.fixture(scope="session")
def real_cluster() -> Iterator[Cluster]:
    """The cluster of that name; taken down at the end unless it was up before."""
    was_up = clusters.find(NAME) is not None
    cluster = clusters.up(ClusterOptions(name=NAME))
    try:
        if not cluster.real_node:
            pytest.fail(f"No real node, so nothing to test on: {obstacle_to_real_node(inspect_machine())}.")
        yield cluster
    finally:
        if not was_up:
            clusters.down(NAME)


@pytest.fixture(scope="session")
def kubectl(real_cluster: Cluster) -> Kubectl:
    """kubectl as the administrator of that cluster."""
    return Kubectl(ensure_tools(["kubectl"])["kubectl"], real_cluster.kubeconfig)


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    """Settings of the services; a module that needs others overrides this."""
    return {}


@pytest.fixture(scope="module")
def stack(real_cluster: Cluster, settings: dict[str, str]) -> Iterator[Stack]:
    """All services as processes, one of each; none may end by itself. Their logs stay in the cluster's folder."""
    with running(make_stack(real_cluster.name, {}, settings)) as stack:
        yield stack
        assert stack.ended() == []


@pytest.fixture
def world(stack: Stack, kubectl: Kubectl) -> Iterator[RayWorld]:
    """A namespace of this test's own. Nothing of it runs on: the next test needs the cores."""
    name = f"e-{uuid.uuid4().hex[:10]}"
    kubectl("create", "namespace", name)
    world = RayWorld(kubectl, name)
    yield world
    kubectl("delete", "rayjobs,rayclusters", "--all", "-n", name, "--timeout=120s")
    world.wait("all pods are gone", lambda: not world.list("pods") or None, 120)
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def raybus(stack: Stack) -> Callable[..., str]:
    """The `raybus` command against the stack's bus; returns what it prints."""
    return raybus_command(stack)
