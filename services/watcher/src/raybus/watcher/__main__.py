"""Run the watcher: `python -m raybus.watcher`."""

import random
import sys

from raybus.bus.partitions import Partitions
from raybus.bus.streams import check_server, ensure_streams, keep_streams
from raybus.kube.client import connect
from raybus.kube.config import ConfigError
from raybus.runtime.gates import read_gates
from raybus.runtime.lifecycle import unless_stopped, until_stopped
from raybus.runtime.service import Fatal, Service, serve
from raybus.watcher.service import Watcher
from raybus.watcher.session import Ports
from raybus.watcher.settings import WatcherSettings

SERVICE = "watcher"


async def main(service: Service[WatcherSettings]) -> None:
    """Raises Fatal without a usable Kubernetes configuration, BusError when the bus is not fit."""
    bus, settings = service.bus, service.settings
    try:
        client = await connect(settings.access, "raybus-watcher")
    except ConfigError as error:
        raise Fatal(str(error)) from error
    await unless_stopped(service.stop, check_server(bus))
    await unless_stopped(service.stop, ensure_streams(bus, settings.stream_replicas))
    partitions = Partitions(bus, SERVICE, service.replica, count=1)
    gates = [name for name, is_open in read_gates(settings.feature_gates).items() if is_open]
    async with client as sender:
        ports = Ports(bus, sender, partitions.fresh, service.now, lambda: random.uniform(0.75, 1.25))
        watcher = Watcher(ports, partitions, settings.watch_namespace, gates)
        service.health.checks["watcher"] = watcher.problem
        parts = (keep_streams(bus, settings.stream_replicas), partitions.run(), watcher.run())
        await until_stopped(service.stop, parts, partitions.leave)


if __name__ == "__main__":
    sys.exit(serve(SERVICE, WatcherSettings, main))
