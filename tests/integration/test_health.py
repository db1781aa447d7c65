"""/livez, /readyz, /metrics and SIGTERM of the real processes."""

import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from bare_world import BareWorld, ray_cluster
from processes import Relay, http_get, on_bus, process
from stacks import OUTSIDE, running_stack

from raybus.bus import NatsBus, connect
from raybus.bus.streams import ensure_streams
from raybus.dev.cluster import Cluster
from raybus.dev.stack import NATS, SERVICES, Stack
from raybus.testkit.nats_server import CLUSTER, NatsServer, free_port

CONTROLLER_SERVICES = ("cluster-ctl", "job-ctl", "serve-ctl")


@pytest.fixture(scope="module")
def stack(bare_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """All services, two of cluster-ctl."""
    folder = tmp_path_factory.mktemp("stack") / "run"
    with running_stack(bare_cluster, folder, OUTSIDE, {"cluster-ctl": 2}) as running:
        yield running


def owned(stack: Stack, name: str) -> int:
    """How many partitions a process says it owns."""
    _, text = http_get(stack.procs[name].health_port, "/metrics")
    values = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith("raybus_partitions_owned{")]
    return int(float(values[0])) if values else 0


def refuses(port: int) -> bool:
    """Whether the service at that port says that it is not ready."""
    return http_get(port, "/readyz")[0] == 503


# ------------------------------------------------------------------ in a running stack
@pytest.mark.parametrize("service", SERVICES)
def test_a_service_that_works_is_alive_ready_and_measured(stack: Stack, service: str) -> None:
    port = stack.procs[service].health_port
    assert http_get(port, "/livez") == http_get(port, "/healthz") == http_get(port, "/readyz") == (200, "ok\n")
    status, metrics = http_get(port, "/metrics")
    assert status == 200 and "# TYPE raybus_" in metrics and "process_resident_memory_bytes" in metrics
    assert http_get(port, "/nothing")[0] == 404


def test_a_replica_that_is_told_to_stop_hands_its_partitions_over_and_ends_well(stack: Stack, world: BareWorld) -> None:
    world.wait("both have partitions", lambda: owned(stack, "cluster-ctl") and owned(stack, "cluster-ctl-1"))
    assert owned(stack, "cluster-ctl") + owned(stack, "cluster-ctl-1") == 16
    leaving = stack.procs.pop("cluster-ctl-1")
    leaving.popen.terminate()
    begun = time.monotonic()
    while owned(stack, "cluster-ctl") < 16:
        assert time.monotonic() - begun < 5, "the other replica has not taken over"
        time.sleep(0.02)
    assert time.monotonic() - begun < 1.4, "it waited until the leaving one was taken for dead (1.5 s)"
    assert leaving.popen.wait(10) == 0
    world.apply(ray_cluster("after", workers=0))
    world.wait("the head", lambda: world.list("pods") or None)


def test_without_the_bus_all_are_alive_and_say_what_is_missing_and_work_again_when_it_is_back(
    stack: Stack, world: BareWorld
) -> None:
    bus = stack.procs[NATS]
    bus.popen.kill()
    bus.popen.wait()
    for name, proc in stack.procs.items():
        if name == NATS:
            continue
        port = proc.health_port
        world.wait(f"{name} is not ready", partial(refuses, port))
        assert "bus: connection to the bus is lost" in http_get(proc.health_port, "/readyz")[1]
        assert http_get(proc.health_port, "/livez") == (200, "ok\n")
    stack.start_bus()
    stack.wait_ready()
    world.apply(ray_cluster("again", workers=0))
    world.wait("the head", lambda: world.list("pods") or None)


def test_every_service_ends_with_status_0_when_it_is_told_to(stack: Stack) -> None:
    names = [name for name in stack.procs if name != NATS]
    for name in names:
        stack.procs[name].popen.terminate()
    assert {name: stack.procs[name].popen.wait(15) for name in names} == dict.fromkeys(names, 0)


# ------------------------------------------------------------------ one service alone
@pytest.mark.parametrize("service", [*CONTROLLER_SERVICES, "prober"])
def test_without_streams_a_service_waits_says_so_and_can_be_stopped(
    nats_server: NatsServer, tmp_path: Path, service: str
) -> None:
    with process(service, tmp_path, on_bus(nats_server, service)) as running:
        running.wait_not_ready("waiting for the watcher to make the streams")
        assert running.get("/livez") == (200, "ok\n")
        assert running.terminate() == 0


def test_before_the_bus_is_there_a_service_is_alive_and_not_ready(tmp_path: Path) -> None:
    nowhere = {"RAYBUS_NATS_URL": f"nats://127.0.0.1:{free_port()}"}
    with process("job-ctl", tmp_path, nowhere) as running:
        running.wait_not_ready("bus: not connected yet", "start: not begun yet")
        assert running.get("/livez") == (200, "ok\n")
        assert running.terminate() == 0


@pytest_asyncio.fixture
async def streams(nats_server: NatsServer) -> AsyncIterator[NatsServer]:
    """A bus on which the watcher has made its streams."""
    watcher: NatsBus = await connect(nats_server.settings("watcher"))
    await ensure_streams(watcher, CLUSTER)
    await watcher.close()
    yield nats_server


def test_with_an_empty_view_a_controller_decides_nothing_and_says_why(streams: NatsServer, tmp_path: Path) -> None:
    with process("cluster-ctl", tmp_path, on_bus(streams, "cluster-ctl")) as running:
        running.wait_not_ready("views: partition 0: the watcher has not filled the view yet")


@pytest.mark.parametrize("service", ["watcher", "applier"])
def test_without_the_api_server_it_waits_and_names_it(
    nats_server: NatsServer, tmp_path: Path, bare_cluster: Cluster, service: str
) -> None:
    port = free_port()
    settings = {**on_bus(nats_server, service), "KUBECONFIG": str(kubeconfig(bare_cluster, service, port, tmp_path))}
    with process(service, tmp_path, settings) as running:
        running.wait_not_ready("waiting for the API server")
        running.wait("it is said", lambda: f"cannot reach the API server at https://127.0.0.1:{port}" in running.said())
        assert running.get("/livez") == (200, "ok\n")
        assert running.terminate() == 0


def test_when_the_api_server_goes_the_watcher_says_so(
    nats_server: NatsServer, tmp_path: Path, bare_cluster: Cluster
) -> None:
    target = urlsplit(bare_cluster.api_server_url)
    assert target.hostname and target.port
    relay = Relay(target.hostname, target.port)
    settings = {
        service: {
            **on_bus(nats_server, service),
            "KUBECONFIG": str(kubeconfig(bare_cluster, service, relay.port, tmp_path)),
        }
        for service in ("watcher", "applier")
    }
    with (
        process("watcher", tmp_path, settings["watcher"]) as watcher,
        process("applier", tmp_path, settings["applier"]) as applier,
    ):
        for running in (watcher, applier):
            running.wait_ready()
        relay.cut()
        watcher.wait_not_ready("watcher: ", "the API server at https://127.0.0.1")
        assert watcher.get("/livez") == (200, "ok\n")
        assert (watcher.terminate(), applier.terminate()) == (0, 0)


def kubeconfig(cluster: Cluster, service: str, port: int, folder: Path) -> Path:
    """The service's kubeconfig, with another port of this machine for the API server."""
    path = folder / f"{service}.yaml"
    text = cluster.kubeconfig_for(service).read_text()
    path.write_text(text.replace(cluster.api_server_url, f"https://127.0.0.1:{port}"))
    return path
