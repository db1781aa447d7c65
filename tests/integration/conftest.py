"""One bare cluster (API server, garbage collection, our CRDs) for all integration tests of a process, of which several
may run side by side (`pytest -n`); a nats-server for each test that asks for one."""

import fcntl
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from bare_world import BareWorld
from conformance_world import api_world, credentials, place
from raybus_command import raybus_command
from stacks import OUTSIDE, running_stack

from raybus.bus import NatsBus, connect
from raybus.bus.streams import ensure_streams
from raybus.dev import cluster
from raybus.dev.cluster import Cluster, ClusterOptions
from raybus.dev.gotools import ensure_tools
from raybus.dev.kubectl import Kubectl
from raybus.dev.paths import cluster_dir
from raybus.dev.stack import Stack
from raybus.testkit.loopback import loopback_address
from raybus.testkit.nats_server import CLUSTER, NatsServer

__all__ = ["api_world", "credentials", "place"]

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
NAME = f"test-{WORKER}" if WORKER else "test"
DASHBOARD = f"10.99.0.{1 + int(WORKER.removeprefix('gw') or 0)}"
LONGEST = ("test_versions", "test_golden_cases", "test_dev_cluster", "test_bad_configuration", "test_watcher_real")
"""Begun first, so that no process is left alone with one of them at the end."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Longest first. With `--dist loadgroup` a file's tests stay together, since they share services; those of
    LONGEST[0] share nothing."""
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))
    for item in items:
        group = item.nodeid if item.path.stem == LONGEST[0] else item.path.stem
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def bare_cluster() -> Iterator[Cluster]:
    """The cluster NAME: the first test process that needs it brings it up, the last one to leave takes it down."""
    folder = cluster_dir(NAME)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "users.lock").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        yield cluster.up(ClusterOptions(name=NAME, bare=True))
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        cluster.down(NAME)


@pytest.fixture(scope="session")
def kubectl(bare_cluster: Cluster) -> Kubectl:
    """kubectl as the administrator of the bare cluster."""
    return Kubectl(ensure_tools(["kubectl"])["kubectl"], bare_cluster.kubeconfig)


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace of this test's own."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def dashboard_address() -> Iterator[str]:
    """An address of this machine that may stand in Endpoints."""
    with loopback_address(DASHBOARD) as address:
        yield address


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[NatsServer]:
    """A running nats-server of the pinned wheel; `kill`, `stop`, `pause`, `wipe` and `start` it at will."""
    server = NatsServer(tmp_path)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def cluster_uid() -> str:
    """The Kubernetes cluster that the streams of `bus_of` are about: none, where only the bus is looked at."""
    return CLUSTER


@pytest_asyncio.fixture
async def bus_of(nats_server: NatsServer, cluster_uid: str) -> AsyncIterator[Callable[[str], Awaitable[NatsBus]]]:
    """Connects as one of the services; the watcher makes the streams first."""
    opened: list[NatsBus] = []

    async def open_bus(user: str) -> NatsBus:
        bus = await connect(nats_server.settings(user))
        opened.append(bus)
        if user == "watcher":
            await ensure_streams(bus, cluster_uid)
        return bus

    yield open_bus
    for bus in opened:
        await bus.close()


@pytest.fixture(scope="module")
def stack(bare_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """All services as processes on the bare cluster, one of each; none may end by itself."""
    with running_stack(bare_cluster, tmp_path_factory.mktemp("stack") / "run", OUTSIDE) as running:
        yield running
        assert running.ended() == []


@pytest.fixture
def world(stack: Stack, kubectl: Kubectl, namespace: str) -> BareWorld:
    """A namespace of that cluster in which all services work."""
    return BareWorld(kubectl, namespace)


@pytest.fixture
def raybus(stack: Stack) -> Callable[..., str]:
    """The `raybus` command against the stack's bus; returns what it prints."""
    return raybus_command(stack)
