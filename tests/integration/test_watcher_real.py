"""The watcher as a process, on a real API server and a real nats-server."""

import asyncio
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from stacks import uid_of

from raybus.api import subjects
from raybus.api.decision import Ref
from raybus.api.kinds import BY_KIND
from raybus.api.messages import H_GONE, H_RV
from raybus.api.names import PARTITIONS
from raybus.bus import NatsBus
from raybus.bus.port import BusError, Message
from raybus.dev.cluster import Cluster
from raybus.dev.kubectl import Kubectl
from raybus.kube.client import Client, connect
from raybus.kube.config import Access
from raybus.kube.objects import parse_object
from raybus.kube.request import get
from raybus.kube.write import create, delete
from raybus.testkit.nats_server import NatsServer, free_port

Json = dict[str, Any]
TAKE_OVER = 8.0
"""Seconds: 3 on a quiet machine, which the tests on virtual time assert; here other tests use the same cores."""
OpenBus = Callable[[str], Awaitable[NatsBus]]


class Process:
    """One watcher process with its own certificate and bus user."""

    def __init__(self, cluster: Cluster, server: NatsServer, folder: Path, name: str) -> None:
        self.port, self.log = free_port(), folder / f"{name}.log"
        arguments = [
            f"--kubeconfig={cluster.kubeconfig_for('watcher')}",
            f"--nats-url={server.url}",
            f"--metrics-addr=127.0.0.1:{self.port}",
            f"--replica={name}",
        ]
        environment = os.environ | {"RAYBUS_NATS_PASSWORD": "watcher"}
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "raybus.watcher", *arguments]
            self.child = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def problem(self) -> str:
        """What /readyz says, "" when ready."""
        assert self.child.poll() is None, self.log.read_text()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=2) as answer:
                return "" if answer.status == 200 else "not ready"
        except OSError as error:
            return str(error)

    def rss_mb(self) -> float:
        """Resident memory."""
        pages = int(Path(f"/proc/{self.child.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the exit status."""
        self.child.send_signal(number)
        return self.child.wait(20)


@pytest.fixture
def start(bare_cluster: Cluster, nats_server: NatsServer, tmp_path: Path) -> Iterator[Callable[[str], Process]]:
    """Starts watchers, and ends what still runs."""
    running: list[Process] = []

    def run(name: str) -> Process:
        running.append(Process(bare_cluster, nats_server, tmp_path, name))
        return running[-1]

    yield run
    for process in running:
        if process.child.poll() is None:
            process.child.send_signal(signal.SIGCONT)
            process.end(signal.SIGKILL)


class Eyes:
    """Looks at VIEW, and changes what the API server has."""

    def __init__(self, bus: NatsBus, client: Client, namespace: str) -> None:
        self.bus, self.client, self.namespace = bus, client, namespace

    async def make(self, kind: str, name: str, labels: dict[str, str] | None = None, **more: Any) -> str:
        """Create an object; returns its resourceVersion."""
        meta = {"name": name, "namespace": self.namespace, "labels": labels or {}}
        given = {"apiVersion": BY_KIND[kind].api_version, "kind": kind, "metadata": meta, **more}
        answer = await self.client.send(create(kind, self.namespace, msgspec.json.encode(given)))
        return parse_object(answer.body, BY_KIND[kind]).meta.resource_version

    async def delete(self, kind: str, name: str) -> None:
        ref = Ref(kind, self.namespace, name)
        meta = parse_object((await self.client.send(get(ref))).body, BY_KIND[kind]).meta
        await self.client.send(delete(ref, meta.uid))

    async def message(self, controller: str, root: str, kind: str, name: str) -> Message | None:
        subject = subjects.view(controller, self.namespace, root, BY_KIND[kind].token, name)
        return await self.bus.last("VIEW", subject)

    async def until(self, what: str, condition: Callable[[], Awaitable[bool]], within: float = 30.0) -> float:
        """Seconds that it took."""
        begun = time.monotonic()
        while True:
            try:
                if await condition():
                    return time.monotonic() - begun
            except BusError:
                pass
            assert time.monotonic() - begun < within, f"not within {within} s: {what}"
            await asyncio.sleep(0.02)

    async def shown(self, controller: str, root: str, kind: str, name: str, version: str = "") -> float:
        """Wait for a living object, at `version`."""

        async def there() -> bool:
            found = await self.message(controller, root, kind, name)
            return found is not None and H_GONE not in found.headers and version in ("", found.headers[H_RV])

        return await self.until(f"{kind} {name} in the view of {controller} {root}", there)

    async def gone(self, controller: str, root: str, kind: str, name: str) -> float:
        """Wait for a tombstone."""

        async def buried() -> bool:
            found = await self.message(controller, root, kind, name)
            return found is not None and H_GONE in found.headers

        return await self.until(f"tombstone of {kind} {name} in the view of {controller} {root}", buried)

    async def marked(self) -> float:
        """Wait for all markers of the present stream."""
        names = [subjects.fill_marker(c, p) for c in subjects.CONTROLLERS for p in range(PARTITIONS)]

        async def all_there() -> bool:
            created = await self.bus.stream_created("VIEW")
            found = [await self.bus.last("VIEW", name) for name in names]
            return all(message is not None and message.data.decode() == created for message in found)

        return await self.until("markers", all_there)


@pytest.fixture
def cluster_uid(kubectl: Kubectl) -> str:
    """The streams are about the cluster that a service of these tests talks to."""
    return uid_of(kubectl)


@pytest_asyncio.fixture
async def eyes(bus_of: OpenBus, bare_cluster: Cluster, namespace: str) -> AsyncIterator[Eyes]:
    async with await connect(Access(kubeconfig=str(bare_cluster.kubeconfig)), "raybus-test") as client:
        yield Eyes(await bus_of("watcher"), client, namespace)


async def ready(process: Process) -> None:
    end = time.monotonic() + 30
    while problem := process.problem():
        assert time.monotonic() < end, f"{problem}\n{process.log.read_text()}"
        await asyncio.sleep(0.05)


def pod(cluster: str, node_type: str) -> Json:
    labels = {"ray.io/cluster": cluster, "ray.io/node-type": node_type}
    return {"labels": labels, "spec": {"containers": [{"name": "ray", "image": "example.test/ray:1"}]}}


CLUSTER: Json = {"spec": {"headGroupSpec": {"template": {"spec": pod("", "")["spec"]}}}}
JOB: Json = {"spec": {"entrypoint": "x", "clusterSelector": {"ray.io/cluster": "c"}}}


async def test_everything_is_filled_marked_followed_and_buried(eyes: Eyes, start: Callable[[str], Process]) -> None:
    version = await eyes.make("RayCluster", "c", **CLUSTER)
    await eyes.make("Pod", "h", **pod("c", "head"))
    process = start("w1")
    await eyes.shown("cluster", "c", "RayCluster", "c", version)
    await eyes.shown("cluster", "c", "Pod", "h")
    await eyes.marked()
    await ready(process)
    await eyes.make("RayJob", "j", **JOB)
    await eyes.shown("job", "j", "Pod", "h")
    await eyes.shown("job", "j", "RayCluster", "c")
    await eyes.delete("Pod", "h")
    await eyes.gone("job", "j", "Pod", "h")
    await eyes.gone("cluster", "c", "Pod", "h")
    assert process.rss_mb() < 110, process.rss_mb()
    assert process.end() == 0, process.log.read_text()


async def test_a_wiped_bus_is_filled_again(
    eyes: Eyes, start: Callable[[str], Process], nats_server: NatsServer
) -> None:
    await eyes.make("RayCluster", "c", **CLUSTER)
    process = start("w1")
    await eyes.marked()
    before = await eyes.bus.stream_created("VIEW")
    nats_server.kill()
    nats_server.wipe()
    await eyes.make("Pod", "late", **pod("c", "worker"))
    nats_server.start()

    async def another() -> bool:
        return await eyes.bus.stream_created("VIEW") != before

    await eyes.until("a new stream", another)
    await eyes.marked()
    await eyes.shown("cluster", "c", "RayCluster", "c")
    await eyes.shown("cluster", "c", "Pod", "late")
    await ready(process)


async def test_a_standby_takes_over_from_a_dead_a_frozen_and_a_leaving_one(
    eyes: Eyes, start: Callable[[str], Process]
) -> None:
    await eyes.make("RayCluster", "c", **CLUSTER)
    first = start("w1")
    await eyes.marked()
    second = start("w2")
    await ready(second)
    unchanged = await eyes.message("cluster", "c", "RayCluster", "c")
    first.end(signal.SIGKILL)
    died = time.monotonic()
    await eyes.make("Pod", "late", **pod("c", "worker"))
    await eyes.shown("cluster", "c", "Pod", "late")
    assert time.monotonic() - died < TAKE_OVER
    assert await eyes.message("cluster", "c", "RayCluster", "c") == unchanged

    third = start("w3")
    await ready(third)
    second.child.send_signal(signal.SIGSTOP)
    await eyes.make("Pod", "later", **pod("c", "worker"))
    await eyes.shown("cluster", "c", "Pod", "later")
    await eyes.delete("Pod", "later")
    await eyes.gone("cluster", "c", "Pod", "later")
    second.child.send_signal(signal.SIGCONT)
    await ready(second)
    await eyes.gone("cluster", "c", "Pod", "later")
    assert third.end() == 0
    stopped = time.monotonic()
    await eyes.make("Pod", "latest", **pod("c", "worker"))
    await eyes.shown("cluster", "c", "Pod", "latest")
    assert time.monotonic() - stopped < TAKE_OVER


async def test_a_bus_that_is_away_for_a_while_loses_nothing(
    eyes: Eyes, start: Callable[[str], Process], nats_server: NatsServer
) -> None:
    await eyes.make("RayCluster", "c", **CLUSTER)
    await eyes.make("Pod", "old", **pod("c", "worker"))
    process = start("w1")
    await eyes.shown("cluster", "c", "Pod", "old")
    await eyes.marked()
    nats_server.kill()
    await eyes.make("Pod", "new", **pod("c", "worker"))
    await eyes.delete("Pod", "old")
    assert process.problem()
    nats_server.start()
    await eyes.shown("cluster", "c", "Pod", "new")
    await eyes.gone("cluster", "c", "Pod", "old")
    await ready(process)


def broken_kubeconfig(folder: Path) -> str:
    file = folder / "config"
    file.write_text("contexts: [")
    return str(file)


@pytest.mark.parametrize(
    ("kubeconfig", "words"),
    [("/nowhere/config", "no kubeconfig at /nowhere/config"), ("broken", "cannot be used")],
)
async def test_without_a_usable_kubeconfig_it_says_what_to_do(
    nats_server: NatsServer, tmp_path: Path, kubeconfig: str, words: str
) -> None:
    if kubeconfig == "broken":
        kubeconfig = broken_kubeconfig(tmp_path)
    arguments = [f"--kubeconfig={kubeconfig}", f"--nats-url={nats_server.url}", "--metrics-addr=127.0.0.1:0"]
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "raybus.watcher",
        *arguments,
        env=os.environ | {"RAYBUS_NATS_PASSWORD": "watcher"},
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    _, said = await child.communicate()
    assert child.returncode == 2
    assert words in said.decode() and said.decode().count("\n") == 1
