"""`make chaos`: a fleet under faults, judged from outside. The last line holds the figures; exit status 1 if one of
them is not what it must be.

  chaos.py [--minutes 12] [--seed 1] [--clusters 100] [--jobs 50] [--bus-servers 3] [--long]

`--minutes` ends the faults early; a whole run needs about nine minutes and the convergence after it. `--long`: the API
server is away for ten minutes once.
"""

import argparse
import asyncio
import gzip
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TextIO

import faults
from api import Api
from faults import Fault, Hands
from history import History
from imitation import Ray
from leases import Leases
from proxies import Proxies, Proxy
from verdict import Run, report
from workload import Workload
from world import ADMINISTRATOR, TALKERS, ApiServer, ChaosStack, bring_up, certificate, etcd_url

from raybus.dev.cluster import Cluster
from raybus.dev.paths import cache_dir
from raybus.dev.stack import SERVICES, process_name

REPLICAS = dict.fromkeys(SERVICES, 2)
SETTINGS = {"RAYBUS_USE_KUBERNETES_PROXY": "true"}
CONVERGE = 420.0
"""Seconds after the last fault in which everything has to be as it was wanted: generous, the machine is shared."""
BETWEEN = 1.5
"""Seconds between two faults of one list."""


def say(text: str) -> None:
    """A line for who waits."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--bus-servers", type=int, choices=(1, 3), default=1)
    parser.add_argument("--long", action="store_true")
    return parser.parse_args(arguments)


async def main() -> int:
    """The whole run; returns the exit status."""
    asked = options()
    cluster = bring_up()
    folder = cache_dir() / "chaos"
    folder.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        raw = gzip.open(folder / "history.tsv.gz", "wt", compresslevel=1)  # noqa: SIM115  # closed by the stack
        stack.enter_context(raw)
        run = await _prepare(stack, cluster, asked, folder, raw)
        recording = [asyncio.create_task(run.history.run()), asyncio.create_task(run.leases.run())]
        going = asyncio.create_task(_go(run, asked))
        stack.callback(lambda: [task.cancel() for task in (*recording, going)])
        await asyncio.wait((going, *recording), return_when=asyncio.FIRST_COMPLETED)
        for task in recording:
            if task.done():
                task.result()
        late = going.result() + run.hands.stack.ended()
        return report(run, late, say)


async def _prepare(
    stack: AsyncExitStack, cluster: Cluster, asked: argparse.Namespace, folder: Path, raw: TextIO
) -> Run:
    namespace = f"chaos-{int(time.time())}"
    api = await stack.enter_async_context(Api(cluster.kubeconfig, namespace))
    await api.insist("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    history = History(etcd_url(cluster), namespace, raw)
    ray = Ray(history)
    names = [(s, process_name(s, n)) for s in TALKERS for n in range(REPLICAS[s])]
    made = [Proxy(name, cluster.kubeconfig_for(service), ray, certificate(cluster)) for service, name in names]
    for proxy in made:
        stack.push_async_callback(proxy.close)
    through = {proxy.name: await proxy.start(folder) for proxy in made}
    settings = SETTINGS | {"RAYBUS_WATCH_NAMESPACE": namespace, "RAYBUS_STREAM_REPLICAS": str(asked.bus_servers)}
    services = ChaosStack(cluster, folder / "stack", REPLICAS, settings, bus_servers=asked.bus_servers, through=through)
    stack.push_async_callback(asyncio.to_thread, services.end)
    await asyncio.to_thread(services.start)
    await asyncio.to_thread(services.wait_ready, 120)
    hands = Hands(services, Proxies(made), api, ApiServer(cluster))
    leases = Leases(services.nats_url, ADMINISTRATOR)
    workload = Workload(api, history, random.Random(asked.seed), asked.clusters, asked.jobs)
    return Run(cluster, namespace, history, ray, leases, hands, workload)


async def _go(run: Run, asked: argparse.Namespace) -> list[str]:
    """Work, faults, and the quiet after them; returns what has not converged or cannot be removed."""
    while not run.history.standing:
        await asyncio.sleep(0.1)
    say(f"namespace {run.namespace}: {asked.clusters} RayClusters and {asked.jobs} RayJobs")
    users = asyncio.create_task(_use(run))
    await asyncio.sleep(5)
    lanes = faults.plan(random.Random(asked.seed), asked.bus_servers, 60.0)
    if asked.long:
        lanes[1].append(Fault("api-away", "", 600.0))
    end = time.monotonic() + asked.minutes * 60
    await asyncio.gather(*(_strike(run, lane, end) for lane in lanes))
    say(f"{len(run.hands.struck)} faults are over; waiting until everything is as it was wanted")
    users.cancel()
    await asyncio.wait((users,))
    if not users.cancelled() and users.exception():
        raise users.exception() or AssertionError
    for number in sorted(run.hands.away):
        await asyncio.to_thread(run.hands.stack.start_bus, number)
    run.ray.finish()
    left = await _until_none(run.workload.unfinished, "everything is as it was wanted")
    return left + await _leave(run)


async def _use(run: Run) -> None:
    await run.workload.begin()
    await run.workload.go_on()


async def _strike(run: Run, lane: Sequence[Fault], end: float) -> None:
    for fault in lane:
        if time.monotonic() > end:
            return
        say(f"{fault.kind} {fault.target} {fault.seconds:g} s")
        await faults.strike(run.hands, fault)
        await asyncio.sleep(BETWEEN)


async def _leave(run: Run) -> list[str]:
    """Delete everything; returns what stays."""
    for kind in ("rayjobs", "rayclusters"):
        await run.hands.api.insist("DELETE", run.hands.api.rays(kind))
    left = await _until_none(lambda: [f"{kind} {name} stays" for kind, name in run.history.now], "all is deleted")
    await run.hands.api.insist("DELETE", f"/api/v1/namespaces/{run.namespace}")
    return left


async def _until_none(left: Callable[[], list[str]], what: str) -> list[str]:
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


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
