"""What every run needs: cluster, recorders, proxies, Raybus, users; all of it ended with the run."""

import asyncio
import gzip
import random
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from api import Api
from faults import Hands
from history import History
from imitation import Ray
from leases import Leases
from proxies import Proxies, Proxy
from workload import Workload
from world import ADMINISTRATOR, TALKERS, ApiServer, ChaosStack, bring_up, certificate, etcd_url

from raybus.dev.cluster import Cluster
from raybus.dev.stack import process_name

OUT = Path(__file__).resolve().parents[2] / "build" / "chaos"
"""Logs, store and every revision of the last run."""
CONVERGE = 420.0
"""Seconds after the last fault in which everything has to be as it was wanted: generous, the machine is shared."""


class Wanted(NamedTuple):
    """What to set up. `replicas`: by service, 1 where not named."""

    replicas: Mapping[str, int]
    bus_servers: int = 1
    seed: int = 1
    clusters: int = 100
    jobs: int = 50


@dataclass
class Run:
    """Everything of one run."""

    cluster: Cluster
    namespace: str
    history: History
    ray: Ray
    leases: Leases
    hands: Hands
    workload: Workload


def say(text: str) -> None:
    """A line for who waits."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


@asynccontextmanager
async def running(wanted: Wanted) -> AsyncIterator[Run]:
    """Raybus, ready, with recorders and without users yet."""
    cluster = await asyncio.to_thread(bring_up)
    OUT.mkdir(parents=True, exist_ok=True)
    with gzip.open(OUT / "history.tsv.gz", "wt", compresslevel=1) as raw:
        async with AsyncExitStack() as stack:
            yield await _set_up(stack, cluster, wanted, raw)


async def _set_up(stack: AsyncExitStack, cluster: Cluster, wanted: Wanted, raw: TextIO) -> Run:
    namespace = f"chaos-{int(time.time())}"
    api = await stack.enter_async_context(Api(cluster.kubeconfig, namespace))
    await api.insist("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    history = History(etcd_url(cluster), namespace, raw)
    ray = Ray(history)
    proxies, through = await _proxies(stack, cluster, ray, wanted.replicas)
    services = await _services(stack, cluster, wanted, namespace, through)
    hands = Hands(services, proxies, api, ApiServer(cluster))
    leases = Leases(services.nats_url, ADMINISTRATOR)
    workload = Workload(api, history, random.Random(wanted.seed), wanted.clusters, wanted.jobs)
    return Run(cluster, namespace, history, ray, leases, hands, workload)


async def recorded(run: Run, doing: Coroutine[Any, Any, list[str]]) -> list[str]:
    """The result of `doing`, while history and leases are recorded. Raises what ends a recorder."""
    lasting = (run.history.run(), run.leases.run(), run.hands.api_server.supervise())
    recording = [asyncio.create_task(each) for each in lasting]
    going = asyncio.create_task(_standing(run, doing))
    try:
        await asyncio.wait((going, *recording), return_when=asyncio.FIRST_COMPLETED)
        for task in recording:
            if task.done():
                task.result()
        return going.result()
    finally:
        for task in recording:
            task.cancel()
        going.cancel()


async def leave(run: Run) -> list[str]:
    """Delete everything; returns what stays."""
    for kind in ("rayjobs", "rayclusters"):
        await run.hands.api.insist("DELETE", run.hands.api.rays(kind))
    left = await until_none(lambda: [f"{kind} {name} stays" for kind, name in run.history.now], "all is deleted")
    await run.hands.api.insist("DELETE", f"/api/v1/namespaces/{run.namespace}")
    return left


async def until_none(left: Callable[[], list[str]], what: str) -> list[str]:
    """Wait for an empty list; returns what is still in it after `CONVERGE` seconds."""
    begun = last = time.monotonic()
    while found := left():
        if time.monotonic() > begun + CONVERGE:
            return found
        if time.monotonic() > last + 15:
            last = time.monotonic()
            say(f"{len(found)} left, for instance: {found[0]}")
        await asyncio.sleep(0.5)
    say(f"{what} after {time.monotonic() - begun:.1f} s")
    return []


async def _standing(run: Run, doing: Coroutine[Any, Any, list[str]]) -> list[str]:
    while not run.history.standing:
        await asyncio.sleep(0.1)
    return await doing


async def _proxies(
    stack: AsyncExitStack, cluster: Cluster, ray: Ray, replicas: Mapping[str, int]
) -> tuple[Proxies, dict[str, Path]]:
    names = [(service, process_name(service, n)) for service in TALKERS for n in range(replicas.get(service, 1))]
    made = [Proxy(name, cluster.kubeconfig_for(service), ray, certificate(cluster)) for service, name in names]
    for proxy in made:
        stack.push_async_callback(proxy.close)
    return Proxies(made), {proxy.name: await proxy.start(OUT) for proxy in made}


async def _services(
    stack: AsyncExitStack, cluster: Cluster, wanted: Wanted, namespace: str, through: Mapping[str, Path]
) -> ChaosStack:
    settings = {
        "RAYBUS_USE_KUBERNETES_PROXY": "true",
        "RAYBUS_WATCH_NAMESPACE": namespace,
        "RAYBUS_STREAM_REPLICAS": str(wanted.bus_servers),
    }
    services = ChaosStack(
        cluster, OUT / "stack", wanted.replicas, settings, bus_servers=wanted.bus_servers, through=through
    )
    stack.push_async_callback(asyncio.to_thread, services.end)
    await asyncio.to_thread(services.start)
    await asyncio.to_thread(services.wait_ready, 180)
    return services
