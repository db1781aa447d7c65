"""Run the applier: `python -m raybus.applier`."""

import sys

from raybus.applier.applier import SERVICE, Applier, Ports
from raybus.applier.reach import Reach
from raybus.applier.settings import ApplierSettings
from raybus.bus.epochs import Epochs
from raybus.bus.partitions import Partitions
from raybus.bus.streams import keep_to_cluster
from raybus.kube.client import connect
from raybus.kube.config import Access, ConfigError
from raybus.kube.identity import cluster_identity
from raybus.kube.port import Sender
from raybus.runtime.ready import begin, bus_ready, waits_for
from raybus.runtime.service import Fatal, Service, serve


async def main(service: Service[ApplierSettings]) -> None:
    """Raises Fatal without a usable Kubernetes configuration, BusError when the bus is not fit or not for us."""
    try:
        async with await connect(Access(kubeconfig=service.settings.kubeconfig), "raybus-applier") as sender:
            await apply(service, sender)
    except ConfigError as error:
        raise Fatal(str(error)) from error


async def apply(service: Service[ApplierSettings], client: Sender) -> None:
    """Raises ConfigError, BusError."""
    settings, sender = service.settings, Reach(client)
    cluster = await waits_for(service, "the API server", cluster_identity(sender))
    await bus_ready(service, cluster)
    epochs, partitions = Epochs(service.bus), Partitions(service.bus, SERVICE, service.replica)
    unheard = "no heart-beat of ours was answered lately"
    service.health.checks["partitions"] = lambda: "" if partitions.fresh() else unheard
    ports = Ports(bus=service.bus, sender=sender, partitions=partitions, epochs=epochs, now=service.now)
    applier = Applier(ports, service.replica, settings.max_in_flight, settings.max_held)
    service.health.checks["api server"] = sender.problem
    service.health.checks["versions"] = applier.behind.problem
    parts = (sender.run(), keep_to_cluster(service.bus, cluster), epochs.run(), partitions.run(), applier.run())
    await begin(service, parts, partitions.leave)


if __name__ == "__main__":
    sys.exit(serve(SERVICE, ApplierSettings, main))
