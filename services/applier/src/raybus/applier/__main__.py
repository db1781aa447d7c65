"""Run the applier: `python -m raybus.applier`."""

import sys

from raybus.applier.applier import SERVICE, Applier, Ports
from raybus.applier.settings import ApplierSettings
from raybus.bus.epochs import Epochs
from raybus.bus.partitions import Partitions
from raybus.kube.client import connect
from raybus.kube.config import Access, ConfigError
from raybus.runtime.lifecycle import until_stopped
from raybus.runtime.ready import bus_ready
from raybus.runtime.service import Fatal, Service, serve


async def main(service: Service[ApplierSettings]) -> None:
    """Raises Fatal without a usable Kubernetes configuration, BusError when the bus is not fit."""
    settings = service.settings
    try:
        client = await connect(Access(kubeconfig=settings.kubeconfig), "raybus-applier")
    except ConfigError as error:
        raise Fatal(str(error)) from error
    await bus_ready(service)
    epochs, partitions = Epochs(service.bus), Partitions(service.bus, SERVICE, service.replica)
    service.health.checks["partitions"] = lambda: (
        "" if partitions.fresh() else "no heart-beat of ours was answered lately"
    )
    async with client as sender:
        ports = Ports(bus=service.bus, sender=sender, partitions=partitions, epochs=epochs, now=service.now)
        applier = Applier(ports, service.replica, settings.max_in_flight, settings.max_held)
        service.health.checks["versions"] = applier.behind.problem
        await until_stopped(service.stop, (epochs.run(), partitions.run(), applier.run()), partitions.leave)


if __name__ == "__main__":
    sys.exit(serve(SERVICE, ApplierSettings, main))
