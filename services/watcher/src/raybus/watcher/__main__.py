"""Run the watcher: `python -m raybus.watcher`."""

import random
import sys

from raybus.bus.partitions import Partitions
from raybus.bus.streams import check_server, ensure_streams, keep_streams
from raybus.kube.client import connect
from raybus.kube.config import ConfigError
from raybus.kube.identity import cluster_identity
from raybus.kube.port import Sender
from raybus.runtime.gates import read_gates
from raybus.runtime.ready import begin, waits_for
from raybus.runtime.schedulers import chosen_scheduler, kinds_gate
from raybus.runtime.service import Fatal, Service, serve
from raybus.watcher.service import Watcher
from raybus.watcher.session import Ports
from raybus.watcher.settings import WatcherSettings


async def main(service: Service[WatcherSettings]) -> None:
    """Raises Fatal without a usable Kubernetes configuration, BusError when the bus is not fit or not for us."""
    try:
        async with await connect(service.settings.access, "raybus-watcher") as sender:
            await watch(service, sender)
    except ConfigError as error:
        raise Fatal(str(error)) from error


async def watch(service: Service[WatcherSettings], sender: Sender) -> None:
    """Raises ConfigError, BusError."""
    bus, settings, copies = service.bus, service.settings, service.settings.stream_replicas
    gates = read_gates(settings.feature_gates)
    scheduler = chosen_scheduler(settings.batch_scheduler, settings.enable_batch_scheduler, gates)
    features = [*(name for name, is_open in gates.items() if is_open), kinds_gate(scheduler)]
    await waits_for(service, "JetStream", check_server(bus))
    cluster = await waits_for(service, "the API server", cluster_identity(sender))
    await waits_for(service, "JetStream to make the streams", ensure_streams(bus, cluster, copies))
    partitions = Partitions(bus, service.name, service.replica, count=1)
    ports = Ports(bus, sender, partitions.fresh, service.now, lambda: random.uniform(0.75, 1.25))
    watcher = Watcher(ports, partitions, settings.watch_namespace, features)
    service.health.checks["watcher"] = watcher.problem
    parts = (keep_streams(bus, cluster, copies), partitions.run(), watcher.run())
    await begin(service, parts, partitions.leave)


if __name__ == "__main__":
    sys.exit(serve("watcher", WatcherSettings, main))
